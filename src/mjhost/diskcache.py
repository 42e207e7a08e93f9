"""Results on disk that spare work: one file per result, in the user's cache directory.

Owns: where that is, and how a file is written, read and thrown away.
Invariants: a file is content behind a line of JSON that says what it is and what its content hashes
to; nothing is unpickled, and nothing of a file that says something else, or is not intact, is used.
A directory that somebody else could write is not used.
Threads: files are written beside and moved into place; two writers of one key write the same.
Failure: none is visible: what cannot be read is as if it were not there, what cannot be written is
not kept.

``MJHOST_CACHE=0`` in the environment turns it off.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

SWITCH: Final = "MJHOST_CACHE"


def user_folder() -> Path | None:
    """The user's cache directory for mjhost; ``None`` if there is none or it is turned off."""
    if os.environ.get(SWITCH) == "0":
        return None
    base = os.environ.get("XDG_CACHE_HOME") or ""
    try:
        root = Path(base) if Path(base).is_absolute() else Path.home() / ".cache"
    except RuntimeError:  # nobody's home
        return None
    return root / "mjhost"


def is_private(folder: Path) -> bool:
    """Whether a directory is there and nobody but its owner, the user, can write it."""
    try:
        found = folder.stat()
    except OSError:
        return False
    own = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    return own and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def read(folder: Path | None, key: str, wanted: Mapping[str, Any]) -> tuple[Any, bytes] | None:
    """What was written under a key: its head and its content.

    Args:
        folder: where; ``None`` has nothing.
        key: the name of the file.
        wanted: what its head has to say.
    """
    if folder is None or not is_private(folder):
        return None
    try:
        line, _, content = (folder / key).read_bytes().partition(b"\n")
        head = json.loads(line)
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(head, dict):
        return None
    expected = {**wanted, "key": key, "sha256": hashlib.sha256(content).hexdigest()}
    return (head, content) if all(head.get(k) == v for k, v in expected.items()) else None


def write(folder: Path | None, key: str, head: Mapping[str, Any], content: bytes) -> bool:
    """Keeps content under a key; whether it is there now.

    Args:
        folder: where; it is made if it is not there. ``None`` keeps nothing.
        key: the name of the file.
        head: what ``read`` will be asked to find, and more; JSON.
        content: what to keep.
    """
    if folder is None:
        return False
    line = {**head, "key": key, "sha256": hashlib.sha256(content).hexdigest()}
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_private(folder):
            return False
        _replace(folder, key, json.dumps(line).encode() + b"\n" + content)
    except OSError:
        return False
    return True


def touch(folder: Path, key: str) -> None:
    """Makes a file the last one to be thrown away."""
    with contextlib.suppress(OSError):
        os.utime(folder / key)


def thin_out(folder: Path, *, most: int, most_bytes: int | None = None) -> None:
    """Throws away the oldest entries of a directory until it keeps its bounds."""
    left, size = 0, 0
    for entry, found in _newest_first(folder):
        left, size = left + 1, size + found.st_size
        if left <= most and (most_bytes is None or size <= most_bytes):
            continue
        if stat.S_ISDIR(found.st_mode):
            shutil.rmtree(entry, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                entry.unlink()


def _newest_first(folder: Path) -> list[tuple[Path, os.stat_result]]:
    found = []
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            with contextlib.suppress(OSError):  # another process threw it away
                found.append((entry, entry.stat()))
    return sorted(found, key=lambda pair: pair[1].st_mtime_ns, reverse=True)


def _replace(folder: Path, key: str, content: bytes) -> None:
    number, name = tempfile.mkstemp(dir=folder, prefix="new-")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
        Path(name).replace(folder / key)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
