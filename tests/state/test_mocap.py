"""Mocap bodies, and putting them onto what is welded to them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mjhost import InvalidArgumentError, MujocoEnv, UnknownNameError
from tests.state.zoo import everything, turned

ARM = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="hand" mocap="true" pos="0 0 1"><geom size=".02" contype="0" conaffinity="0"/>
      <site name="grip" pos=".1 .2 .3" quat="1 2 3 4"/>
    </body>
    <body name="free hand" mocap="true"/>
    <body name="arm">
      <joint name="lift" axis="0 1 0"/><joint name="roll" axis="1 0 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 1" size=".02" mass="1" contype="0" conaffinity="0"/>
      <body name="wrist" pos="0 0 1"><joint name="turn" type="ball"/>
        <geom size=".05" contype="0" conaffinity="0"/>
        <site name="flange" pos=".3 .2 .1" quat="4 3 2 1"/>
      </body>
    </body>
  </worldbody>
  <equality>{}</equality>
</mujoco>
"""
WELDS = {
    "mocap first": '<weld body1="hand" body2="wrist"/>',
    "mocap second": '<weld body1="wrist" body2="hand"/>',
    "anchor": '<weld body1="hand" body2="wrist" anchor=".1 .2 .3"/>',
    "relpose": '<weld body1="hand" body2="wrist" anchor=".1 0 .3" relpose=".1 .2 .3 1 2 3 4"/>',
    "relpose, second": '<weld body1="wrist" body2="hand" anchor="1 0 1" relpose="1 2 3 1 0 1 0"/>',
    "sites": '<weld site1="grip" site2="flange"/>',
    "sites, second": '<weld site1="flange" site2="grip"/>',
}
angles = st.floats(-3, 3)


def weld_residual(env) -> np.ndarray:
    """What the engine finds violated, as of now."""
    env.forward()
    return np.array(env.data.efc_pos[: env.data.ne])


@pytest.mark.parametrize("weld", WELDS.values(), ids=[*WELDS])
def test_a_synced_mocap_body_satisfies_its_weld_wherever_the_robot_is(weld):
    @given(angles, angles, st.tuples(angles, angles, angles), angles)
    @settings(deadline=None, max_examples=10)
    def check(lift, roll, axis, angle):
        env.reset()
        turn = turned((axis[0] + 4, *axis[1:]), angle)
        env.set_joint_states({"lift": lift, "roll": roll, "turn": turn})
        assert env.sync_mocap() == ("hand",)
        residual = weld_residual(env)
        assert residual.shape == (6,)
        np.testing.assert_allclose(residual, 0.0, atol=1e-9)

    with MujocoEnv(ARM.format(weld)) as env:
        check()


def test_syncing_uses_the_present_state_not_that_of_the_last_step():
    with MujocoEnv(ARM.format(WELDS["mocap first"])) as env:
        env.set_joint_state("lift", 0.5, 2.0)
        env.step(3)
        env.sync_mocap(["hand"])
        np.testing.assert_allclose(weld_residual(env), 0.0, atol=1e-9)


def test_only_active_welds_are_synced_to():
    with MujocoEnv(ARM.format('<weld name="w" body1="hand" body2="wrist"/>')) as env:
        env.equality("w").active = False
        assert env.sync_mocap() == ()
        before = everything(env)
        with pytest.raises(InvalidArgumentError, match="'hand' is held by no active weld"):
            env.sync_mocap(["hand"])
        assert everything(env) == before


@pytest.mark.parametrize(
    ("names", "error", "complaint"),
    [
        (["free hand"], InvalidArgumentError, "held by no active weld"),
        (["hand", "arm"], UnknownNameError, "body 'arm' is not a mocap body"),
        (["hnd"], UnknownNameError, "did you mean 'hand'"),
        ("hand", InvalidArgumentError, r"write \['hand'\]"),
    ],
)
def test_what_cannot_be_synced_is_refused_and_nothing_changes(names, error, complaint):
    with MujocoEnv(ARM.format(WELDS["mocap first"])) as env:
        env.set_joint_state("lift", 0.5)
        before = everything(env)
        with pytest.raises(error, match=complaint):
            env.sync_mocap(names)
        assert everything(env) == before


def test_a_refused_state_syncs_nothing():
    with MujocoEnv(ARM.format(WELDS["mocap first"])) as env:
        env.data.qpos[0] = 0.5
        env.forward()
        before = everything(env)
        with pytest.raises(InvalidArgumentError):
            env.set_joint_states({"lift": "0.8"}, sync_mocap=True)
        assert everything(env) == before


def test_a_mocap_body_is_found_by_its_body(zoo):
    zoo.set_mocap("target", pos=(1, 2, 3))
    assert zoo.mocap("target").quat.tolist() == [1, 0, 0, 0]
    zoo.mocap("target").quat = (0, 2, 0, 0)
    zoo.mocap("target").pos = (3, 2, 1)
    state = zoo.mocap("target").state
    assert (state.pos.tolist(), state.quat.tolist()) == ([3, 2, 1], [0, 1, 0, 0])
    assert zoo.mocap_states() == {"target": state} == zoo.mocap_states(["target"])
    assert zoo.data.mocap_pos.tolist() == [[3, 2, 1]]


@pytest.mark.parametrize(
    ("name", "arguments", "complaint"),
    [
        ("target", {}, "nothing to set was given"),
        ("target", {"pos": (1, 2)}, "pos of mocap body 'target' must be 3 numbers"),
        ("target", {"pos": (1, 2, 3), "quat": (0, 0, 0, 0)}, "quat of mocap body 'target'"),
        ("floating", {"pos": (1, 2, 3)}, "'floating' is not a mocap body; known: 'target'"),
        ("targt", {"pos": (1, 2, 3)}, "did you mean 'target'"),
    ],
)
def test_what_is_no_mocap_pose_is_refused_and_nothing_changes(zoo, name, arguments, complaint):
    before = everything(zoo)
    with pytest.raises((InvalidArgumentError, UnknownNameError), match=complaint):
        zoo.set_mocap(name, **arguments)
    assert everything(zoo) == before
