"""Converted meshes on disk, so that a file is converted once and not by every process.

Owns: a folder under the user's cache directory, one file per converted mesh.
Invariants: the key is a hash of the file, of the files it refers to, of its kind and of the
converter with the versions of the readers; the name and place of a file do not matter. The folder
is bounded, the entries that were not used for longest go first.
Threads: any.
Failure: as `mjhost.diskcache`: none is visible. Errors of a conversion are not kept.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from mjhost import diskcache
from mjhost.description.assets import digest
from mjhost.description.report import NoteKind
from mjhost.description.surfaces import Colour

CONVERTER: Final = 1
"""To be raised with every change of what a conversion gives."""

MOST_ENTRIES: Final = 4096
MOST_BYTES: Final = 1 << 30
"""Bound of the folder, bytes."""

_MAGIC: Final = "mjhost meshes"
_READERS: Final = ("trimesh", "pycollada", "numpy")


class Part(NamedTuple):
    """A file for the engine.

    Attributes:
        ending: what kind of file it is.
        content: of the file.
        rgba: its colour, if the source had one.
        digest: of content and colour.
    """

    ending: str
    content: bytes
    rgba: Colour | None
    digest: str

    @classmethod
    def of(cls, ending: str, content: bytes, rgba: Colour | None = None) -> Part:
        """A part with its digest."""
        # The colour too: it becomes a material, which is named after the mesh.
        return cls(ending, content, rgba, digest(content, rgba))


class Conversion(NamedTuple):
    """What became of a mesh file; notes are kind, text and hint."""

    parts: tuple[Part, ...]
    notes: tuple[tuple[NoteKind, str, str], ...] = ()

    def noting(self, kind: NoteKind, text: str, hint: str = "") -> Conversion:
        """The same with one more note."""
        return self._replace(notes=(*self.notes, (kind, text, hint)))


def converted(
    content: bytes, ending: str, files: Mapping[str, bytes], convert: Callable[[], Conversion]
) -> Conversion:
    """The conversion of a file, from disk if it was made before.

    Args:
        content: of the file.
        ending: what kind of file it is.
        files: what it refers to.
        convert: makes it anew.
    """
    key = _key(content, ending, files)
    found = _recalled(key, content)
    if found is None:
        found = convert()
        _keep(key, found, content)
    return found


def folder() -> Path | None:
    """Where the entries are; ``None`` if there is no place of the user's own."""
    root = diskcache.user_folder()
    return None if root is None else root / "meshes"


def _key(content: bytes, ending: str, files: Mapping[str, bytes]) -> str:
    words = [str(CONVERTER), _readers(), ending]
    for name, text in files.items():
        words += [name, hashlib.sha256(text).hexdigest()]
    words.append(hashlib.sha256(content).hexdigest())
    return hashlib.sha256("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest()


@functools.cache
def _readers() -> str:
    """The versions of what reads meshes, without importing it."""
    found = []
    for name in _READERS:
        try:
            found.append(importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            found.append("none")
    return " ".join(found)


def _recalled(key: str, source: bytes) -> Conversion | None:
    place = folder()
    found = diskcache.read(place, key, {"magic": _MAGIC})
    if found is None or place is None:
        return None
    try:
        made = _unpacked(*found, source)
    except (KeyError, TypeError, ValueError):
        return None
    diskcache.touch(place, key)
    return made


def _keep(key: str, made: Conversion, source: bytes) -> None:
    # A part that is the source itself is not stored a second time.
    stored = [part for part in made.parts if part.content is not source]
    head = {
        "magic": _MAGIC,
        "parts": [_described(part, source) for part in made.parts],
        "notes": made.notes,
    }
    content = b"".join(part.content for part in stored)
    place = folder()
    if place is None or len(content) > MOST_BYTES // 4:
        return
    if diskcache.write(place, key, head, content):
        diskcache.thin_out(place, most=MOST_ENTRIES, most_bytes=MOST_BYTES)


def _described(part: Part, source: bytes) -> list[Any]:
    length = -1 if part.content is source else len(part.content)
    return [part.ending, length, part.rgba, part.digest]


def _unpacked(head: Any, content: bytes, source: bytes) -> Conversion:
    parts, start = [], 0
    for ending, length, rgba, letters in head["parts"]:
        colour = None if rgba is None else (rgba[0], rgba[1], rgba[2], rgba[3])
        part = source if length < 0 else content[start : start + length]
        parts.append(Part(ending, part, colour, letters))
        start += max(0, length)
    if start != len(content):
        raise ValueError("an entry has more in it than it says")
    notes = tuple((NoteKind(kind), str(text), str(hint)) for kind, text, hint in head["notes"])
    return Conversion(tuple(parts), notes)
