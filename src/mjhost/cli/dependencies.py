"""The files that a model is made of, as far as reading it tells.

Invariants: the list may be too long, never too short: a reference is looked for in every directory
that the engine could mean, and one that is found nowhere is listed in all of them, so that its
coming is noticed. A file that is broken or half written still gives what can be read of it. The
engine's own list (``mju_getXMLDependencies``) is none of this: it gives nothing for a broken file,
looks for height fields beside the model whatever ``meshdir`` says, and on 3.15 for the meshes of an
include as well.
Threads: pure functions over the file system.
Failure: what cannot be read has no references.
Not a goal: files that engine plugins open on their own; what an archive (mjz) holds, which is one
file; a file whose whole name a xacro expression makes.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from mjhost.description.meshes import companions
from mjhost.description.packages import Packages
from mjhost.errors import ModelLoadError

_REFERENCE: Final = re.compile(
    r"""\b(?P<key>file\w*|meshdir|texturedir|assetdir)\s*=\s*(?P<quote>["'])(?P<value>.+?)(?P=quote)"""
)
_READ: Final = (".xml", ".urdf", ".xacro", ".obj", ".gltf")
_FIND: Final = re.compile(r"\$\(\s*find\s+([^)\s]+)\s*\)")
_EXPRESSION: Final = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)")
_LITERAL: Final = 3  # characters that a name with expressions has to have of its own
_SIZE_LIMIT: Final = 1 << 26  # bytes; what is larger is watched, but not searched
_FILE_LIMIT: Final = 2_000  # XML files of one model


class _Text(NamedTuple):
    """What one XML file refers to."""

    files: tuple[str, ...]
    directories: tuple[str, ...]


def model_files(model: Path) -> frozenset[Path]:
    """The model file, its includes, and its meshes, textures, height fields and attached models."""
    texts: dict[Path, _Text] = {}
    todo = [model]
    while todo and len(texts) < _FILE_LIMIT:
        path = todo.pop()
        if path not in texts and path.suffix.lower() in _READ:
            texts[path] = _read(path)
            todo += _referred(texts, model.parent)
    return frozenset([model, *texts, *_referred(texts, model.parent)])


def _read(path: Path) -> _Text:
    try:
        if path.stat().st_size > _SIZE_LIMIT:
            return _Text((), ())
        content = path.read_bytes()
    except OSError:
        return _Text((), ())
    if path.suffix.lower() in (".obj", ".gltf"):
        return _Text(companions(content, path.suffix.lower()[1:]), ())
    found = list(_REFERENCE.finditer(content.decode("utf-8", "replace")))
    pairs = [(match["key"], html.unescape(match["value"])) for match in found]
    return _Text(
        tuple(value for key, value in pairs if key.startswith("file") and "\0" not in value),
        tuple(value for key, value in pairs if key.endswith("dir") and "\0" not in value),
    )


def _referred(texts: dict[Path, _Text], root: Path) -> Iterator[Path]:
    """Where the references of all files may lead; a compiler element counts for every file."""
    directories = {root}
    for path, text in list(texts.items()):
        directories.add(path.parent)
        for name in text.directories:
            directories |= {root / name, path.parent / name}
    packages = Packages(beside=root)
    for text in list(texts.values()):
        for name in text.files:
            yield from _candidates(_FIND.sub(r"package://\1", name), directories, packages)


def _candidates(name: str, directories: set[Path], packages: Packages) -> list[Path]:
    if "://" in name:
        try:
            return _existing(packages.path(name))
        except ModelLoadError:
            return []
    if _EXPRESSION.search(name):
        return [path for folder in directories for path in _existing(folder / name)]
    # The bare name is for `strippath`.
    possible = [folder / part for folder in directories for part in {name, Path(name).name}]
    found = [path for path in possible if path.is_file()]
    return found or [folder / name for folder in directories]


def _existing(path: Path) -> list[Path]:
    """The file, or those that the name can mean for any values of the expressions in it."""
    pattern = _EXPRESSION.sub("*", path.name)
    if pattern == path.name:
        return [path]
    if len(pattern.replace("*", "")) < _LITERAL or _EXPRESSION.search(str(path.parent)):
        return []
    return sorted(path.parent.glob(pattern))[:_FILE_LIMIT]
