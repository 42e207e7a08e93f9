"""Descriptions at the edges: encodings, depth, scales, twice in a world, names of packages."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from mjhost import MujocoEnv, description
from mjhost.description.documents import DEEPEST
from mjhost.errors import ModelLoadError

LINK = """<link name="a"><inertial><mass value="1"/>
  <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>{}</link>"""
CORNERS = np.array([(0, 0, 0), (0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1)])
FACES = ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))


def robot(inside=""):
    return f'<robot name="r">{LINK.format(inside)}</robot>'


def shape(file, scale="1 1 1"):
    return f'<collision><geometry><mesh filename="{file}" scale="{scale}"/></geometry></collision>'


def tetrahedron():
    record = np.zeros(4, dtype=[("n", "<f4", 3), ("c", "<f4", (3, 3)), ("b", "<u2")])
    record["c"] = CORNERS[list(FACES)]
    return bytes(80) + struct.pack("<I", 4) + record.tobytes()


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1"])
def test_an_env_reads_a_description_in_the_encoding_that_it_declares(tmp_path, encoding):
    text = f'<?xml version="1.0" encoding="{encoding}"?>{robot()}'.replace('"a"', '"bücher"')
    file = tmp_path / "r.urdf"
    file.write_bytes(text.encode(encoding))
    with MujocoEnv(file) as env:
        assert env.body("bücher").name == "bücher"


def test_bytes_that_are_not_of_the_declared_encoding_are_told_with_their_line(tmp_path):
    file = tmp_path / "r.urdf"
    file.write_bytes(b'<robot name="r">\n<link name="\xe9"/></robot>')
    with pytest.raises(ModelLoadError, match=r"r\.urdf is no XML: .*line 2"):
        MujocoEnv(file)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be", "latin-1"])
def test_a_document_type_is_refused_in_any_encoding(tmp_path, encoding):
    declared = {"utf-16-be": "utf-16", "latin-1": "iso-8859-1"}.get(encoding, encoding)
    text = f'<?xml version="1.0" encoding="{declared}"?><!DOCTYPE robot [<!ENTITY e "x">]>'
    file = tmp_path / "r.urdf"
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    file.write_bytes(mark + (text + robot()).encode(encoding))
    with pytest.raises(ModelLoadError, match=r"r\.urdf has a document type declaration"):
        description.load(file)


def test_a_description_in_another_encoding_is_read(tmp_path):
    file = tmp_path / "r.urdf"
    file.write_bytes(f'<?xml version="1.0" encoding="utf-16"?>{robot()}'.encode("utf-16"))
    assert description.load(file).spec.compile().nbody == 2


def test_the_word_doctype_in_a_comment_is_no_declaration():
    assert description.load(robot("<!-- <!DOCTYPE --> ")).spec.compile().nbody == 2


@pytest.mark.parametrize(("over", "read"), [(0, True), (1, False)])
def test_elements_within_each_other_are_bounded(over, read):
    count = DEEPEST - 2 + over  # within <robot> and <link>
    text = robot("<x>" * count + "</x>" * count)
    if read:
        assert description.load(text).spec.compile().nbody == 2
        return
    with pytest.raises(ModelLoadError, match=rf"over {DEEPEST} elements within each other, line 2"):
        description.load(text)


def test_an_unknown_encoding_is_told():
    file = f'<?xml version="1.0" encoding="none-such"?>{robot()}'
    with pytest.raises(ModelLoadError, match="is no XML: unknown encoding"):
        description.load(file)


def test_one_file_at_two_scales_is_two_meshes(tmp_path):
    # -1 and -2 have one hash in Python, and a mirrored mesh is not the plain one
    (tmp_path / "m.stl").write_bytes(tetrahedron())
    scales = ("-1 1 1", "-2 1 1", "1 1 1", "1 -1 1", "1 1 1.0000000001")
    file = tmp_path / "r.urdf"
    file.write_text(robot("".join(shape("m.stl", scale) for scale in scales)))
    model = description.load(file).spec.compile()
    assert model.nmesh == len(scales)
    wanted = [tuple(map(float, scale.split())) for scale in scales]
    assert sorted(map(tuple, model.mesh_scale.tolist())) == sorted(wanted)


def test_a_description_can_stand_in_a_world_twice():
    one = description.load(robot(), base="free")
    pair = [
        description.Robot(source=one, prefix=p, pos=(x, 0, 0)) for p, x in (("l_", 0), ("r_", 2))
    ]
    model = description.compose(pair).spec.compile()
    assert {"l_a", "r_a"} <= {model.body(i).name for i in range(model.nbody)}


@pytest.mark.parametrize("package", ["..", ".", ""])
def test_a_package_has_a_name(tmp_path, package):
    (tmp_path / "m.stl").write_bytes(tetrahedron())
    file = tmp_path / "inner" / "r.urdf"
    file.parent.mkdir()
    file.write_text(robot(shape(f"package://{package}/m.stl")))
    with pytest.raises(ModelLoadError, match="names no package"):
        description.load(file)


@pytest.mark.parametrize("value", ["nan", "inf", "", "home", "0.5 nan"])
def test_a_pose_has_finite_numbers(tmp_path, value):
    srdf = tmp_path / "r.srdf"
    pose = f'<group_state name="home" group="g"><joint name="j" value="{value}"/></group_state>'
    srdf.write_text(f"<robot>{pose}</robot>")
    with pytest.raises(ModelLoadError, match=r"pose 'home' of .*r\.srdf has no finite numbers"):
        description.load(robot(), srdf=srdf)
