"""Native libraries that register engine plugins, loaded without risk for the process.

Owns: which files were tried, and what came of each.
Invariants: what cannot be right is seen before a library is loaded, since its code runs while it
is: another machine, another MuJoCo. A library that wants a name that is taken is refused every
time: it stays in the process, where loading it again would run nothing and look like success. The
engine's error for that name returns here; raised through the loader, as the bindings do it, it
would leave the loader locked.
Threads: any; one at a time.
Failure: a file by itself is an error, a file of a directory a record. What a refused library had
registered before it was refused stays, and is named.
Not a goal: unloading, which the engine does not allow; seeing the precision a library was built
for, which nothing in it says: it has to be the double precision of the wheels.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import stat
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mjhost import layout
from mjhost.callbacks.symbols import _look_up
from mjhost.engine import registry, shared_objects
from mjhost.engine.abi.guard import Said, no_exit
from mjhost.engine.abi.structs import Plugin, text
from mjhost.engine.abi.symbols import engine
from mjhost.engine.abi.verify import verify
from mjhost.engine.shared_objects import NotSharedObjectError, SharedObject
from mjhost.errors import EngineNameTakenError, InvalidArgumentError, PluginLoadError

_TAKEN: Final = re.compile(r"plugin '([^']+)' is already registered")
_ENGINE: Final = re.compile(r"libmujoco(?:[.-]\d.*)?\.(?:so|dylib)")
_REGISTERS: Final = b"mjp_register"  # what the names of all those functions begin with
_CODE: Final = ("compute", "init", "nstate", "reset", "sdf_distance")

_Identity = tuple[int, int]  # device and number of a file: what the loader goes by

_lock: Final = threading.RLock()
_refused: Final[dict[_Identity, str]] = {}
_tried: Final[dict[str, LibraryRecord]] = {}


@dataclass(frozen=True, slots=True)
class LibraryRecord:
    """What came of one file.

    Attributes:
        path: as it was given or found.
        loaded: whether it is in use.
        reason: why it was skipped, or what it has registered.
        plugins: names of engine plugins that are there since it was loaded.
        providers: prefixes of resource providers that are.
        name_taken: whether it was skipped for a name that another implementation has.
    """

    path: str
    loaded: bool
    reason: str
    plugins: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    name_taken: bool = False

    def __str__(self) -> str:
        return f"{self.path}: {'loaded' if self.loaded else 'skipped'}, {self.reason}"


def load_library(path: str | os.PathLike[str]) -> tuple[LibraryRecord, ...]:
    """Loads a native library of engine plugins, or every one of a directory.

    Symbolic links are followed, sub-directories are not entered. A library that is loaded already
    stays, which is no error.

    Args:
        path: a file, or a directory.

    Returns:
        a record per file, in the order of their names.

    Raises:
        PluginLoadError: there is nothing at ``path``, or it is one file that cannot be loaded; the
            message says why. Files of a directory raise nothing.
        EngineNameTakenError: it is one file, and registers a name that another implementation has.
            That one stays.
        InvalidArgumentError: ``path`` is no path.

    Contract: runs code of the library. It must be built against the headers of the installed
    MuJoCo, in double precision.
    """
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise InvalidArgumentError(f"a library is the path of a file or directory, got {path!r}")
    given = Path(path)
    verify()
    with _lock:
        if given.is_dir():
            return tuple(_attempt(file) for file in sorted(given.iterdir()))
        record = _attempt(given)
    if not record.loaded:
        error = EngineNameTakenError if record.name_taken else PluginLoadError
        raise error(f"the library {record.path} cannot be loaded: {record.reason}")
    return (record,)


def libraries() -> tuple[LibraryRecord, ...]:
    """What came of each file that was tried in this process, the last attempt of each."""
    with _lock:
        return tuple(_tried.values())


def file_of(plugin: Plugin) -> str | None:
    """The library that a registered plugin's code is in, as far as the loader knows."""
    for slot in _CODE:
        address = getattr(plugin, slot)
        info = _look_up(address) if address else None
        if info is not None and info.file:
            return os.fsdecode(info.file)
    return None


# -- one file ------------------------------------------------------------------------------------


def _attempt(path: Path) -> LibraryRecord:
    record = _loaded(path)
    _tried[str(path)] = record
    return record


def _loaded(path: Path) -> LibraryRecord:
    try:
        status = path.stat()
    except OSError as error:
        return _skipped(path, _why_missing(path, error))
    if not stat.S_ISREG(status.st_mode):
        is_directory = stat.S_ISDIR(status.st_mode)
        kind = "a directory; load it by itself" if is_directory else "neither file nor directory"
        return _skipped(path, f"it is {kind}")
    identity = status.st_dev, status.st_ino
    if identity in _refused:
        return _skipped(path, _refused[identity], name_taken=True)
    try:
        problem = _problem(path.read_bytes())
    except (NotSharedObjectError, OSError) as error:
        problem = _unreadable(path, error)
    return _skipped(path, problem) if problem else _open(path, identity)


def _skipped(path: Path, reason: str, *, name_taken: bool = False) -> LibraryRecord:
    return LibraryRecord(str(path), loaded=False, reason=reason, name_taken=name_taken)


def _why_missing(path: Path, error: OSError) -> str:
    if path.is_symlink():
        return f"it is a link to {str(path.readlink())!r}, where nothing is"
    return "there is no such file or directory" if not path.exists() else str(error)


def _unreadable(path: Path, error: Exception) -> str:
    """Why a file is not tried; empty where libraries are not ELF files."""
    if isinstance(error, NotSharedObjectError) and _reference() is None:
        return "" if path.suffix in {".dylib", ".dll"} else "it is no shared library"
    return str(error)


@functools.cache
def _reference() -> SharedObject | None:
    """The engine's own header; ``None`` where libraries are not ELF files."""
    try:
        return shared_objects.parse(Path(layout.library()._name).read_bytes())
    except NotSharedObjectError:
        return None


def _problem(content: bytes) -> str:
    """What speaks against loading a file; empty if nothing does."""
    header, own = shared_objects.parse(content), _reference()
    if own is None:
        return "it is an ELF library, which this system does not load"
    if not header.runs_beside(own):
        return f"it is built for {header.machine_name}, this process is {own.machine_name}"
    for name in header.needed:
        if _ENGINE.match(name) and name != own.name:
            return (
                f"it is built against {name}, this process runs {own.name}; build it again, with "
                "the headers of the installed mujoco package"
            )
    if _REGISTERS not in content:
        return "it registers nothing with MuJoCo, so that it is no library of engine plugins"
    return ""


def _open(path: Path, identity: _Identity) -> LibraryRecord:
    """Loads a file; its code registers what it has while the loader runs."""
    absolute = str(path.resolve())
    if _is_in_process(absolute):
        return _found_loaded(path, absolute)
    before = _names()
    with no_exit() as said:
        try:
            ctypes.CDLL(absolute, mode=os.RTLD_NOW)
        except OSError as error:
            return _skipped(path, _loader_says(error))
    plugins, providers = (
        tuple(name for name in now if name not in then)
        for then, now in zip(before, _names(), strict=True)
    )
    if said.failed:
        return _clashed(path, identity, said, plugins)
    return LibraryRecord(
        str(path),
        loaded=True,
        reason=_registered(plugins, providers, said),
        plugins=plugins,
        providers=providers,
    )


def _is_in_process(path: str) -> bool:
    try:
        ctypes.CDLL(path, mode=os.RTLD_NOW | getattr(os, "RTLD_NOLOAD", 0))
    except OSError:
        return False
    return hasattr(os, "RTLD_NOLOAD")


def _found_loaded(path: Path, absolute: str) -> LibraryRecord:
    """A library that was there before: what is registered of it tells whether it was refused."""
    names = tuple(text(plugin.name) for plugin in _plugins() if _is_file(file_of(plugin), absolute))
    if names:
        listed = ", ".join(names)
        return LibraryRecord(str(path), loaded=True, reason=f"loaded before: {listed}")
    return _skipped(
        path,
        "it was loaded before, and no engine plugin of it is registered; another library may have "
        "its names, or it is none of engine plugins. A new process can load it",
    )


def _is_file(found: str | None, absolute: str) -> bool:
    return found is not None and Path(found).exists() and Path(found).samefile(absolute)


def _loader_says(error: OSError) -> str:
    reason = " ".join(str(error).split())
    if "mj" in reason and "undefined symbol" in reason:
        return f"{reason}; link it with the library of the mujoco package"
    return reason


def _registered(plugins: tuple[str, ...], providers: tuple[str, ...], said: Said) -> str:
    parts = []
    if plugins:
        parts.append(f"registered {', '.join(plugins)}")
    if providers:
        parts.append(f"resource providers {', '.join(providers)}")
    if not parts:
        parts.append("no engine plugin is new")
    return "; ".join([*parts, *said.warnings])


def _clashed(
    path: Path, identity: _Identity, said: Said, plugins: tuple[str, ...]
) -> LibraryRecord:
    reason = "; ".join(_clash(message) for message in said.errors)
    if plugins:
        reason += f"; it has registered {', '.join(plugins)}, which cannot be undone"
    _refused[identity] = reason
    return LibraryRecord(str(path), loaded=False, reason=reason, plugins=plugins, name_taken=True)


def _clash(message: str) -> str:
    found = _TAKEN.search(message)
    if found is None:
        return message
    return (
        f"the engine plugin {found[1]!r} has another implementation, of {origin_of(found[1])}, for "
        "the life of the process; rename one of them, or start a new process"
    )


def origin_of(name: str) -> str:
    """Where a registered engine plugin comes from, in words."""
    own = {known.lower(): entry for known, entry in registry.plugins().items()}
    if name.lower() in own:
        return str(own[name.lower()].origin)
    found = engine().get_plugin(name)
    file = file_of(found[1]) if found is not None else None
    return file or "code that no library holds"


# -- what is registered --------------------------------------------------------------------------


def _plugins() -> list[Plugin]:
    found = (engine().plugin_at(slot) for slot in range(engine().plugin_count()))
    return [plugin for plugin in found if plugin is not None]


def _names() -> tuple[list[str], list[str]]:
    """Engine plugins and resource providers, in the order of their slots."""
    slots = range(1, engine().provider_count() + 1)
    providers = (engine().provider_at(slot) for slot in slots)
    return (
        [text(plugin.name) for plugin in _plugins()],
        [text(provider.prefix) for provider in providers if provider is not None],
    )
