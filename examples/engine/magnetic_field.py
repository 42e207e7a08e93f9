"""Magnets in a field with a gradient: a passive force, on every body that names the instance."""

import math

import mujoco
import numpy as np

from mjhost import engine
from mjhost.engine import mj


@engine.plugin("gallery.magnet", capabilities=("passive",))
class Magnet:
    """The field is (-g·x/2, -g·y/2, B + g·z), which has neither sources nor curl."""

    moment: tuple[float, float, float] = (1.0, 0.0, 0.0)  # A·m², in the frame of the body
    field: float = 1.0  # B, T
    gradient: float = 0.0  # g, T/m

    def compute(self, model, data, instance, capability):
        for body in self.bodies:
            place = data.xipos[body]
            moment = data.xmat[body].reshape(3, 3) @ self.moment
            slope = self.gradient * np.array((-0.5, -0.5, 1.0))
            field = slope * place + (0.0, 0.0, self.field)
            force, torque = slope * moment, np.cross(moment, field)
            mj.mj_applyFT(model, data, force, torque, place, body, data.qfrc_passive)


MODEL = """<mujoco>
  <option gravity="0 0 0" timestep=".001" integrator="RK4"/>
  <extension><plugin plugin="gallery.magnet"><instance name="magnet">
    <config key="moment" value="0 0 2"/><config key="gradient" value="{gradient}"/>
  </instance></plugin></extension>
  <worldbody><body>
    <joint name="lift" type="slide" axis="0 0 1"/><joint name="swing" axis="0 1 0"/>
    <geom type="box" size=".05 .02 .01" mass="3"/><plugin instance="magnet"/>
  </body></worldbody>
</mujoco>"""


def main() -> None:
    model = mujoco.MjModel.from_xml_string(MODEL.format(gradient=0.5))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert abs(data.qfrc_passive[0] - 2 * 0.5) < 1e-12  # moment times gradient

    model = mujoco.MjModel.from_xml_string(MODEL.format(gradient=0))
    data = mujoco.MjData(model)
    data.qpos[1] = 0.01
    period = 2 * math.pi * math.sqrt(model.body_inertia[1, 1] / (2 * 1.0))
    while data.time < 10 * period:
        mujoco.mj_step(model, data)
    print(f"after 10 periods of {period:.3f} s it is at {data.qpos[1]:.5f} rad")
    assert abs(data.qpos[1] - 0.01) < 1e-4


if __name__ == "__main__":
    main()
