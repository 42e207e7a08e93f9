"""Geoms, inertias, equalities, gravity: changed wholly or not at all, and the engine knows."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from mjhost import MujocoEnv, Plugin, ReentrancyError
from mjhost.errors import InvalidArgumentError, UnknownNameError

MODEL = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <body name="ball" pos="0 0 1"><freejoint/><geom name="ball" size=".1" mass="1"/></body>
    <body name="twin" pos="1 0 1">
      <freejoint/>
      <geom name="head" size=".1" mass="1" pos="0 0 .2"/>
      <geom name="tail" type="box" size=".1 .05 .02" mass=".5" pos=".1 0 -.1" euler="0 30 0"/>
      <site name="mark" pos="0 0 .3"/>
    </body>
    <body name="arm" pos="3 0 1">
      <joint name="a" axis="0 1 0"/>
      <geom name="arm" type="capsule" size=".03" fromto="0 0 0 .4 0 0"/>
      <body name="hand" pos=".4 0 0"><joint name="b" axis="0 1 0"/><geom size=".05"/></body>
    </body>
    <body name="post" pos="3 0 2"><geom size=".02" contype="0" conaffinity="0"/></body>
  </worldbody>
  <equality>
    <weld name="weld" body1="post" body2="hand" active="false"/>
    <connect name="connect" body1="hand" body2="ball" anchor="0 0 0" active="false"/>
    <joint name="couple" joint1="a" joint2="b" polycoef="0 1 0 0 0" active="false"/>
  </equality>
</mujoco>
"""


@pytest.fixture
def env():
    with MujocoEnv(MODEL) as env:
        yield env


def settled_height(env, body, steps=1500):
    env.step(steps)
    return float(env.body_state(body).pos[2])


# -- geoms -----------------------------------------------------------------------------------------


def test_a_sphere_that_grew_rests_on_its_new_surface(env):
    assert env.set_geom_properties("ball", size=0.3)
    assert settled_height(env, "ball") == pytest.approx(0.3, abs=2e-3)
    assert env.geom_properties("ball").size.tolist() == [0.3]


def test_a_geom_of_several_that_grew_is_found_by_the_broad_phase(env):
    env.set_geom_properties("head", size=0.6)
    env.set_body_state("ball", pos=(1.0, 0.65, 1.2))  # inside the new head, far from the old one
    assert env.data.ncon > 0


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        ("sphere", [0.2]),
        ("capsule", [0.1, 0.3]),
        ("ellipsoid", [0.1, 0.2, 0.3]),
        ("cylinder", [0.1, 0.2]),
        ("box", [0.1, 0.2, 0.3]),
    ],
)
def test_bounds_are_those_of_a_model_that_was_compiled_so(env, kind, size):
    env.set_geom_properties("head", type=kind, size=size)
    text = " ".join(map(str, size))
    compiled = mujoco.MjModel.from_xml_string(
        MODEL.replace('name="head" size=".1"', f'name="head" type="{kind}" size="{text}"')
    )
    geom = env.model.geom("head").id
    assert env.model.geom_rbound[geom] == compiled.geom_rbound[geom]
    assert env.model.geom_aabb[geom].tolist() == compiled.geom_aabb[geom].tolist()
    assert env.geom_properties("head").type == kind


def test_a_mass_takes_the_inertia_with_it_and_everything_that_derives_from_it(env):
    env.set_geom_properties("arm", mass=4.0)
    mass = env.model.body("arm").mass[0]
    compiled = mujoco.MjModel.from_xml_string(MODEL)
    factor = 4.0 / compiled.body("arm").mass[0]
    assert mass == 4.0
    assert env.model.body("arm").inertia == pytest.approx(compiled.body("arm").inertia * factor)
    assert env.model.body_subtreemass[0] == pytest.approx(
        compiled.body_subtreemass[0] + 4.0 - compiled.body("arm").mass[0]
    )
    assert env.model.dof_invweight0[-2] < compiled.dof_invweight0[-2]


def test_the_state_does_not_move_when_properties_change(env):
    env.step(20)
    before = env.checkpoint().state.tobytes()
    env.set_geom_properties("ball", size=0.12, mass=2.0, friction=[0.5, 0.01])
    env.set_body_inertial("arm", mass=1.5, inertia=[0.01, 0.02, 0.02])
    env.set_equality("weld", pos=[0, 0, 0.1])
    assert env.checkpoint().state.tobytes() == before


class Listener(Plugin):
    heard = ()
    stateless = True

    def geometry_changed(self, model, data, geom_id):
        Listener.heard = (*Listener.heard, model.geom(geom_id).name)


def test_plugins_hear_of_a_change_once_and_of_none_if_nothing_changed():
    Listener.heard = ()
    with MujocoEnv(MODEL, plugins=[Listener]) as env:
        assert env.set_geom_properties("ball", size=0.2, friction=0.3, mass=2.0) is True
        assert env.set_geom_properties("ball", size=0.2, friction=0.3, mass=2.0) is False
    assert Listener.heard == ("ball",)


def test_a_reset_with_the_model_undoes_it(env):
    env.set_geom_properties("ball", size=0.3, mass=9)
    env.set_body_inertial("arm", mass=5)
    env.reset()
    assert env.geom_properties("ball").size.tolist() == [0.3]
    env.reset(model=True)
    assert env.geom_properties("ball").size.tolist() == [0.1]
    compiled = mujoco.MjModel.from_xml_string(MODEL)
    assert env.body_inertial("arm").mass == compiled.body("arm").mass[0]


def test_a_checkpoint_has_it_in_it(env):
    env.set_geom_properties("head", size=0.2, friction=0.3, mass=3)
    env.step(100)
    checkpoint = env.checkpoint()
    env.step(300)
    expected = env.checkpoint().state.tobytes()
    with MujocoEnv(MODEL) as fresh:
        fresh.restore(checkpoint)
        fresh.step(300)
        assert fresh.checkpoint().state.tobytes() == expected
        assert fresh.geom_properties("head").mass == 3


DERIVED = """
<mujoco>
  <option density="1.2" viscosity=".1"/>
  <worldbody>
    <body name="wing" pos="0 0 3">
      <joint name="j"/>
      <geom name="wing" type="ellipsoid" size=".1 .2 .3" fluidshape="ellipsoid"
            fluidcoef=".4 .3 1.2 .9 .8" mass="1"/>
      <inertial pos="0 0 0" mass="1" diaginertia=".04 .03 .02"/>
    </body>
    <body name="drum" pos="3 0 1">
      <joint axis="0 1 0"/>
      <inertial pos="0 0 0" mass="1" diaginertia=".04 .03 .02"/>
      <geom name="drum" type="cylinder" size=".05 .1" euler="90 0 0"/>
      <site name="s1" pos=".2 0 0"/><site name="s2" pos="-.2 0 0"/>
    </body>
  </worldbody>
  <tendon>
    <spatial name="rope" springlength=".4">
      <site site="s1"/><geom geom="drum"/><site site="s2"/>
    </spatial>
  </tendon>
  <sensor><tendonpos tendon="rope"/></sensor>
</mujoco>
"""


def unlike(model, other):
    """Names of the arrays in which two models of the same sizes differ."""
    arrays = [name for name in dir(model) if isinstance(getattr(model, name), np.ndarray)]
    return [
        name
        for name in arrays
        if not np.allclose(getattr(model, name), getattr(other, name), rtol=1e-12, atol=1e-14)
    ]


@pytest.mark.parametrize(
    ("geom", "properties", "before", "after"),
    [
        ("wing", {"size": [0.3, 0.2, 0.1]}, 'size=".1 .2 .3"', 'size=".3 .2 .1"'),
        ("drum", {"size": [0.1, 0.2]}, 'size=".05 .1"', 'size=".1 .2"'),
        ("wing", {"mass": 2.0}, 'mass="1" diaginertia=".04 .03 .02"',
         'mass="2" diaginertia=".08 .06 .04"'),
    ],
    ids=["in a medium", "in a tendon", "mass"],
)  # fmt: skip
def test_the_model_is_in_every_array_as_if_it_had_been_compiled_so(geom, properties, before, after):
    with MujocoEnv(DERIVED) as env:
        env.set_geom_properties(geom, **properties)
        compiled = mujoco.MjModel.from_xml_string(DERIVED.replace(before, after, 1))
        assert unlike(env.model, mujoco.MjModel.from_xml_string(DERIVED))
        assert unlike(env.model, compiled) == []


def test_what_a_tendon_wraps_around_keeps_its_type():
    with MujocoEnv(DERIVED) as env:
        with pytest.raises(InvalidArgumentError, match="must stay a cylinder: a tendon wraps"):
            env.set_geom_properties("drum", type="capsule")
        assert env.geom_properties("drum").type == "cylinder"


def test_the_pose_of_a_constraint_outlives_a_change_of_masses(env):
    env.set_equality("connect", anchor=[0, 0, 0.1], anchor2=[0.5, 0.6, 0.7])
    env.set_equality("weld", pos=[0.1, 0.2, 0.3])
    env.set_body_inertial("arm", mass=3)
    env.set_geom_properties("ball", mass=2, size=0.2)
    assert env.equality_state("connect").anchor.tolist() == [0, 0, 0.1]
    assert env.equality_state("connect").anchor2.tolist() == [0.5, 0.6, 0.7]
    assert env.equality_state("weld").pos == pytest.approx([0.1, 0.2, 0.3], abs=1e-15)


# -- inertia ---------------------------------------------------------------------------------------


def test_a_moved_centre_of_mass_moves_and_boxes_go_with_it(env):
    assert env.set_body_inertial("twin", com=[0.1, 0.2, 0.0], quat=[1, 0, 0, 0])
    body = env.model.body("twin").id
    assert env.data.xipos[body] == pytest.approx(env.data.xpos[body] + [0.1, 0.2, 0.0])
    compiled = mujoco.MjModel.from_xml_string(MODEL)
    geom = env.model.geom("tail").id
    assert env.data.geom_xpos[geom] == pytest.approx(
        env.data.xpos[body] + compiled.geom_pos[geom], abs=1e-12
    )


def test_six_numbers_of_an_inertia_are_the_tensor_along_the_bodys_axes(env):
    tensor = np.array([[0.03, 0.004, 0.002], [0.004, 0.025, -0.003], [0.002, -0.003, 0.02]])
    full = [0.03, 0.025, 0.02, 0.004, 0.002, -0.003]
    env.set_body_inertial("twin", inertia=full)
    got = env.body_inertial("twin")
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, got.quat)
    matrix = matrix.reshape(3, 3)
    assert matrix @ np.diag(got.inertia) @ matrix.T == pytest.approx(tensor, abs=1e-12)
    assert list(got.inertia) == sorted(got.inertia, reverse=True)


def test_six_numbers_without_products_keep_their_order(env):
    """A free body, whose axes cannot be exchanged, takes them too."""
    assert env.set_body_inertial("ball", inertia=[0.01, 0.012, 0.013, 0, 0, 0])
    assert env.body_inertial("ball").inertia.tolist() == [0.01, 0.012, 0.013]
    assert env.body_inertial("ball").quat.tolist() == [1, 0, 0, 0]


# -- equalities ------------------------------------------------------------------------------------


def test_a_weld_that_holds_what_is_does_not_move_anything(env):
    env.set_joint_states({"a": 0.3, "b": -0.8})
    before = env.body_state("hand")
    env.set_equality("weld", active=True, hold=True)
    env.set_gravity([0, 0, 0])
    env.step(500)
    after = env.body_state("hand")
    assert after.pos == pytest.approx(before.pos, abs=1e-6)
    assert after.quat == pytest.approx(before.quat, abs=1e-6)
    assert env.equality_state("weld").active


def test_a_weld_asks_for_the_pose_it_was_given(env):
    pose = env.equality_state("weld")
    assert pose.pos == pytest.approx([0.4, 0, -1], abs=1e-12)
    env.set_equality("weld", pos=[0.35, 0, -1.1], quat=[0.96, 0, 0.28, 0], anchor=[0.01, 0, 0])
    again = env.equality_state("weld")
    assert again.pos == pytest.approx([0.35, 0, -1.1], abs=1e-12)
    assert again.quat == pytest.approx([0.96, 0, 0.28, 0], abs=1e-12)
    assert again.anchor.tolist() == [0.01, 0, 0]


def test_a_weld_pulls_its_body_to_the_pose_that_was_asked_for(env):
    env.set_joint_states({"a": 0.3, "b": -0.8})
    goal = env.body_state("hand")
    env.set_joint_states({"a": 0.0, "b": 0.0})
    env.set_gravity([0, 0, 0])
    env.set_equality(
        "weld", active=True, pos=goal.pos - [3, 0, 2], quat=goal.quat, solref=[0.01, 1]
    )
    env.step(2000)
    there = env.body_state("hand")
    assert there.pos == pytest.approx(goal.pos, abs=1e-4)
    assert there.quat == pytest.approx(goal.quat, abs=1e-4)


def test_a_connect_takes_the_other_point_from_where_it_is(env):
    env.set_body_state("ball", pos=(3.45, 0.2, 1.0))
    env.set_equality("connect", active=True, anchor=[0, 0.1, 0])
    assert env.equality_state("connect").anchor2 == pytest.approx([-0.05, -0.1, 0.0], abs=1e-12)
    env.set_gravity([0, 0, 0])
    env.step(200)
    assert env.body_state("ball").pos == pytest.approx([3.45, 0.2, 1.0], abs=1e-5)


def test_a_coupling_has_a_polynomial(env):
    env.set_equality("couple", active=True, polycoef=[0.2, 0.5, 0, 0, 0], solref=[0.004, 1])
    env.set_gravity([0, 0, 0])
    env.step(1500)
    a, b = (env.joint(name).qpos for name in "ab")
    assert a == pytest.approx(0.2 + 0.5 * b, abs=1e-3)


# -- gravity ---------------------------------------------------------------------------------------


def test_gravity_is_an_option_and_counts_as_one(env):
    epoch = env.generations.options
    env.set_gravity([0, 1, -2])
    assert env.gravity().tolist() == [0, 1, -2]
    assert env.runtime_options.gravity == (0.0, 1.0, -2.0)
    assert env.generations.options > epoch


# -- what is refused -------------------------------------------------------------------------------

BAD = [
    (lambda e: e.set_geom_properties("bal", size=1), UnknownNameError, "did you mean 'ball'"),
    (lambda e: e.set_geom_properties("ball"), InvalidArgumentError, "nothing was given"),
    (lambda e: e.set_geom_properties("ball", type="mesh"), InvalidArgumentError, "primitive"),
    (lambda e: e.set_geom_properties("ball", type="plane", size=[1, 1, 1]), InvalidArgumentError,
     "its body moves"),
    (lambda e: e.set_geom_properties("ball", size=[1, 2]), InvalidArgumentError, "radius"),
    (lambda e: e.set_geom_properties("ball", size=-1), InvalidArgumentError, "above 0"),
    (lambda e: e.set_geom_properties("ball", size=np.nan), InvalidArgumentError, "finite"),
    (lambda e: e.set_geom_properties("ball", type="box"), InvalidArgumentError, "needs a size"),
    (lambda e: e.set_geom_properties("ball", friction=-1), InvalidArgumentError, "negative"),
    (lambda e: e.set_geom_properties("ball", friction=[1, 1, 1, 1]), InvalidArgumentError, "3"),
    (lambda e: e.set_geom_properties("ball", mass=0), InvalidArgumentError, "above 0"),
    (lambda e: e.set_geom_properties("floor", mass=1), InvalidArgumentError, "no mass"),
    (lambda e: e.set_body_inertial("arm", inertia=[1, 1, 3]), InvalidArgumentError, "A . B"),
    (lambda e: e.set_body_inertial("arm", inertia=[0, 1, 1]), InvalidArgumentError, "positive"),
    (lambda e: e.set_body_inertial("arm", inertia=[1] * 6, quat=[1, 0, 0, 0]),
     InvalidArgumentError, "leave quat"),
    (lambda e: e.set_body_inertial("ball", com=[0, 0, 1]), InvalidArgumentError, "diagonal"),
    (lambda e: e.set_body_inertial("world", mass=1), InvalidArgumentError, "world"),
    (lambda e: e.set_body_inertial("arm", mass=True), InvalidArgumentError, "mass of body 'arm'"),
    (lambda e: e.set_equality("weld", polycoef=[1] * 5), InvalidArgumentError, "has no polycoef"),
    (lambda e: e.set_equality("couple", hold=True), InvalidArgumentError, "has no hold"),
    (lambda e: e.set_equality("weld"), InvalidArgumentError, "nothing was given"),
    (lambda e: e.set_equality("weld", active=1), InvalidArgumentError, "True or False"),
    (lambda e: e.set_equality("weld", quat=[0, 0, 0, 0]), InvalidArgumentError, "orientation"),
    (lambda e: e.set_equality("weld", solref=[1, -1]), InvalidArgumentError, "solref"),
    (lambda e: e.set_gravity([0, 0]), InvalidArgumentError, "3 numbers"),
    (lambda e: e.set_gravity(-9.81), InvalidArgumentError, "3 numbers"),
]  # fmt: skip


@pytest.mark.parametrize("call", BAD, ids=lambda row: row[2][:20])
def test_what_cannot_be_is_refused_by_name_and_nothing_changes(env, call):
    act, error, match = call
    before = env.checkpoint()
    with pytest.raises(error, match=match):
        act(env)
    after = env.checkpoint()
    assert after.state.tobytes() == before.state.tobytes()
    assert after.option_bytes == before.option_bytes
    assert not after.edits


def test_none_of_it_is_possible_inside_a_step(env):
    tried = []

    def inside(_model, _data):
        for act in (
            lambda: env.set_geom_properties("ball", size=1),
            lambda: env.set_body_inertial("arm", mass=1),
            lambda: env.set_equality("weld", active=True),
            lambda: env.set_gravity([0, 0, 0]),
            lambda: env.apply_wrench("ball", [1, 0, 0]),
            lambda: env.clear_wrench(),
        ):
            with pytest.raises(ReentrancyError):
                act()
            tried.append(True)

    env.every(500, inside)
    env.step(1)
    assert len(tried) == 6
