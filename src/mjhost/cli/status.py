"""The words of a run: its status line, its record, its summary.

Threads: pure functions over frozen records.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any, Final

import msgspec

from mjhost.env.pacing import MeasuredRealtime
from mjhost.env.phases import Phase
from mjhost.env.records import EnvInfo, Fault

_PARTS: Final = ("step", "plugins", "publish", "render", "wait")
_COLOURS: Final = {"running": "green", "paused": "yellow", "loading": "yellow", "fault": "red"}


class End(StrEnum):
    """What ended a run."""

    LIMIT = "limit"
    QUIT = "quit"
    SIGNAL = "signal"
    FAULT = "fault"


class Factor(msgspec.Struct, frozen=True, kw_only=True):
    """The real-time factor of a run: simulation seconds per wall second.

    Attributes:
        target: what was asked for; ``None`` is unbound.
        measured: over the last second of running; ``None`` when nothing ran.
        average: simulated over wall time of the whole run, pauses included.
        step, plugins, publish, render, wait: shares of the wall time of the last second, 0 to 1.
    """

    target: float | None
    measured: float | None
    average: float | None
    step: float
    plugins: float
    publish: float
    render: float
    wait: float


class FailureCount(msgspec.Struct, frozen=True, kw_only=True):
    """Failures of one plugin in one phase.

    Attributes:
        phase: ``load``, ``activate``, the hook, ….
        error: the newest of them.
        count: how many.
    """

    phase: str
    error: str
    count: int


class PluginRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One plugin of a run.

    Attributes:
        name, type: as configured.
        state: ``ready`` or ``failed``, at the end.
        failures: what failed during the run.
    """

    name: str
    type: str
    state: str
    failures: tuple[FailureCount, ...]


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a run did; the record of ``mjhost run --json``.

    Attributes:
        model: source of the model.
        content_hash: SHA-256 of the compiled model.
        engine: version of MuJoCo.
        mjhost: version of mjhost.
        ended_by: ``limit``, ``quit``, ``signal`` or ``fault``.
        steps: engine steps that were taken, resets and reloads included.
        sim_time: ``data.time`` at the end, s sim.
        session_time: simulated time of the whole run, s sim.
        wall_time: time from the first to the last moment of the run, s wall.
        factor: the real-time factor.
        faults: number of faults.
        fault: the last of them, whether or not it was cleared.
        warnings: engine warnings by name, with their number.
        options: the options set by ``--option``, as they were applied.
        plugins: the plugins, failed ones too, in their order.
    """

    model: str
    content_hash: str
    engine: str
    mjhost: str
    ended_by: End
    steps: int
    sim_time: float
    session_time: float
    wall_time: float
    factor: Factor
    faults: int
    fault: Fault | None
    warnings: dict[str, int]
    options: dict[str, Any]
    plugins: tuple[PluginRecord, ...] = ()


def greeting_text(info: EnvInfo, timestep: float, how: str) -> str:
    """The first line of a run; ``how`` says what can be done."""
    return (
        f"hosting {info.source} on MuJoCo {info.engine}, steps of {timestep * 1e3:g} ms, target "
        f"factor {target_text(info.realtime_target)}; {how}"
    )


def factor_of(info: EnvInfo, measured: MeasuredRealtime, wall_s: float) -> Factor:
    """The factor of a run that took ``wall_s``."""
    ran = not math.isnan(measured.factor)
    return Factor(
        target=info.realtime_target,
        measured=measured.factor if ran else None,
        average=info.session_time / wall_s if wall_s > 0 else None,
        **{part: getattr(measured, part) for part in _PARTS},
    )


def state_of(info: EnvInfo) -> str:
    """One word for what the simulation does."""
    if info.phase is Phase.LOADING:
        return "loading"
    if info.fault is not None:
        return "fault"
    return "paused" if info.paused else "running"


def colour_of(state: str) -> str:
    """The colour that the word has on a terminal."""
    return _COLOURS[state]


def status_text(info: EnvInfo, measured: MeasuredRealtime, steps_per_s: float, faults: int) -> str:
    """The status line: begins with ``state_of(info)``."""
    factor = f"{_factor(measured.factor)} of {target_text(info.realtime_target)}"
    rate = "-" if math.isnan(steps_per_s) else f"{steps_per_s:,.0f}"
    # What matters most comes first: a narrow terminal cuts the line at its end.
    parts = (
        f"{state_of(info):<7} {info.sim_time:.2f} s",
        f"factor {factor}",
        f"faults {faults}",
        f"{rate} steps/s",
        _split(measured),
    )
    return " | ".join(filter(None, parts))


def summary_text(record: RunRecord) -> str:
    """The last line of a run."""
    factor = record.factor
    return (
        f"{record.model}: {record.steps:,} steps, {record.session_time:.3f} s simulated in "
        f"{record.wall_time:.3f} s, average factor {_factor(factor.average)} "
        f"(target {target_text(factor.target)}), {_count(record.faults, 'fault')}"
        f"{_warnings(record.warnings)}; ended by {record.ended_by}; MuJoCo {record.engine}"
    )


def target_text(target: float | None) -> str:
    """A target factor in words."""
    return "unbound" if target is None else f"{target:g}"


def _factor(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "-"
    return f"{value:.3f}" if value < 100 else f"{value:,.0f}"


def _split(measured: MeasuredRealtime) -> str:
    shares = ((part, getattr(measured, part)) for part in _PARTS)
    return ", ".join(f"{part} {share:.0%}" for part, share in shares if share >= 0.005)


def _warnings(warnings: dict[str, int]) -> str:
    listed = ", ".join(f"{number} {name}" for name, number in sorted(warnings.items()))
    return f", engine warnings: {listed}" if listed else ""


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
