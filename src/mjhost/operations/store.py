"""The one directory into which clients may write: checkpoint files by name.

Owns: names of files in the directory that the host was given, and how many there may be.
Invariants: a client gives a name, never a path; nothing outside of the directory is read, written
or removed, links are not followed. A file that is there is replaced only if the client says so.
Threads: any; of two clients that save by one name at once, one is refused.
Failure: a refused or failed save leaves the files that were there.
Not a goal: what is in a file; ``mjhost.checkpoint`` knows.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from mjhost.checkpoint import Checkpoint
from mjhost.errors import InvalidArgumentError, QueueFullError, UnknownNameError, did_you_mean

SUFFIX: Final = ".mjhc"

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_NAME_RULE: Final = (
    "must be 1 to 100 letters, digits, dots, hyphens or underscores, the first a letter or digit"
)


class CheckpointStore:
    """A directory of checkpoint files.

    Args:
        directory: must exist.
        limit: most files that clients may fill it with.

    Raises:
        InvalidArgumentError: there is no such directory, or the limit is no positive number.
    """

    def __init__(self, directory: str | os.PathLike[str], *, limit: int = 100) -> None:
        self._directory = Path(directory).resolve()
        if not self._directory.is_dir():
            raise InvalidArgumentError(
                f"checkpoints need a directory that exists, {self._directory} is none"
            )
        if type(limit) is not int or limit < 1:
            raise InvalidArgumentError(f"limit must be an integer of at least 1, got {limit!r}")
        self._limit = limit
        self._mutex = threading.Lock()

    def files(self) -> dict[str, int]:
        """The size of each file by the name that clients give it, bytes."""
        found = {}
        with os.scandir(self._directory) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # deleted by somebody meanwhile
                    if _is_ours(entry):
                        size = entry.stat(follow_symlinks=False).st_size
                        found[entry.name.removesuffix(SUFFIX)] = size
        return dict(sorted(found.items()))

    def save(
        self, name: str, take: Callable[[], Checkpoint], *, replace: bool = False
    ) -> Checkpoint:
        """Takes a checkpoint, writes it and returns it.

        Raises:
            InvalidArgumentError: the name is none, or is taken and ``replace`` is not set; nothing
                was taken.
            QueueFullError: there are as many files as there may be; nothing was taken.
            Exception: what ``take`` raised, or ``Checkpoint.save``.
        """
        path = self._path(name)
        with self._mutex:
            self._refuse(path, name, replace=replace)
            checkpoint = take()
            checkpoint.save(path)
            return checkpoint

    def load(self, name: str) -> Checkpoint:
        """Reads a file.

        Raises:
            InvalidArgumentError: the name is none.
            UnknownNameError: there is no such file; the message lists the near ones.
            CheckpointError: it is no checkpoint.
        """
        with self._mutex:  # nobody deletes it between the look and the reading
            return Checkpoint.load(self._present(name))

    def delete(self, name: str) -> None:
        """Removes a file; raises as ``load``, but for what is in it."""
        with self._mutex:
            self._present(name).unlink()

    def _present(self, name: str) -> Path:
        path = self._path(name)
        if path.is_symlink() or not path.is_file():
            near = did_you_mean(name, self.files())
            raise UnknownNameError(f"no checkpoint is named {name!r}; {near}")
        return path

    def _path(self, name: str) -> Path:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidArgumentError(f"the name of a checkpoint {_NAME_RULE}, got {name!r}")
        return self._directory / f"{name}{SUFFIX}"

    def _refuse(self, path: Path, name: str, *, replace: bool) -> None:
        if os.path.lexists(path):
            if path.is_symlink() or not path.is_file():
                raise InvalidArgumentError(f"{name!r} is taken by something that is no checkpoint")
            if not replace:
                raise InvalidArgumentError(
                    f"there is a checkpoint named {name!r}; take another name, or say replace"
                )
        elif len(self.files()) >= self._limit:
            raise QueueFullError(
                f"there is room for {self._limit} checkpoints and it is taken; delete one first"
            )


def _is_ours(entry: os.DirEntry[str]) -> bool:
    name = entry.name.removesuffix(SUFFIX)
    is_named = entry.name.endswith(SUFFIX) and _NAME.fullmatch(name) is not None
    return is_named and entry.is_file(follow_symlinks=False)
