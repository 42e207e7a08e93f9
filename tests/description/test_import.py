"""Robots from files: what is kept, what is guessed and told, and what is refused by name."""

from __future__ import annotations

import json

import mujoco
import numpy as np
import pytest

from mjhost import MujocoEnv, description
from mjhost.cli.main import main
from mjhost.description import NoteKind, meshes
from mjhost.description.report import Notes
from mjhost.errors import InvalidArgumentError, ModelLoadError

ROBOT = """<robot name="arm">
  <link name="base"/>
  <link name="upper">
    <inertial><origin xyz="0 0 .2"/><mass value="2"/>
      <inertia ixx=".02" ixy="0" ixz="0" iyy=".02" iyz="0" izz=".01"/></inertial>
    <visual><origin xyz="0 0 .2"/><geometry><cylinder radius=".05" length=".4"/></geometry></visual>
  </link>
  <link name="lower">
    <inertial><mass value="1"/>
      <inertia ixx=".01" ixy="0" ixz="0" iyy=".01" iyz="0" izz=".01"/></inertial>
    <collision><geometry><sphere radius=".05"/></geometry></collision>
    {lower}
  </link>
  <link name="finger"/>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="upper"/><origin xyz="0 0 .1"/><axis xyz="0 1 0"/>
    <limit lower="-1.5" upper="1.5" effort="20" velocity="3"/><dynamics damping=".5" friction=".1"/>
  </joint>
  <joint name="elbow" type="continuous">
    <parent link="upper"/><child link="lower"/><origin xyz="0 0 .4"/><axis xyz="0 1 0"/>
    <limit effort="10" velocity="3"/>
  </joint>
  <joint name="grip" type="prismatic">
    <parent link="lower"/><child link="finger"/><axis xyz="1 0 0"/>
    <limit lower="0" upper=".05" effort="5" velocity="1"/>
    <mimic joint="elbow" multiplier=".1" offset=".01"/>
  </joint>
  {more}
</robot>
"""
CONTROL = """
  <ros2_control name="c" type="system">
    <joint name="shoulder"><command_interface name="position"/></joint>
    <joint name="elbow"><command_interface name="velocity"/></joint>
  </ros2_control>"""
SRDF = """<robot name="arm">
  <disable_collisions link1="base" link2="lower" reason="Never"/>
  <disable_collisions link1="lower" link2="base" reason="Never"/>
  <group_state name="home" group="all"><joint name="shoulder" value="0.5"/></group_state>
</robot>"""


def text(lower="", more=""):
    return ROBOT.format(lower=lower, more=more)


def compiled(*args, **kwargs):
    return description.load(*args, **kwargs).spec.compile()


def test_an_arm_is_what_its_description_says():
    model = compiled(text())
    assert [model.body(i).name for i in range(model.nbody)] == [
        "world", "base", "upper", "lower", "finger",
    ]  # fmt: skip
    assert model.body("upper").mass[0] == 2
    assert model.joint("shoulder").range.tolist() == [-1.5, 1.5]
    assert model.dof_damping[0] == 0.5
    assert not model.jnt_limited[model.joint("elbow").id]


def test_what_was_guessed_is_told():
    report = description.load(text()).report
    told = {note.subject: note.text for note in report.of(NoteKind.DEFAULTED)}
    assert "fixed to the world" in told["base base"]
    assert "a motor" in told["actuators"]
    assert "1 visual primitive(s) do" in told["link upper"]
    assert "no mass and moves" in told["link finger"]
    assert report.mass == pytest.approx(3, abs=1e-5)
    assert (report.links, report.joints, report.actuators) == (4, 3, 2)


def test_a_link_with_visuals_only_collides_with_its_primitives():
    model = compiled(text())
    body = model.body("upper")
    groups = sorted(model.geom_group[body.geomadr[0] :][: body.geomnum[0]].tolist())
    assert groups == [2, 3]
    visual, collision = (model.geom_group == g for g in (2, 3))
    assert not model.geom_contype[visual].any()
    assert model.geom_contype[collision].all()


def test_a_mimic_joint_follows():
    with MujocoEnv(text()) as env:
        env.apply_runtime_options({"gravity": [0, 0, 0]})
        env.set_joint_states({"elbow": 0.2, "grip": 0.03})
        env.step(500)
        elbow, grip = env.joint("elbow").qpos, env.joint("grip").qpos
        assert grip == pytest.approx(0.1 * elbow + 0.01, abs=2e-3)
        assert env.names("actuator") == ("shoulder", "elbow")


@pytest.mark.parametrize("mode", ["auto", "position"])
def test_a_servo_holds_its_joint(mode):
    spec = description.load(text(more=CONTROL), actuators=mode).spec
    with MujocoEnv(spec) as env:
        env.set_ctrl({"shoulder": 0.6})
        env.step(3000)
        assert env.joint("shoulder").qpos == pytest.approx(0.6, abs=0.1)
        shoulder = env.model.actuator("shoulder")
        assert shoulder.ctrlrange.tolist() == [-1.5, 1.5]
        assert shoulder.forcerange.tolist() == [-20, 20]


def test_declared_interfaces_decide_and_none_is_none():
    spec = description.load(text(more=CONTROL)).spec
    with MujocoEnv(spec) as env:
        assert env.model.actuator("elbow").biasprm[2] < 0
        assert (
            env.model.actuator("shoulder").gainprm[0] == -env.model.actuator("shoulder").biasprm[1]
        )
    assert compiled(text(), actuators="none").nu == 0
    assert compiled(text(), actuators="motor").actuator("elbow").ctrlrange.tolist() == [-10, 10]


def test_an_srdf_keeps_links_apart_and_names_poses(tmp_path):
    (tmp_path / "arm.srdf").write_text(SRDF)
    found = description.load(text(), srdf=tmp_path / "arm.srdf")
    model = found.spec.compile()
    assert model.nexclude == 1
    assert model.key("home").qpos[0] == 0.5


def test_a_base_can_be_free_and_stand_on_the_ground():
    with MujocoEnv(description.load(text(), base="free", world="ground").spec) as env:
        assert env.joint_state("base_free").type == "free"
        assert "ground" in env.names("geom")
        env.step(100)


def test_robots_of_urdf_and_mjcf_share_a_world(tmp_path):
    mjcf = tmp_path / "box.xml"
    ball = '<body name="b"><freejoint/><geom size=".1"/></body>'
    mjcf.write_text(f"<mujoco><worldbody>{ball}</worldbody></mujoco>")
    urdf = tmp_path / "arm.urdf"
    urdf.write_text(text())
    whole = description.compose([
        description.Robot(source=urdf, prefix="a_", options={"actuators": "position"}),
        description.Robot(source=urdf, prefix="b_", pos=(1, 0, 0)),
        description.Robot(source=mjcf, prefix="c_", pos=(0, 0, 2)),
    ])  # fmt: skip
    with MujocoEnv(whole.spec) as env:
        assert {"a_shoulder", "b_shoulder"} <= set(env.names("joint"))
        assert env.body_state("c_b").pos.tolist() == [0, 0, 2]
        env.step(20)


def test_the_report_comes_with_the_load_and_a_reload_reads_again(tmp_path):
    robot = tmp_path / "arm.urdf"
    robot.write_text(text())
    with MujocoEnv() as env:
        report = env.load(robot).import_report
        assert report.robot == "arm"
        robot.write_text(text().replace('mass value="1"', 'mass value="4"'))
        assert env.reload(keep_state=True).import_report.mass == pytest.approx(6, abs=1e-5)


XACRO = """<robot name="made" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:arg name="side" default=".1"/>
  <xacro:include filename="$(find parts)/ball.xacro"/>
  <link name="base"/>
  <xacro:ball name="one" side="$(arg side)"/>
</robot>"""
BALL = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:macro name="ball" params="name side">
    <link name="${name}"><collision><geometry><sphere radius="${side * 2}"/></geometry></collision>
    </link>
    <joint name="${name}_joint" type="continuous"><parent link="base"/><child link="${name}"/>
      <axis xyz="0 0 1"/></joint>
  </xacro:macro>
</robot>"""


@pytest.fixture
def made(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "ball.xacro").write_text(BALL)
    robot = tmp_path / "made.urdf.xacro"
    robot.write_text(XACRO)
    return robot


def test_xacro_is_expanded_with_arguments_and_without_ros(made):
    model = compiled(made, xacro_args={"side": "0.3"})
    assert model.geom_size[0, 0] == pytest.approx(0.6)
    with MujocoEnv(made) as env:
        assert env.model.geom_size[0, 0] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (("$(find parts)", "$(find nothing)"), "no package 'nothing'"),
        (("ball.xacro", "gone.xacro"), "gone.xacro"),
        (("${", "${1/0 + "), "does not expand|is no XML"),
    ],
)
def test_a_xacro_that_does_not_expand_says_why(made, change, match):
    made.write_text(XACRO.replace(*change) if change[0] in XACRO else XACRO)
    if change[0] not in XACRO:
        (made.parent / "parts" / "ball.xacro").write_text(BALL.replace(*change))
    with pytest.raises(ModelLoadError, match=match):
        description.load(made)


def test_a_xacro_of_macros_only_is_called_that(made):
    with pytest.raises(ModelLoadError, match=r"only macros and no robot \(ball\)"):
        description.load(made.parent / "parts" / "ball.xacro")


BAD = [
    ("<robot name='r'/>", "has no link"),
    ("<model/>", "not a <robot>"),
    ("<robot", "is no XML"),
    ("<!DOCTYPE x><robot name='r'><link name='a'/></robot>", "document type"),
    (text().replace('<child link="upper"/>', '<child link="uper"/>'), "did you mean 'upper'"),
    (text().replace('<parent link="base"/>', '<parent link="lower"/>'), "circle|no link without"),
    (text(more='<link name="stray"/>'), "several links without a parent"),
    (text().replace('type="continuous"', 'type="hinge"'), "type 'hinge'"),
    (text().replace('lower="-1.5"', 'lower="2"'), "lower 2 above upper"),
    (text().replace('mimic joint="elbow"', 'mimic joint="elbw"'), "did you mean 'elbow'"),
    (text().replace('value="2"', 'value="-2"'), "negative mass"),
    (text().replace('ixx=".02"', 'ixx="much"'), "ixx of the inertia of link 'upper'"),
    (text().replace('name="grip"', 'name=""'), "without a name"),
    (text(lower='<collision><geometry><mesh filename="package://p/a.stl"/></geometry></collision>'),
     "package 'p'"),
    (text(lower='<collision><geometry><mesh filename="http://x/a.stl"/></geometry></collision>'),
     "package://, file:// or a path"),
]  # fmt: skip


@pytest.mark.parametrize(("bad", "match"), BAD, ids=lambda value: value[:24])
def test_what_cannot_be_is_refused_by_name(bad, match):
    with pytest.raises(ModelLoadError, match=match):
        description.load(bad)


def test_arguments_that_cannot_be_are_named(tmp_path):
    for arguments, match in (
        ({"base": "flying"}, "base must be"),
        ({"actuators": "muscle"}, "actuators must be"),
        ({"world": "moon"}, "world must be"),
        ({"packages": {"p": tmp_path / "gone"}}, "package 'p'"),
        ({"packages": ["p"]}, "packages maps"),
    ):
        with pytest.raises(InvalidArgumentError, match=match):
            description.load(text(), **arguments)


# -- meshes ----------------------------------------------------------------------------------------


def tetrahedron():
    trimesh = pytest.importorskip("trimesh")
    return trimesh.Trimesh(
        vertices=[(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)],
        faces=[(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)],
    )


@pytest.mark.parametrize("ending", ["stl", "obj", "glb", "ply", "off", "dae"])
def test_a_mesh_of_any_usual_format_keeps_its_size(ending):
    content = tetrahedron().export(file_type=ending)
    content = content.encode() if isinstance(content, str) else content
    (part,) = meshes.prepare(content, f"part.{ending}", Notes())
    spec = mujoco.MjSpec()
    spec.assets = {part.name: part.content}
    spec.add_mesh(name="m", file=part.name)
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="m")
    model = spec.compile()
    corners = model.mesh_vert
    edges = {round(float(np.linalg.norm(a - b)), 4) for a in corners for b in corners}
    assert edges == {0.0, 1.0, 1.4142}


def test_collada_in_millimetres_is_read_in_metres():
    content = tetrahedron().export(file_type="dae").replace(b'meter="1', b'meter="0.001')
    if b'meter="0.001' not in content:
        content = content.replace(b"<asset>", b'<asset><unit name="mm" meter="0.001"/>', 1)
    (part,) = meshes.prepare(content, "part.dae", Notes())
    faces = np.frombuffer(part.content[84:], np.dtype([("f", "<f4", 12), ("b", "<u2")]))["f"]
    assert np.abs(faces[:, 3:]).max() == pytest.approx(0.001)


def test_two_meshes_of_one_base_name_and_two_scales_of_one_file_do_not_meet(tmp_path):
    for folder, size in (("a", 1.0), ("b", 2.0)):
        (tmp_path / folder).mkdir()
        mesh = tetrahedron()
        mesh.apply_scale(size)
        (tmp_path / folder / "part.stl").write_bytes(mesh.export(file_type="stl"))
    shapes = "".join(
        f'<collision><geometry><mesh filename="{folder}/part.stl" scale="{s} {s} {s}"/></geometry>'
        "</collision>"
        for folder, s in (("a", 1), ("b", 1), ("a", 3))
    )
    robot = tmp_path / "r.urdf"
    robot.write_text(text(lower=shapes))
    model = compiled(robot)
    assert model.nmesh == 3
    starts, counts = model.mesh_vertadr, model.mesh_vertnum
    parts = [model.mesh_vert[a : a + n] for a, n in zip(starts, counts, strict=True)]
    assert len({round(float(np.ptp(part, 0).max()), 2) for part in parts}) == 3


@pytest.mark.parametrize(
    ("content", "name", "match"),
    [
        (b"", "a.stl", "empty"),
        (b"x" * 100, "a.stl", "is no STL"),
        (b"solid x\nfacet\nvertex 0 0 zero\n", "a.stl", "vertex|triangles"),
        (b"glTF", "a.glb", "a.glb"),
        (b"nothing", "a.dae", "a.dae"),
        (b"nothing", "a.step", "format that is not read"),
    ],
)
def test_what_is_no_mesh_is_refused_by_name(content, name, match):
    with pytest.raises(ModelLoadError, match=match):
        meshes.prepare(content, name, Notes())


# -- the command -----------------------------------------------------------------------------------


def test_convert_writes_what_plain_mujoco_loads(tmp_path, capsys):
    robot = tmp_path / "arm.urdf"
    (tmp_path / "part.stl").write_bytes(tetrahedron().export(file_type="stl"))
    shape = '<collision><geometry><mesh filename="part.stl"/></geometry></collision>'
    robot.write_text(text(lower=shape))
    out = tmp_path / "out"
    assert main(["convert", str(robot), "-o", str(out), "--world", "ground", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["report"]["meshes"] == 1
    model = mujoco.MjModel.from_xml_path(record["file"])
    expected = compiled(robot, world="ground")
    assert model.body_mass == pytest.approx(expected.body_mass)
    assert model.nmesh == 1
    assert main(["convert", str(robot), "-o", str(out)]) == 2
    assert "has something in it" in capsys.readouterr().err
    assert main(["convert", str(robot), "-o", str(out), "--force", "--strict"]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["arm.urdf", "out", "part.stl"]


def test_convert_says_in_one_line_what_is_wrong(tmp_path, capsys):
    robot = tmp_path / "arm.urdf"
    robot.write_text(text().replace('<child link="upper"/>', '<child link="uper"/>'))
    assert main(["convert", str(robot), "-o", str(tmp_path / "out")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "did you mean 'upper'" in line
    assert not (tmp_path / "out").exists()
    assert main(["convert", str(robot), "-o", "x", "--package", "p"]) == 2
