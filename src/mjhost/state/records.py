"""What getters of state return.

Invariants: every record is frozen, and every array in it is a copy that cannot be written to: what
is written into a copy would be lost without a word. ``array.copy()`` gives one to calculate with.
Two records are equal if all their numbers are.
Threads: plain values, safe anywhere.

Quaternions are wxyz and of unit length. A quantity *as of the last forward* is one that the engine
computes from the state at the start of a step: right after a step it belongs to the state before
it, after a setter, a reset or ``env.forward()`` to the present one.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]


def frozen_copy(values: Any) -> Array:
    """A copy of ``values`` that cannot be written to."""
    copy = np.array(values, dtype=np.float64)
    copy.setflags(write=False)
    return copy


class StateRecord(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A record with arrays in it, which compare as a whole."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return all(np.array_equal(mine, others) for mine, others in pairs)

    __hash__ = None  # type: ignore[assignment]


class BodyState(StateRecord, frozen=True, eq=False, kw_only=True):
    """Pose and velocity of a body, of the present state.

    Attributes:
        name: the body.
        pos: position of the body frame's origin in the world, shape (3,), m.
        quat: orientation of the body frame in the world, shape (4,), wxyz.
        linear: velocity of the body frame's origin, shape (3,), m/s.
        angular: angular velocity, shape (3,), rad/s.
        frame: along whose axes the velocities are given: ``"world"`` or ``"body"``.
    """

    name: str
    pos: Array
    quat: Array
    linear: Array
    angular: Array
    frame: str = "world"


class JointState(StateRecord, frozen=True, eq=False, kw_only=True):
    """Position and velocity of a joint.

    Attributes:
        name: the joint.
        type: ``"free"``, ``"ball"``, ``"slide"`` or ``"hinge"``.
        qpos: from ``data.qpos``. Free: shape (7,), position in the world, m, and orientation wxyz;
            ball: shape (4,), orientation in the parent body, wxyz; slide: (1,), m; hinge:
            (1,), rad.
        qvel: from ``data.qvel``. Free: shape (6,), linear in the world, m/s, and angular along the
            *body's* axes, rad/s; ball: (3,), along the body's axes, rad/s; slide: (1,), m/s;
            hinge: (1,), rad/s.
        force: from ``data.qfrc_actuator``, what actuators exert, same shape as ``qvel``; N or N·m,
            as of the last forward.
    """

    name: str
    type: str
    qpos: Array
    qvel: Array
    force: Array


class MocapState(StateRecord, frozen=True, eq=False, kw_only=True):
    """Pose of a mocap body.

    Attributes:
        name: the body.
        pos: from ``data.mocap_pos``, in the world, shape (3,), m.
        quat: from ``data.mocap_quat``, in the world, shape (4,), wxyz.
    """

    name: str
    pos: Array
    quat: Array


class SensorReading(StateRecord, frozen=True, eq=False, kw_only=True):
    """What a sensor reads, as of the last forward.

    Attributes:
        name: the sensor.
        type: MuJoCo's word for it, such as ``"accelerometer"``.
        value: from ``data.sensordata``, shape (dim,).
        unit: of every number in ``value``; empty if it is a pure number, or depends on what is
            measured.
    """

    name: str
    type: str
    value: Array
    unit: str
