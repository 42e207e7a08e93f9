"""A muscle of Hill's type: activation that rises faster than it falls, force by length."""

import math

import mujoco

from mjhost import engine


@engine.plugin("gallery.muscle", capabilities=("actuator",))
class Muscle:
    """Pulls, never pushes; ``act`` is the activation, 0 to 1."""

    strength: float = engine.attribute(100.0, minimum=0, doc="greatest isometric force, N")
    optimum: float = engine.attribute(0.3, minimum=1e-3, doc="length of that force, m")
    fastest: float = engine.attribute(2.0, minimum=1e-3, doc="speed of no force, m/s")
    rise: float = engine.attribute(0.015, minimum=1e-4, doc="time constant up, s")
    fall: float = engine.attribute(0.06, minimum=1e-4, doc="time constant down, s")

    def actuator_act_dot(self, model, data, instance):
        excitation = min(max(data.ctrl[self.ctrladr[0]], 0.0), 1.0)
        time = self.rise if excitation > self.act[0] else self.fall
        self.act_dot[0] = (excitation - self.act[0]) / time

    def by_speed(self, v):
        """Less force when it shortens, up to 1.4 times as much when it is stretched."""
        return max(0.0, (1 - v) / (1 + 4 * v)) if v > 0 else 1.4 - 0.4 * math.exp(12.5 * v)

    def compute(self, model, data, instance, capability):
        out = self.outadr[0]
        length = data.actuator_length[out] / self.optimum
        active = self.act[0] * math.exp(-((length - 1) ** 2) / 0.45)
        active *= self.by_speed(-data.actuator_velocity[out] / self.fastest)
        data.actuator_force[out] = -self.strength * (active + 4 * max(0.0, length - 1) ** 2)


MODEL = """<mujoco>
  <extension><plugin plugin="gallery.muscle"/></extension>
  <worldbody>
    <body pos="0 0 -.3"><joint name="slide" type="slide" axis="0 0 1"/>
      <geom size=".05" mass="2"/><site name="end"/></body>
    <site name="origin"/>
  </worldbody>
  <tendon><spatial name="tendon"><site site="origin"/><site site="end"/></spatial></tendon>
  <actuator><plugin plugin="gallery.muscle" tendon="tendon" actdim="1"/></actuator>
</mujoco>"""


def main() -> None:
    model = mujoco.MjModel.from_xml_string(MODEL)
    data = mujoco.MjData(model)
    data.ctrl[0] = 0.4
    mujoco.mj_step(model, data, 2000)
    print(f"at activation {data.act[0]:.2f} it holds 2 kg at {data.ten_length[0]:.3f} m")
    right = 0.3 * (1 - math.sqrt(-0.45 * math.log(2 * 9.81 / (0.4 * 100))))
    assert abs(data.ten_length[0] - right) < 1e-3


if __name__ == "__main__":
    main()
