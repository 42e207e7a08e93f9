"""Public reports about setting and reading states by name; the case ids are in the docstrings."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mjhost import InvalidArgumentError, Plugin, UnknownNameError
from tests.env.models import state_of

HALF = math.sqrt(0.5)


def test_the_pose_that_was_set_is_the_pose_that_is_read(host_case):
    """PO-01."""
    env = host_case("PO-01")
    env.set_body_state("f", pos=(4, 5, 6))
    assert env.body_state("f").pos.tolist() == [4, 5, 6]
    assert env.data.xpos[env.body("f").id].tolist() == [4, 5, 6]
    assert env.data.time == 0.0
    env.step()
    assert env.body_state("f").pos.tolist() == [4, 5, 6]


def test_a_write_that_would_be_lost_is_not_offered(host_case):
    """PO-01: ``xpos`` is overwritten by the next kinematics; no copy of it can be written to."""
    env = host_case("PO-01")
    with pytest.raises(ValueError, match="read-only"):
        env.body_state("f").pos[0] = 7.0
    env.body("f").pos = (7, 7, 7)  # the body's own, which holds
    assert env.body_state("f").pos.tolist() == [7, 7, 7]


@pytest.mark.parametrize(
    ("name", "reason"),
    [("f", None), ("m", None), ("s", "fixed to the world"), ("h", "use set_joint_state")],
)
def test_a_pose_is_set_by_what_holds_the_body_or_refused_with_the_reason(host_case, name, reason):
    """PO-02."""
    env = host_case("PO-02")
    before = state_of(env.model, env.data)
    if reason is None:
        env.set_body_state(name, pos=(7, 7, 7))
        assert env.body_state(name).pos.tolist() == [7, 7, 7]
        return
    with pytest.raises(InvalidArgumentError, match=reason):
        env.set_body_state(name, pos=(7, 7, 7))
    assert state_of(env.model, env.data) == before


def test_a_mocap_body_is_addressed_by_its_name_and_others_are_refused(host_case):
    """PO-03."""
    env = host_case("PO-03")
    env.set_mocap("m", pos=(1, 2, 3))
    assert env.body("m").id == 3
    assert env.data.mocap_pos.tolist() == [[1, 2, 3]]
    assert env.body_state("m").pos.tolist() == [1, 2, 3]
    before = state_of(env.model, env.data)
    for name, complaint in (("f", "not a mocap body"), ("s", "not a mocap body"), ("nope", "no ")):
        with pytest.raises(UnknownNameError, match=complaint):
            env.set_mocap(name, pos=(1, 2, 3))
    assert state_of(env.model, env.data) == before


@pytest.mark.parametrize("name", ["f", "m"])
@pytest.mark.parametrize("quat", [(0, 0, 0, 0), (math.nan, 0, 0, 0), (1, 0, 0, math.inf)])
def test_a_quaternion_that_is_no_orientation_moves_nothing(host_case, name, quat):
    """PO-05."""
    env = host_case("PO-05")
    before = state_of(env.model, env.data)
    with pytest.raises(InvalidArgumentError, match=rf"quat of .*body '{name}'"):
        env.set_body_state(name, pos=(3, 3, 3), quat=quat)
    if name == "m":
        with pytest.raises(InvalidArgumentError, match="quat of mocap body 'm'"):
            env.set_mocap("m", pos=(3, 3, 3), quat=quat)
    assert state_of(env.model, env.data) == before


@pytest.mark.parametrize(
    ("given", "kept"), [((2, 0, 0, 0), [1, 0, 0, 0]), ((0, 0, 0, 3), [0, 0, 0, 1])]
)
def test_a_quaternion_of_any_length_is_made_of_unit_length(host_case, given, kept):
    """PO-05."""
    env = host_case("PO-05")
    for name in ("f", "m"):
        env.set_body_state(name, pos=(3, 3, 3), quat=given)
        assert env.body_state(name).quat.tolist() == kept
    env.step()
    assert env.body_state("f").quat.tolist() == kept
    assert env.fault is None


def test_a_twist_is_read_and_written_in_the_frame_that_is_named(host_case):
    """PO-10."""
    env = host_case("PO-10")
    env.set_joint_state("fj", (0, 0, 1, HALF, HALF, 0, 0), (1, 0, 0, 0, 1, 0))
    world, body = env.body_state("f"), env.body_state("f", frame="body")
    np.testing.assert_allclose(world.linear, (1, 0, 0), atol=1e-15)
    np.testing.assert_allclose(world.angular, (0, 0, 1), atol=1e-15)
    np.testing.assert_allclose(body.linear, (1, 0, 0), atol=1e-15)
    np.testing.assert_allclose(body.angular, (0, 1, 0), atol=1e-15)
    env.set_body_state("f", linear=(0, 0, 0), angular=(0, 0, 1))
    np.testing.assert_allclose(env.joint("fj").qvel, (0, 0, 0, 0, 1, 0), atol=1e-15)
    env.step(10)
    np.testing.assert_allclose(env.body_state("f").angular, (0, 0, 1), atol=1e-12)


def test_children_of_a_mocap_body_are_where_it_takes_them(host_case):
    """PO-11."""
    env = host_case("PO-11")
    env.set_mocap("m", pos=(1, 2, 3), quat=(HALF, 0, 0, HALF))
    np.testing.assert_allclose(env.body_state("mc").pos, (1, 2.5, 3), atol=1e-9)
    np.testing.assert_allclose(env.data.xpos[env.body("mc").id], (1, 2.5, 3), atol=1e-9)


@pytest.mark.parametrize(("sync", "stays"), [(True, 0.8), (False, 0.0)])
def test_a_welded_mocap_target_does_not_pull_back_what_it_was_synced_to(host_case, sync, stays):
    """PO-12."""
    env = host_case("PO-12")
    env.set_joint_states({"j": 0.8}, sync_mocap=sync)
    assert env.joint("j").qpos == 0.8
    env.step(500)
    assert env.joint("j").qpos == pytest.approx(stays, abs=1e-6)
    env.reset()
    env.set_joint_state("j", 0.8)
    assert env.sync_mocap() == ("m",)
    env.step(500)
    assert env.joint("j").qpos == pytest.approx(0.8, abs=1e-6)


def test_a_mocap_write_in_a_control_hook_shows_in_the_next_step(host_case):
    """PO-12."""

    class Mover(Plugin):
        def control(self, model, data):
            data.mocap_pos[0] = (0, 0, 2)

    env = host_case("PO-12", plugins=[Mover])
    mocap = env.body("m").id
    env.step()
    assert env.data.xpos[mocap].tolist() == [0, 0, 1]
    assert env.body_state("m").pos.tolist() == [0, 0, 2]  # of the present state
    env.step()
    assert env.data.xpos[mocap].tolist() == [0, 0, 2]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e300])
def test_one_bad_control_does_not_switch_all_actuators_off(host_case, bad):
    """OP-11."""
    env = host_case("OP-11")
    env.set_ctrl({"ma": 0.5, "mb": 0.5})
    env.step()
    assert [env.actuator(name).force for name in ("ma", "mb")] == [0.5, 0.5]
    with pytest.raises(InvalidArgumentError, match="ctrl of actuator 'ma' must be finite"):
        env.set_ctrl({"ma": bad, "mb": 0.25})
    env.step()
    assert {name: ctrl.tolist() for name, ctrl in env.ctrl().items()} == {"ma": [0.5], "mb": [0.5]}
    assert env.data.actuator_force.tolist() == [0.5, 0.5]
    assert env.data.warning.number.sum() == 0
