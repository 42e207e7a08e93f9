"""Decoder of PLY meshes, ``.ply``: text, and binary of either byte order.

Read are the positions of the vertices and the corners of the faces, polygons of any number of
corners; every other property and element is passed over.

Invariants: nothing is allocated on the word of a header: the bytes have to be there.
Threads: any; the engine's compiler decodes meshes in parallel.
Failure: ``ValueError`` that says what is wrong where; it becomes part of the compile error.
Not a goal: point clouds, triangle strips, normals and colours.
"""

from __future__ import annotations

import re
from typing import Final

from mjhost.engine.builtin.ply_body import BinaryBody, Body, Element, Property, TextBody
from mjhost.engine.codecs import decoder
from mjhost.engine.meshes import Mesh, check_indices

_HEADER_LIMIT: Final = 1 << 16
_ELEMENT_LIMIT: Final = 256
_TYPES: Final = {
    "char": "i1", "int8": "i1", "uchar": "u1", "uint8": "u1",
    "short": "i2", "int16": "i2", "ushort": "u2", "uint16": "u2",
    "int": "i4", "int32": "i4", "uint": "u4", "uint32": "u4",
    "float": "f4", "float32": "f4", "double": "f8", "float64": "f8",
}  # fmt: skip
_ORDERS: Final = {"binary_little_endian": "<", "binary_big_endian": ">"}
_CORNERS: Final = ("vertex_indices", "vertex_index")


def parse(content: bytes) -> Mesh:
    """The mesh in a PLY file.

    Raises:
        ValueError: it is not PLY, of a kind that is not read, or damaged.
    """
    body, elements = _opened(content)
    names = {element.name for element in elements}
    if not {"vertex", "face"} <= names:
        raise ValueError(
            f"a mesh has vertices and faces, this file has {sorted(names) or 'nothing'}"
        )
    points = corners = None
    for element in elements:
        if element.name == "vertex" and points is None:
            points = body.scalars(element, ("x", "y", "z"))
        elif element.name == "face" and corners is None:
            corners = body.polygons(element, _corners(element))
        else:
            body.skip(element)
    assert points is not None
    assert corners is not None
    if not len(points) or not len(corners):
        raise ValueError(f"{len(points)} vertices and {len(corners)} faces are no mesh")
    check_indices(corners.ravel(), len(points))
    return Mesh(points, corners)


def _corners(element: Element) -> str:
    found = [item.name for item in element.properties if item.is_list and item.name in _CORNERS]
    if not found:
        raise ValueError(f"the faces have no list {_CORNERS[0]}")
    return found[0]


def _opened(content: bytes) -> tuple[Body, list[Element]]:
    """The body, at its beginning, and the elements in it."""
    if not re.match(rb"ply[ \t]*\r?\n", content):
        raise ValueError(f"a PLY file begins with a line ply, this one with {content[:20]!r}")
    end = re.search(rb"\n[ \t]*end_header[ \t]*(\r\n|\r(?!\n)|\n)", content[:_HEADER_LIMIT])
    if end is None:
        raise ValueError(f"no end_header in the first {_HEADER_LIMIT} bytes")
    lines = content[: end.start()].decode("ascii", "replace").split("\n")[1:]
    words = [line.split() for line in lines]
    words = [line for line in words if line and line[0] not in {"comment", "obj_info"}]
    if not words or words[0][:1] != ["format"] or words[0][2:] != ["1.0"]:
        raise ValueError(f"the header begins with a format of version 1.0, got {words[:1]}")
    kind = words[0][1]
    elements = _elements(words[1:])
    if kind == "ascii":
        return TextBody(content[end.end() :]), elements
    if kind in _ORDERS:
        return BinaryBody(content, end.end(), _ORDERS[kind]), elements
    raise ValueError(f"the format is ascii, {' or '.join(_ORDERS)}, got {kind[:40]!r}")


def _elements(lines: list[list[str]]) -> list[Element]:
    elements: list[Element] = []
    for words in lines:
        match words:
            case ["element", name, count] if re.fullmatch(r"\d{1,10}", count):
                elements.append(Element(name, int(count), []))
            case ["property", "list", count_type, item_type, name] if elements:
                elements[-1].properties.append(
                    Property(name, _kind(item_type), _kind(count_type, whole=True))
                )
            case ["property", item_type, name] if elements:
                elements[-1].properties.append(Property(name, _kind(item_type)))
            case _:
                raise ValueError(
                    f"the header has a line that means nothing: {' '.join(words)[:80]!r}"
                )
    if sum(1 + len(element.properties) for element in elements) > _ELEMENT_LIMIT:
        raise ValueError(f"the header declares more than {_ELEMENT_LIMIT} elements and properties")
    return elements


def _kind(name: str, *, whole: bool = False) -> str:
    kind = _TYPES.get(name)
    if kind is None or (whole and kind.startswith("f")):
        raise ValueError(f"{name[:40]!r} is no type of {'a count' if whole else 'PLY'}")
    return kind


@decoder(".ply", "model/ply", meshes_only=True)
def decode(content: bytes, _name: str) -> Mesh:
    """The mesh in a PLY file."""
    return parse(content)
