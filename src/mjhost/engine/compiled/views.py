"""The engine's structs in compiled code: ``data.qpos[i]``, ``model.opt.timestep``.

Owns: one Numba type per struct, whose attributes are those of the Python views
(``mjhost.engine.views``), each a load at the offset of the installed engine. What is not used costs
nothing, nothing has to be declared.
Invariants: the name of a type contains a digest of the layout, and a type that was stored under
another one is equal to none of today's: machine code with stale offsets is never found again.
Scalars read as Python numbers do: ``float`` for every float, 64 bits for every int.
Failure: unknown members, members that are text or pointers, assignments that Python refuses too:
``RefusedError``, at compile time.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import operator
from typing import Any, Final

import mujoco

from mjhost.engine.abi.fields import Field, arena_fields, fields, mirror, read_only
from mjhost.engine.compiled import memory
from mjhost.engine.compiled.face import (
    AttributeTemplate,
    NumbaType,
    StructModel,
    cgutils,
    data_model,
    getattr_template,
    intrinsic,
    ir,
    lower_getattr,
    lower_setattr,
    overload,
    types,
)
from mjhost.engine.compiled.refusals import RefusedError
from mjhost.errors import did_you_mean

_MEMBERS: Final = [("address", types.voidptr), ("model", types.voidptr), ("data", types.voidptr)]


@functools.cache
def layout_digest() -> str:
    """Engine version and a hash of everything that compiled code knows about its memory."""
    found = hashlib.sha256()
    waiting, seen = ["mjModel", "mjData"], set()
    while waiting:
        struct = waiting.pop()
        if struct in seen:
            continue
        seen.add(struct)
        found.update(f"{struct} {ctypes.sizeof(mirror(struct))}\n".encode())
        for field in fields(struct).values():
            found.update(f"{field.name} {field.offset} {field.kind} {field.extents}\n".encode())
            found.update(f"{field.ctype.__name__} {field.struct}\n".encode())
            waiting += [field.struct] if field.struct else []
    found.update(" ".join(sorted(arena_fields())).encode())
    return f"{mujoco.mj_versionString()}-{found.hexdigest()[:16]}"


# -- types ---------------------------------------------------------------------------------------


class StructType(NumbaType):
    """A view of one struct: its address, and those of the model and data that know its lengths."""

    def __init__(self, struct: str) -> None:
        self.struct = struct
        super().__init__(name=f"{struct}[{layout_digest()}]")

    def __reduce__(self) -> tuple[Any, ...]:
        return _stored, (StructType, self.struct, self.name)


class StructArrayType(NumbaType):
    """An array of structs, such as ``data.contact``."""

    def __init__(self, struct: str) -> None:
        self.struct = struct
        super().__init__(name=f"array of {struct}[{layout_digest()}]")

    def __reduce__(self) -> tuple[Any, ...]:
        return _stored, (StructArrayType, self.struct, self.name)


class StaleType(NumbaType):
    """What a type stored under another layout comes back as."""


def _stored(kind: Any, struct: str, name: str) -> NumbaType:
    today: NumbaType = kind(struct)
    return today if today.name == name else StaleType(f"stale {name}")


@data_model(StructType)
class _StructModel(StructModel):
    def __init__(self, manager: Any, fe_type: Any) -> None:
        super().__init__(manager, fe_type, _MEMBERS)


@data_model(StructArrayType)
class _StructArrayModel(StructModel):
    def __init__(self, manager: Any, fe_type: Any) -> None:
        super().__init__(manager, fe_type, [*_MEMBERS, ("length", types.int64)])


@functools.cache
def struct_type(struct: str) -> Any:
    """The type of views of a struct."""
    return StructType(struct)


def model_type() -> Any:
    """The type of ``model``."""
    return struct_type("mjModel")


def data_type() -> Any:
    """The type of ``data``."""
    return struct_type("mjData")


# -- which type a member has ---------------------------------------------------------------------


def member(struct: str, name: str) -> Field:
    """The member of a struct.

    Raises:
        RefusedError: there is none, or none that compiled code could use.
    """
    field = fields(struct).get(name)
    if field is None:
        raise RefusedError(f"{struct} has no member {name!r}; {did_you_mean(name, fields(struct))}")
    if field.kind == "opaque":
        raise RefusedError(f"{struct}.{name} is a pointer of the engine; only it may use that")
    if field.ctype is ctypes.c_char:
        raise RefusedError(
            f"{struct}.{name} is text, which compiled code cannot read; look it up in init and "
            "keep what is needed of it, a number, in self.memo"
        )
    return field


def scalar_type(field: Field) -> Any:
    """What a scalar member reads as."""
    kind = memory.NUMBERS[field.ctype]
    if kind is types.boolean:
        return kind
    return types.float64 if kind in types.real_domain else types.int64


def member_type(field: Field) -> Any:
    """What a member reads as."""
    if field.kind == "scalar":
        return scalar_type(field)
    if field.kind == "struct":
        return struct_type(field.struct or "")
    if field.struct is not None:
        return StructArrayType(field.struct)
    return types.Array(memory.NUMBERS[field.ctype], len(field.extents), "C")


@getattr_template
class _StructAttributes(AttributeTemplate):
    key = StructType

    def generic_resolve(self, kind: StructType, name: str) -> Any:
        return member_type(member(kind.struct, name))


@getattr_template
class _ColumnAttributes(AttributeTemplate):
    key = StructArrayType

    def generic_resolve(self, kind: StructArrayType, name: str) -> Any:
        field = member(kind.struct, name)
        if field.kind not in {"scalar", "array"} or field.struct is not None:
            raise RefusedError(f"an array of {kind.struct} has no column {name!r}; index it first")
        return types.Array(memory.NUMBERS[field.ctype], 1 + len(field.extents), "A")


# -- reading -------------------------------------------------------------------------------------


def _members_of(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    return cgutils.create_struct_proxy(kind)(context, builder, value=value)


@lower_getattr(StructType)
def read_member(context: Any, builder: Any, kind: StructType, value: Any, name: str) -> Any:
    """Writes the code of ``value.name``."""
    view, field = _members_of(context, builder, kind, value), member(kind.struct, name)
    if field.kind == "scalar":
        return _read_scalar(context, builder, kind.struct, field, view.address)
    if field.kind == "struct":
        return _inner(context, builder, struct_type(field.struct or ""), view, field.offset)
    return _read_array(context, builder, kind.struct, field, view)


def _read_scalar(context: Any, builder: Any, struct: str, field: Field, address: Any) -> Any:
    if struct == "mjModel" and field.name in read_only("mjModel"):
        return memory.load_size(builder, address, field.offset, field.ctype, fixed=True)
    stored = memory.NUMBERS[field.ctype]
    value = memory.load_number(context, builder, stored, address, field.offset)
    return context.cast(builder, value, stored, scalar_type(field))


def _inner(context: Any, builder: Any, kind: Any, view: Any, offset: int) -> Any:
    inner = _members_of(context, builder, kind, None)
    inner.address = memory.at(builder, view.address, offset)
    inner.model, inner.data = view.model, view.data
    return inner._getvalue()


def _read_array(context: Any, builder: Any, struct: str, field: Field, view: Any) -> Any:
    start, shape = _extent_of(builder, struct, field, view)
    kind = member_type(field)
    if isinstance(kind, StructArrayType):
        found = _members_of(context, builder, kind, None)
        found.address, found.model, found.data = start, view.model, view.data
        found.length = shape[0]
        return found._getvalue()
    itemsize = ctypes.sizeof(field.ctype)
    return memory.array(context, builder, kind, start, shape, itemsize=itemsize)


def _extent_of(builder: Any, struct: str, field: Field, view: Any) -> tuple[Any, list[Any]]:
    """Where an array starts, and its shape."""
    if field.kind == "array":
        shape = [memory.integer(extent.factor) for extent in field.extents]
        return memory.at(builder, view.address, field.offset), shape
    # Only these two structs have buffers that stay where they are.
    fixed = struct == "mjModel" or (struct == "mjData" and field.name not in arena_fields())
    start = memory.load(builder, view.address, field.offset, memory.BYTES, fixed=fixed)
    shape = [_length(builder, struct, extent, view) for extent in field.extents]
    if not fixed:  # the lengths may be those of arrays that the engine did not need
        shape[0] = memory.none_if_null(builder, start, shape[0])
    return start, shape


def _length(builder: Any, struct: str, extent: Any, view: Any) -> Any:
    if extent.size is None:
        return memory.integer(extent.factor)
    base = {"mjModel": view.model, "mjData": view.data}.get(extent.owner, view.address)
    size = fields(extent.owner or struct)[extent.size]
    length = memory.load_size(
        builder, base, size.offset, size.ctype, fixed=extent.owner == "mjModel"
    )
    return length if extent.factor == 1 else builder.mul(length, memory.integer(extent.factor))


@lower_getattr(StructArrayType)
def _read_column(context: Any, builder: Any, kind: StructArrayType, value: Any, name: str) -> Any:
    view, field = _members_of(context, builder, kind, value), member(kind.struct, name)
    column = _ColumnAttributes.generic_resolve(None, kind, name)  # type: ignore[arg-type]
    itemsize = ctypes.sizeof(field.ctype)
    inner = [memory.integer(extent.factor) for extent in field.extents]
    step = memory.integer(ctypes.sizeof(mirror(kind.struct)))
    strides = [step, *memory.contiguous(builder, inner, itemsize)]
    start = memory.at(builder, view.address, field.offset)
    shape = [view.length, *inner]
    return memory.array(context, builder, column, start, shape, itemsize=itemsize, strides=strides)


# -- writing -------------------------------------------------------------------------------------


def assignable(struct: str, name: str) -> Field:
    """The member of a struct that compiled code may assign.

    Raises:
        RefusedError: Python refuses it too; the sentence says what to write.
    """
    field = member(struct, name)
    if field.kind == "scalar" and name not in read_only(struct):
        return field
    if field.kind == "scalar":
        hint = "it belongs to the engine"
    elif field.struct is None:
        hint = f"write into it, {name}[:] = ..."
    else:
        hint = f"assign its members, {name}.<member>"
    raise RefusedError(f"{struct}.{name} cannot be assigned; {hint}")


@lower_setattr(StructType)
def _write_member(context: Any, builder: Any, sig: Any, args: Any, name: str) -> None:
    kind, given = sig.args
    field = assignable(kind.struct, name)
    view = _members_of(context, builder, kind, args[0])
    stored = memory.NUMBERS[field.ctype]
    value = context.cast(builder, args[1], given, stored)
    memory.store_number(context, builder, stored, view.address, field.offset, value=value)


# -- arrays of structs ---------------------------------------------------------------------------


@intrinsic
def _count(_typing: Any, array: Any) -> Any:
    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _members_of(context, builder, sig.args[0], args[0]).length

    return types.int64(array), code


@intrinsic
def _element(_typing: Any, array: Any, _index: Any) -> Any:
    kind = struct_type(array.struct)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        view = _members_of(context, builder, sig.args[0], args[0])
        step = memory.integer(ctypes.sizeof(mirror(array.struct)))
        element = _members_of(context, builder, kind, None)
        element.address = builder.gep(view.address, [builder.mul(args[1], step)])
        element.model, element.data = view.model, view.data
        return element._getvalue()

    return kind(array, types.int64), code


@overload(len)
def _len_of_structs(array: Any) -> Any:
    if isinstance(array, StructArrayType):
        return lambda array: _count(array)  # noqa: PLW0108 - the code, for Numba to read
    return None


@overload(operator.getitem)
def _item_of_structs(array: Any, index: Any) -> Any:
    if not isinstance(array, StructArrayType):
        return None
    if not isinstance(index, types.Integer):
        raise RefusedError(f"an array of {array.struct} is indexed by an integer in compiled code")

    def item(array: Any, index: Any) -> Any:
        count = _count(array)
        k = index + count if index < 0 else index
        if k < 0 or k >= count:
            raise IndexError("index is out of bounds")
        return _element(array, k)

    return item


# -- from addresses ------------------------------------------------------------------------------


@intrinsic
def model_at(_typing: Any, model: Any) -> Any:
    """The view of a model from its address."""

    def code(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        view = _members_of(context, builder, model_type(), None)
        view.address = view.model = args[0]
        view.data = ir.Constant(memory.BYTES, None)
        return view._getvalue()

    return model_type()(model), code


@intrinsic
def data_at(_typing: Any, model: Any, data: Any) -> Any:
    """The view of a data from the addresses of its model and itself."""

    def code(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        view = _members_of(context, builder, data_type(), None)
        view.model, view.address = args
        view.data = view.address
        return view._getvalue()

    return data_type()(model, data), code
