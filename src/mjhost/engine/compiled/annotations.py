"""What the annotations of a memo say about its fields."""

from __future__ import annotations

import re
import sys
from typing import Any, Final

from mjhost.errors import NotCompilableError

_NUMBERS: Final = {"float": "float64", "int": "int64", "bool": "bool"}
_ARRAY: Final = re.compile(r"(float64|float32|int64|int32|uint8|bool)\[\s*:\s*(?:,\s*(:)\s*)?\]")
_EXPECTED: Final = 'float, int, bool or an array such as "float64[:]" or "int32[:, :]"'


def memo_fields(memo: type) -> dict[str, tuple[str, int]]:
    """Type and dimensions (0 for a number) of each field of a ``NamedTuple`` class.

    Raises:
        NotCompilableError: a field that a packed record cannot hold.
    """
    annotations = getattr(memo, "__annotations__", {})
    return {name: _field(memo, name, annotations.get(name)) for name in _names(memo)}


def _names(memo: type) -> tuple[str, ...]:
    names: tuple[str, ...] = getattr(memo, "_fields", ())
    if not (isinstance(memo, type) and issubclass(memo, tuple) and names):
        raise NotCompilableError(
            f"{getattr(memo, '__qualname__', memo)}: a memo of a compiled plugin must be a "
            f"typing.NamedTuple with at least one field, each {_EXPECTED}"
        )
    return names


def _field(memo: type, name: str, annotation: Any) -> tuple[str, int]:
    text = _text(annotation)
    array = _ARRAY.fullmatch(text)
    if array is not None:
        return array[1], 2 if array[2] else 1
    if text in _NUMBERS:
        return _NUMBERS[text], 0
    resolved = vars(sys.modules.get(memo.__module__, sys)).get(text)
    if isinstance(resolved, str | type) and _text(resolved) != text:
        return _field(memo, name, resolved)
    raise NotCompilableError(
        f"{memo.__qualname__}.{name}: a field of the memo of a compiled plugin is {_EXPECTED}, "
        f"this is {text}"
    )


def _text(annotation: Any) -> str:
    """The annotation as written, of a type, a text, a forward reference or a text of a text."""
    annotation = getattr(annotation, "__forward_arg__", annotation)
    if isinstance(annotation, type):
        return annotation.__name__
    return str(annotation).strip().strip("'\"").strip()
