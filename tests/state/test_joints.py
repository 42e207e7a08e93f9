"""Positions and velocities of joints, in models of any shape."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mjhost import InvalidArgumentError, MujocoEnv, UnknownNameError
from mjhost.state import initial
from mjhost.state.joints import plan_joint_states, span
from mjhost.state.names import Names, ObjectKind
from tests.state.zoo import everything, turned

SIZES = {"free": (7, 6), "ball": (4, 3), "slide": (1, 1), "hinge": (1, 1)}
# What one body may hang on: a ball turns every way already, and two equal axes are singular.
BODIES = ["", "ball", "slide", "hinge", "slide slide", "slide hinge", "hinge hinge", "slide ball"]
chains = st.lists(st.sampled_from(BODIES).map(str.split), max_size=3)
trees = st.lists(st.tuples(st.booleans(), chains), min_size=1, max_size=4)


def model_of(tree) -> mujoco.MjModel:
    """Each chain: whether it floats, then the joints of each body."""
    spec = mujoco.MjSpec()
    for floats, chain in tree:
        body = spec.worldbody.add_body()
        body.add_geom(size=[0.1, 0, 0])
        if floats:
            body.add_freejoint(name=f"free {len(spec.joints)}")
        for kinds in chain:
            body = body.add_body(pos=[0.3, 0, 0])
            body.add_geom(size=[0.1, 0, 0])
            for kind, axis in zip(kinds, np.eye(3), strict=False):
                body.add_joint(
                    name=f"{kind} {len(spec.joints)}",
                    type=getattr(mujoco.mjtJoint, f"mjJNT_{kind.upper()}"),
                    axis=axis,
                )
    return spec.compile()


def some_state(kind: str, draw) -> tuple[np.ndarray, np.ndarray]:
    nq, nv = SIZES[kind]
    qpos = draw.normal(size=nq)
    if nq > 1:
        qpos[-4:] /= np.linalg.norm(qpos[-4:])
    return qpos, draw.normal(size=nv)


@pytest.mark.slow
@given(trees, st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=60)
def test_a_joint_never_touches_its_neighbours(tree, seed):
    model = model_of(tree)
    data, names, draw = mujoco.MjData(model), Names(model), np.random.default_rng(seed)
    data.qpos[:], data.qvel[:] = draw.normal(size=model.nq), draw.normal(size=model.nv)
    for name, joint in names.ids(ObjectKind.JOINT).items():
        place = span(model, joint)
        qpos, qvel = some_state(place.type.word, draw)
        expected_qpos, expected_qvel = np.array(data.qpos), np.array(data.qvel)
        expected_qpos[place.qpos], expected_qvel[place.qvel] = qpos, qvel
        plan_joint_states(model, names, {name: {"qpos": qpos, "qvel": qvel}}).apply(data)
        np.testing.assert_allclose(data.qpos, expected_qpos, atol=1e-15)
        assert data.qvel.tobytes() == expected_qvel.tobytes()


@pytest.mark.slow
@given(trees, st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=25)
def test_all_states_of_any_tree_go_from_one_env_to_another(tree, seed):
    model, draw = model_of(tree), np.random.default_rng(seed)
    with MujocoEnv(model) as one, MujocoEnv(model) as two:
        for name in one.names("joint"):
            qpos, qvel = some_state(one.joint(name).type, draw)
            one.set_joint_state(name, qpos, qvel)
        two.set_joint_states(one.joint_states())
        assert everything(two) == everything(one)
        assert two.joint_states() == one.joint_states()


@pytest.mark.parametrize(
    ("name", "kind"), [("root", "free"), ("swing", "ball"), ("rail", "slide"), ("knee", "hinge")]
)
def test_every_type_says_what_it_is(zoo, name, kind):
    state = zoo.joint_state(name)
    sizes = (state.qpos.shape, state.qvel.shape, state.force.shape)
    nq, nv = SIZES[kind]
    assert (state.name, state.type, *sizes) == (name, kind, (nq,), (nv,), (nv,))


def test_what_is_not_given_stays(zoo):
    zoo.set_joint_state("knee", 0.5, 0.25)
    zoo.set_joint_state("knee", qvel=1)
    assert (zoo.joint("knee").qpos, zoo.joint("knee").qvel) == (0.5, 1.0)
    zoo.set_joint_state("knee", [0.75])
    assert (zoo.joint("knee").qpos, zoo.joint("knee").qvel) == (0.75, 1.0)


def test_quaternions_are_made_of_unit_length(zoo):
    zoo.set_joint_states({"swing": (0, 3, 0, 4), "root": (1, 2, 3, 0, 0, 0, -2)})
    assert zoo.joint("swing").qpos.tolist() == [0, 0.6, 0, 0.8]
    assert zoo.joint("root").qpos.tolist() == [1, 2, 3, 0, 0, 0, -1]


def test_a_joint_without_a_name_is_set_by_its_place(zoo):
    zoo.set_joint_states({"#5": 0.3, "pan": 0.2})
    assert zoo.data.qpos[-2:].tolist() == [0.2, 0.3]


def test_derived_quantities_follow_at_once(zoo):
    before = zoo.body_state("tip").pos
    zoo.set_joint_state("knee", math.pi / 2)
    assert zoo.data.xpos[zoo.body("tip").id].tolist() == zoo.body_state("tip").pos.tolist()
    assert zoo.sensor("knee angle").value == math.pi / 2
    assert np.linalg.norm(zoo.body_state("tip").pos - before) > 0.3
    assert zoo.data.time == 0.0


def test_a_position_beyond_the_range_is_accepted(zoo):
    zoo.set_joint_state("knee", 2.5)
    assert zoo.joint("knee").qpos == 2.5
    assert zoo.joint("knee").range == (-1.0, 2.0)
    assert zoo.joint("rail").range is None


@pytest.mark.parametrize(
    ("states", "error", "complaint"),
    [
        ({"knee": (1, 2)}, InvalidArgumentError, "qpos of hinge joint 'knee' must be one number"),
        ({"root": 1}, InvalidArgumentError, "qpos of free joint 'root' must be 7 numbers"),
        ({"swing": (0, 0, 0, 0)}, InvalidArgumentError, "of ball joint 'swing' must be an orient"),
        ({"rail": math.nan}, InvalidArgumentError, "qpos of slide joint 'rail' must be finite"),
        ({"knee": {"qvel": "1"}}, InvalidArgumentError, "qvel of hinge joint 'knee'"),
        ({"knee": {"qpso": 1}}, InvalidArgumentError, "did you mean 'qpos'"),
        ({"knee": None}, InvalidArgumentError, "nothing to set was given"),
        ({"knee": {}}, InvalidArgumentError, "nothing to set was given"),
        ({"kneee": 1}, UnknownNameError, "did you mean 'knee'"),
        ({3: 1}, InvalidArgumentError, "asked for by its name"),
        ([("knee", 1)], InvalidArgumentError, "must be a mapping of names"),
    ],
    ids=str,
)
def test_what_is_no_state_is_refused_and_nothing_changes(zoo, states, error, complaint):
    before = everything(zoo)
    wanted = {"pan": 0.4, **states} if isinstance(states, dict) else states
    with pytest.raises(error, match=complaint):
        zoo.set_joint_states(wanted)
    assert everything(zoo) == before


def test_all_problems_are_told_at_once(zoo):
    with pytest.raises(InvalidArgumentError) as caught:
        zoo.set_joint_states({"knee": True, "hip": 1, "root": (0, 0, 0, 0, 0, 0, 0)})
    for word in ("'knee'", "'hip'", "'root'"):
        assert word in str(caught.value)


def test_joints_that_do_not_exist_alone_are_an_unknown_name(zoo):
    with pytest.raises(UnknownNameError, match=r"'hip'.*'toe'"):
        zoo.set_joint_states({"hip": 1, "toe": 2})


# -- initial states ------------------------------------------------------------------------------


def test_initial_states_are_planned_without_touching_anything(zoo):
    data = mujoco.MjData(zoo.model)
    before = data.qpos.tobytes()
    plan = initial.plan(
        zoo.model,
        {
            "root": [1, 2, 3, *turned((0, 0, 1), 1.0)],
            "swing": {"qpos": (1, 0, 0, 0), "qvel": (1, 2, 3)},
            "knee": {"qpos": 0.5, "qvel": 0.25},
            "rail": 0.1,
        },
    )
    assert data.qpos.tobytes() == before
    plan.apply(data)
    assert plan.names == ("root", "swing", "knee", "rail")
    assert data.qpos[:7].tolist() == [1, 2, 3, *turned((0, 0, 1), 1.0)]
    assert data.qpos[11:13].tolist() == [0.5, 0.1]
    assert data.qvel.tolist() == [0.0] * 6 + [1, 2, 3, 0.25, 0, 0, 0]


def test_initial_states_with_problems_are_refused_or_skipped_joint_by_joint(zoo):
    states = {"knee": 0.5, "hip": 1, "swing": (0, 0, 0, 0), "rail": {"qpos": 0.1, "qvel": math.inf}}
    with pytest.raises(InvalidArgumentError, match=r"'hip'.*'swing'.*'rail'"):
        initial.plan(zoo.model, states)
    plan = initial.plan(zoo.model, states, on_error="warn")
    assert plan.names == ("knee",)
    assert [problem.count("joint") > 0 for problem in plan.problems] == [True] * 3
    data = mujoco.MjData(zoo.model)
    expected = np.array(data.qpos)
    expected[11] = 0.5
    plan.apply(data)
    assert data.qpos.tolist() == expected.tolist()
    assert not data.qvel.any()


def test_initial_states_know_two_ways_to_take_a_problem(zoo):
    with pytest.raises(InvalidArgumentError, match="on_error must be 'raise' or 'warn'"):
        initial.plan(zoo.model, {}, on_error="ignore")
