"""``self`` in compiled code: attributes, own parts of the data, memo, constants, other methods.

Owns: a Numba type per declaration and memory it is read from (the record of an instance, or the
attribute values that the engine hands to a static SDF), and what each name of the class is there.
Invariants: nothing is written through ``self`` but elements of its arrays. Class attributes are
constants of the machine code; methods are compiled with the type of ``self`` they are called on.
Failure: ``RefusedError`` for names that do not exist, or not in compiled code.
"""

from __future__ import annotations

import enum
import inspect
import itertools
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Final

import numpy as np

from mjhost.engine.compiled import memory
from mjhost.engine.compiled.face import (
    AbstractTemplate,
    AttributeTemplate,
    BoundFunction,
    NumbaType,
    PointerModel,
    cpu_target,
    data_model,
    getattr_template,
    intrinsic,
    ir,
    lower_getattr,
    nb,
    templates,
    types,
)
from mjhost.engine.compiled.pipeline import dispatcher
from mjhost.engine.compiled.records import Cell, RecordLayout
from mjhost.engine.compiled.refusals import RefusedError
from mjhost.engine.compiled.views import StaleType
from mjhost.errors import did_you_mean

_SERIAL: Final = itertools.count()
_CONSTANTS: Final = (bool, int, float, complex, str, tuple, enum.Enum, np.ndarray, np.generic)
_INT64: Final = 2**63

ASSIGNED: Final = (
    "cannot be assigned: what must survive belongs into plugin_state (state_size, self.state) or "
    "act, scratch into what init returns (self.memo)"
)


class SelfType(NumbaType):
    """The object of a plugin class: a pointer to the memory that its values are read from."""

    def __init__(
        self, cls: type, layout: RecordLayout, methods: Mapping[str, Callable[..., Any]]
    ) -> None:
        self.cls = cls
        self.methods = methods  # among them those that the class leaves out
        self.layout = layout
        super().__init__(name=f"self of {cls.__qualname__} #{next(_SERIAL)}")

    def __reduce__(self) -> tuple[Any, ...]:
        # Machine code for one class in one process; stored, it is never found again.
        return StaleType, (f"stale {self.name}",)


class MemoType(NumbaType):
    """``self.memo``: the same memory, other names."""

    def __init__(self, owner: SelfType) -> None:
        self.owner = owner
        super().__init__(name=f"memo of {owner.name}")

    def __reduce__(self) -> tuple[Any, ...]:
        return StaleType, (f"stale {self.name}",)


data_model(SelfType)(PointerModel)
data_model(MemoType)(PointerModel)


# -- what a name is ------------------------------------------------------------------------------


def _cell_type(cell: Cell) -> Any:
    if cell.kind == "enum":
        return _constant_type(cell.path, next(iter(cell.enum)))
    kind = types.boolean if cell.dtype == "bool" else getattr(types, cell.dtype)
    if cell.kind == "array":
        return types.Array(kind, cell.ndim, "C", readonly=cell.read_only)
    return kind


def _constant_type(name: str, value: Any) -> Any:
    if isinstance(value, int) and not -_INT64 <= value < _INT64:
        raise RefusedError(f"the constant self.{name} does not fit into 64 bits")
    try:
        kind = nb.typeof(value)
    except (TypeError, ValueError) as error:
        raise RefusedError(
            f"self.{name} is {value!r}, which compiled code cannot have ({_first_line(error)})"
        ) from None
    return kind.copy(readonly=True) if isinstance(kind, types.Array) else kind


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


def raw_member(kind: SelfType, name: str) -> Any:
    """What a name of the class is, without asking it; ``None`` if there is none."""
    return kind.methods.get(name) or inspect.getattr_static(kind.cls, name, None)


@getattr_template
class _SelfAttributes(AttributeTemplate):
    key = SelfType

    def generic_resolve(self, kind: SelfType, name: str) -> Any:
        if name in kind.layout.cells:
            return _cell_type(kind.layout.cells[name])
        if name == "memo":
            return _memo_type(kind)
        _check_present(kind, name)
        value = raw_member(kind, name)
        if isinstance(value, FunctionType):
            return Method(kind, name, value)
        if isinstance(value, staticmethod):
            return types.Dispatcher(dispatcher(value.__func__))
        if isinstance(value, property) and value.fget is not None:
            return _property_call(kind, value).return_type
        if isinstance(value, _CONSTANTS):
            return _constant_type(name, value)
        raise _unusable(kind, name, value)


def _check_present(kind: SelfType, name: str) -> None:
    """Names that Python has and compiled code has not."""
    if name in kind.layout.texts:
        raise RefusedError(
            f"self.{name} is text, which compiled code cannot have; decide in init what it means "
            "and return that, a number, in the memo, or declare an enum.Enum"
        )
    if name in kind.layout.missing:
        raise RefusedError(f"self.{name} does not exist here: {kind.layout.missing[name]}")


def _unusable(kind: SelfType, name: str, value: Any) -> RefusedError:
    if value is None and name not in _names(kind):
        return RefusedError(
            f"self of {kind.cls.__name__} has no {name!r}; {did_you_mean(name, _names(kind))}"
        )
    return RefusedError(
        f"self.{name} is {type(value).__name__}, which compiled code cannot have; constants are "
        "numbers, text, enum members, tuples of them, and arrays"
    )


def _names(kind: SelfType) -> set[str]:
    own = {name for name in kind.layout.cells if "." not in name}
    return (
        own
        | {"memo", *kind.methods}
        | {name for name in dir(kind.cls) if not name.startswith("__")}
    )


def _memo_type(kind: SelfType) -> MemoType:
    if "memo" in kind.layout.missing:
        raise RefusedError(f"self.memo does not exist here: {kind.layout.missing['memo']}")
    if kind.layout.memo is None:
        raise RefusedError(
            "self.memo needs a type in compiled code: annotate init, "
            "def init(self, model, data, instance) -> Memo, where Memo is a typing.NamedTuple"
        )
    return MemoType(kind)


@getattr_template
class _MemoAttributes(AttributeTemplate):
    key = MemoType

    def generic_resolve(self, kind: MemoType, name: str) -> Any:
        cell = kind.owner.layout.cells.get(f"memo.{name}")
        if cell is None:
            names = getattr(kind.owner.layout.memo, "_fields", ())
            raise RefusedError(f"self.memo has no field {name!r}; {did_you_mean(name, names)}")
        return _cell_type(cell)


# -- reading -------------------------------------------------------------------------------------


@lower_getattr(SelfType)
def _read(context: Any, builder: Any, kind: SelfType, value: Any, name: str) -> Any:
    if name in kind.layout.cells:
        return _read_cell(context, builder, kind.layout, value, name)
    if name == "memo":
        return value
    found = raw_member(kind, name)
    if isinstance(found, staticmethod):
        return context.get_dummy_value()
    if isinstance(found, property):
        call = _property_call(kind, found)
        implementation = context.get_function(types.Dispatcher(dispatcher(found.fget)), call)
        context.add_linking_libs(getattr(implementation, "libs", ()))
        return implementation(builder, [value])
    return context.get_constant_generic(builder, _constant_type(name, found), found)


@lower_getattr(MemoType)
def _read_memo(context: Any, builder: Any, kind: MemoType, value: Any, name: str) -> Any:
    return _read_cell(context, builder, kind.owner.layout, value, f"memo.{name}")


def _read_cell(context: Any, builder: Any, layout: RecordLayout, base: Any, path: str) -> Any:
    cell = layout.cells[path]
    kind = _cell_type(cell)
    if cell.kind == "array":
        start = memory.load(builder, base, cell.offset, memory.BYTES, fixed=True)
        shape = [
            memory.load(builder, base, cell.offset + 8 * (1 + k), memory.INT64, fixed=True)
            for k in range(cell.ndim)
        ]
        itemsize = np.dtype(cell.dtype).itemsize
        return memory.array(context, builder, kind, start, shape, itemsize=itemsize)
    number = _read_number(context, builder, layout, base, cell)
    return _member_at(context, builder, kind, cell, number) if cell.kind == "enum" else number


def _read_number(context: Any, builder: Any, layout: RecordLayout, base: Any, cell: Cell) -> Any:
    wanted = types.boolean if cell.dtype == "bool" else getattr(types, cell.dtype)
    stored = types.float64 if layout.is_static else wanted
    number = memory.load_number(context, builder, stored, base, cell.offset)
    return context.cast(builder, number, stored, wanted)


def _member_at(context: Any, builder: Any, kind: Any, cell: Cell, index: Any) -> Any:
    """The value of the enum member with that index."""
    values = [context.get_constant_generic(builder, kind.dtype, m.value) for m in cell.enum]
    chosen = values[0]
    for k, value in enumerate(values):
        is_it = builder.icmp_signed("==", index, memory.integer(k))
        chosen = builder.select(is_it, value, chosen)
    return chosen


def self_at(kind: SelfType) -> Callable[..., Any]:
    """A compiled function from an address to a ``self``."""

    @intrinsic
    def made(_typing: Any, address: Any) -> Any:
        def code(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
            return builder.bitcast(args[0], ir.IntType(8).as_pointer())

        return templates.signature(kind, address), code

    return made


# -- methods -------------------------------------------------------------------------------------


class Method(BoundFunction):
    """``self.helper``, to be called."""

    def __init__(self, kind: SelfType, name: str, function: Callable[..., Any]) -> None:
        self.compiled = dispatcher(function)
        super().__init__(_method_template(kind, name, self.compiled), kind)

    def get_impl_key(self, sig: Any) -> Any:
        """The compiled function for some argument types, as Numba knows it."""
        return self.compiled.get_overload(sig.args)


data_model(Method)(lambda manager, kind: manager[kind.this])  # type: ignore[arg-type]

_CALLS: Final[list[tuple[Any, ...]]] = []


def _method_template(kind: SelfType, name: str, compiled: Any) -> Any:
    class Template(AbstractTemplate):
        key = (kind, name)

        def generic(self, args: Any, kws: Any) -> Any:
            call = (kind, name, tuple(args), tuple(sorted(kws.items())))
            if call in _CALLS:
                raise RefusedError(
                    f"the method {name} calls itself, which compiled code cannot; write a loop"
                )
            _CALLS.append(call)
            try:
                found = types.Dispatcher(compiled).get_call_type(self.context, (kind, *args), kws)
            finally:
                _CALLS.pop()
            return None if found is None else found.as_method()

    return Template


def _property_call(kind: SelfType, value: property) -> Any:

    compiled = types.Dispatcher(dispatcher(value.fget))
    return compiled.get_call_type(cpu_target.typing_context, (kind,), {})
