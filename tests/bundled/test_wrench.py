"""The plugin for wrenches: where, how long, beside whom."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mjhost import MujocoEnv
from mjhost.bundled.wrench import Wrench
from mjhost.errors import InvalidArgumentError, UnknownNameError
from mjhost.plugins import Plugin
from mjhost.streams.records import WrenchCommand

DT = 0.01
MODEL = f"""
<mujoco>
  <option timestep="{DT}" gravity="0 0 0"/>
  <worldbody>
    <body name="crate"><freejoint/>
      <inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/><geom size=".1"/>
      <site name="up" euler="0 -90 0"/>
    </body>
    <body name="stone" pos="5 0 0"><freejoint/>
      <inertial pos=".5 0 0" mass="1" diaginertia="1 1 1"/><geom size=".1"/>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.fixture
def env():
    with MujocoEnv(MODEL, plugins=[Wrench]) as made:
        made.forward()
        yield made


def push(**fields):
    return WrenchCommand(**fields)


def speed_of(env, joint=0):
    return env.data.qvel[6 * joint : 6 * joint + 6].copy()


def test_a_force_accelerates_its_body_until_it_ends(env):
    env.send("wrench/crate", push(force=(4.0, 0.0, 0.0), duration=0.05))
    env.step(20)
    np.testing.assert_allclose(speed_of(env), [4.0 / 2.0 * 0.05, 0, 0, 0, 0, 0], atol=1e-12)
    assert not env.data.xfrc_applied.any()


def test_a_duration_counts_whole_steps_and_zero_is_none(env):
    env.send("wrench/crate", push(force=(2.0, 0.0, 0.0), duration=3 * DT))
    env.step(10)
    assert speed_of(env)[0] == pytest.approx(3 * DT)
    env.send("wrench/crate", push(force=(2.0, 0.0, 0.0), duration=0.0))
    env.step(10)
    assert speed_of(env)[0] == pytest.approx(3 * DT)


def test_a_wrench_without_a_duration_lasts_until_another_command_replaces_it(env):
    env.send("wrench/crate", push(force=(2.0, 0.0, 0.0)))
    env.step(50)
    assert speed_of(env)[0] == pytest.approx(50 * DT)
    env.send("wrench/crate", push())
    env.step(50)
    assert speed_of(env)[0] == pytest.approx(50 * DT)


def test_force_and_torque_are_along_the_axes_of_the_frame(env):
    env.send("wrench/crate", push(force=(2.0, 0.0, 0.0), frame="up", duration=DT))
    env.step()
    np.testing.assert_allclose(speed_of(env)[:3], [0, 0, DT], atol=1e-12)
    env.reset()
    env.forward()
    env.send("wrench/crate", push(torque=(1.0, 0.0, 0.0), frame="up", duration=DT))
    env.step()
    np.testing.assert_allclose(speed_of(env)[3:], [0, 0, DT], atol=1e-12)


def test_a_force_at_a_point_turns_the_body_about_its_centre_of_mass(env):
    env.send("wrench/crate", push(force=(0.0, 1.0, 0.0), point=(2.0, 0.0, 0.0), duration=DT))
    env.send("wrench/stone", push(force=(0.0, 1.0, 0.0), point=(0.5, 0.0, 0.0), duration=DT))
    env.step()
    np.testing.assert_allclose(speed_of(env)[3:], [0, 0, 2.0 * DT], atol=1e-12)
    np.testing.assert_allclose(speed_of(env, 1)[3:], 0.0, atol=1e-12)


def test_what_others_apply_acts_too_and_is_there_afterwards(env):
    with env.access() as (_, data):
        data.xfrc_applied[env.model.body("crate").id, 0] = 6.0
    env.send("wrench/crate", push(force=(2.0, 0.0, 0.0)))
    env.step()
    assert speed_of(env)[0] == pytest.approx(8.0 / 2.0 * DT)
    assert env.data.xfrc_applied[env.model.body("crate").id, 0] == 6.0


def test_what_acts_is_published_in_the_axes_of_the_world(env):
    with env.streams.subscribe("wrench/crate") as samples:
        env.send(
            "wrench/crate",
            push(force=(0.0, 1.0, 0.0), point=(2.0, 0.0, 0.0), duration=2 * DT),
        )
        env.step(5)
        told = samples.drain()
    assert [sample.stamp.step for sample in told] == [0, 1]
    np.testing.assert_allclose(told[0].record.torque, [0, 0, 2.0], atol=1e-12)


def test_a_step_that_is_undone_takes_its_wrench_again():
    class Fails(Plugin):
        failing = True

        def post_step(self, model, data):
            if Fails.failing:
                raise ArithmeticError("once")

    with MujocoEnv(MODEL, plugins=[Wrench, Fails]) as env:
        env.forward()
        env.send("wrench/crate", push(force=(2.0, 0.0, 0.0), duration=DT))
        with pytest.raises(ArithmeticError):
            env.step()
        assert not env.data.xfrc_applied.any()
        Fails.failing = False
        env.clear_fault()
        env.step(5)
        assert speed_of(env)[0] == pytest.approx(DT)


def test_a_checkpoint_and_a_reload_go_on_with_it_and_a_reset_ends_it(env):
    env.send("wrench/crate", push(force=(2.0, 0.0, 0.0), duration=10 * DT))
    env.step(5)
    checkpoint = env.checkpoint()
    env.step(20)
    expected = speed_of(env)
    env.restore(checkpoint)
    env.step(3)
    env.reload_plugins()
    env.step(17)
    np.testing.assert_array_equal(speed_of(env), expected)
    env.send("wrench/crate", push(force=(2.0, 0.0, 0.0)))
    env.reset()
    env.step(5)
    assert not speed_of(env).any()


@pytest.mark.parametrize(
    ("command", "error", "told"),
    [
        (push(force=(math.inf, 0, 0)), InvalidArgumentError, r"force on 'crate'\[0\] must be"),
        (push(force=(0, 0)), InvalidArgumentError, "force on 'crate' must be 3 numbers"),
        (push(torque="abc"), InvalidArgumentError, "torque on 'crate' must be 3 numbers"),
        (push(point=(0, math.nan, 0)), InvalidArgumentError, "point of 'crate'"),
        (push(duration=-1.0), InvalidArgumentError, "must be at least 0 s, got -1.0"),
        (push(duration=math.nan), InvalidArgumentError, "duration on 'crate' must be finite"),
        (push(frame="crat"), UnknownNameError, "did you mean 'crate'"),
    ],
)
def test_a_wrench_that_cannot_be_is_refused_and_the_one_that_acts_goes_on(
    env, command, error, told
):
    env.send("wrench/crate", push(force=(2.0, 0.0, 0.0)))
    with pytest.raises(error, match=told):
        env.send("wrench/crate", command)
    env.step()
    assert speed_of(env)[0] == pytest.approx(DT)
    assert env.plugin_diagnostics.total == 0


def test_the_world_and_unknown_bodies_are_told_at_load():
    for body, told in (("world", "nothing can push the world"), ("crat", "did you mean 'crate'")):
        with MujocoEnv(MODEL, plugins=[Wrench(bodies=[body])]) as env:
            assert told in env.plugin_load_report.failures[0].error
            assert env.streams.streams() == ()
