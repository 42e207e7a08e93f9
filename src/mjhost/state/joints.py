"""Positions and velocities of joints of any type.

Invariants: a joint's coordinates are a stretch of ``qpos`` and one of ``qvel``; nothing outside
them is read or written. Several joints are planned as one: all problems are found before anything
is written.
Failure: ``UnknownNameError`` or ``InvalidArgumentError`` that names every joint with a problem.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import mujoco

from mjhost.errors import InvalidArgumentError, MjhostError, UnknownNameError, did_you_mean
from mjhost.state.names import Names, ObjectKind
from mjhost.state.numbers import vector
from mjhost.state.poses import quaternion
from mjhost.state.records import Array, JointState, frozen_copy


class JointType(NamedTuple):
    """What the coordinates of a type of joint are."""

    word: str
    nq: int
    nv: int
    quat: int | None  # where in qpos its quaternion begins


TYPES: Final = {
    int(mujoco.mjtJoint.mjJNT_FREE): JointType("free", 7, 6, 3),
    int(mujoco.mjtJoint.mjJNT_BALL): JointType("ball", 4, 3, 0),
    int(mujoco.mjtJoint.mjJNT_SLIDE): JointType("slide", 1, 1, None),
    int(mujoco.mjtJoint.mjJNT_HINGE): JointType("hinge", 1, 1, None),
}


class JointSpan(NamedTuple):
    """Where the coordinates of one joint are."""

    type: JointType
    qpos: slice
    qvel: slice


def span(model: mujoco.MjModel, joint: int) -> JointSpan:
    """Type and place of the joint with index ``joint``."""
    kind = TYPES[int(model.jnt_type[joint])]
    qpos, qvel = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
    return JointSpan(kind, slice(qpos, qpos + kind.nq), slice(qvel, qvel + kind.nv))


def joint_state(model: mujoco.MjModel, data: mujoco.MjData, joint: int, name: str) -> JointState:
    """The state of one joint."""
    kind, qpos, qvel = span(model, joint)
    return JointState(
        name=name,
        type=kind.word,
        qpos=frozen_copy(data.qpos[qpos]),
        qvel=frozen_copy(data.qvel[qvel]),
        force=frozen_copy(data.qfrc_actuator[qvel]),
    )


# -- setting -------------------------------------------------------------------------------------


class JointPlan:
    """Coordinates of some joints, ready to be written.

    Attributes:
        names: the joints that are set, in the order they were given.
        problems: what was left out, one text per joint; empty unless problems were to be skipped.
    """

    __slots__ = ("_parts", "names", "problems")

    def __init__(self, parts: Mapping[str, _Part], problems: tuple[str, ...] = ()) -> None:
        self.names = tuple(parts)
        self.problems = problems
        self._parts = tuple(parts.values())

    def apply(self, data: mujoco.MjData) -> None:
        """Writes the coordinates into ``data``, of the model the plan was made for."""
        all_qpos, all_qvel = data.qpos, data.qvel
        for (_, qpos_at, qvel_at), qpos, qvel in self._parts:
            if qpos is not None:
                all_qpos[qpos_at] = qpos
            if qvel is not None:
                all_qvel[qvel_at] = qvel


class _Part(NamedTuple):
    span: JointSpan
    qpos: Array | None
    qvel: Array | None


def plan_joint_states(
    model: mujoco.MjModel, names: Names, states: Mapping[str, Any], *, skip: bool = False
) -> JointPlan:
    """What sets each joint of ``states``.

    Args:
        model: the model the plan is for.
        names: its names.
        states: by joint the numbers of its ``qpos`` (as in ``JointState``; a single number for a
            slide or hinge), or a mapping with ``qpos`` and ``qvel``, or a ``JointState``.
        skip: leave joints with a problem out and list the problems, instead of raising.

    Raises:
        UnknownNameError: the only problems are joints that do not exist.
        InvalidArgumentError: any other problem; the message lists all.
    """
    if not isinstance(states, Mapping):
        raise InvalidArgumentError(
            "joint states must be a mapping of names to numbers, got "
            f"{type(states).__name__}; write {{'joint': 0.5}}"
        )
    parts: dict[str, _Part] = {}
    errors: list[MjhostError] = []
    for name, wanted in states.items():
        try:
            parts[name] = _part(model, names, name, wanted)
        except (InvalidArgumentError, UnknownNameError) as error:
            errors.append(error)
    if errors and not skip:
        raise combined(errors)
    return JointPlan(parts, tuple(str(error) for error in errors))


def combined(errors: list[MjhostError]) -> MjhostError:
    """One error that says what all of ``errors`` say."""
    if len(errors) == 1:
        return errors[0]
    text = "; ".join(str(error) for error in errors)
    if all(isinstance(error, UnknownNameError) for error in errors):
        return UnknownNameError(text)
    return InvalidArgumentError(text)


def _part(model: mujoco.MjModel, names: Names, name: str, wanted: Any) -> _Part:
    place = span(model, names.id(ObjectKind.JOINT, name))
    qpos, qvel = _wanted(name, wanted)
    if qpos is None and qvel is None:
        raise InvalidArgumentError(
            f"joint {name!r} was to be set, and nothing to set was given; give qpos or qvel"
        )
    return _Part(
        place, _checked_qpos(place.type, qpos, name), _checked_qvel(place.type, qvel, name)
    )


def _wanted(name: str, wanted: Any) -> tuple[Any, Any]:
    if isinstance(wanted, JointState):
        return wanted.qpos, wanted.qvel
    if not isinstance(wanted, Mapping):
        if wanted is None:
            return None, None
        return wanted, None
    for key in wanted:
        if key not in ("qpos", "qvel"):
            raise InvalidArgumentError(
                f"the state of joint {name!r} has qpos and qvel, got {key!r}; "
                f"{did_you_mean(str(key), ('qpos', 'qvel'))}"
            )
    return wanted.get("qpos"), wanted.get("qvel")


def _checked_qpos(kind: JointType, values: Any, name: str) -> Array | None:
    if values is None:
        return None
    what = f"qpos of {kind.word} joint {name!r}"
    qpos = vector(values, kind.nq, what)
    if kind.quat is not None:
        qpos[kind.quat :] = quaternion(qpos[kind.quat :], f"the quaternion in {what}")
    return qpos


def _checked_qvel(kind: JointType, values: Any, name: str) -> Array | None:
    if values is None:
        return None
    return vector(values, kind.nv, f"qvel of {kind.word} joint {name!r}")
