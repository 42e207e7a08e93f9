"""Extensions by name: modules and source files that declare some, and native libraries.

Owns: the module names under which source files are imported.
Invariants: a file is imported once; read again, it runs anew under the same module name, so that
what it declares takes the place of what it declared before (``registry``: same file, same class).
Threads: any. Contract of ``read_again``: between steps of the data that use the extensions.
Failure: ``PluginLoadError``; of a file that fails half-way, what it declared until then stands.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

from mjhost import modules
from mjhost.engine.libraries import load_library
from mjhost.errors import PluginLoadError

_LIBRARIES: Final = (".so", ".dylib", ".dll")


def bring_in(text: str) -> tuple[Path, ...]:
    """Imports a module or source file that declares extensions, or loads a library or directory.

    Args:
        text: ``path.py``, a module's name, a native library, or a directory of these.

    Returns:
        the source files that ``read_again`` can read; empty for libraries.

    Raises:
        PluginLoadError: it cannot be found, imported or loaded.
    """
    path = Path(text)
    if path.is_dir() or path.suffix in _LIBRARIES:
        load_library(path)
        return ()
    name = text.rpartition(":")[0] or text
    if name.endswith(".py"):
        path = Path(name).resolve()
        modules.imported(repr(name), lambda: _file(path))
        return (path,)
    module = modules.imported(repr(name), lambda: _module(name))
    source = getattr(module, "__file__", None)
    return (Path(source),) if source and source.endswith(".py") else ()


def read_again(path: Path) -> None:
    """Runs a source file that was brought in once more, as it is now.

    Raises:
        PluginLoadError: it cannot be read, or raises.
    """
    found = next(
        (m for m in sys.modules.values() if getattr(m, "__file__", None) == str(path)), None
    )
    if found is None:
        raise PluginLoadError(f"{path} was not brought in; bring_in it first")
    spec = importlib.util.spec_from_file_location(found.__name__, path)
    assert spec is not None, "a .py path always has a loader"
    modules.imported(repr(str(path)), lambda: modules.run(spec))


def _module(name: str) -> ModuleType:
    directory = str(Path.cwd())
    sys.path.insert(0, directory)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(directory)


def _file(path: Path) -> ModuleType:
    if not path.is_file():
        raise PluginLoadError(f"there is no file {str(path)!r}")
    spec = modules.spec_of_file(path, "extension")
    return sys.modules.get(spec.name) or modules.run(spec)
