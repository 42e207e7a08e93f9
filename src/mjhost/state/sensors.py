"""What sensors read, by sensor.

Invariants: a unit is stated only where the type of the sensor alone decides it.
"""

from __future__ import annotations

from typing import Final

import mujoco

from mjhost.state.names import Names, ObjectKind
from mjhost.state.records import SensorReading, frozen_copy

_UNITS: Final = {
    "touch": "N",
    "accelerometer": "m/s²",
    "velocimeter": "m/s",
    "gyro": "rad/s",
    "force": "N",
    "torque": "N·m",
    "rangefinder": "m",
    "camprojection": "pixel",
    "ballangvel": "rad/s",
    "framepos": "m",
    "framelinvel": "m/s",
    "frameangvel": "rad/s",
    "framelinacc": "m/s²",
    "frameangacc": "rad/s²",
    "subtreecom": "m",
    "subtreelinvel": "m/s",
    "subtreeangmom": "kg·m²/s",
    "geomdist": "m",
    "geomfromto": "m",
    "e_potential": "J",
    "e_kinetic": "J",
    "clock": "s",
}
_TYPES: Final[dict[int, str]] = {
    int(value): name.removeprefix("mjSENS_").lower()
    for name, value in mujoco.mjtSensor.__members__.items()
}
# Of a joint or what moves like one: the unit depends on whether it turns or slides.
_JOINT_UNITS: Final = {
    "jointpos": ("m", "rad"),
    "jointvel": ("m/s", "rad/s"),
    "jointactfrc": ("N", "N·m"),
    "jointlimitpos": ("m", "rad"),
    "jointlimitvel": ("m/s", "rad/s"),
    "jointlimitfrc": ("N", "N·m"),
}
_SLIDE: Final = int(mujoco.mjtJoint.mjJNT_SLIDE)


def place(model: mujoco.MjModel, sensor: int) -> slice:
    """Where in ``sensordata`` a sensor's numbers are."""
    first = int(model.sensor_adr[sensor])
    return slice(first, first + int(model.sensor_dim[sensor]))


def type_of(model: mujoco.MjModel, sensor: int) -> str:
    """MuJoCo's word for the type of a sensor."""
    return _TYPES[int(model.sensor_type[sensor])]


def unit_of(model: mujoco.MjModel, sensor: int) -> str:
    """The unit of a sensor's numbers, if its type and object decide it; else empty."""
    kind = type_of(model, sensor)
    if kind in _JOINT_UNITS:
        slides = bool(model.jnt_type[model.sensor_objid[sensor]] == _SLIDE)
        return _JOINT_UNITS[kind][0 if slides else 1]
    return _UNITS.get(kind, "")


def reading(model: mujoco.MjModel, data: mujoco.MjData, sensor: int, name: str) -> SensorReading:
    """What one sensor reads."""
    return SensorReading(
        name=name,
        type=type_of(model, sensor),
        value=frozen_copy(data.sensordata[place(model, sensor)]),
        unit=unit_of(model, sensor),
    )


def readings(model: mujoco.MjModel, data: mujoco.MjData, names: Names) -> dict[str, SensorReading]:
    """What all sensors read."""
    return {
        name: reading(model, data, sensor, name)
        for name, sensor in names.ids(ObjectKind.SENSOR).items()
    }
