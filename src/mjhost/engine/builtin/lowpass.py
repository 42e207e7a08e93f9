"""``mjhost.lowpass``: a sensor that is another one, filtered.

::

    <gyro name="raw" site="imu"/>
    <plugin name="smooth" plugin="mjhost.lowpass" objtype="sensor" objname="raw">
      <config key="frequency" value="20"/> <config key="size" value="3"/>
    </plugin>

First order: ``dy/dt = 2π·frequency·(x - y)``, exact for a reading ``x`` that stands still during a
step, whatever the timestep: ``y ← x + (y - x)·exp(-2π·frequency·timestep)``. It starts at the first
reading, without a transient, and reads what the other sensor puts out, delay and cutoff included.

The memory is ``plugin_state``: whether there is any, and ``y``, per sensor. It moves in
``advance`` only, once per step; ``compute`` may be called any number of times and says what the
filter gives for the present reading.

The stage decides when the output is up to date, and the source must not be of a later one:
``mjhost.lowpass.pos`` and ``mjhost.lowpass.vel`` are computed before controllers run, so that those
read the filtered value of the same step; ``mjhost.lowpass`` is computed after accelerations and can
filter anything, but a controller reads the one of the step before.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import mujoco

from mjhost.engine import attribute
from mjhost.engine.builtin.choice import Indices, bundled
from mjhost.engine.views import mj

_SENSOR: Final = int(mujoco.mjtObj.mjOBJ_SENSOR)
_STAGES: Final = ("none", "pos", "vel", "acc")


class _Memo(NamedTuple):
    """Where the reading of each sensor is in ``sensordata``."""

    sources: Indices


class _Lowpass:
    """One filter per sensor that names the instance."""

    frequency: float = attribute(minimum=0, doc="where the gain is 1/√2 (-3 dB), Hz")
    size: int = attribute(1, minimum=1, doc="how many numbers the source has")

    def state_size(self: Any, model: Any, instance: int) -> int:
        """A flag and the output, per sensor."""
        sensors = sum(int(owner == instance) for owner in model.sensor_plugin)
        return sensors * (1 + int(self.size))

    def sensor_size(self: Any, _model: Any, _instance: int, _sensor: int) -> int:
        """As many as the source has."""
        return int(self.size)

    def init(self: Any, model: Any, _data: Any, _instance: int) -> _Memo:
        """Finds the sources."""
        found = [_source(model, int(sensor), self.size) for sensor in self.sensors]
        return _Memo(model.sensor_adr[found].astype("int32"))

    def filtered(self: Any, model: Any, data: Any, k: int, element: int) -> Any:
        """What the filter gives for the present reading."""
        reading = data.sensordata[self.memo.sources[k] + element]
        known = k * (1 + self.size)
        if self.state[known] == 0:
            return reading
        kept = math.exp(-2 * math.pi * self.frequency * model.opt.timestep)
        return reading + (self.state[known + 1 + element] - reading) * kept

    def compute(self: Any, model: Any, data: Any, _instance: int, _capability: int) -> None:
        """Writes the outputs."""
        for k in range(len(self.sensors)):
            for element in range(self.size):
                value = self.filtered(model, data, k, element)
                data.sensordata[self.sensoradr[k] + element] = value

    def advance(self: Any, model: Any, data: Any, _instance: int) -> None:
        """Remembers the outputs."""
        for k in range(len(self.sensors)):
            known = k * (1 + self.size)
            for element in range(self.size):
                self.state[known + 1 + element] = self.filtered(model, data, k, element)
            self.state[known] = 1.0


@bundled("mjhost.lowpass", "sensor", stage="acc")
class Lowpass(_Lowpass):
    """Filters any sensor."""


@bundled("mjhost.lowpass.vel", "sensor", stage="vel")
class LowpassVelocity(_Lowpass):
    """Filters sensors of positions and velocities."""


@bundled("mjhost.lowpass.pos", "sensor", stage="pos")
class LowpassPosition(_Lowpass):
    """Filters sensors of positions."""


def _source(model: Any, sensor: int, size: int) -> int:
    """The sensor that ``sensor`` filters."""
    where = _named(model, sensor)
    source = int(model.sensor_objid[sensor])
    if model.sensor_objtype[sensor] != _SENSOR:
        raise ValueError(f'{where} filters no sensor; write objtype="sensor" objname="…"')
    if model.sensor_dim[source] != size:
        raise ValueError(
            f"{where} filters {_named(model, source)}, which has {model.sensor_dim[source]} "
            f'number(s); write <config key="size" value="{model.sensor_dim[source]}"/>'
        )
    mine, its = int(model.sensor_needstage[sensor]), int(model.sensor_needstage[source])
    own, other = int(model.sensor_plugin[sensor]), int(model.sensor_plugin[source])
    if its > mine:
        raise ValueError(
            f"{where} is computed at stage {_STAGES[mine]}, before {_named(model, source)} at "
            f"stage {_STAGES[its]}; use mjhost.lowpass{'' if its == 3 else '.' + _STAGES[its]}"
        )
    if its == mine and other >= own:
        raise ValueError(
            f"{where} is computed before {_named(model, source)}, another engine plugin's, which "
            "must be declared before it"
        )
    return source


def _named(model: Any, sensor: int) -> str:
    name = mj.mj_id2name(model, _SENSOR, sensor)
    return f"sensor {name!r} ({sensor})" if name else f"sensor {sensor}"
