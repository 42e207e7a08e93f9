"""What a model is made of, against what the engine really opens."""

from __future__ import annotations

import mujoco
import pytest

from mjhost.cli.dependencies import model_files
from mjhost.env import MujocoEnv
from tests.cli.models import write

TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
HEIGHTS = bytes([2, 0, 0, 0, 2, 0, 0, 0]) + bytes(16)  # the engine's own format: rows, columns, f32

MAIN = """
<mujoco>
  <compiler meshdir='parts/meshes' texturedir="parts/pictures"/>
  <include file="parts/more.xml"/>
  <asset>
    <mesh name="a" file="a.obj"/>
    <hfield name="h" file="h.bin" size="1 1 1 1"/>
    <model name="child" file="parts/child.xml"/>
  </asset>
  <worldbody><geom type="mesh" mesh="a"/></worldbody>
</mujoco>
"""
MORE = '<mujocoinclude><asset><mesh name="b" file="b &amp; c.obj"/></asset></mujocoinclude>'
CHILD = '<mujoco><asset><mesh name="d" file="d.obj"/></asset></mujoco>'


@pytest.fixture
def model(tmp_path):
    (tmp_path / "parts" / "meshes").mkdir(parents=True)
    write(tmp_path / "parts", MORE, "more.xml")
    write(tmp_path / "parts", CHILD, "child.xml")
    for name in ("meshes/a.obj", "meshes/b & c.obj", "d.obj"):
        write(tmp_path / "parts", TETRAHEDRON, name)
    (tmp_path / "parts" / "meshes" / "h.bin").write_bytes(HEIGHTS)
    return write(tmp_path, MAIN)


def _names(model):
    return {path.relative_to(model.parent).as_posix() for path in model_files(model)}


def test_everything_the_engine_opens_is_listed(model):
    with MujocoEnv(model) as env:  # it compiles: each of these files was read
        assert env.model.nmesh >= 2
    assert _names(model) == {
        "model.xml",
        "parts/more.xml",
        "parts/child.xml",
        "parts/meshes/a.obj",
        "parts/meshes/b & c.obj",
        "parts/meshes/h.bin",
        "parts/d.obj",
    }


def test_existing_files_of_the_engines_own_list_are_listed(model):
    engine = set(mujoco.mju_getXMLDependencies(str(model)))
    ours = {str(path) for path in model_files(model)}
    assert {path for path in engine if path in ours} >= {str(model)}
    missing = engine - ours
    assert [path for path in missing if (model.parent / path).exists()] == []


def test_reference_that_leads_nowhere_is_looked_for_where_it_may_come(model):
    (model.parent / "parts" / "meshes" / "a.obj").unlink()
    assert {"a.obj", "parts/meshes/a.obj"} <= _names(model)


def test_half_written_model_still_tells_what_can_be_read(model):
    model.write_text(MAIN[: MAIN.index("<hfield")])
    assert {"parts/more.xml", "parts/meshes/a.obj"} <= _names(model)


def test_files_that_include_each_other_are_listed_once(tmp_path):
    write(tmp_path, '<mujoco><include file="model.xml"/></mujoco>', "other.xml")
    model = write(tmp_path, '<mujoco><include file="other.xml"/></mujoco>')
    assert _names(model) == {"model.xml", "other.xml"}


def test_paths_that_are_stripped_are_found(tmp_path):
    write(tmp_path, TETRAHEDRON, "a.obj")
    text = '<mujoco><compiler strippath="true"/><asset><mesh file="lost/a.obj"/></asset></mujoco>'
    assert "a.obj" in _names(write(tmp_path, text))


def test_meshes_of_an_urdf_are_listed(tmp_path):
    write(tmp_path, TETRAHEDRON, "a.obj")
    urdf = '<robot name="r"><link name="l"><visual><mesh filename="a.obj"/></visual></link></robot>'
    assert _names(write(tmp_path, urdf, "r.urdf")) == {"r.urdf", "a.obj"}


def test_what_a_mesh_is_read_with_is_listed(tmp_path):
    write(tmp_path, f"mtllib colours.mtl\n{TETRAHEDRON}", "a.obj")
    write(tmp_path, '{"buffers": [{"uri": "b.bin"}, {"uri": "data:,"}]}', "b.gltf")
    write(tmp_path, "{", "broken.gltf")
    shapes = "".join(f'<mesh filename="{file}"/>' for file in ("a.obj", "b.gltf", "broken.gltf"))
    names = _names(write(tmp_path, f"<robot>{shapes}</robot>", "r.urdf"))
    assert names == {"r.urdf", "a.obj", "colours.mtl", "b.gltf", "b.bin", "broken.gltf"}


@pytest.mark.parametrize("name", ["model.mjb", "absent.xml"])
def test_what_cannot_be_read_is_watched_itself(name, tmp_path):
    assert model_files(tmp_path / name) == {tmp_path / name}


def test_absolute_references_stay(tmp_path):
    mesh = write(tmp_path, TETRAHEDRON, "a.obj")
    inside = tmp_path / "inside"
    inside.mkdir()
    model = write(inside, f'<mujoco><asset><mesh file="{mesh}"/></asset></mujoco>')
    assert mesh in model_files(model)


ROBOT = """<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:include filename="$(find parts)/arm.xacro"/>
  <link name="base"/>
</robot>"""
ARM = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:macro name="arm" params="side"><link name="l"><visual><geometry>
    <mesh filename="package://parts/meshes/arm_${side}.stl"/></geometry></visual></link>
  </xacro:macro>
</robot>"""


def test_includes_and_meshes_of_a_xacro_are_listed(tmp_path):
    (tmp_path / "parts" / "meshes").mkdir(parents=True)
    write(tmp_path / "parts", ARM, "arm.xacro")
    for name in ("arm_left.stl", "arm_right.stl", "leg.stl"):
        (tmp_path / "parts" / "meshes" / name).write_bytes(b"")
    model = write(tmp_path, ROBOT, "r.urdf.xacro")
    assert _names(model) == {
        "r.urdf.xacro",
        "parts/arm.xacro",
        "parts/meshes/arm_left.stl",
        "parts/meshes/arm_right.stl",
    }


def test_a_package_that_is_nowhere_hides_no_other_file(tmp_path):
    (tmp_path / "a.stl").write_bytes(b"")
    meshes = ("package://gone/b.stl", "a.stl", "package://gone/../../c.stl")
    shapes = "".join(f'<mesh filename="{name}"/>' for name in meshes)
    model = write(tmp_path, f'<robot name="r"><link name="l">{shapes}</link></robot>', "r.urdf")
    assert _names(model) == {"r.urdf", "a.stl"}
