"""A tactile array: the normal force on each cell of a pad, from the contacts of its geom."""

import mujoco
import numpy as np

from mjhost import engine
from mjhost.engine import mj


@engine.plugin("gallery.tactile", capabilities=("sensor",), stage="acc")
class Tactile:
    """``objname`` is a box; its upper face is cut into cells, row by row along x."""

    rows: int = 4
    columns: int = 4

    def sensor_size(self, model, instance, sensor):
        return self.rows * self.columns

    def cell(self, model, data, pad, place):
        """The number of the cell below a point of the world."""
        local = (place - data.geom_xpos[pad]) @ data.geom_xmat[pad].reshape(3, 3)
        share = np.clip((local[:2] / model.geom_size[pad, :2] + 1) / 2, 0, 1 - 1e-9)
        return int(share[0] * self.rows) * self.columns + int(share[1] * self.columns)

    def compute(self, model, data, instance, capability):
        wrench = np.zeros(6)
        for sensor, start in zip(self.sensors, self.sensoradr, strict=True):
            pad = model.sensor_objid[sensor]
            data.sensordata[start : start + self.rows * self.columns] = 0
            for k in range(data.ncon):
                contact = data.contact[k]
                if pad in contact.geom:
                    mj.mj_contactForce(model, data, k, wrench)
                    data.sensordata[start + self.cell(model, data, pad, contact.pos)] += wrench[0]


MODEL = """<mujoco>
  <extension><plugin plugin="gallery.tactile"/></extension>
  <worldbody>
    <geom name="pad" type="box" size=".4 .4 .02"/>
    <body pos=".1 -.1 .08"><freejoint/><geom type="box" size=".15 .15 .05" mass="2"/></body>
  </worldbody>
  <sensor><plugin plugin="gallery.tactile" objtype="geom" objname="pad"/></sensor>
</mujoco>"""


def main() -> None:
    model = mujoco.MjModel.from_xml_string(MODEL)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 1000)
    forces = data.sensordata.reshape(4, 4)
    middles = np.array([-0.3, -0.1, 0.1, 0.3])  # of the cells, m
    x, y = (forces.sum(axis=axis) @ middles / forces.sum() for axis in (1, 0))
    print(f"weight {forces.sum():.2f} N, centre of pressure ({x:.2f}, {y:.2f}) m")
    assert np.allclose((forces.sum(), x, y), (2 * 9.81, 0.1, -0.1), atol=1e-3)


if __name__ == "__main__":
    main()
