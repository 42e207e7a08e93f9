"""The terminal while a simulation runs: one live line on stderr, and single keys from stdin.

Owns: the terminal's mode and the handlers of SIGTSTP and SIGCONT, between enter and exit.
Invariants: the mode is put back on every way out, and while the process is stopped (Ctrl-Z). The
terminal is touched only while this process is in its foreground: from the background, reading keys
or changing the mode would stop the process.
Threads: the main thread only.
Failure: a terminal that goes away has no keys any more; nothing is raised.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import sys
import termios
import tty
from types import FrameType, TracebackType
from typing import Any, Final, Self, TextIO

from mjhost.cli import output

_CHUNK: Final = 256  # bytes read at once; more than anybody types in a tenth of a second
# What cursor and function keys send, and a key pressed together with Alt.
_ESCAPE_SEQUENCE: Final = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|O.|[^\[O])?")
_ERASE: Final = "\r\x1b[K"
_COLOURS: Final = {"green": "32", "yellow": "33", "red": "31"}
_WIDTH: Final = 80  # of a terminal that does not say


class StatusLine:
    """One line that is written over and over, and notes above it.

    Args:
        stream: where to; ``None`` or something that is no terminal gets the notes only.
        live: whether a line is wanted at all.
    """

    def __init__(self, stream: TextIO | None, *, live: bool = True) -> None:
        dumb = os.environ.get("TERM", "") in {"", "dumb"}
        self._stream = stream
        self._live = live and output.is_terminal(stream) and not dumb
        self._colour = self._live and not os.environ.get("NO_COLOR")
        self._shown = ""

    @property
    def live(self) -> bool:
        """Whether there is a line."""
        return self._live

    def show(self, text: str, head: int = 0, colour: str = "") -> None:
        """Replace the line; the first ``head`` characters get ``colour``."""
        if not self._live:
            return
        text = text[: self._width() - 1]  # the last column would wrap
        if self._colour and colour in _COLOURS:
            text = f"\x1b[{_COLOURS[colour]}m{text[:head]}\x1b[0m{text[head:]}"
        if text != self._shown:
            self._write(_ERASE + text)
            self._shown = text

    def note(self, text: str) -> None:
        """Print one line that stays, above the live one."""
        self.clear()
        output.note(text)

    def clear(self) -> None:
        """Take the live line away until the next ``show``."""
        if self._shown:
            self._write(_ERASE)
            self._shown = ""

    def _width(self) -> int:
        assert self._stream is not None
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or _WIDTH
        except OSError:
            return _WIDTH

    def _write(self, text: str) -> None:
        assert self._stream is not None
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:  # the terminal is gone
            self._live = False


class Keyboard:
    """Keys as they are pressed, without Enter and without echo; a context manager."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._saved: list[Any] | None = None
        self._handlers: dict[signal.Signals, Any] = {}
        self._gone = False

    @classmethod
    def of_stdin(cls) -> Keyboard | None:
        """The keyboard in front of this process, if there is one and it is ours to read."""
        if not output.is_terminal(sys.stdin):
            return None
        keyboard = cls(sys.stdin.fileno())
        return keyboard if keyboard._in_foreground() else None

    def __enter__(self) -> Self:
        self._take()
        for number, handler in (
            (signal.SIGTSTP, self._on_stop),
            (signal.SIGCONT, self._on_continue),
        ):
            self._handlers[number] = signal.signal(number, handler)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers.clear()
        self._give_back()

    def read(self, timeout_s: float) -> str:
        """The keys pressed since the last call; waits for one at most ``timeout_s`` s wall.

        Cursor and function keys, which come as escape sequences, are left out.
        """
        usable = not self._gone and self._in_foreground()
        ready, _, _ = select.select([self._fd] if usable else [], [], [], timeout_s)
        if not ready or not self._in_foreground():
            return ""
        return _ESCAPE_SEQUENCE.sub("", self._read_now())

    def _read_now(self) -> str:
        try:
            raw = os.read(self._fd, _CHUNK)
        except OSError:
            raw = b""
        # End of file stays readable for ever: asking again would be a busy loop.
        self._gone = not raw
        return raw.decode("utf-8", "ignore")

    def _in_foreground(self) -> bool:
        try:
            return os.tcgetpgrp(self._fd) == os.getpgrp()
        except OSError:
            return False

    def _take(self) -> None:
        with contextlib.suppress(termios.error):
            saved = termios.tcgetattr(self._fd)
            # Keys typed while the model was loading are kept, hence not the default, TCSAFLUSH.
            tty.setcbreak(self._fd, termios.TCSADRAIN)
            self._saved = saved

    def _give_back(self) -> None:
        saved, self._saved = self._saved, None
        if saved is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._fd, termios.TCSADRAIN, saved)

    def _on_stop(self, _number: int, _frame: FrameType | None) -> None:
        """Ctrl-Z: the mode is given back before the process stops."""
        self._give_back()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTSTP)
        # Here again after SIGCONT; or at once, where nobody could continue us (an orphaned group).
        self._on_continue(_number, _frame)

    def _on_continue(self, _number: int, _frame: FrameType | None) -> None:
        """``fg`` or ``bg``: the mode is taken again if it is ours to take."""
        signal.signal(signal.SIGTSTP, self._on_stop)
        if self._saved is None and self._in_foreground():
            self._take()
