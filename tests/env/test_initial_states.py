"""Initial joint states: they hold at load, reset and reload, or are refused before any of it."""

from __future__ import annotations

import pytest

from mjhost import MujocoEnv
from mjhost.errors import InvalidArgumentError, UnknownNameError
from tests.env.models import state_of

MODEL = """
<mujoco>
  <worldbody>
    <body name="arm" pos="0 0 1">
      <joint name="shoulder" type="ball"/><geom size=".05" pos=".2 0 0"/>
      <body name="forearm" pos=".4 0 0">
        <joint name="elbow" axis="0 1 0"/><geom size=".05"/>
      </body>
    </body>
    <body name="box" pos="2 0 1"><freejoint name="box"/><geom size=".1"/></body>
  </worldbody>
  <keyframe><key name="up" qpos="1 0 0 0 .9 2 0 1 1 0 0 0"/></keyframe>
</mujoco>
"""
START = {"elbow": {"qpos": 0.3, "qvel": -2}, "box": [0, 0, 5, 2, 0, 0, 0]}


def at_start(env):
    return env.joint("elbow").qpos == 0.3 and env.joint("box").qpos.tolist() == [
        0,
        0,
        5,
        1,
        0,
        0,
        0,
    ]


def test_they_hold_at_load_reset_and_reload():
    with MujocoEnv(MODEL, initial_state=START) as env:
        assert at_start(env)
        assert env.joint("elbow").qvel == -2
        assert env.joint("shoulder").qpos.tolist() == [1, 0, 0, 0]
        assert env.body_state("box").pos.tolist() == [0, 0, 5]
        for again in (env.reset, env.reload):
            env.step(20)
            assert not at_start(env)
            again()
            assert at_start(env)


def test_a_keyframe_is_the_whole_state():
    with MujocoEnv(MODEL, initial_state=START) as env:
        env.reset("up")
        assert env.joint("elbow").qpos == 0.9
        env.reset()
        assert at_start(env)


def test_new_ones_replace_those_in_force():
    with MujocoEnv(MODEL, initial_state=START) as env:
        env.reset(initial_state={"elbow": 1.0})
        assert env.joint("elbow").qpos == 1.0
        assert env.joint("box").qpos.tolist()[2] == 1
        env.reload(initial_state={"elbow": -1.0})
        env.step(5)
        env.reset()
        assert env.joint("elbow").qpos == -1.0
        env.reset(initial_state={})
        assert env.joint("elbow").qpos == 0.0


def test_with_kept_state_only_what_is_new_begins_there():
    with MujocoEnv(MODEL, initial_state={"elbow": 0.3}) as env:
        env.step(20)
        moved = env.joint("elbow").qpos
        env.reload(keep_state=True)
        assert env.joint("elbow").qpos == moved
        env.reload(keep_state=True, initial_state={"elbow": 0.1})
        assert env.joint("elbow").qpos == 0.1


def test_one_of_a_joint_that_an_edit_removes_ends_with_it():
    with MujocoEnv(MODEL, initial_state=START) as env:
        edit = env.edit()
        with edit as spec:
            spec.delete(spec.key("up"))
            spec.delete(spec.body("box"))
        assert any("box" in problem for problem in edit.report.initial_state_problems)
        env.step(5)
        env.reset()
        assert env.joint("elbow").qpos == 0.3


@pytest.mark.parametrize(
    ("states", "error", "match"),
    [
        ({"elbw": 1}, UnknownNameError, "did you mean 'elbow'"),
        ({"elbow": [1, 2]}, InvalidArgumentError, "elbow"),
        ({"box": [0] * 7}, InvalidArgumentError, "box"),
        ({"shoulder": [1, 0, 0]}, InvalidArgumentError, "shoulder"),
        ({"elbow": float("nan")}, InvalidArgumentError, "elbow"),
    ],
)
def test_one_that_cannot_be_is_found_before_anything_is_touched(states, error, match):
    with MujocoEnv(MODEL, initial_state=START) as env:
        env.step(5)
        before = state_of(env.model, env.data), env.generations, env.info.step_count
        for act in (
            lambda: env.reset(initial_state=states),
            lambda: env.reload(initial_state=states),
            lambda: env.load(MODEL, initial_state=states),
        ):
            with pytest.raises(error, match=match):
                act()
            assert (state_of(env.model, env.data), env.generations, env.info.step_count) == before
        env.reset()
        assert at_start(env)
    with pytest.raises(error, match=match):
        MujocoEnv(MODEL, initial_state=states)


def test_it_may_be_left_out_with_a_warning():
    with MujocoEnv() as env:
        report = env.load(MODEL, initial_state={"elbw": 1, "elbow": 0.3}, on_error="warn")
        assert env.joint("elbow").qpos == 0.3
        assert any("elbw" in problem for problem in report.initial_state_problems)
    with pytest.raises(InvalidArgumentError, match="maps joint names"):
        MujocoEnv(MODEL, initial_state=[1, 2])
