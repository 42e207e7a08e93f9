"""Wind on cloth: the pressure of the air on each triangle of a flex, shared by its corners."""

import mujoco
import numpy as np

from mjhost import engine
from mjhost.engine import mj


@engine.plugin("gallery.wind", capabilities=("passive",))
class Wind:
    """Pressure density/2·drag·v² of air against a surface; the cloth is the only flex."""

    wind: tuple[float, float, float] = (0.0, 0.0, 0.0)  # m/s
    density: float = 1.2  # kg/m³
    drag: float = 1.2

    def compute(self, model, data, instance, capability):
        triangles, places = model.flex_elem.reshape(-1, 3), data.flexvert_xpos
        velocity = np.zeros((model.nflexvert, 6))
        for vertex, body in enumerate(model.flex_vertbodyid):
            mj.mj_objectVelocity(model, data, 1, body, velocity[vertex], 0)  # 1: mjOBJ_BODY
        first, second, third = (places[triangles[:, corner]] for corner in range(3))
        normals = np.cross(second - first, third - first) / 2  # as long as the area, m²
        against = self.wind - velocity[triangles, 3:].mean(axis=1)
        speed = (against * normals).sum(axis=1) / np.linalg.norm(normals, axis=1)
        pressure = 0.5 * self.density * self.drag * np.abs(speed) * speed
        forces, nothing = np.zeros((model.nflexvert, 3)), np.zeros(3)
        np.add.at(forces, triangles, (pressure[:, None] * normals / 3)[:, None])
        for vertex, body in enumerate(model.flex_vertbodyid):
            place = places[vertex]
            mj.mj_applyFT(model, data, forces[vertex], nothing, place, body, data.qfrc_passive)


MODEL = """<mujoco>
  <extension><plugin plugin="gallery.wind"><instance name="breeze">
    <config key="wind" value="0 3 0"/></instance></plugin></extension>
  <worldbody><body name="rod" pos="0 0 1">
    <joint type="slide" axis="0 1 0" stiffness="20" damping="5"/>
    <geom type="capsule" size=".01" fromto="-.3 0 .2 .3 0 .2"/>
    <flexcomp name="cloth" type="grid" dim="2" count="6 5 1" spacing=".1 .1 .1" euler="90 0 0"
      mass=".1" radius=".002"><edge equality="true"/><pin id="4 9 14 19 24 29"/></flexcomp>
  </body></worldbody>
</mujoco>"""


def main() -> None:
    model = mujoco.MjModel.from_xml_string(MODEL)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert abs(data.qfrc_passive[0] - 0.5 * 1.2 * 1.2 * (0.5 * 0.4) * 3.0**2) < 1e-9  # on the rod
    mujoco.mj_step(model, data, 1500)
    top, bottom = data.flexvert_xpos.reshape(6, 5, 3)[:, [4, 0]].mean(axis=0)
    lean = np.degrees(np.arctan2(bottom[1] - top[1], top[2] - bottom[2]))
    print(f"the cloth leans by {lean:.0f}°, its rod is {data.qpos[0] * 1000:.0f} mm down the wind")
    assert 20 < lean < 70


if __name__ == "__main__":
    main()
