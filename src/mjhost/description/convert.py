"""Descriptions of robots, as specs that the engine compiles.

Owns: ``load`` and ``compose``, the order of an import, and what is done with a description beyond
what the engine's own reader does: base, actuators, mimic joints, SRDF, what collides with what,
worlds.
Invariants: everything that was guessed or left out is in the report.
Failure: ``ModelLoadError`` naming file, link or joint; nothing is left behind.
Not a goal: keeping a URDF. What comes out is MJCF.
"""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
import mujoco

from mjhost.description import actuators as drives
from mjhost.description import checks, contacts, mimic, urdf
from mjhost.description import srdf as semantics
from mjhost.description.assets import embed
from mjhost.description.packages import PackageMap, Packages
from mjhost.description.report import ImportReport, NoteKind, Notes
from mjhost.description.worlds import (
    ORIGIN,
    UPRIGHT,
    Part,
    Position,
    Quaternion,
    World,
    check_world,
    placed,
)
from mjhost.description.xacro import expanded
from mjhost.errors import InvalidArgumentError, ModelLoadError

Base: TypeAlias = Literal["auto", "fixed", "free"]


class Description(msgspec.Struct, frozen=True, eq=False):
    """A description that was read.

    Attributes:
        spec: what the engine compiles, with its assets.
        report: what was converted, guessed, left out, or looks wrong.
        model: what the engine made of the spec for the report; ``None`` where nobody asked for it.
    """

    spec: mujoco.MjSpec
    report: ImportReport
    model: mujoco.MjModel | None = None


class Robot(msgspec.Struct, frozen=True, kw_only=True):
    """One robot among several.

    Attributes:
        source: path of a URDF, xacro or MJCF file, or a ``Description``.
        prefix: of all its names, such as ``"left_"``.
        pos: of its base in the world, m.
        quat: of its base in the world, w x y z.
        options: of ``load``, for a file that is a URDF or xacro.
    """

    source: Any
    prefix: str = ""
    pos: Position = ORIGIN
    quat: Quaternion = UPRIGHT
    options: Mapping[str, Any] = {}


def load(
    source: str | os.PathLike[str],
    *,
    packages: PackageMap | None = None,
    srdf: str | os.PathLike[str] | None = None,
    prefix: str = "",
    base: Base = "auto",
    actuators: str = "auto",
    visuals: bool = True,
    balance_inertia: bool = False,
    xacro_args: Mapping[str, str] | None = None,
    world: World = "none",
) -> Description:
    """Reads a URDF or xacro file, or URDF text.

    Args:
        source: a path, or text, told by its ``<``.
        packages: folders of packages by name; others are looked for above the file, in
            ``ROS_PACKAGE_PATH`` and in ``AMENT_PREFIX_PATH``.
        srdf: path of an SRDF: links that never touch, poses with names.
        prefix: of all names.
        base: ``"fixed"``, ``"free"``, or ``"auto"``: fixed, as a URDF means it, and noted.
        actuators: ``"auto"`` takes what ``<ros2_control>`` or ``<transmission>`` declare, else
            motors; ``"none"``, ``"motor"``, ``"position"`` or ``"velocity"`` for every joint.
        visuals: keep what is only seen; without, a robot loads faster and looks like what collides.
        balance_inertia: mend inertias that no body can have, instead of refusing them.
        xacro_args: arguments of a xacro file.
        world: ``"ground"`` puts it on a floor with a light.

    Raises:
        ModelLoadError: something in it cannot be; the message names link, joint or file.
    """
    if base not in ("auto", "fixed", "free"):
        raise InvalidArgumentError(f"base must be auto, fixed or free, got {base!r}")
    _check_texts(source=source, prefix=prefix, srdf=srdf)
    check_world(world)
    notes = Notes()
    text, label, beside = _text(source, packages, xacro_args)
    finder = Packages(packages, beside)
    prepared = urdf.prepare(
        text,
        label,
        finder,
        notes,
        balance=balance_inertia,
        floats=base == "free",
        visuals=visuals,
    )
    spec = _robot_spec(prepared, label, base, notes)
    drives.add(spec, prepared.element, prepared.joints, actuators, notes)
    if srdf is not None:
        semantics.add(spec, Path(srdf), prepared.joints, notes)
    spec = placed([Part(spec, prefix)], world, notes)
    model = _compiled(spec, label)
    checks.check_model(model, notes)
    return Description(spec, _report(model, label, prepared.name, notes), model)


def compose(robots: Iterable[Robot], *, world: World = "ground") -> Description:
    """Puts several robots into one world, each with a prefix and a pose.

    Raises:
        InvalidArgumentError: two robots have the same prefix.
        ModelLoadError: one cannot be read, or they do not go together.
    """
    check_world(world)
    parts, notes, names = [], Notes(), []
    seen: set[str] = set()
    for robot in robots:
        if robot.prefix in seen:
            raise InvalidArgumentError(
                f"two robots have the prefix {robot.prefix!r}: their names would meet"
            )
        seen.add(robot.prefix)
        read = _read(robot)
        for note in read.report.notes:
            subject = f"{robot.prefix}: {note.subject}" if robot.prefix else note.subject
            notes.add(note.kind, subject, note.text, note.hint)
        names.append(read.report.robot)
        pos = _numbers(robot.pos, 3, f"pos of {robot.prefix!r}")
        quat = _numbers(robot.quat, 4, f"quat of {robot.prefix!r}")
        if not any(quat):
            raise InvalidArgumentError(f"quat of {robot.prefix!r} must not be zero")
        parts.append(Part(read.spec, robot.prefix, pos, quat))
    if not parts:
        raise InvalidArgumentError("there are no robots to be put into a world")
    if "" in seen and len(parts) > 1:
        raise InvalidArgumentError("each of several robots needs a prefix for its names")
    spec = placed(parts, world, notes)
    model = _compiled(spec, "several robots")
    checks.check_start(model, notes, prefixes=[part.prefix for part in parts])
    return Description(spec, _report(model, "several robots", ", ".join(names), notes), model)


def _read(robot: Robot) -> Description:
    if isinstance(robot.source, Description):
        return msgspec.structs.replace(robot.source, spec=robot.source.spec.copy())
    if is_description(robot.source):
        return load(robot.source, **robot.options)
    try:
        spec = mujoco.MjSpec.from_file(os.fspath(robot.source))
    except (ValueError, OSError) as error:
        raise ModelLoadError(f"{robot.source}: {error}") from error
    embed(spec)
    return Description(spec, ImportReport(source=str(robot.source), robot=spec.modelname))


def _check_texts(source: Any, prefix: Any, srdf: Any) -> None:
    for what, value in (("source", source), ("srdf", srdf)):
        if not isinstance(value, (str, os.PathLike)) and not (what == "srdf" and value is None):
            kinds = "a path or text" if what == "source" else "a path"
            raise InvalidArgumentError(f"{what} must be {kinds}, got {type(value).__name__}")
    if not isinstance(prefix, str):
        raise InvalidArgumentError(f"prefix must be text, got {type(prefix).__name__}")


def _numbers(values: Any, count: int, what: str) -> Any:
    try:
        found = tuple(float(value) for value in values)
    except (TypeError, ValueError):
        found = ()
    if len(found) != count or not all(map(math.isfinite, found)):
        raise InvalidArgumentError(f"{what} must be {count} numbers, got {values!r}")
    return found


def is_description(source: Any) -> bool:
    """Whether a source is a URDF or xacro, by its name or its text."""
    if isinstance(source, str) and "<" in source:
        return "<robot" in source[:4096]
    suffix = Path(os.fspath(source)).suffix.lower()
    return suffix in (".urdf", ".xacro")


# -- the steps of an import ------------------------------------------------------------------------


def _text(
    source: str | os.PathLike[str], packages: PackageMap | None, arguments: Any
) -> tuple[str | bytes, str, Path | None]:
    if isinstance(source, str) and "<" in source:
        return source, "the description", None
    path = Path(source).expanduser().absolute()
    if not path.is_file():
        raise ModelLoadError(f"{path}: there is no such file")
    if path.suffix.lower() == ".xacro":
        return expanded(path, Packages(packages, path.parent), arguments), str(path), path.parent
    if arguments:
        raise InvalidArgumentError(f"{path} is no xacro file: xacro_args mean nothing to it")
    return path.read_bytes(), str(path), path.parent


def _robot_spec(prepared: urdf.Prepared, label: str, base: Base, notes: Notes) -> mujoco.MjSpec:
    """What the engine reads, with base, contacts and mimic joints as they are meant."""
    spec = _engine_spec(prepared, label)
    contacts.sort_geoms(spec, prepared, notes)
    contacts.weigh_shells(spec)
    _set_base(spec, prepared, base, notes)
    if base != "free":
        contacts.part_neighbours(spec, prepared, notes)
    mimic.couple(spec, prepared.joints, notes)
    checks.check_joints(prepared.joints, notes)
    return spec


def _engine_spec(prepared: urdf.Prepared, label: str) -> mujoco.MjSpec:
    try:
        spec = mujoco.MjSpec.from_string(prepared.xml, assets=prepared.assets)
    except ValueError as error:
        raise ModelLoadError(f"{label} is not read by the engine: {_one_line(error)}") from error
    spec.modelname = prepared.name
    return spec


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _set_base(spec: mujoco.MjSpec, prepared: urdf.Prepared, base: Base, notes: Notes) -> None:
    root = spec.body(prepared.root)
    if root is None or prepared.root == "world":
        if base == "free":
            raise ModelLoadError(
                f"the root link {prepared.root!r} of {prepared.name!r} is the world, so it cannot "
                "be free"
            )
        return
    if base == "free":
        root.add_freejoint(name=f"{prepared.root}_free")
    elif base == "auto":
        notes.add(
            NoteKind.DEFAULTED,
            f"base {prepared.root}",
            "fixed to the world, as a URDF means it",
            "base='free' (--base free) for one that walks, flies or rolls",
        )


def _compiled(spec: mujoco.MjSpec, label: str) -> mujoco.MjModel:
    # What the compiler warns of is also in the spec, where a load finds it.
    warnings.filterwarnings("ignore", category=UserWarning, module=re.escape(__name__))
    try:
        return spec.compile()
    except ValueError as error:
        raise ModelLoadError(f"{label} does not compile: {_one_line(error)}") from error


def _report(model: mujoco.MjModel, label: str, name: str, notes: Notes) -> ImportReport:
    return ImportReport(
        source=label,
        robot=name,
        links=model.nbody - 1,
        joints=model.njnt,
        meshes=model.nmesh,
        actuators=model.nu,
        mass=float(model.body_subtreemass[0]),
        notes=tuple(notes.found),
    )
