"""Descriptions as MJCF on disk: the same model, wholly or not at all, over nothing of others."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from mjhost import description
from mjhost.description import assets, export
from mjhost.errors import InvalidArgumentError, ModelLoadError
from tests.description import shapes

LINK = """<link name="{name}"><inertial><origin xyz="0.1234567891234 0 0" rpy="0.1 0.2 0.3"/>
<mass value="1.2345678912345"/>
<inertia ixx=".021" ixy=".001" ixz="0" iyy=".022" iyz="0" izz=".013"/></inertial>{shapes}</link>"""
JOINT = """<joint name="j{n}" type="revolute"><parent link="l{a}"/><child link="l{n}"/>
<origin xyz="0.3333333333333 0.1 0.7777777777777" rpy="0.1234567891 -1.1 2.2"/>
<axis xyz="0.6 0 0.8"/><limit lower="-1.23456789012" upper="2.3456789012" effort="9" velocity="3"/>
</joint>"""


@pytest.fixture
def robot(tmp_path):
    """A URDF of six links with meshes, two of them of one base name."""
    for folder, size in (("a", 1.0), ("b", 0.5)):
        (tmp_path / folder).mkdir()
        corners = size * 0.1 * shapes.CORNERS[shapes.FACES]
        (tmp_path / folder / "part.stl").write_bytes(shapes.stl(corners))
    (tmp_path / "Nice Name.obj").write_text(shapes.obj())
    mesh = '<{0}><geometry><mesh filename="{1}" scale=".1 .1 .2"/></geometry></{0}>'
    bodies = {
        "l0": mesh.format("visual", "Nice Name.obj"),
        "l1": mesh.format("collision", "a/part.stl"),
        "l2": mesh.format("collision", "b/part.stl") + mesh.format("visual", "b/part.stl"),
    }
    links = "".join(LINK.format(name=f"l{n}", shapes=bodies.get(f"l{n}", "")) for n in range(6))
    joints = "".join(JOINT.format(n=n, a=n - 1) for n in range(1, 6))
    path = tmp_path / "robot.urdf"
    path.write_text(f'<robot name="r">{links}{joints}</robot>')
    return path


def assert_same(model, again):
    for kind, size in (("body", "nbody"), ("joint", "njnt"), ("actuator", "nu")):
        count = getattr(model, size)
        assert count == getattr(again, size)
        for index in range(count):
            assert getattr(model, kind)(index).name == getattr(again, kind)(index).name
    for field in ("body_mass", "body_inertia", "jnt_range", "actuator_forcerange"):
        assert getattr(model, field) == pytest.approx(getattr(again, field), rel=1e-12, abs=1e-12)
    generator = np.random.default_rng(0)
    for _ in range(5):
        qpos = generator.uniform(-1, 1, model.nq)
        poses = []
        for each in (model, again):
            data = mujoco.MjData(each)
            data.qpos[:] = qpos
            mujoco.mj_kinematics(each, data)
            poses.append(
                np.concatenate([data.xpos.ravel(), data.xmat.ravel(), data.geom_xpos.ravel()])
            )
        assert poses[0] == pytest.approx(poses[1], abs=1e-9)


def test_what_was_written_is_the_same_model_in_plain_mujoco(robot, tmp_path):
    spec = description.load(robot).spec
    file = export.write(spec, tmp_path / "out", "robot")
    assert_same(spec.compile(), mujoco.MjModel.from_xml_path(str(file)))


def test_a_folder_that_was_moved_still_loads(robot, tmp_path):
    file = export.write(description.load(robot).spec, tmp_path / "out", "robot")
    moved = file.parent.rename(tmp_path / "elsewhere")
    assert mujoco.MjModel.from_xml_path(str(moved / file.name)).nmesh == 3


def test_files_and_meshes_have_the_names_of_their_sources(robot, tmp_path):
    file = export.write(description.load(robot).spec, tmp_path / "out", "robot")
    names = sorted(path.name for path in (file.parent / export.ASSETS).iterdir())
    assert names[0].startswith("Nice_Name")
    assert names[0].endswith(".obj")
    assert len([name for name in names if name.startswith("part-")]) == 2
    model = mujoco.MjModel.from_xml_path(str(file))
    assert any(model.mesh(i).name.startswith("Nice_Name") for i in range(model.nmesh))


def test_the_spec_stays_as_it_was(robot, tmp_path):
    spec = description.load(robot).spec
    before = spec.copy().compile().names, set(spec.assets)
    export.write(spec, tmp_path / "out", "robot")
    assert (spec.compile().names, set(spec.assets)) == before


def test_numbers_of_later_writers_are_as_they_were(robot, tmp_path):
    export.write(description.load(robot).spec, tmp_path / "out", "robot")
    spec = mujoco.MjSpec.from_string(
        "<mujoco><worldbody><geom size='.123456789'/></worldbody></mujoco>"
    )
    spec.compile()
    assert '"0.123457"' in spec.to_xml()


def mjcf(folder, size):
    (folder / "parts").mkdir(parents=True)
    (folder / "parts" / "m.stl").write_bytes(shapes.stl(size * shapes.CORNERS[shapes.FACES]))
    path = folder / "model.xml"
    path.write_text(
        '<mujoco><compiler meshdir="parts"/><asset><mesh file="m.stl"/></asset><worldbody>'
        '<body name="b"><freejoint/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
    )
    return path


def test_mjcf_robots_bring_their_files_and_files_of_one_name_do_not_meet(tmp_path):
    robots = [
        description.Robot(
            source=mjcf(tmp_path / name, size), prefix=f"{name}_", pos=(3 * size, 0, 2)
        )
        for name, size in (("one", 1.0), ("two", 2.0))
    ]
    spec = description.compose(robots).spec
    model = spec.compile()
    assert model.body("two_b").mass[0] == pytest.approx(8 * model.body("one_b").mass[0])
    file = export.write(spec, tmp_path / "out", "world")
    again = mujoco.MjModel.from_xml_path(str(file))
    assert again.body("two_b").mass[0] == pytest.approx(8 * again.body("one_b").mass[0])


def test_a_file_that_is_not_there_is_told():
    spec = mujoco.MjSpec()
    spec.add_mesh(name="m", file="nowhere/m.stl")
    with pytest.raises(ModelLoadError, match=r"nowhere/m\.stl: there is no file"):
        assets.embed(spec)


# -- where -----------------------------------------------------------------------------------------


def listing(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_nothing_is_left_when_it_does_not_compile(tmp_path):
    spec = mujoco.MjSpec()
    spec.worldbody.add_body(name="b").add_freejoint()
    with pytest.raises(ModelLoadError, match="does not load again"):
        export.write(spec, tmp_path / "deep" / "out", "robot")
    assert listing(tmp_path) == ["deep"]


def test_an_earlier_conversion_is_replaced_only_if_asked_and_only_by_one_that_works(
    robot, tmp_path
):
    spec, out = description.load(robot).spec, tmp_path / "out"
    export.write(spec, out, "robot")
    before = listing(out)
    with pytest.raises(InvalidArgumentError, match="has something in it"):
        export.write(spec, out, "robot")
    broken = mujoco.MjSpec()
    broken.worldbody.add_body(name="b").add_freejoint()
    with pytest.raises(ModelLoadError):
        export.write(broken, out, "robot", replace=True)
    assert listing(out) == before
    export.write(spec, out, "other", replace=True)
    assert (out / "other.xml").is_file()
    assert not (out / "robot.xml").exists()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("name", ["notes.txt", "robot.urdf", "src/main.py", "assets/deep/a.stl"])
def test_a_folder_that_somebody_filled_is_never_replaced(robot, tmp_path, name):
    out = tmp_path / "out"
    (out / name).parent.mkdir(parents=True)
    (out / name).write_text("of value")
    with pytest.raises(InvalidArgumentError, match="is not replaced"):
        export.write(description.load(robot).spec, out, "robot", replace=True)
    assert (out / name).read_text() == "of value"


def test_a_file_in_the_way_is_told(robot, tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(InvalidArgumentError, match="is there and is no folder"):
        export.write(description.load(robot).spec, tmp_path / "out", "robot", replace=True)
