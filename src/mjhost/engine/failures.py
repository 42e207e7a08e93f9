"""What methods of engine extensions raised, until somebody is told.

Owns: the failures that could not be raised from the engine call they happened in, by the address of
their data, and the mark they leave there.
Invariants: the first failure of a data stays until it is taken; a failure is delivered once. Data
with a failure carry ``MARK`` in a ``warning[].lastinfo`` that the engine does not read: who
compares the warnings' bytes after a step, as the host does, pays nothing for looking. A failure
outlives its data.
Threads: any; single dict and deque operations under the GIL.
Failure: what nobody has asked for when there are too many, or when the interpreter ends, is logged
with its traceback; nothing is both logged and raised.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import re
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

from mjhost.errors import EnginePluginError
from mjhost.layout import constants, offset_of

MARK: Final = 0x6D6A6866
"""What ``warning[WARNING].lastinfo`` is while a failure is pending."""

WARNING: Final = constants()["mjNWARNING"] - 1
"""Index of the warning that carries the mark: the newest kind; its number is left alone."""

_LOG: Final = logging.getLogger("mjhost.engine")
_MOST: Final = 64  # failures without data that are kept
_SHOWN: Final = 400  # characters of the original's message
_MARK_OFFSET: Final = offset_of("mjData", "warning") + WARNING * 8

pending: Final[dict[int, EnginePluginError]] = {}
"""Data address → its first failure."""

_homeless: Final[deque[EnginePluginError]] = deque(maxlen=_MOST)
thunk_codes: Final[set[Any]] = set()
"""The code of every Python function that the engine enters."""

_listeners: Final[list[Callable[[int], None]]] = []
recent: Final[deque[EnginePluginError]] = deque(maxlen=8)
"""Failures that the engine turned into an error of its own (compilation, batch), newest last."""


def failure(
    plugin: str, instance: int | None, label: str, method: str, error: BaseException
) -> EnginePluginError:
    """``error`` as an ``EnginePluginError`` that names where it came from.

    Args:
        plugin: the registered name.
        instance: its index in the model, if there is one.
        label: how messages call the instance; empty if there is none.
        method: what raised.
        error: what was raised; becomes the cause.
    """
    owner = f"engine plugin {plugin!r}" if plugin else "engine extension"
    where = f"{owner}{', ' if label else ''}{label}, {method}"
    text = text_of(error)
    text = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    made = EnginePluginError(
        f"{where}: {type(error).__name__}: {text}" if text else f"{where}: {type(error).__name__}",
        plugin=plugin,
        instance=instance,
        method=method,
    )
    made.__cause__ = error
    return made


def text_of(error: BaseException) -> str:
    """The text of ``error``, also of one whose ``__str__`` fails: that must not leave a thunk."""
    try:
        return str(error)
    except Exception as worse:  # noqa: BLE001 - whatever a user's class does
        return f"(its text cannot be had: __str__ raised {type(worse).__name__})"


def park(error: EnginePluginError, data: int = 0) -> None:
    """Keeps ``error`` until it is taken; 0 is for what belongs to no data."""
    if not data:
        if len(_homeless) == _MOST:
            _log(_homeless.popleft())
        _homeless.append(error)
        return
    if data not in pending:
        pending[data] = error
        _mark(data, MARK)
        for silence in _listeners:
            silence(data)


def keep_dropped(report: Any, data: int = 0) -> bool:
    """Keeps an exception that the interpreter dropped on the way into a thunk.

    For a ``sys.unraisablehook`` that is set around an engine call: an interrupt that arrives at the
    first instruction of a thunk comes before its ``try``, and nowhere else can it be seen.

    Args:
        report: what the hook is called with.
        data: address of the data of the engine call.

    Returns:
        whether it was one of ours; else it is somebody else's report.
    """
    # The outermost frame tells on every Python version: 3.13 names no function in `object`.
    trace = report.exc_traceback
    code = getattr(report.object, "__code__", None) if trace is None else trace.tb_frame.f_code
    if code not in thunk_codes:
        return False
    error = report.exc_value or report.exc_type()
    park(failure("", None, "", "on the way into a method", error), data)
    return True


def when_parked(silence: Callable[[int], None]) -> None:
    """Has ``silence`` called with the address of data that have a failure from now on."""
    _listeners.append(silence)


def take(data: int) -> EnginePluginError | None:
    """The failure of the data at that address, which is then no longer pending.

    Contract: the data are alive.
    """
    error = pending.pop(data, None)
    if error is not None:
        _mark(data, 0)
    return error


def take_any() -> EnginePluginError | None:
    """The oldest failure of anything."""
    if _homeless:
        return _homeless.popleft()
    for data in tuple(pending):
        error = take(data)
        if error is not None:
            return error
    return None


def carried(error: EnginePluginError) -> None:
    """Notes that an error of the engine's own carries the words of ``error``.

    An interrupt or an exit is more than the reason of a failed compilation: it waits as well.
    """
    recent.append(error)
    if not isinstance(error.__cause__, Exception | None):
        park(error)


def take_interrupt() -> BaseException | None:
    """An interrupt or exit that waits and belongs to no data, to be raised by the caller."""
    for error in tuple(_homeless):
        if not isinstance(error.__cause__, Exception | None):
            _homeless.remove(error)
            return surface(error)
    return None


def forget_told(message: str) -> None:
    """Lets go of failures of no data whose words are all in ``message``, which is being raised."""
    said = _letters(message)
    for error in tuple(_homeless):
        if isinstance(error.__cause__, Exception | None) and _letters(str(error)) in said:
            _homeless.remove(error)


def _letters(text: str) -> str:
    """``text`` without what changes when lines are joined."""
    return re.sub(r"[\s;]+", "", text)


def check(data: Any = None) -> None:
    """Raises what an engine extension raised and the engine could not pass on.

    Args:
        data: an ``MjData``: only its failures; ``None``: those of all data, the oldest first.

    Raises:
        EnginePluginError: the first failure; the original is its cause. An interrupt or an exit is
            raised as itself.
    """
    error = take_any() if data is None else take(data._address)
    if error is not None:
        raise surface(error)


def surface(error: EnginePluginError) -> BaseException:
    """What to raise for ``error``: an interrupt or exit goes on as what it was."""
    cause = error.__cause__
    if cause is None or isinstance(cause, Exception):
        return error
    cause.add_note(str(error))
    return cause


def drop(data: int) -> None:
    """Takes the failure of data that are being destroyed; it is then one of no data."""
    error = pending.pop(data, None)
    if error is not None:
        park(error)


def log_the_rest() -> None:
    """Logs what nobody has asked for, with tracebacks; for the end of the interpreter."""
    left = [*_homeless, *pending.values()]
    _homeless.clear()
    pending.clear()
    for error in left:
        _log(error)


def _log(error: EnginePluginError) -> None:
    _LOG.error("nobody asked for the failure of an engine extension", exc_info=error)


@contextlib.contextmanager
def mark_stays(data: int) -> Iterator[None]:
    """While the memory of data is written as a whole: afterwards their mark is that of before."""
    mark = ctypes.c_int.from_address(data + _MARK_OFFSET).value if data else 0
    yield
    if data:
        _mark(data, mark)


def _mark(data: int, value: int) -> None:
    ctypes.c_int.from_address(data + _MARK_OFFSET).value = value
