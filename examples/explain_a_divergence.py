"""A simulation that blows up: where, when, and the state just before it."""

from __future__ import annotations

import mjhost

MODEL = """
<mujoco>
  <option timestep=".05"/>
  <worldbody>
    <body><joint name="hinge" stiffness="450" damping="0"/><geom size=".1" pos=".2 0 0"/></body>
  </worldbody>
  <keyframe><key name="tilted" qpos=".5"/></keyframe>
</mujoco>
"""


def main() -> None:
    with mjhost.MujocoEnv(MODEL) as env:
        env.reset("tilted")
        try:
            env.step(100_000)
        except mjhost.DivergenceError as error:
            print(f"after {error.completed} good steps: {env.fault.message}")
            print("angle before the bad step:", env.data.joint("hinge").qpos[0])

        env.reset("tilted")  # also clears the fault
        env.apply_runtime_options({"timestep": 0.0002})
        print("with a smaller timestep:", env.step(10_000).reason)


if __name__ == "__main__":
    main()
