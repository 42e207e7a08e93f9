"""What a plugin may keep in a checkpoint: plain values, copied and bounded.

Owns: which values these are, the copy that is taken of them, and their form in a file.
Invariants: what ``frozen`` returns shares nothing with what it was given, and nothing in it can run
code. ``thawed`` gives a fresh copy each time. Integers of any size survive: the states of NumPy's
random generators have 128 bits.
Failure: ``CheckpointError`` naming the place in the value, such as ``rng['state']``.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mjhost.errors import CheckpointError

DEEPEST: Final = 32
"""Most containers inside one another."""

MOST: Final = 1 << 20
"""Most values in one state."""

_PLAIN: Final = (type(None), bool, int, float, str, bytes)
_WORD: Final = 1 << 63
_DTYPES: Final = "?bhilqBHILQefd"


def frozen(value: Any, where: str) -> Any:
    """A copy of ``value``.

    Raises:
        CheckpointError: something in it is no plain value, or there is too much of it.
    """
    return _Copier(where).copy(value, "", 0)


thawed = frozen


class _Copier:
    def __init__(self, where: str) -> None:
        self._where = where
        self._count = 0

    def copy(self, value: Any, path: str, depth: int) -> Any:
        self._count += 1
        if self._count > MOST or depth > DEEPEST:
            raise CheckpointError(
                f"{self._where}: a state holds at most {MOST} values, {DEEPEST} containers deep"
            )
        kind = type(value)
        if kind in _PLAIN:
            return value
        if isinstance(value, np.ndarray | np.generic):
            return self._array(value, path)
        if kind is dict:
            return {
                self._key(key, path): self.copy(item, f"{path}[{key!r}]", depth + 1)
                for key, item in value.items()
            }
        if kind in (list, tuple):
            items = (self.copy(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(value))
            return kind(items)
        raise self._refused(path, f"{kind.__module__}.{kind.__qualname__}")

    def _array(self, value: Any, path: str) -> Any:
        if value.dtype.char not in _DTYPES or not value.dtype.isnative:
            raise self._refused(path, f"an array of {value.dtype}")
        return value.copy()

    def _key(self, key: Any, path: str) -> str:
        if type(key) is not str:
            raise CheckpointError(
                f"{self._where}: keys of a state are text, got {key!r} in {path or 'it'}"
            )
        return key

    def _refused(self, path: str, what: str) -> CheckpointError:
        return CheckpointError(
            f"{self._where}: a state is made of None, numbers, text, bytes, NumPy arrays, lists, "
            f"tuples and dicts of them, got {what} {'at ' + path if path else 'itself'}"
        )


# -- the form in a file ----------------------------------------------------------------------------


def packed(value: Any, arrays: list[np.ndarray[Any, Any]]) -> list[Any]:
    """A frozen value as nested lists that start with a tag; arrays go into ``arrays``."""
    kind = type(value)
    if kind is int:
        return ["int", value] if -_WORD <= value < _WORD else ["big", hex(value)]
    if kind in _PLAIN:
        return ["", value]
    if isinstance(value, np.ndarray | np.generic):
        arrays.append(np.ascontiguousarray(value) if value.ndim else np.asarray(value))
        return ["array" if isinstance(value, np.ndarray) else "scalar", len(arrays) - 1]
    if kind is dict:
        return ["dict", [[key, packed(item, arrays)] for key, item in value.items()]]
    return [kind.__name__, [packed(item, arrays) for item in value]]


def unpacked(form: Any, arrays: list[np.ndarray[Any, Any]], depth: int = 0) -> Any:
    """The value of a packed form.

    Raises:
        CheckpointError: it is none.
    """
    if depth > DEEPEST + 1 or type(form) is not list or len(form) != 2:
        raise CheckpointError("the state of a plugin in the file has a form that is not known")
    tag, value = form
    if tag == "" and type(value) in _PLAIN:
        return value
    if tag == "int" and type(value) is int:
        return value
    if tag == "big" and type(value) is str and len(value) < 1 << 16:
        return _big(value)
    if tag in ("array", "scalar") and type(value) is int and 0 <= value < len(arrays):
        array = arrays[value].copy()
        return array if tag == "array" else array.reshape(())[()]
    if tag in ("list", "tuple", "dict") and type(value) is list:
        return _container(tag, value, arrays, depth)
    raise CheckpointError(f"the state of a plugin in the file has an unknown part {tag!r}")


def _container(tag: str, items: list[Any], arrays: list[np.ndarray[Any, Any]], depth: int) -> Any:
    if tag != "dict":
        read = (unpacked(item, arrays, depth + 1) for item in items)
        return tuple(read) if tag == "tuple" else list(read)
    found = {}
    for pair in items:
        if type(pair) is not list or len(pair) != 2 or type(pair[0]) is not str:
            raise CheckpointError("the state of a plugin in the file has a dict that is none")
        found[pair[0]] = unpacked(pair[1], arrays, depth + 1)
    return found


def _big(text: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        raise CheckpointError(f"{text[:20]!r} in the file is no hexadecimal number") from None
