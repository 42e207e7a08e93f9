"""Objects of the hosted model that users keep: found by name once, then read and set directly.

Owns: one class per kind of object; what they share is in ``accessor``.
Invariants: a property that is set goes the way of the env's setters: at a step boundary, validated,
wholly or not at all.
Threads: any.
Failure: ``StaleGenerationError`` once the model has been replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np

from mjhost.env.accessor import Accessor
from mjhost.env.hosted import HostedModel
from mjhost.env.phases import Operation
from mjhost.env.state_access import StateAccess
from mjhost.state import actuators, bodies, joints, mocap, sensors
from mjhost.state.names import ObjectKind
from mjhost.state.numbers import flag
from mjhost.state.records import (
    Array,
    BodyState,
    JointState,
    MocapState,
    SensorReading,
    frozen_copy,
)

# -- joints --------------------------------------------------------------------------------------


class JointAccessor(Accessor):
    """A free or ball joint, and what all joints have.

    Attributes:
        type: ``"free"``, ``"ball"``, ``"slide"`` or ``"hinge"``.
    """

    __slots__ = ("_qpos", "_qvel", "type")

    kind = ObjectKind.JOINT

    def __init__(self, access: StateAccess, hosted: HostedModel, index: int, name: str) -> None:
        super().__init__(access, hosted, index, name)
        kind, qpos, qvel = joints.span(hosted.model, index)
        self.type = kind.word
        self._qpos = self._keep(hosted, "qpos", hosted.data.qpos, qpos)
        self._qvel = self._keep(hosted, "qvel", hosted.data.qvel, qvel)

    @property
    def qpos(self) -> Any:
        """Its position, from ``data.qpos``; setting it is ``env.set_joint_state``.

        Slide: m, hinge: rad, as a ``float``. Free: shape (7,), position in the world, m, and
        orientation wxyz. Ball: shape (4,), wxyz.
        """
        return self._array(self._qpos)

    @qpos.setter
    def qpos(self, values: Any) -> None:
        self._set({"qpos": values})

    @property
    def qvel(self) -> Any:
        """Its velocity, from ``data.qvel``; setting it is ``env.set_joint_state``.

        Slide: m/s, hinge: rad/s, as a ``float``. Free: shape (6,), linear in the world, m/s, and
        angular along the body's axes, rad/s. Ball: shape (3,), along the body's axes, rad/s.
        """
        return self._array(self._qvel)

    @qvel.setter
    def qvel(self, values: Any) -> None:
        self._set({"qvel": values})

    @property
    def state(self) -> JointState:
        """Position, velocity and force as one record."""
        return self._read(
            lambda hosted: joints.joint_state(hosted.model, hosted.data, self._id, self._name)
        )

    @property
    def range(self) -> tuple[float, float] | None:
        """Least and greatest position, m or rad (ball: angle); ``None`` without a limit."""
        return self._read(lambda hosted: _joint_range(hosted.model, self._id))

    def _set(self, wanted: dict[str, Any]) -> None:
        def plan(hosted: HostedModel) -> Callable[[], None]:
            states = {self._name: wanted}
            planned = joints.plan_joint_states(hosted.model, hosted.names, states)
            return lambda: planned.apply(hosted.data)

        self._set_state(plan)


class ScalarJointAccessor(JointAccessor):
    """A slide or hinge joint."""

    __slots__ = ()

    @property
    def qpos(self) -> float:
        """Its position, from ``data.qpos``; slide: m, hinge: rad."""
        return self._number(self._qpos)

    @qpos.setter
    def qpos(self, value: Any) -> None:
        self._set({"qpos": value})

    @property
    def qvel(self) -> float:
        """Its velocity, from ``data.qvel``; slide: m/s, hinge: rad/s."""
        return self._number(self._qvel)

    @qvel.setter
    def qvel(self, value: Any) -> None:
        self._set({"qvel": value})


def _joint_range(model: mujoco.MjModel, joint: int) -> tuple[float, float] | None:
    if not model.jnt_limited[joint]:
        return None
    low, high = model.jnt_range[joint].tolist()
    return low, high


def joint_accessor(
    access: StateAccess, hosted: HostedModel, index: int, name: str
) -> JointAccessor:
    """The accessor that fits the type of a joint."""
    scalar = joints.span(hosted.model, index).type.nq == 1
    return (ScalarJointAccessor if scalar else JointAccessor)(access, hosted, index, name)


# -- bodies and geoms ----------------------------------------------------------------------------


class BodyAccessor(Accessor):
    """A body; poses and velocities are those of the present state."""

    __slots__ = ()

    kind = ObjectKind.BODY

    @property
    def state(self) -> BodyState:
        """Pose and velocity in the world as one record."""
        states = self._access.read_poses(
            lambda hosted, data: bodies.body_states(
                hosted.model, data, {self._name: self._id}, "world"
            ),
            self._generation,
        )
        return states[self._name]

    @property
    def pos(self) -> Array:
        """Position of the body frame's origin in the world, shape (3,), m."""
        return self.state.pos

    @pos.setter
    def pos(self, values: Any) -> None:
        self._change(pos=values)

    @property
    def quat(self) -> Array:
        """Orientation in the world, shape (4,), wxyz."""
        return self.state.quat

    @quat.setter
    def quat(self, values: Any) -> None:
        self._change(quat=values)

    def _change(self, *, pos: Any = None, quat: Any = None) -> None:
        change = bodies.BodyChange(
            self._name,
            pos=pos,
            quat=quat,
            linear=None,
            angular=None,
            frame="world",
            reset_velocity=True,
        )
        self._set_state(
            lambda hosted: bodies.plan_body_state(
                hosted.model, hosted.data, hosted.names, self._name, change
            )
        )


class GeomAccessor(Accessor):
    """A geom; its pose is that of the present state."""

    __slots__ = ()

    kind = ObjectKind.GEOM

    @property
    def body(self) -> str:
        """The body it belongs to."""
        return self._read(
            lambda hosted: hosted.names.name(
                ObjectKind.BODY, int(hosted.model.geom_bodyid[self._id])
            )
        )

    @property
    def pos(self) -> Array:
        """Position of its centre in the world, shape (3,), m."""
        return self._access.read_poses(
            lambda _hosted, data: frozen_copy(data.geom_xpos[self._id]), self._generation
        )

    @property
    def mat(self) -> Array:
        """Its axes in the world, one per column, shape (3, 3)."""
        return self._access.read_poses(
            lambda _hosted, data: frozen_copy(data.geom_xmat[self._id].reshape(3, 3)),
            self._generation,
        )


class MocapAccessor(Accessor):
    """A mocap body."""

    __slots__ = ("_mocap",)

    kind = ObjectKind.BODY

    def __init__(self, access: StateAccess, hosted: HostedModel, index: int, name: str) -> None:
        super().__init__(access, hosted, index, name)
        self._mocap = mocap.row(hosted.model, hosted.names, name)

    def __repr__(self) -> str:
        return f"<mocap body {self._name!r} of {self._generation!r}>"

    @property
    def state(self) -> MocapState:
        """Its pose as one record."""
        return self._read(lambda hosted: mocap.mocap_state(hosted.data, self._mocap, self._name))

    @property
    def pos(self) -> Array:
        """Position in the world, from ``data.mocap_pos``, shape (3,), m."""
        return self.state.pos

    @pos.setter
    def pos(self, values: Any) -> None:
        self._change(pos=values)

    @property
    def quat(self) -> Array:
        """Orientation in the world, from ``data.mocap_quat``, shape (4,), wxyz."""
        return self.state.quat

    @quat.setter
    def quat(self, values: Any) -> None:
        self._change(quat=values)

    def _change(self, *, pos: Any = None, quat: Any = None) -> None:
        self._set_state(
            lambda hosted: mocap.plan_mocap(
                hosted.data, self._mocap, self._name, pos=pos, quat=quat
            )
        )


# -- actuators, sensors, equalities --------------------------------------------------------------


class ActuatorAccessor(Accessor):
    """An actuator."""

    __slots__ = ("_ctrl", "_force", "_inputs")

    kind = ObjectKind.ACTUATOR

    def __init__(self, access: StateAccess, hosted: HostedModel, index: int, name: str) -> None:
        super().__init__(access, hosted, index, name)
        model, data = hosted.model, hosted.data
        place = actuators.inputs(model, index)
        self._inputs: int = place.stop - place.start
        self._ctrl = self._keep(hosted, "ctrl", data.ctrl, place)
        force = actuators.outputs(model, index)
        self._force = self._keep(hosted, "actuator_force", data.actuator_force, force)

    @property
    def inputs(self) -> int:
        """How many controls it has."""
        return self._inputs

    @property
    def ctrl(self) -> Any:
        """Its control, from ``data.ctrl``; a ``float``, or shape (inputs,) if it has several.

        Setting it is ``env.set_ctrl``.
        """
        return self._number(self._ctrl) if self._inputs == 1 else self._array(self._ctrl)

    @ctrl.setter
    def ctrl(self, values: Any) -> None:
        self._access.mutate(
            Operation.SET_CTRL,
            lambda hosted: actuators.plan_controls(
                hosted.model, hosted.data, hosted.names, {self._name: values}
            ),
            generation=self._generation,
            refresh=False,
        )

    @property
    def ctrlrange(self) -> Array:
        """Least and greatest control that the engine uses, shape (inputs, 2); ±inf without."""
        return self._read(
            lambda hosted: actuators.ranges(hosted.model, actuators.inputs(hosted.model, self._id))
        )

    @property
    def force(self) -> Any:
        """What it exerts, from ``data.actuator_force``, as of the last forward; N or N·m.

        A ``float``, or an array if it exerts several.
        """
        values = self._array(self._force)
        return values.item() if values.size == 1 else values


class SensorAccessor(Accessor):
    """A sensor.

    Attributes:
        type: MuJoCo's word for it, such as ``"accelerometer"``.
        dim: how many numbers it reads.
        unit: of every number; empty if it is a pure number or depends on what is measured.
    """

    __slots__ = ("_value", "dim", "type", "unit")

    kind = ObjectKind.SENSOR

    def __init__(self, access: StateAccess, hosted: HostedModel, index: int, name: str) -> None:
        super().__init__(access, hosted, index, name)
        place = sensors.place(hosted.model, index)
        self._value = self._keep(hosted, "sensordata", hosted.data.sensordata, place)
        self.type = sensors.type_of(hosted.model, index)
        self.unit = sensors.unit_of(hosted.model, index)
        self.dim = place.stop - place.start

    @property
    def value(self) -> Any:
        """What it reads, from ``data.sensordata``, as of the last forward.

        A ``float``, or shape (dim,) if it reads several.
        """
        return self._number(self._value) if self.dim == 1 else self._array(self._value)

    @property
    def reading(self) -> SensorReading:
        """The same with type and unit, as one record."""
        return self._read(
            lambda hosted: sensors.reading(hosted.model, hosted.data, self._id, self._name)
        )


class EqualityAccessor(Accessor):
    """An equality constraint."""

    __slots__ = ()

    kind = ObjectKind.EQUALITY

    @property
    def active(self) -> bool:
        """Whether it holds, from ``data.eq_active``; can be set."""
        return self._read(lambda hosted: bool(hosted.data.eq_active[self._id]))

    @active.setter
    def active(self, value: bool) -> None:
        checked = flag(value, f"active of equality {self._name!r}")

        def plan(hosted: HostedModel) -> Callable[[], None]:
            return lambda: np.copyto(hosted.data.eq_active[self._id : self._id + 1], checked)

        self._set_state(plan)
