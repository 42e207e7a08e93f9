"""OBJ files: what the engine would leave out of one, and what colour they have.

The engine reads the triangles of the first group (``o`` or ``g``) of a file and drops those of all
others without a word. A file with more than one is taken apart here.

Failure: ``ModelLoadError`` saying what is wrong and in which line; the caller names the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from mjhost.description.surfaces import Colour, Surface
from mjhost.errors import ModelLoadError

_VERTEX: Final = re.compile(rb"^[ \t]*v[ \t]+(\S+)[ \t]+(\S+)[ \t]+(\S+)", re.MULTILINE)
_GROUP: Final = re.compile(rb"^[ \t]*[og](?:[ \t\r]|$)", re.MULTILINE)
_LIBRARY: Final = re.compile(rb"^[ \t]*mtllib[ \t]+(.*?)[ \t\r]*$", re.MULTILINE)
_FACE: Final = re.compile(rb"^[ \t]*f[ \t]", re.MULTILINE)


class Materials(NamedTuple):
    """Colours by the name of the material, and whether any has a texture."""

    colours: dict[str, Colour]
    textured: bool


def libraries(content: bytes) -> tuple[str, ...]:
    """The files of materials that an OBJ file names."""
    found = (name.decode("utf-8", "replace") for name in _LIBRARY.findall(content))
    return tuple(dict.fromkeys(found))


def materials(files: Mapping[str, bytes]) -> Materials:
    """The materials of some MTL files; lines that are none are passed over."""
    colours: dict[str, Colour] = {}
    textured = False
    for text in files.values():
        name = ""
        for line in text.decode("utf-8", "replace").splitlines():
            word, _, rest = line.strip().partition(" ")
            if word == "newmtl":
                name = rest.strip()
            elif word in ("Kd", "d", "Tr"):
                old = colours.get(name, (1.0, 1.0, 1.0, 1.0))
                colours[name] = _coloured(old, word, rest.split())
            textured |= word == "map_Kd"
    return Materials(colours, textured)


def _coloured(old: Colour, word: str, rest: list[str]) -> Colour:
    try:
        numbers = [min(1.0, max(0.0, float(text))) for text in rest]
    except ValueError:
        return old
    if word == "Kd" and len(numbers) == 3:
        return numbers[0], numbers[1], numbers[2], old[3]
    if word != "Kd" and len(numbers) == 1:
        return (*old[:3], numbers[0] if word == "d" else 1 - numbers[0])
    return old


def corners(content: bytes) -> Any:
    """The vertices of a file, (n, 3)."""
    found = _VERTEX.findall(content)
    try:
        return np.array(found, dtype=np.float64).reshape(-1, 3)
    except ValueError as error:
        raise ModelLoadError(f"has a vertex that is none: {error}") from error


def count_faces(content: bytes) -> int:
    """How many polygons a file has."""
    return sum(1 for _ in _FACE.finditer(content))


def is_one_group(content: bytes) -> bool:
    """Whether the engine reads all of a file."""
    return sum(1 for _ in _GROUP.finditer(content)) < 2


def surfaces(content: bytes, known: Mapping[str, Colour]) -> list[Surface]:
    """All of a file, by material."""
    vertices = corners(content)
    faces: dict[Colour | None, list[tuple[int, int, int]]] = {}
    rgba = None
    for word, rest, above, number in _lines(content):
        if word == b"usemtl":
            rgba = known.get(b" ".join(rest).decode("utf-8", "replace"))
        else:
            faces.setdefault(rgba, []).extend(_triangles(rest, above, len(vertices), number))
    return [Surface(vertices, np.array(found, int), colour) for colour, found in faces.items()]


def _lines(content: bytes) -> Iterator[tuple[bytes, list[bytes], int, int]]:
    """Lines about faces: word, the rest, how many vertices stand above, number."""
    above = 0
    whole = content.replace(b"\\\r\n", b" ").replace(b"\\\n", b" ")
    for number, line in enumerate(whole.splitlines(), 1):
        word, *rest = line.split() or [b""]
        if word == b"v":
            above += 1
        elif word in (b"f", b"usemtl"):
            yield word, rest, above, number


def _triangles(
    words: list[bytes], above: int, most: int, number: int
) -> Iterator[tuple[int, int, int]]:
    """A polygon as a fan; indices count from 1, or back from the last vertex above."""
    try:
        given = [int(word.partition(b"/")[0]) for word in words]
    except ValueError as error:
        raise ModelLoadError(f"has a face that is none in line {number}") from error
    found = [index - 1 if index > 0 else above + index for index in given]
    if len(found) < 3 or not all(0 <= index < most for index in found):
        raise ModelLoadError(f"has a face in line {number} whose corners are not there")
    for second, third in pairwise(found[1:]):
        yield found[0], second, third
