"""Numbers and polygons in the lines of text formats.

Owns: what the decoders of ``.off`` and of text ``.ply`` share.
Invariants: memory is taken in proportion to the text, whatever its numbers say.
Threads: plain functions.
Failure: ``ValueError`` with the line that is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from mjhost.engine.meshes import triangles


def numbers(lines: list[str], columns: Iterable[int], what: str) -> NDArray[np.float64]:
    """Columns of lines with numbers, ``(lines, columns)``.

    Raises:
        ValueError: a line has fewer columns, or something else in them.
    """
    wanted = list(columns)
    try:
        return np.loadtxt(lines, usecols=wanted, ndmin=2, comments=None)
    except ValueError as error:
        raise ValueError(_first_wrong(lines, max(wanted) + 1, what)) from error


def _first_wrong(lines: list[str], columns: int, what: str) -> str:
    for index, line in enumerate(lines):
        try:
            [float(word) for word in line.split()[:columns]][columns - 1]
        except (ValueError, IndexError):
            return f"{what} {index} needs {columns} numbers, got {line[:60]!r}"
    return f"a {what} is no row of {columns} numbers"


def polygons(lines: list[str], *, first: int = 0) -> NDArray[np.int64]:
    """Triangles of faces that are given as a number of corners and their vertices.

    Args:
        lines: one per face.
        first: column of the number of corners; their vertices follow it.

    Raises:
        ValueError: a line is not of that kind.
    """
    counts = _integers(numbers(lines, [first], "face"))[:, 0]
    offsets = np.cumsum(counts) - counts
    if len(counts) and (counts.min() < 3 or counts.sum() > sum(map(len, lines))):
        _refuse_face(counts, lines)
    indices = np.empty(int(counts.sum()), np.int64)
    for count in np.unique(counts):
        rows = np.flatnonzero(counts == count)
        found = numbers(
            [lines[row] for row in rows], range(first + 1, first + 1 + int(count)), "face"
        )
        indices[offsets[rows, None] + np.arange(count)] = _integers(found)
    return triangles(counts, indices)


def _refuse_face(counts: NDArray[np.int64], lines: list[str]) -> None:
    wrong = [index for index, line in enumerate(lines) if not 3 <= counts[index] <= len(line)]
    raise ValueError(
        f"face {wrong[0]} cannot have {counts[wrong[0]]} corners: {lines[wrong[0]][:60]!r}"
    )


def _integers(values: NDArray[np.float64]) -> NDArray[np.int64]:
    whole = values == np.rint(values)
    if not (whole & (np.abs(values) < 2**53)).all():
        raise ValueError("a face consists of whole numbers")
    return values.astype(np.int64)
