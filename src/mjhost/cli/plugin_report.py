"""What ``mjhost plugins`` found, as a record and as text.

Threads: pure functions over frozen records.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from mjhost.cli import output
from mjhost.plugins import (
    HookTiming,
    PluginDiagnostics,
    PluginFailure,
    PluginLoadReport,
    PluginStatistics,
)

HEADER: Final = ("NAME", "STATE", "RATE", "LOAD", "HOOK", "CALLS", "MEAN", "LONGEST", "TYPE")


class FoundFailure(msgspec.Struct, frozen=True, kw_only=True):
    """One failure, with how often there was one of this plugin in this phase.

    Attributes:
        name, type: the plugin, or ``<factory>`` for a list that could not be made as a whole.
        phase: ``load`` (import and configuration too), ``statistics``, ``activate``,
            ``load_state``, a hook, or ``close``.
        error: class and text of the exception.
        traceback: as Python prints it.
        count: how many; error and traceback are those of the first.
    """

    name: str
    type: str
    phase: str
    error: str
    traceback: str
    count: int


class PluginsReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``mjhost plugins`` found; times are s wall.

    Attributes:
        model: source of the model.
        engine: version of MuJoCo.
        steps: engine steps that were taken.
        trial_failure: what ended them early, else ``None``.
        plugins: statistics of each, failed ones too.
        failures: what failed.
    """

    model: str
    engine: str
    steps: int
    trial_failure: str | None
    plugins: tuple[PluginStatistics, ...]
    failures: tuple[FoundFailure, ...]


def found_failures(report: PluginLoadReport, *books: PluginDiagnostics) -> tuple[FoundFailure, ...]:
    """The failures of a load and of what came after it, each plugin and phase once."""
    counts: dict[tuple[str, str], int] = {}
    first: dict[tuple[str, str], PluginFailure] = {}
    for failure in _all(report, books):
        key = (failure.name, failure.phase)
        first.setdefault(key, failure)
        counts[key] = counts.get(key, 0) + 1
    return tuple(
        FoundFailure(
            name=failure.name,
            type=failure.type,
            phase=failure.phase,
            error=failure.error,
            traceback=failure.traceback,
            count=counts[key],
        )
        for key, failure in first.items()
    )


def _all(report: PluginLoadReport, books: Iterable[PluginDiagnostics]) -> Iterator[PluginFailure]:
    yield from report.failures
    for book in books:
        yield from book


def report_lines(report: PluginsReport, width: int | None, *, debug: bool) -> list[str]:
    """The table, and below it what failed; with ``debug`` the tracebacks as well."""
    head = f"{report.model}, MuJoCo {report.engine}, {report.steps} steps"
    rows = [row for plugin in report.plugins for row in _rows(plugin)]
    lines = [head, *output.table_lines(HEADER, rows, width)]
    for failure in report.failures:
        times = f" ({failure.count} times)" if failure.count > 1 else ""
        error = output.one_line(failure.error)
        lines += wrapped(f"failed: {failure.name}, {failure.phase}{times}: {error}", width)
        if debug:
            lines += (f"  {line}" for line in failure.traceback.splitlines())
    if report.trial_failure is not None:
        lines += wrapped(f"stopped: {report.trial_failure}", width)
    return lines


def wrapped(line: str, width: int | None) -> list[str]:
    """A line in as many as it needs."""
    if width is None:
        return [line]
    return textwrap.wrap(line, width - 1, subsequent_indent="  ", break_on_hyphens=False)


def _rows(plugin: PluginStatistics) -> list[tuple[str, ...]]:
    """A row per hook; the first of them has the plugin's own cells."""
    rate = "-" if plugin.rate_hz is None else f"{plugin.rate_hz:g} Hz"
    own = (plugin.name, plugin.state, rate, time_text(plugin.load_time))
    hooks = [_hook(name, timing) for name, timing in plugin.hooks.items()] or [("-",) * 4]
    rows: list[tuple[str, ...]] = [(*own, *hooks[0], plugin.type)]
    rows += (("",) * len(own) + hook + ("",) for hook in hooks[1:])
    return rows


def _hook(name: str, timing: HookTiming) -> tuple[str, ...]:
    raised = f", {timing.raised} raised" if timing.raised else ""
    return (name, f"{timing.calls:,}{raised}", time_text(timing.ema), time_text(timing.max))


def time_text(seconds: float) -> str:
    """A duration in the unit that suits it."""
    if math.isnan(seconds):
        return "-"
    scales = ((1.0, "s"), (1e-3, "ms"))
    for scale, unit in scales:
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-6:.1f} µs"
