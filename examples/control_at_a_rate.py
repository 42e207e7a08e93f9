"""A controller at 100 Hz of simulation time: exact in steps, however fast the simulation runs."""

from __future__ import annotations

import mjhost

MODEL = """
<mujoco>
  <option timestep=".001"/>
  <worldbody>
    <body>
      <joint name="hinge" axis="0 1 0" damping=".1"/>
      <geom type="capsule" size=".02" fromto="0 0 0 0 0 -.5"/>
    </body>
  </worldbody>
  <actuator><motor name="motor" joint="hinge"/></actuator>
</mujoco>
"""

TARGET = 0.3


def main() -> None:
    steps = []

    def control(model, data):
        steps.append(round(data.time / model.opt.timestep))
        data.ctrl[0] = 20.0 * (TARGET - data.qpos[0]) - 2.0 * data.qvel[0]

    with mjhost.MujocoEnv(MODEL) as env:
        token = env.every(100.0, control)
        env.advance(2.0)
        print("calls:", token.calls, "at steps", *steps[:3], "…")
        print(f"angle: {env.data.qpos[0]:.3f}, wanted about {TARGET}")


if __name__ == "__main__":
    main()
