"""Running Python source as a module, again when it was edited.

Owns: ``run`` and ``imported``, for plugins of the host and extensions of the engine alike.
Invariants: a run makes a new module object and leaves the old one untouched, so that who uses that
keeps its code. Source is compiled from its text: a bytecode file is trusted by modification time in
seconds, and an edit can be faster.
Threads: any, one at a time per name.
Failure: a module that raises leaves ``sys.modules`` as it was.
"""

from __future__ import annotations

import hashlib
import importlib.util
import linecache
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from mjhost.errors import PluginLoadError


def spec_of_file(path: Path, kind: str) -> ModuleSpec:
    """What a source file is imported as: under a name of its own, told by its whole path.

    Args:
        path: absolute.
        kind: ``plugin`` or ``extension``; part of the name.
    """
    digest = hashlib.sha256(str(path).encode()).hexdigest()[:12]
    name = f"mjhost_{kind}_{path.stem}_{digest}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None, "a .py path always has a loader"
    return spec


def run(spec: ModuleSpec) -> ModuleType:
    """Runs a module's source in a new module object that takes the name over."""
    loader: Any = spec.loader
    path = loader.get_filename(spec.name)
    linecache.cache.pop(path, None)  # tracebacks must show the text that runs
    code = loader.source_to_code(loader.get_data(path), path)
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(spec.name)
    # Registered while it runs: dataclasses and pickle look their module up by name.
    put(spec.name, module)
    try:
        exec(code, module.__dict__)  # noqa: S102 - importing is executing
    except BaseException:
        put(spec.name, before)
        raise
    return module


def put(name: str, module: ModuleType | None) -> None:
    """Makes ``module`` the one of that name, also in its package; ``None`` takes the name away."""
    if module is None:
        sys.modules.pop(name, None)
        return
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], child, module)


def imported(what: str, load: Callable[[], ModuleType]) -> ModuleType:
    """What ``load`` imports.

    Args:
        what: how messages call it, such as ``"plugin module 'a.b'"``.
        load: imports it.

    Raises:
        PluginLoadError: it raised, whatever that was but an interrupt.
    """
    try:
        return load()
    except (KeyboardInterrupt, PluginLoadError):
        raise
    except BaseException as error:  # a module that calls sys.exit must not end the host
        raise PluginLoadError(
            f"{what} cannot be imported: {type(error).__name__}: {error}"
        ) from error
