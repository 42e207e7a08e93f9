"""Doorways: the Python functions that the engine enters, the short ones for one pair each.

Owns: the short way into Python for ``control`` and ``passive`` behind a machine-code frame. The
frame has found out whose data they are, so a doorway needs no argument and no look-up: half the
cost of a thunk. To the engine it is a C function without parameters; the two that it is called with
are in registers that such a function does not look at.
Invariants: a doorway is made once and lives as long as the process; it serves one route from the
moment it is bound until that route is detached, and another one only then. Blank, it returns at
once.
Threads: changed under the router's lock; exchanging the hook of a bound doorway is one store.
"""

from __future__ import annotations

import ctypes
from threading import get_ident
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final

from mjhost.callbacks.kinds import KINDS, CallbackKind
from mjhost.callbacks.native import immortal
from mjhost.callbacks.symbols import address_of
from mjhost.callbacks.thunks import SHIFTS, THUNK_CODES, Closure, keep

if TYPE_CHECKING:
    from mjhost.callbacks.route import Route

_NO_PARAMETERS: Final = ctypes.CFUNCTYPE(None)
_BLANK: Final[list[BaseException]] = [RuntimeError("blank")]

SHORT_KINDS: Final = frozenset({"control", "passive"})
"""The kinds that return nothing and whose only arguments are the pair."""


class Doorway:
    """A function of the engine's that leads to the hook of one route.

    Attributes:
        address: what the frame jumps to.
    """

    __slots__ = ("_bind", "_exchange", "_route", "address")

    def __init__(self, kind: CallbackKind) -> None:
        enter, self._bind, self._exchange = _doorway(kind)
        self._route: Route | None = None
        self.address = address_of(immortal(_NO_PARAMETERS(enter)))

    def lead_to(self, route: Route, fn: Closure) -> None:
        """Makes ``fn`` the hook, for ``route`` from now on."""
        if self._route is route:
            self._exchange(fn)
            return
        self._route = route
        self._bind(route, fn)

    def blank(self) -> None:
        """Lets go of the route and its hook."""
        self._route = None
        self._bind(None, None)


def _doorway(kind: CallbackKind) -> tuple[Closure, Closure, Closure]:
    """The function itself, and the two that change what it leads to."""
    digit = 1 << SHIFTS[kind.name]
    route: Any = None
    fn: Any = None
    model: Any = None
    data: Any = None
    parked = _BLANK

    def enter() -> None:
        if parked:
            return
        try:
            route.turn += digit
            fn(model, data)
        except BaseException as error:  # noqa: BLE001 - parked, and raised after the step
            keep(route, error, kind)

    def bind(new_route: Any, new_fn: Any) -> None:
        nonlocal route, fn, model, data, parked
        parked = _BLANK  # first: an interrupted change leaves one that does nothing
        route, fn = new_route, new_fn
        model = None if route is None else route.model
        data = None if route is None else route.data
        parked = _BLANK if route is None else route.parked

    def exchange(new_fn: Any) -> None:
        nonlocal fn
        fn = new_fn

    return enter, bind, exchange


_SHORT_CODE: Final[CodeType] = _doorway(KINDS["control"])[0].__code__


def is_doorway(frame: FrameType) -> bool:
    """Whether ``frame`` is one that the engine enters: a doorway or a thunk."""
    return frame.f_code is _SHORT_CODE or frame.f_code in THUNK_CODES


def owner_of(frame: FrameType) -> tuple[CallbackKind, Route | None, int | None]:
    """Kind, route and sensor stage of the call whose doorway is ``frame``."""
    variables = frame.f_locals
    kind: CallbackKind = variables["kind"]
    if frame.f_code is _SHORT_CODE:
        return kind, variables["route"], None
    # A clock's thunk that was interrupted at its first instruction has no `data` yet.
    route: Route | None = variables["routes"].get(variables.get("data", get_ident()))
    return kind, route, variables.get("stage")
