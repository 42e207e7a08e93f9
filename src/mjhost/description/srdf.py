"""SRDF: which links never touch, and poses that have names.

Invariants: a pose is a keyframe in which mimic joints follow and position servos hold it. What it
names and the robot has not is in the report.
Failure: ``ModelLoadError`` naming the file and what is wrong there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np

from mjhost.description.documents import parsed
from mjhost.description.report import NoteKind, Notes
from mjhost.description.urdf import Joint
from mjhost.errors import ModelLoadError


class Semantics(NamedTuple):
    """What an SRDF says.

    Attributes:
        apart: pairs of links whose collisions do not count.
        poses: joint positions by the name of the pose; rad or m.
    """

    apart: tuple[tuple[str, str], ...]
    poses: dict[str, dict[str, tuple[float, ...]]]


def read(text: str | bytes, label: str, notes: Notes) -> Semantics:
    """The semantics in a document.

    Raises:
        ModelLoadError: it is none, or a number in it is none.
    """
    root = parsed(text, label, "robot")
    apart = []
    for element in root.findall("disable_collisions"):
        one, other = element.get("link1"), element.get("link2")
        if not one or not other:
            raise ModelLoadError(f"{label} has disable_collisions without two links")
        apart.append((one, other))
    poses: dict[str, dict[str, tuple[float, ...]]] = {}
    for state in root.findall("group_state"):
        name, group = state.get("name", ""), state.get("group", "")
        if not name:
            raise ModelLoadError(f"{label} has a group_state without a name")
        key = name if name not in poses else f"{group}.{name}"
        poses[key] = {
            joint.get("name", ""): _values(joint.get("value", ""), key, label)
            for joint in state.findall("joint")
        }
    for tag in ("virtual_joint", "end_effector", "group"):
        count = len(root.findall(tag))
        if count:
            notes.add(NoteKind.DROPPED, f"<{tag}>", f"{count} element(s) that mean nothing here")
    return Semantics(tuple(apart), poses)


def _values(text: str, pose: str, label: str) -> tuple[float, ...]:
    try:
        values = tuple(float(word) for word in text.split())
    except ValueError:
        values = ()
    if not values or not all(map(math.isfinite, values)):
        raise ModelLoadError(f"pose {pose!r} of {label} has no finite numbers: {text!r}")
    return values


def add(spec: mujoco.MjSpec, path: Path, joints: Iterable[Joint], notes: Notes) -> None:
    """Adds what a file says: contact excludes and keyframes.

    Args:
        spec: of the robot, with its actuators.
        path: of the SRDF.
        joints: of the robot, those that move.
        notes: takes what was done and what could not be.
    """
    try:
        found = read(path.read_bytes(), str(path), notes)
    except OSError as error:
        raise ModelLoadError(f"{path} cannot be read: {error.strerror or error}") from error
    _part(spec, found.apart, path.name, notes)
    if found.poses:
        _add_poses(spec, found.poses, list(joints), notes)


def _part(spec: mujoco.MjSpec, apart: Iterable[tuple[str, str]], file: str, notes: Notes) -> None:
    bodies = {body.name for body in spec.bodies}
    pairs = dict.fromkeys((min(pair), max(pair)) for pair in apart if bodies.issuperset(pair))
    known = {frozenset((exclude.bodyname1, exclude.bodyname2)) for exclude in spec.excludes}
    for one, other in pairs:
        if frozenset((one, other)) not in known:
            spec.add_exclude(bodyname1=one, bodyname2=other)
    if pairs:
        notes.add(NoteKind.CONVERTED, file, f"{len(pairs)} pairs of links do not collide")
    strangers = sorted({name for pair in apart for name in pair} - bodies)
    if strangers:
        text = f"names links that are not there: {', '.join(strangers)}"
        notes.add(NoteKind.DROPPED, file, text)


def _add_poses(
    spec: mujoco.MjSpec,
    poses: dict[str, dict[str, tuple[float, ...]]],
    joints: list[Joint],
    notes: Notes,
) -> None:
    model = spec.copy().compile()
    for name, values in poses.items():
        qpos = np.array(model.qpos0)
        for joint, position in values.items():
            problem = _place(model, qpos, joint, position)
            if problem:
                notes.add(NoteKind.DROPPED, f"pose {name}", problem)
        _follow(model, qpos, [joint for joint in joints if joint.mimic is not None])
        spec.add_key(name=name, qpos=qpos, ctrl=_holding(model, qpos))
        notes.add(NoteKind.CONVERTED, f"pose {name}", "a keyframe")


def _place(model: mujoco.MjModel, qpos: Any, joint: str, position: tuple[float, ...]) -> str:
    """Puts a joint where a pose has it; why it cannot, or nothing."""
    index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, joint)
    if index < 0:
        return f"there is no joint {joint!r} that moves"
    width = _WIDTHS.get(int(model.jnt_type[index]), 1)
    if len(position) != width:
        return f"joint {joint!r} takes {width} number(s), not {len(position)}"
    at = int(model.jnt_qposadr[index])
    qpos[at : at + width] = position
    return ""


_WIDTHS = {int(mujoco.mjtJoint.mjJNT_FREE): 7, int(mujoco.mjtJoint.mjJNT_BALL): 4}


def _follow(model: mujoco.MjModel, qpos: Any, joints: list[Joint]) -> None:
    """Puts joints that mimic others where those have them, whatever a pose says; chains too."""
    for _ in joints:  # a pass for each link of the longest chain
        for joint in joints:
            if joint.mimic is not None:
                other = qpos[int(model.joint(joint.mimic.joint).qposadr[0])]
                at = int(model.joint(joint.name).qposadr[0])
                qpos[at] = joint.mimic.multiplier * other + joint.mimic.offset


def _holding(model: mujoco.MjModel, qpos: Any) -> Any:
    """Controls with which position servos stay where they are."""
    ctrl = np.zeros(model.nu)
    for index in range(model.nu):
        gain, bias = model.actuator_gainprm[index, 0], model.actuator_biasprm[index, 1]
        if gain > 0 and bias == -gain:
            ctrl[index] = qpos[int(model.jnt_qposadr[model.actuator_trnid[index, 0]])]
    return ctrl
