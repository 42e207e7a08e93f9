"""Errors in the words of the command line, and the exit status that each of them is.

Threads: pure functions.
"""

from __future__ import annotations

import re
from typing import Any, Final

import typer

from mjhost.cli import output
from mjhost.cli.exits import ExitStatus
from mjhost.errors import InvalidArgumentError, MjhostError, OptionsRejected

# click's base class of errors; typer has a copy of its own of click, or not, by version.
_CLICK_ERROR: Final = typer.BadParameter.__mro__[2]
# How the converter behind the parser begins or puts it, and how it is put here.
_REWORDED: Final = (
    (re.compile(r"\bValue error, "), ""),
    (re.compile(r"\bInput should be a valid integer\b.*"), "must be an integer"),
    (re.compile(r"\bInput should be a valid number\b.*"), "must be a number"),
    (re.compile(r"\bInput should be greater than or equal to (\S+)"), r"must be at least \1"),
    (re.compile(r"\bInput should be "), "must be "),
)


def message_of(error: Exception) -> str:
    """What is wrong, in a line that may be long."""
    if isinstance(error, _CLICK_ERROR):
        return _usage_message(error)
    if isinstance(error, OptionsRejected):
        return f"options rejected, nothing changed: {error}{options_hint(error.errors)}"
    if isinstance(error, (MjhostError, OSError)):
        return str(error)
    return f"{output.told(error)} (--debug shows where)"


def options_hint(errors: Any) -> str:
    """Where the names of options are listed, if one of ``errors`` is about a name."""
    unknown = any("is not a run-time option" in error.message for error in errors)
    return "; see mjhost options" if unknown else ""


def status_of(error: Exception) -> ExitStatus:
    """The exit status of a command that ended by ``error``."""
    # What options a model takes depends on the model: being refused is an answer, not a misuse.
    wrong_words = isinstance(error, InvalidArgumentError) and not isinstance(error, OptionsRejected)
    usage = wrong_words or isinstance(error, _CLICK_ERROR)
    return ExitStatus.USAGE if usage else ExitStatus.FAILED


def _usage_message(error: Any) -> str:
    text: str = error.format_message()
    for theirs, ours in _REWORDED:
        text, found = theirs.subn(ours, text)
        if found and ours:
            text += _given(error)
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "mjhost"
    return f"{text[:1].lower()}{text[1:].rstrip('.')} (see {command} --help)"


def _given(error: Any) -> str:
    """The value that was refused, if the converter tells."""
    details = getattr(error.__cause__, "errors", None)
    given = details()[0].get("input") if callable(details) else None
    return "" if given is None else f", got {given!r}"
