"""Numba's errors in one sentence, with the user's file and line.

Owns: the translation of what Numba says; the sentences of ``RefusedError`` pass through.
Not a goal: explaining every error of Numba; what has no better sentence keeps Numba's own.
"""

from __future__ import annotations

import dis
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from mjhost.engine.compiled.face import errors, nb
from mjhost.engine.compiled.refusals import CLOSING, OPENING
from mjhost.errors import NotCompilableError

_OURS: Final = re.compile(re.escape(OPENING) + "(.*?)" + re.escape(CLOSING), re.DOTALL)
_PLACE: Final = re.compile(
    r'File "(?P<shown>[^"\n]+)", line (?P<at>\d+):'
    r"|(?:at|Raised from) (?P<file>/[^\n]*?|<[^\n>]+>) \((?P<line>\d+)(?::\d+)?\)"
)
_FOREIGN: Final = tuple(str(Path(module).resolve().parent) for module in (nb.__file__, __file__))


class _Place(NamedTuple):
    position: int
    file: str
    line: int


def not_compilable(error: Exception, function: Callable[..., Any], what: str) -> NotCompilableError:
    """The error to raise for ``error``, which came up compiling ``function``.

    Args:
        error: whatever Numba raised.
        function: the method of the user that was compiled.
        what: the method and class, in words.
    """
    text = str(error)
    found = _OURS.search(text)
    sentence = " ".join(found[1].split()) if found else _sentence(error, text)
    position = found.start() if found else 0
    file, line = _location(error, text, position, function)
    return NotCompilableError(f"{file}:{line}: {what} cannot be compiled: {sentence}")


# -- where ---------------------------------------------------------------------------------------


def _location(
    error: Exception, text: str, position: int, function: Callable[..., Any]
) -> tuple[str, int]:
    places = [place for place in _places(text) if not _is_foreign(place.file)]
    behind = [place for place in places if place.position >= position]
    if behind or places:
        first = (behind or places)[0]
        return first.file, first.line
    loc = getattr(error, "loc", None)
    if loc is not None and not _is_foreign(str(loc.filename)):
        return str(loc.filename), int(loc.line)
    code: Any = function.__code__
    return code.co_filename, _line_told_by(code, text) or code.co_firstlineno


def _line_told_by(code: Any, text: str) -> int | None:
    """The line of what Numba names without saying where: an unknown name, or ``with``."""
    missing = _UNDEFINED.search(text)
    for instruction in dis.get_instructions(code):
        is_name = instruction.opname == "LOAD_GLOBAL" and missing is not None
        found = is_name and missing is not None and instruction.argval == missing[1]
        found = found or (instruction.opname in _WITH and "'with " in text)
        if found and instruction.positions:
            return instruction.positions.lineno
    return None


def _places(text: str) -> Iterator[_Place]:
    for match in _PLACE.finditer(text):
        if match["file"]:
            yield _Place(match.start(), match["file"], int(match["line"]))
        else:
            yield _Place(match.start(), _absolute(match["shown"]), int(match["at"]))


def _absolute(shown: str) -> str:
    """Numba shows paths relative to the working directory."""
    return shown if shown.startswith("<") else str(Path(shown).resolve())


def _is_foreign(file: str) -> bool:
    return file.startswith(_FOREIGN)


# -- what ----------------------------------------------------------------------------------------

_UNDEFINED: Final = re.compile(r"NameError: name '([^']+)' is not defined")
_WITH: Final = frozenset({"BEFORE_WITH", "LOAD_SPECIAL", "SETUP_WITH"})
_KNOWN: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern, re.DOTALL), sentence)
    for pattern, sentence in (
        (
            r"Unknown attribute '([^']+)' of type ([^\n]+)",
            "{1} has no attribute {0!r} in compiled code",
        ),
        (
            r"Untyped global name '([^']+)':[^\n]*?Numba type of <class '([^']+)'>",
            "the global name {0!r} is a {1}, which compiled code cannot have",
        ),
        (_UNDEFINED.pattern, "the name {0!r} is not defined"),
        (
            r"Cannot unify ([^\n]+?) and ([^\n]+?) for '([^$'\n][^'\n]*?)(?:\.\d+)?'",
            "{2!r} is {0} at one place and {1} at another; in compiled code a name has one type",
        ),
        (
            r"Cannot unify ([^\n]+?) and ([^\n]+?) for '\$",
            "a value is {0} at one place and {1} at another; in compiled code it has one type",
        ),
        (
            r"Cannot infer the type of variable '([^']+?)(?:\.\d+)?'[^\n]*",
            "the type of {0!r} cannot be found out",
        ),
        (
            r"Invalid use of getiter with parameters \(array of (\w+)",
            "an array of {0} is walked by index in compiled code, for k in range(len(...))",
        ),
        (r"setitem\(readonly array[^\n]*", "the array that is written into is read-only"),
        (
            r"The '(with [^']*)' construct is not supported",
            "compiled code has no {0!r}",
        ),
        (
            r"No implementation of function [^\n]*? found for signature:\s*>>> ([^\n]+)",
            "there is no {0} in compiled code",
        ),
        (
            r"(?:Use of u|U)nsupported opcode \(([A-Z_]+)\)",
            "it uses something that compiled code does not have ({0})",
        ),
        (
            r"cannot determine Numba type of <class '([^']+)'>",
            "a {0} is something that compiled code cannot have",
        ),
    )
)
_NOISE: Final = re.compile(
    r"Failed in \w+ mode pipeline[^\n]*\n|\s*During: [^\n]*|^- .*", re.MULTILINE
)


def _sentence(error: Exception, text: str) -> str:
    for pattern, sentence in _KNOWN:
        match = pattern.search(text)
        if match:
            return sentence.format(*(_readable(group) for group in match.groups()))
    if not isinstance(error, errors.NumbaError):
        return f"Numba fails on it ({type(error).__name__}: {_first(text)})"
    return _first(text)


def _readable(text: str) -> str:
    """Types as users know them."""
    text = re.sub(r"Literal\[(\w+)\]\([^()]*\)", r"\1", text)
    text = re.sub(r"(\w+)\[\d[^\]]*-[0-9a-f]{16}\]", r"\1", text)
    return re.sub(r"self of ([\w.<>]+) #\d+", r"self", text).strip()


def _first(text: str) -> str:
    lines = [line.strip() for line in _NOISE.sub("", text).splitlines() if line.strip()]
    return _readable(lines[0]).rstrip(".") if lines else "no reason is known"
