"""Descriptions written as MJCF that plain MuJoCo loads.

Invariants: a folder is written beside its place and renamed: it is there wholly or not at all. What
was written has been compiled from where it lies before it gets its name.
Failure: ``ModelLoadError`` if it does not compile from there; ``OSError``; nothing is left behind.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import mujoco

from mjhost.errors import InvalidArgumentError, ModelLoadError

ASSETS = "assets"


def write(
    spec: mujoco.MjSpec, folder: str | os.PathLike[str], name: str, *, replace: bool = False
) -> Path:
    """Writes ``folder/name.xml`` and what it refers to; returns its path.

    Args:
        spec: what to write.
        folder: a new or empty folder.
        name: of the file, without its ending.
        replace: write over a folder that is there.

    Raises:
        InvalidArgumentError: the folder has something in it.
        ModelLoadError: the spec does not compile.
    """
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise InvalidArgumentError(f"{place} is there and is no folder")
    if place.is_dir() and any(place.iterdir()) and not replace:
        raise InvalidArgumentError(f"{place} has something in it; name a new folder, or --force")
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        file = beside / f"{name}.xml"
        _fill(spec, beside, file)
        beside.chmod(0o755)
        if place.is_dir():
            shutil.rmtree(place)
        beside.rename(place)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    return place / file.name


def _fill(spec: mujoco.MjSpec, folder: Path, file: Path) -> None:
    written = spec.copy()
    assets = dict(spec.assets)
    if assets:
        (folder / ASSETS).mkdir()
        for name, content in assets.items():
            (folder / ASSETS / Path(name).name).write_bytes(content)
        written.assets = assets
    written.meshdir = written.texturedir = ASSETS
    if assets:
        written.assets = {f"{ASSETS}/{name}": content for name, content in assets.items()} | assets
    try:
        written.compile()
        file.write_text(written.to_xml(), "utf-8")
        mujoco.MjModel.from_xml_path(str(file))
    except ValueError as error:
        told = " ".join(str(error).split())
        raise ModelLoadError(f"what was written does not load again: {told}") from error
