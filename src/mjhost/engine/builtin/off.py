"""Decoder of OFF meshes, ``.off``.

Text OFF with polygons of any number of corners. Colours, normals and texture coordinates after the
positions or the corners are passed over. The counts may stand in the line of the keyword, or stick
to it, as in some data sets.

Threads: any; the engine's compiler decodes meshes in parallel.
Failure: ``ValueError`` that says what is wrong where; it becomes part of the compile error.
Not a goal: binary OFF, points of four or n dimensions.
"""

from __future__ import annotations

import re
from typing import Final

from mjhost.engine.builtin.tables import numbers, polygons
from mjhost.engine.codecs import decoder
from mjhost.engine.meshes import Mesh, check_indices

_HEADER: Final = re.compile(r"(?:ST)?C?N?OFF(?=$|[\s\d])")


def parse(content: bytes) -> Mesh:
    """The mesh in an OFF file.

    Raises:
        ValueError: it is not OFF, of a kind that is not read, or damaged.
    """
    lines = _lines(content)
    counts, body = _counts(lines)
    vertices, faces = counts
    if len(body) < vertices + faces:
        raise ValueError(
            f"the header promises {vertices} vertices and {faces} faces, one per line, but "
            f"{len(body)} lines follow"
        )
    if not vertices or not faces:
        raise ValueError(f"{vertices} vertices and {faces} faces are no mesh")
    points = numbers(body[:vertices], range(3), "vertex")
    corners = polygons(body[vertices : vertices + faces])
    check_indices(corners.ravel(), vertices)
    return Mesh(points, corners)


def _lines(content: bytes) -> list[str]:
    """Lines that say something, without comments."""
    lines = (
        line.partition("#")[0].strip() for line in content.decode("utf-8", "replace").split("\n")
    )
    return [line for line in lines if line]


def _counts(lines: list[str]) -> tuple[tuple[int, int], list[str]]:
    """Numbers of vertices and faces, and what follows them."""
    if not lines or not (header := _HEADER.match(lines[0])):
        shown = lines[0][:20] if lines else ""
        raise ValueError(f"an OFF file begins with OFF, this one with {shown!r}")
    rest = lines[0][header.end() :].strip()
    if "BINARY" in rest:
        raise ValueError("binary OFF is not read; save it as text")
    following = [rest, *lines[1:]] if rest else lines[1:]
    found = re.match(r"(\d{1,10})\s+(\d{1,10})(\s+\d+)?$", following[0]) if following else None
    if found is None:
        shown = following[0][:40] if following else ""
        raise ValueError(f"after OFF come the numbers of vertices, faces and edges, got {shown!r}")
    return (int(found[1]), int(found[2])), following[1:]


@decoder(".off", "model/off", meshes_only=True)
def decode(content: bytes, _name: str) -> Mesh:
    """The mesh in an OFF file."""
    return parse(content)
