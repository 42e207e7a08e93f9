"""Joints, frames and free bodies, of the present state."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest

from mjhost import MujocoEnv, models
from mjhost.bundled.robot_state import RobotState
from mjhost.errors import PluginConfigError

DT = 0.01
MODEL = f"""
<mujoco>
  <option timestep="{DT}" gravity="0 0 0"/>
  <worldbody>
    <body name="post" pos="1 0 0" euler="0 0 90"><geom size=".1"/></body>
    <body name="base"><freejoint/>
      <geom type="box" size=".1 .1 .1" mass="1"/>
      <site name="imu" pos="0 0 .1"/>
      <site name="base"/>
      <site/>
      <camera name="eye" pos=".1 0 0"/>
      <body name="arm" pos="0 0 .2">
        <joint name="hinge" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass=".1"/>
        <body name="hand" pos=".3 0 0"><geom size=".03" mass=".1"/></body>
      </body>
    </body>
    <body name="target" mocap="true"/>
    <body name="ball" pos="0 5 0"><joint name="round" type="ball"/><geom size=".1"/></body>
  </worldbody>
  <actuator><motor name="motor" joint="hinge"/></actuator>
</mujoco>
"""


def make(**config):
    env = MujocoEnv(MODEL, plugins=[RobotState(**config)])
    assert env.plugin_load_report.ok, env.plugin_load_report.failures
    return env


def records(env, seconds, *streams):
    with env.streams.subscribe(*streams, maxsize=1_000) as samples:
        env.advance(seconds)
        return samples.drain()


def test_joints_are_those_of_the_present_state_with_the_effort_of_their_actuators():
    with make() as env:
        env.set_ctrl({"motor": 0.3})
        (*_, sample) = records(env, 0.05, "joint_states")
        record = sample.record
        assert record.names == ("hinge",)
        assert record.position[0] == env.joint("hinge").qpos
        assert record.velocity[0] == env.joint("hinge").qvel
        assert record.effort[0] == pytest.approx(0.3)
        assert sample.stamp.sim_time == env.data.time


def test_moving_frames_are_in_their_parents_and_of_the_present_state():
    with make() as env:
        env.set_joint_states({"hinge": math.pi / 2})
        env.set_body_state("base", pos=(0, 0, 1), linear=(1, 0, 0))
        (*_, sample) = records(env, 0.1, "tf")
        record = sample.record
        assert record.children == ("base", "arm", "target", "ball")
        assert record.parents == ("world", "base", "world", "world")
        half = math.sqrt(0.5)
        np.testing.assert_allclose(record.positions[0], [0.1, 0, 1], atol=1e-9)
        np.testing.assert_allclose(record.positions[1], [0, 0, 0.2], atol=1e-9)
        np.testing.assert_allclose(record.orientations[1], [half, 0, half, 0], atol=1e-9)


def test_frames_that_never_move_are_told_once_to_whoever_comes():
    with make() as env:
        env.step(5)
        (sample,) = env.streams.subscribe("tf_static").drain()
    record = sample.record
    found = dict(zip(record.children, record.parents, strict=True))
    assert found == {"post": "world", "hand": "arm", "imu": "base", "eye": "base"}
    at = record.children.index("post")
    half = math.sqrt(0.5)
    np.testing.assert_allclose(record.orientations[at], [half, 0, 0, half], atol=1e-12)


def test_all_frames_together_give_the_poses_of_the_engine():
    with MujocoEnv(models.path("humanoid"), plugins=[RobotState]) as env:
        samples = records(env, 0.2, "tf", "tf_static")
        by_stream = {sample.stream: sample.record for sample in samples}
        data = mujoco.MjData(env.model)
        data.qpos[:] = env.data.qpos
        mujoco.mj_kinematics(env.model, data)
        poses = {"world": (np.zeros(3), np.eye(3))}
        rows = [
            row
            for record in (by_stream["tf_static"], by_stream["tf"])
            for row in zip(
                record.parents, record.children, record.positions, record.orientations, strict=True
            )
        ]
        while rows:
            ready = [row for row in rows if row[0] in poses]
            assert ready, "a frame without a way to the world"
            for parent, child, position, quat in ready:
                origin, turn = poses[parent]
                matrix = np.empty(9)
                mujoco.mju_quat2Mat(matrix, quat)
                poses[child] = (origin + turn @ position, turn @ matrix.reshape(3, 3))
            rows = [row for row in rows if row[1] not in poses]
        for body in range(1, env.model.nbody):
            origin, turn = poses[env.model.body(body).name]
            np.testing.assert_allclose(origin, data.xpos[body], atol=1e-9)
            np.testing.assert_allclose(turn, data.xmat[body].reshape(3, 3), atol=1e-9)


def test_odometry_has_its_velocities_in_the_bodys_own_axes():
    with make() as env:
        half = math.sqrt(0.5)
        env.set_body_state("base", pos=(1, 2, 3), quat=(half, 0, 0, half), linear=(1, 0, 0))
        (*_, sample) = records(env, DT, "odom/base")
        record = sample.record
    assert (record.frame, record.child) == ("world", "base")
    np.testing.assert_allclose(record.position, [1 + DT, 2, 3], atol=1e-4)
    np.testing.assert_allclose(record.linear, [0, -1, 0], atol=1e-2)


def test_the_rate_is_kept_in_simulated_time_and_parts_can_be_left_out():
    with make(rate=20.0, frames=False, odometry=False) as env:
        assert [info.name for info in env.streams.streams()] == ["joint_states"]
        found = records(env, 0.5)
        assert [sample.stamp.step for sample in found] == [5 * n for n in range(1, 11)]
    with pytest.raises(PluginConfigError, match="rate"):
        RobotState(rate=0)


def test_after_a_reload_into_another_model_names_and_frames_are_new():
    other = MODEL.replace('name="hinge"', 'name="elbow"').replace('joint="hinge"', 'joint="elbow"')
    with make() as env, env.streams.subscribe("joint_states", "tf_static") as samples:
        env.advance(DT)
        env.reload(other)
        env.advance(DT)
        told = [(s.stream, s.record) for s in samples.drain()]
    assert [record.names for stream, record in told if stream == "joint_states"] == [
        ("hinge",),
        ("elbow",),
    ]
    assert sum(stream == "tf_static" for stream, _ in told) == 2


def test_a_model_without_anything_is_fine():
    with MujocoEnv("<mujoco/>", plugins=[RobotState]) as env:
        assert env.plugin_load_report.ok
        found = records(env, 0.02)
    assert {s.stream for s in found} == {"joint_states", "tf", "tf_static"}


def test_by_the_name_of_its_entry_point():
    with MujocoEnv(MODEL, plugins=["robot_state"]) as env:
        assert env.plugin_load_report.ok, env.plugin_load_report.failures
