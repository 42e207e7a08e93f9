"""The command ``mjhost check``: whether a model can be hosted, and how it behaves at first.

Invariants: the report is printed whenever the model loads, whatever the trial brings.
Failure: a model that cannot be hosted, or does not survive its trial, is status 1 and one line.
Not a goal: judging a model. What is unusual is listed; the rest of ``mjhost`` takes it.
"""

from __future__ import annotations

import math
import statistics
import time
from typing import Any, Final

import msgspec
import mujoco
import typer

from mjhost.cli import import_report, output
from mjhost.cli.arguments import (
    DebugFlag,
    ExtensionFlag,
    JsonFlag,
    ModelArgument,
    model_path,
)
from mjhost.cli.exits import ExitStatus
from mjhost.cli.hosting import bring_in_all
from mjhost.description import ImportReport
from mjhost.env import MujocoEnv
from mjhost.env.events import EngineWarning
from mjhost.env.records import LoadReport
from mjhost.options import validate_runtime_options

TRIAL_STEPS: Final = 100
_BATCH: Final = 10  # steps that are timed together
_TRIAL_LIMIT_S: Final = 10.0  # wall; a model that is slower than this gets fewer steps
_SIZES: Final = (
    "nq", "nv", "nu", "na", "nbody", "njnt", "ngeom", "nsite", "ncam", "nmesh", "ntendon", "neq",
    "nsensor", "nsensordata", "nkey", "nmocap", "nplugin",
)  # fmt: skip
_NAMED: Final = {
    "joints": (mujoco.mjtObj.mjOBJ_JOINT, "njnt"),
    "actuators": (mujoco.mjtObj.mjOBJ_ACTUATOR, "nu"),
    "sensors": (mujoco.mjtObj.mjOBJ_SENSOR, "nsensor"),
    "cameras": (mujoco.mjtObj.mjOBJ_CAMERA, "ncam"),
    "keyframes": (mujoco.mjtObj.mjOBJ_KEY, "nkey"),
}
_NAMES_SHOWN: Final = 12


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """The first steps of a model at its own options.

    Attributes:
        steps: how many were good.
        failure: what ended it early, else ``None``.
        warnings: engine warnings by name, with their number.
        step_time: median time of a step, s wall; ``None`` if there was none.
        realtime_factor: estimate of what the model reaches unbound, from these steps.
    """

    steps: int
    failure: str | None
    warnings: dict[str, int]
    step_time: float | None
    realtime_factor: float | None


class CheckReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``mjhost check`` found; times are s wall, sizes have MuJoCo's names.

    Attributes:
        names: named joints, actuators, sensors, cameras and keyframes, in the model's order.
        timestep: s sim.
        compile_time, data_time, forward_time: what loading took, s wall.
        compiler_warnings: what the engine said while loading.
        unusual_options: options outside their sensible range; they are no reason to refuse.
        trial: the first steps.
        import_report: what became of a robot description; ``None`` for anything else.
    """

    model: str
    content_hash: str
    engine: str
    sizes: dict[str, int]
    names: dict[str, tuple[str, ...]]
    timestep: float
    compile_time: float
    data_time: float
    forward_time: float
    compiler_warnings: tuple[str, ...]
    unusual_options: tuple[str, ...]
    trial: Trial
    import_report: ImportReport | None = None


def check(
    model: ModelArgument,
    *,
    extension: ExtensionFlag = None,
    json: JsonFlag = False,
    _debug: DebugFlag = False,
) -> None:
    """Load a model, look at it, and try its first 100 steps.

    Reports sizes and names, what loading took, what the compiler warned of, options outside their
    sensible range, and how fast and whether at all it steps; of a robot description also what was
    guessed, left out, or looks wrong. Status 1 if it cannot be hosted or
    does not survive these steps, with the reason in one line.

    * `mjhost check robot.xml`
    * `mjhost check humanoid --json`
    * `mjhost check arm.xml --extension actuators.py`
    * `mjhost check robot.urdf`
    """
    bring_in_all(extension or ())
    with MujocoEnv() as env:
        loaded = env.load(model_path(model))
        report = _report(env, loaded)
    if json:
        output.say_json(report)
    else:
        _say(report)
    if report.trial.failure is not None:
        output.note(f"error: {report.model} does not survive its trial: {report.trial.failure}")
        raise typer.Exit(ExitStatus.FAILED)


def _report(env: MujocoEnv, loaded: LoadReport) -> CheckReport:
    options = env.runtime_options
    unusual = validate_runtime_options(options, raise_on_error=False)
    with env.access() as (model, _):
        sizes, names = _sizes(model), _names(model)
    return CheckReport(
        model=loaded.source,
        content_hash=loaded.content_hash,
        engine=env.info.engine,
        sizes=sizes,
        names=names,
        timestep=options.timestep,
        compile_time=loaded.compile_s,
        data_time=loaded.data_s,
        forward_time=loaded.forward_s,
        compiler_warnings=loaded.warnings,
        unusual_options=tuple(map(str, unusual.errors + unusual.warnings)),
        trial=_trial(env, options.timestep),
        import_report=loaded.import_report,
    )


def _sizes(model: mujoco.MjModel) -> dict[str, int]:
    return {size: int(getattr(model, size)) for size in _SIZES}


def _names(model: mujoco.MjModel) -> dict[str, tuple[str, ...]]:
    return {kind: _names_of(model, *where) for kind, where in _NAMED.items()}


def _names_of(model: mujoco.MjModel, kind: Any, size: str) -> tuple[str, ...]:
    every = (mujoco.mj_id2name(model, kind, index) for index in range(getattr(model, size)))
    return tuple(name for name in every if name)


# -- the trial ---------------------------------------------------------------------------------


def _trial(env: MujocoEnv, timestep: float) -> Trial:
    times: list[float] = []
    failure = None
    with env.events.subscribe() as events:
        try:
            _step_in_batches(env, times)
        except Exception as error:  # noqa: BLE001 - whatever the engine raises is the finding
            failure = output.one_line(error)
        warnings = {e.warning: e.count for e in events.drain() if isinstance(e, EngineWarning)}
    step_time = statistics.median(times) if times else None
    return Trial(
        steps=env.info.step_count,
        failure=failure,
        warnings=warnings,
        step_time=step_time,
        realtime_factor=timestep / step_time if step_time else None,
    )


def _step_in_batches(env: MujocoEnv, times: list[float]) -> None:
    """Takes the trial's steps; appends the time of a step of each batch."""
    deadline = time.perf_counter() + _TRIAL_LIMIT_S
    for _ in range(TRIAL_STEPS // _BATCH):
        started = time.perf_counter()
        done = env.step(_BATCH, timeout=max(0.001, deadline - started)).completed
        now = time.perf_counter()
        if done:
            times.append((now - started) / done)
        if now >= deadline:
            return


# -- printing ----------------------------------------------------------------------------------


def _say(report: CheckReport) -> None:
    sizes = ", ".join(f"{name} {size}" for name, size in report.sizes.items() if size)
    rows = [
        ("model", report.model),
        ("engine", f"MuJoCo {report.engine}"),
        ("sizes", sizes),
        *((kind, _listed(names)) for kind, names in report.names.items() if names),
        ("timestep", f"{report.timestep:g} s"),
        ("loading", _loading_text(report)),
        *(("compiler", f"warning: {text}") for text in report.compiler_warnings),
        *(("option", f"unusual: {text}") for text in report.unusual_options),
        ("trial", _trial_text(report.trial)),
        *(("warnings", f"{count} {name}") for name, count in report.trial.warnings.items()),
    ]
    output.say_table(*_without_header(rows))
    if report.import_report is not None:
        output.say(import_report.summary(report.import_report))
        for line in import_report.lines(report.import_report):
            output.say(line)


def _without_header(rows: list[tuple[str, str]]) -> tuple[tuple[str, str], list[tuple[str, str]]]:
    first, *others = rows
    return first, others


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:_NAMES_SHOWN])
    more = len(names) - _NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _loading_text(report: CheckReport) -> str:
    times = (report.compile_time, report.data_time, report.forward_time)
    compiling, data, forward = (f"{1e3 * seconds:.1f} ms" for seconds in times)
    return f"compiled in {compiling}, data in {data}, first forward in {forward}"


def _trial_text(trial: Trial) -> str:
    if trial.failure is not None:
        return f"failed after {trial.steps} good steps: {trial.failure}"
    text = f"{trial.steps} of {TRIAL_STEPS} steps, all good"
    if trial.step_time is None or trial.realtime_factor is None:
        return text
    factor = _two_digits(trial.realtime_factor)
    return f"{text}; {trial.step_time * 1e6:,.1f} µs each, about {factor} times real time"


def _two_digits(value: float) -> str:
    digits = 1 - math.floor(math.log10(value))
    return f"{round(value, digits):,.{max(0, digits)}f}"
