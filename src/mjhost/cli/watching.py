"""Files that are watched while a simulation runs, by looking at them now and then.

Owns: ``FileWatch`` (which files changed) and ``Watch`` (what to reload because of it).
Invariants: a change is reported once it has stood still for one look, so that a burst of writes, or
a file saved in two, is one change; after ``_PATIENCE`` looks it is reported all the same. A file
that is gone is reported when it is back: editors replace files. What changes while a reload reads
it is reported again afterwards.
Threads: one.
Failure: a file that cannot be looked at counts as gone.
Not a goal: telling a change that leaves time, size and inode as they were.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

from mjhost.cli.dependencies import model_files

INTERVAL_S: Final = 0.25  # wall, between two looks
_PATIENCE: Final = 10

_Signature = tuple[int, int, int]


class FileWatch:
    """Tells which of its files changed.

    Args:
        files: what to watch; those that do not exist too.
    """

    def __init__(self, files: Iterable[Path] = ()) -> None:
        self._told: dict[Path, _Signature | None] = {}
        self._seen: dict[Path, _Signature | None] = {}
        self._looks = 0
        self.follow(files)

    @property
    def files(self) -> frozenset[Path]:
        """What is watched."""
        return frozenset(self._told)

    def follow(self, files: Iterable[Path]) -> None:
        """Watches these from now on; of those watched already, a change not yet told stays one."""
        wanted = set(files)
        for path in wanted - self._told.keys():
            self._told[path] = self._seen[path] = _signature(path)
        for path in self._told.keys() - wanted:
            del self._told[path], self._seen[path]

    def changed(self) -> set[Path]:
        """Looks at the files; those that changed since they were told or first followed."""
        now = {path: _signature(path) for path in self._told}
        moving = now != self._seen
        self._seen = now
        changed = {path for path, found in now.items() if found not in (None, self._told[path])}
        self._looks = self._looks + 1 if changed else 0
        if moving and self._looks < _PATIENCE:
            return set()
        self._looks = 0
        self._told.update((path, now[path]) for path in changed)
        return changed


class Changes(NamedTuple):
    """What there is to reload.

    Attributes:
        model: files of the model that changed.
        plugins: plugin lists and sources that changed.
        extensions: sources of engine extensions that changed.
    """

    model: frozenset[Path] = frozenset()
    plugins: frozenset[Path] = frozenset()
    extensions: frozenset[Path] = frozenset()


class Watch:
    """Watches a model with everything it is made of, and the sources of its plugins.

    Args:
        model: the model's file; made before it is loaded, so that no change is missed.
        clock: seconds, wall.
        extensions: sources of engine extensions.
    """

    def __init__(
        self,
        model: Path,
        clock: Callable[[], float] = time.monotonic,
        *,
        extensions: Iterable[Path] = (),
    ) -> None:
        self._path = model.absolute()
        self._model = FileWatch(model_files(self._path))
        self._plugins = FileWatch()
        self._extensions = FileWatch(extensions)
        self._clock = clock
        self._next = -float("inf")

    def follow(self, plugin_files: Iterable[Path]) -> None:
        """Takes note of what model and plugins are made of now, after a load or reload."""
        self._model.follow(model_files(self._path))
        self._plugins.follow(plugin_files)

    def changes(self) -> Changes:
        """Looks, if it is time to; what has to be reloaded."""
        now = self._clock()
        if now < self._next:
            return Changes()
        self._next = now + INTERVAL_S
        plugins, extensions = self._plugins.changed(), self._extensions.changed()
        return Changes(frozenset(self._model.changed()), frozenset(plugins), frozenset(extensions))


def _signature(path: Path) -> _Signature | None:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
