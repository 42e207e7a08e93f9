"""The callback router: one owner of the engine's eight process-wide callbacks.

Owns: the ports of all kinds, the table of owned data, the threads that compile or step.
Invariants: a kind is in the engine exactly as long as a route or a compile guard needs it, and what
was there before is put back exactly. A call reaches the hook of the route that owns its data, and
no other one; data that nobody owns get the foreign callback that was there, or the neutral value.
Closing one route never touches another's hooks.
Threads: everything may be called from any thread; ``lock`` is held for a few stores only, and is
never held while a hook or the engine runs.
Failure: ``ForeignCallbackError`` if a foreign Python callback cannot be kept; nothing was changed.
Not a goal: knowing an env. The env attaches its data, and asks for what was parked.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import get_ident

import mujoco

from mjhost.callbacks import native
from mjhost.callbacks.foreign import find
from mjhost.callbacks.kinds import KINDS, CallbackKind, kind_named
from mjhost.callbacks.native import Frame, Frames
from mjhost.callbacks.port import Port
from mjhost.callbacks.route import Route
from mjhost.errors import ForeignCallbackError, InvalidArgumentError


class Router:
    """Routes the engine's callbacks by the identity of the data; one per process.

    Attributes:
        ports: name → that kind's place in the engine.
        routes: data address → route.
        hosting: thread → the route it steps.
        lock: held for changes; re-entrant, since a collector may detach inside of one.
    """

    def __init__(self, *, fast: bool | None = None) -> None:
        """Makes a router that has installed nothing yet.

        Args:
            fast: whether to use machine-code frames; ``None``: if the extra is installed.
        """
        self.lock = threading.RLock()
        self.routes: dict[int, Route] = {}
        self.hosting: dict[int, Route] = {}
        self._fast = fast
        self._frames: Frames | None = None
        self._quiet: dict[int, int] = {}  # thread -> depth
        self.ports = {
            name: Port(
                kind, self.routes if kind.arguments else self.hosting, self._frame_of, self._quiet
            )
            for name, kind in KINDS.items()
        }
        self._watched: tuple[Port, ...] = ()
        os.register_at_fork(after_in_child=self._after_fork)

    # -- routes ------------------------------------------------------------------------------

    def attach(self, model: mujoco.MjModel, data: mujoco.MjData) -> Route:
        """Owns ``data`` until ``route.detach()``; nothing is installed before a hook is set.

        Raises:
            InvalidArgumentError: the data already have an owner.
        """
        with self.lock:
            route = Route(self, model, data)
            if route.data_address in self.routes:
                raise InvalidArgumentError(
                    "the data cannot be attached: another route owns them; detach that one first"
                )
            self.routes[route.data_address] = route
            return route

    @property
    def installed(self) -> tuple[str, ...]:
        """Names of the kinds that are in the engine at present."""
        return tuple(name for name, port in self.ports.items() if port.users)

    def probe(self, kind: str) -> None:
        """Raises ``ForeignCallbackError`` if a hook of ``kind`` could not be installed now."""
        self.ports[kind_named(kind).name].probe()

    def prepare(self) -> None:
        """Compiles the frames now, so that no hook's installation waits for it (0.1 to 0.3 s)."""
        with self.lock:
            self._frame_of(KINDS["control"])

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Holds the lock around a change of ports."""
        with self.lock:
            try:
                yield
            finally:
                self._watched = tuple(port for port in self.ports.values() if port.users)

    def _frame_of(self, kind: CallbackKind) -> Frame | None:
        if self._fast is None:
            self._fast = native.available()
        if not self._fast:
            return None
        if self._frames is None:
            self._frames = Frames()
        return self._frames.of(kind)

    # -- watching ----------------------------------------------------------------------------

    def check(self) -> str | None:
        """Who overwrote a pointer that the router had installed, or ``None``; about 0.1 µs."""
        for port in self._watched:
            if port.cell.value != port.written:
                return port.describe_taken()
        return None

    def reclaim(self) -> tuple[str, ...]:
        """Installs again over whoever took a pointer, who is then kept as a foreign callback.

        Returns:
            the kinds that were taken.

        Raises:
            ForeignCallbackError: a Python function was installed there, and there are no frames.
        """
        with self.lock:
            taken = [port for port in self.ports.values() if port.taken]
            for port in taken:
                self._reinstall(port)
            return tuple(port.kind.name for port in taken)

    def _reinstall(self, port: Port) -> None:
        port.install()
        for route in tuple(self.routes.values()):
            route.rebind(port)

    # -- compiling ---------------------------------------------------------------------------

    @contextmanager
    def compile_guard(self) -> Iterator[None]:
        """Keeps every callback away from what this thread compiles or refreshes.

        The compiler steps private data once: a foreign Python callback makes that fail. Other
        threads' callbacks go on. With frames a foreign callback stays reachable for everybody else;
        without them a foreign Python function is lifted for the time, which is possible only while
        no other Python thread exists that could miss it.

        Raises:
            ForeignCallbackError: a foreign Python function can be neither passed nor lifted.
        """
        held: list[Port] = []
        lifted: list[tuple[Port, int]] = []
        try:
            with self.changing():
                for port in self.ports.values():
                    if port.kind.arguments:  # a clock harms no compile
                        self._hold(port, held, lifted)
            with self.quiet_thread():
                yield
        finally:
            with self.changing():
                for port, value in lifted:
                    if not port.cell.value:
                        port.cell.value = value
                for port in held:
                    port.release()

    def _hold(self, port: Port, held: list[Port], lifted: list[tuple[Port, int]]) -> None:
        value = port.cell.value or 0
        if not port.users and find(port.kind, value) is None:
            return
        try:
            if port.taken:
                self._reinstall(port)
            port.acquire()
            held.append(port)
        except ForeignCallbackError as error:
            if len(sys._current_frames()) > 1:
                error.add_note(
                    "a model cannot be compiled meanwhile either: other threads are running, and "
                    "the callback cannot be taken out without their missing it"
                )
                raise
            port.cell.value = None
            lifted.append((port, value))

    def forget_thread(self, thread: int) -> None:
        """Ends the marks of a thread that steps nothing: an interrupt kept them from ending."""
        while (route := self.hosting.get(thread)) is not None and route.is_marked(thread):
            route.unmark_thread(thread, None)
        self.hosting.pop(thread, None)

    def quiet_thread(self) -> AbstractContextManager[None]:
        """Lets no foreign callback be reached from this thread; costs nothing if there is none."""
        if any(port.falls_through for port in self._watched):
            return self._quietly()
        return nullcontext()

    @contextmanager
    def _quietly(self) -> Iterator[None]:
        me = get_ident()
        self._hush(me, 1)
        try:
            yield
        finally:
            self._hush(me, -1)

    def _hush(self, thread: int, change: int) -> None:
        with self.lock:
            depth = self._quiet.get(thread, 0) + change
            if depth:
                self._quiet[thread] = depth
            else:
                self._quiet.pop(thread, None)
            if self._frames is not None:
                if depth:
                    self._frames.quiet_threads.put(thread, 1)
                else:
                    self._frames.quiet_threads.drop(thread)

    # -- fork --------------------------------------------------------------------------------

    def _after_fork(self) -> None:
        """In a forked child the other threads are gone, whatever they held or marked."""
        self.lock = threading.RLock()
        me = get_ident()
        for thread in [thread for thread in self._quiet if thread != me]:
            del self._quiet[thread]
            if self._frames is not None:
                self._frames.quiet_threads.drop(thread)
        for thread in [thread for thread in self.hosting if thread != me]:
            del self.hosting[thread]
            self.ports["time"].drop(thread)


router = Router()
"""The router of this process."""
