"""Registration that cannot end the process.

Outside of the bindings an engine error writes ``MUJOCO_LOG.TXT`` and ends the process. Here it is
recorded instead, and the engine's error function returns to the engine.

Owns: the log handler of threads that are inside ``no_exit``.
Invariants: the handler is the thread's, not the process's; the one that was there before is put
back. It swallows nothing outside of ``no_exit``: should it be left in place, it passes all on.
Threads: any; entered and left by the same thread.
Failure: nothing leaves the handler.
Not a goal: catching errors in general. The engine counts on its error function not to return and
goes on as if nothing had happened: a null name is reported and then followed. Only what does
nothing more after its error is allowed inside, which was tried for each of the calls: the
registration of a plugin, provider, decoder, encoder that passes the checks of ``symbols``.
"""

from __future__ import annotations

import _thread
import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from mjhost import layout
from mjhost.engine.abi.structs import Address, address_of, text
from mjhost.engine.abi.symbols import engine

HANDLER: Final[Any] = ctypes.CFUNCTYPE(None, Address)
"""Prototype of a log handler, which gets the address of an ``mjLogMessage``."""

_Message: Final[Any] = layout.structure("mjLogMessage")
_WARNING: Final = layout.constants()["mjLOG_WARNING"]
_ERROR: Final = layout.constants()["mjLOG_ERROR"]


class Said:
    """What the engine said inside of one ``no_exit``.

    Attributes:
        errors: texts of engine errors, in order.
        warnings: texts of warnings, in order.
    """

    __slots__ = ("_outer", "_previous", "errors", "warnings")

    def __init__(self, outer: Said | None) -> None:
        self.errors: list[str] = []
        self.warnings: list[str] = []
        self._outer = outer
        self._previous: int | None = None  # the handler that was found in place

    @property
    def failed(self) -> bool:
        """Whether there was an engine error: what was asked did not happen."""
        return bool(self.errors)

    @property
    def message(self) -> str | None:
        """The first error, else the first warning, which is why a registration returned -1."""
        return next(iter([*self.errors, *self.warnings]), None)


class _Local(threading.local):
    """What is known about one thread."""

    listening: Said | None = None


_local: Final = _Local()


def _on_message(address: int) -> None:
    """Runs inside the engine, on the thread that called it, with the GIL."""
    said = _local.listening
    try:
        message = _Message.from_address(address)
        if said is not None and message.level in {_WARNING, _ERROR}:
            (said.errors if message.level == _ERROR else said.warnings).append(_text(message))
        else:
            _pass_on(said, address)
    except BaseException as problem:  # noqa: BLE001 - ctypes would print it and go on all the same
        if said is not None:  # it may have been an error: rather one too many
            said.errors.append(f"the engine's message was lost to {problem!r}")
        if isinstance(problem, KeyboardInterrupt):
            _thread.interrupt_main()


def _text(message: Any) -> str:
    words = [text(bytes(message.subject))]
    if message.body:
        words.append(text(ctypes.string_at(message.body)))
    return " ".join(" ".join(words).split())


def _pass_on(said: Said | None, address: int) -> None:
    if said is None:
        HANDLER(engine().process_log_handler())(address)
        return
    # The handler before may lead here again, on behalf of the guard around this one.
    _local.listening = said._outer
    try:
        HANDLER(said._previous or engine().process_log_handler())(address)
    finally:
        _local.listening = said


# Kept for the life of the process: a thread may be left with it.
_thunk: Final = HANDLER(_on_message)
_thunk_address: Final = address_of(_thunk)


@contextmanager
def no_exit() -> Iterator[Said]:
    """Records the engine errors and warnings of the calls inside, on this thread.

    Contract: for registrations only, see above; may be nested, the inner one hears.
    """
    set_handler, said = engine().set_thread_log_handler, Said(_local.listening)
    _local.listening = said
    try:
        said._previous = set_handler(_thunk_address)
        yield said
    finally:
        if said._previous is not None:
            set_handler(said._previous)
        _local.listening = said._outer
