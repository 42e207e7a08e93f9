"""Resource provider ``package:``, files of ROS packages.

``package://arm_description/meshes/link.stl`` is ``meshes/link.stl`` in the package
``arm_description``. A package is looked for, in this order, among the directories given to ``add``,
in the directories given to ``add_root``, as ``share/NAME`` under each of ``AMENT_PREFIX_PATH``, and
below each of ``ROS_PACKAGE_PATH``, where the directory of a package is the one with a
``package.xml``.

Owns: the directories that were added, and where packages were found.
Invariants: a name cannot climb out of its package. Symbolic links in a package are followed, as
workspaces that are installed by links need it. What the environment says is read at each open;
a package that moved is looked for again.
Threads: any.
Failure: ``FileNotFoundError`` that says where was looked.
Not a goal: ROS itself; nothing of it is imported.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from mjhost.engine.providers import resource_provider
from mjhost.errors import InvalidArgumentError, did_you_mean

DEPTH: Final = 6
"""How deep packages are looked for below a root."""

_REMEMBERED: Final = 1024
_VISITED: Final = 20_000  # directories per search
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MANIFEST: Final = "package.xml"
_MANIFEST_LIMIT: Final = 1 << 20

_added: Final[dict[str, Path]] = {}
_roots: Final[list[Path]] = []
_found: Final[dict[tuple[str, str], Path]] = {}  # package and search path → directory
_lock: Final = threading.Lock()


def add(name: str, directory: str | os.PathLike[str]) -> None:
    """Says where a package is, before and instead of looking for it."""
    if not _NAME.fullmatch(name):
        raise InvalidArgumentError(f"{name!r} is no name of a package")
    path = _directory(directory)
    with _lock:
        _added[name] = path


def add_root(directory: str | os.PathLike[str]) -> None:
    """Adds a directory below which packages are looked for."""
    path = _directory(directory)
    with _lock:
        if path not in _roots:
            _roots.append(path)


def clear() -> None:
    """Forgets what was added and found."""
    with _lock:
        _added.clear()
        _roots.clear()
        _found.clear()


def _directory(directory: str | os.PathLike[str]) -> Path:
    path = Path(directory).absolute()
    if not path.is_dir():
        raise InvalidArgumentError(f"{path} is no directory")
    return path


@resource_provider("package")
def open_file(uri: str) -> bytes:
    """The bytes of a file in a package."""
    return resolve(uri).read_bytes()


def resolve(uri: str) -> Path:
    """The file that a ``package://`` name means.

    Raises:
        ValueError: it is no such name, or leads out of the package.
        FileNotFoundError: there is no such package, or no such file in it.
    """
    name, _, inner = uri.partition(":")[2].lstrip("/").partition("/")
    if not _NAME.fullmatch(name) or not inner:
        raise ValueError("a name is package://PACKAGE/PATH")
    parts = inner.split("/")
    if ".." in parts or "\0" in inner:
        raise ValueError("a name cannot lead out of its package")
    path = _package(name).joinpath(*(part for part in parts if part))
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist, or is no regular file{_beside(path)}")
    return path


def _beside(path: Path) -> str:
    if not path.parent.is_dir():
        return ""
    return f"; {did_you_mean(path.name, (entry.name for entry in path.parent.iterdir()))}"


# -- looking for packages ------------------------------------------------------------------------


def _package(name: str) -> Path:
    with _lock:
        added, roots = _added.get(name), tuple(_roots)
    if added is not None:
        return added
    prefixes, paths = _listed("AMENT_PREFIX_PATH"), _listed("ROS_PACKAGE_PATH")
    key = (name, repr((roots, prefixes, paths)))
    known = _found.get(key)
    if known is not None and (known / _MANIFEST).is_file():
        return known
    for directory in _candidates(name, roots, prefixes, paths):
        with _lock:
            if len(_found) >= _REMEMBERED:
                _found.clear()
            _found[key] = directory
        return directory
    raise FileNotFoundError(
        f"no package {name!r} among {sorted(_added)}, below {[str(root) for root in roots]}, in "
        f"AMENT_PREFIX_PATH={os.environ.get('AMENT_PREFIX_PATH', '')!r} or "
        f"ROS_PACKAGE_PATH={os.environ.get('ROS_PACKAGE_PATH', '')!r}; "
        "mjhost.engine.builtin.package.add says where it is"
    )


def _listed(variable: str) -> tuple[Path, ...]:
    return tuple(Path(part) for part in os.environ.get(variable, "").split(os.pathsep) if part)


def _candidates(
    name: str, roots: tuple[Path, ...], prefixes: tuple[Path, ...], paths: tuple[Path, ...]
) -> Iterator[Path]:
    for root in roots:
        yield from _below(root, name)
    for prefix in prefixes:
        if (prefix / "share" / name).is_dir():
            yield prefix / "share" / name
    for path in paths:
        yield from _below(path, name)


def _below(root: Path, name: str) -> Iterator[Path]:
    """Directories of packages called ``name``, the nearest first."""
    level, visited = [root], 0
    for _ in range(DEPTH + 1):
        following = []
        for directory in level:
            visited += 1
            if visited > _VISITED:
                return
            if (directory / _MANIFEST).is_file():
                if _is_called(directory, name):
                    yield directory
                continue  # packages contain no packages
            following += _subdirectories(directory)
        level = following


def _subdirectories(directory: Path) -> list[Path]:
    try:
        entries = sorted(directory.iterdir())
    except OSError:
        return []
    return [entry for entry in entries if not entry.name.startswith(".") and entry.is_dir()]


def _is_called(directory: Path, name: str) -> bool:
    manifest = directory / _MANIFEST
    try:
        if manifest.stat().st_size > _MANIFEST_LIMIT:
            return False
        found = ET.fromstring(manifest.read_bytes()).findtext("name")  # noqa: S314
    except (OSError, ET.ParseError):
        return directory.name == name
    return (found or "").strip() == name
