"""Operations on properties of the model, and on wrenches.

Invariants: as for the members of ``MujocoEnv``; what is left out of a request stays as it is.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from mjhost.operations.fields import (
    Done,
    Name,
    Quaternion,
    Real,
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

Numbers: TypeAlias = float | list[float]
Pair: TypeAlias = tuple[float, float]
Five: TypeAlias = tuple[float, float, float, float, float]
Frame: TypeAlias = Literal["world", "body"]
Primitive: TypeAlias = Literal["plane", "sphere", "capsule", "ellipsoid", "cylinder", "box"]

_SIZE: Final = "as many numbers as the type uses, as in MJCF"
_FRICTION: Final = "sliding, torsional (m), rolling (m)"
_TENSOR: Final = "principal moments, or xx yy zz xy xz yz along the body's axes"
_AXES: Final = "as field frame says"
_NUMBERS_FRAME: Final = "body 2, or body 1 of a connect"


class OneGeom(Request, frozen=True, kw_only=True):
    """Which geom."""

    name: Annotated[Name, about("the geom")]


class Geom(Response, frozen=True, kw_only=True):
    """What can be changed of a geom."""

    body: Annotated[str, about("the body it belongs to")]
    type: Annotated[str, about("MuJoCo's word for its type")]
    size: Annotated[RealVector, about(_SIZE, "m")]
    friction: Annotated[RealTriple, about(_FRICTION, "1, m, m")]
    mass: Annotated[Real, about("of the body", "kg")]


class SetGeom(Request, frozen=True, kw_only=True):
    """What a geom is to be."""

    name: Annotated[Name, about("the geom")]
    type: Annotated[Primitive | None, about("a primitive")] = None
    size: Annotated[Numbers | None, about(_SIZE, "m")] = None
    friction: Annotated[Numbers | None, about(f"{_FRICTION}, or the first of them", "1, m, m")] = (
        None
    )
    mass: Annotated[float | None, about("of the body, whose inertia is scaled with it", "kg")] = (
        None
    )


class Changed(Response, frozen=True, kw_only=True):
    """Whether anything is another than before."""

    changed: Annotated[bool, about("whether anything changed")]


class OneBody(Request, frozen=True, kw_only=True):
    """Which body."""

    name: Annotated[Name, about("the body")]


class Inertial(Response, frozen=True, kw_only=True):
    """Mass and inertia of a body."""

    mass: Annotated[Real, about("mass", "kg")]
    com: Annotated[RealTriple, about("centre of mass", "m", frame="body")]
    inertia: Annotated[RealTriple, about("principal moments about it", "kg·m²")]
    quat: Annotated[RealQuaternion, about("principal axes, w x y z", "1", frame="body")]


class SetInertial(Request, frozen=True, kw_only=True):
    """What the inertia of a body is to be."""

    name: Annotated[Name, about("the body")]
    mass: Annotated[float | None, about("mass; the inertia does not follow", "kg")] = None
    com: Annotated[Triple | None, about("centre of mass", "m", frame="body")] = None
    inertia: Annotated[list[float] | None, about(_TENSOR, "kg·m²", frame="body")] = None
    quat: Annotated[Quaternion | None, about("principal axes, w x y z", "1", frame="body")] = None


class OneEquality(Request, frozen=True, kw_only=True):
    """Which equality constraint."""

    name: Annotated[Name, about("the constraint")]


class Equality(Response, frozen=True, kw_only=True):
    """An equality constraint; what its type does not have is null."""

    type: Annotated[str, about("weld, connect, joint, tendon, or MuJoCo's word for flexes")]
    active: Annotated[bool, about("whether it acts")]
    objects: Annotated[tuple[str, ...], about("what it is between")]
    anchor: Annotated[RealTriple | None, about("the held point", "m", frame=_NUMBERS_FRAME)]
    anchor2: Annotated[RealTriple | None, about("of a connect, in body 2", "m", frame="body 2")]
    pos: Annotated[RealTriple | None, about("of a weld: body 2", "m", frame="body 1")]
    quat: Annotated[RealQuaternion | None, about("of a weld: body 2", "1", frame="body 1")]
    torquescale: Annotated[Real, about("of a weld: rotation against translation", "m")]
    polycoef: Annotated[RealVector | None, about("of a coupling: its polynomial", "mixed")]
    solref: Annotated[RealVector, about("as in MJCF", "mixed")]
    solimp: Annotated[RealVector, about("as in MJCF", "mixed")]


class SetEquality(Request, frozen=True, kw_only=True):
    """What an equality constraint is to be."""

    name: Annotated[Name, about("the constraint")]
    active: Annotated[bool | None, about("whether it acts")] = None
    hold: Annotated[bool | None, about("ask for what is now, so that nothing jumps")] = None
    anchor: Annotated[Triple | None, about("the held point", "m", frame=_NUMBERS_FRAME)] = None
    anchor2: Annotated[Triple | None, about("of a connect", "m", frame="body 2")] = None
    pos: Annotated[Triple | None, about("of a weld: body 2", "m", frame="body 1")] = None
    quat: Annotated[Quaternion | None, about("of a weld: body 2", "1", frame="body 1")] = None
    torquescale: Annotated[float | None, about("of a weld: rotation against translation", "m")] = (
        None
    )
    polycoef: Annotated[Five | None, about("of a coupling: its polynomial", "mixed")] = None
    solref: Annotated[Pair | None, about("as in MJCF", "mixed")] = None
    solimp: Annotated[Five | None, about("as in MJCF", "mixed")] = None


class Gravity(Response, frozen=True, kw_only=True):
    """Gravity."""

    gravity: Annotated[RealTriple, about("acceleration", "m/s²", frame="world")]


class SetGravity(Request, frozen=True, kw_only=True):
    """What gravity is to be."""

    gravity: Annotated[Triple, about("acceleration", "m/s²", frame="world")]


class ApplyWrench(Request, frozen=True, kw_only=True):
    """A force and a torque on a body."""

    body: Annotated[Name, about("the body")]
    force: Annotated[Triple, about("force", "N", frame=_AXES)] = (0.0, 0.0, 0.0)
    torque: Annotated[Triple, about("torque", "N·m", frame=_AXES)] = (0.0, 0.0, 0.0)
    point: Annotated[
        Triple | None,
        about("where the force acts, as it is now; null: the centre of mass", "m", frame=_AXES),
    ] = None
    frame: Annotated[Frame, about("along whose axes; one of the body turns with it")] = "world"
    duration: Annotated[
        float | None, about("simulated time it acts for; null: until it is cleared", "s")
    ] = None
    name: Annotated[Name, about("tells it from other wrenches on the body")] = ""


class SomeWrenches(Request, frozen=True, kw_only=True):
    """Which wrenches."""

    body: Annotated[Name | None, about("those on this body; null for all bodies")] = None
    name: Annotated[Name | None, about("those of this name; null for all names")] = None


class Cleared(Response, frozen=True, kw_only=True):
    """How many wrenches have ended."""

    cleared: Annotated[int, about("their number", "1")]


class Wrench(Response, frozen=True, kw_only=True):
    """What is applied to a body in the next step."""

    force: Annotated[RealTriple, about("the sum", "N", frame="world")]
    torque: Annotated[RealTriple, about("the sum about the centre of mass", "N·m", frame="world")]
    parts: Annotated[tuple[str, ...], about("names of the wrenches")]


def geom_properties(site: Site, request: OneGeom) -> Geom:
    """Tells type, size and friction of a geom, and the mass of its body."""
    return response_of(Geom, site.env.geom_properties(request.name))


def set_geom_properties(site: Site, request: SetGeom) -> Changed:
    """Changes a geom; plugins are told once, if anything changed."""
    return Changed(changed=site.env.set_geom_properties(**_named(request)))


def body_inertial(site: Site, request: OneBody) -> Inertial:
    """Tells mass, centre of mass and inertia of a body."""
    return response_of(Inertial, site.env.body_inertial(request.name))


def set_body_inertial(site: Site, request: SetInertial) -> Changed:
    """Changes mass, centre of mass and inertia of a body."""
    return Changed(changed=site.env.set_body_inertial(**_named(request)))


def equality_state(site: Site, request: OneEquality) -> Equality:
    """Tells what an equality constraint is between, whether it acts, and its numbers."""
    return response_of(Equality, site.env.equality_state(request.name))


def set_equality(site: Site, request: SetEquality) -> Done:
    """Switches or changes an equality constraint."""
    site.env.set_equality(**_named(request))
    return Done()


def gravity(site: Site) -> Gravity:
    """Tells the acceleration of gravity."""
    return response_of(Gravity, gravity=site.env.gravity())


def set_gravity(site: Site, request: SetGravity) -> Done:
    """Sets the acceleration of gravity, as a transaction of the options."""
    site.env.set_gravity(request.gravity)
    return Done()


def apply_wrench(site: Site, request: ApplyWrench) -> Done:
    """Applies a force and a torque to a body from the next step on.

    It adds to wrenches of other names and replaces one of the same name on the same body.
    """
    values = msgspec.structs.asdict(request)
    site.env.apply_wrench(values.pop("body"), **values)
    return Done()


def clear_wrench(site: Site, request: SomeWrenches) -> Cleared:
    """Ends wrenches of a body, of a name, or all."""
    return Cleared(cleared=site.env.clear_wrench(request.body, request.name))


def wrench(site: Site, request: OneBody) -> Wrench:
    """Tells what is applied to a body in the next step."""
    return response_of(Wrench, site.env.wrench(request.name))


def _named(request: Request) -> dict[str, Any]:
    return msgspec.structs.asdict(request)


_GROUP: Final = "Properties and wrenches"

SPECS: Final = tuple(
    described(_GROUP, operation)
    for operation in (
        geom_properties,
        set_geom_properties,
        body_inertial,
        set_body_inertial,
        equality_state,
        set_equality,
        gravity,
        set_gravity,
        apply_wrench,
        clear_wrench,
        wrench,
    )
)
