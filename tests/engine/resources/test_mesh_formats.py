"""The bundled decoders of OFF and PLY: what they read, and that no damage gets past them."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mjhost.engine.builtin import off, ply
from mjhost.engine.meshes import checked, triangles
from tests.engine.resources.helpers import FACES, VERTICES, load, with_meshes

CUBE = [(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)]
QUADS = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
MIXED = [(0, 1, 3), (0, 3, 2), *QUADS[1:]]


def off_text(vertices, faces, header="OFF\n{} {} 0\n", vertex_tail="", face_tail=""):
    lines = [header.format(len(vertices), len(faces)).rstrip("\n")]
    lines += [" ".join(map(repr, map(float, point))) + vertex_tail for point in vertices]
    lines += [f"{len(face)} " + " ".join(map(str, face)) + face_tail for face in faces]
    return "\n".join(lines).encode()


KINDS = {"char": "b", "uchar": "B", "short": "h", "ushort": "H", "int": "i", "uint": "I"}
KINDS |= {"float": "f", "double": "d"}


class Ply:
    """A PLY file, in parts that a test may change."""

    def __init__(self, vertices, faces):
        self.vertices, self.faces = vertices, faces
        self.coordinate, self.count, self.index = "float", "uchar", "int"
        self.name = "vertex_indices"
        self.vertex_extra, self.face_before, self.face_after = [], [], []  # (declaration, values)
        self.elements_before = []  # (name, declarations, rows of (kind or list kinds, value))

    def header(self, form):
        lines = ["ply", f"format {form} 1.0", "comment made by a test", "obj_info none"]
        for name, declarations, rows in self.elements_before:
            lines += [f"element {name} {len(rows)}", *declarations]
        lines += [f"element vertex {len(self.vertices)}"]
        lines += [f"property {self.coordinate} {axis}" for axis in "xyz"]
        lines += [declaration for declaration, _ in self.vertex_extra]
        lines += [f"element face {len(self.faces)}"]
        lines += [declaration for declaration, _ in self.face_before]
        lines += [f"property list {self.count} {self.index} {self.name}"]
        lines += [declaration for declaration, _ in self.face_after]
        return "\n".join([*lines, "end_header", ""]).encode()

    def rows(self):
        for _, _, rows in self.elements_before:
            yield from rows
        extra = [pair for _, values in self.vertex_extra for pair in values]
        for point in self.vertices:
            yield [(self.coordinate, value) for value in point] + extra
        before = [pair for _, values in self.face_before for pair in values]
        after = [pair for _, values in self.face_after for pair in values]
        for face in self.faces:
            yield [*before, (self.count, len(face)), *((self.index, i) for i in face), *after]

    def text(self):
        lines = [" ".join(str(value) for _, value in row) for row in self.rows()]
        return self.header("ascii") + "\n".join(lines).encode() + b"\n"

    def binary(self, order):
        body = b"".join(
            struct.pack(order + KINDS[kind], value) for row in self.rows() for kind, value in row
        )
        name = {"<": "binary_little_endian", ">": "binary_big_endian"}[order]
        return self.header(name) + body

    def forms(self):
        return [self.text(), self.binary("<"), self.binary(">")]


def same(mesh, vertices, faces):
    found = checked(*mesh)
    np.testing.assert_array_equal(found.vertices, np.asarray(vertices, np.float32))
    expected = [(f[0], f[i], f[i + 1]) for f in faces for i in range(1, len(f) - 1)]
    np.testing.assert_array_equal(found.faces, expected)


# -- polygons ------------------------------------------------------------------------------------


@pytest.mark.slow
@given(st.lists(st.integers(3, 9), max_size=30))
def test_polygons_become_fans(counts):
    faces = [tuple(range(7 * n, 7 * n + count)) for n, count in enumerate(counts)]
    flat = np.array([i for face in faces for i in face], np.int64)
    found = triangles(np.array(counts, np.int64), flat)
    expected = [(f[0], f[i], f[i + 1]) for f in faces for i in range(1, len(f) - 1)]
    assert found.tolist() == [list(t) for t in expected]


# -- OFF -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        off_text(CUBE, MIXED),
        off_text(CUBE, MIXED, header="OFF {} {} 0\n"),
        off_text(CUBE, MIXED, header="OFF{} {} 0\n"),
        off_text(CUBE, MIXED, header="# first\nOFF # here\n\n  {} {}\n"),
        off_text(CUBE, MIXED, header="COFF\n{} {} 0\n", vertex_tail=" 255 0 0 255"),
        off_text(CUBE, MIXED, header="NOFF\n{} {} 0\n", vertex_tail=" 0 0 1"),
        off_text(CUBE, MIXED, face_tail=" 0.5 0.5 0.5 # grey"),
        off_text(CUBE, MIXED).replace(b"\n", b"\r\n"),
    ],
    ids=["plain", "one line", "stuck", "comments", "colours", "normals", "face colours", "crlf"],
)
def test_off_is_read_in_all_its_spellings(text):
    same(off.parse(text), CUBE, MIXED)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "begins with OFF"),
        (b"solid x", "begins with OFF, this one with 'solid x'"),
        (b"4OFF\n1 1 1", "begins with OFF"),
        (b"OFF BINARY\n", "binary OFF is not read"),
        (b"OFF\n", "come the numbers of vertices"),
        (b"OFF\n4 x 0\n", "come the numbers of vertices"),
        (b"OFF\n-4 4 0\n", "come the numbers of vertices"),
        (b"OFF\n0 0 0\n", "are no mesh"),
        (b"OFF\n4000000000 4 0\n0 0 0\n", "promises 4000000000 vertices"),
        (off_text(VERTICES, FACES)[:-12], "3 faces|promises 4 vertices and 4 faces"),
        (off_text(VERTICES, [(0, 1)]), "face 0 cannot have 2 corners"),
        (off_text(VERTICES, FACES).replace(b"3 0 2 1", b"999999999 0 2 1"), "999999999 corners"),
        (off_text(VERTICES, FACES).replace(b"3 0 2 1", b"4 0 2 1"), "face 0 needs 5 numbers"),
        (off_text(VERTICES, FACES).replace(b"3 0 2 1", b"3 0 2.5 1"), "whole numbers"),
        (off_text(VERTICES, FACES).replace(b"3 0 2 1", b"3 0 2 4"), "vertex 4, but there are 4"),
        (off_text(VERTICES, FACES).replace(b"3 0 2 1", b"3 0 2 -1"), "vertex -1"),
        (off_text(VERTICES, FACES).replace(b"1.0 0.0 0.0", b"1.0 0.0"), "vertex 1 needs 3 numbers"),
        (off_text(VERTICES, FACES).replace(b"1.0 0.0 0.0", b"1.0 up 0.0"), "vertex 1 needs 3"),
    ],
)
def test_what_is_wrong_with_an_off_file_is_said(text, words):
    with pytest.raises(ValueError, match=words):
        off.parse(text)


# -- PLY -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("faces", [FACES, QUADS, MIXED], ids=["triangles", "quads", "mixed"])
@pytest.mark.parametrize("coordinate", ["float", "double"])
@pytest.mark.parametrize("count", ["uchar", "int"])
@pytest.mark.parametrize("index", ["int", "uint", "ushort", "uchar"])
def test_ply_is_read_in_all_its_types(faces, coordinate, count, index):
    file = Ply(CUBE, faces)
    file.coordinate, file.count, file.index = coordinate, count, index
    for content in file.forms():
        same(ply.parse(content), CUBE, faces)


def test_what_else_is_in_a_ply_file_is_passed_over():
    file = Ply(CUBE, MIXED)
    file.name = "vertex_index"
    file.vertex_extra = [
        ("property float nx", [("float", 1.0)]),
        ("property uchar red", [("uchar", 255)]),
        ("property list uchar short tags", [("uchar", 2), ("short", -1), ("short", 7)]),
    ]
    file.face_before = [
        ("property uchar flags", [("uchar", 3)]),
        ("property list uchar float texcoord", [("uchar", 2), ("float", 0.5), ("float", 0.25)]),
    ]
    file.face_after = [("property double quality", [("double", 0.5)])]
    file.elements_before = [
        ("camera", ["property int a", "property list uchar int b"], [
            [("int", 1), ("uchar", 1), ("int", 9)],
            [("int", 2), ("uchar", 3), ("int", 9), ("int", 9), ("int", 9)],
        ]),
        ("nothing", ["property int a"], []),
    ]  # fmt: skip
    for content in file.forms():
        same(ply.parse(content), CUBE, MIXED)


def test_lists_of_vertices_may_differ_in_length_if_they_come_last():
    header = (
        b"ply\nformat binary_little_endian 1.0\nelement vertex 4\nproperty float x\n"
        b"property float y\nproperty float z\nproperty list uchar uchar tags\nelement face 4\n"
        b"property list uchar uchar vertex_indices\nend_header\n"
    )
    points = b"".join(
        struct.pack("<3fB", *point, number) + bytes(number) for number, point in enumerate(VERTICES)
    )
    corners = b"".join(struct.pack("<4B", 3, *face) for face in FACES)
    same(ply.parse(header + points + corners), VERTICES, FACES)


@pytest.mark.parametrize("ending", [b"\r\n", b"\n"])
def test_headers_end_their_lines_either_way(ending):
    content = Ply(VERTICES, FACES).binary("<")
    end = content.index(b"end_header\n") + len(b"end_header\n")
    same(ply.parse(content[:end].replace(b"\n", ending) + content[end:]), VERTICES, FACES)


def test_a_body_that_begins_like_the_end_of_a_line_is_read_in_full():
    file = Ply([(struct.unpack("<f", b"\n\r\n\r")[0], 0.0, 0.0), *CUBE], FACES)
    same(ply.parse(file.binary("<")), file.vertices, FACES)


def changed(old, new, form=0):
    content = Ply(VERTICES, FACES).forms()[form]
    assert old in content
    return content.replace(old, new, 1)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "begins with a line ply"),
        (b"solid", "begins with a line ply"),
        (b"ply\n" + b"comment x\n" * 10_000, "no end_header"),
        (changed(b"format ascii 1.0", b"format ascii 2.0"), "format of version 1.0"),
        (changed(b"format ascii 1.0", b"format utf8 1.0"), "the format is ascii"),
        (changed(b"element vertex", b"element point"), "has vertices and faces"),
        (changed(b"element face", b"element strip"), "has vertices and faces"),
        (changed(b"property float z", b"property float w"), "no property z"),
        (changed(b"property float z", b"property quad z"), "'quad' is no type"),
        (changed(b"list uchar int", b"list float int"), "no type of a count"),
        (changed(b"vertex_indices", b"corners"), "no list vertex_indices"),
        (changed(b"property float x", b"property float"), "means nothing"),
        (changed(b"element vertex 4", b"element vertex -4"), "means nothing"),
        (changed(b"element vertex 4", b"element vertex 0", 1), "4 rows of face|no mesh|corners"),
        (changed(b"element vertex 4", b"element vertex 4000000000"), "promises 4000000000"),
        (changed(b"element vertex 4", b"element vertex 4000000000", 1), "promises 4000000000"),
        (changed(b"element face 4", b"element face 4000000000"), "promises 4000000000"),
        (changed(b"element face 4", b"element face 4000000000", 1), "promises 4000000000"),
        (changed(b"list uchar int", b"list uchar float", 1), "no whole numbers"),
        (changed(b"3 0 2 1", b"3 0 2 4"), "vertex 4, but there are 4"),
        (changed(b"3 0 2 1", b"2 0 2"), "face 0 cannot have 2 corners"),
        (changed(b"3 0 2 1", b"3 0 2"), "face 0 needs 4 numbers"),
        (changed(struct.pack("<B3i", 3, 0, 2, 1), struct.pack("<B3i", 2, 0, 2, 1), 1), "corners"),
        (changed(struct.pack("<B3i", 3, 0, 2, 1), struct.pack("<B3i", 3, 0, 2, 4), 1), "vertex 4"),
        (
            changed(struct.pack("<B3i", 3, 0, 2, 1), struct.pack("<B3i", 3, 0, 2, -9), 1),
            "vertex -9",
        ),
        (Ply(VERTICES, FACES).binary("<")[:-1], "do not hold"),
        (Ply(VERTICES, []).text(), "4 vertices and 0 faces are no mesh"),
        (Ply(VERTICES, []).binary(">"), "4 vertices and 0 faces are no mesh"),
    ],
)
def test_what_is_wrong_with_a_ply_file_is_said(content, words):
    with pytest.raises(ValueError, match=words):
        ply.parse(content)


@pytest.mark.slow
def test_large_meshes_are_read_in_time_linear_in_their_size():
    count = 200_000
    grid = np.random.default_rng(1).normal(size=(count, 3)).astype("<f4")
    header = (
        f"ply\nformat binary_little_endian 1.0\nelement vertex {count}\nproperty float x\n"
        f"property float y\nproperty float z\nelement face {count}\n"
        "property list uchar int vertex_indices\nend_header\n"
    ).encode()
    rows = []
    for index in range(count):
        corners = 3 + index % 2  # the worst case: no two rows alike
        rows.append(struct.pack(f"<B{corners}i", corners, *range(corners)))
    mesh = ply.parse(header + grid.tobytes() + b"".join(rows))
    assert (len(mesh.vertices), len(mesh.faces)) == (count, count + count // 2)


# -- both ----------------------------------------------------------------------------------------

SOURCES = [off_text(CUBE, MIXED), *Ply(CUBE, MIXED).forms(), *Ply(CUBE, QUADS).forms()]


def read_or_refused(content):
    """Parses as the decoders do; only ValueError may come out."""
    parse = off.parse if content[:3] == b"OFF" else ply.parse
    try:
        vertices, faces = parse(content)
        checked(vertices, faces)
    except ValueError:
        return
    assert np.asarray(faces).max() < len(vertices)


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(st.data())
def test_damaged_files_are_read_or_refused(data):
    content = bytearray(data.draw(st.sampled_from(SOURCES)))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(content) - 1))
        kind = data.draw(st.sampled_from(["flip", "cut", "drop", "insert"]))
        if kind == "flip":
            content[at] = data.draw(st.integers(0, 255))
        elif kind == "cut":
            del content[max(at, 1) :]
        elif kind == "drop":
            del content[at : at + data.draw(st.integers(1, 8))]
        else:
            content[at:at] = data.draw(st.binary(max_size=8))
        if not content:
            break
    read_or_refused(bytes(content))


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=200), st.sampled_from(["OFF\n", "ply\nformat ascii 1.0\n"]))
def test_garbage_behind_a_header_is_refused(garbage, header):
    read_or_refused(header.encode() + garbage)


numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(st.data())
def test_every_mesh_is_read_as_it_was_written(data):
    vertices = data.draw(st.lists(st.tuples(numbers, numbers, numbers), min_size=3, max_size=9))
    corner = st.integers(0, len(vertices) - 1)
    faces = data.draw(
        st.lists(st.lists(corner, min_size=3, max_size=6).map(tuple), min_size=1, max_size=8)
    )
    same(off.parse(off_text(vertices, faces)), vertices, faces)
    for content in Ply(vertices, faces).forms():
        same(ply.parse(content), vertices, faces)


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.off", SOURCES[0]), *((f"a{i}.PLY", form) for i, form in enumerate(SOURCES[1:]))],
)
def test_models_load_such_meshes(name, content):
    Path(name).write_bytes(content)
    model = load(with_meshes(name))
    assert model.nmeshvert == 8
    assert model.body_mass[1] == pytest.approx(8000)


@pytest.mark.parametrize("name", ["a.off", "a.ply"])
def test_models_with_damaged_meshes_say_what_is_wrong(name):
    Path(name).write_bytes(b"damaged")
    with pytest.raises(ValueError, match=f"ValueError: an? .* begins with.*decode\\('{name}'\\)"):
        load(with_meshes(name))
