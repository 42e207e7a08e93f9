"""Parsing of requested changes into a patch.

Invariants: a field is named at most once, under whatever name; the patch that comes out holds
converted values only, so parsing it again gives the same patch. All problems are reported together,
in the order of the request, under canonical names.
Threads: pure functions.
Failure: ``OptionsRejected``, whatever was handed in; nothing else is raised and nothing changed.
Not a goal: ranges. ``validate_runtime_options`` needs the values that the patch leaves alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias, overload

import msgspec
import numpy as np

from mjhost.errors import did_you_mean
from mjhost.options.convert import ValueRefused, convert, problem, shown
from mjhost.options.records import (
    OptionsResult,
    RuntimeOptionInput,
    RuntimeOptionsError,
    RuntimeOptionsPatch,
    RuntimeOptionsSnapshot,
)
from mjhost.options.table import (
    BY_NAME,
    EngineVersion,
    OptionDescriptor,
    OptionValue,
    engine_version,
    name_index,
)

MAX_INPUTS: Final = 128
_NO_REQUEST: Final = (str, bytes, bytearray, np.ndarray)
PatchInputs: TypeAlias = (
    Iterable[RuntimeOptionInput]
    | Mapping[str, Any]
    | RuntimeOptionInput
    | RuntimeOptionsPatch
    | RuntimeOptionsSnapshot
)


@overload
def parse_runtime_options_patch(
    inputs: PatchInputs, *, raise_on_error: Literal[True] = True, engine: str | None = None
) -> RuntimeOptionsPatch: ...
@overload
def parse_runtime_options_patch(
    inputs: PatchInputs, *, raise_on_error: Literal[False], engine: str | None = None
) -> OptionsResult: ...
def parse_runtime_options_patch(
    inputs: PatchInputs, *, raise_on_error: bool = True, engine: str | None = None
) -> RuntimeOptionsPatch | OptionsResult:
    """Turn requested changes into a patch of exactly converted values.

    Args:
        inputs: inputs in order, a mapping from names to values, a patch (its values are checked
            again) or a snapshot (names every field of the engine). At most 128 entries.
        raise_on_error: whether to raise instead of returning the problems.
        engine: MuJoCo version whose fields exist; by default the installed one.

    Returns:
        The patch; with ``raise_on_error=False`` an ``OptionsResult`` whose ``patch`` has those
        fields that could be read.

    Raises:
        OptionsRejected: with every problem in ``errors``.
        InvalidArgumentError: ``engine`` is not a version.
    """
    reader = _Reader(engine_version(engine))
    for name, value in reader.pairs(inputs):
        reader.take(name, value)
    result = OptionsResult(errors=tuple(reader.errors), patch=RuntimeOptionsPatch(**reader.values))
    if not raise_on_error:
        return result
    result.raise_if_rejected()
    assert result.patch is not None
    return result.patch


class _Reader:
    """Collects values and problems of one request."""

    def __init__(self, version: EngineVersion) -> None:
        self._version = version
        self._named: dict[str, str] = {}
        self.values: dict[str, Any] = {}
        self.errors: list[RuntimeOptionsError] = []

    def pairs(self, inputs: Any) -> Iterator[tuple[Any, Any]]:
        """The requested changes, one by one; what is none becomes a problem."""
        entries = self._entries(inputs)
        for count, entry in enumerate(itertools.islice(entries, MAX_INPUTS + 1)):
            if count == MAX_INPUTS:
                self._refuse_patch(f"must have at most {MAX_INPUTS} entries", "more")
            elif isinstance(entry, RuntimeOptionInput):
                yield entry.field, entry.value
            else:
                self._refuse_patch(f"must hold RuntimeOptionInput, entry {count} is none", entry)

    def take(self, name: Any, value: Any) -> None:
        """Read one requested change."""
        fields = name_index().get(name) if isinstance(name, str) else None
        if fields is None:
            self.errors.append(_unknown(name, value))
            return
        for field in fields:
            self._take_field(field, name, value)

    def _take_field(self, field: OptionDescriptor, name: str, value: Any) -> None:
        if field.since > self._version:
            self.errors.append(_too_new(field, self._version, value))
            return
        try:
            converted = convert(field, value)
        except ValueRefused as refused:
            self.errors.append(problem(field, str(refused), value))
        else:
            self.values.setdefault(field.name, converted)
        if field.name in self._named:
            self._refuse_twice(field.name, name)
        self._named[field.name] = name

    def _refuse_twice(self, field: str, name: str) -> None:
        self.values.pop(field, None)
        names = sorted({self._named[field], name})
        message = f"must be named once, it was named twice (as {' and '.join(names)})"
        self.errors.append(RuntimeOptionsError(field, message))

    def _refuse_patch(self, message: str, given: Any) -> None:
        self.errors.append(RuntimeOptionsError("patch", message, given=shown(given)))

    def _entries(self, inputs: Any) -> Iterable[Any]:
        if isinstance(inputs, Mapping):
            return itertools.starmap(RuntimeOptionInput, inputs.items())
        if isinstance(inputs, RuntimeOptionsPatch):
            return itertools.starmap(RuntimeOptionInput, inputs.items())
        if isinstance(inputs, RuntimeOptionsSnapshot):
            return self._of_snapshot(inputs)
        if isinstance(inputs, RuntimeOptionInput):
            return (inputs,)
        if isinstance(inputs, Iterable) and not isinstance(inputs, _NO_REQUEST):
            return inputs
        self._refuse_patch("must be a mapping, a patch or an iterable of inputs", inputs)
        return ()

    def _of_snapshot(self, snapshot: RuntimeOptionsSnapshot) -> Iterator[RuntimeOptionInput]:
        for name, value in msgspec.structs.asdict(snapshot).items():
            field = BY_NAME[name]
            if field.since <= self._version or value != field.default:
                yield RuntimeOptionInput(name, value)


def converted_fields(patch: RuntimeOptionsPatch) -> dict[str, OptionValue]:
    """The named fields of ``patch``, converted again, so that a patch made by hand is safe.

    Raises:
        OptionsRejected: a value does not fit its field.
    """
    values: dict[str, OptionValue] = {}
    errors = []
    for name, value in patch.items():
        try:
            values[name] = convert(BY_NAME[name], value)
        except ValueRefused as refused:
            errors.append(problem(BY_NAME[name], str(refused), value))
    OptionsResult(errors=tuple(errors)).raise_if_rejected()
    return values


def _unknown(name: Any, value: Any) -> RuntimeOptionsError:
    if not isinstance(name, str):
        return RuntimeOptionsError("patch", "must name fields by text", given=shown(name))
    # Looking for near names is quadratic in their length.
    short = name if len(name) <= 64 else f"{name[:61]}..."
    message = f"is not a run-time option, {did_you_mean(short, name_index())}"
    return RuntimeOptionsError(short, message, given=shown(value))


def _too_new(field: OptionDescriptor, version: EngineVersion, value: Any) -> RuntimeOptionsError:
    needs = f"{field.since[0]}.{field.since[1]}"
    message = f"needs MuJoCo {needs} or newer, this is {version[0]}.{version[1]}"
    return RuntimeOptionsError(field.name, message, given=shown(value))
