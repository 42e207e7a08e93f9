"""Files that a spec refers to, taken into the spec.

Invariants: afterwards every file is an asset in memory, named by its file and a hash of what is in
it; two specs that are put into one world never mean different files by one name. What a resource
provider has (``scheme:name``) stays there.
Failure: ``ModelLoadError`` naming the file that is not there; the spec is changed in part then.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import mujoco

from mjhost.errors import ModelLoadError

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_HASHED: Final = re.compile(r"-[0-9a-f]{12}(?=[._]|$)")


def digest(content: bytes, *more: object) -> str:
    """What is in an asset, and what else makes it another one, in a few letters."""
    return hashlib.sha256(content + b"".join(repr(part).encode() for part in more)).hexdigest()[:12]


def named(stem: str, ending: str, letters: str) -> str:
    """The name of an asset: that of its file, and the ``digest`` of what is in it.

    Args:
        stem: the name of the file without its ending.
        ending: of the file.
        letters: the digest.
    """
    word = re.sub(r"[^A-Za-z0-9]+", "_", without_hash(stem)).strip("_")[:40] or "asset"
    return f"{word}-{letters}.{ending}" if ending else f"{word}-{letters}"


def without_hash(name: str) -> str:
    """The name of an asset as a person would have it; it need not be the only one."""
    return _HASHED.sub("", name)


def embed(spec: mujoco.MjSpec) -> None:
    """Takes every file that a spec refers to into its assets."""
    known = dict(spec.assets)
    taken: dict[str, bytes] = {}
    for reference in references(spec):
        content = _content(reference, known, Path(spec.modelfiledir))
        if content is None:
            continue
        name = reference.file
        if name not in known or not _HASHED.search(name):
            stem, _, ending = Path(name).name.rpartition(".")
            name = named(stem or ending, ending if stem else "", digest(content))
        taken[name] = content
        reference.point_to(name)
    for reference in references(spec):
        reference.forget_folder()
    spec.meshdir = spec.texturedir = ""
    spec.assets = taken


class Reference:
    """One file that an element of a spec names."""

    def __init__(self, element: Any, folder: str, place: int | None = None) -> None:
        self._element, self._folder, self._place = element, folder, place

    @property
    def file(self) -> str:
        """The name as the element has it."""
        if self._place is None:
            return str(self._element.file)
        return str(self._element.cubefiles[self._place])

    @property
    def folder(self) -> str:
        """Where it is looked for, below the folder of the model."""
        return str(getattr(self._element.compiler, self._folder))

    def point_to(self, name: str) -> None:
        """Names another file."""
        if not getattr(self._element, "name", "x"):
            self._element.name = Path(self.file).stem
        if self._place is None:
            self._element.file = name
        else:
            self._element.cubefiles[self._place] = name

    def forget_folder(self) -> None:
        """Names are from now on those of the model's own folder."""
        setattr(self._element.compiler, self._folder, "")


def references(spec: mujoco.MjSpec) -> Iterator[Reference]:
    """The files that a spec names."""
    for texture in spec.textures:
        if texture.file:
            yield Reference(texture, "texturedir")
        for place, file in enumerate(texture.cubefiles):
            if file:
                yield Reference(texture, "texturedir", place)
    for element in (*spec.meshes, *spec.hfields, *spec.skins):
        if element.file:
            yield Reference(element, "meshdir")


def _content(reference: Reference, known: dict[str, bytes], base: Path) -> bytes | None:
    file, folder = reference.file, reference.folder
    for name in (os.path.join(folder, file), file, Path(file).name):  # noqa: PTH118 - a name, no path
        if name in known:
            return bytes(known[name])
    path = base / folder / file
    if not path.is_file():
        if _SCHEME.match(file):
            return None
        raise ModelLoadError(f"{file}: there is no file {path}")
    return path.read_bytes()
