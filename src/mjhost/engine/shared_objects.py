"""What the header of an ELF shared object says, read without loading it.

Invariants: a file that lies about itself is a ``ValueError``, whatever it holds.
Threads: pure.
Not a goal: other formats; ``parse`` says that it is none.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

_MAGIC: Final = b"\x7fELF"
_SHARED: Final = 3  # ET_DYN
_LOAD, _DYNAMIC = 1, 2  # types of segments
_NEEDED, _STRINGS, _NAME = 1, 5, 14  # tags of the dynamic section
_BITS: Final = {1: 32, 2: 64}
_ORDERS: Final = {1: "<", 2: ">"}
_MACHINES: Final = {
    3: "x86",
    8: "MIPS",
    20: "PowerPC",
    21: "PowerPC 64",
    22: "S/390",
    40: "ARM",
    62: "x86-64",
    183: "AArch64",
    243: "RISC-V",
    258: "LoongArch",
}


class SharedObject(NamedTuple):
    """One header.

    Attributes:
        bits: 32 or 64.
        little: whether the least byte comes first.
        machine: ELF's number of the processor.
        name: the ``DT_SONAME``; empty if there is none.
        needed: the libraries it wants, in order.
    """

    bits: int
    little: bool
    machine: int
    name: str
    needed: tuple[str, ...]

    @property
    def machine_name(self) -> str:
        """The processor in words."""
        named = _MACHINES.get(self.machine, f"machine {self.machine}")
        return f"{self.bits}-bit {named}{'' if self.little else ', big-endian'}"

    def runs_beside(self, other: SharedObject) -> bool:
        """Whether one process can hold both."""
        return self[:3] == other[:3]


class NotSharedObjectError(ValueError):
    """A file that is no ELF shared object; the message says what it is instead."""


def parse(content: bytes) -> SharedObject:
    """The header of a file with that content.

    Raises:
        NotSharedObjectError: it is something else, or damaged.
    """
    if content[:4] != _MAGIC:
        raise NotSharedObjectError("it is no shared library (no ELF header)")
    try:
        return _parsed(content)
    except (struct.error, ArithmeticError, LookupError, ValueError) as error:
        if isinstance(error, NotSharedObjectError):
            raise
        raise NotSharedObjectError(f"its ELF header is damaged ({error})") from error


class _Segment(NamedTuple):
    kind: int
    offset: int
    address: int
    size: int


def _parsed(content: bytes) -> SharedObject:
    bits, order = _BITS[content[4]], _ORDERS[content[5]]
    kind, machine = struct.unpack_from(f"{order}HH", content, 16)
    if kind != _SHARED:
        raise NotSharedObjectError("it is an ELF file, but no shared library")
    segments = list(_segments(content, bits, order))
    entries = list(_dynamic(content, segments, bits, order))
    strings = next((_place(segments, value) for tag, value in entries if tag == _STRINGS), None)

    def named(wanted: int) -> tuple[str, ...]:
        found = (value for tag, value in entries if tag == wanted and strings is not None)
        return tuple(_string(content, (strings or 0) + value) for value in found)

    (name, *_) = (*named(_NAME), "")
    return SharedObject(bits, order == "<", machine, name, named(_NEEDED))


def _segments(content: bytes, bits: int, order: str) -> Iterator[_Segment]:
    wide = bits == 64
    (start,) = struct.unpack_from(f"{order}{'Q' if wide else 'I'}", content, 32 if wide else 28)
    size, count = struct.unpack_from(f"{order}HH", content, 54 if wide else 42)
    for index in range(count):
        at = start + index * size
        if wide:
            kind, _, offset, address, _, length = struct.unpack_from(f"{order}IIQQQQ", content, at)
        else:
            kind, offset, address, _, length = struct.unpack_from(f"{order}IIIII", content, at)
        if kind in {_LOAD, _DYNAMIC} and offset + length > len(content):
            raise ValueError("it is cut short")
        yield _Segment(kind, offset, address, length)


def _dynamic(
    content: bytes, segments: list[_Segment], bits: int, order: str
) -> Iterator[tuple[int, int]]:
    """Tags and values of the dynamic section, up to its end."""
    form = f"{order}{'QQ' if bits == 64 else 'II'}"
    for segment in segments:
        if segment.kind == _DYNAMIC:
            part = content[segment.offset : segment.offset + segment.size]
            whole = part[: len(part) // struct.calcsize(form) * struct.calcsize(form)]
            for tag, value in struct.iter_unpack(form, whole):
                if not tag:
                    return
                yield tag, value


def _place(segments: list[_Segment], address: int) -> int:
    """Where in the file is what will be at an address."""
    for segment in segments:
        if segment.kind == _LOAD and 0 <= address - segment.address < segment.size:
            return segment.offset + address - segment.address
    raise ValueError(f"nothing is loaded at {address:#x}")


def _string(content: bytes, start: int) -> str:
    end = content.index(b"\0", start)
    return content[start:end].decode("utf-8", "replace")
