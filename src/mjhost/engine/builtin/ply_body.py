"""What follows the header of a PLY file.

Owns: reading element after element, as text or as bytes.
Invariants: a body is read once, in the order of the header; a count is believed only as far as
there are bytes for it. Time and memory are in proportion to the bytes.
Threads: one reader per body.
Failure: ``ValueError``; the body is of no use then.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from mjhost.engine.builtin import tables
from mjhost.engine.meshes import triangles


class Property(NamedTuple):
    """A property of an element.

    Attributes:
        name: as in the file.
        kind: NumPy's name of the type, without the byte order.
        count_kind: that of the length, if it is a list.
    """

    name: str
    kind: str
    count_kind: str = ""

    @property
    def is_list(self) -> bool:
        """Whether its rows have lengths of their own."""
        return bool(self.count_kind)


@dataclass(frozen=True, slots=True)
class Element:
    """A table of the file: its name, its number of rows, and what a row has."""

    name: str
    count: int
    properties: list[Property]

    def column(self, name: str) -> int:
        """Number of a property that is one number per row."""
        for index, item in enumerate(self.properties):
            if item.name == name and not item.is_list:
                return index
        raise ValueError(f"element {self.name} has no property {name}")


class Body(Protocol):
    """Elements in the order of the header, each to be taken once."""

    def scalars(self, element: Element, names: tuple[str, ...]) -> NDArray[np.float64]:
        """Takes the element: some of its numbers, ``(count, len(names))``."""

    def polygons(self, element: Element, name: str) -> NDArray[np.int64]:
        """Takes the element: one of its lists as polygons, cut into triangles, ``(n, 3)``."""

    def skip(self, element: Element) -> None:
        """Takes the element."""


# -- text ----------------------------------------------------------------------------------------


class TextBody:
    """A body of lines, one per row."""

    def __init__(self, content: bytes) -> None:
        lines = (line.strip() for line in content.decode("ascii", "replace").splitlines())
        self._lines = [line for line in lines if line]
        self._next = 0

    def scalars(self, element: Element, names: tuple[str, ...]) -> NDArray[np.float64]:
        """See ``Body``."""
        columns = [element.column(name) for name in names]
        lines = self._taken(element)
        if not lines:
            return np.empty((0, len(names)))
        last = element.properties[: max(columns)]
        if any(item.is_list for item in last):
            raise ValueError(f"element {element.name} has a list before {', '.join(names)}")
        return tables.numbers(lines, columns, element.name)

    def polygons(self, element: Element, name: str) -> NDArray[np.int64]:
        """See ``Body``."""
        lines = self._taken(element)
        before: list[Property] = []
        for item in element.properties:
            if item.name == name and item.is_list:
                break
            before.append(item)
        if not lines:
            return np.empty((0, 3), np.int64)
        if any(item.is_list for item in before):
            return tables.polygons([_cut(line, before) for line in lines])
        return tables.polygons(lines, first=len(before))

    def skip(self, element: Element) -> None:
        """See ``Body``."""
        self._taken(element)

    def _taken(self, element: Element) -> list[str]:
        found = self._lines[self._next : self._next + element.count]
        if len(found) < element.count:
            raise ValueError(f"{_promised(element)}, there are {len(found)}")
        self._next += element.count
        return found


def _promised(element: Element) -> str:
    return f"the header promises {element.count} rows of {element.name}"


def _cut(line: str, before: list[Property]) -> str:
    """What follows the properties ``before``."""
    words = line.split()
    position = 0
    for item in before:
        count = words[position] if item.is_list and position < len(words) else "0"
        if not count.isdecimal() or int(count) > len(words):
            raise ValueError(f"a face has a list of {count[:20]!r} items: {line[:60]!r}")
        position += 1 + int(count)
    return " ".join(words[position:])


# -- bytes ---------------------------------------------------------------------------------------


class BinaryBody:
    """A body of bytes."""

    def __init__(self, content: bytes, start: int, order: str) -> None:
        self._content = content
        self._next = start
        self._order = order

    def scalars(self, element: Element, names: tuple[str, ...]) -> NDArray[np.float64]:
        """See ``Body``."""
        columns = [element.column(name) for name in names]
        rows = self._alike(element)
        if rows is None:
            first = element.properties[: max(columns) + 1]
            if any(item.is_list for item in first):
                raise ValueError(f"element {element.name} has a list before {', '.join(names)}")
            head = np.dtype(
                [(f"item{at}", self._order + item.kind) for at, item in enumerate(first)]
            )
            rows = self._gathered(self._walk(element, 0)[0], head)
        with np.errstate(invalid="ignore"):  # a signalling NaN; who reads it refuses every NaN
            parts = [rows[f"item{column}"].astype(np.float64) for column in columns]
        return np.stack(parts, axis=1)

    def polygons(self, element: Element, name: str) -> NDArray[np.int64]:
        """See ``Body``."""
        index = [item.name if item.is_list else "" for item in element.properties].index(name)
        if element.properties[index].kind.startswith("f"):
            raise ValueError(f"the indices of {name} are no whole numbers")
        rows = self._alike(element)
        if rows is not None:
            corners = rows[f"item{index}"].astype(np.int64)
            return triangles(np.full(len(rows), corners.shape[1]), corners.ravel())
        starts, counts = self._walk(element, index)
        kind = np.dtype(self._order + element.properties[index].kind)
        # One number each: where every corner of every face lies.
        faces = np.repeat(np.arange(len(counts)), counts)
        turn = np.arange(len(faces)) - np.repeat(np.cumsum(counts) - counts, counts)
        indices = self._gathered(starts[faces] + turn * kind.itemsize, kind)
        return triangles(counts, indices.astype(np.int64))

    def skip(self, element: Element) -> None:
        """See ``Body``."""
        if self._alike(element) is None:
            self._walk(element, 0)

    def _alike(self, element: Element) -> NDArray[Any] | None:
        """The rows, if the lists of all are as long as those of the first; else nothing moves."""
        if not element.count:
            return np.empty(0, self._row_type(element, empty=True))
        row = self._row_type(element)
        end = self._next + row.itemsize * element.count
        lists = [name for name in row.names or () if name.startswith("count")]
        if end > len(self._content):
            if lists:
                return None
            self._refuse(element)
        rows = np.frombuffer(self._content, row, element.count, self._next)
        if any((rows[name] != rows[name][0]).any() for name in lists):
            return None
        self._next = end
        return rows

    def _row_type(self, element: Element, *, empty: bool = False) -> np.dtype[Any]:
        """Layout of the row that comes next; ``empty`` is without one, with lists of nothing."""
        fields: list[Any] = []
        position = self._next
        for index, item in enumerate(element.properties):
            kind = np.dtype(self._order + item.kind)
            if not item.is_list:
                fields.append((f"item{index}", kind))
                position += kind.itemsize
                continue
            count_kind = np.dtype(self._order + item.count_kind)
            count = 0 if empty else self._count(element, count_kind, position)
            position += count_kind.itemsize + count * kind.itemsize
            if position > len(self._content) and not empty:
                self._refuse(element)
            fields += [(f"count{index}", count_kind), (f"item{index}", kind, (count,))]
        return np.dtype(fields)

    def _count(self, element: Element, kind: np.dtype[Any], position: int) -> int:
        if position + kind.itemsize > len(self._content):
            self._refuse(element)
        count = int(np.frombuffer(self._content, kind, 1, position)[0])
        if count < 0:
            self._refuse(element)
        return count

    def _walk(self, element: Element, index: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Row by row: where property ``index`` begins, and how many items it has."""
        content, position = self._content, self._next
        starts, counts = [], []
        steps = [self._step(item) for item in element.properties]
        try:
            for _ in range(element.count):
                for at, (read, size, item_size) in enumerate(steps):
                    count = read(content, position)[0] if read else 1
                    position += size
                    if at == index:
                        starts.append(position)
                        counts.append(count)
                    if count < 0:
                        self._refuse(element)
                    position += count * item_size
                if position > len(content):
                    self._refuse(element)
        except struct.error:
            self._refuse(element)
        self._next = position
        return np.array(starts, np.int64), np.array(counts, np.int64)

    def _step(self, item: Property) -> tuple[Any, int, int]:
        """How to read a length, its size, and the size of an item; no reader for a number."""
        item_size = np.dtype(item.kind).itemsize
        if not item.is_list:
            return None, 0, item_size
        reader = struct.Struct(self._order + np.dtype(item.count_kind).char)
        return reader.unpack_from, reader.size, item_size

    def _gathered(self, starts: NDArray[np.int64], kind: np.dtype[Any]) -> NDArray[Any]:
        """Values of one kind from many places, all of them inside."""
        content = np.frombuffer(self._content, np.uint8)
        found = content[starts[:, None] + np.arange(kind.itemsize)]
        return found.view(kind)[:, 0] if len(starts) else np.empty(0, kind)

    def _refuse(self, element: Element) -> NoReturn:
        raise ValueError(
            f"{_promised(element)}, which the {len(self._content)} bytes of the file do not hold"
        )
