"""What plugins and libraries log, as notes above the live line.

Owns: the handler at the root logger, for its time; the root logger's level then.
Invariants: bounded: of a flood the first lines are told, and how many were not.
Threads: any thread logs; the main thread tells.
"""

from __future__ import annotations

import logging
import threading
from types import TracebackType
from typing import Final, Self

_LINES_PER_TURN: Final = 20


class LogNotes(logging.Handler):
    """Collects records of level INFO and above between two looks; a context manager."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._mutex = threading.Lock()
        self._lines: list[str] = []
        self._left_out = 0
        self._level = logging.WARNING

    def __enter__(self) -> Self:
        root = logging.getLogger()
        self._level = root.level
        root.addHandler(self)
        root.setLevel(min(root.level or logging.INFO, logging.INFO))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        root = logging.getLogger()
        root.removeHandler(self)
        root.setLevel(self._level)
        self.close()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record as a line."""
        try:
            text = record.getMessage()
        except Exception:  # noqa: BLE001 - as logging has it: a bad format ends no program
            self.handleError(record)
            return
        level = "" if record.levelno < logging.WARNING else f"{record.levelname.lower()}: "
        with self._mutex:
            if len(self._lines) < _LINES_PER_TURN:
                self._lines.append(level + text)
            else:
                self._left_out += 1

    def drain(self) -> list[str]:
        """The lines since the last call."""
        with self._mutex:
            lines, self._lines = self._lines, []
            left_out, self._left_out = self._left_out, 0
        if left_out:
            lines.append(f"warning: {left_out} more lines were logged at once and left out")
        return lines
