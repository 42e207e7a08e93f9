"""The memory layout of ``mjOption`` in the installed engine.

Owns: offsets and formats, derived from ``mujoco.introspect`` and compared with what the bindings
really read and write when this module is imported.
Invariants: a member or bit that the table does not know survives every encoding.
Threads: immutable, safe anywhere.
Failure: ``UnsupportedEngineError`` at import if description and bindings disagree; without a proven
layout nothing may write to engine memory.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable
from typing import Any, Final

import msgspec
import mujoco
from mujoco.introspect import structs

from mjhost.errors import UnsupportedEngineError
from mjhost.options.records import RuntimeOptionsSnapshot
from mjhost.options.table import (
    DESCRIPTORS,
    EngineVersion,
    Kind,
    OptionDescriptor,
    OptionValue,
    engine_version,
)

_CODES: Final = {"mjtNum": "d", "double": "d", "float": "f", "int": "i", "mjtSize": "q"}
_GROUP_BITS: Final = (1 << 31) - 1


class Member(msgspec.Struct, frozen=True):
    """Where one member of the struct lies."""

    name: str
    offset: int
    code: str
    count: int

    @property
    def format(self) -> str:
        """The member's format for ``struct``, in native order without alignment."""
        return f"={self.count}{self.code}"


def _members() -> tuple[dict[str, Member], int]:
    members, offset, widest = {}, 0, 1
    for field in structs.STRUCTS["mjOption"].fields:
        kind = getattr(field.type, "inner_type", field.type)
        extents = getattr(field.type, "extents", (1,))
        code = _CODES.get(getattr(kind, "name", ""))
        if code is None:
            raise UnsupportedEngineError(f"mjOption.{field.name} is of unknown type {field.type}")
        width, count = struct.calcsize(f"={code}"), functools.reduce(int.__mul__, extents, 1)
        offset += -offset % width
        members[field.name] = Member(field.name, offset, code, count)
        offset, widest = offset + width * count, max(widest, width)
    return members, offset + -offset % widest


MEMBERS, SIZE = _members()


def base_address(option: Any) -> int:
    """Address of the struct behind ``option``; valid as long as ``option`` lives."""
    address: int = option.gravity.ctypes.data
    return address - MEMBERS["gravity"].offset


def window(option: Any) -> memoryview:
    """The struct's memory, writable; the caller keeps ``option`` alive."""
    block = (ctypes.c_char * SIZE).from_address(base_address(option))
    return memoryview(block).cast("B")


def unpack(raw: bytes | bytearray | memoryview, name: str) -> tuple[Any, ...]:
    """The elements of one member."""
    member = MEMBERS[name]
    return struct.unpack_from(member.format, raw, member.offset)


def decode(raw: bytes) -> RuntimeOptionsSnapshot:
    """The snapshot that a copy of the struct holds."""
    stored = {name: unpack(raw, name) for name in _STORED}
    values: dict[str, Any]
    values = {field.name: read(stored[field.member]) for field, read in _READERS}
    return RuntimeOptionsSnapshot(**values)


def encode(snapshot: RuntimeOptionsSnapshot, live: bytes) -> bytearray:
    """A copy of ``live`` with the fields of ``snapshot``, which must be valid."""
    raw = bytearray(live)
    for field, read in _READERS:
        value = getattr(snapshot, field.name)
        stored = unpack(raw, field.member)
        # A field that already reads as asked keeps its bytes, whatever else they may carry.
        if read(stored) != value:
            member = MEMBERS[field.member]
            struct.pack_into(member.format, raw, member.offset, *_store(field, value, stored))
    return raw


def _reader(
    field: OptionDescriptor, version: EngineVersion
) -> Callable[[tuple[Any, ...]], OptionValue]:
    if field.since > version:
        return lambda _: field.default
    match field.kind:
        case Kind.BOOL:
            bit = field.bit
            return lambda stored: bool(stored[0] & bit)
        case Kind.ENUM:
            return functools.partial(_choice, field.choices)
        case Kind.GROUPS:
            return lambda stored: frozenset(g for g in range(31) if stored[0] >> g & 1)
        case Kind.ARRAY:
            return lambda stored: stored
    return lambda stored: stored[0]


def _choice(choices: tuple[str, ...], stored: tuple[Any, ...]) -> str:
    number = stored[0]
    return choices[number] if 0 <= number < len(choices) else str(number)


def _store(field: OptionDescriptor, value: Any, stored: tuple[Any, ...]) -> tuple[Any, ...]:
    match field.kind:
        case Kind.BOOL:
            return (stored[0] | field.bit if value else stored[0] & ~field.bit,)
        case Kind.ENUM:
            return (field.choices.index(value),)
        case Kind.GROUPS:
            return (stored[0] & ~_GROUP_BITS | sum(1 << group for group in value),)
        case Kind.ARRAY:
            return tuple(value)
    return (value,)


def verify() -> None:
    """Compare the layout with the bindings, in both directions and for every member."""
    option = mujoco.MjOption()
    view = window(option)
    for number, member in enumerate(MEMBERS.values()):
        pattern = tuple(100 * number + index + 1 for index in range(member.count))
        value = pattern if member.count > 1 else pattern[0]
        setattr(option, member.name, value)
        if unpack(view, member.name) != pattern:
            _mismatch(member)
        negated = tuple(-part for part in pattern)
        struct.pack_into(member.format, view, member.offset, *negated)
        if _bound(option, member) != negated:
            _mismatch(member)


def _bound(option: Any, member: Member) -> tuple[Any, ...]:
    value = getattr(option, member.name)
    return tuple(value) if member.count > 1 else (value,)


def _mismatch(member: Member) -> None:
    raise UnsupportedEngineError(
        f"the layout of mjOption in MuJoCo {mujoco.__version__} is not the one that "
        f"mujoco.introspect describes, {member.name} is not at offset {member.offset}; "
        "reinstall mujoco from one wheel"
    )


verify()
_VERSION: Final = engine_version()
_STORED: Final = tuple(dict.fromkeys(field.member for field in DESCRIPTORS))
_READERS: Final = tuple((field, _reader(field, _VERSION)) for field in DESCRIPTORS)
