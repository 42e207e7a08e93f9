"""An env with a model and its plugins, as the commands host it.

Invariants: a plugin that does not load is told in one line and stops nothing.
Failure: a model that cannot be hosted, or a plugin list that cannot be read, is raised.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mjhost.cli import output
from mjhost.cli.reloads import failure_line
from mjhost.env import MujocoEnv
from mjhost.plugins import PluginLoadReport


@contextmanager
def hosted(
    model: Path,
    plugins: Iterable[str],
    *,
    realtime: float | None = 1.0,
    initial_state: Mapping[str, Any] | None = None,
) -> Iterator[tuple[MujocoEnv, PluginLoadReport]]:
    """Hosts ``model`` with ``plugins``; modules are also looked for in the working directory."""
    with _importable(Path.cwd()), MujocoEnv(plugins=list(plugins), realtime=realtime) as env:
        report = env.load(model, initial_state=initial_state).plugins
        assert report is not None, "a load loads the plugins"
        yield env, report


def bring_in_all(extensions: Iterable[str]) -> list[Path]:
    """Brings in what ``--extension`` names; the source files that may be edited while it runs."""
    if not extensions:
        return []
    from mjhost.engine.sources import bring_in

    return [path for text in extensions for path in bring_in(text)]


def say_failures(report: PluginLoadReport) -> None:
    """Tells which plugins did not load."""
    for failure in report.failures:
        output.note(failure_line(failure))


@contextmanager
def _importable(directory: Path) -> Iterator[None]:
    entry = str(directory)
    if entry in sys.path:
        yield
        return
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        sys.path.remove(entry)
