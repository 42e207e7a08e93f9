"""Small models and the plain engine loop that the env is compared with."""

from __future__ import annotations

import mujoco
import numpy as np

PENDULUM = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <body><joint name="hinge" axis="0 1 0"/><geom size=".05" pos=".3 0 0" mass="1"/></body>
  </worldbody>
  <actuator><motor name="motor" joint="hinge"/></actuator>
  <keyframe>
    <key name="up" qpos="3.1" ctrl="0.5"/>
    <key name="side" qpos="1.5"/>
  </keyframe>
</mujoco>
"""

BALL = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body name="ball" pos="0 0 1"><freejoint/><geom size=".1" mass="1"/></body>
    <body name="target" mocap="true" pos="1 0 1"/>
  </worldbody>
</mujoco>
"""

# A pendulum whose only joint is pushed past every bound within a few steps of `blow_up`.
EXPLOSIVE = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <body><joint name="slide" type="slide"/><geom size=".1" mass="1"/></body>
  </worldbody>
  <actuator><motor name="motor" joint="slide"/></actuator>
</mujoco>
"""


def state_of(model: mujoco.MjModel, data: mujoco.MjData) -> bytes:
    """The whole integration state and what is derived from it, as bytes."""
    spec = int(mujoco.mjtState.mjSTATE_INTEGRATION)
    state = np.empty(mujoco.mj_stateSize(model, spec))
    mujoco.mj_getState(model, data, state, spec)
    return state.tobytes() + data.qacc.tobytes() + data.xpos.tobytes() + data.sensordata.tobytes()


def plain_loop(xml: str, steps: int) -> bytes:
    """State after ``steps`` of a plain ``mj_step`` loop from a fresh load."""
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    for _ in range(steps):
        mujoco.mj_step(model, data)
    return state_of(model, data)
