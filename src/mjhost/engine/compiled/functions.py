"""``mj.*`` in compiled code: the engine's own functions, called directly.

Owns: what the function objects of ``mjhost.engine.views.functions`` are to Numba. Their records say
everything; there is no second list.
Invariants: what Python refuses is refused here too, types at compile time, values before the call.
A function is made known when the first compiled code names it.
Threads: under Numba's lock.
Failure: ``RefusedError`` for arguments of a wrong type and for functions that need text; compiled
code raises ``ValueError`` for values.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from mjhost import layout
from mjhost.engine.compiled import memory, special
from mjhost.engine.compiled.face import (
    AbstractTemplate,
    add_symbol,
    cgutils,
    cpu_target,
    ir,
    lower_builtin,
    templates,
    types,
)
from mjhost.engine.compiled.refusals import RefusedError
from mjhost.engine.compiled.views import StructType, model_type, read_member
from mjhost.engine.views.functions import spec_of
from mjhost.engine.views.signatures import (
    PLACED,
    Expression,
    FunctionSpec,
    Parameter,
    Reference,
    Term,
)

_known: Final[set[str]] = set()


def make_known(function: Any) -> bool:
    """Tells Numba about one function of ``mj``; ``False`` if it is none."""
    try:
        spec = spec_of(function)
    except TypeError:  # not hashable
        return False
    if spec is None:
        return False
    if spec.name not in _known:
        _register(function, spec)
        _known.add(spec.name)
    return True


def _register(function: Callable[..., Any], spec: FunctionSpec) -> None:

    if ctypes.c_char_p in {spec.result, *(parameter.ctype for parameter in spec.parameters)}:
        raise RefusedError(
            f"mj.{spec.name} is about text, which compiled code cannot have; call it in init and "
            "keep what is needed of it, a number, in self.memo"
        )
    special.check_available(spec.name)
    link(spec.name)

    class Template(AbstractTemplate):
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            return _signature(spec, args, kws)

    templates.infer_global(function)(Template)
    lower_builtin(function, types.VarArg(types.Any))(_Call(spec))
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()


def link(name: str) -> None:
    """Tells the linker where a function of the engine is."""
    address = ctypes.cast(layout.library()[name], ctypes.c_void_p).value
    assert address is not None
    add_symbol(name, address)


# -- types ---------------------------------------------------------------------------------------


def _signature(spec: FunctionSpec, args: Sequence[Any], kws: Any) -> Any:
    if kws:
        raise RefusedError(f"mj.{spec.name} takes no keywords: {spec.declaration}")
    if len(args) != len(spec.parameters):
        raise RefusedError(
            f"{spec.declaration} takes {len(spec.parameters)} arguments, got {len(args)}"
        )
    taken = [_taken(spec, p, arg) for p, arg in zip(spec.parameters, args, strict=True)]
    return _result_type(spec)(*taken)


def _result_type(spec: FunctionSpec) -> Any:
    if spec.result is None:
        return types.none
    kind = memory.NUMBERS[spec.result]
    if kind is types.boolean:
        return kind
    return types.float64 if kind in types.real_domain else types.int64


def _taken(spec: FunctionSpec, parameter: Parameter, given: Any) -> Any:
    """The type an argument is converted to."""
    check = {"model": _struct, "data": _struct, "scalar": _scalar, "array": _array}
    taken = None
    if parameter.absent or (parameter.nullable and isinstance(given, types.NoneType)):
        taken = given if isinstance(given, types.NoneType) else None
    else:
        taken = check[parameter.kind](parameter, given)
    if taken is None:
        raise RefusedError(
            f"mj.{spec.name}: {parameter.name} must be {_wanted(parameter)}, got {given}"
        )
    return taken


def _wanted(parameter: Parameter) -> str:
    if parameter.absent:
        return "None here"
    if parameter.kind in {"model", "data"}:
        return f"the {parameter.kind}"
    kind = memory.NUMBERS[parameter.ctype]
    if parameter.kind == "scalar":
        return "a number" if kind in types.real_domain else "a whole number"
    written = "" if parameter.const else "writable, "
    return f"a {written}C-contiguous {kind} array" + (" or None" if parameter.nullable else "")


def _struct(parameter: Parameter, given: Any) -> Any:
    wanted = "mjModel" if parameter.kind == "model" else "mjData"
    return given if isinstance(given, StructType) and given.struct == wanted else None


def _scalar(parameter: Parameter, given: Any) -> Any:
    given = types.unliteral(given)
    if memory.NUMBERS[parameter.ctype] in types.real_domain:
        is_real = isinstance(given, types.Integer | types.Float | types.Boolean)
        return types.float64 if is_real else None
    if isinstance(given, types.IntEnumMember):
        return given
    return types.int64 if isinstance(given, types.Integer | types.Boolean) else None


def _array(parameter: Parameter, given: Any) -> Any:
    if not isinstance(given, types.Array) or given.layout != "C":
        return None
    right = given.dtype == memory.NUMBERS[parameter.ctype] and given.aligned
    return given if right and (parameter.const or given.mutable) else None


# -- code ----------------------------------------------------------------------------------------


class _Call:
    """Writes the checks and the call of one function."""

    def __init__(self, spec: FunctionSpec) -> None:
        self._spec = spec
        self.__name__ = spec.name

    def __call__(self, context: Any, builder: Any, sig: Any, args: Any) -> Any:
        writer = _Writer(context, builder, self._spec, sig.args, args)
        writer.check()
        special.check(self._spec.name, context, builder, sig, args)
        result = writer.call()
        if self._spec.result is None:
            return context.get_dummy_value()
        stored = memory.NUMBERS[self._spec.result]
        return context.cast(
            builder, context.get_returned_value(builder, stored, result), stored, sig.return_type
        )


class _Writer:
    """The code of one call."""

    def __init__(
        self, context: Any, builder: Any, spec: FunctionSpec, kinds: Sequence[Any], values: Any
    ) -> None:
        self._context = context
        self._builder = builder
        self._spec = spec
        self._kinds = kinds
        self._values = values

    # Ranges first: a negative length makes no sense of the next.
    def check(self) -> None:
        self._check_same_model()
        for index, parameter in enumerate(self._spec.parameters):
            if parameter.kind == "scalar":
                self._check_range(index, parameter)
            if parameter.placed_by is not None:
                self._check_placed(index, parameter)
        for index, parameter in enumerate(self._spec.parameters):
            if parameter.length is not None and isinstance(self._kinds[index], types.Array):
                self._check_length(index, parameter.name, parameter.length)

    def call(self) -> Any:
        passed = [self._passed(index, p) for index, p in enumerate(self._spec.parameters)]
        result = ir.VoidType()
        if self._spec.result is not None:
            result = self._context.get_data_type(memory.NUMBERS[self._spec.result])
        kind = ir.FunctionType(result, [value.type for value in passed])
        function = cgutils.get_or_insert_function(self._builder.module, kind, self._spec.name)
        return self._builder.call(function, passed)

    def _passed(self, index: int, parameter: Parameter) -> Any:
        kind, value = self._kinds[index], self._values[index]
        if isinstance(kind, types.NoneType):
            return ir.Constant(memory.BYTES, None)
        if parameter.kind in {"model", "data"}:
            return self._member(kind, value, "address")
        if parameter.kind == "array":
            array = self._context.make_array(kind)(self._context, self._builder, value)
            return self._builder.bitcast(array.data, memory.BYTES)
        stored = memory.NUMBERS[parameter.ctype]
        number = self._context.cast(self._builder, self._number(index), self._base(index), stored)
        return self._context.data_model_manager[stored].as_data(self._builder, number)

    def _base(self, index: int) -> Any:
        kind = self._kinds[index]
        return types.int64 if isinstance(kind, types.IntEnumMember) else kind

    def _number(self, index: int) -> Any:
        """A scalar argument; members of enums are what they stand for."""
        kind, value = self._kinds[index], self._values[index]
        if isinstance(kind, types.IntEnumMember):
            return self._context.cast(self._builder, value, kind.dtype, types.int64)
        return value

    def _member(self, kind: Any, value: Any, name: str) -> Any:
        proxy = cgutils.create_struct_proxy(kind)(self._context, self._builder, value=value)
        return getattr(proxy, name)

    def _refuse_if(self, wrong: Any, message: str) -> None:
        with self._builder.if_then(wrong, likely=False):
            text = f"{self._spec.name}: {message}"
            self._context.call_conv.return_user_exc(self._builder, ValueError, (text,))

    # -- conditions --

    def _check_same_model(self) -> None:
        kinds = [parameter.kind for parameter in self._spec.parameters]
        if not {"model", "data"} <= {*kinds}:
            return
        model = self._follow(Reference(kinds.index("model"), ("signature",)))
        data = self._follow(Reference(kinds.index("data"), ("signature",)))
        wrong = self._builder.icmp_unsigned("!=", model, data)
        self._refuse_if(wrong, "the data is not of a model like the one given")

    def _check_range(self, index: int, parameter: Parameter) -> None:
        if self._kinds[index] == types.float64:
            return
        value, name = self._number(index), parameter.name
        lowest, highest = _limits(parameter.ctype)
        if parameter.lowest is not None:
            lowest = max(lowest, parameter.lowest)
        below = self._builder.icmp_signed("<", value, memory.integer(lowest))
        self._refuse_if(below, f"{name} must not be below {lowest}")
        above = self._builder.icmp_signed(">", value, memory.integer(highest))
        self._refuse_if(above, f"{name} must be at most {highest}")
        if parameter.limit is not None:
            limit = self._evaluate(parameter.limit)
            above = self._builder.icmp_signed(">=", value, limit)
            self._refuse_if(above, f"{name} must be below {parameter.limit.text}")

    def _check_placed(self, index: int, parameter: Parameter) -> None:
        """The id of an object, whose type is another argument."""
        assert parameter.placed_by is not None
        objtype, objid = self._number(parameter.placed_by), self._number(index)
        count = memory.integer(0)
        for number, size in PLACED.items():
            is_it = self._builder.icmp_signed("==", objtype, memory.integer(number))
            model = next(k for k, p in enumerate(self._spec.parameters) if p.kind == "model")
            count = self._builder.select(is_it, self._follow(Reference(model, (size,))), count)
        wrong = self._builder.icmp_signed(">=", objid, count)
        self._refuse_if(
            wrong, f"{parameter.name} must be of an existing body, xbody, geom, site or camera"
        )

    def _check_length(self, index: int, name: str, length: Expression) -> None:
        kind, value = self._kinds[index], self._values[index]
        array = self._context.make_array(kind)(self._context, self._builder, value)
        short = self._builder.icmp_signed("<", array.nitems, self._evaluate(length))
        self._refuse_if(short, f"{name} must have {length.text} elements")

    # -- expressions --

    def _evaluate(self, expression: Expression) -> Any:
        totals = [self._total(terms) for terms in expression.sums]
        largest = totals[0]
        for total in totals[1:]:
            is_larger = self._builder.icmp_signed(">", total, largest)
            largest = self._builder.select(is_larger, total, largest)
        return largest

    def _total(self, terms: Sequence[Term]) -> Any:
        total = memory.integer(0)
        for term in terms:
            product = memory.integer(term.factor)
            for reference in term.references:
                product = self._builder.mul(product, self._follow(reference))
            total = self._builder.add(total, product)
        return total

    def _follow(self, reference: Reference) -> Any:
        kind, value = self._kinds[reference.parameter], self._values[reference.parameter]
        if not reference.path:
            return self._number(reference.parameter)
        if reference.path[0] == "model":  # of a data view
            proxy = cgutils.create_struct_proxy(kind)(self._context, self._builder, value=value)
            inner = cgutils.create_struct_proxy(model_type())(self._context, self._builder)
            inner.address = inner.model = proxy.model
            inner.data = proxy.data
            kind, value = model_type(), inner._getvalue()
            reference = Reference(reference.parameter, reference.path[1:])
        (name,) = reference.path
        return read_member(self._context, self._builder, kind, value, name)


def _limits(ctype: Any) -> tuple[int, int]:
    if ctype is ctypes.c_bool:
        return 0, 1
    limits = np.iinfo(np.dtype(ctype))
    return int(limits.min), min(int(limits.max), 2**63 - 1)
