"""Meshes of any usual format, as the engine reads them.

Owns: which formats there are, what is passed on as it is, and what is converted first.
Invariants: nothing of a file is left out without a note. An asset is named by its file and a hash
of what is in it, so that files of one base name, or of one name in several folders, never meet, and
an error of the engine still says which file it is about. Units that a file declares are honoured.
Its axes are taken as they are, as RViz and Gazebo do: descriptions are made to look right there.
Failure: ``ModelLoadError`` naming the file and what is wrong with it.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from mjhost.description import collection, mesh_cache, surfaces, wavefront
from mjhost.description.assets import named
from mjhost.description.mesh_cache import Conversion, Part
from mjhost.description.packages import Packages
from mjhost.description.report import NoteKind, Notes
from mjhost.description.surfaces import Colour, Surface
from mjhost.errors import ModelLoadError

MOST_BYTES: Final = 256 << 20
"""Longest mesh file that is read, bytes."""

_STL_HEADER: Final = 84
_STL_FACE: Final = 50


class PreparedMesh(NamedTuple):
    """A mesh as the engine reads it.

    Attributes:
        name: of the asset, with its ending: that of the file, and a hash of what is in it.
        content: bytes of the file.
        rgba: its colour, if the source had one.
    """

    name: str
    content: bytes
    rgba: Colour | None = None


def prepare(
    content: bytes, filename: str, notes: Notes, beside: Path | None = None
) -> tuple[PreparedMesh, ...]:
    """The parts of a mesh file, one per colour.

    Args:
        content: of the file.
        filename: its name without folders; the ending says what it is.
        notes: takes what is converted, guessed or left out.
        beside: the folder of the file, for materials and buffers that it refers to.

    Raises:
        ModelLoadError: it is no mesh, or of a format that is not read.
    """
    stem, _, ending = filename.rpartition(".")
    ending = ending.lower()
    try:
        _check_size(content)
        if ending not in _WAYS:
            raise ModelLoadError(f"is of a format that is not read; meshes are {', '.join(_WAYS)}")
        found = _WAYS[ending](content, ending, beside)
    except ModelLoadError as error:
        raise ModelLoadError(f"{filename} {error}") from error.__cause__
    for kind, text, hint in found.notes:
        notes.add(kind, filename, text, hint)
    return tuple(_named(part, stem) for part in found.parts)


class Shelf:
    """The meshes of one import: each file is read and made ready once.

    Args:
        packages: finds the files.
        notes: takes what is converted, guessed or left out.
    """

    def __init__(self, packages: Packages, notes: Notes) -> None:
        self._packages = packages
        self._notes = notes
        self._ready: dict[Path, tuple[PreparedMesh, ...]] = {}

    def path(self, file: str) -> Path:
        """Where a file of a description is.

        Raises:
            ModelLoadError: its package is nowhere.
        """
        return self._packages.path(file)

    def parts(self, path: Path, file: str) -> tuple[PreparedMesh, ...]:
        """The parts of a mesh file.

        Raises:
            ModelLoadError: there is no such file, or it is no mesh.
        """
        if path not in self._ready:
            if not path.is_file():
                raise ModelLoadError(f"{file}: there is no file {path}")
            with path.open("rb") as opened:
                content = opened.read(MOST_BYTES + 1)
            self._ready[path] = prepare(content, path.name, self._notes, path.parent)
        return self._ready[path]


def companions(content: bytes, ending: str) -> tuple[str, ...]:
    """The files beside a mesh that are read with it; what is broken has none."""
    if ending == "obj":
        return wavefront.libraries(content)
    try:
        return tuple(_buffers(content)) if ending == "gltf" else ()
    except ModelLoadError:
        return ()


def _check_size(content: bytes) -> None:
    if not content:
        raise ModelLoadError("is empty")
    if len(content) > MOST_BYTES:
        raise ModelLoadError(f"is longer than {MOST_BYTES} bytes")


def _named(part: Part, stem: str) -> PreparedMesh:
    return PreparedMesh(named(stem, part.ending, part.digest), part.content, part.rgba)


# -- STL and MSH -----------------------------------------------------------------------------------


def _stl(content: bytes, ending: str, beside: Path | None) -> Conversion:
    """Binary STL as it is, whatever its header says; ASCII converted."""
    del beside
    faces = struct.unpack_from("<I", content, 80)[0] if len(content) >= _STL_HEADER else -1
    length = _STL_HEADER + _STL_FACE * faces
    if len(content) != length and _is_ascii(content):
        return mesh_cache.converted(content, ending, {}, lambda: _ascii(content))
    if faces == 0:
        raise ModelLoadError("has no triangles")
    if faces < 0 or len(content) < length:
        needs = f": {faces} faces need {length} bytes, it has {len(content)}" if faces > 0 else ""
        raise ModelLoadError(f"is no STL{needs}; it is truncated or of another format")
    found = _binary(content[:length], faces)
    if len(content) == length:
        return found
    text = f"{len(content) - length} bytes after its last face are not read"
    return found.noting(NoteKind.DROPPED, text)


def _is_ascii(content: bytes) -> bool:
    return content[:512].lstrip()[:5].lower() == b"solid" and b"facet" in content.lower()


def _binary(content: bytes, faces: int) -> Conversion:
    record = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("bits", "<u2")])
    corners = np.frombuffer(content, record, faces, _STL_HEADER)["corners"].astype(np.float64)
    surfaces.check_corners(corners)
    surface = surfaces.of_corners(corners)
    if faces > surfaces.MOST_STL_FACES or surfaces.is_flat(surface.vertices):
        return mesh_cache.converted(content, "stl", {}, lambda: _written([surface]))
    return Conversion((Part.of("stl", content),))


_VERTEX: Final = re.compile(rb"vertex\s+(\S+)\s+(\S+)\s+(\S+)", re.IGNORECASE)


def _ascii(content: bytes) -> Conversion:
    try:
        numbers = np.array(_VERTEX.findall(content), dtype=np.float64)
    except ValueError as error:
        raise ModelLoadError(f"has a vertex that is none: {error}") from error
    if not numbers.size or len(numbers) % 3:
        raise ModelLoadError(f"has {len(numbers)} vertices, which are no triangles")
    if b"endsolid" not in content.lower():
        raise ModelLoadError("has no end: it is truncated")
    found = _written([surfaces.of_corners(numbers.reshape(-1, 3, 3))])
    return found.noting(NoteKind.CONVERTED, "ASCII STL to binary")


def _msh(content: bytes, ending: str, beside: Path | None) -> Conversion:
    del beside
    return Conversion((Part.of(ending, content),))


# -- OBJ -------------------------------------------------------------------------------------------


def _obj(content: bytes, ending: str, beside: Path | None) -> Conversion:
    files = {
        name: text for name in wavefront.libraries(content) if (text := _sibling(beside, name))
    }
    return mesh_cache.converted(content, ending, files, lambda: _of_obj(content, files))


def _of_obj(content: bytes, files: Mapping[str, bytes]) -> Conversion:
    known = wavefront.materials(files)
    missing = sorted(set(wavefront.libraries(content)) - set(files))
    surfaces.check_count(wavefront.count_faces(content))
    surfaces.check_corners(wavefront.corners(content))
    read = wavefront.surfaces(content, known.colours)
    whole = [surfaces.compact(surface) for surface in read]
    flat = any(surfaces.is_flat(surface.vertices) for surface in whole)
    if wavefront.is_one_group(content) and len(whole) == 1 and not flat:
        found = Conversion((Part.of("obj", content, whole[0].rgba),))
    else:
        found = _written(whole)
        text = f"all of its groups, in {len(found.parts)} part(s) by colour"
        found = found.noting(NoteKind.CONVERTED, text)
    if missing:
        text = f"materials {', '.join(missing)} are not beside it"
        found = found.noting(NoteKind.DROPPED, text, "its colour is that of the description")
    if known.textured:
        found = found.noting(NoteKind.DROPPED, "has a texture; its plain colour is taken")
    return found


# -- formats that need a reader --------------------------------------------------------------------


def _read(content: bytes, ending: str, beside: Path | None) -> Conversion:
    files = {}
    if ending == "gltf":
        names = _buffers(content)
        files = {name: text for name in names if (text := _sibling(beside, name))}
        missing = [name for name in names if name not in files]
        if missing:
            raise ModelLoadError(f"refers to {', '.join(missing)}, which are not beside it")
    return mesh_cache.converted(content, ending, files, lambda: _of_scene(content, ending, files))


def _of_scene(content: bytes, ending: str, files: Mapping[str, bytes]) -> Conversion:
    scene = collection.read(content, ending, files)
    found = _written(scene.surfaces)
    text = f"{ending} to {found.parts[0].ending}, {len(found.parts)} part(s) by colour"
    found = found.noting(NoteKind.CONVERTED, text)
    for note in scene.notes:
        found = found.noting(*note)
    return found


def _buffers(content: bytes) -> list[str]:
    """The files that a glTF document keeps its numbers in."""
    try:
        buffers = json.loads(content).get("buffers", [])
        uris = [str(buffer.get("uri", "data:")) for buffer in buffers]
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise ModelLoadError("is no glTF document") from error
    return [uri for uri in uris if not uri.startswith("data:")]


def _sibling(beside: Path | None, name: str) -> bytes | None:
    """A file in the folder of the mesh, or below it; nothing of anywhere else."""
    if beside is None or not name or "\0" in name:
        return None
    folder = beside.resolve()
    path = (folder / name).resolve()
    if not path.is_relative_to(folder) or not path.is_file() or path.stat().st_size > MOST_BYTES:
        return None
    return path.read_bytes()


def _written(found: list[Surface]) -> Conversion:
    """Surfaces as files, one per colour."""
    parts, made = [], Conversion(())
    surfaces.check_count(sum(len(surface.faces) for surface in found))
    for surface in surfaces.merged(found):
        part = surfaces.compact(surface)
        surfaces.check_corners(part.vertices)
        if surfaces.is_flat(part.vertices):
            part, depth = surfaces.thickened(part)
            text = f"is flat; given a back side {depth:.3g} behind it"
            made = made.noting(NoteKind.DEFAULTED, text, "where it collides, a box is better")
        parts.append(Part.of(*surfaces.encoded(part), part.rgba))
    return Conversion(tuple(parts), made.notes)


_WAYS: Final[Mapping[str, Any]] = {
    "stl": _stl,
    "obj": _obj,
    "msh": _msh,
    **dict.fromkeys(collection.ENDINGS, _read),
}
