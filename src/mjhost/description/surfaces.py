"""Triangles of one colour, and how they are written for the engine.

Invariants: what is written has finite corners, at least four of them that lie in no plane, and at
most ``MOST_FACES`` triangles: the engine takes it as a mesh that is seen and as one that collides.
Failure: ``ModelLoadError`` saying what is wrong; the caller names the file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from mjhost.errors import ModelLoadError

Colour: TypeAlias = tuple[float, float, float, float]

MOST_FACES: Final = 2_000_000
"""Triangles that a mesh may have; an engine that makes a hull of more is not worth waiting for."""

MOST_STL_FACES: Final = 200_000
"""Triangles that the engine takes of an STL file."""

_FARTHEST: Final = 2.0**30  # the engine's own bound for corners
_SMALLEST: Final = 1e-9  # across; the engine finds no hull of less
_FLAT: Final = 1e-5  # thickness over length below which a hull has no volume in single precision
_THICKNESS: Final = 1e-3  # of what is flat, over its length


class Surface(NamedTuple):
    """Triangles.

    Attributes:
        vertices: corners, (n, 3), in the units of the file times its scale.
        faces: indices of three corners each, (m, 3).
        rgba: their colour, if they have one.
    """

    vertices: Any
    faces: Any
    rgba: Colour | None = None


def of_corners(corners: Any, rgba: Colour | None = None) -> Surface:
    """A surface of triangles given by their corners, (m, 3, 3)."""
    return Surface(corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3), rgba)


def merged(surfaces: Iterable[Surface]) -> list[Surface]:
    """One surface per colour, in the order in which the colours come."""
    groups: dict[Colour | None, list[Surface]] = {}
    for surface in surfaces:
        groups.setdefault(surface.rgba, []).append(surface)
    return [_joined(group, rgba) for rgba, group in groups.items()]


def _joined(group: list[Surface], rgba: Colour | None) -> Surface:
    starts = np.cumsum([0, *(len(part.vertices) for part in group)])
    faces = [part.faces + start for part, start in zip(group, starts[:-1], strict=True)]
    return Surface(np.concatenate([p.vertices for p in group]), np.concatenate(faces), rgba)


def compact(surface: Surface) -> Surface:
    """The same without vertices that no triangle has.

    Raises:
        ModelLoadError: a triangle has corners that are not there.
    """
    lowest, highest = surface.faces.min(), surface.faces.max()
    if lowest < 0 or highest >= len(surface.vertices):
        odd = lowest if lowest < 0 else highest
        raise ModelLoadError(f"has a face with corner {odd} of {len(surface.vertices)}")
    used, index = np.unique(surface.faces, return_inverse=True)
    return Surface(surface.vertices[used], index.reshape(surface.faces.shape), surface.rgba)


def check_corners(vertices: Any) -> None:
    """Raises ``ModelLoadError`` if corners are none that the engine takes."""
    if not np.isfinite(vertices).all():
        raise ModelLoadError("has corners that are not finite")
    if np.abs(vertices).max(initial=0.0) > _FARTHEST:
        raise ModelLoadError(f"has corners farther than {_FARTHEST:g} from its origin")


def check_count(faces: int) -> None:
    """Raises ``ModelLoadError`` if there are no triangles, or too many."""
    if not faces:
        raise ModelLoadError("has no triangles")
    if faces > MOST_FACES:
        raise ModelLoadError(f"has {faces} triangles, more than {MOST_FACES}: simplify it")


def is_flat(vertices: Any) -> bool:
    """Whether corners lie in a plane, so that the engine finds no hull of them.

    Raises:
        ModelLoadError: they lie on a line, or in a point.
    """
    _, lengths = _axes(vertices)
    if lengths[2] < _SMALLEST:
        raise ModelLoadError(f"has no size: it is {lengths[2]:.3g} across")
    if lengths[1] <= _FLAT * lengths[2]:
        raise ModelLoadError("has no area: its corners lie on a line")
    return bool(lengths[0] <= _FLAT * lengths[2])


def thickened(surface: Surface) -> tuple[Surface, float]:
    """A flat surface with a back side, and how far behind that is."""
    axes, lengths = _axes(surface.vertices)
    depth = float(_THICKNESS * lengths[2])
    back = surface.vertices - depth * axes[:, 0]
    faces = np.concatenate([surface.faces, surface.faces[:, ::-1] + len(surface.vertices)])
    return Surface(np.concatenate([surface.vertices, back]), faces, surface.rgba), depth


def _axes(vertices: Any) -> tuple[Any, Any]:
    """Principal axes in columns, and the extents along them in rising order."""
    around = vertices - vertices.mean(axis=0)
    _, axes = np.linalg.eigh(around.T @ around / len(around))
    lengths = np.ptp(around @ axes, axis=0)
    order = np.argsort(lengths)  # that of the spread may be another
    return axes[:, order], lengths[order]


def encoded(surface: Surface) -> tuple[str, bytes]:
    """Ending and content of a file of a surface: STL, or OBJ for more than STL can have."""
    if len(surface.faces) <= MOST_STL_FACES:
        return "stl", binary_stl(surface.vertices[surface.faces])
    vertices, index = np.unique(surface.vertices.astype(np.float32), axis=0, return_inverse=True)
    faces = index.reshape(-1)[surface.faces] + 1
    lines = [f"v {x:.9g} {y:.9g} {z:.9g}" for x, y, z in vertices.tolist()]
    lines += [f"f {a} {b} {c}" for a, b, c in faces.tolist()]
    return "obj", "\n".join(lines).encode()


def binary_stl(corners: Any) -> bytes:
    """Binary STL of triangles given by their corners, (m, 3, 3)."""
    record = np.zeros(
        len(corners), dtype=[("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("bits", "<u2")]
    )
    record["corners"] = corners
    return bytes(80) + struct.pack("<I", len(corners)) + record.tobytes()
