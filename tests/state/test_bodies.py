"""Poses and velocities of bodies."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mjhost import InvalidArgumentError, MujocoEnv, UnknownNameError
from tests.state.zoo import ZOO, everything, object_velocity, turned

numbers = st.floats(-10, 10)
triples = st.tuples(numbers, numbers, numbers)
orientations = st.tuples(numbers, numbers, numbers, numbers).filter(
    lambda quat: max(map(abs, quat)) > 1e-3
)


def stirred(env, steps=5):
    """An env in which everything moves."""
    data = env.data
    data.qvel[:] = np.linspace(-1.0, 1.0, env.model.nv)
    env.step(steps)
    return env


def forwarded(env):
    """A copy of the data in which everything fits the present state."""
    copy = mujoco.MjData(env.model)
    mujoco.mj_copyData(copy, env.model, env.data)
    mujoco.mj_forward(env.model, copy)
    return copy


def test_every_body_reads_as_in_the_present_state_also_right_after_a_step(zoo):
    stirred(zoo)
    expected = forwarded(zoo)
    lagging = 0
    for name, state in zoo.body_states().items():
        body = zoo.body(name).id
        linear, angular = object_velocity(zoo.model, expected, body)
        assert state.pos.tolist() == expected.xpos[body].tolist()
        assert state.quat.tolist() == expected.xquat[body].tolist()
        np.testing.assert_allclose(state.linear, linear, atol=1e-12)
        np.testing.assert_allclose(state.angular, angular, atol=1e-12)
        lagging += state.pos.tolist() != zoo.data.xpos[body].tolist()
    assert lagging > 4  # or there was nothing to get wrong


def test_a_body_and_its_joint_agree_after_a_step(zoo):
    stirred(zoo)
    body, joint = zoo.body_state("floating"), zoo.joint_state("root")
    assert [*body.pos] == [*joint.qpos[:3]]
    np.testing.assert_allclose(body.quat, joint.qpos[3:], atol=1e-15)


def test_reading_changes_nothing(zoo):
    stirred(zoo)
    before = everything(zoo)
    zoo.body_states(frame="body")
    zoo.joint_states()
    zoo.sensors()
    zoo.ctrl()
    zoo.mocap_states()
    assert everything(zoo) == before


def test_setting_moves_nothing_else(zoo):
    stirred(zoo)
    before = zoo.joint_states()
    zoo.set_body_state("floating", pos=(4, 5, 6))
    after = zoo.joint_states()
    assert {
        name for name in after if after[name].qpos.tobytes() != before[name].qpos.tobytes()
    } == {"root"}
    assert after["root"].qpos[3:].tolist() == before["root"].qpos[3:].tolist()
    assert zoo.data.time == pytest.approx(0.01)


@pytest.mark.slow
@given(triples, orientations, triples, triples)
@settings(deadline=None, max_examples=40)
def test_what_was_set_is_read(pos, quat, linear, angular):
    with MujocoEnv(ZOO) as env:
        env.set_body_state("floating", pos=pos, quat=quat, linear=linear, angular=angular)
        state = env.body_state("floating")
        assert state.pos.tolist() == [*pos]
        np.testing.assert_allclose(state.quat, np.array(quat) / math.hypot(*quat), atol=1e-12)
        np.testing.assert_allclose(state.linear, linear, atol=1e-9)
        np.testing.assert_allclose(state.angular, angular, atol=1e-9)
        env.set_body_state(
            "floating", pos=state.pos, quat=state.quat, linear=state.linear, angular=state.angular
        )
        again = env.body_state("floating")
        assert (again.pos.tobytes(), again.quat.tobytes()) == (
            state.pos.tobytes(),
            state.quat.tobytes(),
        )
        np.testing.assert_allclose(again.angular, state.angular, atol=1e-9)


def test_velocities_along_the_bodys_axes_are_those_of_the_joint(zoo):
    quat = turned((1, 2, 3), 0.7)
    zoo.set_body_state("floating", quat=quat, linear=(1, 2, 3), angular=(3, 2, 1), frame="body")
    state = zoo.body_state("floating", frame="body")
    np.testing.assert_allclose(state.linear, (1, 2, 3), atol=1e-12)
    np.testing.assert_allclose(state.angular, (3, 2, 1), atol=1e-12)
    assert zoo.joint("root").qvel[3:].tolist() == [3, 2, 1]
    assert state.frame == "body"


def test_a_pose_stops_the_body_by_default_and_keeps_its_motion_in_the_world_on_request(zoo):
    zoo.set_body_state("floating", linear=(1, 2, 3), angular=(0, 0, 2))
    zoo.set_body_state("floating", quat=turned((1, 0, 0), 1.0), reset_velocity=False)
    kept = zoo.body_state("floating")
    np.testing.assert_allclose(kept.linear, (1, 2, 3), atol=1e-12)
    np.testing.assert_allclose(kept.angular, (0, 0, 2), atol=1e-12)
    zoo.set_body_state("floating", pos=(0, 0, 0), angular=(1, 0, 0))
    stopped = zoo.body_state("floating")
    assert not stopped.linear.any()
    np.testing.assert_allclose(stopped.angular, (1, 0, 0), atol=1e-12)


def test_one_velocity_alone_leaves_the_other(zoo):
    zoo.set_body_state("floating", linear=(1, 2, 3), angular=(0, 0, 2))
    zoo.set_body_state("floating", linear=(0, 0, 1))
    state = zoo.body_state("floating")
    assert (state.linear.tolist(), state.angular.tolist()) == ([0, 0, 1], [0, 0, 2])


def test_controls_are_not_touched(zoo):
    zoo.set_ctrl({"thigh": 0.5})
    zoo.set_body_state("floating", pos=(1, 1, 1))
    assert zoo.actuator("thigh").ctrl == 0.5


def test_a_mocap_body_is_put_by_its_mocap_pose(zoo):
    zoo.set_body_state("target", pos=(1, 2, 3), quat=(0, 0, 0, 2))
    assert zoo.mocap("target").pos.tolist() == [1, 2, 3]
    assert zoo.mocap("target").quat.tolist() == [0, 0, 0, 1]
    with pytest.raises(InvalidArgumentError, match="has no velocity"):
        zoo.set_body_state("target", pos=(0, 0, 0), linear=(1, 0, 0))
    assert zoo.mocap("target").pos.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("world", "it is the world"),
        ("static", "fixed to the world; make it a mocap body or give it a free joint"),
        ("on static", "fixed to the world"),
        ("elbow", "hangs on 'knee'; use set_joint_state"),
        ("pair", "hangs on 'pan', '#5'; use set_joint_state"),
        ("tip", "fixed to body 'slider'; move that"),
        ("flag", "fixed to body 'target'; move that"),
    ],
)
def test_a_body_that_something_else_holds_is_refused_with_the_way_out(zoo, name, reason):
    before = everything(zoo)
    with pytest.raises(InvalidArgumentError, match=reason):
        zoo.set_body_state(name, pos=(7, 7, 7))
    assert everything(zoo) == before


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"pos": (0, math.nan, 0)}, r"pos of body 'floating'\[1\] must be finite"),
        ({"pos": (0, 0)}, "pos of body 'floating' must be 3 numbers"),
        ({"pos": "000"}, "must be 3 numbers, got str"),
        ({"pos": (1, 1, 1), "quat": (0, 0, 0, 0)}, "quat of body 'floating' must be an orient"),
        ({"pos": (1, 1, 1), "quat": (math.nan, 0, 0, 0)}, "must be finite"),
        ({"pos": (1, 1, 1), "linear": (0, 0, 1e11)}, "linear velocity of body 'floating'"),
        ({"pos": (1, 1, 1), "angular": True}, "angular velocity of body 'floating'"),
        ({"pos": (1, 1, 1), "frame": "local"}, "frame must be 'world' or 'body'"),
        ({}, "nothing to set was given"),
    ],
    ids=str,
)
def test_what_is_no_state_is_refused_and_nothing_changes(zoo, arguments, complaint):
    before = everything(zoo)
    with pytest.raises(InvalidArgumentError, match=complaint):
        zoo.set_body_state("floating", **arguments)
    assert everything(zoo) == before


def test_an_unknown_body_is_answered_with_the_near_ones(zoo):
    for ask in (zoo.body_state, zoo.body, lambda name: zoo.set_body_state(name, pos=(0, 0, 0))):
        with pytest.raises(UnknownNameError, match="did you mean 'elbow'"):
            ask("elbo")


def test_a_sleeping_body_wakes_where_it_is_put():
    xml = """
    <mujoco><option><flag sleep="enable"/></option><worldbody>
      <geom type="plane" size="5 5 .1"/>
      <body name="box" pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
      <body name="tall" pos="2 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
    </worldbody></mujoco>"""
    with MujocoEnv(xml) as env:
        env.step(2000)
        assert env.data.ntree_awake == 0
        resting = env.body_state("tall")
        np.testing.assert_allclose(env.body_state("box").pos, (0, 0, 0.1), atol=1e-3)
        env.set_body_state("box", pos=(0, 1, 2))
        assert env.body_state("box").pos.tolist() == [0, 1, 2]
        assert env.body_state("tall") == resting
        env.step(100)
        assert env.body_state("box").pos[2] < 1.9
        np.testing.assert_allclose(env.body_state("tall").pos, resting.pos)


def test_a_body_that_the_engine_holds_with_an_odd_quaternion_can_be_set(zoo):
    zoo.data.qpos[3:7] = 0.0  # the identity, for the engine
    zoo.set_body_state("floating", angular=(1, 2, 3))
    assert zoo.joint("root").qvel[3:].tolist() == [1, 2, 3]
