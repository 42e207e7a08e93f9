"""The machine code that the engine's trampolines call: one function per method, without Python.

Owns: finding ``self`` for a data and an instance, the calling conventions, the status.
Invariants: an entry touches no Python object and needs no GIL. It returns ``DONE``; ``RAISED`` when
the method raised, perhaps half-way; or ``ABSENT`` when there is no record for this data and
instance, and then it has done nothing at all. No exception leaves it.
Threads: entries may run in any thread, also in one that Python has never seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from mjhost.engine.abi.fields import fields
from mjhost.engine.compiled import memory
from mjhost.engine.compiled.face import (
    FLAGS,
    add_symbol,
    cgutils,
    intrinsic,
    ir,
    nb,
    types,
)
from mjhost.engine.compiled.pipeline import dispatcher
from mjhost.engine.compiled.records import CHUNK_BITS, CHUNKS, HEADER, TABLE, TABLE_SYMBOL
from mjhost.engine.compiled.selves import SelfType, self_at
from mjhost.engine.compiled.views import data_at, model_at

DONE: Final = 0
RAISED: Final = 1
ABSENT: Final = 2

add_symbol(TABLE_SYMBOL, TABLE.address)


def _record_at(builder: Any, handle: Any) -> Any:
    """The record of a handle, whatever the handle is."""
    pointers = memory.BYTES.as_pointer()
    known = builder.icmp_unsigned("<", handle, memory.integer(CHUNKS << CHUNK_BITS))
    safe = builder.select(known, handle, memory.integer(0))
    root = cgutils.add_global_variable(builder.module, ir.IntType(8), TABLE_SYMBOL)
    chunks = builder.bitcast(root, pointers.as_pointer())
    chunk = builder.load(builder.gep(chunks, [builder.lshr(safe, memory.integer(CHUNK_BITS))]))
    return builder.load(
        builder.gep(chunk, [builder.and_(safe, memory.integer((1 << CHUNK_BITS) - 1))])
    )


@intrinsic
def _record_of(_typing: Any, _data: Any, _instance: Any, _layout: Any) -> Any:
    """The address of the record of an instance; NULL without one."""

    def code(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        base, index, digest = args
        field = fields("mjData")["plugin_data"]
        handles = memory.load(builder, base, field.offset, memory.INT64.as_pointer())
        record = _record_at(builder, builder.load(builder.gep(handles, [index])))
        wanted = {
            "data": builder.ptrtoint(base, memory.INT64),
            "instance": index,
            "layout": digest,
        }
        right = ir.Constant(ir.IntType(1), 1)
        for name, value in wanted.items():
            found = memory.load(builder, record, HEADER[name], memory.INT64)
            right = builder.and_(right, builder.icmp_unsigned("==", found, value))
        return builder.select(right, record, ir.Constant(memory.BYTES, None))

    return types.voidptr(types.voidptr, types.int64, types.int64), code


@intrinsic
def _is_null(_typing: Any, _pointer: Any) -> Any:
    def code(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return cgutils.is_null(builder, args[0])

    return types.boolean(types.voidptr), code


@intrinsic
def _model_of(_typing: Any, _record: Any) -> Any:
    def code(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return memory.load(builder, args[0], HEADER["model"], memory.BYTES)

    return types.voidptr(types.voidptr), code


# -- conventions ---------------------------------------------------------------------------------

_POINTER: Final = types.voidptr
_DOUBLES: Final = types.CPointer(types.float64)
_STEP: Final = types.int32(_POINTER, _POINTER, types.int32, types.int32)
_DISTANCE: Final = types.int32(_DOUBLES, _POINTER, types.int32, _DOUBLES)
_GRADIENT: Final = types.int32(_DOUBLES, _DOUBLES, _POINTER, types.int32)
_STATIC: Final = types.int32(_DOUBLES, _POINTER, _DOUBLES)


def _step(method: Any, make_self: Any, layout: int) -> Callable[..., int]:
    def entry(model, data, instance, capability):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, ARG001
        record = _record_of(data, instance, layout)
        if _is_null(record):
            return ABSENT
        try:
            method(make_self(record), model_at(model), data_at(model, data), nb.int64(instance))
        except Exception:  # noqa: BLE001 - Numba has no other; the method is replayed for its own
            return RAISED
        return DONE

    return entry


def _compute(method: Any, make_self: Any, layout: int) -> Callable[..., int]:
    def entry(model, data, instance, capability):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        record = _record_of(data, instance, layout)
        if _is_null(record):
            return ABSENT
        try:
            method(
                make_self(record),
                model_at(model),
                data_at(model, data),
                nb.int64(instance),
                nb.int64(capability),
            )
        except Exception:  # noqa: BLE001 - as above
            return RAISED
        return DONE

    return entry


def _distance(method: Any, make_self: Any, layout: int) -> Callable[..., int]:
    def entry(point, data, instance, result):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        record = _record_of(data, instance, layout)
        if _is_null(record):
            return ABSENT
        try:
            view = data_at(_model_of(record), data)
            at = nb.carray(point, (3,))
            distance = float(method(make_self(record), at, view, nb.int64(instance)))
            if not math.isfinite(distance):
                return RAISED
            result[0] = distance
        except Exception:  # noqa: BLE001 - as above
            return RAISED
        return DONE

    return entry


def _gradient(method: Any, make_self: Any, layout: int) -> Callable[..., int]:
    def entry(gradient, point, data, instance):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        record = _record_of(data, instance, layout)
        if _is_null(record):
            return ABSENT
        try:
            view = data_at(_model_of(record), data)
            at = nb.carray(point, (3,))
            found = method(make_self(record), at, view, nb.int64(instance))
            if len(found) != 3:
                return RAISED
            for axis in range(3):
                if not math.isfinite(found[axis]):
                    return RAISED
                gradient[axis] = found[axis]
        except Exception:  # noqa: BLE001 - as above
            return RAISED
        return DONE

    return entry


def _static_distance(method: Any, make_self: Any, layout: int) -> Callable[..., int]:  # noqa: ARG001
    def entry(point, attributes, result):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        try:
            distance = float(method(make_self(attributes), nb.carray(point, (3,))))
            if not math.isfinite(distance):
                return RAISED
            result[0] = distance
        except Exception:  # noqa: BLE001 - as above
            return RAISED
        return DONE

    return entry


_CONVENTIONS: Final[dict[str, tuple[Callable[..., Any], Any]]] = {
    "compute": (_compute, _STEP),
    "advance": (_step, _STEP),
    "actuator_act_dot": (_step, _STEP),
    "sdf_distance": (_distance, _DISTANCE),
    "sdf_gradient": (_gradient, _GRADIENT),
    "sdf_static_distance": (_static_distance, _STATIC),
}

COMPILED: Final = tuple(_CONVENTIONS)
"""Methods that are compiled; the others run once per model or data, and stay Python."""


def compiled_entry(method: str, function: Callable[..., Any], kind: SelfType, symbol: str) -> Any:
    """Compiles one method; returns Numba's C function, to be kept.

    Args:
        method: its name in the table of methods.
        function: what the user wrote.
        kind: the type of its ``self``.
        symbol: part of the name of the code, another one for every content.
    """
    make, signature = _CONVENTIONS[method]
    entry = make(dispatcher(function), self_at(kind), kind.layout.digest)
    entry.__name__ = entry.__qualname__ = symbol
    return nb.cfunc(signature, **FLAGS)(entry)
