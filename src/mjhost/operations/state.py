"""Operations that read and set the state by name: bodies, joints, controls, mocap, sensors.

Invariants: as for the members of ``MujocoEnv``: what is set is validated as a whole, then written
as a whole; maps are keyed by name, an object without one is called ``#`` and its index.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from mjhost.operations.fields import (
    Done,
    Name,
    Quaternion,
    RealQuaternion,
    RealTriple,
    RealVector,
    Request,
    Response,
    Triple,
    about,
)
from mjhost.operations.responses import response_of
from mjhost.operations.spec import Site, described
from mjhost.state.names import ObjectKind

Names: TypeAlias = list[Name]
Numbers: TypeAlias = float | list[float]

_POSITION: Final = "m, rad or 1 (wxyz)"
_VELOCITY: Final = "m/s or rad/s"
_AXES: Final = "as field frame says"
_JOINT: Final = "joint; free: world, angular velocity: body"


class OfKind(Request, frozen=True, kw_only=True):
    """Which kind of object."""

    kind: Annotated[ObjectKind, about("kind of object, in MuJoCo's words")]


class NamesAnswer(Response, frozen=True, kw_only=True):
    """Names of objects."""

    names: Annotated[tuple[str, ...], about("in the model's order")]


class SomeBodies(Request, frozen=True, kw_only=True):
    """Which bodies, and how their velocities are to be given."""

    names: Annotated[Names | None, about("the bodies; null for all")] = None
    frame: Annotated[Literal["world", "body"], about("along whose axes velocities are given")] = (
        "world"
    )


class BodyPose(Response, frozen=True, kw_only=True):
    """Pose and velocity of a body, of the present state."""

    pos: Annotated[RealTriple, about("origin of the body frame", "m", frame="world")]
    quat: Annotated[RealQuaternion, about("orientation, w x y z", "1", frame="world")]
    linear: Annotated[RealTriple, about("velocity of that origin", "m/s", frame=_AXES)]
    angular: Annotated[RealTriple, about("angular velocity", "rad/s", frame=_AXES)]
    frame: Annotated[str, about("along whose axes velocities are given: world or body")]


class Bodies(Response, frozen=True, kw_only=True):
    """Several bodies at one step boundary."""

    bodies: Annotated[dict[str, BodyPose], about("by name")]


class SetBodyState(Request, frozen=True, kw_only=True):
    """Where a body is to be, and how it is to move; what is left out stays."""

    name: Annotated[Name, about("a body with a free joint, or a mocap body")]
    pos: Annotated[Triple | None, about("origin of the body frame", "m", frame="world")] = None
    quat: Annotated[
        Quaternion | None,
        about("orientation, w x y z; made of unit length", "1", frame="world"),
    ] = None
    linear: Annotated[Triple | None, about("velocity of that origin", "m/s", frame=_AXES)] = None
    angular: Annotated[Triple | None, about("angular velocity", "rad/s", frame=_AXES)] = None
    frame: Annotated[Literal["world", "body"], about("along whose axes velocities are given")] = (
        "world"
    )
    reset_velocity: Annotated[
        bool, about("a body that is given a pose stands still, but for velocities given with it")
    ] = True


class SomeJoints(Request, frozen=True, kw_only=True):
    """Which joints."""

    names: Annotated[Names | None, about("the joints; null for all")] = None


class JointReading(Response, frozen=True, kw_only=True):
    """Position and velocity of a joint; in a free joint x y z come before w x y z."""

    type: Annotated[str, about("free, ball, slide or hinge")]
    qpos: Annotated[RealVector, about("position: free 7, ball 4, else 1", _POSITION, frame=_JOINT)]
    qvel: Annotated[RealVector, about("velocity: free 6, ball 3, else 1", _VELOCITY, frame=_JOINT)]
    force: Annotated[
        RealVector, about("force of actuators, of the last forward", "N or N·m", frame=_JOINT)
    ]


class Joints(Response, frozen=True, kw_only=True):
    """Several joints at one step boundary."""

    joints: Annotated[dict[str, JointReading], about("by name")]


class JointValues(Request, frozen=True, kw_only=True):
    """What a joint is set to; what is left out stays."""

    qpos: Annotated[
        Numbers | None, about("position: free 7, ball 4, else 1", _POSITION, frame=_JOINT)
    ] = None
    qvel: Annotated[
        Numbers | None, about("velocity: free 6, ball 3, else 1", _VELOCITY, frame=_JOINT)
    ] = None


class SetJointStates(Request, frozen=True, kw_only=True):
    """What joints are set to."""

    joints: Annotated[dict[Name, JointValues], about("by name")]
    sync_mocap: Annotated[bool, about("also put mocap bodies onto what is welded to them")] = False


class Controls(Response, frozen=True, kw_only=True):
    """The controls of all actuators."""

    controls: Annotated[
        dict[str, RealVector], about("by actuator, one number per input", "of the actuator")
    ]


class SetCtrl(Request, frozen=True, kw_only=True):
    """The controls of some actuators; the others stay."""

    controls: Annotated[
        dict[Name, Numbers],
        about("by actuator; the engine clamps to ctrlrange", "of the actuator"),
    ]


class SomeMocap(Request, frozen=True, kw_only=True):
    """Which mocap bodies."""

    names: Annotated[Names | None, about("the mocap bodies; null for all")] = None


class MocapPose(Response, frozen=True, kw_only=True):
    """Pose of a mocap body."""

    pos: Annotated[RealTriple, about("position", "m", frame="world")]
    quat: Annotated[RealQuaternion, about("orientation, w x y z", "1", frame="world")]


class MocapPoses(Response, frozen=True, kw_only=True):
    """Several mocap bodies at one step boundary."""

    mocap: Annotated[dict[str, MocapPose], about("by name of the body")]


class SetMocap(Request, frozen=True, kw_only=True):
    """Where a mocap body is to be; what is left out stays."""

    name: Annotated[Name, about("the mocap body")]
    pos: Annotated[Triple | None, about("position", "m", frame="world")] = None
    quat: Annotated[
        Quaternion | None,
        about("orientation, w x y z; made of unit length", "1", frame="world"),
    ] = None


class Moved(Response, frozen=True, kw_only=True):
    """Which mocap bodies were put somewhere."""

    moved: Annotated[tuple[str, ...], about("their names")]


class Reading(Response, frozen=True, kw_only=True):
    """What a sensor reads, as of the last forward."""

    type: Annotated[str, about("MuJoCo's word for it")]
    value: Annotated[
        RealVector, about("what it reads", "as field unit says", frame="of the sensor's type")
    ]
    unit: Annotated[str, about("SI unit of each number; empty if pure or not known")]


class Sensors(Response, frozen=True, kw_only=True):
    """All sensors at one step boundary."""

    sensors: Annotated[dict[str, Reading], about("by name")]


def names(site: Site, request: OfKind) -> NamesAnswer:
    """Lists the names of all objects of one kind."""
    return response_of(NamesAnswer, names=site.env.names(request.kind))


def body_states(site: Site, request: SomeBodies) -> Bodies:
    """Tells pose and velocity of bodies, of the present state."""
    found = site.env.body_states(request.names, frame=request.frame)
    return response_of(Bodies, bodies=found)


def set_body_state(site: Site, request: SetBodyState) -> Done:
    """Puts a body somewhere or gives it a velocity; controls are not touched.

    A body that is held by joints cannot be put anywhere: set its joints instead.
    """
    values: dict[str, Any] = msgspec.structs.asdict(request)
    site.env.set_body_state(values.pop("name"), **values)
    return Done()


def joint_states(site: Site, request: SomeJoints) -> Joints:
    """Tells position, velocity and actuator force of joints of any type."""
    return response_of(Joints, joints=site.env.joint_states(request.names))


def set_joint_states(site: Site, request: SetJointStates) -> Done:
    """Sets positions and velocities of joints, all of them or none."""
    states = {name: msgspec.structs.asdict(values) for name, values in request.joints.items()}
    site.env.set_joint_states(states, sync_mocap=request.sync_mocap)
    return Done()


def ctrl(site: Site) -> Controls:
    """Tells the controls of all actuators."""
    return response_of(Controls, controls=site.env.ctrl())


def set_ctrl(site: Site, request: SetCtrl) -> Done:
    """Sets the controls of some actuators, all of them or none; they act from the next step on."""
    site.env.set_ctrl(request.controls)
    return Done()


def mocap_states(site: Site, request: SomeMocap) -> MocapPoses:
    """Tells the poses of mocap bodies."""
    return response_of(MocapPoses, mocap=site.env.mocap_states(request.names))


def set_mocap(site: Site, request: SetMocap) -> Done:
    """Puts a mocap body somewhere; bodies attached to it go with it."""
    site.env.set_mocap(request.name, pos=request.pos, quat=request.quat)
    return Done()


def sync_mocap(site: Site, request: SomeMocap) -> Moved:
    """Puts mocap bodies where what is welded to them does not move."""
    return response_of(Moved, moved=site.env.sync_mocap(request.names))


def sensors(site: Site) -> Sensors:
    """Tells what all sensors read, as of the last forward."""
    return response_of(Sensors, sensors=site.env.sensors())


_GROUP: Final = "State by name"

SPECS: Final = (
    described(_GROUP, names),
    described(_GROUP, body_states, ("body_state", "body_states")),
    described(_GROUP, set_body_state),
    described(_GROUP, joint_states, ("joint_state", "joint_states")),
    described(_GROUP, set_joint_states, ("set_joint_state", "set_joint_states")),
    described(_GROUP, ctrl),
    described(_GROUP, set_ctrl),
    described(_GROUP, mocap_states),
    described(_GROUP, set_mocap),
    described(_GROUP, sync_mocap),
    described(_GROUP, sensors),
)
