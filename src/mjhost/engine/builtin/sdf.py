"""``mjhost.sdf.*``: shapes by their signed distance: sphere, torus, gyroid, and any function.

A signed distance is negative inside, in m, and changes by at most 1 m per m. The plugin is named
twice in a model, by the mesh and by the geom that it is for::

    <mesh name="ring"><plugin instance="ring"/></mesh>
    <geom type="sdf" mesh="ring"><plugin instance="ring"/></geom>

Two things are drawn from it, and they are not the same. The *mesh*, made at compile time of about a
million distances, is what is seen, what inertia comes from, and what *planes* collide with; its
facets are some per cent of the box. Other geoms collide with the *field*: the engine looks for
contacts from ``<option sdf_initpoints>`` random points by ``sdf_iterations`` steps of descent, so
that of a shape with holes or handles it may miss some. Compare ``sdf_initpoints`` of 40 and 400 if
it matters.

Python needs seconds for that million, machine code (``choice.use(compiled=True)``) a fraction of
one.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Final

import numpy as np

from mjhost.engine import attribute
from mjhost.engine.builtin import choice
from mjhost.engine.builtin.choice import bundled
from mjhost.engine.declaration import declare
from mjhost.engine.registry import register_plugin
from mjhost.errors import EngineDeclarationError

_MARGIN: Final = 1.02  # two cells of the grid that meshes are made on

_ON_AXIS: Final = 1e-100  # m; the square of less is no number to divide by

_STEEPEST: Final = math.sqrt(3.0)
"""Upper bound of the slope of the gyroid's expression, per radian."""


@bundled("mjhost.sdf.sphere", "sdf")
class Sphere:
    """A ball around the origin."""

    radius: float = attribute(0.1, minimum=1e-6, doc="m")

    def sdf_aabb(self: Any) -> Sequence[float]:
        """The box."""
        return (0.0, 0.0, 0.0, self.radius, self.radius, self.radius)

    def sdf_static_distance(self: Any, point: Any) -> Any:
        """The distance."""
        x, y, z = point[0], point[1], point[2]
        return math.sqrt(x * x + y * y + z * z) - self.radius

    def sdf_gradient(self: Any, point: Any, _data: Any, _instance: int) -> Any:
        """Its gradient."""
        x, y, z = point[0], point[1], point[2]
        return _unit(x, y, z, math.sqrt(x * x + y * y + z * z))


@bundled("mjhost.sdf.torus", "sdf")
class Torus:
    """A ring around the z axis."""

    radius1: float = attribute(0.35, minimum=1e-6, doc="of the ring, m")
    radius2: float = attribute(0.15, minimum=1e-6, doc="of its tube, m")

    def sdf_aabb(self: Any) -> Sequence[float]:
        """The box."""
        wide = self.radius1 + self.radius2
        return (0.0, 0.0, 0.0, wide, wide, self.radius2)

    def sdf_static_distance(self: Any, point: Any) -> Any:
        """The distance."""
        x, y, z = point[0], point[1], point[2]
        across = math.sqrt(x * x + y * y) - self.radius1
        return math.sqrt(across * across + z * z) - self.radius2

    def sdf_gradient(self: Any, point: Any, _data: Any, _instance: int) -> Any:
        """Its gradient."""
        x, y, z = point[0], point[1], point[2]
        axis = math.sqrt(x * x + y * y)
        across = axis - self.radius1
        # On the axis every direction away from it is as good.
        outwards = across / axis if axis > _ON_AXIS else 0.0
        return _unit(x * outwards, y * outwards, z, math.sqrt(across * across + z * z))


@bundled("mjhost.sdf.gyroid", "sdf")
class Gyroid:
    """A ball of gyroid: one smooth sheet that fills space, cut off by a sphere.

    The distance is a lower bound, exact where the sheet is steepest: contacts are right, and the
    sheet is up to a quarter thicker elsewhere.
    """

    radius: float = attribute(0.1, minimum=1e-6, doc="of the ball, m")
    period: float = attribute(0.1, minimum=1e-6, doc="after which the sheet repeats, m")
    thickness: float = attribute(0.02, minimum=1e-6, doc="of the sheet, m")

    def sdf_aabb(self: Any) -> Sequence[float]:
        """The box."""
        return (0.0, 0.0, 0.0, self.radius, self.radius, self.radius)

    def sdf_static_distance(self: Any, point: Any) -> Any:
        """The distance."""
        x, y, z = point[0], point[1], point[2]
        return max(self.sheet(x, y, z), math.sqrt(x * x + y * y + z * z) - self.radius)

    def wave(self: Any, x: float, y: float, z: float) -> float:
        """The expression that is zero in the middle of the sheet; angles in rad."""
        first, second = math.sin(x) * math.cos(y), math.sin(y) * math.cos(z)
        return first + second + math.sin(z) * math.cos(x)

    def sheet(self: Any, x: float, y: float, z: float) -> Any:
        """Distance to the sheet alone."""
        rate = 2 * math.pi / self.period
        wave = self.wave(rate * x, rate * y, rate * z)
        return abs(wave) / (rate * _STEEPEST) - self.thickness / 2

    def sdf_gradient(self: Any, point: Any, _data: Any, _instance: int) -> Any:
        """Its gradient."""
        x, y, z = point[0], point[1], point[2]
        length = math.sqrt(x * x + y * y + z * z)
        if length - self.radius >= self.sheet(x, y, z):
            return _unit(x, y, z, length)
        rate = 2 * math.pi / self.period
        x, y, z = rate * x, rate * y, rate * z
        side = 1.0 if self.wave(x, y, z) >= 0 else -1.0
        gradient = np.zeros(3)
        gradient[0] = math.cos(x) * math.cos(y) - math.sin(z) * math.sin(x)
        gradient[1] = math.cos(y) * math.cos(z) - math.sin(x) * math.sin(y)
        gradient[2] = math.cos(z) * math.cos(x) - math.sin(y) * math.sin(z)
        return gradient * (side / _STEEPEST)


def _unit(x: float, y: float, z: float, length: float) -> Any:
    gradient = np.zeros(3)
    if length > _ON_AXIS:
        gradient[0] = x / length
        gradient[1] = y / length
        gradient[2] = z / length
    else:
        gradient[2] = 1.0
    return gradient


def function(
    name: str,
    distance: Callable[[float, float, float], float],
    *,
    box: Sequence[float],
    compiled: bool | None = None,
) -> None:
    """Registers an SDF that is any function of x, y and z.

    ::

        def egg(x, y, z):
            return math.sqrt(x * x + y * y + z * z / 1.69) - 0.1

        sdf.function("acme.egg", egg, box=(0.1, 0.1, 0.13))

    The function stands in the program, a model can only name it: text of a model is never run.
    Gradients are central differences.

    Args:
        name: of the engine plugin, for the life of the process. The same function, from the same
            place, may be given again.
        distance: from a point, in the frame of the geom, m, to the surface, m; negative inside.
            With ``compiled`` it is what Numba can compile.
        box: half sizes along x, y and z of a box around the origin that holds the shape, m; or a
            box's centre and half sizes. It is widened by 2 %: where a face of the shape lies in
            a face of the box, the mesh would have a hole, and the wrong mass.
        compiled: as machine code, which is some ten times as fast; ``None`` is what ``use`` chose.

    Raises:
        EngineDeclarationError: it is no such function, or no box.
        EngineNameTakenError: the name is something else's.
        NotCompilableError: it is to be compiled, and cannot be.
    """
    _check_function(name, distance)
    shape = _class_of(distance, _box(name, box))
    register_plugin(
        declare(
            name,
            shape,
            ("sdf",),
            compiled=choice.is_compiled() if compiled is None else compiled,
            frame=inspect.currentframe().f_back,  # type: ignore[union-attr]
        )
    )


def _class_of(distance: Callable[[float, float, float], float], limits: Sequence[float]) -> type:
    """The engine plugin of one function."""

    class Function:
        """One SDF without attributes."""

        def sdf_aabb(self: Any) -> Sequence[float]:
            """The box."""
            return limits

        def sdf_static_distance(self: Any, point: Any) -> Any:
            """The distance."""
            return distance(point[0], point[1], point[2])

        def sdf_distance(self: Any, point: Any, _data: Any, _instance: int) -> Any:
            """The same, in a data."""
            return distance(point[0], point[1], point[2])

    Function.__qualname__ = f"function {distance.__qualname__}"
    Function.__module__ = distance.__module__
    return Function


def _check_function(name: str, distance: Any) -> None:
    if not isinstance(distance, FunctionType):
        raise EngineDeclarationError(
            f"the SDF {name!r} must be a plain function or lambda of x, y, z, got {distance!r}"
        )
    try:
        inspect.signature(distance).bind(0.0, 0.0, 0.0)
    except TypeError as error:
        raise EngineDeclarationError(
            f"the SDF {name!r} is called with x, y, z, which {distance.__qualname__}"
            f"{inspect.signature(distance)} does not take ({error})"
        ) from None


def _box(name: str, box: Sequence[float]) -> tuple[float, ...]:
    numbers = tuple(float(number) for number in box)
    limits = (0.0, 0.0, 0.0, *numbers) if len(numbers) == 3 else numbers
    if len(limits) != 6 or not all(map(math.isfinite, limits)) or min(limits[3:]) <= 0:
        raise EngineDeclarationError(
            f"the box of the SDF {name!r} is 3 half sizes above 0, or a centre and half sizes, in "
            f"m; got {box!r}"
        )
    return (*limits[:3], *(_MARGIN * half for half in limits[3:]))
