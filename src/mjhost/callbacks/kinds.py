"""The eight callbacks of the engine as a table.

Owns: ``KINDS``: for each ``mjcb_*`` its C prototype, what a Python callable takes and returns, and
the neutral value: what the engine gets for data that nobody hooks, so that nothing changes.
Not a goal: anything that is installed. The table is read-only.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

from mjhost.errors import UnknownNameError, did_you_mean


class Result(Enum):
    """What a callback gives back."""

    NOTHING = "nothing"
    NUMBER = "a number"
    DROP = "an int: non-zero drops the pair"


@dataclass(frozen=True, slots=True)
class CallbackKind:
    """One of the engine's callbacks.

    Attributes:
        name: the part after ``mjcb_``.
        arguments: what a Python callable takes, in order.
        result: what it returns.
        neutral: the value that changes nothing; ``None`` where nothing is returned, and for
            ``time``, whose neutral value is that of the clock that was there before.
        sole: whether an env can have one owner of it only.
        prototype: the ctypes function type; model and data are plain addresses.
    """

    name: str
    arguments: tuple[str, ...]
    result: Result
    neutral: float | None
    sole: bool
    prototype: Any

    @property
    def symbol(self) -> str:
        """Name of the exported pointer."""
        return f"mjcb_{self.name}"

    @property
    def signature(self) -> str:
        """The expected Python signature, for messages."""
        return f"({', '.join(self.arguments)}) -> {self.result.value}"


_ADDRESS = ctypes.c_size_t
_GENERIC = ctypes.CFUNCTYPE(None, _ADDRESS, _ADDRESS)
_SENSOR = ctypes.CFUNCTYPE(None, _ADDRESS, _ADDRESS, ctypes.c_int)
_FILTER = ctypes.CFUNCTYPE(ctypes.c_int, _ADDRESS, _ADDRESS, ctypes.c_int, ctypes.c_int)
_ACT = ctypes.CFUNCTYPE(ctypes.c_double, _ADDRESS, _ADDRESS, ctypes.c_int)
_TIME = ctypes.CFUNCTYPE(ctypes.c_double)

_PAIR = ("model", "data")

_TABLE: tuple[CallbackKind, ...] = (
    CallbackKind("control", _PAIR, Result.NOTHING, None, False, _GENERIC),
    CallbackKind("passive", _PAIR, Result.NOTHING, None, False, _GENERIC),
    CallbackKind("sensor", (*_PAIR, "stage"), Result.NOTHING, None, False, _SENSOR),
    CallbackKind("contactfilter", (*_PAIR, "geom1", "geom2"), Result.DROP, 0, False, _FILTER),
    CallbackKind("act_dyn", (*_PAIR, "id"), Result.NUMBER, 0.0, True, _ACT),
    CallbackKind("act_gain", (*_PAIR, "id"), Result.NUMBER, 1.0, True, _ACT),
    CallbackKind("act_bias", (*_PAIR, "id"), Result.NUMBER, 0.0, True, _ACT),
    CallbackKind("time", (), Result.NUMBER, None, True, _TIME),
)

KINDS: Final[Mapping[str, CallbackKind]] = MappingProxyType({kind.name: kind for kind in _TABLE})
"""Name → kind, in the order in which the engine's header lists what they act on."""


def kind_named(name: str) -> CallbackKind:
    """The kind called ``name``.

    Raises:
        UnknownNameError: there is no such kind.
    """
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise UnknownNameError(
            f"no callback kind {name!r}; {did_you_mean(str(name), KINDS)}; the kinds are "
            + ", ".join(KINDS)
        )
    return kind
