"""The inputs of the cases: copied models, and meshes made on the spot."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

DATA = Path(__file__).parent / "data"

_CORNERS = ((0.0, 0.0, 0.0), (0.1, 0.0, 0.0), (0.0, 0.1, 0.0), (0.0, 0.0, 0.1))
_FACES = ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))


def case_file(case: str, name: str = "model.xml") -> Path:
    """An input of a case."""
    return DATA / case / name


def tetrahedron_stl() -> bytes:
    """A binary STL of four faces; the normals are left to the compiler."""
    content = bytes(80) + struct.pack("<I", len(_FACES))
    for face in _FACES:
        corners = b"".join(struct.pack("<3f", *_CORNERS[index]) for index in face)
        content += bytes(12) + corners + bytes(2)
    return content


def copied_case(case: str, folder: Path) -> Path:
    """The inputs of a case and ``part.stl`` in ``folder``."""
    for file in (DATA / case).iterdir():
        shutil.copy(file, folder)
    (folder / "part.stl").write_bytes(tetrahedron_stl())
    return folder
