"""Mocap bodies by name, and putting them onto the bodies that are welded to them.

Invariants: a mocap body's pose is a row of its own, found through the body; orientations are of
unit length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import mujoco
import numpy as np

from mjhost.errors import InvalidArgumentError, UnknownNameError, did_you_mean
from mjhost.state.names import Names, ObjectKind
from mjhost.state.poses import conjugate, position, product, quaternion, rotated
from mjhost.state.records import Array, MocapState, frozen_copy

_WELD: Final = int(mujoco.mjtEq.mjEQ_WELD)
_SITE: Final = int(mujoco.mjtObj.mjOBJ_SITE)
Pose = tuple[Array, Array]


def mocap_names(model: mujoco.MjModel, names: Names) -> dict[str, int]:
    """The rows of all mocap bodies by name."""
    bodies = np.flatnonzero(model.body_mocapid >= 0)
    return {names.name(ObjectKind.BODY, int(b)): int(model.body_mocapid[b]) for b in bodies}


def row(model: mujoco.MjModel, names: Names, name: str) -> int:
    """The row of the mocap body ``name`` in ``mocap_pos`` and ``mocap_quat``."""
    found = int(model.body_mocapid[names.id(ObjectKind.BODY, name)])
    if found < 0:
        raise UnknownNameError(
            f"body {name!r} is not a mocap body; {did_you_mean(name, mocap_names(model, names))}"
        )
    return found


def selected_rows(
    model: mujoco.MjModel, names: Names, bodies: Iterable[str] | None
) -> dict[str, int]:
    """The rows of ``bodies``, or of all mocap bodies."""
    if bodies is None:
        return mocap_names(model, names)
    return {name: row(model, names, name) for name in names.selected(ObjectKind.BODY, bodies)}


def mocap_state(data: mujoco.MjData, mocap: int, name: str) -> MocapState:
    """The pose of a mocap body."""
    return MocapState(
        name=name,
        pos=frozen_copy(data.mocap_pos[mocap]),
        quat=frozen_copy(data.mocap_quat[mocap]),
    )


def plan_mocap(
    data: mujoco.MjData, mocap: int, name: str, *, pos: Any, quat: Any
) -> Callable[[], None]:
    """What puts the mocap body ``name`` of row ``mocap`` there."""
    if pos is None and quat is None:
        raise InvalidArgumentError(
            f"mocap body {name!r} was to be set, and nothing to set was given; give pos or quat"
        )
    new_pos = None if pos is None else position(pos, f"pos of mocap body {name!r}")
    new_quat = None if quat is None else quaternion(quat, f"quat of mocap body {name!r}")

    def write() -> None:
        if new_pos is not None:
            data.mocap_pos[mocap] = new_pos
        if new_quat is not None:
            data.mocap_quat[mocap] = new_quat

    return write


# -- welds ---------------------------------------------------------------------------------------


def welds_of(
    model: mujoco.MjModel, data: mujoco.MjData, names: Names, bodies: Iterable[str] | None
) -> dict[str, int]:
    """The active weld of each mocap body in ``bodies``, or of all that have one.

    Raises:
        UnknownNameError: one of ``bodies`` does not exist or is not a mocap body.
        InvalidArgumentError: one of ``bodies`` is not welded to anything.
    """
    found: dict[str, int] = {}
    for weld in np.flatnonzero((model.eq_type == _WELD) & (data.eq_active != 0)):
        for body in welded_bodies(model, int(weld)):
            if model.body_mocapid[body] >= 0:
                found.setdefault(names.name(ObjectKind.BODY, body), int(weld))
    if bodies is None:
        return found
    asked = names.selected(ObjectKind.BODY, bodies)
    for name in asked:
        row(model, names, name)
        if name not in found:
            raise InvalidArgumentError(
                f"mocap body {name!r} is held by no active weld, so there is nothing to put it onto"
            )
    return {name: found[name] for name in asked}


def welded_bodies(model: mujoco.MjModel, weld: int) -> tuple[int, int]:
    """The two bodies that a weld holds together."""
    one, two = int(model.eq_obj1id[weld]), int(model.eq_obj2id[weld])
    if model.eq_objtype[weld] == _SITE:
        return int(model.site_bodyid[one]), int(model.site_bodyid[two])
    return one, two


def synced_pose(model: mujoco.MjModel, data: mujoco.MjData, mocap_body: int, weld: int) -> Pose:
    """The pose in which ``mocap_body`` satisfies ``weld``, according to the poses in ``data``.

    A weld asks that a frame on its first body and one on its second be the same in the world.
    """
    bodies = welded_bodies(model, weld)
    frames = _weld_frames(model, weld)
    side = bodies.index(mocap_body)
    held, held_pos, held_quat = bodies[1 - side], *frames[1 - side]
    own_pos, own_quat = frames[side]
    target_quat = product(data.xquat[held], held_quat)
    target_pos = data.xpos[held] + rotated(held_pos, data.xquat[held])
    quat = product(target_quat, conjugate(own_quat))
    quat /= np.linalg.norm(quat)
    return target_pos - rotated(own_pos, quat), quat


def _weld_frames(model: mujoco.MjModel, weld: int) -> tuple[Pose, Pose]:
    """The two frames that a weld makes equal, each in its body."""
    if model.eq_objtype[weld] == _SITE:
        sites = int(model.eq_obj1id[weld]), int(model.eq_obj2id[weld])
        one, two = ((model.site_pos[site], model.site_quat[site]) for site in sites)
        return one, two
    numbers = model.eq_data[weld]
    # In body 2 an anchor, in body 1 the same point and the orientation of body 2.
    return (numbers[3:6], numbers[6:10]), (numbers[0:3], np.array((1.0, 0.0, 0.0, 0.0)))
