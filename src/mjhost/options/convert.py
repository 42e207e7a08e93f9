"""Exact conversion of one given value to what a field holds.

Invariants: a value is converted only if nothing is lost: an integral float for an integer, text
that is a decimal number, 0 and 1 for a flag. A boolean is never a number, a scalar never an array.
Text and sequences are looked at only up to a fixed length, so the work is bounded.
Threads: pure functions.
Failure: ``ValueRefused`` with the reason, whatever was given.
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NoReturn, TypeVar

import mujoco
import numpy as np

from mjhost.options.records import RuntimeOptionsError
from mjhost.options.table import INT32, Kind, OptionDescriptor, OptionValue

MAX_TEXT: Final = 512
MAX_ELEMENTS: Final = 64
_T = TypeVar("_T")
_SPACE: Final = " \t\r\n"
_NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_WHOLE: Final = re.compile(r"[+-]?\d+", re.ASCII)
_NOT_FINITE: Final = re.compile(r"[+-]?(?:nan|inf|infinity)", re.ASCII | re.IGNORECASE)
_SEPARATOR: Final = re.compile(r"[ \t\r\n]*,[ \t\r\n]*|[ \t\r\n]+")


class ValueRefused(ValueError):
    """A value that a field cannot take; the message is the reason."""


def convert(field: OptionDescriptor, value: Any) -> OptionValue:
    """What ``field`` holds after being given ``value``; ranges are not checked.

    Raises:
        ValueRefused: the value is not exactly representable.
    """
    match field.kind:
        case Kind.FLOAT:
            return to_float(value)
        case Kind.INT:
            return to_int(value)
        case Kind.BOOL:
            return to_bool(value)
        case Kind.ENUM:
            return to_choice(field, value)
        case Kind.ARRAY:
            return to_array(field.size, value)
        case Kind.GROUPS:
            return to_groups(value)


def problem(field: OptionDescriptor, message: str, given: Any) -> RuntimeOptionsError:
    """The record of one problem with the value of ``field``."""
    return RuntimeOptionsError(field.name, message, field.allowed(), shown(given))


def to_float(value: Any) -> float:
    """The float that is exactly ``value``, which is finite."""
    number = _number(value)
    try:
        result = float(number)
    except OverflowError:
        _refuse("must be finite, this is too large for a float")
    if not math.isfinite(result):
        _refuse("must be finite")
    if isinstance(number, int) and int(result) != number:
        _refuse("must be exactly representable as a float")
    return result


def to_int(value: Any) -> int:
    """The 32-bit integer that is exactly ``value``."""
    number = _whole_text(value) if isinstance(value, str) else _number(value)
    if isinstance(number, float):
        if not math.isfinite(number):
            _refuse("must be finite")
        if not number.is_integer():
            _refuse("must be a whole number")
    whole = int(number)
    if not INT32.low <= whole <= INT32.high:
        _refuse("must be a whole number of 32 bits")
    return whole


def to_bool(value: Any) -> bool:
    """The truth value that ``value`` spells out."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, str):
        word = _text(value).lower()
        if word in {"true", "false", "0", "1"}:
            return word in {"true", "1"}
    elif not isinstance(value, np.ndarray) or value.ndim == 0:
        value = _scalar(value)
        if isinstance(value, (bool, int, float)) and value in {0, 1}:
            return bool(value)
    raise ValueRefused("must be true or false")


def to_choice(field: OptionDescriptor, value: Any) -> str:
    """The name of the choice that ``value`` names or numbers."""
    if isinstance(value, str):
        word = _text(value)
        for choice in field.choices:
            if word.lower() == choice.lower():
                return choice
        if not _WHOLE.fullmatch(word):
            _refuse("must be one of its names or their numbers")
    elif isinstance(value, getattr(mujoco, field.enum)):
        value = int(value)
    number = to_int(value)
    if not 0 <= number < len(field.choices):
        _refuse("must be one of its names or their numbers")
    return field.choices[number]


def to_array(size: int, value: Any) -> tuple[float, ...]:
    """``size`` floats out of a sequence or a text of numbers."""
    elements = _elements(value)
    if len(elements) != size:
        _refuse(f"must have exactly {size} numbers, not {len(elements)}")
    return tuple(_each(to_float, elements))


def to_groups(value: Any) -> frozenset[int]:
    """A set of actuator groups; the text ``none`` is the empty one."""
    if isinstance(value, str) and _text(value).lower() == "none":
        return frozenset()
    if isinstance(value, AbstractSet):
        if len(value) > MAX_ELEMENTS:
            _refuse_length(len(value))
        value = tuple(value)
    groups = frozenset(_each(to_int, _elements(value)))
    if any(not 0 <= group <= 30 for group in groups):
        _refuse("must have groups 0 to 30 only")
    return groups


def _each(convert_one: Callable[[Any], _T], elements: Iterable[Any]) -> Iterator[_T]:
    for index, element in enumerate(elements):
        try:
            yield convert_one(element)
        except ValueRefused as refused:
            raise ValueRefused(f"element {index} {refused}") from None


def _elements(value: Any) -> Sequence[Any]:
    if isinstance(value, str):
        return _SEPARATOR.split(_text(value))
    if isinstance(value, np.ndarray):
        return _array_elements(value)
    if isinstance(value, (bytes, bytearray, memoryview)) or not isinstance(value, Sequence):
        _refuse(f"must be a sequence of numbers, not {_kind_of(value)}")
    if len(value) > MAX_ELEMENTS:
        _refuse_length(len(value))
    return value


def _array_elements(value: np.ndarray[Any, Any]) -> Sequence[Any]:
    if value.ndim != 1:
        _refuse(f"must be a sequence of numbers, not an array of shape {value.shape}")
    if value.size > MAX_ELEMENTS:
        _refuse_length(value.size)
    return list(value)


def _number(value: Any) -> int | float:
    if isinstance(value, str):
        return _number_text(value)
    value = _scalar(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        _refuse(f"must be a number, not {_kind_of(value)}")
    return value


def _scalar(value: Any) -> Any:
    """``value`` as a Python scalar if it is a NumPy one, else as it is."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    if not isinstance(value, np.floating):
        return value
    exact = float(value)
    # A long double may hold more than a double; nan equals nothing and is refused later.
    if exact != value and not np.isnan(value):
        _refuse("must be exactly representable as a float")
    return exact


def _text(value: str) -> str:
    if len(value) > MAX_TEXT:
        _refuse(f"must be text of at most {MAX_TEXT} characters")
    stripped = value.strip(_SPACE)
    if not stripped:
        _refuse("must not be empty text")
    return stripped


def _number_text(value: str) -> float:
    text = _text(value)
    if _NOT_FINITE.fullmatch(text):
        _refuse("must be finite")
    if not _NUMBER.fullmatch(text):
        _refuse("must be a number, not other text")
    number = float(text)
    if number == 0 and re.search("[1-9]", re.split("[eE]", text)[0]):
        _refuse("must not be so small that it becomes 0")
    return number


def _whole_text(value: str) -> int | float:
    text = _text(value)
    if _WHOLE.fullmatch(text):
        return int(text)
    number = _number_text(text)
    if not number.is_integer() or abs(number) > INT32.high + 1:
        return number
    try:
        exact = Decimal(text)
    except InvalidOperation:
        _refuse("must be a whole number")
    # The nearest float of 1.00000000000000000001 is 1, the text is not.
    if exact != int(number):
        _refuse("must be a whole number")
    return int(number)


def _refuse(reason: str) -> NoReturn:
    raise ValueRefused(reason)


def _refuse_length(length: int) -> NoReturn:
    _refuse(f"must have at most {MAX_ELEMENTS} elements, not {length}")


def _kind_of(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "bytes"
    if isinstance(value, (Sequence, np.ndarray)):
        return "a sequence"
    return f"a {type(value).__name__}"[:60]


class _Short(reprlib.Repr):
    """Representations of any value that stay short and never fail."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 60
        self.maxtuple = self.maxlist = self.maxset = self.maxfrozenset = 6
        self.maxlevel = 2

    def repr_int(self, x: int, level: int) -> str:  # noqa: ARG002 - the signature of reprlib
        # Python refuses to print integers of thousands of digits.
        return repr(x) if x.bit_length() <= 128 else f"an integer of {x.bit_length()} bits"

    def repr_ndarray(self, x: np.ndarray[Any, Any], level: int) -> str:
        if x.size <= 8 and x.dtype != object:
            return self.repr1(x.tolist(), level)
        return f"an array of shape {x.shape}"

    def repr_bytes(self, x: bytes, level: int) -> str:  # noqa: ARG002 - as above
        return f"{len(x)} bytes"

    repr_bytearray = repr_bytes


_SHORT: Final = _Short()


def shown(value: Any) -> str:
    """``value`` as text that is short enough for an error message."""
    text = _SHORT.repr(value)
    return text if len(text) <= 160 else f"{text[:157]}..."
