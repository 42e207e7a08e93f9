"""How one function of a user becomes compiled code: Numba's pipeline with two passes of ours.

Owns: the dispatchers of users' functions, and what is replaced or refused in them before and after
types are known: plain module-level functions are compiled along, enum values of MuJoCo are numbers,
arithmetic is Python's (``arithmetic``), assignments are those that Python allows.
Invariants: one dispatcher per function. The source of a user is not changed.
Failure: ``RefusedError`` with the location.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, Final

import mujoco

from mjhost.engine.compiled import arithmetic, functions, views
from mjhost.engine.compiled.face import (
    FLAGS,
    Compiler,
    DefaultPassBuilder,
    IRProcessing,
    NopythonTypeInference,
    Pass,
    cpu_target,
    errors,
    ir_utils,
    nb,
    numba_ir,
    register_pass,
    types,
)
from mjhost.engine.compiled.refusals import RefusedError

_POWERS: Final = {operator.pow, operator.ipow}
_NOTHING: Final = object()
_OUTPUT: Final = "it has the engine's memory only; keep the number in self.memo, or raise"
_ABSENT: Final[dict[Any, str]] = {
    print: _OUTPUT,
    open: _OUTPUT,
    input: _OUTPUT,
    nb.objmode: "it never goes back to Python",
}


@functools.cache
def dispatcher(function: Any) -> Any:
    """``function`` as Numba's compiled function; one that already is stays as it is."""
    if hasattr(function, "py_func"):
        return function
    return nb.njit(pipeline_class=Pipeline, **FLAGS)(function)


# -- before types are known ----------------------------------------------------------------------


class _Values:
    """Objects that names of a function stand for, as far as they are known before it runs."""

    def __init__(self, function_ir: Any) -> None:
        self._ir = function_ir

    def of(self, name: str) -> Any:
        definitions = self._ir._definitions.get(name, [])
        return self.of_expression(definitions[0]) if len(definitions) == 1 else _NOTHING

    def of_expression(self, value: Any) -> Any:
        if isinstance(value, numba_ir.Global | numba_ir.FreeVar):
            return value.value
        if isinstance(value, numba_ir.Var):
            return self.of(value.name)
        if isinstance(value, numba_ir.Expr) and value.op == "getattr":
            return self._attribute(self.of(value.value.name), value.attr)
        return _NOTHING

    @staticmethod
    def _attribute(owner: Any, name: str) -> Any:
        # Attributes of other objects may be computed, and are Numba's business.
        if isinstance(owner, ModuleType) or is_engine_enum(owner):
            return getattr(owner, name, _NOTHING)
        return _NOTHING


def is_engine_enum(value: Any) -> bool:
    """Whether this is one of MuJoCo's enums, ``mujoco.mjt…``."""
    return isinstance(value, type) and value.__name__ in _engine_enums()


@functools.cache
def _engine_enums() -> frozenset[str]:
    return frozenset(name for name in dir(mujoco) if name.startswith("mjt"))


@register_pass(mutates_CFG=False, analysis_only=False)
class _StandIns(Pass):
    """Puts the functions and numbers in place that compiled code has instead of Python's."""

    _name = "mjhost_stand_ins"

    def __init__(self) -> None:  # abstract in Numba
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        values = _Values(state.func_ir)
        arguments = list(state.args)
        for block in state.func_ir.blocks.values():
            body: list[Any] = []
            for statement in block.body:
                _refuse_assignment_to_self(statement, state.func_ir, arguments)
                body += _replaced(statement, values)
            block.body = body
        state.func_ir._definitions = ir_utils.build_definitions(state.func_ir.blocks)
        return True


def _refuse_assignment_to_self(statement: Any, function_ir: Any, arguments: list[Any]) -> None:
    if not isinstance(statement, numba_ir.SetAttr | numba_ir.DelAttr):
        return
    definitions = function_ir._definitions.get(statement.target.name, [])
    from mjhost.engine.compiled.selves import ASSIGNED, SelfType

    for definition in definitions:
        is_argument = isinstance(definition, numba_ir.Arg)
        if is_argument and isinstance(arguments[definition.index], SelfType):
            raise RefusedError(f"self.{statement.attr} {ASSIGNED}", statement.loc)


def _replaced(statement: Any, values: _Values) -> list[Any]:
    if not isinstance(statement, numba_ir.Assign):
        return [statement]
    expression = statement.value
    if isinstance(expression, numba_ir.Expr) and expression.op in {"binop", "inplace_binop"}:
        return _with_power(statement, expression)
    if isinstance(expression, numba_ir.Expr) and expression.op == "call":
        return _with_conversion(statement, expression, values)
    known = values.of_expression(expression)
    if known is _NOTHING or isinstance(expression, numba_ir.Var):
        return [statement]
    statement.value = _stand_in(known, expression, statement.loc)
    return [statement]


def _with_power(statement: Any, expression: Any) -> list[Any]:
    if expression.fn not in _POWERS:
        return [statement]
    return _calling(statement, arithmetic.power, [expression.lhs, expression.rhs])


def _with_conversion(statement: Any, expression: Any, values: _Values) -> list[Any]:
    """``int``, ``float`` and ``round`` where they are called; elsewhere they are types."""
    called = values.of(expression.func.name)
    if called is round and (len(expression.args) != 1 or expression.kws):
        raise RefusedError(
            "round to digits has other last digits in compiled code than in Python; write "
            "round(x * 100) / 100",
            statement.loc,
        )
    if len(expression.args) != 1 or not any(called is known for known in arithmetic.CONVERSIONS):
        return [statement]
    return _calling(statement, arithmetic.CONVERSIONS[called], list(expression.args))


def _calling(statement: Any, function: Any, arguments: list[Any]) -> list[Any]:
    """``statement`` with the value of a function of ours."""
    loc = statement.loc
    name = numba_ir.Var(statement.target.scope, ir_utils.mk_unique_var("$stand_in"), loc)
    load = numba_ir.Assign(numba_ir.Global(function.__name__, function, loc), name, loc)
    statement.value = numba_ir.Expr.call(name, arguments, (), loc)
    return [load, statement]


def _stand_in(known: Any, expression: Any, loc: Any) -> Any:
    """The expression to put in the place of one whose value is known."""
    if known is mujoco or is_engine_enum(known):
        return numba_ir.Const(0, loc)  # on the way to a value of it, nothing reads this
    if is_engine_enum(type(known)):
        return numba_ir.Const(int(known), loc)
    if isinstance(known, int | float) and getattr(expression, "op", "") == "getattr":
        return numba_ir.Const(known, loc)
    try:
        return _stand_in_of_function(known, expression, loc)
    except TypeError:  # not hashable, so neither a function nor a type
        return expression


def _stand_in_of_function(known: Any, expression: Any, loc: Any) -> Any:
    if known in arithmetic.OTHERWISE:
        raise RefusedError(
            f"math.{known.__name__} has other last digits in compiled code than in Python; write "
            f"{arithmetic.OTHERWISE[known]}",
            loc,
        )
    if known in _ABSENT:
        raise RefusedError(f"compiled code has no {known.__name__}: {_ABSENT[known]}", loc)
    if known in arithmetic.STAND_INS:
        other = arithmetic.STAND_INS[known]
        return numba_ir.Global(other.__name__, other, loc)
    if _make_known(known, loc):
        return numba_ir.Global(known.__name__, known, loc)
    if _is_of_mujoco(known):
        raise RefusedError(
            f"mujoco.{known.__name__} is Python's; compiled code calls the engine itself, "
            f"mj.{known.__name__} (from mjhost.engine import mj)",
            loc,
        )
    if isinstance(known, FunctionType) and not _is_known(known):
        return numba_ir.Global(known.__name__, dispatcher(known), loc)
    return expression


def _make_known(known: Any, loc: Any) -> bool:
    try:
        return functions.make_known(known)
    except RefusedError as error:
        raise RefusedError(error.sentence, loc) from None


def _is_of_mujoco(known: Any) -> bool:
    module = getattr(known, "__module__", None) or ""
    return callable(known) and str(module).startswith("mujoco.")


def _is_known(function: Callable[..., Any]) -> bool:
    """Whether Numba knows the function by itself, or by an overload."""
    context = cpu_target.typing_context
    context.refresh()
    try:
        return context.resolve_value_type(function) is not None
    except (errors.NumbaError, ValueError, TypeError):
        return False


# -- when types are known ------------------------------------------------------------------------


@register_pass(mutates_CFG=False, analysis_only=True)
class _Assignments(Pass):
    """Refuses assignments to members of the engine's structs that Python refuses."""

    _name = "mjhost_assignments"

    def __init__(self) -> None:  # abstract in Numba
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        for block in state.func_ir.blocks.values():
            for statement in block.find_insts(numba_ir.SetAttr):
                target = state.typemap[statement.target.name]
                given = state.typemap[statement.value.name]
                if isinstance(target, views.StructType):
                    _check_member(target.struct, statement, given)
        return False


def _check_member(struct: str, statement: Any, given: Any) -> None:
    try:
        field = views.assignable(struct, statement.attr)
    except RefusedError as error:
        raise RefusedError(error.sentence, statement.loc) from None
    wanted = views.scalar_type(field)
    if isinstance(given, types.Float) and not isinstance(wanted, types.Float):
        raise RefusedError(
            f"{struct}.{statement.attr} takes a whole number, this is a float; write int(...)",
            statement.loc,
        )


class Pipeline(Compiler):
    """Numba's pipeline for compiled code, with the two passes."""

    def define_pipelines(self) -> list[Any]:
        """The only pipeline there is: nothing falls back to Python objects."""
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.add_pass_after(_StandIns, IRProcessing)
        manager.add_pass_after(_Assignments, NopythonTypeInference)
        manager.finalize()
        return [manager]
