"""Errors as a client sees them: a stable code, the message, what may be done.

Owns: the codes, and the hints.
Invariants: a code belongs to a class of ``mjhost.errors`` and is its name without ``Error``, in
lower case with underscores; every other exception has one of three codes. A record holds text that
UTF-8 can hold, of bounded length, and no traceback.
Threads: pure functions.
Failure: describing an exception never raises, whatever its ``__str__`` does.
Not a goal: status numbers of a protocol; its transport maps codes to them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec
import mujoco

from mjhost import errors
from mjhost.errors import MjhostError, OptionsRejected, RequestError
from mjhost.operations.requests import RequestProblem

_TEXT_LIMIT: Final = 4000  # characters of a message
_PROBLEM_LIMIT: Final = 100

ENGINE_CODE: Final = "engine_error"
SYSTEM_CODE: Final = "system_error"
OTHER_CODE: Final = "exception"


class ErrorRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a client is told of an error.

    Attributes:
        code: stable; what a program decides by.
        message: for a person: what was asked, what must hold, what was given, what exists.
        hint: what the client may do next; may be empty.
        problems: where there are several, each by itself.
    """

    code: str
    message: str
    hint: str = ""
    problems: tuple[RequestProblem, ...] = ()


def _code_of(error: type[MjhostError]) -> str:
    words = error.__name__.removesuffix("Error")
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", words).lower()


CODES: Final[Mapping[type[BaseException], str]] = MappingProxyType(
    {
        error: _code_of(error)
        for error in vars(errors).values()
        if isinstance(error, type) and issubclass(error, MjhostError)
    }
    | {
        mujoco.FatalError: ENGINE_CODE,
        mujoco.UnexpectedError: ENGINE_CODE,
        OSError: SYSTEM_CODE,
        BaseException: OTHER_CODE,
    }
)
"""The code of every class of errors; a class that is not in it has the code of its nearest base."""

HINTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "env_closed": "the host has ended; nothing is possible any more",
        "phase": "info tells the phase",
        "loading_window": "ask again when info.phase is operational",
        "not_loaded": "load a model first",
        "not_paused": "pause first",
        "stale_generation": "info.generations has the present ones; look it up again by name",
        "fault": "info.fault says what happened; clear_fault, reset or reload ends it",
        "divergence": "info.fault says what happened; clear_fault, reset or reload ends it",
        "queue_full": "ask again later",
        "options_rejected": "runtime_option_table says what every option takes",
        "request": "the schema of the operation says what it takes",
        "model_load": "what was hosted before goes on",
        "not_offered": "ask who runs the host",
        "not_authorized": "give the evaluation token",
    }
)


def error_record(error: BaseException) -> ErrorRecord:
    """What a client is told of ``error``."""
    code = code_of(error)
    return ErrorRecord(
        code=code,
        message=_bounded(_told(error)),
        hint=HINTS.get(code, ""),
        problems=_problems(error)[:_PROBLEM_LIMIT],
    )


def code_of(error: BaseException) -> str:
    """The stable code of ``error``: that of its class, or of the nearest base that has one."""
    codes = (CODES[base] for base in type(error).__mro__ if base in CODES)
    return next(codes, OTHER_CODE)


def _told(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a hostile __str__ must not hide that something failed
        text = "(its text cannot be made)"
    if not isinstance(error, MjhostError):
        text = f"{type(error).__name__}: {text}".removesuffix(": ")
    where = [note for note in getattr(error, "__notes__", ()) if isinstance(note, str)]
    return f"{text} ({'; '.join(where)})" if where else text


def _problems(error: BaseException) -> tuple[RequestProblem, ...]:
    if isinstance(error, RequestError):
        return error.problems
    if isinstance(error, OptionsRejected):
        return tuple(
            RequestProblem(_bounded(problem.field), _bounded(problem.message), problem.given)
            for problem in error.errors
        )
    return ()


def _bounded(text: str) -> str:
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= _TEXT_LIMIT else f"{text[:_TEXT_LIMIT]}…"
