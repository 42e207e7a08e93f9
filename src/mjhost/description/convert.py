"""Descriptions of robots, as specs that the engine compiles.

Owns: ``load`` and ``compose``, the order of an import, and what is done with a description beyond
what the engine's own reader does: base, actuators, mimic joints, SRDF, what collides with what,
worlds.
Invariants: everything that was guessed or left out is in the report.
Failure: ``ModelLoadError`` naming file, link or joint; nothing is left behind.
Not a goal: keeping a URDF. What comes out is MJCF.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec
import mujoco
import numpy as np

from mjhost.description import actuators as drives
from mjhost.description import srdf as semantics
from mjhost.description import urdf
from mjhost.description.packages import PackageMap, Packages
from mjhost.description.report import ImportReport, NoteKind, Notes
from mjhost.description.xacro import expanded
from mjhost.errors import InvalidArgumentError, ModelLoadError

Base: TypeAlias = Literal["auto", "fixed", "free"]
World: TypeAlias = Literal["none", "ground"]

VISUAL_GROUP: Final = 2
COLLISION_GROUP: Final = 3

_PRIMITIVES: Final = frozenset(
    int(getattr(mujoco.mjtGeom, f"mjGEOM_{word}"))
    for word in ("SPHERE", "CAPSULE", "ELLIPSOID", "CYLINDER", "BOX")
)


class Description(msgspec.Struct, frozen=True, eq=False):
    """A description that was read.

    Attributes:
        spec: what the engine compiles, with its assets.
        report: what was converted, guessed, left out, or looks wrong.
        files: what it was read from, for watchers.
    """

    spec: mujoco.MjSpec
    report: ImportReport
    files: tuple[Path, ...] = ()


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
    pos: tuple[float, float, float] = (0.0, 0.0, 0.0)
    quat: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    options: Mapping[str, Any] = {}


def load(
    source: str | os.PathLike[str],
    *,
    packages: PackageMap | None = None,
    srdf: str | os.PathLike[str] | None = None,
    prefix: str = "",
    base: Base = "auto",
    actuators: str = "auto",
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
        balance_inertia: mend inertias that no body can have, instead of refusing them.
        xacro_args: arguments of a xacro file.
        world: ``"ground"`` puts it on a floor with a light.

    Raises:
        ModelLoadError: something in it cannot be; the message names link, joint or file.
    """
    if base not in ("auto", "fixed", "free"):
        raise InvalidArgumentError(f"base must be auto, fixed or free, got {base!r}")
    notes = Notes()
    text, label, beside = _text(source, packages, xacro_args)
    finder = Packages(packages, beside)
    prepared = urdf.prepare(
        text, label, finder, notes, balance=balance_inertia, floats=base == "free"
    )
    spec = _engine_spec(prepared, label)
    _sort_geoms(spec, prepared, notes)
    _weigh_shells(spec)
    _set_base(spec, prepared, base, notes)
    _couple(spec, prepared, notes)
    drives.add(spec, prepared.element, prepared.joints, actuators, notes)
    if srdf is not None:
        _add_semantics(spec, Path(srdf), notes)
    if prefix or world != "none":
        spec = _placed([(spec, prefix, _ORIGIN, _UPRIGHT)], world)
    return Description(spec, _report(spec, label, prepared.name, notes))


def compose(robots: Iterable[Robot], *, world: World = "ground") -> Description:
    """Puts several robots into one world, each with a prefix and a pose.

    Raises:
        InvalidArgumentError: two robots have the same prefix.
        ModelLoadError: one cannot be read, or they do not go together.
    """
    parts, notes, names = [], Notes(), []
    seen: set[str] = set()
    for robot in robots:
        if robot.prefix in seen:
            raise InvalidArgumentError(
                f"two robots have the prefix {robot.prefix!r}: their names would meet"
            )
        seen.add(robot.prefix)
        read = _read(robot)
        notes.found += read.report.notes
        names.append(read.report.robot)
        parts.append((read.spec, robot.prefix, tuple(robot.pos), tuple(robot.quat)))
    if not parts:
        raise InvalidArgumentError("there are no robots to be put into a world")
    if "" in seen and len(parts) > 1:
        raise InvalidArgumentError("each of several robots needs a prefix for its names")
    spec = _placed(parts, world)
    return Description(spec, _report(spec, "several robots", ", ".join(names), notes))


def _read(robot: Robot) -> Description:
    if isinstance(robot.source, Description):
        return robot.source
    if is_description(robot.source):
        return load(robot.source, **robot.options)
    try:
        spec = mujoco.MjSpec.from_file(os.fspath(robot.source))
    except (ValueError, OSError) as error:
        raise ModelLoadError(f"{robot.source}: {error}") from error
    return Description(spec, ImportReport(source=str(robot.source), robot=spec.modelname))


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
    return path.read_bytes(), str(path), path.parent


def _engine_spec(prepared: urdf.Prepared, label: str) -> mujoco.MjSpec:
    try:
        spec = mujoco.MjSpec.from_string(prepared.xml, assets=prepared.assets)
    except ValueError as error:
        raise ModelLoadError(f"{label} is not read by the engine: {_one_line(error)}") from error
    spec.modelname = prepared.name
    return spec


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _sort_geoms(spec: mujoco.MjSpec, prepared: urdf.Prepared, notes: Notes) -> None:
    """Groups what is seen and what collides; a link without the latter lends its primitives."""
    for body in spec.bodies:
        seen = [geom for geom in body.geoms if _is_visual(geom)]
        for geom in body.geoms:
            geom.group = VISUAL_GROUP if _is_visual(geom) else COLLISION_GROUP
        if body.name not in prepared.visual_only:
            continue
        lent = [geom for geom in seen if int(geom.type) in _PRIMITIVES]
        for geom in lent:
            body.add_geom(
                type=geom.type,
                size=geom.size,
                pos=geom.pos,
                quat=geom.quat,
                group=COLLISION_GROUP,
                density=0,
            )
        if lent:
            text = f"has nothing that collides: {len(lent)} visual primitive(s) do"
            notes.add(NoteKind.DEFAULTED, f"link {body.name}", text)
        elif seen:
            text = "has only meshes to be seen: nothing of it collides"
            notes.add(NoteKind.DEFAULTED, f"link {body.name}", text, "give it <collision>")


def _weigh_shells(spec: mujoco.MjSpec) -> None:
    """Meshes that are only seen need no volume: many are open, or flat."""
    solid = {geom.meshname for body in spec.bodies for geom in body.geoms if not _is_visual(geom)}
    for mesh in spec.meshes:
        if mesh.name not in solid:
            mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL


def _is_visual(geom: mujoco.MjsGeom) -> bool:
    return int(geom.contype) == 0 and int(geom.conaffinity) == 0


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


def _couple(spec: mujoco.MjSpec, prepared: urdf.Prepared, notes: Notes) -> None:
    for joint in prepared.joints:
        if joint.mimic is None:
            continue
        other, factor, offset = joint.mimic
        equality = spec.add_equality(
            name=f"{joint.name}_mimic",
            type=mujoco.mjtEq.mjEQ_JOINT,
            objtype=mujoco.mjtObj.mjOBJ_JOINT,
            name1=joint.name,
            name2=other,
        )
        equality.data[:5] = [offset, factor, 0.0, 0.0, 0.0]
        text = f"mimics {other}: an equality constraint, {factor:g} x + {offset:g}"
        notes.add(NoteKind.CONVERTED, f"joint {joint.name}", text)


def _add_semantics(spec: mujoco.MjSpec, path: Path, notes: Notes) -> None:
    try:
        found = semantics.read(path.read_bytes(), str(path), notes)
    except OSError as error:
        raise ModelLoadError(f"{path} cannot be read: {error.strerror or error}") from error
    bodies = {body.name for body in spec.bodies}
    excluded = 0
    for one, other in dict.fromkeys(tuple(sorted(pair)) for pair in found.apart):
        if one in bodies and other in bodies:
            spec.add_exclude(bodyname1=one, bodyname2=other)
            excluded += 1
    if excluded:
        notes.add(NoteKind.CONVERTED, path.name, f"{excluded} pairs of links do not collide")
    if found.poses:
        _add_poses(spec, found.poses, notes)


def _add_poses(
    spec: mujoco.MjSpec, poses: dict[str, dict[str, tuple[float, ...]]], notes: Notes
) -> None:
    model = spec.copy().compile()
    for name, joints in poses.items():
        qpos = np.array(model.qpos0)
        for joint, values in joints.items():
            index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, joint)
            if index < 0:
                notes.add(NoteKind.DROPPED, f"pose {name}", f"there is no joint {joint!r}")
                continue
            at = int(model.jnt_qposadr[index])
            qpos[at : at + len(values)] = values
        spec.add_key(name=name, qpos=qpos)
        notes.add(NoteKind.CONVERTED, f"pose {name}", "a keyframe")


def _placed(parts: list[tuple[mujoco.MjSpec, str, Any, Any]], world: World) -> mujoco.MjSpec:
    """One spec of several, each attached at its pose."""
    if world not in ("none", "ground"):
        raise InvalidArgumentError(f"world must be none or ground, got {world!r}")
    if len(parts) == 1 and parts[0][1:] == ("", _ORIGIN, _UPRIGHT):
        whole = parts[0][0]
    else:
        whole = mujoco.MjSpec()
        assets: dict[str, bytes] = {}
        for spec, prefix, pos, quat in parts:
            assets |= spec.assets
            frame = whole.worldbody.add_frame(pos=pos, quat=quat)
            whole.attach(spec, prefix=prefix, frame=frame)
        whole.assets = assets
    if world == "ground":
        _add_ground(whole)
    return whole


_ORIGIN: Final = (0.0, 0.0, 0.0)
_UPRIGHT: Final = (1.0, 0.0, 0.0, 0.0)


def _add_ground(spec: mujoco.MjSpec) -> None:
    """A floor that is seen to be one, and a light."""
    texture = spec.add_texture(
        name="ground",
        type=mujoco.mjtTexture.mjTEXTURE_2D,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
        width=300,
        height=300,
        rgb1=[0.32, 0.36, 0.4],
        rgb2=[0.27, 0.3, 0.34],
    )
    material = spec.add_material(name="ground", texrepeat=[5, 5], texuniform=True)
    material.textures[int(mujoco.mjtTextureRole.mjTEXROLE_RGB)] = texture.name
    spec.worldbody.add_light(
        name="sun", pos=[0, 0, 4], dir=[0, 0, -1], type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL
    )
    spec.worldbody.add_geom(
        name="ground", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 0.1], material="ground"
    )


def _report(spec: mujoco.MjSpec, label: str, name: str, notes: Notes) -> ImportReport:
    try:
        model = spec.copy().compile()
    except ValueError as error:
        raise ModelLoadError(f"{label} does not compile: {_one_line(error)}") from error
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
