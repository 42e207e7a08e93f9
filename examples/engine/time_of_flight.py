"""A time-of-flight camera: one distance per pixel, by rays from a site along its z axis."""

import mujoco
import numpy as np

from mjhost import engine
from mjhost.engine import mj


@engine.plugin("gallery.time_of_flight", capabilities=("sensor",), stage="pos")
class TimeOfFlight:
    """Of the site ``objname``, row by row; ``reach`` where nothing is hit."""

    pixels: int = engine.attribute(8, minimum=1, doc="per side")
    angle: float = engine.attribute(45.0, minimum=1, maximum=170, doc="of view, degrees")
    reach: float = engine.attribute(4.0, minimum=0, doc="m")

    def sensor_size(self, model, instance, sensor):
        return self.pixels**2

    def init(self, model, data, instance):
        edge = np.tan(np.radians(self.angle) / 2)
        centres = ((np.arange(self.pixels) + 0.5) / self.pixels * 2 - 1) * edge
        across, down = np.meshgrid(centres, centres)
        rays = np.stack([across.ravel(), down.ravel(), np.ones(self.pixels**2)], axis=1)
        return rays / np.linalg.norm(rays, axis=1, keepdims=True)

    def compute(self, model, data, instance, capability):
        hit, normal = np.zeros(1, np.int32), np.zeros(3)
        for sensor, start in zip(self.sensors, self.sensoradr, strict=True):
            site = model.sensor_objid[sensor]
            place, body = data.site_xpos[site], model.site_bodyid[site]
            rays = self.memo @ data.site_xmat[site].reshape(3, 3).T
            for k, ray in enumerate(np.ascontiguousarray(rays)):
                found = mj.mj_ray(model, data, place, ray, None, 1, body, hit, normal)
                data.sensordata[start + k] = found if 0 <= found < self.reach else self.reach


MODEL = """<mujoco>
  <extension><plugin plugin="gallery.time_of_flight"/></extension>
  <worldbody>
    <geom name="wall" type="box" size=".1 5 5" pos="2.1 0 0"/>
    <body pos="0 0 0"><freejoint/><geom size=".05"/><site name="eye" zaxis="1 0 0"/></body>
  </worldbody>
  <sensor><plugin plugin="gallery.time_of_flight" objtype="site" objname="eye"/></sensor>
</mujoco>"""


def main() -> None:
    model = mujoco.MjModel.from_xml_string(MODEL)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    print(data.sensordata.reshape(8, 8).round(2))
    corner = np.tan(np.radians(22.5)) * 7 / 8
    assert abs(data.sensordata[0] - 2.0 * np.sqrt(1 + 2 * corner**2)) < 1e-9


if __name__ == "__main__":
    main()
