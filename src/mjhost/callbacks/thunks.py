"""The Python functions that the engine enters, and the closures they lead to.

Owns: the two frames between the engine and a hook. A *thunk* (one per kind) finds the closure by
the address of the data; the *closure* (one per route and kind) counts the call and runs the hook.
Invariants: no exception leaves a thunk. What a hook raises is parked on the route that owns the
data, and while something is parked every closure of that route returns the neutral value at once.
Threads: thunks run on whichever thread steps, with the GIL; both look-ups are single dict reads.
Failure: an exception that the interpreter delivers at a thunk's very first instruction, an
interrupt for instance, comes before its ``try``; ``interrupts_surface`` catches those.

Everything here is on the path of every evaluation of the engine: plain cells, one attribute of the
route, no call but the hook. ``doorways`` knows the thunks of a stack by their code and reads their
variables ``kind``, ``routes``, ``data`` and ``stage``; it has a shorter way for the two kinds that
are called most.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from types import CodeType
from typing import TYPE_CHECKING, Any, Final

from mjhost.callbacks.foreign import describe
from mjhost.callbacks.hook import both_forms
from mjhost.callbacks.kinds import KINDS, CallbackKind, Result
from mjhost.errors import CallbackResultError

if TYPE_CHECKING:
    from mjhost.callbacks.route import Route

Closure = Callable[..., Any]
Hooks = dict[int, Closure]
Routes = dict[int, "Route"]

# Calls within one step are counted in one integer, six bits each; see ``Route.turn``.
DIGIT_BITS: Final = 6
DIGIT_MASK: Final = (1 << DIGIT_BITS) - 1
_COUNTED: Final = ("control", "passive", "act_dyn", "act_gain", "act_bias")
_STAGES: Final = ("sensor 1", "sensor 2", "sensor 3")
SHIFTS: Final = {name: place * DIGIT_BITS for place, name in enumerate((*_COUNTED, *_STAGES))}


def park(routes: Routes, key: int, error: BaseException, kind: CallbackKind) -> None:
    """Parks what a hook raised on the route that owns the data; the first one wins."""
    route = routes.get(key)
    if route is None:
        raise error  # its data were let go of from inside the hook: nobody will ask for it
    keep(route, error, kind)


def keep(route: Route, error: BaseException, kind: CallbackKind) -> None:
    """Parks ``error`` on ``route``."""
    if not route.parked:
        route.parked_kind = kind.name
    route.parked.append(error)


# -- thunks --------------------------------------------------------------------------------------


def _pair_thunk(kind: CallbackKind, hooks: Hooks, routes: Routes, stranger: Closure) -> Closure:
    def thunk(model: int, data: int) -> None:
        try:
            call = hooks[data]
        except KeyError:
            stranger(model, data)
            return
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - parked, and raised after the step
            park(routes, data, error, kind)

    return thunk


def _sensor_thunk(kind: CallbackKind, hooks: Hooks, routes: Routes, stranger: Closure) -> Closure:
    def thunk(model: int, data: int, stage: int) -> None:
        try:
            call = hooks[data]
        except KeyError:
            stranger(model, data, stage)
            return
        try:
            call(stage)
        except BaseException as error:  # noqa: BLE001 - parked, and raised after the step
            park(routes, data, error, kind)

    return thunk


def _act_thunk(kind: CallbackKind, hooks: Hooks, routes: Routes, stranger: Closure) -> Closure:
    neutral = kind.neutral

    def thunk(model: int, data: int, index: int) -> Any:
        try:
            call = hooks[data]
        except KeyError:
            return stranger(model, data, index)
        try:
            return call(index)
        except BaseException as error:  # noqa: BLE001 - parked, and raised after the step
            park(routes, data, error, kind)
            return neutral

    return thunk


def _filter_thunk(kind: CallbackKind, hooks: Hooks, routes: Routes, stranger: Closure) -> Closure:
    def thunk(model: int, data: int, geom1: int, geom2: int) -> Any:
        try:
            call = hooks[data]
        except KeyError:
            return stranger(model, data, geom1, geom2)
        try:
            return call(geom1, geom2)
        except BaseException as error:  # noqa: BLE001 - parked, and raised after the step
            park(routes, data, error, kind)
            return 0

    return thunk


def _time_thunk(kind: CallbackKind, hooks: Hooks, routes: Routes, stranger: Closure) -> Closure:
    def thunk() -> Any:
        data = get_ident()  # there are no data: the stepping thread stands for them
        try:
            call = hooks[data]
        except KeyError:
            return stranger()
        try:
            return call()
        except BaseException as error:  # noqa: BLE001 - parked, and raised after the step
            park(routes, data, error, kind)
            return stranger()

    return thunk


_THUNKS: Final = {
    "control": _pair_thunk,
    "passive": _pair_thunk,
    "sensor": _sensor_thunk,
    "contactfilter": _filter_thunk,
    "act_dyn": _act_thunk,
    "act_gain": _act_thunk,
    "act_bias": _act_thunk,
    "time": _time_thunk,
}


def thunk_for(kind: CallbackKind, hooks: Hooks, routes: Routes, stranger: Closure) -> Closure:
    """The function that the engine enters for ``kind``.

    Args:
        kind: the kind.
        hooks: data address (``time``: thread) → closure; may change at any time.
        routes: the same keys → route, for exceptions.
        stranger: called for keys that are not in ``hooks``.
    """
    return _THUNKS[kind.name](kind, hooks, routes, stranger)


def _no_stranger(*_: int) -> None:
    """Stands in where only the code of a thunk is wanted."""


THUNK_CODES: Final[frozenset[CodeType]] = frozenset(
    make(KINDS[name], {}, {}, _no_stranger).__code__ for name, make in _THUNKS.items()
)


# -- closures ------------------------------------------------------------------------------------


def closure_for(kind: CallbackKind, route: Route, fn: Closure, clock: Closure) -> Closure:
    """What a thunk calls for ``fn`` hooked on ``route``.

    Args:
        kind: the kind.
        route: owner of the data.
        fn: the hook, with the arguments of ``kind``.
        clock: the neutral value of ``time``.
    """
    if kind.name == "sensor":
        return _sensor_closure(route, fn)
    if kind.result is Result.NOTHING:
        return _pair_closure(route, fn, 1 << SHIFTS[kind.name])
    if kind.result is Result.DROP:
        return _filter_closure(kind, route, fn)
    if not kind.arguments:
        return _time_closure(kind, route, fn, clock)
    return _act_closure(kind, route, fn, 1 << SHIFTS[kind.name])


def _pair_closure(route: Route, fn: Closure, digit: int) -> Closure:
    model, data, parked = route.model, route.data, route.parked
    inside, outside = both_forms(fn)

    def call() -> None:
        if parked:
            return
        turn = route.turn
        if turn >= 0:
            route.turn = turn + digit
            inside(model, data)
        else:
            outside(model, data)

    return call


def _sensor_closure(route: Route, fn: Closure) -> Closure:
    model, data, parked = route.model, route.data, route.parked
    digits = (0, *(1 << SHIFTS[f"sensor {stage}"] for stage in (1, 2, 3)))
    inside, outside = both_forms(fn)

    def call(stage: int) -> None:
        if parked:
            return
        turn = route.turn
        if turn >= 0:
            route.turn = turn + digits[stage]
            inside(model, data, stage)
        else:
            outside(model, data, stage)

    return call


def _act_closure(kind: CallbackKind, route: Route, fn: Closure, digit: int) -> Closure:
    model, data, parked, neutral = route.model, route.data, route.parked, kind.neutral
    last = model.nu  # the engine asks in the order of ids: one that does not grow begins anew
    inside, outside = both_forms(fn)

    def call(index: int) -> Any:
        nonlocal last
        if parked:
            return neutral
        if index <= last:
            route.turn += digit
        last = index
        value = (inside if route.turn >= 0 else outside)(model, data, index)
        return value if type(value) is float else as_number(value, kind, fn)

    return call


def _filter_closure(kind: CallbackKind, route: Route, fn: Closure) -> Closure:
    model, data, parked = route.model, route.data, route.parked
    inside, outside = both_forms(fn)

    def call(geom1: int, geom2: int) -> int:
        if parked:
            return 0
        ask = inside if route.turn >= 0 else outside
        return as_drop(ask(model, data, geom1, geom2), kind, fn)

    return call


def _time_closure(kind: CallbackKind, route: Route, fn: Closure, clock: Closure) -> Closure:
    parked = route.parked

    def call() -> Any:
        if parked:
            return clock()
        value = fn()
        return value if type(value) is float else as_number(value, kind, fn)

    return call


def as_number(value: Any, kind: CallbackKind, fn: Closure) -> float:
    """``value`` as the engine's number; text and nothing are refused."""
    convert = getattr(value, "__float__", None) or getattr(value, "__index__", None)
    if convert is None:
        raise _wrong_result(value, kind, fn)
    try:
        return float(convert())
    except TypeError:
        raise _wrong_result(value, kind, fn) from None


def as_drop(value: Any, kind: CallbackKind, fn: Closure) -> int:
    """``value`` of a contact filter as 0 or 1; only integers and truth values are answers."""
    if value is False or value is True:
        return int(value)
    if hasattr(value, "__index__") or type(value).__name__ in {"bool", "bool_"}:
        return 1 if value else 0
    raise _wrong_result(value, kind, fn)


def _wrong_result(value: Any, kind: CallbackKind, fn: Closure) -> CallbackResultError:
    return CallbackResultError(
        f"the {kind.name} callback {describe(fn)} must return {kind.result.value}, it returned "
        f"{value!r} ({type(value).__name__}); its signature is {kind.signature}"
    )
