"""Models that between them use every part of the engine's structs."""

from __future__ import annotations

import mujoco

EMPTY = "<mujoco><worldbody/></mujoco>"

FALLING = """
<mujoco>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body name="ball" pos="0 0 .05">
      <freejoint/><geom name="ball" size=".1"/><site name="top"/>
    </body>
    <body name="box" pos="1 0 .05"><freejoint/><geom name="box" type="box" size=".1 .1 .1"/></body>
  </worldbody>
</mujoco>
"""

DUAL = """
<mujoco>
  <option solver="PGS" cone="elliptic" jacobian="sparse" noslip_iterations="3">
    <flag energy="enable" fwdinv="enable"/>
  </option>
  <worldbody>
    <geom type="plane" size="1 1 1" condim="6"/>
    <body pos="0 0 .05"><freejoint/><geom type="capsule" size=".1 .2" condim="6"/></body>
    <body pos="0 0 .35"><freejoint/><geom size=".1"/></body>
  </worldbody>
</mujoco>
"""

RICH = """
<mujoco model="rich">
  <compiler autolimits="true"/>
  <size nuserdata="3"/>
  <extension>
    <plugin plugin="mujoco.pid">
      <instance name="pid"><config key="kp" value="3"/></instance>
    </plugin>
  </extension>
  <default><geom rgba=".5 .6 .7 1"/></default>
  <asset>
    <texture name="grid" type="2d" builtin="checker" width="8" height="8"/>
    <material name="grid" texture="grid"/>
    <mesh name="tetra" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
    <hfield name="hills" nrow="3" ncol="4" size="1 1 1 .1"/>
  </asset>
  <custom>
    <numeric name="numbers" data="1 2 3"/>
    <text name="words" data="some words"/>
    <tuple name="both"><element objtype="body" objname="arm" prm="2"/></tuple>
  </custom>
  <visual><global fovy="50"/><map znear=".02"/></visual>
  <worldbody>
    <light name="sun" pos="0 0 3"/>
    <camera name="eye" pos="0 -2 1"/>
    <geom name="floor" type="plane" size="3 3 1" material="grid"/>
    <geom type="hfield" hfield="hills" pos="5 0 0"/>
    <body name="marker" mocap="true" pos="0 0 2">
      <geom size=".05" contype="0" conaffinity="0"/>
    </body>
    <body name="arm" pos="0 0 1" gravcomp="1">
      <joint name="shoulder" axis="0 1 0" range="-1 1" frictionloss=".1" damping=".2"/>
      <geom type="capsule" fromto="0 0 0 .5 0 0" size=".05" user="1 2"/>
      <site name="elbow" pos=".5 0 0"/>
      <body name="hand" pos=".5 0 0">
        <joint name="wrist" type="ball"/>
        <geom type="mesh" mesh="tetra" pos=".2 0 0"/>
        <site name="tip" pos=".3 0 0"/>
      </body>
    </body>
    <body name="other" pos="0 0 1.5"><freejoint/><geom size=".1"/><site name="there"/></body>
    <flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" pos="1 1 .02" radius=".03"
              mass="1" dim="2"><contact selfcollide="none"/><edge equality="true"/></flexcomp>
  </worldbody>
  <contact><exclude body1="arm" body2="other"/></contact>
  <tendon>
    <spatial name="rope" stiffness="3" limited="true" range="0 .2">
      <site site="elbow"/><site site="there"/>
    </spatial>
    <fixed name="sum"><joint joint="shoulder" coef="2"/></fixed>
  </tendon>
  <equality><weld body1="marker" body2="other"/><joint joint1="shoulder"/></equality>
  <actuator>
    <motor name="m" joint="shoulder"/>
    <intvelocity name="iv" joint="shoulder" kp="2" actrange="-1 1"/>
    <plugin name="p" joint="shoulder" plugin="mujoco.pid" instance="pid"/>
    <position tendon="sum" kp="1"/>
  </actuator>
  <sensor>
    <jointpos joint="shoulder"/><accelerometer site="tip"/><touch site="tip"/>
    <framequat objtype="site" objname="tip"/><tendonpos tendon="rope"/>
  </sensor>
  <keyframe><key name="home" time="1"/></keyframe>
</mujoco>
"""
SCENES = {"empty": EMPTY, "falling": FALLING, "dual": DUAL, "rich": RICH}


def stepped(name: str, steps: int = 5) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """A model of its own, and data after some steps."""
    model = mujoco.MjModel.from_xml_string(SCENES[name])
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, steps)
    return model, data
