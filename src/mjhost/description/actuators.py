"""Actuators of a description: those it declares, or those that were asked for.

Invariants: ranges are those of ``<limit>``; what a description does not say is guessed, and the
guess is noted. A joint that mimics another gets none.
"""

from __future__ import annotations

import math
from typing import Final
from xml.etree.ElementTree import Element

import mujoco

from mjhost.description.report import NoteKind, Notes
from mjhost.description.urdf import Joint, is_limited
from mjhost.errors import InvalidArgumentError

MODES: Final = ("auto", "none", "motor", "position", "velocity")
_INTERFACES: Final = {"effort": "motor", "position": "position", "velocity": "velocity"}
_DRIVEN: Final = frozenset({"revolute", "continuous", "prismatic"})
_FULL_EFFORT_AT: Final = 0.1  # rad or m: the error at which a guessed servo pushes with all it has
_EFFORT: Final = 100.0  # N·m or N where a description gives none


def add(
    spec: mujoco.MjSpec, robot: Element, joints: tuple[Joint, ...], mode: str, notes: Notes
) -> None:
    """Adds actuators for the joints that can have one."""
    if mode not in MODES:
        raise InvalidArgumentError(f"actuators must be one of {', '.join(MODES)}, got {mode!r}")
    declared = _declared(robot) if mode == "auto" else {}
    free = [joint for joint in joints if joint.mimic is None and joint.type in _DRIVEN]
    if mode == "none" or not free:
        return
    if mode == "auto" and not declared:
        notes.add(
            NoteKind.DEFAULTED,
            "actuators",
            "the description declares none: a motor (N·m or N) for each joint",
            "choose with actuators=, --actuators",
        )
        declared = {joint.name: "motor" for joint in free}
    elif mode == "auto":
        _note_undriven(declared, free, notes)
    for joint in free:
        kind = declared.get(joint.name) if mode == "auto" else mode
        if kind is not None:
            _add(spec, joint, kind, notes)


def _note_undriven(declared: dict[str, str], free: list[Joint], notes: Notes) -> None:
    """Tells which joints are declared in vain, and which are not."""
    names = [joint.name for joint in free]
    for name in declared:
        if name not in names:
            text = "is declared for a joint that is not there, does not move or mimics another"
            notes.add(NoteKind.DROPPED, f"actuator {name}", text)
    passive = [name for name in names if name not in declared]
    if passive:
        text = f"the description declares none for {', '.join(passive)}: they move freely"
        notes.add(NoteKind.DEFAULTED, "actuators", text, "choose with actuators=, --actuators")


def _declared(robot: Element) -> dict[str, str]:
    """The kind of actuator per joint that ``<ros2_control>`` or ``<transmission>`` ask for."""
    found: dict[str, str] = {}
    for joint in robot.findall("ros2_control/joint"):
        for interface in joint.findall("command_interface"):
            kind = _INTERFACES.get(interface.get("name", ""))
            if kind is not None:
                found.setdefault(joint.get("name", ""), kind)
    for joint in robot.findall("transmission/joint"):
        word = (joint.findtext("hardwareInterface") or "effort").rpartition("/")[2].lower()
        kind = next((k for name, k in _INTERFACES.items() if word.startswith(name)), "motor")
        found.setdefault(joint.get("name", ""), kind)
    return found


def _add(spec: mujoco.MjSpec, joint: Joint, kind: str, notes: Notes) -> None:
    effort = joint.limit.effort if joint.limit is not None else 0.0
    if not 0 < effort < math.inf:
        effort = 0.0
        guess = "its force has no bound" if kind == "motor" else f"its gains are for {_EFFORT:g}"
        notes.add(
            NoteKind.DEFAULTED,
            f"actuator {joint.name}",
            f"no effort in the limit: {guess}",
            "give the joint its <limit effort=>",
        )
    actuator = spec.add_actuator(
        name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT
    )
    if effort > 0:
        actuator.forcerange = [-effort, effort]
        actuator.forcelimited = mujoco.mjtLimited.mjLIMITED_TRUE
    _DRIVES[kind](actuator, joint, effort if effort > 0 else _EFFORT, bounded=effort > 0)


def _motor(actuator: mujoco.MjsActuator, joint: Joint, effort: float, *, bounded: bool) -> None:
    del joint
    if bounded:
        _range(actuator, -effort, effort)


def _position(actuator: mujoco.MjsActuator, joint: Joint, effort: float, *, bounded: bool) -> None:
    del bounded
    stiffness = effort / _FULL_EFFORT_AT
    actuator.gaintype = mujoco.mjtGain.mjGAIN_FIXED
    actuator.biastype = mujoco.mjtBias.mjBIAS_AFFINE
    actuator.gainprm[0] = stiffness
    actuator.biasprm[:3] = [0.0, -stiffness, 1.0]  # positive: a damping ratio, not a gain
    if is_limited(joint) and joint.limit is not None:
        _range(actuator, joint.limit.lower, joint.limit.upper)


def _velocity(actuator: mujoco.MjsActuator, joint: Joint, effort: float, *, bounded: bool) -> None:
    del bounded
    fastest = joint.limit.velocity if joint.limit is not None else 0.0
    gain = effort / (_FULL_EFFORT_AT * (fastest if fastest > 0 else 1.0))
    actuator.gaintype = mujoco.mjtGain.mjGAIN_FIXED
    actuator.biastype = mujoco.mjtBias.mjBIAS_AFFINE
    actuator.gainprm[0] = gain
    actuator.biasprm[:3] = [0.0, 0.0, -gain]
    if fastest > 0 and math.isfinite(fastest):
        _range(actuator, -fastest, fastest)


def _range(actuator: mujoco.MjsActuator, low: float, high: float) -> None:
    actuator.ctrlrange = [low, high]
    actuator.ctrllimited = mujoco.mjtLimited.mjLIMITED_TRUE


_DRIVES: Final = {"motor": _motor, "position": _position, "velocity": _velocity}
