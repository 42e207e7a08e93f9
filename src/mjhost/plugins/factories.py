"""The factory that makes adapters from whatever ``plugins=`` was given.

Owns: ``PluginFactory``, the meaning of a plugin record, the names.
Invariants: everything that can fail without a model (files, imports, configuration) happens when
the factory is made, never under the host lock. A plugin that failed there still has its adapter,
which fails in ``load`` with that error, so that it stays visible. Names are unique and the same at
every refresh.
Threads: making and refreshing belong to one thread; calling is the host's.
Failure: what cannot be understood as a plugin list raises from the constructor; a plugin that
cannot be found, imported or configured is one of ``problems``.

A record is a mapping with ``type`` (a class, or text as below) and optionally ``name``, ``config``
(a mapping of the keys of its ``Config``) and ``rate_hz``. Text is ``module:Class``,
``path.py:Class``, ``path.py`` (with one plugin in it), the name of an entry point of
``mjhost.plugins``, or the path of a ``.yaml``, ``.yml`` or ``.toml`` file with a list of records.
Paths in a file are relative to it.
"""

from __future__ import annotations

import copy
import math
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from mjhost.errors import (
    InvalidArgumentError,
    PluginConfigError,
    PluginLoadError,
    did_you_mean,
)
from mjhost.plugins.adapter import PluginAdapter, PluginHookAdapter
from mjhost.plugins.config_files import SUFFIXES, read_records
from mjhost.plugins.imports import FoundPlugin, Importer, plugin_type, source_of
from mjhost.plugins.plugin import Plugin, fresh_copy
from mjhost.plugins.typed_config import build_config

PluginSource = str | Path | type[Plugin] | Plugin | Mapping[str, Any] | Iterable[Any]
"""What ``plugins=`` takes: one of these, or an iterable of them."""

RECORD_KEYS: Final = ("type", "name", "config", "rate_hz")

_NAME_LIMIT: Final = 200  # characters


class _Item(NamedTuple):
    """One wanted plugin, not yet looked up."""

    record: Any
    base_dir: Path


class _Recipe(NamedTuple):
    """One plugin, ready to be built for every generation."""

    name: str
    explicit: bool
    type: str
    build: Callable[[], Plugin]
    rate_hz: float | None = None
    problem: PluginLoadError | None = None
    file: Path | None = None


class PluginFactory:
    """Called once per generation for a fresh set of adapters.

    Args:
        plugins: what to make; see the module's text.
        base_dir: what relative paths are relative to; the working directory if None.

    Raises:
        PluginConfigError: a plugin file that cannot be read as a list of records.
        InvalidArgumentError: an item of a kind that cannot be a plugin.
    """

    def __init__(self, plugins: PluginSource = (), *, base_dir: Path | None = None) -> None:
        self._prepare(plugins, base_dir or Path.cwd(), Importer())

    def _prepare(self, plugins: PluginSource, base_dir: Path, importer: Importer) -> None:
        # One-shot iterables have to last for every refresh.
        self._source = list(plugins) if isinstance(plugins, Iterator) else plugins
        self._base_dir = base_dir
        self._files: list[Path] = []
        recipes = [_recipe(i, item, importer) for i, item in enumerate(self._expand())]
        self._recipes = _with_unique_names(recipes)

    @property
    def problems(self) -> tuple[PluginLoadError, ...]:
        """Why plugins of the list cannot be built; empty if all can."""
        return tuple(recipe.problem for recipe in self._recipes if recipe.problem is not None)

    @property
    def watched_files(self) -> tuple[Path, ...]:
        """The plugin files and plugin sources that a change of would matter."""
        sources = [recipe.file for recipe in self._recipes if recipe.file is not None]
        return tuple(dict.fromkeys([*self._files, *sources]))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the plugins, in order."""
        return tuple(recipe.name for recipe in self._recipes)

    def refreshed(self, plugins: PluginSource | None = None) -> PluginFactory:
        """A new factory whose files were read again and whose modules were executed anew.

        Args:
            plugins: another list; None for the same one.

        Raises:
            PluginLoadError: something cannot be built; no module was replaced, this factory stays
                as good as it was.
        """
        importer = Importer(fresh=True)
        fresh = PluginFactory.__new__(PluginFactory)
        try:
            source = self._source if plugins is None else plugins
            fresh._prepare(source, self._base_dir, importer)
            fresh.require_no_problems()
        except BaseException:
            importer.rollback()
            raise
        return fresh

    def require_no_problems(self) -> None:
        """Raise what is in ``problems``.

        Raises:
            PluginLoadError: there is at least one.
        """
        problems = self.problems
        if len(problems) == 1:
            raise copy.copy(problems[0])
        if problems:
            told = "; ".join(str(problem) for problem in problems)
            raise PluginLoadError(f"{len(problems)} plugins cannot be built: {told}")

    def __call__(self) -> Iterator[PluginAdapter]:
        """One fresh adapter per plugin, in order."""
        for recipe in self._recipes:
            yield PluginHookAdapter(recipe.name, recipe.type, recipe.build, recipe.rate_hz)

    def __len__(self) -> int:
        return len(self._recipes)

    def _expand(self) -> Iterator[_Item]:
        for item in _as_items(self._source):
            path = _config_file(item)
            if path is None:
                yield _Item(item, self._base_dir)
                continue
            path = (self._base_dir / path).resolve()
            self._files.append(path)
            for record in read_records(path):
                if isinstance(record, str) and _config_file(record) is not None:
                    raise PluginConfigError(
                        f"plugin file {str(path)!r}",
                        [f"must not name another file, got {record!r}"],
                    )
                yield _Item(record, path.parent)


def _as_items(source: Any) -> Iterable[Any]:
    if isinstance(source, str | Path | type | Plugin | Mapping):
        return (source,)
    if not isinstance(source, Iterable):
        _refuse(source)
    return source


def _config_file(item: Any) -> Path | None:
    if isinstance(item, Path | str) and str(item).endswith(SUFFIXES):
        return Path(item)
    return None


def _recipe(index: int, item: _Item, importer: Importer) -> _Recipe:
    """Look one item up; what goes wrong becomes the recipe's problem."""
    record = item.record
    if isinstance(record, Plugin):
        return _template_recipe(record)
    if not isinstance(record, Mapping):
        record = {"type": str(record) if isinstance(record, Path) else record}
    name, type_ = _provisional(record, index)
    try:
        return _record_recipe(record, item.base_dir, importer)
    except PluginLoadError as error:
        problem = _lasting(error)
        return _Recipe(
            name,
            "name" in record,
            type_,
            partial(_raise, problem),
            problem=problem,
            file=source_of(type_, item.base_dir),  # the file whose edit may be the cure
        )


def _template_recipe(template: Plugin) -> _Recipe:
    cls = type(template)
    rate_hz = vars(template).get("rate_hz")  # set on the instance, so no constructor knows of it
    build = partial(fresh_copy, template)
    return _Recipe(cls.__name__, False, plugin_type(cls), build, rate_hz)


def _record_recipe(record: Mapping[Any, Any], base_dir: Path, importer: Importer) -> _Recipe:
    where = f"plugin record {str(record.get('name', record.get('type')))!r}"
    problems = _record_problems(record)
    if problems:
        raise PluginConfigError(where, problems)
    found = _find(record["type"], base_dir, importer)
    config = record.get("config") or {}
    name = record.get("name", found.name)
    told = f"plugin {name!r} ({found.type})"
    build_config(found.cls.Config, config, told)  # to find its problems now
    build = partial(_build, found.cls, config, told)
    return _Recipe(
        name, "name" in record, found.type, build, record.get("rate_hz"), file=found.file
    )


def _record_problems(record: Mapping[Any, Any]) -> list[str]:
    problems = [
        f"unknown key {key!r}; {did_you_mean(str(key), RECORD_KEYS)}"
        for key in record
        if key not in RECORD_KEYS
    ]
    if "type" not in record:
        problems.append("key 'type' is missing, expected 'module:Class' or 'path.py:Class'")
    name = record.get("name", "x")
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= _NAME_LIMIT:
        problems.append(f"key 'name': expected printable text, got {name!r}")
    config = record.get("config")
    if config is not None and not isinstance(config, Mapping):
        problems.append(f"key 'config': expected a mapping, got {type(config).__name__} {config!r}")
    rate = record.get("rate_hz")
    if rate is not None and not _is_rate(rate):
        problems.append(f"key 'rate_hz': expected a finite number > 0, got {rate!r}")
    return problems


def _is_rate(rate: Any) -> bool:
    return isinstance(rate, int | float) and not isinstance(rate, bool) and 0.0 < rate < math.inf


def _find(wanted: Any, base_dir: Path, importer: Importer) -> FoundPlugin:
    if isinstance(wanted, str):
        return importer.find(wanted, base_dir)
    if isinstance(wanted, type) and issubclass(wanted, Plugin):
        return FoundPlugin(wanted, plugin_type(wanted), wanted.__name__, None)
    return _refuse(wanted)


def _build(cls: type[Plugin], config: Mapping[str, Any], where: str) -> Plugin:
    typed = build_config(cls.Config, config, where)
    return cls() if typed is None else cls(typed)


def _refuse(item: Any) -> NoReturn:
    raise InvalidArgumentError(
        "a plugin must be a Plugin subclass or instance, 'module:Class', 'path.py:Class', the name "
        f"of an entry point, a record or a plugin file, got {type(item).__name__} {item!r}"
    )


def _provisional(record: Mapping[Any, Any], index: int) -> tuple[str, str]:
    """Name and type to show of a record that may be wrong in every way."""
    wanted = record.get("type", "")
    type_ = plugin_type(wanted) if isinstance(wanted, type) else str(wanted)[:_NAME_LIMIT]
    name = record.get("name") or type_.rpartition(":")[2] or f"<item {index}>"
    return str(name)[:_NAME_LIMIT], type_


def _lasting(error: PluginLoadError) -> PluginLoadError:
    """A copy that keeps no frame alive; the causes' tracebacks become a note."""
    lasting = copy.copy(error)
    if error.__cause__ is not None:
        lasting.add_note("".join(traceback.format_exception(error.__cause__)).rstrip())
    return lasting


def _raise(problem: PluginLoadError) -> NoReturn:
    raise copy.copy(problem)  # raising the same object again would pile up tracebacks


def _with_unique_names(recipes: list[_Recipe]) -> list[_Recipe]:
    """Number the names that appear twice; names of the configuration come before class names."""
    taken: set[str] = set()
    named: dict[int, str] = {}
    for index in sorted(range(len(recipes)), key=lambda i: not recipes[i].explicit):
        named[index] = _free_name(recipes[index].name, taken)
        taken.add(named[index])
    return [recipe._replace(name=named[i]) for i, recipe in enumerate(recipes)]


def _free_name(name: str, taken: set[str]) -> str:
    candidate, number = name, 1
    while candidate in taken:
        number += 1
        candidate = f"{name}_{number}"
    return candidate
