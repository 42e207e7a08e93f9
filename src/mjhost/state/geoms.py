"""Properties of geoms: type, size, friction, and the mass of the body that they belong to.

Invariants: what the engine derives from them (bounding radius, boxes, inertia) changes with them.
A mass is that of the whole body, since a compiled model keeps none of its geoms; the inertia is
scaled in proportion.
Failure: ``InvalidArgumentError`` that names the geom; nothing changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import mujoco
import numpy as np

from mjhost.errors import InvalidArgumentError, did_you_mean
from mjhost.state import bounds
from mjhost.state.names import Names, ObjectKind
from mjhost.state.numbers import number, vector
from mjhost.state.records import Array, GeomProperties, frozen_copy

# How many numbers of ``geom_size`` a type uses, and what they are.
_SIZES: Final[dict[str, tuple[int, str]]] = {
    "plane": (3, "half length x, half length y, grid spacing"),
    "sphere": (1, "radius"),
    "capsule": (2, "radius, half length"),
    "ellipsoid": (3, "radius x, radius y, radius z"),
    "cylinder": (2, "radius, half length"),
    "box": (3, "half length x, half length y, half length z"),
}
_WRAPPED: Final = (int(mujoco.mjtWrap.mjWRAP_SPHERE), int(mujoco.mjtWrap.mjWRAP_CYLINDER))
_MASSLESS: Final = 1e-15  # kg; the engine's own bound, mjMINVAL


def word(model: mujoco.MjModel, geom: int) -> str:
    """MuJoCo's word for the type of a geom."""
    kind = mujoco.mjtGeom(int(model.geom_type[geom]))
    return str(kind.name).removeprefix("mjGEOM_").lower()


def geom_properties(model: mujoco.MjModel, geom: int, name: str, body: str) -> GeomProperties:
    """The properties of a geom."""
    kind = word(model, geom)
    used = _SIZES.get(kind, (3, ""))[0]
    return GeomProperties(
        name=name,
        body=body,
        type=kind,
        size=frozen_copy(model.geom_size[geom][:used]),
        friction=frozen_copy(model.geom_friction[geom]),
        mass=float(model.body_mass[model.geom_bodyid[geom]]),
    )


class GeomChange:
    """What a caller wants of a geom, checked as far as it can be without the model."""

    __slots__ = ("friction", "mass", "size", "type")

    def __init__(self, name: str, *, type: Any, size: Any, friction: Any, mass: Any) -> None:
        of = f"of geom {name!r}"
        if type is None and size is None and friction is None and mass is None:
            raise InvalidArgumentError(
                f"the properties {of} were to be set, and nothing was given; give type, size, "
                "friction or mass"
            )
        self.type = None if type is None else _checked_type(type, of)
        self.size = size
        self.friction = None if friction is None else _friction(friction, of)
        self.mass = None if mass is None else positive(mass, f"mass {of}")


def _checked_type(given: Any, of: str) -> str:
    if given not in _SIZES:
        raise InvalidArgumentError(
            f"the type {of} can be set to a primitive, got {given!r}; "
            f"{did_you_mean(str(given), _SIZES)}"
        )
    return str(given)


def _friction(given: Any, of: str) -> Array:
    values = vector([given], 1, f"friction {of}") if np.ndim(given) == 0 else None
    if values is None:
        values = vector(given, len(given) if len(given) in (1, 2, 3) else 3, f"friction {of}")
    if (values < 0).any():
        raise InvalidArgumentError(f"friction {of} must not be negative, got {values.tolist()}")
    return values


def positive(given: Any, what: str) -> float:
    """A mass or the like that the engine can divide by."""
    value = number(given, what)
    if value < _MASSLESS:
        raise InvalidArgumentError(f"{what} must be above 0, got {value:g}")
    return value


def plan_geom(
    model: mujoco.MjModel, names: Names, name: str, change: GeomChange
) -> Callable[[], bool]:
    """What gives the geom ``name`` its new properties, and says whether anything changed."""
    geom = names.id(ObjectKind.GEOM, name)
    body = int(model.geom_bodyid[geom])
    shape = _shape(model, geom, name, change)
    friction = np.array(model.geom_friction[geom])
    if change.friction is not None:
        friction[: change.friction.size] = change.friction
    factor = _mass_factor(model, body, names, name, change)

    def write() -> bool:
        before = _properties(model, geom, body)
        if shape is not None:
            model.geom_type[geom], model.geom_size[geom] = shape.type, shape.size
            model.geom_rbound[geom], model.geom_aabb[geom] = shape.rbound, shape.aabb
            model.geom_fluid[geom] = shape.fluid
            bounds.refit(model, body)
        model.geom_friction[geom] = friction
        if change.mass is not None:
            model.body_mass[body] = change.mass
            model.body_inertia[body] *= factor
        return _properties(model, geom, body) != before

    return write


def _shape(model: mujoco.MjModel, geom: int, name: str, change: GeomChange) -> bounds.Shape | None:
    if change.type is None and change.size is None:
        return None
    present = word(model, geom)
    kind = change.type or present
    if present not in _SIZES:
        raise InvalidArgumentError(
            f"geom {name!r} is a {present}: its shape comes from data that is compiled; change it "
            "in the model"
        )
    if kind == "plane" and int(model.body_weldid[model.geom_bodyid[geom]]) != 0:
        raise InvalidArgumentError(f"geom {name!r} cannot be a plane: its body moves")
    if kind != present and _is_wrapped(model, geom):
        raise InvalidArgumentError(f"geom {name!r} must stay a {present}: a tendon wraps around it")
    used, meaning = _SIZES[kind]
    if change.size is None and used != _SIZES[present][0]:
        raise InvalidArgumentError(f"geom {name!r} as a {kind} needs a size: {meaning}")
    size = np.array(model.geom_size[geom])
    if change.size is not None:
        size[:] = 0.0
        size[:used] = vector(change.size, used, f"size of geom {name!r} ({meaning})")
    least = 0.0 if kind == "plane" else _MASSLESS
    if (size[:used] < least).any() or (kind == "plane" and size[2] <= 0):
        raise InvalidArgumentError(
            f"size of geom {name!r} ({meaning}) must be above 0, got {size[:used].tolist()}"
        )
    number_of_type = int(getattr(mujoco.mjtGeom, f"mjGEOM_{kind.upper()}"))
    return bounds.shape_of(number_of_type, size, np.array(model.geom_fluid[geom]))


def _is_wrapped(model: mujoco.MjModel, geom: int) -> bool:
    return bool((np.isin(model.wrap_type, _WRAPPED) & (model.wrap_objid == geom)).any())


def _mass_factor(
    model: mujoco.MjModel, body: int, names: Names, name: str, change: GeomChange
) -> float:
    if change.mass is None:
        return 1.0
    before = float(model.body_mass[body])
    if body == 0 or before <= 0.0:
        label = names.name(ObjectKind.BODY, body)
        raise InvalidArgumentError(
            f"geom {name!r} belongs to body {label!r}, which has no mass that could be scaled; use "
            "set_body_inertial for one that moves"
        )
    return change.mass / before


def _properties(model: mujoco.MjModel, geom: int, body: int) -> bytes:
    parts = (
        model.geom_type[geom],
        model.geom_size[geom],
        model.geom_friction[geom],
        model.body_mass[body],
        model.body_inertia[body],
    )
    return b"".join(np.asarray(part).tobytes() for part in parts)
