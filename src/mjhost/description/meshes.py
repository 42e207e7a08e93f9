"""Meshes of any usual format, as the engine reads them.

Owns: which formats there are, and their conversion in memory.
Invariants: an asset is named by a hash of its contents, so that files of one base name, or of one
name in several folders, never meet. Units and axes that a file declares are honoured.
Failure: ``ModelLoadError`` naming the file and what is wrong with it.
"""

from __future__ import annotations

import hashlib
import io
import re
import struct
from typing import Any, Final, NamedTuple

import numpy as np

from mjhost.description.report import NoteKind, Notes
from mjhost.errors import ModelLoadError

MOST_BYTES: Final = 256 << 20
"""Longest mesh file that is read, bytes."""

_STL_HEADER: Final = 84
_STL_FACE: Final = 50
_MOST_STL_FACES: Final = 200_000  # the engine's own bound for this format
_CONVERTED: Final = ("dae", "glb", "gltf", "ply", "3mf", "off")
_UNIT: Final = re.compile(rb'<unit\b[^>]*\bmeter\s*=\s*"([^"]+)"')


class PreparedMesh(NamedTuple):
    """A mesh as the engine reads it.

    Attributes:
        name: of the asset, with its ending: a hash of what is in it.
        content: bytes of the file.
        rgba: its colour, if the source had one.
    """

    name: str
    content: bytes
    rgba: tuple[float, float, float, float] | None = None


def prepare(content: bytes, filename: str, notes: Notes) -> tuple[PreparedMesh, ...]:
    """The parts of a mesh file, one per colour.

    Raises:
        ModelLoadError: it is no mesh, or of a format that is not read.
    """
    if not content:
        raise ModelLoadError(f"{filename} is empty")
    if len(content) > MOST_BYTES:
        raise ModelLoadError(f"{filename} is longer than {MOST_BYTES} bytes")
    ending = filename.rpartition(".")[2].lower()
    if ending == "stl":
        return (_named(_stl(content, filename, notes), "stl"),)
    if ending in ("obj", "msh"):
        return (_named(content, ending),)
    if ending in _CONVERTED:
        return _converted(content, filename, ending, notes)
    raise ModelLoadError(
        f"{filename} is of a format that is not read; meshes are stl, obj, msh, "
        f"{', '.join(_CONVERTED)}"
    )


def _named(content: bytes, ending: str, rgba: Any = None) -> PreparedMesh:
    return PreparedMesh(f"{hashlib.sha256(content).hexdigest()[:16]}.{ending}", content, rgba)


# -- STL -------------------------------------------------------------------------------------------


def _stl(content: bytes, filename: str, notes: Notes) -> bytes:
    """Binary STL: as it is, or of ASCII."""
    faces = struct.unpack_from("<I", content, 80)[0] if len(content) >= _STL_HEADER else -1
    if len(content) == _STL_HEADER + _STL_FACE * faces:  # whatever the header says
        if faces > _MOST_STL_FACES:
            raise ModelLoadError(
                f"{filename} has {faces} faces; the engine reads at most {_MOST_STL_FACES}: "
                "simplify it"
            )
        return content
    if content.lstrip()[:5].lower() == b"solid" and b"facet" in content:
        notes.add(NoteKind.CONVERTED, filename, "ASCII STL to binary")
        return _binary_stl(_ascii_faces(content, filename))
    expected = _STL_HEADER + _STL_FACE * max(0, faces)
    raise ModelLoadError(
        f"{filename} is no STL: {faces} faces need {expected} bytes, it has {len(content)}; it is "
        "truncated or of another format"
    )


_VERTEX: Final = re.compile(rb"vertex\s+(\S+)\s+(\S+)\s+(\S+)", re.IGNORECASE)


def _ascii_faces(content: bytes, filename: str) -> Any:
    try:
        numbers = np.array(_VERTEX.findall(content), dtype=np.float64)
    except ValueError as error:
        raise ModelLoadError(f"{filename} has a vertex that is none: {error}") from error
    if not numbers.size or len(numbers) % 3:
        raise ModelLoadError(f"{filename} has {len(numbers)} vertices, which are no triangles")
    return numbers.reshape(-1, 3, 3)


def _binary_stl(faces: Any) -> bytes:
    record = np.zeros(
        len(faces), dtype=[("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("bits", "<u2")]
    )
    record["corners"] = faces
    return bytes(80) + struct.pack("<I", len(faces)) + record.tobytes()


# -- the rest --------------------------------------------------------------------------------------


def _converted(
    content: bytes, filename: str, ending: str, notes: Notes
) -> tuple[PreparedMesh, ...]:
    try:
        import trimesh
    except ImportError as error:
        raise ModelLoadError(
            f"{filename}: reading .{ending} needs the extra description: "
            "pip install 'mjhost[description]'"
        ) from error
    try:
        scene = trimesh.load_scene(io.BytesIO(content), file_type=ending)
        parts = [
            _part(mesh, _scale(content, ending), filename)
            for mesh in scene.dump()
            if isinstance(mesh, trimesh.Trimesh) and len(mesh.faces)
        ]
    except ModelLoadError:
        raise
    except Exception as error:
        told = str(error) or type(error).__name__
        raise ModelLoadError(f"{filename} cannot be read: {told}") from error
    if not parts:
        raise ModelLoadError(f"{filename} has no triangles")
    notes.add(NoteKind.CONVERTED, filename, f"{ending} to STL, {len(parts)} part(s)")
    return tuple(parts)


def _scale(content: bytes, ending: str) -> float:
    """Metres per unit that a file declares; only Collada does, and the reader leaves it to us."""
    found = _UNIT.search(content[:65536]) if ending == "dae" else None
    return float(found[1]) if found else 1.0


def _part(mesh: Any, scale: float, filename: str) -> PreparedMesh:
    corners = np.asarray(mesh.triangles, np.float64) * scale
    if not np.isfinite(corners).all():
        raise ModelLoadError(f"{filename} has vertices that are not finite")
    if len(corners) > _MOST_STL_FACES:
        return _named(_obj(mesh, scale), "obj", _colour(mesh))
    return _named(_binary_stl(corners), "stl", _colour(mesh))


def _obj(mesh: Any, scale: float) -> bytes:
    """For more faces than the engine takes of an STL."""
    vertices = np.asarray(mesh.vertices, np.float64) * scale
    lines = [f"v {x:.9g} {y:.9g} {z:.9g}" for x, y, z in vertices.tolist()]
    lines += [f"f {a} {b} {c}" for a, b, c in (np.asarray(mesh.faces) + 1).tolist()]
    return "\n".join(lines).encode()


def _colour(mesh: Any) -> tuple[float, float, float, float] | None:
    try:
        rgba = np.asarray(mesh.visual.material.main_color, float) / 255.0
    except Exception:  # noqa: BLE001 - a colour is a nicety
        return None
    if rgba.shape != (4,):
        return None
    red, green, blue, alpha = (round(float(value), 6) for value in rgba)
    return red, green, blue, alpha
