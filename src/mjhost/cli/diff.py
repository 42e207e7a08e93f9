"""The command ``mjhost diff``: what differs between two checkpoints or two models."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import mujoco
import typer

from mjhost.checkpoint import Checkpoint, Difference, compare, compare_models, files
from mjhost.cli import output
from mjhost.cli.arguments import DebugFlag, ExtensionFlag, JsonFlag, model_path
from mjhost.cli.exits import ExitStatus
from mjhost.cli.hosting import bring_in_all
from mjhost.env.loading import ModelSource, compile_source

_HELP = "A checkpoint file, or a model as for mjhost run."
FirstArgument = Annotated[str, typer.Argument(metavar="A", help=_HELP, show_default=False)]
SecondArgument = Annotated[str, typer.Argument(metavar="B", help=_HELP, show_default=False)]


def diff(
    one: FirstArgument,
    other: SecondArgument,
    *,
    extension: ExtensionFlag = None,
    json: JsonFlag = False,
    _debug: DebugFlag = False,
) -> None:
    """Show what differs between two checkpoints, or between two models, by name.

    Numbers are compared to the last bit. Status 0 if nothing differs, 1 if something does.

    * `mjhost diff before.ckpt after.ckpt`
    * `mjhost diff robot.xml robot_new.xml`
    """
    bring_in_all(extension or ())
    ours, theirs = _read(one), _read(other)
    differences = _differences(ours, theirs)
    if json:
        output.say_json([_row(difference) for difference in differences])
    else:
        for difference in differences:
            output.say(str(difference))
        if not differences:
            output.say("nothing differs")
    if differences:
        raise typer.Exit(ExitStatus.FAILED)


def _differences(
    ours: Checkpoint | mujoco.MjModel, theirs: Checkpoint | mujoco.MjModel
) -> list[Difference]:
    if isinstance(ours, Checkpoint) and isinstance(theirs, Checkpoint):
        return compare(ours, theirs)
    if isinstance(ours, Checkpoint) or isinstance(theirs, Checkpoint):
        raise typer.BadParameter(
            "needs two checkpoints or two models, got one of each", param_hint="'A', 'B'"
        )
    return compare_models(ours, theirs)


def _read(text: str) -> Checkpoint | mujoco.MjModel:
    if _is_checkpoint(Path(text)):
        return Checkpoint.load(text)
    return compile_source(ModelSource.of(model_path(text))).model


def _is_checkpoint(path: Path) -> bool:
    """Whether a file begins like one, so that a damaged one is told to be that."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(files.MAGIC)) == files.MAGIC


def _row(difference: Difference) -> dict[str, Any]:
    largest = None if math.isnan(difference.largest) else difference.largest
    return {
        "part": difference.part,
        "name": difference.name,
        "text": difference.text,
        "largest": largest,
    }
