"""Models with one of everything, for the tests of named state."""

from __future__ import annotations

import mujoco
import numpy as np

ZOO = """
<mujoco>
  <compiler angle="radian"/>
  <option gravity="0 0 0" timestep="0.002"/>
  <worldbody>
    <body name="static" pos="1 1 1"><geom name="sphere" size=".05"/>
      <body name="on static" pos="0 0 1"><geom size=".05"/></body>
    </body>
    <body name="floating" pos="0 0 3">
      <freejoint name="root"/><geom name="crate" type="box" size=".1 .2 .3" mass="2"/>
      <body name="shoulder" pos=".5 0 0">
        <joint name="swing" type="ball"/><geom size=".05" mass=".5" pos=".2 0 0"/>
        <body name="elbow" pos=".4 0 0">
          <joint name="knee" axis="0 1 0" range="-1 2"/><geom size=".05" mass=".3"/>
          <body name="slider" pos=".3 0 0">
            <joint name="rail" type="slide" axis="1 0 0"/><geom size=".04" mass=".2"/>
            <body name="tip" pos=".1 0 0"><geom size=".02"/><site name="end"/></body>
          </body>
        </body>
      </body>
    </body>
    <body name="pair" pos="3 0 0">
      <joint name="pan" axis="0 0 1"/><joint axis="0 1 0"/><geom size=".1" mass="1"/>
    </body>
    <body name="target" mocap="true" pos="0 0 5"><geom size=".05" contype="0" conaffinity="0"/>
      <body name="flag" pos=".5 0 0"><geom size=".01" contype="0" conaffinity="0"/></body>
    </body>
  </worldbody>
  <equality><joint name="coupling" joint1="pan" polycoef="0 1 0 0 0" active="false"/></equality>
  <actuator>
    <motor name="thigh" joint="knee" ctrlrange="-1 1"/>
    <orientation name="gimbal" joint="swing" kp="1"/>
    <motor joint="pan"/>
    <position name="push" joint="rail" kp="2"/>
  </actuator>
  <sensor>
    <jointpos name="knee angle" joint="knee"/>
    <jointpos name="rail length" joint="rail"/>
    <accelerometer name="imu" site="end"/>
    <framequat name="attitude" objtype="body" objname="floating"/>
    <clock/>
  </sensor>
</mujoco>
"""


def integration_state(model: mujoco.MjModel, data: mujoco.MjData) -> bytes:
    """Every byte of what the next step depends on."""
    spec = int(mujoco.mjtState.mjSTATE_INTEGRATION)
    vector = np.empty(mujoco.mj_stateSize(model, spec))
    mujoco.mj_getState(model, data, vector, spec)
    return vector.tobytes()


def everything(env) -> tuple[bytes, bytes, bytes, bytes]:
    """The state and what derives from it, as bytes."""
    data = env.data
    derived = (data.xpos, data.xquat, data.sensordata)
    return integration_state(env.model, data), *(array.tobytes() for array in derived)


def turned(axis: tuple[float, float, float], angle: float) -> np.ndarray:
    """The quaternion of a rotation by ``angle`` about ``axis``."""
    quat = np.zeros(4)
    mujoco.mju_axisAngle2Quat(quat, np.asarray(axis, float), angle)
    return quat


def object_velocity(model, data, body) -> tuple[np.ndarray, np.ndarray]:
    """Linear and angular velocity of a body in the world, by the engine's own function."""
    found = np.zeros(6)
    kind = mujoco.mjtObj.mjOBJ_XBODY
    mujoco.mj_objectVelocity(model, data, kind, body, found, 0)
    return found[3:], found[:3]
