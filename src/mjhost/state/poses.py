"""Positions and orientations: what is accepted as one, and the little algebra they need.

Invariants: quaternions are wxyz; one that comes out of here is of unit length. One that came from
here goes through unchanged, to the last bit.
Failure: ``InvalidArgumentError`` that names the thing.
Not a goal: the engine's own functions, which on 3.15 must not be called inside a hook; these may.

Where several are turned at once, points are of shape (n, 3) and quaternions of shape (n, 4).
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from mjhost.errors import InvalidArgumentError
from mjhost.state.numbers import vector
from mjhost.state.records import Array

# Below this length the engine takes a quaternion for the identity, and within it for a unit one.
_TINY: Final = 1e-15


def position(values: Any, what: str) -> Array:
    """A point, shape (3,), m."""
    return vector(values, 3, what)


def quaternion(values: Any, what: str) -> Array:
    """An orientation, shape (4,), wxyz, made of unit length."""
    quat = vector(values, 4, what)
    scale = float(np.abs(quat).max())
    if scale < _TINY:
        raise InvalidArgumentError(
            f"{what} must be an orientation wxyz, got all zeros; no rotation is (1, 0, 0, 0)"
        )
    if abs(math.hypot(*quat) - 1.0) > _TINY:
        quat /= scale
        quat /= math.hypot(*quat)
    return quat


def conjugate(quat: Array) -> Array:
    """The opposite rotation."""
    return quat * (1.0, -1.0, -1.0, -1.0)


def product(left: Array, right: Array) -> Array:
    """The rotation ``right`` followed by ``left``."""
    a, b, c, d = left.T
    w, x, y, z = right.T
    parts = (
        a * w - b * x - c * y - d * z,
        a * x + b * w + c * z - d * y,
        a * y - b * z + c * w + d * x,
        a * z + b * y - c * x + d * w,
    )
    return np.array(parts).T


def rotated(points: Array, quats: Array) -> Array:
    """``points`` turned by ``quats``: from the turned frame to the one it is turned in."""
    axes = quats[..., 1:]
    across = 2.0 * cross(axes, points)
    turned: Array = points + quats[..., :1] * across + cross(axes, across)
    return turned


def cross(left: Array, right: Array) -> Array:
    """The vector product; ``np.cross`` costs ten times as much for a few."""
    a, b, c = left.T
    x, y, z = right.T
    return np.array((b * z - c * y, c * x - a * z, a * y - b * x)).T


def rotated_back(points: Array, quats: Array) -> Array:
    """``points`` turned by the opposite of ``quats``."""
    return rotated(points, conjugate(quats))
