"""Descriptions written as MJCF that plain MuJoCo loads.

Invariants: a folder is written beside its place and renamed: it is there wholly or not at all. What
was written has been compiled from where it lies before it gets its name, and has the names, masses
and poses of what it was made of. A folder that somebody else filled is never replaced.
Failure: ``ModelLoadError`` if it does not compile from there; ``OSError``; what was there stays.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import mujoco
import numpy as np

from mjhost.description.assets import embed, references, without_hash
from mjhost.errors import InvalidArgumentError, ModelLoadError

ASSETS: Final = "assets"
"""The folder of the files that a written model refers to, below that of the model."""

_DIGITS: Final = 15  # enough for 1e-14, and 0.1 stays 0.1
_ROUNDING: Final = 1e-4  # what may get lost where the engine writes its usual six digits

_writing: Final = threading.Lock()  # the number of digits is the engine's, for the whole process


def write(
    spec: mujoco.MjSpec, folder: str | os.PathLike[str], name: str, *, replace: bool = False
) -> Path:
    """Writes ``folder/name.xml`` and what it refers to; returns its path.

    Args:
        spec: what to write; it stays as it is.
        folder: a new or empty folder.
        name: of the file, without its ending.
        replace: replace what an earlier call wrote there.

    Raises:
        InvalidArgumentError: the folder has something in it that is not to be replaced.
        ModelLoadError: the spec does not compile, or is another model when it is read again.
    """
    place = Path(folder).expanduser().resolve()
    _check_place(place, replace=replace)
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        _fill(spec, beside, f"{name}.xml")
        beside.chmod(0o755)
        _put(beside, place)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    return Path(folder) / f"{name}.xml"


def _check_place(place: Path, *, replace: bool) -> None:
    if not place.exists():
        return
    if not place.is_dir():
        raise InvalidArgumentError(f"{place} is there and is no folder")
    entries = list(place.iterdir())
    if entries and not replace:
        raise InvalidArgumentError(
            f"{place} has something in it; name a new folder, or replace it (replace, --force)"
        )
    other = sorted(entry.name for entry in entries if not _is_ours(entry))
    if other:
        raise InvalidArgumentError(
            f"{place} has {', '.join(other[:3])} in it, which were not written by a conversion: it "
            "is not replaced; name another folder"
        )


def _is_ours(entry: Path) -> bool:
    """Whether this could be of an earlier conversion."""
    if entry.is_symlink():
        return False
    if entry.is_dir():
        return entry.name == ASSETS and all(file.is_file() for file in entry.iterdir())
    return entry.suffix == ".xml"


def _put(made: Path, place: Path) -> None:
    """Puts a folder into its place; what was there goes only when the new one is there."""
    if not place.exists():
        made.rename(place)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    place.rename(aside / "old")
    try:
        made.rename(place)
    except BaseException:
        (aside / "old").rename(place)
        aside.rmdir()
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _fill(spec: mujoco.MjSpec, folder: Path, file: str) -> None:
    written = spec.copy()
    written.assets = dict(spec.assets)
    embed(written)
    files = _readable(written)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    try:
        model = written.compile()
        with _exact_numbers():
            text = written.to_xml()
        (folder / file).write_text(text, "utf-8")
        again = mujoco.MjModel.from_xml_path(str(folder / file))
    except ValueError as error:
        told = " ".join(str(error).split())
        raise ModelLoadError(f"what was written does not load again: {told}") from error
    _check_same(model, again)


@contextmanager
def _exact_numbers() -> Iterator[None]:
    """Has the engine write numbers with `_DIGITS`, if it can be told to."""
    path = next(Path(mujoco.__file__).parent.glob("libmujoco.so*"), None)
    engine = None if path is None else ctypes.CDLL(str(path))
    setter = getattr(engine, "_mjPRIVATE__set_xml_precision", None)
    getter = getattr(engine, "_mjPRIVATE__get_xml_precision", None)
    if setter is None or getter is None:
        yield
        return
    with _writing:
        before = getter()
        setter(_DIGITS)
        try:
            yield
        finally:
            setter(before)


def _readable(spec: mujoco.MjSpec) -> dict[str, bytes]:
    """Files and meshes under the names of their sources, as far as these are the only ones."""
    names = {reference.file for reference in references(spec)}
    short = Counter(map(without_hash, names))
    held = dict(spec.assets)
    files: dict[str, bytes] = {}
    for reference in references(spec):
        old = reference.file
        plain = without_hash(old)
        new = f"{ASSETS}/{plain if short[plain] == 1 else old}"
        if old in held:
            files[new] = held[old]
            reference.point_to(new)
    spec.assets = files
    _rename_meshes(spec)
    return files


def _rename_meshes(spec: mujoco.MjSpec) -> None:
    short = Counter(without_hash(mesh.name) for mesh in spec.meshes)
    new = {}
    for mesh in spec.meshes:
        plain = without_hash(mesh.name)
        if plain != mesh.name and short[plain] == 1:
            new[mesh.name] = plain
            mesh.name = plain
    for geom in spec.geoms:
        geom.meshname = new.get(geom.meshname, geom.meshname)


def _check_same(model: mujoco.MjModel, again: mujoco.MjModel) -> None:
    """Whether what was read again is what was written."""
    # The engine may write the geoms of a body in another order.
    same = sorted(model.names.split(b"\0")) == sorted(again.names.split(b"\0")) and all(
        np.allclose(getattr(model, field), getattr(again, field), _ROUNDING, 1e-9)
        for field in ("qpos0", "body_mass", "body_inertia", "body_pos", "jnt_axis", "jnt_range")
    )
    if not same or not np.allclose(_places(model), _places(again), atol=_ROUNDING):
        raise ModelLoadError("what was written is another model when it is read again")


def _places(model: mujoco.MjModel) -> Any:
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    return np.concatenate([data.xpos.ravel(), data.xquat.ravel()])
