"""The matrix of models that a checkpoint has to be exact for, and how they are driven."""

from __future__ import annotations

import hashlib
import itertools

import mujoco
import numpy as np

MUJOCO_4 = int(mujoco.__version__.split(".")[0]) >= 4

SCENE = """
<mujoco>
  {size}
  <option timestep="0.004" {option}><flag {flag}/></option>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <body name="post" pos="0 0 1">
      <joint name="hinge" axis="0 1 0" damping=".05" {hinge}/>
      <geom name="arm" type="capsule" size=".04" fromto="0 0 0 .5 0 0"/>
      <body name="tip" pos=".5 0 0">
        <joint name="slide" type="slide" axis="1 0 0" range="-.2 .2" limited="true"/>
        <geom size=".06"/><site name="end"/>
      </body>
    </body>
    <body name="box0" pos="1 0 .12"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
    <body name="box1" pos="1.02 .01 .35"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
    <body name="ball" pos="-1 0 1">
      <joint name="ball" type="ball"/><geom size=".1" pos=".2 0 0"/>
    </body>
    <body name="target" mocap="true" pos=".6 0 1">
      <geom size=".02" contype="0" conaffinity="0"/>
    </body>
    {world}
  </worldbody>
  {more}
  <sensor><jointpos joint="hinge"/><accelerometer site="end"/>{sensor}</sensor>
</mujoco>
"""

TENDON = """
  <tendon><fixed name="rope">
    <joint joint="hinge" coef=".3"/><joint joint="slide" coef="1"/>
  </fixed></tendon>
  <actuator>
    <muscle name="muscle" tendon="rope" lengthrange="-.5 .5"/>
    <intvelocity name="integrated" joint="hinge" kp="5" actrange="-1 1"/>
    <general name="filtered" joint="slide" dyntype="filter" dynprm=".1" gainprm="3"/>
  </actuator>"""

DELAYED = """
  <actuator>
    <position name="late" joint="hinge" kp="8" delay="0.02" nsample="12"/>
    <motor name="now" joint="slide"/>
  </actuator>"""

EQUALITY = """
  <equality>
    <weld name="held" body1="target" body2="tip" solref=".05 1"/>
    <joint name="coupled" joint1="hinge" joint2="slide" active="false"/>
  </equality>
  <actuator><motor joint="hinge"/><motor joint="slide"/></actuator>"""

MOTORS = '<actuator><motor joint="hinge"/><motor joint="slide"/></actuator>'

CLOTH = """
    <flexcomp name="cloth" type="grid" count="5 5 1" spacing=".08 .08 .08" pos="2 0 .3" dim="2"
              radius=".01" mass=".5">
      <edge equality="true"/><contact selfcollide="none"/>
    </flexcomp>"""

PID = """
  <extension><plugin plugin="mujoco.pid"><instance name="pid">
    <config key="kp" value="4"/><config key="ki" value="2"/><config key="kd" value=".1"/>
    <config key="slewmax" value="3"/><config key="imax" value="1"/>
  </instance></plugin></extension>
  <actuator>
    <plugin joint="hinge" plugin="mujoco.pid" instance="pid" actdim="2"/><motor joint="slide"/>
  </actuator>"""


def scene(option="", flag="", more=MOTORS, *, world="", hinge="", sensor="", size=""):
    """One model of the matrix, as MJCF."""
    return SCENE.format(
        option=option,
        flag=flag or 'energy="disable"',
        more=more,
        world=world,
        hinge=hinge,
        sensor=sensor,
        size=size,
    )


INTEGRATORS = ("Euler", "RK4", "implicit", "implicitfast", "discrete")
SOLVERS = ("PGS", "CG", "Newton")


def _matrix():
    for integrator, solver in itertools.product(INTEGRATORS, SOLVERS):
        if integrator != "discrete" or _compiles(
            scene(f'integrator="{integrator}" solver="{solver}"')
        ):
            yield f"{integrator}-{solver}", scene(f'integrator="{integrator}" solver="{solver}"')
    yield "elliptic", scene('cone="elliptic" noslip_iterations="3" impratio="10"')
    yield "cold", scene(flag='warmstart="disable"')
    yield "one iteration", scene('iterations="1"')
    yield "sparse", scene('jacobian="sparse"')
    yield "tendon", scene(more=TENDON)
    yield "delay", scene(more=DELAYED, sensor='<jointvel joint="hinge" delay=".02" nsample="8"/>')
    yield "equality", scene(more=EQUALITY)
    yield "userdata", scene(size='<size nuserdata="3"/>')
    yield "cloth", scene(world=CLOTH)
    yield "pid", scene(more=PID)


def _compiles(xml: str) -> bool:
    try:
        mujoco.MjModel.from_xml_string(xml)
    except ValueError:
        return False
    return True


MATRIX = dict(_matrix())


def drive(env, start: int, steps: int) -> list[bytes]:
    """Steps with inputs that depend on the step alone; what follows each, as bytes."""
    trace = []
    for step in range(start, start + steps):
        data, model = env.data, env.model
        data.ctrl[:] = np.sin(0.05 * step + np.arange(model.nu))
        if model.nmocap:
            data.mocap_pos[0, 2] = 1 + 0.1 * np.sin(0.02 * step)
        if model.neq > 1 and step % 60 == 30:
            data.eq_active[1] ^= 1
        if model.nuserdata:
            data.userdata[0] = step
        env.step()
        trace.append(
            b"".join(
                getattr(data, name).tobytes()
                for name in ("qpos", "qvel", "act", "sensordata", "qacc", "ctrl")
            )
        )
    return trace


def digest(trace: list[bytes]) -> str:
    """One word for a trace, to be compared across processes."""
    return hashlib.sha256(b"".join(trace)).hexdigest()
