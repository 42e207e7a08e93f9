"""Public reports about robot descriptions and assets; the case ids are in the docstrings."""

from __future__ import annotations

import shutil

import pytest

from mjhost import MujocoEnv, description
from mjhost.description import NoteKind
from mjhost.env.loading import ModelSource, compile_source
from mjhost.errors import ModelLoadError
from tests.cases.inputs import case_file, tetrahedron_stl

TET_OBJ = b"v 0 0 0\nv .1 0 0\nv 0 .1 0\nv 0 0 .1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "elsewhere" / "my_robot" / "meshes"
    folder.mkdir(parents=True)
    (folder / "arm.stl").write_bytes(tetrahedron_stl())
    return folder.parent


def test_meshes_of_packages_are_found_by_map_by_path_and_by_what_lies_above(
    package, tmp_path, monkeypatch
):
    """UM-01."""
    robot = shutil.copy(case_file("UM-01", "robot.urdf"), tmp_path)
    with pytest.raises(ModelLoadError, match=r"package://my_robot/meshes/arm\.stl.*'my_robot'"):
        description.load(robot)
    found = description.load(robot, packages={"my_robot": package})
    assert found.report.meshes == 1
    model = found.spec.compile()
    assert [model.joint(i).name for i in range(model.njnt)] == ["j"]
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(package.parent))
    assert description.load(robot).report.meshes == 1
    monkeypatch.delenv("ROS_PACKAGE_PATH")
    share = tmp_path / "install" / "share"
    shutil.copytree(package, share / "my_robot")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(share.parent))
    assert description.load(robot).report.meshes == 1
    monkeypatch.delenv("AMENT_PREFIX_PATH")
    inside = shutil.copy(robot, package / "robot.urdf")
    with MujocoEnv(inside) as env:
        assert env.model.nmesh == 1


def test_file_names_and_absolute_paths_are_found_too(package, tmp_path):
    """UM-01."""
    text = case_file("UM-01", "robot.urdf").read_text()
    mesh = package / "meshes" / "arm.stl"
    for name in (f"file://{mesh}", str(mesh)):
        robot = tmp_path / "robot.urdf"
        robot.write_text(text.replace("package://my_robot/meshes/arm.stl", name))
        assert description.load(robot).report.meshes == 1
    robot.write_text(text.replace("my_robot/meshes", "my_robot/../../secret"))
    with pytest.raises(ModelLoadError, match="leads out of its package"):
        description.load(robot, packages={"my_robot": package})


@pytest.mark.parametrize(
    ("content", "refused"),
    [
        (case_file("UM-03", "ascii.stl").read_bytes(), None),
        (b"solid" + tetrahedron_stl()[5:], None),
        (tetrahedron_stl()[:-30], "truncated"),
        (b"", "is empty"),
    ],
    ids=["ascii", "solid", "truncated", "empty"],
)
def test_an_stl_is_read_or_refused_by_name_never_dropped(package, tmp_path, content, refused):
    """UM-03."""
    (package / "meshes" / "arm.stl").write_bytes(content)
    robot = case_file("UM-01", "robot.urdf")
    if refused:
        with pytest.raises(ModelLoadError, match=rf"arm\.stl.*{refused}"):
            description.load(robot, packages={"my_robot": package})
    else:
        model = description.load(robot, packages={"my_robot": package}).spec.compile()
        assert model.nmeshvert == 4


def test_a_visual_that_cannot_be_had_is_told_and_refused_where_it_was_asked_for():
    """UM-04."""
    found = description.load(case_file("UM-04", "default.urdf"))
    assert found.spec.compile().ngeom == 1
    (note,) = found.report.of(NoteKind.DROPPED)
    assert "v.dae" in note.text
    with pytest.raises(ModelLoadError, match=r"v\.dae"):
        description.load(case_file("UM-04", "keep.urdf"))


def test_an_inertia_that_no_body_has_is_refused_by_link_or_balanced():
    """UM-05."""
    with pytest.raises(ModelLoadError, match=r"'arm' breaks A \+ B >= C"):
        description.load(case_file("UM-05", "bad.urdf"))
    for found in (
        description.load(case_file("UM-05", "balanced.urdf")),
        description.load(case_file("UM-05", "bad.urdf"), balance_inertia=True),
    ):
        assert found.spec.compile().body("arm").inertia.tolist() == [0.04, 0.04, 0.04]


def test_the_base_link_stays():
    """UM-07."""
    for name in ("robot.urdf", "nofuse.urdf"):
        with MujocoEnv(case_file("UM-07", name)) as env:
            assert env.names("body") == ("world", "base", "arm")
            assert env.body_inertial("base").mass == 2
            assert env.body_state("base").pos.tolist() == [0, 0, 0]
            assert env.body_state("arm").pos.tolist() == [0, 0, 1]
            assert env.model.jnt_range[0].tolist() == [-1, 1]
            assert env.model.jnt_actfrcrange[0].tolist() == [-5, 5]


def test_two_things_of_one_name_are_refused_by_name():
    """UM-09."""
    with pytest.raises(ModelLoadError, match="two links of the name 'a'"):
        description.load(case_file("UM-09", "dup_link.urdf"))
    with pytest.raises(ModelLoadError, match="two joints of the name 'j'"):
        description.load(case_file("UM-09", "dup_joint.urdf"))


def test_one_robot_twice_needs_prefixes_and_then_works():
    """UM-09."""
    robot = case_file("UM-07", "robot.urdf")
    both = [description.Robot(source=robot), description.Robot(source=robot)]
    with pytest.raises(ValueError, match="prefix"):
        description.compose(both)
    left = description.Robot(source=robot, prefix="left_")
    right = description.Robot(source=robot, prefix="right_", pos=(0, 1, 0))
    with MujocoEnv(description.compose([left, right]).spec) as env:
        assert {"left_arm", "right_arm"} <= set(env.names("body"))
        assert env.body_state("right_arm").pos.tolist() == [0, 1, 1]


def test_a_model_from_memory_finds_its_parts(tmp_path):
    """UM-10."""
    main, arm = case_file("UM-10", "main.xml"), case_file("UM-10", "parts_arm.xml")
    text, part = main.read_text(), arm.read_bytes()
    for mesh in ("meshes/a.stl", "parts/meshes/a.stl"):
        source = ModelSource.of(text, assets={"parts/arm.xml": part, mesh: tetrahedron_stl()})
        assert compile_source(source).model.nmesh == 1
    with pytest.raises(ModelLoadError, match=r"a\.stl"):
        compile_source(ModelSource.of(text, assets={"parts/arm.xml": part}))


@pytest.mark.slow
def test_thousands_of_meshes_load_from_memory():
    """UM-11."""
    meshes = {f"m{i}.obj": TET_OBJ.replace(b".1", b".%d" % (1000 + i)) for i in range(3000)}
    names = "".join(f'<mesh name="m{i}" file="m{i}.obj"/>' for i in range(3000))
    text = f"<mujoco><asset>{names}</asset><worldbody><geom size='.1'/></worldbody></mujoco>"
    assert compile_source(ModelSource.of(text, assets=meshes)).model.nmesh == 3000
    meshes["m7.obj"] = TET_OBJ
    assert compile_source(ModelSource.of(text, assets=meshes)).model.nmesh == 3000


def test_a_mesh_that_no_geom_uses_ends_nothing(host_case):
    """UM-13."""
    assert host_case("UM-13", "orphan.xml").model.nmesh == 1


FRAGMENTS = [
    ('<compiler assetdir="bag"/>', "tet.obj", "bag/tet.obj", True),
    ('<compiler assetdir="bag"/>', "tet.obj", "frag/bag/tet.obj", False),
    ("", "meshes/tet.obj", "meshes/tet.obj", True),
    ("", "meshes/tet.obj", "frag/meshes/tet.obj", True),
    ('<compiler assetdir="meshes" meshdir="bag"/>', "tet.obj", "bag/tet.obj", True),
]


@pytest.mark.parametrize(("compiler", "file", "place", "found"), FRAGMENTS)
def test_where_the_meshes_of_an_included_file_are_looked_for(
    tmp_path, compiler, file, place, found
):
    """UM-14."""
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / place).write_bytes(TET_OBJ)
    (tmp_path / "frag").mkdir(exist_ok=True)
    (tmp_path / "frag" / "f.xml").write_text(
        f'<mujoco>{compiler}<asset><mesh name="t" file="{file}"/></asset></mujoco>'
    )
    model = tmp_path / "m.xml"
    model.write_text('<mujoco><include file="frag/f.xml"/></mujoco>')
    if found:
        with MujocoEnv(model) as env:
            assert env.model.nmesh == 1
    else:
        with pytest.raises(ModelLoadError, match=r"tet\.obj"):
            MujocoEnv(model)


def test_a_file_that_is_included_twice_is_refused_by_name(host_case):
    """UM-16."""
    with pytest.raises(ModelLoadError, match=r"a_p\.xml.* already included"):
        host_case("UM-16", "m.xml")
