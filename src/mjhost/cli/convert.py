"""The command ``mjhost convert``: a robot description as MJCF, and a report of what was guessed."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mjhost import description
from mjhost.cli import import_report, output
from mjhost.cli.arguments import DebugFlag, JsonFlag
from mjhost.cli.exits import ExitStatus
from mjhost.description import ImportReport, NoteKind, export


class BaseChoice(StrEnum):
    """How the base is held."""

    AUTO = "auto"
    FIXED = "fixed"
    FREE = "free"


class ActuatorChoice(StrEnum):
    """What drives the joints."""

    AUTO = "auto"
    NONE = "none"
    MOTOR = "motor"
    POSITION = "position"
    VELOCITY = "velocity"


class WorldChoice(StrEnum):
    """What is around the robot."""

    NONE = "none"
    GROUND = "ground"


FileArgument = Annotated[
    Path, typer.Argument(metavar="ROBOT", help="A URDF or xacro file.", show_default=False)
]
FolderFlag = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="A new folder for the MJCF.")
]
PackageFlag = Annotated[
    list[str] | None,
    typer.Option(
        "--package",
        metavar="NAME=DIR",
        help="Where a package is; may be given several times. Others are looked for above the "
        "file, in ROS_PACKAGE_PATH and AMENT_PREFIX_PATH.",
        show_default=False,
    ),
]
XacroFlag = Annotated[
    list[str] | None,
    typer.Option(
        "--xacro-arg",
        metavar="NAME=VALUE",
        help="An argument of a xacro file; may be given several times.",
        show_default=False,
    ),
]


class ConvertRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What was written, and the report."""

    file: str
    report: ImportReport


def convert(
    robot: FileArgument,
    *,
    folder: FolderFlag,
    package: PackageFlag = None,
    srdf: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Links that never touch, named poses.")
    ] = None,
    prefix: Annotated[str, typer.Option(metavar="TEXT", help="Begins every name.")] = "",
    base: Annotated[BaseChoice, typer.Option(help="How the base is held.")] = BaseChoice.AUTO,
    actuators: Annotated[
        ActuatorChoice, typer.Option(help="What drives the joints.")
    ] = ActuatorChoice.AUTO,
    visuals: Annotated[
        bool, typer.Option("--visuals/--no-visuals", help="Whether to keep what is only seen.")
    ] = True,
    world: Annotated[WorldChoice, typer.Option(help="What is around.")] = WorldChoice.NONE,
    balance_inertia: Annotated[
        bool, typer.Option("--balance-inertia", help="Mend inertias that no body can have.")
    ] = False,
    xacro_arg: XacroFlag = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an earlier conversion in DIR.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Status 1 if anything looks wrong or was left out.")
    ] = False,
    json: JsonFlag = False,
    _debug: DebugFlag = False,
) -> None:
    """Convert a URDF or xacro robot to MJCF with its meshes, and say what was guessed.

    * `mjhost convert robot.urdf -o robot`
    * `mjhost convert arm.urdf.xacro -o arm --package arm_description=. --actuators position`
    """
    read = description.load(
        robot,
        packages=_pairs(package, "--package") or None,
        srdf=srdf,
        prefix=prefix,
        base=base.value,
        actuators=actuators.value,
        visuals=visuals,
        balance_inertia=balance_inertia,
        xacro_args=_pairs(xacro_arg, "--xacro-arg"),
        world=world.value,
    )
    file = export.write(read.spec, folder, _stem(robot), replace=force)
    if json:
        output.say_json(ConvertRecord(file=str(file), report=read.report))
    else:
        _say(file, read.report)
    wrong = [*read.report.of(NoteKind.SUSPICIOUS), *read.report.of(NoteKind.DROPPED)]
    if strict and wrong:
        output.note(f"error: --strict: {len(wrong)} thing(s) look wrong or were left out")
        raise typer.Exit(ExitStatus.FAILED)


def _stem(robot: Path) -> str:
    """The name of a description without the endings that say what it is."""
    name = robot.name
    while (suffix := Path(name).suffix).lower() in (".urdf", ".xacro"):
        name = name.removesuffix(suffix)
    return name


def _say(file: Path, report: ImportReport) -> None:
    output.say(f"wrote {file}")
    output.say(import_report.summary(report))
    for line in import_report.lines(report):
        output.say(line)


def _pairs(given: list[str] | None, flag: str) -> dict[str, str]:
    pairs = {}
    for text in given or ():
        name, assigned, value = text.partition("=")
        if not assigned or not name:
            raise typer.BadParameter(f"needs NAME=VALUE, got {text!r}", param_hint=f"'{flag}'")
        pairs[name] = value
    return pairs
