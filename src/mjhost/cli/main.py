"""The entry point: what a process of ``mjhost`` does before there is anything to do it with.

Invariants: importing this module imports the standard library only, and what it needs is imported
where an interrupt or an engine that cannot be imported is still told in order: no traceback unless
``--debug`` asks for it.
Threads: the main thread; signal handlers are installed by ``run`` for its time only.
Failure: one line on stderr that begins with ``mjhost: error:``, and an exit status out of
``ExitStatus``.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

_INTERRUPTED = 130  # `ExitStatus.INTERRUPTED`, which may not be imported yet


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Args:
        arguments: the words after ``mjhost``; by default those of the process.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _main(words)
    except KeyboardInterrupt:
        return _INTERRUPTED


def _main(words: list[str]) -> int:
    try:
        with _interrupts_end_the_process():
            from mjhost.cli.app import invoke
    except Exception as error:  # noqa: BLE001 - whatever the engine does when it is imported
        return _tell_of_the_engine(error, words)
    return invoke(words)


@contextmanager
def _interrupts_end_the_process() -> Iterator[None]:
    """Has Ctrl-C end the process at once while modules are imported.

    An extension that is being initialised would make an ``ImportError`` out of an interrupt,
    or lose it. There is nothing to clean up yet.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # ignored, or somebody else's
        yield
        return
    signal.signal(signal.SIGINT, _end_the_process)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end_the_process(_number: int, _frame: FrameType | None) -> None:
    os._exit(_INTERRUPTED)


def _tell_of_the_engine(error: Exception, words: list[str]) -> int:
    """What there is to say without an engine; ``doctor`` has a table of findings even so."""
    if "--debug" in words:
        import traceback

        traceback.print_exception(error)
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    try:
        if words[:1] == ["doctor"]:
            from mjhost.cli.doctor import say_without_engine

            return say_without_engine(reason, json="--json" in words)
    except ImportError:
        pass  # it is more than the engine that is missing: the line says what
    print(f"mjhost: error: the engine cannot be imported: {reason}", file=sys.stderr)
    return 1
