"""The part of ``MujocoEnv`` that reads and sets the simulation's state by name.

Invariants: as for ``MujocoEnv``; a face has no state of its own. Setters validate everything, then
write, then recompute what derives from the state, without a hook firing; getters return copies.
Threads: every method may be called from any thread, at a step boundary; from inside a step getters
see the present moment and setters raise ``ReentrancyError``.

An object without a name is called ``#`` and its index, as in ``"#3"``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import mujoco

from mjhost.env.accessor import Accessor
from mjhost.env.accessors import (
    ActuatorAccessor,
    BodyAccessor,
    EqualityAccessor,
    GeomAccessor,
    JointAccessor,
    MocapAccessor,
    SensorAccessor,
    joint_accessor,
)
from mjhost.env.hosted import HostedModel
from mjhost.env.phases import Operation
from mjhost.env.state_access import StateAccess
from mjhost.errors import UnknownNameError, did_you_mean
from mjhost.state import actuators, bodies, joints, mocap, sensors
from mjhost.state.names import ObjectKind
from mjhost.state.records import Array, BodyState, JointState, MocapState, SensorReading

A = TypeVar("A", bound=Accessor)


class StateFace:
    """Access by name."""

    _access: StateAccess

    # -- objects to keep ---------------------------------------------------------------------

    def names(self, kind: str) -> tuple[str, ...]:
        """The names of all objects of ``kind``, such as ``"joint"``, in the model's order.

        Raises:
            UnknownNameError: there is no such kind.
        """
        known = _kind(kind)
        return self._access.read(lambda hosted: hosted.names.of(known))

    def body(self, name: str) -> BodyAccessor:
        """A body, to keep: its state without looking it up again. Stale after a reload."""
        return self._accessor(BodyAccessor, BodyAccessor, name)

    def joint(self, name: str) -> JointAccessor:
        """A joint, to keep: ``qpos`` and ``qvel`` can be read and set. Stale after a reload."""
        return self._accessor(JointAccessor, joint_accessor, name)

    def geom(self, name: str) -> GeomAccessor:
        """A geom, to keep. Stale after a reload."""
        return self._accessor(GeomAccessor, GeomAccessor, name)

    def actuator(self, name: str) -> ActuatorAccessor:
        """An actuator, to keep: ``ctrl`` can be read and set. Stale after a reload."""
        return self._accessor(ActuatorAccessor, ActuatorAccessor, name)

    def sensor(self, name: str) -> SensorAccessor:
        """A sensor, to keep: ``value`` is what it reads. Stale after a reload."""
        return self._accessor(SensorAccessor, SensorAccessor, name)

    def equality(self, name: str) -> EqualityAccessor:
        """An equality constraint, to keep: ``active`` can be set. Stale after a reload."""
        return self._accessor(EqualityAccessor, EqualityAccessor, name)

    def mocap(self, name: str) -> MocapAccessor:
        """A mocap body, to keep: ``pos`` and ``quat`` can be set. Stale after a reload."""
        return self._accessor(MocapAccessor, MocapAccessor, name)

    def _accessor(
        self,
        kind: type[A],
        make: Callable[[StateAccess, HostedModel, int, str], A],
        name: str,
    ) -> A:
        def look(hosted: HostedModel) -> A:
            return make(self._access, hosted, hosted.names.id(kind.kind, name), name)

        return self._access.read(look)

    # -- bodies ------------------------------------------------------------------------------

    def body_state(self, name: str, *, frame: str = "world") -> BodyState:
        """Pose and velocity of a body, of the present state.

        Unlike ``data.xpos`` after a step, which is of the step's start. Inside a step, and with
        engine extensions written in Python, it is what ``data`` has.

        Args:
            name: the body.
            frame: along whose axes the velocities are given: ``"world"`` or ``"body"``. The pose
                is always in the world.

        Raises:
            UnknownNameError: no such body.
        """
        return self.body_states([name], frame=frame)[name]

    def body_states(
        self, names: Iterable[str] | None = None, *, frame: str = "world"
    ) -> dict[str, BodyState]:
        """The states of ``names``, or of all bodies, of one step boundary; see ``body_state``."""
        bodies.checked_frame(frame)

        def look(hosted: HostedModel, data: mujoco.MjData) -> dict[str, BodyState]:
            selected = hosted.names.selected(ObjectKind.BODY, names)
            return bodies.body_states(hosted.model, data, selected, frame)

        return self._access.read_poses(look)

    def set_body_state(
        self,
        name: str,
        *,
        pos: Any = None,
        quat: Any = None,
        linear: Any = None,
        angular: Any = None,
        frame: str = "world",
        reset_velocity: bool = True,
    ) -> None:
        """Puts a body somewhere, or gives it a velocity; controls are not touched.

        A body with a free joint is moved by it, a mocap body by its mocap pose.

        Args:
            name: the body.
            pos: position of the body frame's origin in the world, shape (3,), m.
            quat: orientation in the world, shape (4,), wxyz; made of unit length.
            linear: velocity of the body frame's origin, shape (3,), m/s.
            angular: angular velocity, shape (3,), rad/s.
            frame: along whose axes the velocities are given: ``"world"`` or ``"body"`` (as it is
                turned afterwards).
            reset_velocity: whether a body that is given a pose stands still, apart from the
                velocities that are given. Otherwise its velocity in the world stays as it is.

        Raises:
            UnknownNameError: no such body.
            InvalidArgumentError: it is held by something else, which the message names, or an
                argument is no pose or velocity; nothing changed.
        """
        change = bodies.BodyChange(
            name,
            pos=pos,
            quat=quat,
            linear=linear,
            angular=angular,
            frame=frame,
            reset_velocity=reset_velocity,
        )
        self._access.mutate(
            Operation.SET_STATE,
            lambda hosted: bodies.plan_body_state(
                hosted.model, hosted.data, hosted.names, name, change
            ),
        )

    # -- joints ------------------------------------------------------------------------------

    def joint_state(self, name: str) -> JointState:
        """Position, velocity and actuator force of a joint of any type."""
        return self.joint_states([name])[name]

    def joint_states(self, names: Iterable[str] | None = None) -> dict[str, JointState]:
        """The states of ``names``, or of all joints, of one step boundary."""

        def look(hosted: HostedModel) -> dict[str, JointState]:
            return {
                name: joints.joint_state(hosted.model, hosted.data, joint, name)
                for name, joint in hosted.names.selected(ObjectKind.JOINT, names).items()
            }

        return self._access.read(look)

    def set_joint_state(
        self, name: str, qpos: Any = None, qvel: Any = None, *, sync_mocap: bool = False
    ) -> None:
        """Sets position, velocity or both of a joint; what is not given stays.

        Args:
            name: the joint.
            qpos: as in ``JointState``; a single number for a slide or hinge. Quaternions are made
                of unit length. A position beyond the joint's range is accepted: the engine's limit
                then pushes it back.
            qvel: as in ``JointState``.
            sync_mocap: also put mocap bodies onto what is welded to them; see ``sync_mocap``.

        Raises:
            UnknownNameError: no such joint.
            InvalidArgumentError: not that many numbers, not finite, or no rotation; nothing
                changed.
        """
        self.set_joint_states({name: {"qpos": qpos, "qvel": qvel}}, sync_mocap=sync_mocap)

    def set_joint_states(self, states: Mapping[str, Any], *, sync_mocap: bool = False) -> None:
        """Sets several joints, all of them or none.

        Args:
            states: by joint its ``qpos``, or a mapping with ``qpos`` and ``qvel``, or what
                ``joint_state`` returned.
            sync_mocap: also put mocap bodies onto what is welded to them; see ``sync_mocap``.

        Raises:
            UnknownNameError, InvalidArgumentError: as for ``set_joint_state``; the message lists
                every joint with a problem.
        """

        def plan(hosted: HostedModel) -> Callable[[], None]:
            planned = joints.plan_joint_states(hosted.model, hosted.names, states)
            welds = self._welds(hosted, None) if sync_mocap else {}

            def write() -> None:
                planned.apply(hosted.data)
                if welds:
                    self._sync(hosted, welds)

            return write

        self._access.mutate(Operation.SET_STATE, plan)

    # -- controls ----------------------------------------------------------------------------

    def ctrl(self) -> dict[str, Array]:
        """The controls of all actuators, from ``data.ctrl``, shape (inputs,) each."""
        return self._access.read(
            lambda hosted: actuators.controls(hosted.model, hosted.data, hosted.names)
        )

    def set_ctrl(self, controls: Mapping[str, Any]) -> None:
        """Sets the controls of some actuators, all of them or none; the others stay.

        They act from the next step on. Positions, velocities and what derives from them do not
        depend on controls, so nothing is recomputed; forces and accelerations are those of the
        last forward until then. While a reload compiles, this applies to the old model.

        Args:
            controls: by actuator a number, or one per input for an actuator with several. Numbers
                beyond ``ctrlrange`` are accepted: the engine clamps what it uses.

        Raises:
            UnknownNameError: no such actuator.
            InvalidArgumentError: not finite, or beyond 1e10: the engine would switch *all*
                actuators off. The message names the actuators; no control changed.
        """
        self._access.mutate(
            Operation.SET_CTRL,
            lambda hosted: actuators.plan_controls(
                hosted.model, hosted.data, hosted.names, controls
            ),
            refresh=False,
        )

    # -- mocap -------------------------------------------------------------------------------

    def mocap_states(self, names: Iterable[str] | None = None) -> dict[str, MocapState]:
        """The poses of the mocap bodies ``names``, or of all, of one step boundary."""

        def look(hosted: HostedModel) -> dict[str, MocapState]:
            rows = mocap.selected_rows(hosted.model, hosted.names, names)
            return {name: mocap.mocap_state(hosted.data, row, name) for name, row in rows.items()}

        return self._access.read(look)

    def set_mocap(self, name: str, *, pos: Any = None, quat: Any = None) -> None:
        """Puts a mocap body somewhere; bodies attached to it go with it.

        Args:
            name: the body.
            pos: position in the world, shape (3,), m.
            quat: orientation in the world, shape (4,), wxyz; made of unit length.

        Raises:
            UnknownNameError: no such body, or it is not a mocap body.
            InvalidArgumentError: not a pose; nothing changed.
        """
        self._access.mutate(
            Operation.SET_STATE,
            lambda hosted: mocap.plan_mocap(
                hosted.data,
                mocap.row(hosted.model, hosted.names, name),
                name,
                pos=pos,
                quat=quat,
            ),
        )

    def sync_mocap(self, names: Iterable[str] | None = None) -> tuple[str, ...]:
        """Puts mocap bodies where the body that is welded to them does not move.

        After a change of the state a weld would otherwise pull the robot to where its mocap body
        still is. Only active welds count; the first one if a mocap body has several.

        Args:
            names: the mocap bodies, or ``None`` for all that are welded to something.

        Returns:
            The mocap bodies that were put somewhere.

        Raises:
            UnknownNameError: no such body, or it is not a mocap body.
            InvalidArgumentError: one of ``names`` is held by no active weld; nothing changed.
        """

        def plan(hosted: HostedModel) -> Callable[[], tuple[str, ...]]:
            welds = self._welds(hosted, names)
            return lambda: self._sync(hosted, welds)

        return self._access.mutate(Operation.SET_STATE, plan)

    def _welds(self, hosted: HostedModel, names: Iterable[str] | None) -> dict[str, int]:
        return mocap.welds_of(hosted.model, hosted.data, hosted.names, names)

    def _sync(self, hosted: HostedModel, welds: dict[str, int]) -> tuple[str, ...]:
        """Puts mocap bodies onto their welds, in the state as it is now."""
        model, data = hosted.model, hosted.data
        self._access.stepper.refresh(hosted)
        for name, weld in welds.items():
            body = hosted.names.id(ObjectKind.BODY, name)
            row = int(model.body_mocapid[body])
            pos, quat = mocap.synced_pose(model, data, body, weld)
            data.mocap_pos[row], data.mocap_quat[row] = pos, quat
        return tuple(welds)

    # -- sensors -----------------------------------------------------------------------------

    def sensors(self) -> dict[str, SensorReading]:
        """What all sensors read, as of the last forward."""
        return self._access.read(
            lambda hosted: sensors.readings(hosted.model, hosted.data, hosted.names)
        )


def _kind(kind: str) -> ObjectKind:
    try:
        return ObjectKind(kind)
    except ValueError:
        known = [str(each) for each in ObjectKind]
        raise UnknownNameError(
            f"there is no kind of object called {kind!r}; {did_you_mean(str(kind), known)}"
        ) from None
