"""A series elastic actuator: the rotor of a motor behind a spring, as two activations."""

from __future__ import annotations

import mujoco

from mjhost import engine


@engine.plugin("gallery.series_elastic", capabilities=("actuator",))
class SeriesElastic:
    """The control is the motor's torque, N·m; ``act`` is the rotor's angle and speed."""

    stiffness: float = engine.attribute(100.0, minimum=0, doc="of the spring, N·m/rad")
    damping: float = engine.attribute(0.2, minimum=0, doc="beside the spring, N·m·s/rad")
    inertia: float = engine.attribute(0.02, minimum=1e-9, doc="of the rotor, kg·m²")
    friction: float = engine.attribute(0.1, minimum=0, doc="of the rotor, N·m·s/rad")

    def spring(self, data, k):
        """What the spring puts on the joint, N·m; the rotor feels the opposite."""
        angle, speed = data.act[self.actadr[k]], data.act[self.actadr[k] + 1]
        out = self.outadr[k]
        stretch = angle - data.actuator_length[out]
        return self.stiffness * stretch + self.damping * (speed - data.actuator_velocity[out])

    def actuator_act_dot(self, model, data, instance):
        for k in range(len(self.actuators)):
            slot = self.actadr[k]
            torque = data.ctrl[self.ctrladr[k]] - self.spring(data, k)
            data.act_dot[slot] = data.act[slot + 1]
            data.act_dot[slot + 1] = (torque - self.friction * data.act[slot + 1]) / self.inertia

    def compute(self, model, data, instance, capability):
        for k in range(len(self.actuators)):
            data.actuator_force[self.outadr[k]] = self.spring(data, k)


MODEL = """
<mujoco>
  <extension><plugin plugin="gallery.series_elastic"/></extension>
  <worldbody><body>
    <joint name="hinge" axis="0 0 1" stiffness="50" damping="1"/><geom size=".1" pos=".3 0 0"/>
  </body></worldbody>
  <actuator><plugin plugin="gallery.series_elastic" joint="hinge" actdim="2"/></actuator>
</mujoco>
"""


def main() -> None:
    model = mujoco.MjModel.from_xml_string(MODEL)
    data = mujoco.MjData(model)
    data.ctrl[0] = 5.0
    mujoco.mj_step(model, data, 5000)
    joint, stretch = data.qpos[0], data.act[0] - data.qpos[0]
    print(f"joint {joint:.4f} rad, spring stretched by {stretch:.4f} rad")
    assert max(abs(joint - 5.0 / 50), abs(stretch - 5.0 / 100)) < 1e-4


if __name__ == "__main__":
    main()
