"""What each sensor of a model reads, as a record.

Owns: the table from types of sensors to records, and the frame of each.
Invariants: every type of the engine has a record; what is not in the table is a ``ScalarReading``
if it is one number, a ``VectorReading`` if it is three, else an ``ArrayReading``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import mujoco

from mjhost.state.names import Names, ObjectKind
from mjhost.state.records import Array
from mjhost.state.sensors import place, type_of, unit_of
from mjhost.streams.records import (
    WORLD,
    ArrayReading,
    MagneticReading,
    OrientationReading,
    RangeReading,
    Record,
    ScalarReading,
    VectorReading,
)

_IN_SITE: Final = frozenset(
    ("touch", "accelerometer", "velocimeter", "gyro", "force", "torque", "magnetometer")
)
_ORIENTATIONS: Final = frozenset(("framequat", "ballquat"))
_UNCUT: Final = frozenset(("contact", "geomfromto"))  # types whose cutoff means something else
_OBJECTS: Final = {
    int(getattr(mujoco.mjtObj, f"mjOBJ_{word}")): kind
    for word, kind in (
        ("BODY", ObjectKind.BODY),
        ("XBODY", ObjectKind.BODY),
        ("SITE", ObjectKind.SITE),
        ("GEOM", ObjectKind.GEOM),
        ("CAMERA", ObjectKind.CAMERA),
    )
}
_POSITIVE: Final = int(mujoco.mjtDataType.mjDATATYPE_POSITIVE)
_REAL: Final = int(mujoco.mjtDataType.mjDATATYPE_REAL)
_JOINT: Final = int(mujoco.mjtObj.mjOBJ_JOINT)
_SITE: Final = int(mujoco.mjtObj.mjOBJ_SITE)
_INERTIAL: Final = int(mujoco.mjtObj.mjOBJ_BODY)  # XBODY is the body's own frame


class SensorChannel(NamedTuple):
    """One sensor of a model.

    Attributes:
        id: its index.
        name: its name; ``<type>_<index>`` if it has none.
        kind: the engine's word for its type.
        unit: of its numbers, if its type decides it.
        frame: name of the frame that they are in; ``<body>_inertial`` for a body's inertial frame.
        place: where they are in ``sensordata``.
        low: least value that the engine gives, by its cutoff.
        high: greatest value that the engine gives, by its cutoff.
        record: type of the record.
    """

    id: int
    name: str
    kind: str
    unit: str
    frame: str
    place: slice
    low: float
    high: float
    record: type[Record]

    @property
    def is_orientation(self) -> bool:
        """Whether the numbers are a quaternion."""
        return self.kind in _ORIENTATIONS

    def reading(self, numbers: Array) -> Record:
        """The record of what it reads."""
        return _MAKERS[self.record](self, numbers)


def channels(model: mujoco.MjModel, names: Names) -> tuple[SensorChannel, ...]:
    """All sensors of a model, in the order of their indices."""
    return tuple(_channel(model, names, sensor) for sensor in range(model.nsensor))


def _channel(model: mujoco.MjModel, names: Names, sensor: int) -> SensorChannel:
    kind, where = type_of(model, sensor), place(model, sensor)
    name = names.name(ObjectKind.SENSOR, sensor)
    low, high = _bounds(model, sensor, kind)
    return SensorChannel(
        id=sensor,
        name=f"{kind}_{sensor}" if name.startswith("#") else name,
        kind=kind,
        unit=unit_of(model, sensor),
        frame=_frame(model, names, sensor, kind),
        place=where,
        low=low,
        high=high,
        record=_record(kind, where.stop - where.start),
    )


def _record(kind: str, size: int) -> type[Record]:
    special: dict[str, type[Record]] = {
        "magnetometer": MagneticReading,
        "framequat": OrientationReading,
        "ballquat": OrientationReading,
    }
    if kind == "rangefinder" and size == 1:
        return RangeReading
    if kind in ("user", "plugin", "contact", "tactile"):
        return ArrayReading
    sizes: dict[int, type[Record]] = {1: ScalarReading, 3: VectorReading}
    return special.get(kind) or sizes.get(size, ArrayReading)


def _bounds(model: mujoco.MjModel, sensor: int, kind: str) -> tuple[float, float]:
    cutoff, data_type = float(model.sensor_cutoff[sensor]), int(model.sensor_datatype[sensor])
    high = cutoff if cutoff > 0.0 and kind not in _UNCUT else math.inf
    if data_type == _POSITIVE:
        return (-1.0 if kind == "rangefinder" else 0.0), high  # -1: no return
    return (-high, high) if data_type == _REAL else (-math.inf, math.inf)


def _frame(model: mujoco.MjModel, names: Names, sensor: int, kind: str) -> str:
    if kind in _IN_SITE or kind == "rangefinder":
        return _object(model, names, "obj", sensor)
    if kind.startswith("frame"):
        return _object(model, names, "ref", sensor)
    if int(model.sensor_objtype[sensor]) == _JOINT and kind in ("ballquat", "ballangvel"):
        body = int(model.jnt_bodyid[model.sensor_objid[sensor]])
        owner = body if kind == "ballangvel" else int(model.body_parentid[body])
        return names.name(ObjectKind.BODY, owner)
    return WORLD


def _object(model: mujoco.MjModel, names: Names, role: str, sensor: int) -> str:
    kind = _OBJECTS.get(int(getattr(model, f"sensor_{role}type")[sensor]))
    index = int(getattr(model, f"sensor_{role}id")[sensor])
    if kind is None or index < 0:
        return WORLD
    name = names.name(kind, index)
    inertial = int(getattr(model, f"sensor_{role}type")[sensor]) == _INERTIAL
    return f"{name}_inertial" if inertial else name


def _vector(channel: SensorChannel, numbers: Array) -> VectorReading:
    return VectorReading(
        frame=channel.frame, value=numbers, quantity=channel.kind, unit=channel.unit
    )


def _scalar(channel: SensorChannel, numbers: Array) -> ScalarReading:
    return ScalarReading(
        frame=channel.frame, value=float(numbers[0]), quantity=channel.kind, unit=channel.unit
    )


def _range(channel: SensorChannel, numbers: Array) -> RangeReading:
    """The engine's -1 is no return, and so is the cutoff itself."""
    distance = float(numbers[0])
    seen = 0.0 <= distance < channel.high
    return RangeReading(
        frame=channel.frame, value=distance if seen else math.inf, maximum=channel.high
    )


_MAKERS: Final[dict[type[Record], Callable[[SensorChannel, Array], Record]]] = {
    VectorReading: _vector,
    ScalarReading: _scalar,
    RangeReading: _range,
    MagneticReading: lambda c, numbers: MagneticReading(frame=c.frame, value=numbers),
    OrientationReading: lambda c, numbers: OrientationReading(frame=c.frame, value=numbers),
    ArrayReading: lambda c, numbers: ArrayReading(frame=c.frame, value=numbers, quantity=c.kind),
}


def by_site(
    model: mujoco.MjModel, names: Names, found: Iterable[SensorChannel]
) -> dict[str, dict[str, SensorChannel]]:
    """The first sensor of each kind at each site, but those relative to something else."""
    sites: dict[str, dict[str, SensorChannel]] = {}
    for channel in found:
        if int(model.sensor_objtype[channel.id]) != _SITE or model.sensor_refid[channel.id] >= 0:
            continue
        site = names.name(ObjectKind.SITE, int(model.sensor_objid[channel.id]))
        sites.setdefault(site, {}).setdefault(channel.kind, channel)
    return sites
