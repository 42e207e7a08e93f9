"""The hooks of one model and data pair.

Owns: what is hooked for the pair, and what its hooks raised.
Invariants: at most one hook per kind; an exchange is one store. While something is parked no hook
of the pair runs. After ``detach`` no table knows the address of the data any more, so it may be
used again.
Threads: ``set``, ``detach`` and the context managers take the router's lock; ``turn``, ``entry``,
``retry`` and ``parked`` belong to the thread that steps the pair.
Failure: a ``set`` that raises changed nothing.
Not a goal: stepping, and several hooks of one kind: ``registry`` composes those.

What ``with route.entered(Entry.STEP)`` does, inlined for a loop that steps often::

    route.turn = 0          # in a step; counts of this step start at nothing
    mj_step(model, data)
    route.turn = IDLE
    if parked: ...          # route.parked: roll back, then raise route.take()

A ``turn`` that is still 0 after a step with a control or passive hook means that no hook was
reached: then it is time for ``router.check()``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final

import mujoco

from mjhost.callbacks.doorways import SHORT_KINDS, Doorway
from mjhost.callbacks.foreign import Foreign
from mjhost.callbacks.hook import Hook, hook_of
from mjhost.callbacks.kinds import CallbackKind, Result, kind_named
from mjhost.callbacks.thunks import Closure, as_drop, closure_for
from mjhost.errors import NotLoadedError

if TYPE_CHECKING:
    from mjhost.callbacks.port import Port
    from mjhost.callbacks.router import Router

IDLE: Final = -(1 << 60)
"""``Route.turn`` outside of a step: counts added to it leave it negative."""

_MUTED: Final = RuntimeError("muted")


class Entry(StrEnum):
    """Which operation of the engine a callback belongs to."""

    STEP = "step"
    FORWARD = "forward"
    INVERSE = "inverse"
    FINITE_DIFFERENCE = "finite_difference"
    ROLLOUT = "rollout"
    COMPILE = "compile"
    UNKNOWN = "unknown"


class Route:
    """The hooks of one pair; made by ``router.attach``.

    Attributes:
        model, data: the pair.
        parked: what hooks raised since the last ``take``; look at it after every step. One list
            for the life of the route, so it may be bound once.
        parked_kind: kind of the hook that raised first.
        turn: calls within the present step, or negative: see ``IDLE``.
        entry: the operation under way when it is no step.
        retry: whether the present step was begun before and rolled back.
    """

    __slots__ = (
        "_compiled",
        "_doorways",
        "_hooks",
        "_router",
        "_threads",
        "_time",
        "data",
        "data_address",
        "entry",
        "model",
        "parked",
        "parked_kind",
        "retry",
        "turn",
    )

    def __init__(self, router: Router, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        self._router = router
        self.model = model
        self.data = data
        self.data_address: int = data._address
        self.parked: list[BaseException] = []
        self.parked_kind: str | None = None
        self.turn = IDLE
        self.entry = Entry.UNKNOWN
        self.retry = False
        self._hooks: dict[str, Hook] = {}
        self._compiled: dict[str, int] = {}  # kinds that are reached without Python
        self._doorways: dict[str, Doorway] = {}  # kept until the route is detached
        self._time: tuple[Closure, int] | None = None
        self._threads: list[int] = []  # inside `stepping`, innermost last

    @property
    def attached(self) -> bool:
        """Whether the pair's calls are routed here."""
        return self._router.routes.get(self.data_address) is self

    @property
    def hooked(self) -> frozenset[str]:
        """Names of the kinds with a hook."""
        return frozenset(self._hooks)

    # -- hooks -------------------------------------------------------------------------------

    def set(self, kind: str, fn: Any) -> None:
        """Hooks ``fn`` for ``kind``, replaces the hook that is there, or removes it (``None``).

        Contract: any thread, also while the pair is stepped; the next call of the engine for this
        kind goes to ``fn``.

        Args:
            kind: a name of ``KINDS``.
            fn: a Python callable with that kind's arguments, a compiled pointer, or ``None``.

        Raises:
            UnknownNameError: no such kind.
            CallbackSignatureError: ``fn`` cannot be called as this kind is.
            ForeignCallbackError: somebody else's callback cannot be kept beside ours.
            NotLoadedError: the route was detached.
        """
        what = kind_named(kind)
        hook = None if fn is None else hook_of(what, fn)
        with self._router.changing():
            if hook is not None:
                self._hook(what, hook)
            elif kind in self._hooks:
                self._unhook(what)

    def detach(self) -> None:
        """Removes every hook and forgets the pair; a second call does nothing.

        Contract: not while the pair is being stepped.
        """
        with self._router.changing():
            for name in tuple(self._hooks):
                self._unhook(kind_named(name))
            if self.attached:
                del self._router.routes[self.data_address]
            while self._doorways:
                name, doorway = self._doorways.popitem()
                self._router.ports[name].give_back(doorway)

    def _hook(self, kind: CallbackKind, hook: Hook) -> None:
        if not self.attached:
            raise NotLoadedError(
                f"the {kind.name} callback cannot be set: the route was detached from its data; "
                "attach them again"
            )
        port = self._router.ports[kind.name]
        if kind.name not in self._hooks:
            port.acquire()
        self._hooks[kind.name] = hook
        self._bind(port, hook)

    def _unhook(self, kind: CallbackKind) -> None:
        port = self._router.ports[kind.name]
        del self._hooks[kind.name]
        self._compiled.pop(kind.name, None)
        if kind.arguments:
            port.drop(self.data_address)
            if kind.name in self._doorways:  # kept: a call may be on its way through it
                self._doorways[kind.name].lead_to(self, _nothing)
        else:
            self._time = None
            for thread in self._threads:
                port.drop(thread)
        port.release()

    def rebind(self, port: Port) -> None:
        """Makes the closure of ``port`` anew: what it found in the engine has changed."""
        hook = self._hooks.get(port.kind.name)
        if hook is not None:
            self._bind(port, hook)

    def _bind(self, port: Port, hook: Hook) -> None:
        kind = port.kind
        fn, pointer = hook.call, hook.pointer if port.jumps else 0
        if port.foreign is not None and not kind.sole:
            fn, pointer = followed_by(kind, fn, port.foreign), 0
        call = closure_for(kind, self, fn, port.ask_below)
        if not kind.arguments:
            self._time = call, pointer
            for thread in self._threads:
                port.put(thread, call, pointer)
            return
        self._compiled.pop(kind.name, None)
        if pointer:
            self._compiled[kind.name] = pointer
        elif port.jumps and kind.name in SHORT_KINDS:
            pointer = self._enter_by(port, fn)
        port.put(self.data_address, call, pointer)

    def _enter_by(self, port: Port, fn: Closure) -> int:
        doorway = self._doorways.get(port.kind.name)
        if doorway is None:
            doorway = self._doorways[port.kind.name] = port.lend()
        doorway.lead_to(self, fn)
        return doorway.address

    # -- what hooks raised -------------------------------------------------------------------

    def take(self) -> BaseException | None:
        """The first exception that a hook raised since the last call; the hooks run again."""
        first = next((error for error in self.parked if error is not _MUTED), None)
        self.parked[:] = [_MUTED] * self.parked.count(_MUTED)
        return first

    # -- marks -------------------------------------------------------------------------------

    def taken(self) -> str | None:
        """Who overwrote a pointer that leads to a hook of this pair, or ``None``."""
        ports = self._router.ports
        for name in self._hooks:
            port = ports[name]
            if port.cell.value != port.written:
                return port.describe_taken()
        return None

    def stepping(self, entry: Entry | None = None) -> Stepping:
        """Marks this thread as stepping the pair: its clock, and ``call_context`` between hooks.

        Args:
            entry: the operation under way between two callbacks; ``None``: as before.
        """
        return Stepping(self, entry)

    @contextmanager
    def entered(self, entry: Entry | str, *, retry: bool = False) -> Iterator[None]:
        """Says which operation of the engine is under way; see the module for the quick form."""
        before = self.entry, self.turn, self.retry
        self.entry = Entry(entry)
        self.turn = 0 if self.entry is Entry.STEP else IDLE
        self.retry = retry
        try:
            with self.stepping():
                yield
        finally:
            self.entry, self.turn, self.retry = before

    def muted(self) -> Muted:
        """Lets no hook of this pair fire, for refreshes that are nobody's business."""
        return Muted(self)

    def mark_thread(self, thread: int) -> Route | None:
        """Makes ``thread`` step this route; returns the one it stepped before."""
        hosting = self._router.hosting
        before = hosting.get(thread)
        hosting[thread] = self
        self._threads.append(thread)
        self._put_clock(thread)
        return before

    def is_marked(self, thread: int) -> bool:
        """Whether ``thread`` is inside ``stepping`` of this route."""
        return thread in self._threads

    def unmark_thread(self, thread: int, before: Route | None) -> None:
        """Undoes ``mark_thread``."""
        self._threads.remove(thread)
        hosting = self._router.hosting
        if before is None:
            self._drop_clock(thread)
            hosting.pop(thread, None)
            return
        if before._time is None:
            self._drop_clock(thread)
        hosting[thread] = before
        before._put_clock(thread)

    def _put_clock(self, thread: int) -> None:
        time = self._time
        if time is not None:
            with self._router.lock:
                self._router.ports["time"].put(thread, *time)
        elif thread in self._router.ports["time"].hooks:
            self._drop_clock(thread)  # an outer route's

    def _drop_clock(self, thread: int) -> None:
        port = self._router.ports["time"]
        if thread in port.hooks:
            with self._router.lock:
                port.drop(thread)

    def silence(self, *, silent: bool) -> None:
        """Sends compiled hooks through Python, which looks at ``parked``, or straight again."""
        for name, pointer in self._compiled.items():
            port = self._router.ports[name]
            with self._router.lock:
                port.put(self.data_address, port.hooks[self.data_address], 0 if silent else pointer)


class Stepping:
    """``with route.stepping()``; may be nested, also with another route's."""

    __slots__ = ("_before", "_entry", "_entry_before", "_route", "_thread")

    def __init__(self, route: Route, entry: Entry | None = None) -> None:
        self._route = route
        self._entry = entry
        self._entry_before = route.entry
        self._thread = 0
        self._before: Route | None = None

    def __enter__(self) -> None:
        self._thread = get_ident()
        self._before = self._route.mark_thread(self._thread)
        if self._entry is not None:
            self._entry_before, self._route.entry = self._route.entry, self._entry

    def __exit__(self, *_: object) -> None:
        if self._entry is not None:
            self._route.entry = self._entry_before
        self._route.unmark_thread(self._thread, self._before)


class Muted:
    """``with route.muted()``; may be nested."""

    __slots__ = ("_quiet", "_route")

    def __init__(self, route: Route) -> None:
        self._route = route
        self._quiet: Any = None

    def __enter__(self) -> None:
        route = self._route
        try:
            route.parked.insert(0, _MUTED)
            route.silence(silent=True)
            self._quiet = route._router.quiet_thread()
            self._quiet.__enter__()
        except BaseException:  # an interrupt: the hooks must not stay silent for good
            self._unmute()
            raise

    def __exit__(self, *_: object) -> None:
        try:
            self._quiet.__exit__(None, None, None)
        finally:
            self._unmute()

    def _unmute(self) -> None:
        self._route.parked.remove(_MUTED)
        if _MUTED not in self._route.parked:
            self._route.silence(silent=False)


def _nothing(model: Any, data: Any) -> None:
    """Stands in for a hook that was removed."""


def followed_by(kind: CallbackKind, fn: Closure, foreign: Foreign) -> Closure:
    """``fn``, then the foreign callback that was there before, as one callback of an owned pair."""
    after: Callable[..., Any] = foreign.as_callable()
    if kind.result is Result.DROP:

        def either(*arguments: Any) -> int:
            return as_drop(fn(*arguments), kind, fn) or as_drop(after(*arguments), kind, after)

        return either

    def both(*arguments: Any) -> None:
        fn(*arguments)
        after(*arguments)

    return both
