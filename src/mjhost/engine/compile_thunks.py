"""The thunks of signed distance fields, and those that run while a model compiles.

Owns: how distances, gradients and boxes get from Python into the engine's memory, and the ``self``
of meshes that are being compiled, before there are data.
Invariants: those of ``trampolines``. What fails while there are no data makes the compilation fail:
the compiler gets something that it can go on with, and the next ``init`` refuses.
Threads: the compiler runs several meshes at once, on threads of its own.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from mjhost.engine import instances, outcomes
from mjhost.engine.abi.symbols import engine
from mjhost.engine.contexts import here
from mjhost.engine.lives import Lives
from mjhost.engine.outcomes import Site
from mjhost.engine.views import model_view

Thunk = Callable[..., Any]

_MOST_VECTORS: Final = 256
_NUMBERS: Final = (float, int, np.floating, np.integer)
_SIZES: Final = ("state_size", "sensor_size")


# -- signed distances ----------------------------------------------------------------------------


def _sdf_distance(owner: Lives) -> Thunk:
    calls, bind = owner.hot["sdf_distance"], outcomes.binder(owner, "sdf_distance")

    def sdf_distance(point: int, data: int, instance: int, result: int = 0, out: int = 0) -> float:
        try:
            here.pinned  # noqa: B018 - pins on the first entry
            call = calls.get(data + instance) or bind(0, data, instance, out)
            distance = _finite(call[0](_vector(point), call[2], instance))
            if result:
                ctypes.c_double.from_address(result).value = distance
            return distance
        except BaseException as error:  # noqa: BLE001 - nothing may leave
            outcomes.fail(Site(owner, "sdf_distance"), error, data, instance, out)
            return outcomes.FAR

    return sdf_distance


def _sdf_gradient(owner: Lives) -> Thunk:
    calls, bind = owner.hot["sdf_gradient"], outcomes.binder(owner, "sdf_gradient")

    def sdf_gradient(gradient: int, point: int, data: int, instance: int, out: int = 0) -> None:
        try:
            here.pinned  # noqa: B018 - pins on the first entry
            call = calls.get(data + instance) or bind(0, data, instance, out)
            _vector(gradient)[:] = _three(call[0](_vector(point), call[2], instance))
        except BaseException as error:  # noqa: BLE001 - nothing may leave
            _vector(gradient)[:] = 0.0
            outcomes.fail(Site(owner, "sdf_gradient"), error, data, instance, out)

    return sdf_gradient


def _finite(value: Any) -> float:
    """A distance. The engine makes of NaN no contact, or NaN positions."""
    if not isinstance(value, _NUMBERS) or isinstance(value, bool):
        raise TypeError(f"a distance is a finite number, got {value!r}")
    if not math.isfinite(value):
        raise ValueError(f"a distance is a finite number, got {value}")
    return float(value)


def _three(value: Any) -> Any:
    if len(value) != 3:
        raise ValueError(f"a gradient has 3 numbers, got {len(value)}")
    if not (math.isfinite(value[0]) and math.isfinite(value[1]) and math.isfinite(value[2])):
        raise ValueError(f"a gradient is finite, got {tuple(map(float, value))}")
    return value


_vectors: Final[dict[int, Any]] = {}


def _vector(address: int) -> Any:
    """Three numbers at an address. Most are on the stack, at few places, again and again."""
    found = _vectors.get(address)
    if found is None:
        if len(_vectors) > _MOST_VECTORS:
            _vectors.clear()
        memory: Any = (ctypes.c_double * 3).from_address(address)
        found = np.ndarray((3,), np.float64, memory)
        _vectors[address] = found
    return found


# -- while a model compiles ----------------------------------------------------------------------

# There are no data yet that a failure could belong to. It is kept, and the next `init` of this
# name, which the compiler calls on the data it tries the model with, refuses with it.


def _state_size(owner: Lives) -> Thunk:
    def nstate(model: int, instance: int) -> int:
        try:
            kept = owner.unborn
            if kept is not None and kept.method in _SIZES and _is_first(model, instance):
                kept = owner.unborn = None  # a new compilation; what the last one kept is its own
            if kept is not None:
                return 0
            obj = owner.unmade(model, instance, _texts(model, instance))
            return owner.state_size(obj, model_view(model), instance)
        except BaseException as error:  # noqa: BLE001 - nothing may leave
            return _unborn(owner, "state_size", error, instance)

    return nstate


def _sensor_size(owner: Lives) -> Thunk:
    def nsensordata(model: int, instance: int, sensor: int) -> int:
        try:
            if owner.unborn is not None:
                return 0  # the same answer to every query, or the compiler fails before `init`
            obj = owner.unmade(model, instance, _texts(model, instance))
            return owner.sensor_size(obj, model_view(model), instance, sensor)
        except BaseException as error:  # noqa: BLE001 - nothing may leave
            return _unborn(owner, "sensor_size", error, instance)

    return nsensordata


def _is_first(model: int, instance: int) -> bool:
    """Whether the engine asks for the first instance of its plugin: it begins with the sizes."""
    slots = model_view(model).plugin
    return not (slots[:instance] == slots[instance]).any()


def _texts(model: int, instance: int) -> Callable[[str], str | None]:
    config = engine().plugin_config
    return lambda name: config(model, instance, name)


def _sdf_attribute(owner: Lives) -> Thunk:
    def sdf_attribute(attributes: int, names: int, values: int) -> None:
        try:
            texts = _pairs(len(owner.declaration.attributes), names, values)
            obj = instances.object_of(owner.declaration, owner.self_class, texts.get)
            owner.remember_static(attributes, obj)
            _write_numbers(attributes, obj, owner)
        except BaseException as error:  # noqa: BLE001 - nothing may leave
            owner.remember_static(attributes, _Ball(None))
            _unborn(owner, "sdf_attribute", error, None)

    return sdf_attribute


def _pairs(count: int, names: int, values: int) -> dict[str, str]:
    """The configuration as the engine hands it to an SDF: two arrays of strings."""
    keys = (ctypes.c_char_p * count).from_address(names) if count else ()
    texts = (ctypes.c_char_p * count).from_address(values) if count else ()
    return {
        key.decode(): (text or b"").decode("utf-8", "replace")
        for key, text in zip(keys, texts, strict=True)
    }


def _write_numbers(attributes: int, obj: Any, owner: Lives) -> None:
    """Writes what has a number where the compiled path reads it."""
    for index, (name, spec) in enumerate(owner.declaration.attributes.items()):
        value = getattr(obj, name)
        if spec.enum is not None:
            value = [*spec.enum].index(value)
        number = float(value) if isinstance(value, int | float) else 0.0
        ctypes.c_double.from_address(attributes + 8 * index).value = number


def _sdf_static_distance(owner: Lives) -> Thunk:
    statics = owner.statics

    def sdf_staticdistance(point: int, attributes: int) -> float:
        try:
            return _finite(statics[attributes].sdf_static_distance(_vector(point)))
        except BaseException as error:  # noqa: BLE001 - nothing may leave
            owner.remember_static(attributes, _Ball(owner.boxes.get(attributes)))
            _unborn(owner, "sdf_static_distance", error, None)
            return outcomes.FAR

    return sdf_staticdistance


def _sdf_aabb(owner: Lives) -> Thunk:
    def sdf_aabb(box: int, attributes: int) -> None:
        try:
            found = _six(owner.statics[attributes].sdf_aabb())
        except BaseException as error:  # noqa: BLE001 - nothing may leave
            ball = _Ball(None)
            owner.remember_static(attributes, ball)
            _unborn(owner, "sdf_aabb", error, None)
            found = ball.sdf_aabb()
        owner.boxes[attributes] = found
        ctypes.memmove(box, (ctypes.c_double * 6)(*found), 48)

    return sdf_aabb


class _Ball:
    """What the compiler gets after a failure: a ball in the box.

    Without it the compiler would complain about vertices, and never come to the ``init`` that tells
    what has happened.
    """

    def __init__(self, box: list[float] | None) -> None:
        self._box = box or [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
        self._centre, self._radius = self._box[:3], 0.5 * min(self._box[3:])

    def sdf_static_distance(self, point: Any) -> float:
        return math.dist(point.tolist(), self._centre) - self._radius

    def sdf_aabb(self) -> list[float]:
        return self._box


def _six(value: Any) -> list[float]:
    if len(value) != 6:
        raise ValueError(f"a box has 6 numbers, centre and half sizes, got {len(value)}")
    box = [float(number) for number in value]
    if not all(map(math.isfinite, box)) or min(box[3:]) <= 0:  # the engine would crash
        raise ValueError(f"a box is finite and its half sizes are positive, got {box}")
    return box


def _unborn(owner: Lives, method: str, error: BaseException, instance: int | None) -> int:
    label = "" if instance is None else f"instance {instance}"
    if owner.unborn is None:
        owner.unborn = Site(owner, method).told(error, instance, label)
    return 0


THUNKS: Final[dict[str, Callable[[Lives], Thunk]]] = {
    "nstate": _state_size,
    "nsensordata": _sensor_size,
    "sdf_distance": _sdf_distance,
    "sdf_gradient": _sdf_gradient,
    "sdf_staticdistance": _sdf_static_distance,
    "sdf_attribute": _sdf_attribute,
    "sdf_aabb": _sdf_aabb,
}
"""Slot of the engine → what makes its function for a name."""
