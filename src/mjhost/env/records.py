"""The frozen records an env hands out: results, faults, reports, info.

Invariants: every record is immutable and holds copies only, never a live model, data or buffer.
Threads: plain values, safe anywhere.
"""

from __future__ import annotations

import enum

import msgspec

from mjhost.description.report import ImportReport
from mjhost.env.phases import Phase
from mjhost.generation import FrameGeneration, ModelGeneration, OptionsEpoch, PluginGeneration
from mjhost.plugins import PluginLoadReport
from mjhost.state.carry import CarryReport


class StepReason(enum.StrEnum):
    """Why a manual step request ended."""

    COMPLETED = "completed"
    TIMEOUT = "timeout"
    LIMIT = "limit"
    PAUSE_REQUESTED = "pause requested"
    CANCELLED_BY_RESET = "cancelled by reset"
    CANCELLED_BY_RESTORE = "cancelled by restore"
    CANCELLED_BY_RELOAD = "cancelled by reload"
    CANCELLED_BY_CLOSE = "cancelled by close"
    CANCELLED_BY_RESUME = "cancelled by resume"
    CANCELLED_BY_CALL = "cancelled by cancel_steps"


class StepResult(msgspec.Struct, frozen=True):
    """What became of a request for manual steps.

    Attributes:
        completed: engine steps that were taken, exactly.
        reason: ``completed`` when all of them were, else what ended the request.
    """

    completed: int
    reason: StepReason = StepReason.COMPLETED


class FaultKind(enum.StrEnum):
    """What stopped the simulation."""

    DIVERGENCE = "divergence"
    ENGINE_ERROR = "engine error"
    TASK = "task"
    HOOK = "hook"
    CALLBACK = "callback"
    ENGINE_PLUGIN = "engine plugin"


class Fault(msgspec.Struct, frozen=True):
    """Why the simulation stands still; the state is that before the step that failed.

    Attributes:
        kind: what sort of failure it was.
        message: one readable line.
        source: who raised: a plugin with its hook, a task, or ``"engine"``.
        plugin, hook: the plugin, or engine plugin, that raised and where; ``None`` if none did.
        step: the step that failed, counted from the last reset or load (the first step is 1).
        sim_time: simulation time at the start of that step, s sim.
        error_type: qualified name of the exception, empty for a divergence.
        traceback: formatted traceback, empty for a divergence.
    """

    kind: FaultKind
    message: str
    source: str
    step: int
    sim_time: float
    error_type: str = ""
    traceback: str = ""
    plugin: str | None = None
    hook: str | None = None


class Generations(msgspec.Struct, frozen=True):
    """The current number of each of the four counters."""

    model: ModelGeneration
    plugins: PluginGeneration
    frames: FrameGeneration
    options: OptionsEpoch


class LoadReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a load or reload did.

    Attributes:
        source: label of the model's source: a path, or what kind of object it came from.
        content_hash: SHA-256 of the compiled model, hexadecimal.
        generation: the model generation that is current now.
        compile_s, data_s, forward_s: wall time spent outside the lock, s wall.
        pause_s: wall time the physics lock was held, s wall.
        option_error: why startup or kept options were not applied, else ``None``.
        kept_options: names of the options carried over by ``options="keep"`` or from startup.
        warnings: what the compiler had to say.
        plugins: what became of the plugins.
        initial_state_problems: initial joint states that were left out, with the reason.
        carried: what became of the old state, if it was to be kept.
        import_report: what became of a robot description; ``None`` for anything else.
    """

    source: str
    content_hash: str
    generation: ModelGeneration
    compile_s: float
    data_s: float
    forward_s: float
    pause_s: float
    option_error: str | None = None
    kept_options: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    plugins: PluginLoadReport | None = None
    initial_state_problems: tuple[str, ...] = ()
    carried: CarryReport | None = None
    import_report: ImportReport | None = None


class ReloadReport(LoadReport, frozen=True, kw_only=True):
    """What a reload did to a model that was there before.

    Attributes:
        previous_source: label of the source it replaced.
        edits_dropped: how many structural edits (``env.edit()``) the new model is without.
        values_dropped: arrays of ``mjModel`` that had been changed since the old model was compiled
            (masses, frictions, ...) and are what the new one says.
    """

    previous_source: str
    edits_dropped: int = 0
    values_dropped: tuple[str, ...] = ()


class EnvInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Everything an observer may want to know about an env, as of one step boundary.

    Attributes:
        phase: lifecycle phase.
        source, content_hash: the model's source and SHA-256; ``None`` without a model.
        generations: the four counters.
        load_count: successful loads and reloads so far.
        load_error: why the last load or reload failed, or its options did; else ``None``.
        paused: ``True`` unless the physics thread is stepping or about to.
        pending_steps: manual steps asked for and not yet taken.
        step_count: steps since the last load, reload or reset.
        total_steps: steps since the env was made; never goes back.
        sim_time: ``data.time``, s sim; 0 without a model.
        session_time: simulated time since the env was made, s sim; never goes back.
        realtime_target: target real-time factor; ``None`` means unbound.
        realtime_measured: factor over the last second; ``nan`` when nothing ran.
        fault: what stopped the simulation, else ``None``.
        engine: version of MuJoCo.
    """

    phase: Phase
    source: str | None
    content_hash: str | None
    generations: Generations
    load_count: int
    load_error: str | None
    paused: bool
    pending_steps: int
    step_count: int
    total_steps: int
    sim_time: float
    session_time: float
    realtime_target: float | None
    realtime_measured: float
    fault: Fault | None
    engine: str
