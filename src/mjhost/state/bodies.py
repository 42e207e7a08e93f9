"""Poses and velocities of bodies: reading any, and setting those that can be set.

Invariants: the state of a body is set through what holds it, its free joint or its mocap pose; a
body that is held by anything else is refused, with the reason and the way out. Nothing but that
body's own coordinates is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import mujoco
import numpy as np

from mjhost.errors import InvalidArgumentError
from mjhost.state.mocap import plan_mocap
from mjhost.state.names import Names, ObjectKind
from mjhost.state.numbers import vector
from mjhost.state.poses import cross, position, quaternion, rotated, rotated_back
from mjhost.state.records import Array, BodyState, frozen_copy

FRAMES = ("world", "body")
_FREE = int(mujoco.mjtJoint.mjJNT_FREE)


def checked_frame(frame: str) -> str:
    """``frame`` if it is one."""
    if frame not in FRAMES:
        raise InvalidArgumentError(f"frame must be 'world' or 'body', got {frame!r}")
    return frame


# -- reading -------------------------------------------------------------------------------------


def body_states(
    model: mujoco.MjModel, data: mujoco.MjData, bodies: Mapping[str, int], frame: str
) -> dict[str, BodyState]:
    """The states of some bodies according to the poses and velocities in ``data``."""
    index = _rows(bodies)
    pos, quat = frozen_copy(data.xpos[index]), frozen_copy(data.xquat[index])
    linear, angular = _twists(model, data, index)
    if frame == "body":
        linear, angular = rotated_back(linear, quat), rotated_back(angular, quat)
    rows = zip(bodies, pos, quat, frozen_copy(linear), frozen_copy(angular), strict=True)
    return {
        name: BodyState(name=name, pos=p, quat=q, linear=v, angular=w, frame=frame)
        for name, p, q, v, w in rows
    }


def _rows(bodies: Mapping[str, int]) -> slice | np.ndarray[Any, Any]:
    if len(bodies) == 1:  # a slice costs a fraction of a list of indices
        (only,) = bodies.values()
        return slice(only, only + 1)
    return np.fromiter(bodies.values(), np.intp, len(bodies))


def _twists(
    model: mujoco.MjModel, data: mujoco.MjData, index: slice | np.ndarray[Any, Any]
) -> tuple[Array, Array]:
    """Velocities of the body frames' origins and angular velocities, along the world's axes."""
    spatial = data.cvel[index]
    angular = spatial[:, :3]
    # The engine keeps the linear part for the centre of mass of the whole tree.
    arms = data.xpos[index] - data.subtree_com[model.body_rootid[index]]
    return spatial[:, 3:] + cross(angular, arms), angular


# -- setting -------------------------------------------------------------------------------------


class BodyChange:
    """What a caller wants of a body's state, checked; what is ``None`` was not asked for."""

    __slots__ = ("angular", "frame", "linear", "pos", "quat", "reset_velocity")

    def __init__(
        self,
        name: str,
        *,
        pos: Any,
        quat: Any,
        linear: Any,
        angular: Any,
        frame: str,
        reset_velocity: bool,
    ) -> None:
        of = f"of body {name!r}"
        self.pos = None if pos is None else position(pos, f"pos {of}")
        self.quat = None if quat is None else quaternion(quat, f"quat {of}")
        self.linear = None if linear is None else vector(linear, 3, f"linear velocity {of}")
        self.angular = None if angular is None else vector(angular, 3, f"angular velocity {of}")
        self.frame = checked_frame(frame)
        self.reset_velocity = reset_velocity
        if self.pos is self.quat is self.linear is self.angular is None:
            raise InvalidArgumentError(
                f"the state {of} was to be set, and nothing to set was given; give pos, quat, "
                "linear or angular"
            )

    @property
    def moves(self) -> bool:
        """Whether a pose was asked for."""
        return self.pos is not None or self.quat is not None


def plan_body_state(
    model: mujoco.MjModel, data: mujoco.MjData, names: Names, name: str, change: BodyChange
) -> Callable[[], None]:
    """What puts the body ``name`` into the state that ``change`` asks for."""
    body = names.id(ObjectKind.BODY, name)
    mocap = int(model.body_mocapid[body])
    if mocap >= 0:
        if change.linear is not None or change.angular is not None:
            raise InvalidArgumentError(
                f"body {name!r} is a mocap body: it is where it is put and has no velocity; set "
                "its pose only"
            )
        return plan_mocap(data, mocap, name, pos=change.pos, quat=change.quat)
    joint = int(model.body_jntadr[body])
    if joint < 0 or model.jnt_type[joint] != _FREE:
        raise _not_settable(model, names, body)
    return _plan_free(data, int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint]), change)


def _plan_free(data: mujoco.MjData, qpos: int, qvel: int, change: BodyChange) -> Callable[[], None]:
    pose = np.array(data.qpos[qpos : qpos + 7])
    velocity = np.array(data.qvel[qvel : qvel + 6])
    before = _unit(pose[3:])
    if change.pos is not None:
        pose[:3] = change.pos
    if change.quat is not None:
        pose[3:] = change.quat
    after = _unit(pose[3:])
    if change.moves and change.reset_velocity:
        velocity[:] = 0.0
    elif change.quat is not None:  # the velocity stays in the world, not along the body's axes
        velocity[3:] = rotated_back(rotated(velocity[3:], before), after)
    if change.linear is not None:
        velocity[:3] = _in_world(change.linear, after, change.frame)
    if change.angular is not None:
        velocity[3:] = _in_body(change.angular, after, change.frame)

    def write() -> None:
        data.qpos[qpos : qpos + 7] = pose
        data.qvel[qvel : qvel + 6] = velocity

    return write


def _unit(quat: Array) -> Array:
    """The orientation as the engine takes it; what it holds may not be of unit length."""
    length = float(np.linalg.norm(quat))
    return quat / length if length > 0.0 else np.array((1.0, 0.0, 0.0, 0.0))


def _in_world(values: Array, quat: Array, frame: str) -> Array:
    return rotated(values, quat) if frame == "body" else values


def _in_body(values: Array, quat: Array, frame: str) -> Array:
    return values if frame == "body" else rotated_back(values, quat)


def _not_settable(model: mujoco.MjModel, names: Names, body: int) -> InvalidArgumentError:
    name = names.name(ObjectKind.BODY, body)
    asked = f"the pose of body {name!r} cannot be set: it"
    if body == 0:
        return InvalidArgumentError("the pose of body 'world' cannot be set: it is the world")
    if model.body_jntnum[body]:
        first = int(model.body_jntadr[body])
        last = first + int(model.body_jntnum[body])
        joints = ", ".join(repr(names.name(ObjectKind.JOINT, j)) for j in range(first, last))
        return InvalidArgumentError(f"{asked} hangs on {joints}; use set_joint_state")
    if model.body_weldid[body] == 0 and not _on_mocap(model, body):
        return InvalidArgumentError(
            f"{asked} is fixed to the world; make it a mocap body or give it a free joint in the "
            "model to move it"
        )
    parent = names.name(ObjectKind.BODY, int(model.body_parentid[body]))
    return InvalidArgumentError(f"{asked} is fixed to body {parent!r}; move that")


def _on_mocap(model: mujoco.MjModel, body: int) -> bool:
    return bool(model.body_mocapid[model.body_rootid[body]] >= 0)
