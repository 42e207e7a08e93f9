"""The place of one callback kind in the engine, while the router holds it.

Owns: the kind's thunk (made once, immortal), its hooks, the value that the exported pointer had
before, and the machine-code frame in front of it where there is one.
Invariants: the pointer is written by the first user and put back by the last, exactly; the Python
object of the binding is never touched. A pointer that somebody overwrote stays theirs.
Hooks are in place before the pointer leads to them and outlive it: no call of anybody is missed.
Threads: changed under the router's lock; ``hooks`` is read by thunks at any time.
Failure: ``ForeignCallbackError`` when it cannot be installed; nothing was changed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from threading import get_ident
from typing import Any

from mjhost.callbacks import foreign
from mjhost.callbacks.doorways import Doorway
from mjhost.callbacks.foreign import Foreign
from mjhost.callbacks.kinds import CallbackKind
from mjhost.callbacks.native import Frame, immortal
from mjhost.callbacks.symbols import address_of, exported_pointer
from mjhost.callbacks.thunks import Closure, Hooks, Routes, thunk_for
from mjhost.errors import ForeignCallbackError


class Port:
    """One kind's place in the engine.

    Attributes:
        hooks: data address (``time``: thread) → closure.
        foreign: what was there before, as long as the port is installed.
        users: how many routes and compile guards need it.
    """

    def __init__(
        self,
        kind: CallbackKind,
        routes: Routes,
        frame_of: Callable[[CallbackKind], Frame | None],
        quiet_threads: dict[int, int],
    ) -> None:
        self.kind = kind
        self.hooks: Hooks = {}
        self.foreign: Foreign | None = None
        self.users = 0
        self._routes = routes
        self._frame_of = frame_of
        self._quiet_threads = quiet_threads
        self._frame: Frame | None = None
        self._doorways: list[Doorway] = []  # those not in use
        self._thunk: Any = None
        self._thunk_address = 0
        self._before = 0
        self._below: Any = None  # what was there before, as a ctypes function
        self._stand_in: Closure | None = None
        self._stand_in_pointer = 0
        self.written = 0
        self.cell: ctypes.c_void_p = exported_pointer(kind)

    # -- installing --------------------------------------------------------------------------

    def probe(self) -> None:
        """Raises ``ForeignCallbackError`` if the port could not be installed now."""
        if not self.users:
            self._look()

    def acquire(self) -> None:
        """Counts one more user; the first one installs."""
        if not self.users:
            self.install()
        self.users += 1

    def release(self) -> None:
        """Counts one user less; the last one puts back what was there before."""
        self.users -= 1
        if self.users:
            return
        if self.cell.value == self.written:
            self.cell.value = self._before or None
        # The frame keeps its way through to what was there: a thread may be inside of it.
        self.written = 0
        self.foreign = None

    def install(self) -> None:
        """Writes the pointer, over whatever it holds now."""
        before, found = self._look()
        self._prepare()
        self._before, self.foreign = before, found
        self._below = self.kind.prototype(before) if before else None
        if self._frame is not None:
            self._frame.fall_through_to(self._stand_in_pointer or before)
            self.written = self._frame.address
        else:
            self.written = self._thunk_address
        self.cell.value = self.written

    def _look(self) -> tuple[int, Foreign | None]:
        before = self.cell.value or 0
        found = foreign.find(self.kind, before)
        if found is not None and found.is_python and self._frame_of(self.kind) is None:
            raise self._in_the_way(found)
        return before, found

    def _in_the_way(self, found: Foreign) -> ForeignCallbackError:
        name = self.kind.name
        return ForeignCallbackError(
            f"the {name} callback cannot be routed: {found} is installed there, and an exception "
            "in it could not pass a router in Python; remove it "
            f"(mujoco.set_{self.kind.symbol}(None)), hand it to env.callbacks.add({name!r}, ...), "
            "or install the extra mjhost[fast]"
        )

    def _prepare(self) -> None:
        if self._thunk is not None:
            return
        self._frame = self._frame_of(self.kind)
        function = thunk_for(self.kind, self.hooks, self._routes, self.ask_below)
        self._thunk = immortal(self.kind.prototype(function))
        self._thunk_address = address_of(self._thunk)

    # -- hooks -------------------------------------------------------------------------------

    @property
    def jumps(self) -> bool:
        """Whether compiled hooks are reached without Python."""
        return self._frame is not None

    def put(self, key: int, call: Closure, pointer: int = 0) -> None:
        """Leads calls for ``key`` to ``call``, or straight to ``pointer`` where frames can."""
        self.hooks[key] = call
        if self._frame is not None:
            self._frame.hooks.put(key, pointer or self._thunk_address)

    def drop(self, key: int) -> None:
        """Makes ``key`` nobody's; its address may be used again afterwards."""
        if self._frame is not None:
            self._frame.hooks.drop(key)
        self.hooks.pop(key, None)

    @property
    def falls_through(self) -> bool:
        """Whether calls for data that nobody hooks lead anywhere."""
        return self.foreign is not None or self._stand_in is not None

    def stand_in(self, call: Closure | None, pointer: int = 0) -> None:
        """Answers for data that nobody hooks, in the place of what was there before.

        Contract: while the port is acquired; taken back before it is released.

        Args:
            call: takes the engine's arguments and raises nothing; ``None`` gives the place back.
            pointer: the same as machine code, where frames can jump to it.
        """
        self._stand_in = call
        self._stand_in_pointer = 0 if call is None else pointer
        if self._frame is not None:
            self._frame.fall_through_to(self._stand_in_pointer or self._before)

    def ask_below(self, *arguments: int) -> Any:
        """The answer for data that nobody hooks: what was there before, or the neutral value.

        With frames only the clock comes here. Without them a C callback is called from this Python
        frame, which is right unless it leaves by ``mju_error``: ctypes callbacks never do.
        """
        if not self.kind.arguments:
            return self._ask_clock() if self._stand_in is None else self._stand_in()
        below = self._below if self._stand_in is None else self._stand_in
        quiet = self.falls_through and get_ident() in self._quiet_threads
        if below is None or quiet:
            return self.kind.neutral
        return below(*arguments)

    def ask_clock_below(self) -> float:
        """What the clock says that was there before."""
        return self._ask_clock()

    def _ask_clock(self) -> float:
        if self._below is None:
            return 0.0  # mj_resetCallbacks took the built-in clock away: the engine then uses 0
        if self.foreign is None or not self.foreign.is_python:
            return float(self._below())
        try:  # as an object: its trampoline would jump across this frame
            return float(self.foreign.target())
        except Exception:  # noqa: BLE001 - a clock that fails for whoever asks it directly, too
            return 0.0

    # -- doorways ----------------------------------------------------------------------------

    def lend(self) -> Doorway:
        """A doorway for one route, until it gives it back."""
        return self._doorways.pop() if self._doorways else Doorway(self.kind)

    def give_back(self, doorway: Doorway) -> None:
        """Takes back a doorway that no call can be on its way to any more."""
        doorway.blank()
        self._doorways.append(doorway)

    # -- watching ----------------------------------------------------------------------------

    @property
    def taken(self) -> bool:
        """Whether somebody overwrote the pointer since it was installed."""
        return bool(self.users) and self.cell.value != self.written

    def describe_taken(self) -> str:
        """Who overwrote the pointer."""
        value = self.cell.value or 0
        if not value:
            return f"{self.kind.symbol} was set to null (mj_resetCallbacks, or a setter with None)"
        found = foreign.find(self.kind, value)
        return f"{self.kind.symbol} was taken by {found or 'the built-in clock'}"
