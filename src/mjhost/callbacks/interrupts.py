"""The trap for interrupts that would be lost on the way into a callback.

An interrupt that arrives while the engine runs is raised at the next instruction of Python, and
that may be the first one of a thunk, before its ``try``: ctypes then prints and drops it (two of
three are lost that way). The interpreter reports what it drops to ``sys.unraisablehook``; while the
trap is set, what comes from a thunk is parked like anything a hook raised.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from mjhost.callbacks.doorways import is_doorway, owner_of
from mjhost.callbacks.route import Route


class InterruptsSurface:
    """``with interrupts_surface(route)`` around the engine call, on the main thread.

    Reports about anything else go on to the hook that was there before, which is put back. May be
    kept and used again, but not nested with itself.

    Attributes:
        before: a list of one, the hook that was there before.
        hook: what reports go to; it does not refer to this object, which would be a cycle that
            keeps model and data alive.
    """

    __slots__ = ("before", "hook")

    def __init__(self, route: Route) -> None:
        self.before: list[Any] = [None]
        self.hook = partial(_trap, self.before, route)

    def __enter__(self) -> None:
        self.before[0] = sys.unraisablehook
        sys.unraisablehook = self.hook

    def __exit__(self, *_: object) -> None:
        if sys.unraisablehook is self.hook:  # else somebody's who came later stays theirs
            sys.unraisablehook = self.before[0]


def _trap(before: list[Any], default: Route, unraisable: Any) -> None:
    route = route_of(unraisable, default)
    if route is None:
        before[0](unraisable)
    else:
        route.parked.append(unraisable.exc_value)


def is_trap_set() -> bool:
    """Whether a trap is in place, of whatever route."""
    hook = sys.unraisablehook
    return isinstance(hook, partial) and hook.func is _trap


def remove_left_trap() -> None:
    """Takes away a trap that an interrupt kept from being taken away; no step is under way."""
    if is_trap_set():
        sys.unraisablehook = sys.unraisablehook.args[0][0]  # type: ignore[attr-defined]


def interrupts_surface(route: Route) -> InterruptsSurface:
    """The trap of ``route``: what its thunks would lose is parked."""
    return InterruptsSurface(route)


def route_of(unraisable: Any, default: Route | None = None) -> Route | None:
    """The route whose thunk raised ``unraisable``, or ``None`` if no thunk did.

    The outermost frame of the traceback tells, on every Python version: 3.13 no longer names the
    function in ``object``.
    """
    if unraisable.exc_traceback is None or unraisable.exc_value is None:
        return None
    frame = unraisable.exc_traceback.tb_frame
    if not is_doorway(frame):
        return None
    return owner_of(frame)[1] or default
