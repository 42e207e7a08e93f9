"""The command ``mjhost run``: hosts one model until it is told to stop."""

from __future__ import annotations

import math
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from mjhost.cli import output
from mjhost.cli.arguments import (
    DebugFlag,
    ExtensionFlag,
    JsonFlag,
    ModelArgument,
    OptionFlag,
    PluginsFlag,
    model_path,
    option_inputs,
)
from mjhost.cli.exits import ExitStatus
from mjhost.cli.hosting import bring_in_all, hosted, say_failures
from mjhost.cli.initial import initial_states
from mjhost.cli.keeping import keep, restore_from
from mjhost.cli.session import Plan, Session
from mjhost.cli.status import End, RunRecord, summary_text
from mjhost.cli.terminal import Keyboard, StatusLine
from mjhost.cli.watching import Watch

_NO_KEYS: Final = "needs keys, and without a terminal there are none: nobody could resume"


class OnFault(StrEnum):
    """What a fault does to a run."""

    PAUSE = "pause"
    EXIT = "exit"


def _positive(value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value > 0):
        raise typer.BadParameter(f"must be a number of seconds above 0, got {value!r}")
    return value


PausedFlag = Annotated[bool, typer.Option("--paused", help="Begin paused; needs keys.")]
RealtimeFlag = Annotated[
    float,
    typer.Option(metavar="FACTOR", help="Simulated per wall second; 0 is as fast as it goes."),
]
StepsFlag = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="End at step N exactly, counted from the last load, reset, or reload without its "
        "state.",
    ),
]
SecondsFlag = Annotated[
    float | None,
    typer.Option(
        metavar="T",
        help="End at T seconds of simulation time, counted likewise.",
        callback=_positive,
    ),
]
OnFaultFlag = Annotated[
    OnFault | None,
    typer.Option(
        help="Whether a fault leaves the run paused or ends it with status 3. "
        "By default pause if there are keys, else exit.",
        show_default=False,
    ),
]
WatchFlag = Annotated[
    bool,
    typer.Option(
        "--watch",
        help="Reload when a file changes: the model with all it is made of, its plugins, or its "
        "extensions.",
    ),
]
KeepStateFlag = Annotated[
    bool,
    typer.Option(
        "--keep-state/--no-keep-state",
        help="Whether a model that --watch reloads goes on with the state of the old one, by name.",
    ),
]
InitialStateFlag = Annotated[
    list[str] | None,
    typer.Option(
        "--initial-state",
        "-i",
        metavar="JOINT=VALUE",
        help="Start a joint there, also after a reset: numbers parted by commas, or the name of a "
        "YAML or JSON file with joints and their numbers; may be given several times.",
        show_default=False,
    ),
]
RestoreFlag = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Go on from a checkpoint of this model, with its options; --option comes after it.",
        show_default=False,
    ),
]
AtExitFlag = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint-at-exit",
        metavar="FILE",
        help="Keep a checkpoint in FILE when the run ends, however it ends.",
        show_default=False,
    ),
]
HeadlessFlag = Annotated[
    bool, typer.Option("--headless", help="No live line and no keys, even on a terminal.")
]


def run(
    model: ModelArgument,
    *,
    paused: PausedFlag = False,
    realtime: RealtimeFlag = 1.0,
    steps: StepsFlag = None,
    seconds: SecondsFlag = None,
    option: OptionFlag = None,
    plugins: PluginsFlag = None,
    extension: ExtensionFlag = None,
    initial_state: InitialStateFlag = None,
    restore: RestoreFlag = None,
    checkpoint_at_exit: AtExitFlag = None,
    on_fault: OnFaultFlag = None,
    watch: WatchFlag = False,
    keep_state: KeepStateFlag = True,
    headless: HeadlessFlag = False,
    json: JsonFlag = False,
    _debug: DebugFlag = False,
) -> None:
    """Host a model: step it in real time until a limit, a fault, q, Ctrl-C or SIGTERM.

    On a terminal there is a live line (simulation time, real-time factor, faults, step rate, what
    the wall time went into) and there are keys: space pause or resume, . step, r reset,
    l reload, c clear fault, q quit. The summary, or with --json the record, goes to stdout.

    * `mjhost run demo`
    * `mjhost run robot.xml --paused`
    * `mjhost run robot.xml --plugins controller.py --plugins wind.yaml --watch`
    * `mjhost run robot.xml --extension actuators.py --watch`
    * `mjhost run robot.xml --restore standing.ckpt --checkpoint-at-exit end.ckpt`
    * `mjhost run robot.xml --seconds 10 --realtime 0 --option solver=CG --json`
    """
    inputs = option_inputs(option)
    keyboard = None if headless else Keyboard.of_stdin()
    _refuse_to_hang(paused=paused, on_fault=on_fault, keys=keyboard is not None)
    path = model_path(model)
    sources = bring_in_all(extension or ())
    files = Watch(path, extensions=sources) if watch else None
    start = initial_states(initial_state or ())
    with hosted(path, plugins or (), realtime=realtime, initial_state=start) as (env, loaded):
        say_failures(loaded)
        restore_from(env, restore)
        applied = env.apply_runtime_options(inputs)
        plan = Plan(
            paused=paused,
            steps=steps,
            seconds=seconds,
            keep_state=keep_state,
            exit_on_fault=(on_fault or _default_on_fault(keyboard)) is OnFault.EXIT,
            options=applied.patch.as_dict() if applied.patch is not None else {},
            failures=loaded.failures,
        )
        for warning in applied.warnings:
            output.note(f"warning: {warning}")
        line = StatusLine(sys.stderr, live=not headless)
        record = Session(env, plan, line, keyboard, files).run()
        if checkpoint_at_exit is not None:
            keep(env, checkpoint_at_exit)
    _finish(record, json=json)


def _refuse_to_hang(*, paused: bool, on_fault: OnFault | None, keys: bool) -> None:
    """Without keys nobody could ever resume what stands still."""
    if keys:
        return
    if paused:
        raise typer.BadParameter(_NO_KEYS, param_hint="'--paused'")
    if on_fault is OnFault.PAUSE:
        raise typer.BadParameter(f"{_NO_KEYS}; use exit", param_hint="'--on-fault pause'")


def _default_on_fault(keyboard: Keyboard | None) -> OnFault:
    return OnFault.EXIT if keyboard is None else OnFault.PAUSE


def _finish(record: RunRecord, *, json: bool) -> None:
    if json:
        output.say_json(record)
    else:
        output.say(summary_text(record))
    if record.ended_by is End.FAULT:
        raise typer.Exit(ExitStatus.FAULT)
