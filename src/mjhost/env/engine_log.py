"""What the engine says: kept off the terminal and the disk, for our own calls only.

MuJoCo prints a warning and appends it to ``MUJOCO_LOG.TXT`` in the working directory unless a log
handler is in its way. The handler used here is the thread's, not the process's: the bindings pass
warnings of a call on to it. It keeps what mjhost's own calls say and passes everything else on.

Owns: the log handler of adopted threads, the warnings that arrived there, and the fast access to
the warning counters of an ``MjData``.
Invariants: threads that were not adopted, and engine calls made by anybody else on those that were,
behave as if mjhost were not there: console, file, topics, ``set_mju_user_warning``. A call is ours
if the innermost Python frame of the thread, the one that made the call, belongs to mjhost. A silent
step costs nothing: the handler runs only when the engine speaks.
Threads: any. A thread that calls the engine for an env has to be adopted once.
Failure: nothing leaves the handler. An interrupt that arrives inside it is raised again afterwards.
Not a goal: engine errors. The bindings turn them into exceptions before they come here. Warnings of
the engine's own worker threads (``mju_threadpool``) are not seen either.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import sys
import threading
from collections import deque
from collections.abc import Iterator, MutableSequence
from contextlib import contextmanager
from threading import get_ident
from typing import Any, Final

import mujoco

from mjhost.errors import PhaseError
from mjhost.layout import constants, inline_view, library, structure

_KEPT: Final = 256  # uncollected messages; older ones are dropped
_PACKAGE: Final = __name__.partition(".")[0]
_WARNING: Final = constants()["mjLOG_WARNING"]
_ERROR: Final = constants()["mjLOG_ERROR"]

_Handler: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Message: Final = structure("mjLogMessage")

_set_thread_handler = library()._mjPRIVATE_setTlsLogHandler
_set_thread_handler.argtypes, _set_thread_handler.restype = (ctypes.c_void_p,), ctypes.c_void_p
_global_handler = library()._mjPRIVATE_getGlobalLogHandler
_global_handler.argtypes, _global_handler.restype = (), ctypes.c_void_p

adopted: Final[set[int]] = set()
"""Identities of the threads whose handler is in place; look here before calling ``adopt``."""

_recent: Final[deque[str]] = deque(maxlen=_KEPT)
_users = 0
_lock = threading.Lock()


def _free_lock() -> None:
    """In a forked child nobody holds it, whatever a vanished thread did."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_free_lock)


class _Local(threading.local):
    """What is known about one thread."""

    previous: int | None = None  # the handler found there
    sink: MutableSequence[str] | None = None
    mark: _Mark | None = None


class _Mark:
    """Forgets a thread when it ends: the identity may be given to the next one."""

    def __init__(self, ident: int) -> None:
        self._ident = ident

    def __del__(self) -> None:
        adopted.discard(self._ident)


_local: Final = _Local()


# -- the handler ---------------------------------------------------------------------------------


def _on_message(address: int) -> None:
    """Runs inside the engine, on the thread that called it, with the GIL."""
    try:
        caller = sys._getframe().f_back
        message: Any = _Message.from_address(address)
        if message.level != _WARNING or not _is_ours(caller):
            _pass_on(address)
            return
        sink = _local.sink
        (_recent if sink is None else sink).append(_text(message))
    except KeyboardInterrupt:
        _thread.interrupt_main()
    except BaseException:  # noqa: BLE001, S110 - ctypes would print it and go on all the same
        pass


def _is_ours(frame: Any) -> bool:
    return frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE


def _pass_on(address: int) -> None:
    # Asked for each time: the process's handler may have been changed since.
    _Handler(_local.previous or _global_handler())(address)


def _text(message: Any) -> str:
    parts = [bytes(message.subject)]
    if message.body:
        parts.append(ctypes.string_at(message.body))
    return " ".join(b" ".join(parts).decode("utf-8", "replace").split())


# Kept for the life of the process: a thread that was adopted may call it at any time.
_thunk: Final = _Handler(_on_message)
_thunk_address: Final = ctypes.cast(_thunk, ctypes.c_void_p).value


# -- who listens ---------------------------------------------------------------------------------


def acquire() -> None:
    """Counts one more user and adopts the calling thread; undone by ``release``."""
    global _users
    with _lock:
        _users += 1
    adopt()


def release() -> None:
    """Counts one user less. The last one gives the calling thread its old handler back.

    Other adopted threads keep the handler, which then has nothing to keep: it passes everything on.

    Raises:
        PhaseError: there is no user; nothing changes.
    """
    global _users
    with _lock:
        if _users == 0:
            raise PhaseError("the engine's log was released more often than it was acquired")
        _users -= 1
        last = _users == 0
    if last:
        disown()
        _recent.clear()


def adopt() -> None:
    """Puts the handler in place for the calling thread, until it ends or is disowned."""
    ident = get_ident()
    previous = _set_thread_handler(_thunk_address)
    if previous != _thunk_address:
        _local.previous = previous
    if _local.mark is None:
        _local.mark = _Mark(ident)
    adopted.add(ident)


def disown() -> None:
    """Gives the calling thread the handler back that it had before ``adopt``."""
    if get_ident() not in adopted:
        return
    found = _set_thread_handler(_local.previous)
    if found != _thunk_address:
        _set_thread_handler(found)  # somebody took the place after us; theirs stays
    _local.previous = None
    adopted.discard(get_ident())


@contextmanager
def captured() -> Iterator[list[str]]:
    """Collects what the engine says to mjhost's calls on this thread, adopted or not."""
    was_adopted, outer, messages = get_ident() in adopted, _local.sink, list[str]()
    adopt()
    _local.sink = messages
    try:
        yield messages
    finally:
        _local.sink = outer
        if not was_adopted:
            disown()


def drain() -> tuple[str, ...]:
    """Takes the warnings of steps that arrived since the last call, oldest first, at most 256.

    Most are also counted in ``MjData.warning``; those that the engine does not count are only here.
    """
    taken = []
    while _recent:
        taken.append(_recent.popleft())
    return tuple(taken)


# -- counters ------------------------------------------------------------------------------------

_KINDS: Final = tuple(
    (kind.name.removeprefix("mjWARN_"), int(kind))
    for kind in mujoco.mjtWarning.__members__.values()
    if kind.name != "mjNWARNING"
)
DIVERGENCES: Final = frozenset({"BADQPOS", "BADQVEL", "BADQACC"})
"""Kinds of warning after which the state is not to be believed."""


class WarningCounters:
    """The counters ``data.warning``, by kind: how often, since they were cleared.

    A step that diverges makes the engine reset the data and with it the counters: afterwards the
    divergence reads 1, whatever stood there. Hence ``clear`` before a step, then ``any``.

    Contract: under the physics lock; valid as long as ``data``, which it keeps alive.

    Attributes:
        view: the counters' memory.
        zero: what it holds when there was no warning; for loops that cannot afford the calls.
    """

    __slots__ = ("_data", "_divergences", "_numbers", "view", "zero")

    def __init__(self, data: mujoco.MjData) -> None:
        self._data = data
        self.view = inline_view(data, "mjData", "warning")
        self.zero = bytes(len(self.view))
        pair = structure("mjWarningStat")
        first = pair.number.offset // ctypes.sizeof(ctypes.c_int)
        step = ctypes.sizeof(pair) // ctypes.sizeof(ctypes.c_int)
        self._numbers = self.view.cast("i")[first::step]
        self._divergences = tuple(index for name, index in _KINDS if name in DIVERGENCES)

    def clear(self) -> None:
        """Sets every counter to zero."""
        self.view[:] = self.zero

    def any(self) -> bool:
        """Whether the engine warned at all."""
        return self.view.tobytes() != self.zero

    def diverged(self) -> bool:
        """Whether it met NaN, infinity or a huge value in the state."""
        numbers = self._numbers
        return any(numbers[index] for index in self._divergences)

    def counts(self) -> dict[str, int]:
        """Kinds that occurred and how often; names as in ``mujoco.mjtWarning``, unprefixed."""
        return {name: self._numbers[index] for name, index in _KINDS if self._numbers[index]}

    def texts(self) -> dict[str, str]:
        """Kinds that occurred and the engine's sentence for the last of each."""
        stats = self._data.warning
        return {
            name: mujoco.mju_warningText(index, stats[index].lastinfo)
            for name, index in _KINDS
            if self._numbers[index]
        }
