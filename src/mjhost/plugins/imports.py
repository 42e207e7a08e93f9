"""Plugin classes by name: ``module:Class``, ``path.py:Class``, ``path.py``, entry points.

Owns: ``Importer``; the names under which plugin files stand in ``sys.modules``.
Invariants: a refresh makes new module objects and leaves the old ones untouched, so that a running
generation keeps its own code (``mjhost.modules``); ``importlib.reload`` is never used.
Threads: an ``Importer`` belongs to one thread; no lock of an env is held.
Failure: ``PluginLoadError`` with the import's own exception as cause; ``rollback`` puts back what
``sys.modules`` held before.
Not a goal: refreshing what plugin modules import in turn. Only modules that are named are
refreshed, never those of mjhost and never extension modules.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

from mjhost import modules
from mjhost.errors import PluginLoadError, did_you_mean
from mjhost.plugins.plugin import Plugin

ENTRY_POINT_GROUP: Final = "mjhost.plugins"


class FoundPlugin(NamedTuple):
    """A plugin class and where it came from.

    Attributes:
        cls: the class.
        type: the text to show.
        name: the name to use if the configuration gives none.
        file: its source, None if unknown.
    """

    cls: type[Plugin]
    type: str
    name: str
    file: Path | None


class Importer:
    """Imports the modules of one plugin list, each once.

    Args:
        fresh: execute modules anew, even those that are imported already.
    """

    def __init__(self, *, fresh: bool = False) -> None:
        self._fresh = fresh
        self._modules: dict[str, ModuleType] = {}
        self._before: dict[str, ModuleType | None] = {}

    def find(self, text: str, base_dir: Path) -> FoundPlugin:
        """The plugin class that ``text`` names; relative paths are relative to ``base_dir``.

        Raises:
            PluginLoadError: it cannot be found or imported, or is no plugin.
        """
        left, colon, qualname = text.rpartition(":")
        if not colon and text.endswith(".py"):
            module = self._file(base_dir / text)
            cls = _only_plugin(module, text)
            return FoundPlugin(cls, f"{text}:{cls.__qualname__}", cls.__name__, _file_of(module))
        if not colon:
            return self._entry_point(text)
        if not left or not qualname:
            raise PluginLoadError(
                f"plugin {text!r} must be 'module:Class', 'path.py:Class', 'path.py' or the name "
                "of an entry point"
            )
        module = self._file(base_dir / left) if left.endswith(".py") else self._module(left)
        cls = _plugin_in(module, qualname, text)
        return FoundPlugin(cls, text, cls.__name__, _file_of(module))

    def rollback(self) -> None:
        """Put back what ``sys.modules`` held before this importer executed anything."""
        for name, before in self._before.items():
            modules.put(name, before)
        self._before.clear()
        self._modules.clear()

    def _entry_point(self, name: str) -> FoundPlugin:
        points = {
            point.name: point for point in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)
        }
        if name not in points:
            raise PluginLoadError(
                f"no plugin {name!r} among the entry points of {ENTRY_POINT_GROUP}; "
                f"{did_you_mean(name, points)}; a module is named 'module:Class'"
            )
        point = points[name]
        module = self._module(point.module)
        cls = _plugin_in(module, point.attr, point.value)
        return FoundPlugin(cls, point.value, name, _file_of(module))

    def _module(self, name: str) -> ModuleType:
        if name not in self._modules:
            self._modules[name] = modules.imported(
                f"plugin module {name!r}", lambda: self._load_module(name)
            )
        return self._modules[name]

    def _file(self, path: Path) -> ModuleType:
        path = path.resolve()
        if not path.is_file():
            near = [p.name for p in path.parent.glob("*.py")]
            raise PluginLoadError(
                f"plugin file {str(path)!r} does not exist; {did_you_mean(path.name, near)}"
            )
        spec = modules.spec_of_file(path, "plugin")
        if spec.name not in self._modules:
            self._modules[spec.name] = modules.imported(
                f"plugin module {str(path)!r}", lambda: self._run(spec)
            )
        return self._modules[spec.name]

    def _load_module(self, name: str) -> ModuleType:
        present = sys.modules.get(name)
        if not self._fresh or present is None or name.partition(".")[0] in {"mjhost", "__main__"}:
            return importlib.import_module(name)
        importlib.invalidate_caches()
        spec = importlib.util.find_spec(name)
        if spec is None or not hasattr(spec.loader, "source_to_code"):
            return present
        return self._run(spec)

    def _run(self, spec: ModuleSpec) -> ModuleType:
        before = sys.modules.get(spec.name)
        module = modules.run(spec)
        self._before.setdefault(spec.name, before)
        return module


def source_of(text: str, base_dir: Path) -> Path | None:
    """The file that ``text`` is looked for in, whether or not it can be imported, or exists."""
    left = text.rpartition(":")[0] or text
    if left.endswith(".py"):
        return (base_dir / left).resolve()
    try:
        spec = importlib.util.find_spec(left) if ":" in text else None
    except Exception:  # noqa: BLE001 - finding a submodule imports the packages around it
        return None
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None


def plugin_type(cls: type[Plugin]) -> str:
    """``module:Class`` of a class."""
    return f"{cls.__module__}:{cls.__qualname__}"


def _plugins_in(module: ModuleType) -> dict[str, type[Plugin]]:
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, Plugin)
        and value.__module__ == module.__name__
    }


def _only_plugin(module: ModuleType, text: str) -> type[Plugin]:
    found = _plugins_in(module)
    if len(found) != 1:
        names = ", ".join(found) or "none"
        raise PluginLoadError(
            f"{text!r} must define exactly one subclass of Plugin, it has {names}; "
            f"name one as '{text}:Class'"
        )
    return next(iter(found.values()))


def _plugin_in(module: ModuleType, qualname: str, text: str) -> type[Plugin]:
    value: Any = module
    for part in qualname.split("."):
        if not hasattr(value, part):
            raise PluginLoadError(
                f"plugin {text!r}: no {qualname!r} in the module; "
                f"{did_you_mean(qualname, _plugins_in(module))}"
            )
        value = getattr(value, part)
    if not (isinstance(value, type) and issubclass(value, Plugin)):
        raise PluginLoadError(
            f"plugin {text!r} must be a subclass of mjhost.Plugin, got {type(value).__name__}; "
            f"{did_you_mean(qualname, _plugins_in(module))}"
        )
    return value


def _file_of(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file) if file else None
