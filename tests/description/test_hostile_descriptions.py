"""Descriptions that are wrong, or of which the engine would make something else than they say."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from mjhost import MujocoEnv, description
from mjhost.description import NoteKind
from mjhost.errors import InvalidArgumentError, ModelLoadError

INERTIAL = """<inertial><mass value="1"/>
  <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>"""
LIMIT = '<limit lower="-1" upper="1" effort="5" velocity="1"/>'
BOX = '<collision><geometry><box size="1 1 1"/></geometry></collision>'


def link(name, inside=INERTIAL):
    return f'<link name="{name}">{inside}</link>'


def joint(name, kind, parent, child, inside=""):
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{inside}</joint>'


def robot(*parts):
    return f'<robot name="r">{"".join(parts)}</robot>'


def two(kind, inside="", *, a=INERTIAL, b=INERTIAL):
    return robot(link("a", a), link("b", b), joint("j", kind, "a", "b", inside))


def shape(text):
    return two("continuous", b=f"{INERTIAL}<collision>{text}</collision>")


def chain(*kinds, inside=("", "")):
    joints = [joint(f"j{i}", kind, f"l{i}", f"l{i + 1}", inside[i]) for i, kind in enumerate(kinds)]
    return robot(*[link(f"l{i}") for i in range(len(kinds) + 1)], *joints)


def notes(text, kind, **arguments):
    found = description.load(text, **arguments).report.of(kind)
    return {note.subject: str(note) for note in found}


def compiled(text, **arguments):
    return description.load(text, **arguments).spec.compile()


REFUSED = {
    "axis without direction": (
        two("continuous", '<axis xyz="0 0 0"/>'),
        "axis of joint 'j' has no",
    ),
    "axis nan": (two("continuous", '<axis xyz="nan 0 0"/>'), "axis of joint 'j' must be 3 numbers"),
    "axis short": (two("continuous", '<axis xyz="1 0"/>'), "axis of joint 'j' must be 3 numbers"),
    "origin nan": (
        two("fixed", '<origin xyz="0 0 nan"/>'),
        "origin of joint 'j' must be 3 numbers",
    ),
    "origin infinite": (two("fixed", '<origin rpy="0 inf 0"/>'), "rpy of the origin of joint 'j'"),
    "negative damping": (
        two("continuous", '<dynamics damping="-1"/>'),
        "damping of joint 'j' must",
    ),
    "limit nan": (two("revolute", '<limit lower="nan" upper="1"/>'), "lower of the limit of joint"),
    "floating deep": (chain("continuous", "floating"), "joint 'j1' floats below link 'l1'"),
    "floating no world": (two("floating"), "joint 'j' floats below link 'a'"),
    "world below": (
        robot(link("a"), link("world"), joint("j", "continuous", "a", "world")),
        "link 'world' .* is not the root",
    ),
    "mimic itself": (two("continuous", '<mimic joint="j"/>'), "joint 'j' mimics 'j'"),
    "mimic ring": (
        chain("continuous", "continuous", inside=('<mimic joint="j1"/>', '<mimic joint="j0"/>')),
        "in the end 'j0' itself",
    ),
    "mimic planar": (
        chain("continuous", "planar", inside=('<mimic joint="j1"/>', "")),
        "'j1' is planar",
    ),
    "negative box": (shape('<geometry><box size="-1 1 1"/></geometry>'), "of link 'b' must be pos"),
    "no radius": (
        shape("<geometry><sphere/></geometry>"),
        "radius of the sphere of a collision of",
    ),
    "no geometry": (shape("<geometry/>"), "collision of link 'b' has no geometry"),
    "no such shape": (shape('<geometry><spere radius="1"/></geometry>'), "did you mean 'sphere'"),
    "two parents": (
        robot(link("a"), link("b"), *[joint(n, "continuous", "a", "b") for n in "jk"]),
        "link 'b' .* has two parents",
    ),
    "its own parent": (
        two("continuous").replace('parent link="a"', 'parent link="b"'),
        "in a circle",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_engine_would_take_or_not_name_is_refused_by_name(case):
    text, match = REFUSED[case]
    with pytest.raises(ModelLoadError, match=match):
        description.load(text)


@pytest.mark.parametrize(
    "limit",
    [
        '<limit effort="5"/>',
        '<limit lower="0" upper="0"/>',
        '<limit lower="-inf" upper="inf" effort="inf"/>',
        '<limit lower="-1" upper="1" effort="-5"/>',
    ],
)
def test_a_load_prints_nothing_and_leaves_no_file(limit, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    compiled(two("revolute", limit))
    compiled(chain("continuous", "continuous", inside=("", '<mimic joint="j0"/>')))
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


# -- joints ----------------------------------------------------------------------------------------


def test_a_mimic_is_one_constraint():
    text = chain("continuous", "continuous", inside=("", '<mimic joint="j0" multiplier="2"/>'))
    model = compiled(text)
    assert model.neq == 1
    assert model.eq_data[0, :2].tolist() == [0, 2]
    assert [model.actuator(i).name for i in range(model.nu)] == ["j0"]


def test_a_world_link_is_the_world_and_what_floats_in_it_is_free():
    text = robot(
        '<link name="world"/>', link("b", INERTIAL + BOX), joint("j", "floating", "world", "b")
    )
    with MujocoEnv(text) as env:
        assert env.joint_state("j").type == "free"
        assert env.names("body") == ("world", "b")
    with pytest.raises(ModelLoadError, match="cannot be free"):
        description.load(text, base="free")


@pytest.mark.parametrize(
    ("limit", "kind", "match"),
    [
        ("", NoteKind.DEFAULTED, "no limit, which its type asks for"),
        ('<limit lower="-inf" upper="1"/>', NoteKind.DEFAULTED, "from -inf to 1"),
        ('<limit lower="1" upper="1"/>', NoteKind.SUSPICIOUS, "one position 1"),
        ('<limit lower="-180" upper="180"/>', NoteKind.SUSPICIOUS, "not in degrees"),
        ('<limit lower="-1" upper="1" effort="-2"/>', NoteKind.SUSPICIOUS, "effort limit -2"),
    ],
)
def test_bounds_that_cannot_be_meant_are_told(limit, kind, match):
    assert match in notes(two("revolute", limit), kind)["joint j"]


def test_a_joint_without_bounds_is_not_bounded_and_its_effort_counts():
    model = compiled(two("revolute", '<limit lower="-inf" upper="inf" effort="7"/>'))
    assert not model.jnt_limited.any()
    assert model.actuator("j").forcerange.tolist() == [-7, 7]


def test_a_continuous_joint_has_no_bounds_whatever_its_limit_says():
    assert not compiled(two("continuous", LIMIT)).jnt_limited.any()


@pytest.mark.parametrize("effort", ["inf", "0", "-3"])
@pytest.mark.parametrize("mode", ["motor", "position", "velocity"])
def test_an_actuator_has_finite_gains_whatever_the_effort(effort, mode):
    model = compiled(two("revolute", LIMIT.replace("5", effort)), actuators=mode)
    assert np.isfinite(model.actuator_gainprm).all()
    assert not model.actuator_forcelimited.any()
    assert "actuator j" in notes(two("revolute", LIMIT.replace("5", effort)), "defaulted")


def test_actuators_declared_in_vain_and_joints_left_free_are_told():
    control = "".join(
        f'<joint name="{name}"><command_interface name="position"/></joint>' for name in ("j0", "x")
    )
    text = chain("continuous", "continuous").replace(
        "</robot>", f"<ros2_control>{control}</ros2_control></robot>"
    )
    found = description.load(text)
    assert [a.name for a in found.spec.actuators] == ["j0"]
    assert "not there" in notes(text, "dropped")["actuator x"]
    assert "none for j1" in notes(text, "defaulted")["actuators"]


# -- masses ----------------------------------------------------------------------------------------


def test_a_link_without_inertial_weighs_nothing_if_what_it_is_fixed_to_does():
    text = robot(
        '<link name="world"/>',
        link("hand", BOX),
        link("weight"),
        joint("j", "continuous", "world", "hand"),
        joint("k", "fixed", "hand", "weight"),
    )
    found = description.load(text)
    model = found.spec.compile()
    assert model.body("hand").mass[0] == 0
    assert found.report.mass == pytest.approx(1)
    assert not [note for note in found.report.notes if "weigh" in note.text or "mass" in note.text]


def test_a_fixed_base_without_inertial_weighs_nothing():
    assert compiled(two("continuous", a=BOX)).body("a").mass[0] == 0


def test_a_part_that_moves_and_has_no_mass_weighs_what_collides_and_that_is_told():
    visual = '<visual><geometry><box size="9 9 9"/></geometry></visual>'
    text = two("continuous", b=BOX + visual)
    assert compiled(text).body("b").mass[0] == pytest.approx(1000)
    assert "as if of water" in notes(text, "defaulted")["link b"]


def test_a_base_that_is_let_free_gets_a_mass_and_that_is_told():
    text = two("continuous", a="")
    assert compiled(text, base="free").body("a").mass[0] == pytest.approx(1e-6)
    assert "no mass and moves" in notes(text, "defaulted", base="free")["link a"]


@pytest.mark.parametrize(("moments", "made"), [((-1, 2, 5), 2), ((0.01, 0.01, 0.1), 0.04)])
def test_an_inertia_of_no_body_is_balanced_only_if_that_was_asked(moments, made):
    xx, yy, zz = moments
    impossible = f"""<inertial><mass value="1"/>
      <inertia ixx="{xx}" ixy="0" ixz="0" iyy="{yy}" iyz="0" izz="{zz}"/></inertial>"""
    text = two("continuous", b=impossible)
    with pytest.raises(ModelLoadError, match=r"link 'b' breaks A \+ B >= C"):
        description.load(text)
    model = compiled(text, balance_inertia=True)
    assert model.body("b").inertia == pytest.approx([made] * 3)
    assert "made equal" in notes(text, "suspicious", balance_inertia=True)["link b"]


# -- contacts --------------------------------------------------------------------------------------


def test_without_visuals_only_what_collides_is_left_and_nothing_weighs_less():
    mesh = '<visual><geometry><mesh filename="gone.stl"/></geometry></visual>'
    box = BOX.replace("collision", "visual")
    text = robot(
        link("a", INERTIAL + box),
        link("b", INERTIAL + BOX + mesh + box),
        link("c", mesh + box),
        joint("j", "continuous", "a", "b"),
        joint("k", "continuous", "b", "c"),
    )
    found = description.load(text, visuals=False)
    bare, whole = found.spec.compile(), compiled(text)
    assert bare.geom_contype.all()
    assert bare.geom_group.tolist() == [3, 3, 3]
    assert bare.body_mass.tolist() == whole.body_mass.tolist()
    assert bare.body_inertia == pytest.approx(whole.body_inertia)
    assert (
        "2 visual shape(s) left out" in notes(text, "dropped", visuals=False)["visuals of link b"]
    )
    assert "gone.stl" not in str(found.report)


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_a_base_does_not_collide_with_what_its_joints_carry(base):
    solid = INERTIAL + BOX
    text = robot(
        link("base", solid),
        link("plate", solid),
        link("arm", solid),
        link("tool", solid),
        joint("f", "fixed", "base", "plate"),
        joint("j", "continuous", "plate", "arm"),
        joint("g", "fixed", "arm", "tool"),
    )
    found = description.load(text, base=base)
    model = found.spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert data.ncon == 0
    assert not [note for note in found.report.notes if "inside of" in note.text]


def test_shapes_that_begin_inside_of_each_other_are_told_until_an_srdf_parts_them(tmp_path):
    solid = INERTIAL + BOX
    text = robot(
        *(link(name, solid) for name in "abc"),
        joint("j", "continuous", "a", "b"),
        joint("k", "continuous", "b", "c", '<origin xyz=".9 0 0"/>'),
    )
    assert "begins 100 mm inside of c" in notes(text, "suspicious")["link a"]
    srdf = tmp_path / "r.srdf"
    pairs = "".join(
        f'<disable_collisions link1="{one}" link2="{other}"/>' for one, other in ("ac", "ab", "ax")
    )
    srdf.write_text(f"<robot>{pairs}</robot>")
    assert "link a" not in notes(text, "suspicious", srdf=srdf)
    assert "links that are not there: x" in notes(text, "dropped", srdf=srdf)["r.srdf"]


@pytest.mark.parametrize(
    ("inside", "match"),
    [
        ('<collision><geometry><box size="900 1 1"/></geometry></collision>', "m across"),
        ('<collision><geometry><sphere radius=".001"/></geometry></collision>', "kg·m², as if"),
    ],
)
def test_sizes_in_another_unit_are_told(inside, match):
    assert match in notes(two("continuous", b=INERTIAL + inside), "suspicious")["link b"]


# -- poses -----------------------------------------------------------------------------------------


def test_a_pose_is_held_by_servos_and_followed_by_mimics(tmp_path):
    srdf = tmp_path / "r.srdf"
    wanted = (
        '<joint name="j0" value=".5"/><joint name="gone" value="1"/><joint name="j1" value="1 2"/>'
    )
    srdf.write_text(f'<robot><group_state name="home" group="g">{wanted}</group_state></robot>')
    mimic = '<mimic joint="j0" multiplier="-2" offset=".1"/>'
    text = chain("continuous", "continuous", inside=("", mimic))
    found = description.load(text, srdf=srdf, actuators="position", prefix="a_")
    told = [str(note) for note in found.report.of("dropped")]
    assert any("no joint 'gone'" in text for text in told)
    assert any("takes 1 number(s), not 2" in text for text in told)
    with MujocoEnv(found.spec) as env:
        env.reset("a_home")
        assert env.data.qpos.tolist() == [0.5, -1 + 0.1]
        assert env.ctrl()["a_j0"].tolist() == [0.5]


def test_what_means_nothing_to_a_simulation_is_counted():
    inside = LIMIT + '<safety_controller k_velocity="1"/><calibration rising="0"/>'
    text = two("revolute", inside).replace("</robot>", "<gazebo/><gazebo/></robot>")
    texture = '<material name="t"><texture filename="a.png"/></material></robot>'
    told = notes(text.replace("</robot>", texture), "dropped")
    assert set(told) == {"<gazebo>", "<safety_controller>", "<calibration>", "texture a.png"}
    assert "2 element(s)" in told["<gazebo>"]


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"source": None}, "source must be a path or text, got NoneType"),
        ({"source": b"<robot/>"}, "source must be a path or text, got bytes"),
        ({"prefix": 3}, "prefix must be text, got int"),
        ({"srdf": 3}, "srdf must be a path, got int"),
    ],
)
def test_arguments_of_another_type_are_refused_by_name(arguments, match):
    with pytest.raises(InvalidArgumentError, match=match):
        description.load(**{"source": two("continuous"), **arguments})


def test_arguments_for_xacro_are_refused_where_nothing_takes_them(tmp_path):
    path = tmp_path / "r.urdf"
    path.write_text(two("continuous"))
    with pytest.raises(InvalidArgumentError, match="is no xacro file"):
        description.load(path, xacro_args={"a": "1"})
