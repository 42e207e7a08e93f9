"""The plugin for mocap bodies: targets, speeds, frames, checkpoints."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mjhost import MujocoEnv
from mjhost.bundled.mocap import Mocap
from mjhost.errors import InvalidArgumentError, UnknownNameError
from mjhost.plugins import Plugin
from mjhost.streams.records import PoseCommand

DT = 0.01
MODEL = f"""
<mujoco>
  <option timestep="{DT}"/>
  <worldbody>
    <body name="hand one" mocap="true" pos="1 2 3"/>
    <body name="other" mocap="true"/>
    <body name="table" pos="1 0 0" euler="0 0 90"><geom size=".1"/></body>
  </worldbody>
</mujoco>
"""


def make(**config):
    return MujocoEnv(MODEL, plugins=[Mocap(**config)])


def pose(env, body="other"):
    state = env.mocap(body)
    return [*state.pos, *state.quat]


def to(position, orientation=(1.0, 0.0, 0.0, 0.0), frame="world"):
    return PoseCommand(position=position, orientation=orientation, frame=frame)


def test_a_command_puts_the_body_there_at_once_also_while_paused():
    with make() as env:
        env.send("mocap/other", to((1.0, 2.0, 3.0), (0.0, 2.0, 0.0, 0.0)))
        assert pose(env) == [1, 2, 3, 0, 1, 0, 0]
        env.step(3)
        assert pose(env) == [1, 2, 3, 0, 1, 0, 0]


def test_every_mocap_body_has_a_stream_and_an_inlet_of_its_name():
    with make() as env:
        found = [(info.name, info.takes) for info in env.streams.streams()]
    assert found == [
        *(("mocap/hand_one", False), ("mocap/other", False)),
        *(("mocap/hand_one", True), ("mocap/other", True)),
    ]
    with make(bodies=["other"]) as env:
        assert {info.name for info in env.streams.streams()} == {"mocap/other"}


def test_poses_are_published_after_each_step():
    with make() as env, env.streams.subscribe("mocap/hand_one") as samples:
        env.step(2)
        first, second = samples.drain()
        assert first.record.child == "hand one"
        assert list(first.record.position) == [1, 2, 3]
        assert second.stamp.sim_time == pytest.approx(2 * DT)


def test_a_pose_in_a_frame_is_one_of_the_world():
    with make() as env:
        env.forward()
        env.send("mocap/other", to((1.0, 0.0, 0.0), frame="table"))
        half = math.sqrt(0.5)
        np.testing.assert_allclose(pose(env), [1, 1, 0, half, 0, 0, half], atol=1e-12)


def test_the_speeds_bound_the_way_and_the_target_is_reached_exactly():
    with make(max_speed=1.0, max_turn=math.pi) as env:
        env.send("mocap/other", to((0.0, 0.0, 0.025), (0.0, 0.0, 0.0, 1.0)))
        heights, angles = [], []
        for _ in range(101):
            env.step()
            *_, z, w, _, _, _ = pose(env)
            heights.append(z)
            angles.append(2 * math.acos(min(1.0, w)))
    np.testing.assert_allclose(heights[:4], [0.01, 0.02, 0.025, 0.025], atol=1e-15)
    np.testing.assert_allclose(angles[:3], np.pi * DT * np.arange(1, 4), atol=1e-7)
    assert (heights[-1], angles[-1]) == (0.025, math.pi)


def test_a_reached_target_is_forgotten_so_that_others_may_move_the_body():
    with make(max_speed=1.0) as env:
        env.send("mocap/other", to((0.005, 0.0, 0.0)))
        env.step()
        env.set_mocap("other", pos=(5.0, 5.0, 5.0))
        env.step(2)
        assert pose(env)[:3] == [5, 5, 5]


@pytest.mark.parametrize("hook", ["last_stage", "post_step"])
def test_a_step_that_is_undone_takes_its_part_of_the_way_again(hook):
    class Fails(Plugin):
        failing = True

    def fail(self, model, data):
        if Fails.failing:
            raise ArithmeticError("once")

    setattr(Fails, hook, fail)

    with MujocoEnv(MODEL, plugins=[Mocap(max_speed=1.0), Fails]) as env:
        env.send("mocap/other", to((0.005, 0.0, 0.0)))
        with pytest.raises(ArithmeticError):
            env.step()
        assert pose(env)[:3] == [0, 0, 0]
        Fails.failing = False
        env.clear_fault()
        env.step()
        assert pose(env)[:3] == [0.005, 0, 0]


def test_reset_forgets_targets_and_a_checkpoint_or_reload_goes_on_with_them():
    with make(max_speed=1.0) as env:
        env.send("mocap/other", to((1.0, 0.0, 0.0)))
        env.step(5)
        checkpoint = env.checkpoint()
        assert checkpoint.exact
        env.step(5)
        expected = pose(env)
        env.restore(checkpoint)
        env.step(5)
        assert pose(env) == expected
        env.reload_plugins()
        env.step(5)
        assert pose(env)[0] == pytest.approx(0.15)
        env.reset()
        env.step(5)
        assert pose(env)[:3] == [0, 0, 0]


@pytest.mark.parametrize(
    ("command", "error", "told"),
    [
        (to((math.nan, 0, 0)), InvalidArgumentError, r"position of 'other'\[0\] must be finite"),
        (to((0, 0)), InvalidArgumentError, "position of 'other' must be 3 numbers"),
        (to((0, 0, 0), (0, 0, 0, 0)), InvalidArgumentError, "must be an orientation"),
        (to((0, 0, 0), frame="tabel"), UnknownNameError, "'tabel'; did you mean 'table'"),
    ],
)
def test_a_pose_that_cannot_be_is_refused_and_nothing_moves(command, error, told):
    with make() as env:
        before = pose(env)
        with pytest.raises(error, match=told):
            env.send("mocap/other", command)
        env.step()
        assert pose(env) == before
        assert env.plugin_diagnostics.total == 0


def test_a_model_without_mocap_bodies_and_unknown_ones_are_told_at_load():
    with MujocoEnv("<mujoco/>", plugins=[Mocap]) as env:
        assert "no mocap body" in env.plugin_load_report.failures[0].error
    with make(bodies=["othr"]) as env:
        assert "did you mean 'other'" in env.plugin_load_report.failures[0].error
    with pytest.raises(Exception, match="max_speed"):
        Mocap(max_speed=0.0)
