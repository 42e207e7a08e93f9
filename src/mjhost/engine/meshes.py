"""Triangle meshes as decoders hand them over.

Owns: ``Mesh``, its check, and the triangles of polygons.
Invariants: what passed ``checked`` cannot make the engine read beyond a vertex.
Threads: plain values.
Failure: ``ValueError`` says which vertex or face is wrong, and how.
Not a goal: repairing meshes; the compiler has its own opinion about orientation and volume.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

_LARGEST: Final = 2**31 - 1  # the engine counts in int
_LARGEST_FLOAT: Final = float(np.finfo(np.float32).max)


class Mesh(NamedTuple):
    """A triangle mesh.

    Attributes:
        vertices: positions, ``(n, 3)``, m.
        faces: three vertex indices each, from 0, counter-clockwise from outside, ``(n, 3)``.
    """

    vertices: ArrayLike
    faces: ArrayLike


def checked(vertices: ArrayLike, faces: ArrayLike) -> Mesh:
    """The mesh in the engine's types, float32 and int32.

    Raises:
        ValueError: wrong shapes, nothing in it, an index without a vertex, a number that is not
            finite or too large.
    """
    points = _table("vertices", vertices, np.float64)
    corners = _table("faces", faces, np.int64)
    # Compared this way NaN is wrong too.
    wrong = ~(np.abs(points) <= _LARGEST_FLOAT)
    if wrong.any():
        row = int(np.argmax(wrong.any(axis=1)))
        raise ValueError(f"vertex {row} is not finite: {points[row].tolist()}")
    check_indices(corners.ravel(), len(points), corners_per_face=3)
    return Mesh(points.astype(np.float32), corners.astype(np.int32))


def _table(what: str, values: ArrayLike, dtype: Any) -> NDArray[Any]:
    given = np.asarray(values)
    if given.ndim != 2 or given.shape[1] != 3:
        raise ValueError(f"{what} have the shape (n, 3), got {given.shape}")
    if not len(given):
        raise ValueError(f"the mesh has no {what}")
    if 3 * len(given) > _LARGEST:
        raise ValueError(f"at most {_LARGEST // 3} {what} are possible, got {len(given)}")
    if given.dtype.kind not in ("iu" if dtype is np.int64 else "iuf"):
        raise ValueError(f"{what} are {np.dtype(dtype).name} numbers, got {given.dtype}")
    return given.astype(dtype)


def check_indices(indices: NDArray[Any], vertices: int, *, corners_per_face: int = 0) -> None:
    """Raises ``ValueError`` for the first index that has no vertex."""
    wrong = (indices < 0) | (indices >= vertices)
    if wrong.any():
        at = int(np.argmax(wrong))
        face = f"face {at // corners_per_face}" if corners_per_face else "a face"
        raise ValueError(
            f"{face} has the vertex {int(indices[at])}, but there are {vertices}, from 0"
        )


def triangles(counts: NDArray[np.int64], indices: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cuts polygons into fans of triangles, in their order.

    Args:
        counts: corners of each polygon, ``(n,)``.
        indices: their vertices, one polygon after the other, ``(sum of counts,)``.

    Raises:
        ValueError: a polygon with fewer than three corners.
    """
    if len(counts) and counts.min() < 3:
        face = int(np.argmax(counts < 3))
        raise ValueError(f"face {face} has {int(counts[face])} corners, at least 3 make a face")
    starts = np.cumsum(counts) - counts
    pieces = counts - 2
    polygon = np.repeat(np.arange(len(counts)), pieces)
    # The number of each triangle within its polygon.
    turn = np.arange(len(polygon)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    first = starts[polygon]
    second = first + turn + 1
    return np.stack([indices[first], indices[second], indices[second + 1]], axis=1)


def spec_of(mesh: Mesh, name: str) -> mujoco.MjSpec:
    """A spec with this one mesh, which is how the engine takes a mesh from a decoder."""
    vertices, faces = checked(mesh.vertices, mesh.faces)
    spec = mujoco.MjSpec()
    element = spec.add_mesh(name=name)
    element.uservert = np.ravel(vertices)
    element.userface = np.ravel(faces)
    return spec
