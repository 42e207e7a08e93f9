"""What the commands print: results on stdout, notes and errors on stderr.

Invariants: a result is text or one JSON document, never both; whatever goes to stderr is one line.
Failure: a reader that went away (``mjhost options | head``) is no error: what follows is dropped
without a word and the command keeps its own exit status. Any other error of writing, a full disk,
is raised once.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import sys
import textwrap
from collections.abc import Sequence
from typing import Any, Final, TextIO

import msgspec

from mjhost.errors import MjhostError

_GAP: Final = "  "
_NARROWEST: Final = 24  # columns that the last column of a table keeps, however narrow the terminal


def say(text: str) -> None:
    """Print a result."""
    _write(sys.stdout, text + "\n")


def note(text: str) -> None:
    """Print one line that is no result."""
    _write(sys.stderr, f"mjhost: {one_line(text)}\n")


def say_json(record: Any) -> None:
    """Print a record as one JSON document: indented for a person, one line for a program."""
    encoded = msgspec.json.encode(record)
    if is_terminal(sys.stdout):
        encoded = msgspec.json.format(encoded, indent=2)
    say(encoded.decode())


def say_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows in aligned columns; on a terminal the last column is wrapped to its width."""
    for line in table_lines(header, rows, table_width()):
        say(line)


def table_lines(
    header: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None
) -> list[str]:
    """The lines of a table; ``width`` is where the last column wraps, if anywhere."""
    table = [header, *rows]
    widths = [max(map(len, column)) for column in list(zip(*table, strict=True))[:-1]]
    indent = sum(widths) + len(_GAP) * len(widths)
    room = None if width is None else max(_NARROWEST, width - indent)
    lines = []
    for *cells, last in table:
        start = "".join(cell.ljust(size) + _GAP for cell, size in zip(cells, widths, strict=True))
        parts = textwrap.wrap(last, room, break_on_hyphens=False) if room else [last]
        lines += [(start + part).rstrip() for part in parts[:1] or [""]]
        lines += [" " * indent + part for part in parts[1:]]
    return lines


def table_width() -> int | None:
    """Columns of the terminal that stdout is; ``None`` if it is something else."""
    return shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None


def one_line(text: object) -> str:
    """``text`` with its lines joined: engine errors come in several."""
    lines = (" ".join(line.split()) for line in str(text).splitlines())
    return "; ".join(line for line in lines if line)


def told(error: BaseException) -> str:
    """The text of ``error`` and, if a plugin raised it, of which plugin in which hook."""
    where = [note for note in getattr(error, "__notes__", ()) if note.startswith("raised in ")]
    text = str(error) if isinstance(error, MjhostError) else f"{type(error).__name__}: {error}"
    return f"{text} ({where[0]})" if where else text


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream is there and somebody looks at it."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def flush() -> None:
    """Hand over what is buffered, so that the interpreter has nothing to complain of at its end."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # was told when it was written
            _write(stream, "")


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None or stream.closed:
        return
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        gone = _reader_is_gone(stream, error)
        _discard_from_now_on(stream)
        if not gone:
            raise


def _reader_is_gone(stream: TextIO, error: OSError) -> bool:
    """Whether a pipe was closed or a terminal hung up; on a disk, EIO is a real error."""
    if isinstance(error, BrokenPipeError):
        return True
    return error.errno == errno.EIO and stat.S_ISCHR(os.fstat(stream.fileno()).st_mode)


def _discard_from_now_on(stream: TextIO) -> None:
    """Leads the stream nowhere, or its buffer would fail again when the interpreter ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, stream.fileno())
    finally:
        os.close(nowhere)
