"""How a joint is driven: through a motor, a servo, or by a force on it.

Owns: the table of drives of a model.
Invariants: a drive of kind ``effort`` takes N·m or N of the joint, ``position`` rad or m,
``velocity`` rad/s or m/s; gears and gains are the drive's business.
Failure: a joint without a drive that is understood is told with the reason.
Not a goal: tendons, muscles, and actuators with several inputs or a state.
"""

from __future__ import annotations

import math
from typing import Any, Final, Literal, NamedTuple

import mujoco
import numpy as np

from mjhost.state.actuators import inputs, outputs
from mjhost.state.names import Names, ObjectKind

DriveKind = Literal["effort", "position", "velocity"]

_JOINT: Final = int(mujoco.mjtTrn.mjTRN_JOINT)
_HINGE: Final = int(mujoco.mjtJoint.mjJNT_HINGE)
_SLIDE: Final = int(mujoco.mjtJoint.mjJNT_SLIDE)
_FIXED: Final = int(mujoco.mjtGain.mjGAIN_FIXED)
_NO_BIAS: Final = int(mujoco.mjtBias.mjBIAS_NONE)
_AFFINE: Final = int(mujoco.mjtBias.mjBIAS_AFFINE)
_NO_DYNAMICS: Final = int(mujoco.mjtDyn.mjDYN_NONE)


class Drive(NamedTuple):
    """What moves one joint.

    Attributes:
        joint: name of the joint.
        kind: what it takes.
        qpos: index of the joint's position in ``qpos``.
        dof: index of its velocity in ``qvel``.
        ctrl: index in ``ctrl``; -1: a force in ``qfrc_applied``.
        factor: control per unit that the drive takes.
        low: least position, rad or m; infinite for none.
        high: greatest position, rad or m; infinite for none.
        effort: greatest effort, N·m or N; infinite for none.
        inertia: of the joint in the model's reference position, kg·m² or kg.
    """

    joint: str
    kind: DriveKind
    qpos: int
    dof: int
    ctrl: int
    factor: float
    low: float
    high: float
    effort: float
    inertia: float

    def get(self, data: Any) -> float:
        """What the drive is told now, in its own unit."""
        if self.ctrl < 0:
            return float(data.qfrc_applied[self.dof])
        return float(data.ctrl[self.ctrl]) / self.factor

    def put(self, data: Any, value: float) -> None:
        """Tells it."""
        if self.ctrl < 0:
            data.qfrc_applied[self.dof] = value
        else:
            data.ctrl[self.ctrl] = value * self.factor


def drives(model: Any, names: Names, *, forces: bool) -> tuple[dict[str, Drive], dict[str, str]]:
    """The drives of all hinges and slides by joint; and for the other joints why they have none.

    Args:
        model: the model.
        names: its names.
        forces: whether a joint without an actuator is driven by a force on it.
    """
    found: dict[str, Drive] = {}
    without: dict[str, str] = {}
    for joint, index in names.ids(ObjectKind.JOINT).items():
        if model.jnt_type[index] not in (_HINGE, _SLIDE):
            without[joint] = "it is neither a hinge nor a slide"
            continue
        moved = np.flatnonzero(
            (model.actuator_trntype == _JOINT) & (model.actuator_trnid[:, 0] == index)
        )
        kinds = [(_kind(model, int(a)), int(a)) for a in moved]
        usable = [(kind, a) for kind, a in kinds if kind is not None]
        if len(usable) == 1 and len(kinds) == 1:
            found[joint] = _drive(model, joint, index, usable[0][0], usable[0][1])
        elif not kinds and forces:
            found[joint] = _drive(model, joint, index, "effort", -1)
        elif not kinds:
            without[joint] = "it has no actuator; forces=True drives it by a force"
        elif len(kinds) > 1:
            without[joint] = f"{len(kinds)} actuators move it"
        else:
            actuator = names.name(ObjectKind.ACTUATOR, kinds[0][1])
            without[joint] = (
                f"its actuator {actuator!r} is no motor, position servo or velocity servo without "
                "a state of its own"
            )
    return found, without


def _kind(model: Any, actuator: int) -> DriveKind | None:
    gain, bias = int(model.actuator_gaintype[actuator]), int(model.actuator_biastype[actuator])
    place = inputs(model, actuator)
    plain = int(model.actuator_dyntype[actuator]) == _NO_DYNAMICS and gain == _FIXED
    if not plain or place.stop - place.start != 1 or not model.actuator_gainprm[actuator, 0]:
        return None
    if bias == _NO_BIAS:
        return "effort"
    if bias != _AFFINE:
        return None
    strength = float(model.actuator_gainprm[actuator, 0])
    constant, stiffness, damping = (float(v) for v in model.actuator_biasprm[actuator, :3])
    if constant == 0.0 and stiffness == -strength:
        return "position"
    if constant == 0.0 and stiffness == 0.0 and damping == -strength:
        return "velocity"
    return None


def _drive(model: Any, name: str, joint: int, kind: DriveKind, actuator: int) -> Drive:
    qpos, dof = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
    low, high = -math.inf, math.inf
    if model.jnt_limited[joint]:
        low, high = (float(v) for v in model.jnt_range[joint])
    ctrl, factor, effort = -1, 1.0, math.inf
    if model.jnt_actfrclimited[joint]:
        effort = float(np.abs(model.jnt_actfrcrange[joint]).min())
    if actuator >= 0:
        ctrl = inputs(model, actuator).start
        gear, gain = float(model.actuator_gear[actuator, 0]), 1.0
        if kind == "effort":
            gain = float(model.actuator_gainprm[actuator, 0])
            effort = min(effort, _greatest_effort(model, actuator, ctrl, gain * gear))
            factor = 1.0 / (gain * gear)
        else:
            factor = gear
    inertia = float(model.dof_M0[dof])
    return Drive(name, kind, qpos, dof, ctrl, factor, low, high, effort, inertia)


def _greatest_effort(model: Any, actuator: int, ctrl: int, per_control: float) -> float:
    greatest = math.inf
    out = outputs(model, actuator).start
    if model.actuator_forcelimited[out]:
        gear = abs(float(model.actuator_gear[actuator, 0]))
        greatest = gear * float(np.abs(model.actuator_forcerange[out]).min())
    if model.actuator_ctrllimited[ctrl]:
        reach = float(np.abs(model.actuator_ctrlrange[ctrl]).min())
        greatest = min(greatest, abs(per_control) * reach)
    return greatest
