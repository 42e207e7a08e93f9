"""Numbers as callers give them, made into arrays or refused by name.

Invariants: what comes out is finite, at most ``LIMIT`` in size and of the asked length; flags,
texts and nested lists are no numbers. The caller's object is never kept.
Failure: ``InvalidArgumentError`` that names the thing, what must hold and what was given.
"""

from __future__ import annotations

from typing import Any, Final

import mujoco
import numpy as np

from mjhost.errors import InvalidArgumentError
from mjhost.state.records import Array

LIMIT: Final = float(mujoco.mjMAXVAL)
"""The largest size of a number in the state; the engine takes more for a divergence."""

_BOOLEANS: Final = (bool, np.bool_)


def vector(values: Any, size: int, what: str) -> Array:
    """``values`` as a new array of ``size`` numbers; a single number will do for a size of 1."""
    if size == 1 and type(values) is float and -LIMIT <= values <= LIMIT:
        return np.array((values,))
    array = _array(values, size, what)
    bad = ~(np.abs(array) <= LIMIT)
    if bad.any():
        at = int(np.argmax(bad))
        where = f"{what}[{at}]" if size > 1 else what
        raise InvalidArgumentError(
            f"{where} must be finite and at most {LIMIT:g} in size, got {array[at]:g}"
        )
    return array


def _array(values: Any, size: int, what: str) -> Array:
    try:
        raw = np.asarray(values)
    except (ValueError, TypeError, OverflowError):  # lists of different lengths, odd objects
        raise _no_numbers(values, size, what) from None
    listed = isinstance(values, (list, tuple)) and any(isinstance(v, _BOOLEANS) for v in values)
    if raw.dtype.kind not in "iuf" or listed:
        raise _no_numbers(values, size, what)
    if raw.shape != (size,) and (size != 1 or raw.shape != ()):
        given = "one number" if raw.ndim == 0 else f"shape {raw.shape}"
        raise InvalidArgumentError(
            f"{what} must be {_counted(size)}, got {given}: {_shown(values)}"
        )
    if raw.dtype.itemsize > 8:  # beyond what a double holds, which is refused as infinite
        with np.errstate(over="ignore"):
            return np.array(raw, dtype=np.float64).reshape(size)
    return np.array(raw, dtype=np.float64).reshape(size)


def _no_numbers(values: Any, size: int, what: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{what} must be {_counted(size)}, got {type(values).__name__}: {_shown(values)}"
    )


def _counted(size: int) -> str:
    return "one number" if size == 1 else f"{size} numbers"


def _shown(values: Any) -> str:
    try:
        text = repr(values)
    except Exception:  # noqa: BLE001 - it is only shown
        return "<unprintable>"
    return text if len(text) <= 80 else f"{text[:77]}..."


def number(value: Any, what: str) -> float:
    """``value`` as one finite number."""
    return float(vector(value, 1, what)[0])


def flag(value: Any, what: str) -> bool:
    """``value`` if it is a flag; 0, 1 and texts are none."""
    if not isinstance(value, _BOOLEANS):
        raise InvalidArgumentError(f"{what} must be True or False, got {_shown(value)}")
    return bool(value)
