"""``mjhost convert``, and what ``mjhost check`` says of a robot."""

from __future__ import annotations

import mujoco
import pytest

from mjhost.cli import import_report
from mjhost.cli.exits import ExitStatus
from mjhost.description import ImportNote, ImportReport
from tests.description import shapes

ROBOT = """<robot name="arm">
  <link name="base"/>
  <link name="hand"><inertial><mass value="{mass}"/>
    <inertia ixx=".01" ixy="0" ixz="0" iyy=".01" iyz="0" izz=".01"/></inertial>
    <collision><geometry><mesh filename="{file}" scale="{scale}"/></geometry></collision></link>
  <joint name="wrist" type="revolute"><parent link="base"/><child link="hand"/>
    <axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="5" velocity="2"/></joint>
</robot>"""


@pytest.fixture
def robot(tmp_path):
    """Writes the arm; returns its path."""

    def write(name="arm.urdf", mass=1, file="hand.stl", scale=".1 .1 .1", text=ROBOT):
        (tmp_path / "hand.stl").write_bytes(shapes.stl())
        (tmp_path / name).write_text(text.format(mass=mass, file=file, scale=scale))
        return str(tmp_path / name)

    return write


def test_the_report_is_read_from_top_to_bottom(mjhost, robot, tmp_path):
    outcome = mjhost("convert", robot(scale="1000 1000 1000"), "-o", str(tmp_path / "out"))
    assert outcome.status == ExitStatus.OK
    lines = outcome.out.splitlines()
    assert lines[0] == f"wrote {tmp_path}/out/arm.xml"
    assert lines[1] == "arm: 2 links, 1 joint, 1 mesh, 1 actuator, 1 kg"
    headings = [line for line in lines[2:] if not line.startswith(" ")]
    assert headings[:2] == ["looks wrong:", "guessed:"]
    told = lines[3:5]
    assert told[0].startswith("  link hand: ")
    assert told[1].startswith("    -> lengths are in m")


@pytest.mark.parametrize(
    ("name", "stem"), [("arm.urdf", "arm"), ("arm.v2.URDF", "arm.v2"), ("arm.urdf.xacro", "arm")]
)
def test_the_file_is_called_after_the_description(mjhost, robot, tmp_path, name, stem):
    if name.endswith("xacro"):
        pytest.importorskip("xacrodoc")
    outcome = mjhost("convert", robot(name), "-o", str(tmp_path / "out"), "--json")
    assert outcome.status == ExitStatus.OK, outcome.err
    assert outcome.json["file"].endswith(f"/out/{stem}.xml")


def test_every_flag_reaches_the_import(mjhost, robot, tmp_path):
    (tmp_path / "arm.srdf").write_text(
        '<robot name="arm"><group_state name="home" group="a"><joint name="wrist" value=".5"/>'
        "</group_state></robot>"
    )
    text = ROBOT.replace('ixx=".01"', 'ixx="1"')
    where = robot(file="package://parts/hand.stl", text=text)
    words = ["--package", f"parts={tmp_path}", "--srdf", str(tmp_path / "arm.srdf")]
    words += ["--prefix", "left_", "--base", "free", "--actuators", "position"]
    words += ["--world", "ground", "--balance-inertia"]
    outcome = mjhost("convert", where, "-o", str(tmp_path / "out"), *words, "--json")
    assert outcome.status == ExitStatus.OK, outcome.err
    model = mujoco.MjModel.from_xml_path(outcome.json["file"])
    assert model.joint("left_wrist").qposadr[0] == 7
    assert model.nkey == 1
    assert model.actuator("left_wrist").biastype[0] == mujoco.mjtBias.mjBIAS_AFFINE
    assert model.geom("ground").type[0] == mujoco.mjtGeom.mjGEOM_PLANE


def test_what_is_only_seen_can_be_left_out(mjhost, robot, tmp_path):
    where = robot(text=ROBOT.replace("collision>", "visual>"))
    for flag, count in (("--visuals", 1), ("--no-visuals", 0)):
        outcome = mjhost("convert", where, "-o", str(tmp_path / "out"), flag, "--force", "--json")
        assert outcome.json["report"]["meshes"] == count


def test_strict_is_status_1_with_a_reason_and_writes_all_the_same(mjhost, robot, tmp_path):
    words = ("-o", str(tmp_path / "out"), "--strict", "--json")
    outcome = mjhost("convert", robot(scale="1000 1000 1000"), *words)
    assert outcome.status == ExitStatus.FAILED
    assert "look wrong or were left out" in outcome.error
    assert (tmp_path / "out" / "arm.xml").is_file()
    assert any(note["kind"] == "suspicious" for note in outcome.json["report"]["notes"])


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"file": "gone.stl"}, "gone.stl: there is no file"),
        ({"file": "package://p/a.stl"}, "--package p=FOLDER"),
        ({"mass": -1}, "link 'hand' has a negative mass"),
    ],
)
def test_what_cannot_be_is_one_line_and_leaves_nothing(mjhost, robot, tmp_path, change, error):
    outcome = mjhost("convert", robot(**change), "-o", str(tmp_path / "out"))
    assert outcome.status == ExitStatus.FAILED
    assert error in outcome.error
    assert outcome.out == ""
    assert not (tmp_path / "out").exists()


def test_force_replaces_a_conversion_and_never_the_folder_of_the_robot(mjhost, robot, tmp_path):
    where, out = robot(), str(tmp_path / "out")
    for _ in range(2):
        assert mjhost("convert", where, "-o", out, "--force").status == ExitStatus.OK
    refused = mjhost("convert", where, "-o", out)
    assert refused.status == ExitStatus.USAGE
    assert "--force" in refused.error
    refused = mjhost("convert", where, "-o", str(tmp_path), "--force")
    assert refused.status == ExitStatus.USAGE
    assert "is not replaced" in refused.error
    assert (tmp_path / "arm.urdf").is_file()


def test_check_tells_what_became_of_a_robot(mjhost, robot):
    outcome = mjhost("check", robot())
    assert outcome.status == ExitStatus.OK
    assert "arm: 2 links, 1 joint, 1 mesh, 1 actuator, 1 kg" in outcome.out.splitlines()
    assert "guessed:" in outcome.out
    assert mjhost("check", robot(), "--json").json["import_report"]["robot"] == "arm"
    assert mjhost("check", "pendulum", "--json").json["import_report"] is None


def lines_of(*notes):
    report = ImportReport(source="r", robot="r", notes=notes)
    return list(import_report.lines(report))


def test_things_of_which_the_same_is_said_share_a_line():
    notes = [ImportNote("converted", f"{n}.dae", "to stl") for n in range(6)]
    notes += [ImportNote("suspicious", f"link {n}", "is big", "make it small") for n in "ab"]
    assert lines_of(*notes) == [
        "looks wrong:",
        "  link a, b: is big",
        "    -> make it small",
        "converted:",
        "  0.dae, 1.dae, 2.dae, 3.dae and 2 more: to stl",
    ]
    assert lines_of() == []
