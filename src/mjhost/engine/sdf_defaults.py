"""The SDF methods that follow from others: distance in a data, and the gradient.

They are written as users would write them, so that both the Python path and the compiled one can
take them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

STEP: Final = 1e-6
"""Distance of the points of the central differences, in the units of the model (m)."""


def _sdf_distance(self: Any, point: Any, data: Any, instance: Any) -> Any:  # noqa: ARG001
    return self.sdf_static_distance(point)


def _sdf_gradient(self: Any, point: Any, data: Any, instance: Any) -> Any:
    gradient = np.empty(3)
    near = np.empty(3)
    for axis in range(3):
        near[0] = point[0]
        near[1] = point[1]
        near[2] = point[2]
        near[axis] = point[axis] + STEP
        above = self.sdf_distance(near, data, instance)
        near[axis] = point[axis] - STEP
        gradient[axis] = (above - self.sdf_distance(near, data, instance)) / (2 * STEP)
    return gradient


DEFAULTS: Final[Mapping[str, Callable[..., Any]]] = {
    "sdf_distance": _sdf_distance,
    "sdf_gradient": _sdf_gradient,
}


def filled_in(methods: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """``methods`` with the defaults for those that are missing."""
    return {**DEFAULTS, **methods}
