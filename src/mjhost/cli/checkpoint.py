"""The command ``mjhost checkpoint``: runs a model for a while, unpaced, and keeps where it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mjhost.cli import output
from mjhost.cli.arguments import (
    DebugFlag,
    ExtensionFlag,
    JsonFlag,
    ModelArgument,
    PluginsFlag,
    model_path,
    option_inputs,
)
from mjhost.cli.exits import ExitStatus
from mjhost.cli.hosting import bring_in_all, hosted, say_failures
from mjhost.cli.keeping import keep, restore_from
from mjhost.cli.run import RestoreFlag, SecondsFlag, StepsFlag
from mjhost.env import MujocoEnv
from mjhost.errors import FaultError

OutputFlag = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", help="Where to keep the checkpoint.")
]
LongOptionFlag = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="Set a run-time option; may be given several times. All of them or none take effect.",
        show_default=False,
    ),
]


def checkpoint(
    model: ModelArgument,
    *,
    file: OutputFlag,
    seconds: SecondsFlag = None,
    steps: StepsFlag = None,
    restore: RestoreFlag = None,
    option: LongOptionFlag = None,
    plugins: PluginsFlag = None,
    extension: ExtensionFlag = None,
    json: JsonFlag = False,
    _debug: DebugFlag = False,
) -> None:
    """Run a model to a time or step, as fast as it goes, and keep a checkpoint of it in a file.

    Whoever restores the file goes on to the same bits: `mjhost run --restore`, or
    `env.restore(Checkpoint.load(file))`. Without a limit it is the state after the load. A fault
    keeps nothing and is status 3.

    * `mjhost checkpoint humanoid --seconds 2 -o settled.ckpt`
    * `mjhost checkpoint humanoid --restore settled.ckpt --seconds 4 -o later.ckpt`
    """
    if seconds is not None and steps is not None:
        raise typer.BadParameter("needs one limit, got both", param_hint="'--seconds', '--steps'")
    inputs = option_inputs(option)
    bring_in_all(extension or ())
    with hosted(model_path(model), plugins or (), realtime=None) as (env, loaded):
        say_failures(loaded)
        restore_from(env, restore)
        env.apply_runtime_options(inputs)
        _go(env, seconds, steps)
        kept = keep(env, file)
    if json:
        output.say_json(kept)
    else:
        output.say(f"{kept.file}: {kept.model} after {kept.steps:,} steps, {kept.sim_time:.9g} s")


def _go(env: MujocoEnv, seconds: float | None, steps: int | None) -> None:
    """Steps to the limit, which lies ahead."""
    if seconds is None and steps is None:
        return
    env.stop_at(steps=steps, time=seconds)
    try:
        while env.step(1_000_000).completed == 1_000_000:
            continue
    except FaultError as error:
        output.note(f"error: {output.told(error)}")
        raise typer.Exit(ExitStatus.FAULT) from error
