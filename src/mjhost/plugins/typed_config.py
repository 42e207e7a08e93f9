"""Typed configuration from plain mappings, with errors a human can act on.

Owns: ``build_config``.
Invariants: a configuration is built completely or not at all; every problem is told, not the first.
Threads: pure functions.
Failure: ``PluginConfigError`` whose ``problems`` each name the key, the expected type and the given
value.
Not a goal: reading files; see ``mjhost.plugins.config_files``.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import msgspec
import numpy as np

from mjhost.errors import InvalidArgumentError, PluginConfigError, did_you_mean

_SHOWN = 80  # characters of a value in a message


class _Field(NamedTuple):
    name: str
    type: Any
    required: bool


def build_config(config_type: type | None, values: Mapping[str, Any], where: str) -> Any:
    """Make an instance of ``config_type`` from ``values``.

    Args:
        config_type: a dataclass or ``msgspec.Struct`` class; None takes no keys at all.
        values: keys and values as a file or a caller gave them. An int is fine for a float.
        where: what the configuration belongs to, for messages.

    Raises:
        PluginConfigError: at least one key is unknown, missing or of a wrong type.
        InvalidArgumentError: ``config_type`` is neither a dataclass nor a struct.
    """
    if not isinstance(values, Mapping):
        raise PluginConfigError(where, [f"config must be a mapping, got {_show(values)}"])
    if config_type is None:
        if values:
            keys = ", ".join(repr(key) for key in values)
            raise PluginConfigError(where, [f"takes no config, got {keys}"])
        return None
    return _build(config_type, values, where)


def _build(config_type: type, values: Mapping[str, Any], where: str) -> Any:
    problems: list[str] = []
    built = _convert_fields(config_type, values, "", where, problems)
    if problems:
        raise PluginConfigError(where, problems)
    return _construct(config_type, built, where)


def _convert_fields(
    config_type: type, values: Mapping[str, Any], prefix: str, where: str, problems: list[str]
) -> dict[str, Any]:
    fields = {field.name: field for field in _fields(config_type, where)}
    problems += (
        f"unknown key {prefix + str(key)!r}; {did_you_mean(str(key), fields)}"
        for key in values
        if key not in fields
    )
    problems += (
        f"key {prefix + field.name!r} is missing, expected {_type_name(field.type)}"
        for field in fields.values()
        if field.required and field.name not in values
    )
    return {
        name: _convert(values[name], field.type, prefix + name, where, problems)
        for name, field in fields.items()
        if name in values
    }


def _convert(value: Any, wanted: Any, key: str, where: str, problems: list[str]) -> Any:
    if _is_config_class(wanted) and isinstance(value, Mapping):
        before = len(problems)
        built = _convert_fields(wanted, value, f"{key}.", where, problems)
        return _construct(wanted, built, where) if len(problems) == before else None
    try:
        return _convert_plain(value, wanted)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        problems.append(_wrong_type(key, wanted, value, error))
        return None


def _convert_plain(value: Any, wanted: Any) -> Any:
    if isinstance(wanted, type) and type(value) is wanted:
        return value  # what Python callers hand over needs no conversion
    if wanted is np.ndarray:
        return np.array(value, dtype=np.float64)
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    return msgspec.convert(value, wanted, strict=True, dec_hook=_convert_foreign)


def _convert_foreign(wanted: type, value: Any) -> Any:
    """Types that msgspec does not know; called only when ``value`` is not an instance yet."""
    is_path = isinstance(wanted, type) and issubclass(wanted, Path)
    if is_path and isinstance(value, str | os.PathLike):
        return Path(value)
    if wanted is np.ndarray:
        return np.array(value, dtype=np.float64)
    raise TypeError(f"a {type(value).__name__} cannot be made into {_type_name(wanted)}")


def _construct(config_type: type, built: dict[str, Any], where: str) -> Any:
    try:
        return config_type(**built)
    except Exception as error:  # a validating __post_init__ of the user
        problem = f"{config_type.__qualname__} refused its values: {error}"
        raise PluginConfigError(where, [problem]) from error


def _fields(config_type: type, where: str) -> Iterable[_Field]:
    if not _is_config_class(config_type):
        raise InvalidArgumentError(
            f"Config of {where} must be a dataclass or a msgspec.Struct class, "
            f"got {_show(config_type)}"
        )
    try:
        hints = get_type_hints(config_type, include_extras=True)
    except Exception as error:
        raise PluginConfigError(
            where, [f"an annotation of {config_type.__qualname__} cannot be resolved: {error}"]
        ) from error
    if issubclass(config_type, msgspec.Struct):
        structs = msgspec.structs.fields(config_type)
        return [_Field(f.name, hints[f.name], f.required) for f in structs]
    plain: Iterable[dataclasses.Field[Any]] = dataclasses.fields(config_type)  # type: ignore[arg-type]
    return [_Field(f.name, hints[f.name], _is_required(f)) for f in plain if f.init]


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _is_config_class(wanted: Any) -> bool:
    return isinstance(wanted, type) and (
        dataclasses.is_dataclass(wanted) or issubclass(wanted, msgspec.Struct)
    )


def _wrong_type(key: str, wanted: Any, value: Any, error: Exception) -> str:
    detail = str(error).replace("`", "")
    text = f"key {key!r}: expected {_type_name(wanted)}, got {_show(value)} ({detail})"
    if isinstance(value, str) and _reads_as_number(value):
        text += "; it is text, not a number: YAML wants 1.0e-3, not 1e-3, and no quotes"
    return text


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _type_name(wanted: Any) -> str:
    if isinstance(wanted, type) and not hasattr(wanted, "__args__"):
        return wanted.__name__
    return str(wanted).replace("typing.", "")


def _show(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a message about a value must not fail over its repr
        text = f"<{type(value).__name__}>"
    if len(text) > _SHOWN:
        text = f"{text[:_SHOWN]}…"
    return f"{type(value).__name__} {text}"
