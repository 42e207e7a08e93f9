"""Plugin lists in YAML and TOML files.

Owns: reading such a file into records; see ``mjhost.plugins.factories`` for what a record may hold.
Invariants: size, depth and number of values are bounded before anything looks at them; YAML is read
without tags that construct objects, and a key that appears twice is an error, not the last one's
win.
Threads: pure functions.
Failure: ``PluginConfigError`` naming the file, and the line where the parser knows it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from mjhost.errors import PluginConfigError, did_you_mean

SUFFIXES: Final = (".yaml", ".yml", ".toml")

SIZE_LIMIT: Final = 1 << 18  # bytes of a file
DEPTH_LIMIT: Final = 32
BRACKET_LIMIT: Final = 500  # open brackets that a YAML text may have before it is parsed at all
VALUE_LIMIT: Final = 20_000  # aliases are counted as often as they are used


def read_records(path: Path) -> list[Any]:
    """The plugin records in ``path``: a list, or a mapping with the one key ``plugins``.

    Raises:
        PluginConfigError: the file is missing, too large, malformed or of another shape.
    """
    where = f"plugin file {str(path)!r}"
    text = _read_text(path, where)
    document = _parse_toml(text, where) if path.suffix == ".toml" else _parse_yaml(text, where)
    _require_bounded(document, where)
    if isinstance(document, Mapping):
        document = _plugins_of(document, where)
    if not isinstance(document, list):
        raise PluginConfigError(where, [f"must hold a list of plugins, got {_kind(document)}"])
    return document


def _plugins_of(document: Mapping[Any, Any], where: str) -> Any:
    unknown = [key for key in document if key != "plugins"]
    if unknown:
        raise PluginConfigError(
            where,
            [f"unknown key {key!r}; {did_you_mean(str(key), ['plugins'])}" for key in unknown],
        )
    return document.get("plugins", [])


def _read_text(path: Path, where: str) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(SIZE_LIMIT + 1)
        if len(raw) > SIZE_LIMIT:
            raise PluginConfigError(where, [f"must not be larger than {SIZE_LIMIT} bytes"])
        return raw.decode("utf-8")
    except FileNotFoundError:
        near = [p.name for p in path.parent.glob("*") if p.suffix in SUFFIXES]
        raise PluginConfigError(
            where, [f"does not exist; {did_you_mean(path.name, near)}"]
        ) from None
    except OSError as error:
        raise PluginConfigError(where, [f"cannot be read: {error.strerror}"]) from error
    except UnicodeDecodeError as error:
        raise PluginConfigError(where, [f"must be UTF-8, byte {error.start} is not"]) from error


def _parse_toml(text: str, where: str) -> Any:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise PluginConfigError(where, [f"is no TOML: {error}"]) from error


def _parse_yaml(text: str, where: str) -> Any:
    _require_shallow(text, where)
    try:
        document = yaml.load(text, Loader=_StrictLoader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}: " if mark else ""
        raise PluginConfigError(where, [f"is no YAML: {line}{error.problem}"]) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise PluginConfigError(where, [f"is no YAML: {error}"]) from error
    return [] if document is None else document


def _require_shallow(text: str, where: str) -> None:
    # The scanner's time grows with the square of the depth of brackets; quotes do not matter here.
    depth = 0
    for character in text:
        depth += (character in "[{") - (character in "]}")
        if depth > BRACKET_LIMIT:
            raise PluginConfigError(where, [f"must not be nested deeper than {DEPTH_LIMIT}"])


class _StrictLoader(yaml.SafeLoader):
    """``yaml.safe_load``'s loader, but a key that appears twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002
        """Construct a mapping whose keys are unique."""
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"key {key.value!r} appears twice", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def _require_bounded(document: Any, where: str) -> None:
    left = VALUE_LIMIT
    open_ = [(document, 0)]
    while open_:
        value, depth = open_.pop()
        left -= 1
        if left < 0:
            raise PluginConfigError(where, [f"must not hold more than {VALUE_LIMIT} values"])
        if depth > DEPTH_LIMIT:
            raise PluginConfigError(where, [f"must not be nested deeper than {DEPTH_LIMIT}"])
        inner = value.values() if isinstance(value, Mapping) else value
        if isinstance(value, Mapping | list):
            open_ += [(item, depth + 1) for item in inner]


def _kind(value: Any) -> str:
    return f"{type(value).__name__} {str(value)[:80]!r}"
