"""Mesh files: nothing of one gets lost, or it is told; what is none is refused by name."""

from __future__ import annotations

import io
import json
import sys
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mjhost.description import NoteKind, collection, meshes, surfaces
from mjhost.description.report import Notes
from mjhost.errors import ModelLoadError
from tests.description import shapes


def prepared(content, name="part.stl", beside=None):
    """Parts of a mesh, and what was said of it by kind."""
    notes = Notes()
    parts = meshes.prepare(content, name, notes, beside)
    told = {}
    for note in notes.found:
        assert note.subject == name
        told.setdefault(str(note.kind), []).append(note.text)
    return parts, told


def extent(part):
    return np.ptp(shapes.corners_of(part), axis=0)


# -- STL -------------------------------------------------------------------------------------------


def test_binary_stl_is_passed_on_as_it_is_whatever_its_header_says():
    for header in (b"", b"solid part", b"solid facet normal"):
        content = shapes.stl(header=header)
        (part,), told = prepared(content)
        assert part.content == content
        assert told == {}


@pytest.mark.parametrize("change", [bytes, bytes.upper, lambda c: c.replace(b"\n", b"\r\n  ")])
def test_ascii_stl_is_converted(change):
    (part,), told = prepared(change(shapes.ascii_stl()))
    assert shapes.compiled(part).body_mass[1] == pytest.approx(shapes.VOLUME, rel=1e-5)
    assert told == {"converted": ["ASCII STL to binary"]}


def test_bytes_after_the_last_face_are_told():
    (part,), told = prepared(shapes.stl() + b"made by hand")
    assert part.content == shapes.stl()
    assert told == {"dropped": ["12 bytes after its last face are not read"]}


def test_more_faces_than_the_engine_takes_of_an_stl_come_as_another_format(monkeypatch):
    monkeypatch.setattr(surfaces, "MOST_STL_FACES", 3)
    (part,), _ = prepared(shapes.stl())
    assert part.name.endswith(".obj")
    assert shapes.compiled(part).body_mass[1] == pytest.approx(shapes.VOLUME, rel=1e-5)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "is empty"),
        (b"x" * 40, "is no STL"),
        (shapes.stl()[:-1], r"4 faces need 284 bytes, it has 283; it is truncated"),
        (shapes.stl([]), "has no triangles"),
        (shapes.ascii_stl()[:-60], "truncated|no triangles"),
        (shapes.ascii_stl().replace(b"vertex 1 0 0", b"vertex 1 O 0"), "a vertex that is none"),
        (shapes.stl(shapes.CORNERS[shapes.FACES] * np.nan), "not finite"),
        (shapes.stl(shapes.CORNERS[shapes.FACES] * 1e30), "farther than"),
        (shapes.stl(np.zeros((4, 3, 3))), "has no size"),
        (shapes.stl([[(0, 0, 0), (1, 0, 0), (2, 0, 0)]] * 4), "corners lie on a line"),
    ],
)
def test_an_stl_that_is_none_is_refused_by_name(content, match):
    with pytest.raises(ModelLoadError, match=rf"^part\.stl .*({match})"):
        prepared(content)


@given(cut=st.integers(0, 283), flips=st.lists(st.tuples(st.integers(0, 283), st.integers(0, 255))))
@settings(deadline=None, max_examples=60)
def test_damage_is_refused_by_name_or_taken_by_the_engine(cut, flips):
    content = bytearray(shapes.stl())
    for place, value in flips:
        content[place] = value
    for damaged in (bytes(content), bytes(content[:cut])):
        try:
            parts, _ = prepared(damaged)
        except ModelLoadError as error:
            assert str(error).startswith("part.stl ")
        else:
            assert all(np.isfinite(extent(part)).all() for part in parts)


# -- flat ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("corners", [shapes.SQUARE, shapes.SQUARE[:1]], ids=["square", "triangle"])
@pytest.mark.parametrize("collides", [True, False])
def test_what_is_flat_gets_a_back_side_and_loads(corners, collides):
    (part,), told = prepared(shapes.stl(corners * 0.2))
    model = shapes.compiled(part, collides=collides, inertia='inertia="shell"')
    assert model.nmeshvert >= 6
    assert sorted(extent(part).round(3).tolist()) == [0.0, 0.2, 0.2]
    (text,) = told["defaulted"]
    assert text.startswith("is flat; given a back side 0.0002")


# -- OBJ -------------------------------------------------------------------------------------------


def test_a_simple_obj_is_passed_on_as_it_is():
    content = f"# made by hand\no part\n{shapes.obj()}\n".encode()
    (part,), told = prepared(content, "part.obj")
    assert part.content == content
    assert told == {}


@pytest.mark.parametrize("word", ["o", "g"])
def test_all_groups_of_an_obj_are_kept(word):
    """The engine by itself drops the faces of all but the first."""
    content = f"{word} a\n{shapes.obj()}\n{word} b\n{shapes.obj(4, 5.0)}\n".encode()
    (part,), told = prepared(content, "part.obj")
    model = shapes.compiled(part)
    assert model.nmeshface == 8
    assert extent(part)[0] == pytest.approx(6)
    assert told == {"converted": ["all of its groups, in 1 part(s) by colour"]}


MTL = b"newmtl red\nKd 1 0 0\nnewmtl glass\nKd 0 0 1\nd 0.5\n"


def test_an_obj_has_the_colours_of_its_materials(tmp_path):
    (tmp_path / "part.mtl").write_bytes(MTL)
    content = f"mtllib part.mtl\nusemtl red\n{shapes.obj()}\nusemtl glass\n{shapes.obj(4, 5.0)}"
    parts, _ = prepared(content.encode(), "part.obj", tmp_path)
    assert [part.rgba for part in parts] == [(1, 0, 0, 1), (0, 0, 1, 0.5)]
    content = f"mtllib part.mtl\nusemtl red\n{shapes.obj()}\n".encode()
    (part,), told = prepared(content, "part.obj", tmp_path)
    assert (part.content, part.rgba, told) == (content, (1, 0, 0, 1), {})


def test_materials_that_are_not_there_or_elsewhere_are_told(tmp_path):
    (tmp_path / "secret.mtl").write_bytes(MTL)
    folder = tmp_path / "meshes"
    folder.mkdir()
    content = f"mtllib ../secret.mtl\nusemtl red\n{shapes.obj()}\n".encode()
    (part,), told = prepared(content, "part.obj", folder)
    assert part.rgba is None
    assert told == {"dropped": ["materials ../secret.mtl are not beside it"]}


def test_polygons_and_indices_from_the_end_are_read():
    square = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0.5 0.5 1\n"
    sides = "f 1/1/1 2/2/2 5\nf -4 -3 -1\nf 3//1 4//2 5\nf 4 1 \\\n5\n"
    content = f"{square}g base\nf 4 3 2 1\ng sides\n{sides}".encode()
    (part,), _ = prepared(content, "part.obj")
    model = shapes.compiled(part)
    assert model.nmeshface == 6
    assert model.body_mass[1] == pytest.approx(1 / 3, rel=1e-5)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"# nothing\n", "has no triangles"),
        (shapes.obj().replace("v 1 0 0", "v 1 O 0").encode(), "a vertex that is none"),
        (shapes.obj().replace("v 1 0 0", "v nan 0 0").encode(), "not finite"),
        (f"g a\n{shapes.obj()}\ng b\nf 1 2 9".encode(), "line 11 whose corners are not there"),
        (f"g a\n{shapes.obj()}\ng b\nf 1 2 x".encode(), "a face that is none in line 11"),
        (f"g a\n{shapes.obj()}\ng b\nf 1 2".encode(), "line 11 whose corners are not there"),
        (shapes.obj().replace("f 1 3 2", "f 1 3 7").encode(), "line 5 whose corners are not there"),
    ],
)
def test_an_obj_that_is_none_is_refused_by_name(content, match):
    with pytest.raises(ModelLoadError, match=rf"^part\.obj .*{match}"):
        prepared(content, "part.obj")


# -- formats with a scene --------------------------------------------------------------------------


def test_transforms_of_a_scene_are_applied():
    nodes = shapes.dae_node(0) + shapes.dae_node(0, "1 0 0 4 0 1 0 0 0 0 1 0 0 0 0 1")
    (part,), _ = prepared(shapes.dae(nodes=nodes), "part.dae")
    assert extent(part) == pytest.approx([5, 1, 1])


def test_a_mirror_in_a_scene_turns_nothing_inside_out():
    nodes = shapes.dae_node(0, "-1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1")
    (part,), _ = prepared(shapes.dae(nodes=nodes), "part.dae")
    assert shapes.compiled(part).body_mass[1] == pytest.approx(shapes.VOLUME, rel=1e-5)
    corners = np.frombuffer(
        part.content[84:], [("n", "<f4", 3), ("c", "<f4", (3, 3)), ("b", "<u2")]
    )
    assert np.linalg.det(corners["c"].astype(float)).sum() > 0


def test_each_colour_is_a_part():
    found = shapes.dae(colours=("1 0 0 1", "0 1 0 1", "1 0 0 1"))
    parts, told = prepared(found, "part.dae")
    assert [part.rgba for part in parts] == [(1, 0, 0, 1), (0, 1, 0, 1)]
    assert len({part.name for part in parts}) == 2
    assert "dae to stl, 2 part(s) by colour" in told["converted"]


@pytest.mark.parametrize(
    ("unit", "metres"),
    [('<unit name="mm" meter="0.001"/>', 1e-3), ("<unit meter='0.0254' name='inch'/>", 0.0254)],
)
def test_the_unit_of_collada_is_honoured_and_told(unit, metres):
    (part,), told = prepared(shapes.dae(unit=unit), "part.dae")
    assert extent(part) == pytest.approx([metres] * 3)
    assert f"its unit is {metres:g} m" in told["converted"]


@pytest.mark.parametrize("unit", ["0", "-1", "nan", "x", ""])
def test_a_unit_that_is_none_is_refused_by_name(unit):
    with pytest.raises(ModelLoadError, match=r"^part\.dae "):
        prepared(shapes.dae(unit=f'<unit name="u" meter="{unit}"/>'), "part.dae")


def test_axes_are_taken_as_they_are_and_told():
    (part,), told = prepared(shapes.dae(up="Y_UP"), "part.dae")
    assert shapes.corners_of(part).min(axis=0) == pytest.approx([0, 0, 0], abs=1e-6)
    assert told["defaulted"] == ["says that Y is up; taken as it is, as RViz and Gazebo do"]
    assert "defaulted" not in prepared(shapes.dae(), "part.dae")[1]


def test_a_document_type_is_not_read():
    bomb = b'<!DOCTYPE c [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'
    content = shapes.dae().replace(b"<COLLADA", bomb + b"<COLLADA")
    with pytest.raises(ModelLoadError, match=r"^part\.dae has a document type declaration"):
        prepared(content, "part.dae")


def test_collada_that_is_broken_in_parts_is_told():
    content = shapes.dae(colours=("1 0 0 1", "0 1 0 1")).replace(b'url="#g1"', b'url="#none"')
    (part,), told = prepared(content, "part.dae")
    assert part.rgba == (1, 0, 0, 1)
    assert "is broken in parts, which are left out" in told["dropped"][0]


def test_gltf_finds_its_buffers_beside_it_and_nowhere_else(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    files = trimesh.Trimesh(shapes.CORNERS, shapes.FACES).export(file_type="gltf")
    document = files.pop("model.gltf")
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    (part,), told = prepared(document, "part.gltf", tmp_path)
    assert extent(part) == pytest.approx([1, 1, 1])
    assert "says that Y is up" in told["defaulted"][0]
    with pytest.raises(ModelLoadError, match=r"^part\.gltf refers to .*\.bin, which are not"):
        prepared(document, "part.gltf", None)
    changed = json.loads(document)
    changed["buffers"][0]["uri"] = f"../{tmp_path.name}/{changed['buffers'][0]['uri']}"
    below = tmp_path / "below"
    below.mkdir()
    with pytest.raises(ModelLoadError, match="which are not beside it"):
        prepared(json.dumps(changed).encode(), "part.gltf", below)


def test_3mf_is_in_millimetres_and_an_archive_that_unfolds_to_too_much_is_not_opened(monkeypatch):
    trimesh = pytest.importorskip("trimesh")
    pytest.importorskip("lxml")
    content = trimesh.Trimesh(shapes.CORNERS, shapes.FACES).export(file_type="3mf")
    (part,), told = prepared(content, "part.3mf")
    assert extent(part) == pytest.approx([1e-3] * 3)
    assert "its unit is 0.001 m" in told["converted"]
    full = io.BytesIO()
    with zipfile.ZipFile(full, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("3D/3dmodel.model", bytes(100_000))
    monkeypatch.setattr(collection, "_MOST_UNPACKED", 99_999)
    with pytest.raises(ModelLoadError, match=r"^part\.3mf unfolds to 100000 bytes"):
        prepared(full.getvalue(), "part.3mf")


@pytest.mark.parametrize("index", [7, -1])
def test_corners_that_are_not_there_are_told(index):
    trimesh = pytest.importorskip("trimesh")
    content = trimesh.Trimesh(shapes.CORNERS, shapes.FACES).export(
        file_type="ply", encoding="ascii"
    )
    text = content.decode() if isinstance(content, bytes) else content
    with pytest.raises(ModelLoadError, match=rf"^part\.ply has a face with corner {index} of 4"):
        prepared(text.replace("3 0 2 1", f"3 0 2 {index}").encode(), "part.ply")


def test_what_has_no_size_is_told():
    with pytest.raises(ModelLoadError, match=r"^part\.stl has no size: it is 1\.\d+e-12 across"):
        prepared(shapes.stl(1e-12 * shapes.CORNERS[shapes.FACES]))


def test_colours_of_corners_are_taken_if_they_are_one():
    trimesh = pytest.importorskip("trimesh")
    mesh = trimesh.Trimesh(shapes.CORNERS, shapes.FACES, process=False)
    mesh.visual.vertex_colors = [255, 0, 0, 255]
    (part,), told = prepared(mesh.export(file_type="ply"), "part.ply")
    assert part.rgba == (1, 0, 0, 1)
    assert "dropped" not in told
    mesh.visual.vertex_colors = [[255, 0, 0, 255], [0, 255, 0, 255]] * 2
    (part,), told = prepared(mesh.export(file_type="ply"), "part.ply")
    assert part.rgba is None
    assert told["dropped"] == ["has a colour per corner; none is taken"]


@pytest.mark.parametrize("ending", sorted(collection.ENDINGS))
def test_what_is_not_of_its_ending_is_refused_by_name(ending):
    for content in (b"nothing", bytes(200), b"{}", b"<a/>"):
        with pytest.raises(ModelLoadError, match=rf"^part\.{ending} "):
            prepared(content, f"part.{ending}")


@pytest.mark.parametrize("missing", ["trimesh", "collada"])
def test_without_the_extra_its_formats_say_so_and_others_are_read(monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    content = shapes.dae(colours=("0 0 0 1",)) + f"<!-- {missing} -->".encode()
    with pytest.raises(ModelLoadError, match=r"^part\.dae needs .*'mjhost\[description\]'"):
        prepared(content, "part.dae")
    assert len(prepared(shapes.stl())[0]) == 1
    assert len(prepared(shapes.obj().encode(), "part.obj")[0]) == 1


# -- bounds and names ------------------------------------------------------------------------------


def test_bounds_are_told_before_anything_is_converted(monkeypatch):
    monkeypatch.setattr(meshes, "MOST_BYTES", 283)
    with pytest.raises(ModelLoadError, match=r"^part\.stl is longer than 283 bytes"):
        prepared(shapes.stl())
    monkeypatch.setattr(surfaces, "MOST_FACES", 3)
    with pytest.raises(ModelLoadError, match=r"^part\.obj has 4 triangles, more than 3: simplify"):
        prepared(shapes.obj(shift=1.5).encode(), "part.obj")


def test_a_format_that_is_not_read_is_told_with_those_that_are():
    with pytest.raises(ModelLoadError, match=r"^part\.step .*meshes are stl, obj, msh, dae, glb"):
        prepared(b"x", "part.step")
    with pytest.raises(ModelLoadError, match="^part is of a format"):
        prepared(b"x", "part")


def test_the_name_of_an_asset_says_which_file_it_is_and_what_is_in_it():
    (part,), _ = prepared(shapes.stl(), "left arm (v2).STL")
    (same,), _ = prepared(shapes.stl(), "left arm (v2).STL")
    (other,), _ = prepared(shapes.stl(2 * shapes.CORNERS[shapes.FACES]), "left arm (v2).STL")
    assert part.name.startswith("left_arm_v2-")
    assert part.name == same.name != other.name


def test_notes_are_those_of_the_enum():
    notes = Notes()
    meshes.prepare(shapes.ascii_stl(), "part.stl", notes)
    assert notes.found[0].kind is NoteKind.CONVERTED
