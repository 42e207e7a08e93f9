"""Machine code that reads the engine's memory: loads at fixed offsets, arrays over foreign memory.

Owns: the instructions; what lies where is said by the callers.
Invariants: an array value made here owns nothing and has no reference count.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Final

from mjhost.engine.compiled.face import cgutils, ir, make_array, populate_array, types

INT64: Final = ir.IntType(64)
BYTES: Final = ir.IntType(8).as_pointer()

NUMBERS: Final[dict[Any, Any]] = {
    ctypes.c_bool: types.boolean,
    ctypes.c_char: types.int8,
    ctypes.c_double: types.float64,
    ctypes.c_float: types.float32,
    ctypes.c_int: types.int32,
    ctypes.c_int64: types.int64,
    ctypes.c_size_t: types.uint64,
    ctypes.c_ubyte: types.uint8,
    ctypes.c_uint: types.uint32,
    ctypes.c_uint64: types.uint64,
}


def integer(value: int) -> Any:
    """A 64-bit constant."""
    return ir.Constant(INT64, value)


def at(builder: Any, base: Any, offset: int) -> Any:
    """The address ``offset`` bytes behind ``base``."""
    return builder.gep(base, [integer(offset)])


def load(builder: Any, base: Any, offset: int, kind: Any, *, fixed: bool = False) -> Any:
    """Loads a value of an LLVM type.

    Args:
        builder: writes the code.
        base: the address of the struct.
        offset: from there, bytes.
        kind: the LLVM type.
        fixed: the memory never changes while compiled code can see it, so that loads may be moved
            out of loops. Wrong for anything that a call or a store could change.
    """
    value = builder.load(builder.bitcast(at(builder, base, offset), kind.as_pointer()))
    if fixed:
        value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value


def load_number(context: Any, builder: Any, kind: Any, base: Any, offset: int) -> Any:
    """Loads a value of a Numba type, as it lies in memory."""
    pointer = context.get_data_type(kind).as_pointer()
    return context.unpack_value(builder, kind, builder.bitcast(at(builder, base, offset), pointer))


def store_number(
    context: Any, builder: Any, kind: Any, base: Any, offset: int, *, value: Any
) -> None:
    """Stores a value of a Numba type, as it lies in memory."""
    pointer = context.get_data_type(kind).as_pointer()
    context.pack_value(builder, kind, value, builder.bitcast(at(builder, base, offset), pointer))


def load_size(builder: Any, base: Any, offset: int, ctype: Any, *, fixed: bool) -> Any:
    """Loads a length, as 64 bits."""
    width = 8 * ctypes.sizeof(ctype)
    value = load(builder, base, offset, ir.IntType(width), fixed=fixed)
    return value if width == 64 else builder.sext(value, INT64)


def contiguous(builder: Any, shape: Sequence[Any], itemsize: int) -> list[Any]:
    """Strides of a C-contiguous array."""
    strides: list[Any] = []
    step = integer(itemsize)
    for length in reversed(shape):
        strides.insert(0, step)
        step = builder.mul(step, length)
    return strides


def array(
    context: Any,
    builder: Any,
    kind: Any,
    memory: Any,
    shape: Sequence[Any],
    *,
    itemsize: int,
    strides: Sequence[Any] | None = None,
) -> Any:
    """An array value over foreign memory."""
    value = make_array(kind)(context, builder)
    populate_array(
        value,
        data=builder.bitcast(memory, value.data.type),
        shape=list(shape),
        strides=list(strides or contiguous(builder, shape, itemsize)),
        itemsize=integer(itemsize),
        meminfo=None,
    )
    return value._getvalue()


def none_if_null(builder: Any, memory: Any, length: Any) -> Any:
    """``length``, or 0 where there is no memory."""
    return builder.select(cgutils.is_null(builder, memory), integer(0), length)
