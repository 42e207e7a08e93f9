"""Reloads of model and plugins while the terminal goes on being served.

Owns: the one thread that reloads.
Invariants: one reload at a time; its outcome is told in lines by whoever asks, on his thread.
Threads: everything but the reload itself runs on the main thread.
Failure: a reload that fails is told; what was there before goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

from mjhost.cli import output
from mjhost.cli.watching import Changes
from mjhost.env import MujocoEnv
from mjhost.env.records import ReloadReport
from mjhost.errors import LoadingWindowError
from mjhost.plugins import PluginLoadFailure, PluginLoadReport
from mjhost.state.carry import CarryReport

Note = Callable[[str], None]


class Reloads:
    """One reload at a time, in a thread of its own."""

    def __init__(self, env: MujocoEnv, *, keep_state: bool = False) -> None:
        """Make one.

        Args:
            env: whose model and plugins.
            keep_state: whether a model whose file changed goes on with the state of the old one.
        """
        self._env = env
        self._keep_state = keep_state
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="mjhost-reload")
        self._future: Future[list[str]] | None = None

    @property
    def busy(self) -> bool:
        """Whether there is one whose outcome was not told yet."""
        return self._future is not None

    def begin(self) -> None:
        """Starts to reload the model as its file has it.

        Raises:
            LoadingWindowError: a reload is going on.
        """
        self._begin(self._model)

    def begin_for(self, changes: Changes) -> None:
        """Starts to reload what changed; the options that were set stay set.

        Raises:
            LoadingWindowError: a reload is going on.
        """
        if any(changes):
            self._begin(partial(self._changed, changes))

    def tell(self, note: Note) -> bool:
        """Tells the outcome of a reload that is done; whether there was one."""
        future = self._future
        if future is None or not future.done():
            return False
        self._future = None
        for line in future.result(timeout=0):
            note(line)
        return True

    def abandon(self) -> None:
        """Waits for nothing: closing the env ends a reload that is going on."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _begin(self, reload: Callable[[], Iterable[str]]) -> None:
        if self._future is not None:
            raise LoadingWindowError("a reload is in progress; wait until it is done")
        self._future = self._pool.submit(lambda: list(reload()))

    # -- in the thread -----------------------------------------------------------------------

    def _changed(self, changes: Changes) -> Iterator[str]:
        for path in sorted(changes.extensions):
            yield self._extension(path)
        # Plugins first: if the model has changed as well, they are loaded once more, against it.
        if changes.plugins:
            yield from self._plugins()
        if changes.model:
            yield from self._model(keep=True)

    def _model(self, *, keep: bool = False) -> Iterator[str]:
        try:
            report = self._env.reload(
                options="keep" if keep else "model", keep_state=keep and self._keep_state
            )
        except Exception as error:  # noqa: BLE001 - told; the old model goes on
            yield f"error: reload failed, the old model goes on: {error}"
        else:
            yield from _model_lines(report)

    def _extension(self, path: Path) -> str:
        from mjhost.engine.sources import read_again

        try:
            with self._env.access():  # between two steps
                read_again(path)
        except Exception as error:  # noqa: BLE001 - told; the old implementation goes on
            return f"error: reload failed, the old extensions go on: {output.one_line(str(error))}"
        return f"reloaded the extensions of {path.name}"

    def _plugins(self) -> Iterator[str]:
        try:
            report = self._env.reload_plugins()
        except Exception as error:  # noqa: BLE001 - told; the old plugins go on
            yield f"error: reload failed, the old plugins go on: {error}"
        else:
            yield from plugin_lines(report)


def _model_lines(report: ReloadReport) -> Iterator[str]:
    yield f"reloaded {report.source}, stepping stood still for {report.pause_s * 1e3:.2f} ms"
    if report.carried is not None:
        yield from _carry_lines(report.carried)
    if report.values_dropped:
        yield f"as in the model again: {', '.join(report.values_dropped)}"
    for problem in report.initial_state_problems:
        yield f"warning: an initial state was left out: {problem}"
    if report.option_error is not None:
        yield f"error: the options that were set are not: {report.option_error}"
    if report.plugins is not None:
        yield from map(failure_line, report.plugins.failures)


def _carry_lines(carried: CarryReport) -> Iterator[str]:
    """What did not simply go on."""
    for what, things in (
        ("new", carried.new),
        ("gone", carried.dropped),
        ("another type, begins anew", carried.restarted),
    ):
        if things:
            more = f" and {len(things) - _SHOWN} more" if len(things) > _SHOWN else ""
            yield f"{what}: {', '.join(things[:_SHOWN])}{more}"
    if not carried.exact:
        yield "warning: with sleep or ipc the engine keeps state that cannot be carried"


_SHOWN = 8  # things that a line lists


def plugin_lines(report: PluginLoadReport) -> Iterator[str]:
    """What a reload of plugins did, in lines."""
    carried = f"; state carried for {', '.join(report.carried)}" if report.carried else ""
    yield (
        f"reloaded plugins ({', '.join(report.ready) or 'none is ready'}), generation "
        f"{report.plugin_generation.value}{carried}"
    )
    for name, reason in report.not_carried.items():
        yield f"warning: the state of plugin {name!r} was not carried: {reason}"
    yield from map(failure_line, report.failures)


def failure_line(failure: PluginLoadFailure) -> str:
    """A plugin that could not be loaded, in one line."""
    return f"error: plugin {failure.name!r} failed in {failure.phase}: " + output.one_line(
        failure.error
    )
