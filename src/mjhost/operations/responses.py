"""From the records of the env to responses: plain, finite, the same names.

Invariants: a response takes its fields from the record of the env by name, so the two cannot drift
apart unseen: a field that the record has not is an error in every test of the operation.
Threads: pure functions.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final, TypeVar

import msgspec
import numpy as np

from mjhost.generation import FrameGeneration, ModelGeneration, OptionsEpoch, PluginGeneration
from mjhost.operations.fields import Response

P = TypeVar("P", bound=Response)

_COUNTERS: Final = (ModelGeneration, PluginGeneration, FrameGeneration, OptionsEpoch)


def response_of(wanted: type[P], record: object = None, **given: object) -> P:
    """A response whose fields are those ``given``, and otherwise the record's of that name."""
    names = wanted.__struct_fields__
    values = {name: given[name] if name in given else getattr(record, name) for name in names}
    return msgspec.convert(plain(values), wanted, strict=True)


def plain(value: Any) -> Any:
    """A value as JSON has them: arrays as lists, ``None`` for a number that is not finite."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, _COUNTERS):
        return value.value
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(plain(item) for item in value)
    if isinstance(value, PurePath):
        return str(value)
    return [plain(item) for item in value]
