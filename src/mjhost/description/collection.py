"""Mesh files that need a reader of their own: Collada, glTF, PLY, 3MF, OFF.

Owns: the only imports of ``trimesh``, which reads them, and what is refused before it does.
Invariants: transforms of the file's own scene are applied, and its unit, so that what comes out is
in metres. An XML document with a type declaration, or an archive that unfolds to too much, is not
opened.
Failure: ``ModelLoadError`` saying what is wrong; the caller names the file.
"""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from mjhost.description.report import NoteKind
from mjhost.description.surfaces import Colour, Surface
from mjhost.errors import ModelLoadError

ENDINGS: Final = ("dae", "glb", "gltf", "ply", "3mf", "off")

_MOST_UNPACKED: Final = 1 << 30  # bytes of an archive
_HEAD: Final = 65536  # bytes of a Collada document that begin with what it says of itself
_UNIT: Final = re.compile(rb"""<unit\b[^>]*\bmeter\s*=\s*("[^"]*"|'[^']*')""")
_UP: Final = re.compile(rb"<up_axis>\s*([XYZ])_UP\s*</up_axis>")
_UPRIGHT: Final = "if it lies on its side, turn it with the origin of the shape"


class Scene(NamedTuple):
    """What is in a file, and what there is to say about it: kind, text, hint."""

    surfaces: list[Surface]
    notes: list[tuple[NoteKind, str, str]]


def read(content: bytes, ending: str, files: Mapping[str, bytes]) -> Scene:
    """Everything in a file that has triangles, in metres.

    Args:
        content: of the file.
        ending: one of ``ENDINGS``.
        files: what it refers to, by name.
    """
    _check_harmless(content, ending)
    notes = list(_axis_notes(content, ending))
    scene = _loaded(content, ending, files, notes)
    meshes = [mesh for mesh in scene.dump() if _has_faces(mesh)]
    if not meshes:
        raise ModelLoadError("has no triangles")
    if any(_has_texture(mesh) for mesh in meshes):
        notes.append((NoteKind.DROPPED, "has a texture; its plain colour is taken", ""))
    if any(_has_many_colours(mesh) for mesh in meshes):
        notes.append((NoteKind.DROPPED, "has a colour per corner; none is taken", ""))
    factors = {_metres(mesh) for mesh in meshes} - {1.0}
    if factors:
        told = ", ".join(f"{factor:g} m" for factor in sorted(factors))
        notes.append((NoteKind.CONVERTED, f"its unit is {told}", ""))
    return Scene([_surface(mesh) for mesh in meshes], notes)


def _check_harmless(content: bytes, ending: str) -> None:
    if ending == "dae":
        _check_collada(content)
    if ending != "3mf":
        return
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise ModelLoadError("is no archive") from error
    if unpacked > _MOST_UNPACKED:
        raise ModelLoadError(f"unfolds to {unpacked} bytes, more than {_MOST_UNPACKED}")


def _check_collada(content: bytes) -> None:
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise ModelLoadError("has a document type declaration, which is not read")
    for quoted in _UNIT.findall(content[:_HEAD]):
        try:
            float(quoted[1:-1])
        except ValueError as error:
            told = quoted.decode("utf-8", "replace")
            raise ModelLoadError(f"has a unit that is none: meter={told}") from error


def _axis_notes(content: bytes, ending: str) -> Iterator[tuple[NoteKind, str, str]]:
    found = _UP.search(content[:_HEAD]) if ending == "dae" else None
    axis = found[1].decode() if found else "Z"
    if ending in ("glb", "gltf"):
        axis = "Y"
    if axis != "Z":
        text = f"says that {axis} is up; taken as it is, as RViz and Gazebo do"
        yield NoteKind.DEFAULTED, text, _UPRIGHT


def _loaded(
    content: bytes, ending: str, files: Mapping[str, bytes], notes: list[tuple[NoteKind, str, str]]
) -> Any:
    trimesh = _reader(ending)
    how: dict[str, Any] = {"file_type": ending, "resolver": _resolver(trimesh, files)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the readers, about what they pass over
            try:
                strict = {"ignore_broken": False} if ending == "dae" else {}
                return trimesh.load_scene(io.BytesIO(content), process=False, **how, **strict)
            except Exception as error:
                if ending != "dae":
                    raise
                scene = trimesh.load_scene(io.BytesIO(content), process=False, **how)
                text = f"is broken in parts, which are left out: {_told(error)}"
                notes.append((NoteKind.DROPPED, text, "write it anew with its editor"))
                return scene
    except Exception as error:
        raise ModelLoadError(f"cannot be read: {_told(error)}") from error


def _reader(ending: str) -> Any:
    try:
        import trimesh

        if ending == "dae":
            import collada  # noqa: F401 - the reader would only say that it cannot
    except ImportError as error:
        raise ModelLoadError(
            f"needs the extra description to be read: pip install 'mjhost[description]' ({error})"
        ) from error
    return trimesh


def _resolver(trimesh: Any, files: Mapping[str, bytes]) -> Any:
    """Finds what a file refers to among what was read; nothing else."""

    class Given(trimesh.resolvers.Resolver):  # type: ignore[misc]
        def __init__(self) -> None:
            pass

        def get(self, key: str) -> bytes:
            return files[key]

        def keys(self) -> list[str]:
            return list(files)

        def write(self, name: str, data: Any) -> None:
            raise NotImplementedError(name)

        def namespaced(self, namespace: str) -> Any:
            raise NotImplementedError(namespace)

    return Given()


def _told(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


def _has_faces(mesh: Any) -> bool:
    return hasattr(mesh, "faces") and len(mesh.faces) > 0


def _metres(mesh: Any) -> float:
    """Metres per unit; formats without a unit are in metres."""
    if mesh.units is None:
        return 1.0
    from trimesh.units import unit_conversion

    try:
        factor = float(unit_conversion(mesh.units, "meters"))
    except (KeyError, ValueError) as error:
        raise ModelLoadError(f"has a unit that is not known: {mesh.units}") from error
    if not (np.isfinite(factor) and factor > 0):
        raise ModelLoadError(f"has a unit that is none: {mesh.units}")
    return factor


def _surface(mesh: Any) -> Surface:
    vertices = np.asarray(mesh.vertices, np.float64) * _metres(mesh)
    return Surface(vertices, np.asarray(mesh.faces, np.int64), _colour(mesh))


def _has_texture(mesh: Any) -> bool:
    material = getattr(mesh.visual, "material", None)
    images = (getattr(material, name, None) for name in ("image", "baseColorTexture"))
    return any(image is not None for image in images)


def _has_many_colours(mesh: Any) -> bool:
    return mesh.visual.kind in ("vertex", "face") and _colour(mesh) is None


def _colour(mesh: Any) -> Colour | None:
    """The one colour of a mesh; ``None`` if it has none, or many."""
    visual = mesh.visual
    if not visual.defined:
        return None
    if visual.kind in ("vertex", "face"):
        colours = np.unique(np.asarray(getattr(visual, f"{visual.kind}_colors")), axis=0)
        rgba = colours[0] if len(colours) == 1 else None
    else:
        rgba = getattr(getattr(visual, "material", None), "main_color", None)
    if rgba is None or np.shape(rgba) != (4,):
        return None
    red, green, blue, alpha = (round(float(value) / 255.0, 4) for value in rgba)
    return red, green, blue, alpha
