"""Public reports about scenes that change under a running simulation; ids are in the docstrings."""

from __future__ import annotations

import re

import mujoco
import pytest

from mjhost.errors import ModelLoadError, UnknownNameError
from tests.cases.inputs import case_file
from tests.env.models import state_of


def add_ball(spec):
    ball = spec.worldbody.add_body(name="ball", pos=(0, 0, 3))
    ball.add_freejoint(name="ball")
    ball.add_geom(size=[0.1, 0, 0])


def moving(env):
    """Positions and velocities of the two arms, to the last bit."""
    return {name: (*s.qpos, *s.qvel) for name, s in env.joint_states(["ja", "jb"]).items()}


def test_adding_an_object_rewinds_nothing(host_case):
    """RL-05."""
    env = host_case("RL-05")
    env.set_ctrl({"pa": 0.5})
    env.step(500)
    before = moving(env)
    box, time = env.body_state("crate"), env.data.time
    with env.edit() as spec:
        add_ball(spec)
    assert moving(env) == before
    assert env.body_state("crate") == box
    assert env.data.time == time
    assert env.ctrl()["pa"].tolist() == [0.5]
    assert env.joint("ball").qpos.tolist() == [0, 0, 3, 1, 0, 0, 0]
    env.step(100)
    assert env.joint("ja").qpos == pytest.approx(before["ja"][0], abs=0.01)


def test_a_latched_wrench_survives_the_scene_being_rebuilt(host_case):
    """RL-07."""
    env = host_case("RL-07")
    env.apply_wrench("crate", [0, 0, 25])
    env.step(5)
    with env.edit() as spec:
        add_ball(spec)
    assert env.wrench("crate").force.tolist() == [0, 0, 25]
    env.apply_wrench("ball", [1, 0, 0])
    edit = env.edit()
    with edit as spec:
        spec.delete(spec.body("crate"))
    assert "wrench on crate" in edit.report.carried.dropped
    assert env.wrench("ball").force.tolist() == [1, 0, 0]
    env.reset()
    assert env.wrench("ball").force.tolist() == [0, 0, 0]


def test_a_keyframe_restores_its_controls_too(host_case):
    """CK-07."""
    env = host_case("CK-07")
    env.step(10)
    env.data.xfrc_applied[1] = 1
    env.reset("home")
    data = env.data
    assert (data.time, data.qpos[0], data.qvel[0], data.ctrl[0]) == (4, -0.8, 0.1, -0.8)
    assert data.mocap_pos[0].tolist() == [1, 2, 3]
    assert data.mocap_quat[0].tolist() == [0, 1, 0, 0]
    assert not data.xfrc_applied.any()
    env.step(400)
    assert env.joint("j").qpos == pytest.approx(-0.8, abs=0.02)
    before = state_of(env.model, env.data)
    for keyframe in ("nope", 5):
        with pytest.raises(UnknownNameError):
            env.reset(keyframe)
        assert state_of(env.model, env.data) == before


def test_a_robot_with_a_keyframe_can_be_extended(host_case):
    """CK-08."""
    env = host_case("CK-08", "robot.xml")
    with env.edit() as spec:
        crate = spec.worldbody.add_body(name="crate", pos=(0.5, 0, 1))
        crate.add_freejoint()
        crate.add_geom(size=[0.1, 0, 0])
    env.reset("home")
    assert env.data.qpos.tolist() == [-0.8, 0.5, 0, 1, 1, 0, 0, 0]


def test_a_robot_with_a_keyframe_can_be_attached(host_case):
    """CK-08."""
    env = host_case("CK-08", "robot.xml")
    with env.edit() as spec:
        robot = mujoco.MjSpec.from_file(str(case_file("CK-08", "robot.xml")))
        spec.attach(robot, prefix="left_", frame=spec.worldbody.add_frame(pos=(0, 1, 0)))
    env.reset("home")
    assert env.data.qpos.tolist()[0] == -0.8
    env.reset("left_home")
    assert env.joint(f"left_{env.names('joint')[0]}").qpos == -0.8


@pytest.mark.parametrize(
    ("name", "key", "given"), [("bad.xml", "home", 2), ("replicate.xml", "k", 3)]
)
def test_a_keyframe_of_the_wrong_size_is_refused_with_both_sizes(host_case, name, key, given):
    """CK-08."""
    with pytest.raises(ModelLoadError) as refused:
        host_case("CK-08", name)
    text = str(refused.value)
    assert key in text
    assert re.search(rf"(expected (length )?1, got {given})|(got {given}, should be 1)", text), text
