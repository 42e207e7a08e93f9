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


class GeomProperties(StateRecord, frozen=True, eq=False, kw_only=True):
    """What can be changed of a geom while it is simulated.

    Attributes:
        name: the geom.
        body: the body it belongs to.
        type: ``"plane"``, ``"sphere"``, ``"capsule"``, ``"ellipsoid"``, ``"cylinder"``, ``"box"``,
            or MuJoCo's word for one whose shape is compiled: ``"mesh"``, ``"hfield"``, ``"sdf"``.
        size: from ``model.geom_size``, as many numbers as the type uses, m.
        friction: from ``model.geom_friction``: sliding, torsional (m), rolling (m), shape (3,).
        mass: of the *body*, from ``model.body_mass``, kg; a compiled model keeps none of geoms.
    """

    name: str
    body: str
    type: str
    size: Array
    friction: Array
    mass: float


class BodyInertial(StateRecord, frozen=True, eq=False, kw_only=True):
    """Mass and inertia of a body.

    Attributes:
        name: the body.
        mass: from ``model.body_mass``, kg.
        com: centre of mass in the body's frame, from ``model.body_ipos``, shape (3,), m.
        inertia: principal moments about the centre of mass, from ``model.body_inertia``,
            shape (3,), kg·m².
        quat: orientation of the principal axes in the body's frame, from ``model.body_iquat``,
            shape (4,), wxyz.
    """

    name: str
    mass: float
    com: Array
    inertia: Array
    quat: Array


class EqualityState(StateRecord, frozen=True, eq=False, kw_only=True):
    """An equality constraint; what its type does not have is ``None``.

    Attributes:
        name: the constraint.
        type: ``"weld"``, ``"connect"``, ``"joint"``, ``"tendon"``, or MuJoCo's word for flexes.
        active: from ``data.eq_active``.
        objects: what it is between.
        anchor: of a weld the point of body 2 that is held, in body 2; of a connect the point of
            body 1, in body 1; shape (3,), m.
        anchor2: of a connect the point of body 2, in body 2, shape (3,), m.
        pos: of a weld the position of body 2 in body 1, shape (3,), m.
        quat: of a weld the orientation of body 2 in body 1, shape (4,), wxyz.
        torquescale: of a weld how rotation counts against translation, m.
        polycoef: of a coupling the polynomial's coefficients, shape (5,).
        solref: from ``model.eq_solref``, shape (2,).
        solimp: from ``model.eq_solimp``, shape (5,).
    """

    name: str
    type: str
    active: bool
    objects: tuple[str, ...]
    anchor: Array | None
    anchor2: Array | None
    pos: Array | None
    quat: Array | None
    torquescale: float | None
    polycoef: Array | None
    solref: Array
    solimp: Array


class WrenchState(StateRecord, frozen=True, eq=False, kw_only=True):
    """What the env applies to a body in the next step; what users wrote is not in it.

    Attributes:
        name: the body.
        force: the sum, along the world's axes, shape (3,), N.
        torque: the sum about the body's centre of mass, along the world's axes, shape (3,), N·m.
        parts: names of the wrenches that it is the sum of.
    """

    name: str
    force: Array
    torque: Array
    parts: tuple[str, ...]
