"""Where a robot is: its joints, its frames, its free bodies.

Owns: which frames there are and which of them never move against their parents.
Invariants: all of it is of the present state. Every frame has one parent: that of a body is the
body that it is on, or the world; that of a site or camera its body.
Not a goal: sensors; estimates. This is the truth.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

import msgspec
import mujoco
import numpy as np
import numpy.typing as npt

from mjhost.bundled.frames import stream_word
from mjhost.plugins import Plugin
from mjhost.state.kinematics import PresentKinematics
from mjhost.state.names import Names, ObjectKind
from mjhost.state.poses import conjugate, product, rotated_back
from mjhost.streams import Outlet
from mjhost.streams.records import JointReadings, OdometryReading, TransformReadings

_FREE: Final = int(mujoco.mjtJoint.mjJNT_FREE)
_BALL: Final = int(mujoco.mjtJoint.mjJNT_BALL)
Indices = npt.NDArray[np.intp]


class RobotState(Plugin):
    """Publishes ``joint_states``, ``tf``, ``tf_static`` (latched) and ``odom/<body>``.

    Joints are hinges and slides. Frames are bodies in their parents, and sites and cameras in their
    bodies; a site or camera of a body's name, or without a name, is none. ``odom/<body>`` is there
    for every body with a free joint.
    """

    stateless: ClassVar[bool] = True

    class Config(msgspec.Struct, frozen=True, kw_only=True):
        """What can be chosen.

        Attributes:
            rate: records per second of simulation, Hz.
            joints: publish ``joint_states``.
            frames: publish ``tf`` and ``tf_static``.
            odometry: publish ``odom/<body>``.
        """

        rate: Annotated[float, msgspec.Meta(gt=0.0)] = 100.0
        joints: bool = True
        frames: bool = True
        odometry: bool = True

    def __init__(self, config: Any = None, /, **values: Any) -> None:
        super().__init__(config, **values)
        self.rate_hz = self.config.rate

    # -- loading -----------------------------------------------------------------------------

    def load(self, model: Any, data: Any) -> None:
        """Find joints and frames; publish what never changes."""
        del data
        names, config = Names(model), self.config
        self._present = PresentKinematics(model)
        self._joint_states: Outlet[JointReadings] | None = None
        self._tf: Outlet[TransformReadings] | None = None
        self._odometry: list[tuple[str, int, int, Outlet[OdometryReading]]] = []
        if config.joints:
            self._find_joints(model, names)
        if config.frames:
            self._find_frames(model, names)
        if config.odometry:
            self._find_free_bodies(model, names)

    def _find_joints(self, model: Any, names: Names) -> None:
        single = np.flatnonzero(~np.isin(model.jnt_type, (_FREE, _BALL)))
        self._joint_names = tuple(names.name(ObjectKind.JOINT, int(joint)) for joint in single)
        self._qpos: Indices = model.jnt_qposadr[single].astype(np.intp)
        self._dofs: Indices = model.jnt_dofadr[single].astype(np.intp)
        self._joint_states = self.streams.declare("joint_states", JointReadings)

    def _find_frames(self, model: Any, names: Names) -> None:
        bodies = np.arange(1, model.nbody)
        moves = (model.body_jntnum[bodies] > 0) | (model.body_mocapid[bodies] >= 0)
        self._moving: Indices = bodies[moves]
        self._parents: Indices = model.body_parentid[self._moving].astype(np.intp)
        of_body = names.of(ObjectKind.BODY)
        self._children_names = tuple(of_body[body] for body in self._moving)
        self._parent_names = tuple(of_body[body] for body in self._parents)
        self._tf = self.streams.declare("tf", TransformReadings)
        outlet = self.streams.declare("tf_static", TransformReadings, latched=True)
        outlet.publish(_static(model, names, bodies[~moves]))

    def _find_free_bodies(self, model: Any, names: Names) -> None:
        for joint in np.flatnonzero(model.jnt_type == _FREE):
            body, dof = int(model.jnt_bodyid[joint]), int(model.jnt_dofadr[joint])
            name = names.name(ObjectKind.BODY, body)
            outlet = self.streams.declare(f"odom/{stream_word(name)}", OdometryReading)
            self._odometry.append((name, body, dof, outlet))

    # -- publishing --------------------------------------------------------------------------

    def post_step(self, model: Any, data: Any) -> None:
        """Publish what somebody listens to."""
        del model
        asleep = True
        if self._joint_states is not None and self._joint_states.wanted:
            self._joint_states.publish(self._joints_now(data))
            asleep = False
        odometry = [entry for entry in self._odometry if entry[3].wanted]
        frames = self._tf is not None and self._tf.wanted
        if odometry or frames:
            now = self._present.of(data)
            if self._tf is not None and frames:
                self._tf.publish(self._frames_now(now))
            for name, body, dof, outlet in odometry:
                outlet.publish(_odometry(now, data, name, body, dof))
        elif asleep:
            self.skip_timing()

    def _joints_now(self, data: Any) -> JointReadings:
        return JointReadings(
            names=self._joint_names,
            position=data.qpos[self._qpos],
            velocity=data.qvel[self._dofs],
            effort=data.qfrc_actuator[self._dofs],
        )

    def _frames_now(self, now: Any) -> TransformReadings:
        moving, parents = self._moving, self._parents
        backwards = now.xquat[parents]
        return TransformReadings(
            parents=self._parent_names,
            children=self._children_names,
            positions=rotated_back(now.xpos[moving] - now.xpos[parents], backwards),
            orientations=product(conjugate(backwards), now.xquat[moving]),
        )


def _static(model: Any, names: Names, fixed: Indices) -> TransformReadings:
    """The frames that never move against their parents."""
    of_body = names.of(ObjectKind.BODY)
    children = [of_body[body] for body in fixed]
    parents = [of_body[model.body_parentid[body]] for body in fixed]
    positions, turns = [*model.body_pos[fixed]], [*model.body_quat[fixed]]
    for kind, word in ((ObjectKind.SITE, "site"), (ObjectKind.CAMERA, "cam")):
        owners = getattr(model, f"{word}_bodyid")
        for name, index in names.ids(kind).items():
            if name.startswith("#") or name in of_body or name in children:
                continue
            children.append(name)
            parents.append(of_body[owners[index]])
            positions.append(getattr(model, f"{word}_pos")[index])
            turns.append(getattr(model, f"{word}_quat")[index])
    return TransformReadings(
        parents=tuple(parents),
        children=tuple(children),
        positions=np.array(positions).reshape(-1, 3),
        orientations=np.array(turns).reshape(-1, 4),
    )


def _odometry(now: Any, data: Any, name: str, body: int, dof: int) -> OdometryReading:
    """A free joint's velocities: linear in the world's axes, angular in its own."""
    turn = now.xquat[body].copy()
    return OdometryReading(
        child=name,
        position=now.xpos[body].copy(),
        orientation=turn,
        linear=rotated_back(data.qvel[dof : dof + 3], turn),
        angular=data.qvel[dof + 3 : dof + 6].copy(),
    )
