"""What the compiler makes of shapes, kept right when geoms or inertias change.

Owns: ``geom_rbound``, ``geom_aabb`` and the tree of boxes of a body, by which the engine finds what
may collide; and ``geom_fluid``.
Invariants: a box contains what it is for. Numbers of a single geom are those that the compiler
makes of one like it; the engine asks for the boxes in the frame of the body's inertia.
Threads: under the physics lock.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import mujoco
import numpy as np

from mjhost.state.records import Array

_CORNERS: Final = np.array(
    [(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)]
)
_CORNERS.flags.writeable = False


class Shape(NamedTuple):
    """A primitive, and what the compiler makes of it.

    Attributes:
        type: the engine's number of it.
        size: shape (3,), m.
        rbound: bounding radius, m.
        aabb: box, shape (6,), m.
        fluid: how it moves in a medium, shape (12,); all 0 without the ellipsoid model.
    """

    type: int
    size: Array
    rbound: float
    aabb: Array
    fluid: Array


def shape_of(kind: int, size: Array, fluid: Array) -> Shape:
    """A primitive of this size; of ``fluid`` its coefficients are kept."""
    spec = mujoco.MjSpec()
    geom = spec.worldbody.add_geom(type=kind, size=size)
    if fluid[0] > 0:
        geom.fluid_ellipsoid, geom.fluid_coefs = 1.0, fluid[1:6]
    model = spec.compile()
    rbound, aabb = float(model.geom_rbound[0]), np.array(model.geom_aabb[0])
    return Shape(kind, size, rbound, aabb, np.array(model.geom_fluid[0]))


def refit(model: mujoco.MjModel, body: int) -> None:
    """Makes the tree of boxes of ``body`` anew, from those of its geoms."""
    first, count = int(model.body_bvhadr[body]), int(model.body_bvhnum[body])
    # Children come after their parents.
    for node in reversed(range(first, first + count)):
        geom = int(model.bvh_nodeid[node])
        children = [first + int(c) for c in model.bvh_child[node] if c >= 0]
        boxes = [_corners_of(model.bvh_aabb[child]) for child in children]
        if geom >= 0 and not children:
            boxes.append(_in_inertia_frame(model, body, geom))
        if boxes:
            corners = np.concatenate(boxes)
            low, high = corners.min(0), corners.max(0)
            model.bvh_aabb[node] = [*(low + high) / 2, *(high - low) / 2]


def _corners_of(box: Any) -> Array:
    corners: Array = box[:3] + _CORNERS * box[3:]
    return corners


def _in_inertia_frame(model: mujoco.MjModel, body: int, geom: int) -> Array:
    corners = _corners_of(model.geom_aabb[geom])
    corners = corners @ _matrix(model.geom_quat[geom]).T + model.geom_pos[geom]
    turned: Array = (corners - model.body_ipos[body]) @ _matrix(model.body_iquat[body])
    return turned


def _matrix(quat: Any) -> Array:
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, np.asarray(quat))
    return matrix.reshape(3, 3)
