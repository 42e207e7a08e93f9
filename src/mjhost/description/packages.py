"""Where files of a description are: ``package://`` without ROS, ``file://`` and plain paths.

Owns: the order in which packages are looked for.
Invariants: what a ``package://`` name means lies inside of the package: no ``..`` leads out of it.
Nothing is looked for anywhere else than where the error says.
Failure: ``ModelLoadError`` naming the package, the whole name, and where was looked.

A package is looked for in this order: what the caller gave; the folders above the description, and
what lies in them; ``ROS_PACKAGE_PATH``; ``AMENT_PREFIX_PATH``.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import unquote, urlsplit

from mjhost.errors import InvalidArgumentError, ModelLoadError

PackageMap: TypeAlias = Mapping[str, str | os.PathLike[str]]

_HIGHEST: Final = 12  # folders above a description that are looked into
_NAME: Final = re.compile(r"<name>\s*([^<\s]+)\s*</name>")
_MOST_BYTES: Final = 1 << 20  # of a package.xml


class Packages:
    """Finds the files that a description names.

    Args:
        given: folders of packages by name.
        beside: the folder of the description, or ``None`` for one that has none.
    """

    def __init__(self, given: PackageMap | None = None, beside: Path | None = None) -> None:
        self._given = {} if given is None else _checked(given)
        self._beside = beside
        self._found: dict[str, Path] = dict(self._given)

    def path(self, name: str) -> Path:
        """Where the file ``name`` is, or would be.

        Raises:
            ModelLoadError: its package is nowhere, or it leads out of it.
        """
        scheme, _, rest = name.strip().partition("://")
        if "://" not in name:
            path = Path(name)
            if path.is_absolute() or self._beside is None:
                return path
            return self._beside / path
        if scheme in ("package", "model"):
            package, _, inside = unquote(rest).partition("/")
            if package in ("", ".", ".."):
                raise ModelLoadError(f"{name} names no package: it is package://NAME/FILE")
            inside = posixpath.normpath(inside)
            if inside.startswith(("..", "/")):
                raise ModelLoadError(f"{name} leads out of its package")
            return self.directory(package, name) / inside
        if scheme == "file":
            return Path(unquote(urlsplit(name).path))
        raise ModelLoadError(f"{name}: files are named by package://, file:// or a path")

    def directory(self, package: str, asked: str) -> Path:
        """The folder of a package.

        Raises:
            ModelLoadError: it is nowhere; ``asked`` is what needed it.
        """
        known = self._found.get(package)
        if known is not None:
            return known
        looked: list[str] = []
        for folder in self._candidates(package, looked):
            if folder.is_dir() and _is_called(folder, package):
                self._found[package] = folder
                return folder
        raise ModelLoadError(
            f"{asked}: there is no package {package!r}; looked in {', '.join(looked)}: give "
            f"packages={{{package!r}: folder}}, --package {package}=FOLDER, or set ROS_PACKAGE_PATH"
        )

    def _candidates(self, package: str, looked: list[str]) -> Iterator[Path]:
        if self._beside is not None:
            above = [self._beside, *self._beside.parents][:_HIGHEST]
            looked.append(f"the folders above {self._beside}")
            for folder in above:
                if folder.name == package or (folder / "package.xml").is_file():
                    yield folder
                yield folder / package
        for variable, inside in (("ROS_PACKAGE_PATH", ""), ("AMENT_PREFIX_PATH", "share")):
            entries = [e for e in os.environ.get(variable, "").split(os.pathsep) if e]
            looked.append(variable if entries else f"{variable} (not set)")
            for entry in map(Path, entries):
                if not inside:
                    yield entry
                yield entry / inside / package


def _checked(given: PackageMap) -> dict[str, Path]:
    if not isinstance(given, Mapping):
        raise InvalidArgumentError(f"packages maps names to folders, got {type(given).__name__}")
    folders = {name: Path(folder).expanduser() for name, folder in given.items()}
    for name, folder in folders.items():
        if not folder.is_dir():
            raise InvalidArgumentError(f"the folder of package {name!r} is not there: {folder}")
    return folders


def _is_called(folder: Path, package: str) -> bool:
    """Whether a folder is that package: by its name, or by its package.xml."""
    if folder.name == package:
        return True
    try:
        with (folder / "package.xml").open("rb") as file:
            text = file.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return False
    found = _NAME.search(text)
    return found is not None and found[1] == package
