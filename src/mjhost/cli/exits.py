"""The exit statuses of ``mjhost``, which are part of its contract."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class ExitStatus(IntEnum):
    """What the shell is told."""

    OK = 0
    FAILED = 1
    USAGE = 2
    FAULT = 3
    INTERRUPTED = 130


MEANINGS: Final[dict[ExitStatus, str]] = {
    ExitStatus.OK: "done; also a run ended by q, Ctrl-C or SIGTERM",
    ExitStatus.FAILED: "what was asked for failed, or the answer is no",
    ExitStatus.USAGE: "the command line cannot be right",
    ExitStatus.FAULT: "a run ended with a fault set",
    ExitStatus.INTERRUPTED: "Ctrl-C before there was anything to end",
}

HELP: Final = "Exit status:\n\n" + "\n".join(
    f"* {status.value}: {meaning}" for status, meaning in MEANINGS.items()
)
"""The end of every help text, in Markdown."""
