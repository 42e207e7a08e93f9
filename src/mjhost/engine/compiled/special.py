"""Conditions of the engine's functions that tables have no words for, in compiled code.

The twin of ``SPECIAL`` in ``mjhost.engine.views.checks``: every function there is here, checked or
refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import mujoco

from mjhost import layout
from mjhost.engine.compiled.face import types
from mjhost.engine.compiled.refusals import RefusedError

_MINIMUM: Final = float(mujoco.mjMINVAL)
_HFIELD: Final = layout.constants()["mjGEOM_HFIELD"]
_MESH: Final = layout.constants()["mjGEOM_MESH"]
_PURE: Final = tuple(
    layout.constants()[f"mjGEOM_{name}"]
    for name in ("PLANE", "SPHERE", "CAPSULE", "ELLIPSOID", "CYLINDER", "BOX")
)


def _ray(vec):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    flat = vec.reshape(-1)
    squared = flat[0] * flat[0] + flat[1] * flat[1] + flat[2] * flat[2]
    if not squared >= _MINIMUM * _MINIMUM:
        raise ValueError("mj_ray: vec must be longer than mjMINVAL")


def _hfield(model, geom):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    if model.geom_type[geom] != _HFIELD:
        raise ValueError("mj_rayHfield: geomid must be of a geom of type hfield")


def _mesh(model, geom):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    if model.geom_type[geom] != _MESH:
        raise ValueError("mj_rayMesh: geomid must be of a geom of type mesh")


def _pure(geomtype):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    for kind in _PURE:
        if geomtype == kind:
            return
    raise ValueError("mju_rayGeom: geomtype must be plane, sphere, capsule, ellipsoid, …")


CHECKED: Final[dict[str, tuple[Callable[..., Any], tuple[int, ...]]]] = {
    "mj_ray": (_ray, (3,)),
    "mj_rayHfield": (_hfield, (0, 2)),
    "mj_rayMesh": (_mesh, (0, 2)),
    "mju_rayGeom": (_pure, (5,)),
}
"""Function and the arguments that its check takes."""

REFUSED: Final = frozenset(
    {
        "mj_actuatorInputName",
        "mj_getState",
        "mj_stateSize",
        "mju_euler2Quat",
        "mju_raySkin",
        "mju_sparse2dense",
        "mju_sym2dense",
    }
)
"""Functions whose arguments only the Python path checks, so that only it has them."""


def check_available(name: str) -> None:
    """Refuses a function that compiled code cannot check.

    Raises:
        RefusedError: it is one of those.
    """
    if name in REFUSED:
        raise RefusedError(f"mj.{name} is not available in compiled code, only in Python's methods")


def check(name: str, context: Any, builder: Any, sig: Any, args: Any) -> None:
    """Writes the special check of a function, if it has one."""
    if name in CHECKED:
        function, indices = CHECKED[name]
        own = types.none(*(sig.args[k] for k in indices))
        context.compile_internal(builder, function, own, [args[k] for k in indices])
