"""From what a client sent to a request record, or to everything that is wrong with it.

Invariants: nothing is converted that would lose anything: text is no number, a boolean is neither.
A record that comes out holds finite numbers only, and text that UTF-8 can hold.
Threads: pure functions.
Failure: ``RequestError``, which lists every problem; nothing was asked of an env yet.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from mjhost.errors import RequestError, did_you_mean
from mjhost.operations.fields import Request
from mjhost.operations.kinds import choices_of, item_of

MAX_DEPTH: Final = 8
"""How deep a request may be nested."""

MAX_VALUES: Final = 100_000
"""How many values a request may hold, those inside of lists and mappings each counted."""

_MOST_UNKNOWN: Final = 20  # fields that do not exist and are told
_SHOWN: Final = 60  # characters of a value in a message
_EXPECTED: Final = re.compile(r"Expected (?P<what>.+?)(?:, got [^-]+?)?(?: - at `(?P<path>.*)`)?")
_AT: Final = re.compile(r"(?P<what>.+?)(?: - at `(?P<path>.*)`)?")

R = TypeVar("R", bound=Request)


class RequestProblem(msgspec.Struct, frozen=True):
    """One thing that is wrong with a request.

    Attributes:
        field: where: a field of the request, with the place inside it; ``request`` for the whole.
        message: what must hold, lower case, without the field.
        given: what was given, shortened.
    """

    field: str
    message: str
    given: str = ""

    def __str__(self) -> str:
        given = f", got {self.given}" if self.given else ""
        return f"{self.field} {self.message}{given}"


def request_of(wanted: type[R], given: object, operation: str) -> R:
    """The record ``wanted`` out of what was given: a mapping, such a record, or ``None``.

    Raises:
        RequestError: at least one problem; ``.problems`` lists one per field.
    """
    sent = _mapping(wanted, given, operation)
    problems = [*_unknown(sent, wanted.__struct_fields__), *_unfit(sent)]
    if not problems:
        try:
            return msgspec.convert(sent, wanted, strict=True)
        except msgspec.ValidationError:
            pass  # it tells the first problem only, and not in our words
    raise RequestError(operation, [*problems, *_misfits(wanted, sent)])


def _mapping(wanted: type[Request], given: object, operation: str) -> Mapping[Any, Any]:
    if given is None:
        return {}
    if isinstance(given, wanted):
        return _unpacked(given, 0)  # type: ignore[no-any-return]
    if isinstance(given, Mapping):
        return given
    message = f"must be a mapping or a {wanted.__name__}"
    raise RequestError(operation, [RequestProblem("request", message, shown(given))])


def _unpacked(value: Any, depth: int) -> Any:
    """Records as mappings: their fields may hold anything."""
    if depth > MAX_DEPTH:
        return value  # refused for its depth
    if isinstance(value, msgspec.Struct):
        value = {name: getattr(value, name) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {key: _unpacked(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_unpacked(item, depth + 1) for item in value]
    return value


def _unfit(sent: Mapping[Any, Any]) -> Iterator[RequestProblem]:
    """Per field, what no request of any operation may hold."""
    counter = _Counter()
    for name, value in sent.items():
        problem = counter.problem_of(value, _told(name))
        if problem is not None:
            yield problem


def _misfits(wanted: type[Request], sent: Mapping[Any, Any]) -> Iterator[RequestProblem]:
    """What this operation does not take; a field that is no plain value is left to others."""
    for field in msgspec.structs.fields(wanted):
        if field.name in sent:
            yield from _misfit(field.name, sent[field.name], field.type)
        elif field.required:
            yield RequestProblem(field.name, "is missing")


def _misfit(name: str, value: object, wanted: Any) -> Iterator[RequestProblem]:
    if _Counter().problem_of(value, name) is not None:
        return
    try:
        msgspec.convert(value, wanted, strict=True)
    except msgspec.ValidationError as error:
        yield (
            _misfit_of_an_item(name, value, wanted)
            or _choice(name, value, choices_of(wanted))
            or _reworded(name, value, str(error))
        )


def _misfit_of_an_item(name: str, value: object, wanted: Any) -> RequestProblem | None:
    """The first problem inside of a map; the converter does not tell under which key it is."""
    item = item_of(wanted)
    if item is None or not isinstance(value, Mapping):
        return None
    problems = (_misfit(f"{name}[{_told(key)}]", each, item) for key, each in value.items())
    return next(itertools.chain.from_iterable(problems), None)


def _choice(name: str, value: object, choices: tuple[str, ...]) -> RequestProblem | None:
    if not choices or not isinstance(value, str):
        return None
    near = did_you_mean(shown_text(value), choices)
    return RequestProblem(name, f"must be one of its words; {near}", shown(value))


def _unknown(sent: Mapping[Any, Any], known: Sequence[str]) -> Iterator[RequestProblem]:
    unknown = (name for name in sent if not (isinstance(name, str) and name in known))
    for name in itertools.islice(unknown, _MOST_UNKNOWN):
        near = did_you_mean(_told(name), known) if known else "there are none"
        yield RequestProblem(_told(name), f"is no field of it; {near}")


def _told(name: object) -> str:
    """The name of a field, which may be anything, for a message."""
    text = name if isinstance(name, str) else shown(name)
    return shown_text(text)


class _Counter:
    """Looks into values before they are converted, and counts them over a whole request."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_VALUES

    def problem_of(self, value: object, path: str, depth: int = 0) -> RequestProblem | None:
        """What no request may hold, wherever it is found first."""
        self._left -= 1
        if self._left < 0:
            return RequestProblem(path, f"must not bring the request to over {MAX_VALUES} values")
        if isinstance(value, bool) or value is None:
            return None
        if isinstance(value, (list, tuple)):
            return self._problem_among(enumerate(value), path, depth)
        if isinstance(value, Mapping):
            return _key_problem(value, path) or self._problem_among(value.items(), path, depth)
        return _scalar_problem(value, path)

    def _problem_among(
        self, items: Iterable[tuple[Any, Any]], path: str, depth: int
    ) -> RequestProblem | None:
        if depth >= MAX_DEPTH:
            return RequestProblem(path, f"must be nested at most {MAX_DEPTH} deep")
        for key, value in items:
            problem = self.problem_of(value, _inner(path, key, depth), depth + 1)
            if problem is not None:
                return problem
        return None


def _inner(path: str, key: object, depth: int) -> str:
    return f"{path}[{_told(key)}]" if depth < 3 else path


def _key_problem(value: Mapping[Any, Any], path: str) -> RequestProblem | None:
    for key in value:
        if not isinstance(key, str):
            return RequestProblem(path, "must have text as keys", shown(key))
        if not _is_encodable(key):
            return RequestProblem(path, "must have keys that UTF-8 can hold", shown(key))
    return None


def _scalar_problem(value: object, path: str) -> RequestProblem | None:
    if isinstance(value, int):
        fits = -(2**63) <= value < 2**63
        return None if fits else RequestProblem(path, "must fit into 64 bits", shown(value))
    if isinstance(value, float):
        finite = math.isfinite(value)
        return None if finite else RequestProblem(path, "must be a finite number", shown(value))
    if isinstance(value, str):
        encodable = _is_encodable(value)
        return None if encodable else RequestProblem(path, "must be text that UTF-8 can hold")
    return RequestProblem(path, "must be a plain value as JSON has them", shown(value))


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _reworded(name: str, value: object, error: str) -> RequestProblem:
    """A problem in the words of the house out of the converter's."""
    expected = _EXPECTED.fullmatch(error)
    found = expected or _AT.fullmatch(error)
    if found is None:
        return RequestProblem(name, "does not fit", shown(value))
    what = shown_text(found["what"].replace("`", ""))
    path = name + (found["path"] or "$").removeprefix("$")
    words = f"must be {what}" if expected else f"cannot be right: {what[:1].lower()}{what[1:]}"
    return RequestProblem(path, words, shown(value))


def shown(value: object) -> str:
    """A value for a message: short, and text that can be encoded, whatever it is."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**64:
        return f"an integer of {value.bit_length()} bits"
    try:
        return shown_text(repr(value))
    except Exception:  # noqa: BLE001 - a message about a value must not fail over its repr
        return f"<{type(value).__name__}>"


def shown_text(text: str) -> str:
    """Text for a message: short, and such that it can be encoded."""
    text = text[: _SHOWN + 1].encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
