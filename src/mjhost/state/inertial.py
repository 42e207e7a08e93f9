"""Mass, centre of mass and inertia of bodies.

Invariants: an inertia is one that a body can have: positive, and no principal moment larger than
the other two together. What the engine takes for granted about frames that coincide is taken back
where they no longer do.
Failure: ``InvalidArgumentError`` that names the body; nothing changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import mujoco
import numpy as np

from mjhost.errors import InvalidArgumentError
from mjhost.state import bounds
from mjhost.state.geoms import positive
from mjhost.state.names import Names, ObjectKind
from mjhost.state.numbers import vector
from mjhost.state.poses import position, quaternion
from mjhost.state.records import Array, BodyInertial, frozen_copy

_ROUNDING: Final = 1e-9  # relative; an inertia at the very edge is a thin rod or plate


def body_inertial(model: mujoco.MjModel, body: int, name: str) -> BodyInertial:
    """The inertial properties of a body."""
    return BodyInertial(
        name=name,
        mass=float(model.body_mass[body]),
        com=frozen_copy(model.body_ipos[body]),
        inertia=frozen_copy(model.body_inertia[body]),
        quat=frozen_copy(model.body_iquat[body]),
    )


class InertialChange:
    """What a caller wants of a body's inertia, checked; what is ``None`` stays."""

    __slots__ = ("com", "inertia", "mass", "quat")

    def __init__(self, name: str, *, mass: Any, com: Any, inertia: Any, quat: Any) -> None:
        of = f"of body {name!r}"
        if mass is None and com is None and inertia is None and quat is None:
            raise InvalidArgumentError(
                f"the inertia {of} was to be set, and nothing was given; give mass, com, inertia "
                "or quat"
            )
        self.mass = None if mass is None else positive(mass, f"mass {of}")
        self.com = None if com is None else position(com, f"com {of}")
        self.quat = None if quat is None else quaternion(quat, f"quat of the inertia {of}")
        self.inertia: Array | None = None
        if inertia is not None and np.shape(inertia) == (6,):
            if quat is not None:
                raise InvalidArgumentError(
                    f"the inertia {of} as six numbers has its axes in it; leave quat away"
                )
            self.inertia, self.quat = _principal(vector(inertia, 6, f"inertia {of}"))
        elif inertia is not None:
            self.inertia = vector(inertia, 3, f"inertia {of}")
        if self.inertia is not None:
            check_inertia(self.inertia, f"inertia {of}")


def _principal(full: Array) -> tuple[Array, Array]:
    """Principal moments and axes of xx, yy, zz, xy, xz, yz."""
    xx, yy, zz, xy, xz, yz = full
    if not full[3:].any():  # as they are: a body that moves freely cannot have them exchanged
        return full[:3].copy(), np.array((1.0, 0.0, 0.0, 0.0))
    moments, axes = np.linalg.eigh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1.0
    quat = np.empty(4)
    mujoco.mju_mat2Quat(quat, np.ascontiguousarray(axes).ravel())
    return moments[::-1].copy(), _turned(quat)


def _turned(quat: Array) -> Array:
    """The same axes with the first and last exchanged: the engine orders moments downwards."""
    exchange = np.array((0.0, np.sqrt(0.5), 0.0, np.sqrt(0.5)))
    turned = np.empty(4)
    mujoco.mju_mulQuat(turned, quat, exchange)
    return turned


def check_inertia(moments: Array, what: str) -> None:
    """Raises unless a body can have these principal moments."""
    least, middle, most = sorted(moments.tolist())
    if least <= 0.0:
        raise InvalidArgumentError(f"{what} must have positive moments, got {moments.tolist()}")
    if most > (least + middle) * (1.0 + _ROUNDING):
        raise InvalidArgumentError(
            f"{what} must have no moment larger than the other two together (A + B >= C), got "
            f"{moments.tolist()}"
        )


def plan_inertial(
    model: mujoco.MjModel, names: Names, name: str, change: InertialChange
) -> Callable[[], bool]:
    """What gives the body ``name`` its new inertia, and says whether anything changed."""
    body = names.id(ObjectKind.BODY, name)
    if body == 0:
        raise InvalidArgumentError("the world has no mass that could be set")
    ipos = np.array(model.body_ipos[body]) if change.com is None else change.com
    iquat = np.array(model.body_iquat[body]) if change.quat is None else change.quat
    moves = (ipos != model.body_ipos[body]).any() or (iquat != model.body_iquat[body]).any()
    if moves and model.body_simple[body]:
        raise InvalidArgumentError(
            f"the centre of mass and the axes of body {name!r} cannot be moved in a compiled "
            "model: the engine counts on its diagonal inertia; change them in a scope of edit()"
        )

    def write() -> bool:
        before = _numbers(model, body)
        if change.mass is not None:
            model.body_mass[body] = change.mass
        if change.inertia is not None:
            model.body_inertia[body] = change.inertia
        if moves:
            model.body_ipos[body], model.body_iquat[body] = ipos, iquat
            _forget_coincidence(model, body)
            bounds.refit(model, body)
        return _numbers(model, body) != before

    return write


def _numbers(model: mujoco.MjModel, body: int) -> bytes:
    fields = (model.body_mass, model.body_inertia, model.body_ipos, model.body_iquat)
    return b"".join(field[body].tobytes() for field in fields)


def _forget_coincidence(model: mujoco.MjModel, body: int) -> None:
    """The engine does not compute frames that coincide; these no longer do."""
    model.body_sameframe[body] = 0
    model.geom_sameframe[np.flatnonzero(model.geom_bodyid == body)] = 0
    model.site_sameframe[np.flatnonzero(model.site_bodyid == body)] = 0
