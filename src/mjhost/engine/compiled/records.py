"""What compiled code knows of ``self``: one packed record per (data, instance).

Owns: which members a record has and where, how a record is filled from the Python object, and the
table through which compiled code finds it.
Invariants: ``plugin_data`` holds a handle, which is an index, never an address: the engine copies
it into pickles and other data. Compiled code compares the record's data, instance and layout with
its own and says "absent" if one differs; so a foreign, old or garbled handle is never followed.
Arrays of the record are the very arrays of the Python object: both paths see the same memory.
Threads: handles are given out under a lock; compiled code reads the table without one. A record is
filled before its handle is handed out, and is withdrawn only by the one who owns the data.
Failure: ``TypeError`` for a memo that is not what its annotation says; nothing was stored.
"""

from __future__ import annotations

import ctypes
import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from mjhost.engine.compiled.annotations import memo_fields
from mjhost.engine.declaration import SLICES
from mjhost.layout import size_of

HEADER: Final = {"data": 0, "model": 8, "instance": 16, "layout": 24}
_HEADER_SIZE: Final = 32
_CELL: Final = 8
_ARRAY_CELL: Final = 40  # address, two lengths, and room for two more

_NUMBERS: Final = {"float": "float64", "int": "int64", "bool": "bool"}


@dataclass(frozen=True, slots=True)
class Cell:
    """One member of a record.

    Attributes:
        path: ``kp``, or ``memo.gain``.
        kind: ``number``, ``array`` or ``enum``, which is stored as the index of the member.
        dtype: of the number, or of the elements.
        ndim: dimensions of an array.
        read_only: whether writing into the array is refused.
        enum: the class of an enum.
    """

    path: str
    kind: str
    offset: int
    dtype: str
    ndim: int = 0
    read_only: bool = False
    enum: Any = None

    @property
    def size(self) -> int:
        """Bytes in the record."""
        return _ARRAY_CELL if self.kind == "array" else _CELL


class RecordLayout:
    """The members of the records of one class.

    Attributes:
        cells: by path, in the order of the record.
        texts: attributes that are text, which compiled code cannot have.
        memo: the class of the memo; ``None`` without a usable annotation.
        digest: stands for the layout, 56 bits.
        missing: names that Python has and these records have not, with the reason.
        is_static: whether this is an array of attribute values, all ``float64``.
    """

    missing: Mapping[str, str] = MappingProxyType({})
    is_static = False

    def __init__(self, attributes: Mapping[str, Any], memo: type | None) -> None:
        self.cells: dict[str, Cell] = {}
        self.memo = memo
        self.texts = frozenset(n for n, spec in attributes.items() if spec.kind == "str")
        self.size = _HEADER_SIZE
        for name, spec in attributes.items():
            if spec.kind != "str":
                self._add(name, **_of_attribute(spec))
        for name, dtype in SLICES.items():
            self._add(name, "array", dtype, 1, read_only=dtype == "int32")
        for name, (dtype, ndim) in memo_fields(memo).items() if memo else ():
            self._add(f"memo.{name}", "array" if ndim else "number", dtype, ndim)
        text = repr(sorted(self.cells.values(), key=lambda cell: cell.offset))
        self.digest = int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "little")

    def _add(self, path: str, kind: str, dtype: str, ndim: int = 0, **more: Any) -> None:
        cell = self.cells[path] = Cell(path, kind, self.size, dtype, ndim, **more)
        self.size += cell.size

    def fill(self, source: Any, memory: np.ndarray[Any, Any]) -> list[Any]:
        """Writes the members of ``source`` into ``memory``; returns what has to be kept alive."""
        kept = []
        for cell in self.cells.values():
            owner, _, name = cell.path.rpartition(".")
            value = getattr(getattr(source, owner) if owner else source, name)
            part = memory[cell.offset : cell.offset + cell.size]
            if cell.kind == "array":
                kept.append(_fill_array(cell, value, part))
            else:
                stored = [*cell.enum].index(value) if cell.kind == "enum" else value
                part.view(cell.dtype)[0] = _number(cell, stored)
        return kept


_UNBORN: Final = "a static SDF is asked while a model compiles, before there is any data"
_UNFIT: Final = "the engine hands a static SDF numbers only, no vectors"


class StaticLayout(RecordLayout):
    """What the engine hands to a static SDF: the attributes as numbers, nothing of an instance."""

    is_static = True

    def __init__(self, attributes: Mapping[str, Any]) -> None:
        super().__init__({}, None)
        self.texts = frozenset(n for n, spec in attributes.items() if spec.kind == "str")
        vectors = [name for name, spec in attributes.items() if spec.kind == "vector"]
        self.missing = dict.fromkeys((*SLICES, "memo"), _UNBORN) | dict.fromkeys(vectors, _UNFIT)
        self.cells = {
            name: Cell(name, offset=_CELL * index, **_of_attribute(spec))
            for index, (name, spec) in enumerate(attributes.items())
            if spec.kind not in {"str", "vector"}
        }


def _of_attribute(spec: Any) -> dict[str, Any]:
    """How the value of an attribute is kept."""
    if spec.kind == "vector":
        return {"kind": "array", "dtype": spec.dtype, "ndim": 1, "read_only": True}
    if spec.kind == "enum":
        return {"kind": "enum", "dtype": "int64", "enum": spec.enum}
    return {"kind": "number", "dtype": _NUMBERS[spec.kind]}


def _number(cell: Cell, value: Any) -> Any:
    kinds = {"float64": (float, int, np.floating, np.integer), "int64": (int, np.integer)}
    if not isinstance(value, kinds.get(cell.dtype, (bool, np.bool_))):
        raise TypeError(f"self.{cell.path} must be {cell.dtype}, got {value!r}")
    return value


def _fill_array(cell: Cell, value: Any, part: np.ndarray[Any, Any]) -> Any:
    right = isinstance(value, np.ndarray) and (value.dtype, value.ndim) == (cell.dtype, cell.ndim)
    if not right or not value.flags.c_contiguous or not value.flags.aligned:
        raise TypeError(
            f"self.{cell.path} must be a contiguous array of {cell.dtype} with {cell.ndim} "
            f"dimension(s) in compiled code, got {_described(value)}"
        )
    if not cell.read_only and not value.flags.writeable:
        raise TypeError(f"self.{cell.path} must be writable in compiled code")
    words = part.view(np.int64)
    words[0] = value.ctypes.data
    words[1 : 1 + value.ndim] = value.shape
    return value


def _described(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return repr(value)
    order = "contiguous" if value.flags.c_contiguous else "not contiguous"
    return f"{value.dtype} of shape {value.shape}, {order}"


# -- the table -----------------------------------------------------------------------------------

CHUNK_BITS: Final = 12
_CHUNK: Final = 1 << CHUNK_BITS
CHUNKS: Final = 4096
TABLE_SYMBOL: Final = "mjhost_compiled_records"


class _Table:
    """Records by handle: an array of chunks that never move, so that nobody has to lock.

    Every entry can be followed: those that nobody has taken lead to a record of no data.
    """

    def __init__(self) -> None:
        self._nobody = (ctypes.c_int64 * (_HEADER_SIZE // 8))()
        self._vacant = ctypes.addressof(self._nobody)
        self._chunks = [self._chunk()]
        start = ctypes.addressof(self._chunks[0])
        self._root = (ctypes.c_void_p * CHUNKS)(*[start] * CHUNKS)
        self._free = list(range(_CHUNK - 1, 0, -1))  # 0 is what the engine fills plugin_data with
        self._lock = threading.RLock()  # the collector may end a record while one is added

    @property
    def address(self) -> int:
        return ctypes.addressof(self._root)

    def add(self, record: int) -> int:
        """Makes a record known; returns its handle."""
        with self._lock:
            if not self._free:
                self._grow()
            handle = self._free.pop()
            self._chunks[handle >> CHUNK_BITS][handle & (_CHUNK - 1)] = record
            return handle

    def remove(self, handle: int) -> None:
        """Forgets a record; its handle will be another's."""
        with self._lock:
            self._chunks[handle >> CHUNK_BITS][handle & (_CHUNK - 1)] = self._vacant
            self._free.append(handle)

    def count(self) -> int:
        """How many records are known."""
        with self._lock:
            return len(self._chunks) * _CHUNK - 1 - len(self._free)

    def _chunk(self) -> Any:
        return (ctypes.c_void_p * _CHUNK)(*[self._vacant] * _CHUNK)

    def _grow(self) -> None:
        start = len(self._chunks) << CHUNK_BITS
        if len(self._chunks) == CHUNKS:
            raise MemoryError(f"{start} instances of compiled engine plugins live at once")
        chunk = self._chunk()
        self._chunks.append(chunk)
        self._root[len(self._chunks) - 1] = ctypes.addressof(chunk)
        self._free += range(start + _CHUNK - 1, start - 1, -1)


TABLE: Final = _Table()


class Packed:
    """The record of one instance of one data.

    Attributes:
        handle: what belongs into ``plugin_data[instance]``.
    """

    def __init__(
        self, layout: RecordLayout, source: Any, *, model: int, data: int, instance: int
    ) -> None:
        self._memory = np.zeros(layout.size, np.uint8)
        self._kept = layout.fill(source, self._memory)
        head = self._memory[:_HEADER_SIZE].view(np.int64)
        head[:] = [data, self._lengths(model), instance, layout.digest]
        self.handle = TABLE.add(self._memory.ctypes.data)

    def _lengths(self, model: int) -> int:
        """The address of a copy of the struct of the model, where the lengths of the data are.

        The engine hands no model to the SDF methods, and the one that the data were made from may
        be gone while they are stepped with another. Of the copy only lengths are read.
        """
        self._kept.append(ctypes.create_string_buffer(size_of("mjModel")))
        copy = ctypes.addressof(self._kept[-1])
        if model:
            ctypes.memmove(copy, model, size_of("mjModel"))
        return copy

    def release(self) -> None:
        """Withdraws the record; compiled code finds none for the handle. Doing it twice is once."""
        handle, self.handle = self.handle, 0
        if handle:
            TABLE.remove(handle)

    def __del__(self) -> None:
        if getattr(self, "handle", 0):
            self.release()
