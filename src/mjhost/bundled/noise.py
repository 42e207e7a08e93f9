"""Noise of sensors: Gaussian, walking bias, quantisation, dropout, latency.

Owns: ``NoiseRule``, and ``SensorNoise``, which applies rules to all numbers of a model's sensors.
Invariants: what is drawn in a step is a function of seed and step alone: it depends neither on who
listens nor on how often, and comes again after a reset or a restore. Only bias has a past.
Failure: wrong bounds are refused by the configuration.
Not a goal: what a number means, but that an orientation stays one.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
import numpy as np

from mjhost.state.numbers import vector
from mjhost.state.poses import product
from mjhost.state.records import Array

_NotNegative = Annotated[float, msgspec.Meta(ge=0.0)]
_LONGEST: Final = 60.0


class NoiseRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The noise of some sensors, in their own units.

    Attributes:
        sigma: standard deviation of each number; of an orientation, rad about each axis.
        bias: standard deviation of the bias at the start.
        bias_walk: how fast the bias walks, per square root of a second.
        resolution: readings are multiples of it; 0: all.
        dropout: share of the readings that do not come.
        latency: how much later than measured a reading comes, s sim; at most a minute.
    """

    sigma: _NotNegative = 0.0
    bias: _NotNegative = 0.0
    bias_walk: _NotNegative = 0.0
    resolution: _NotNegative = 0.0
    dropout: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] = 0.0
    latency: Annotated[float, msgspec.Meta(ge=0.0, le=_LONGEST)] = 0.0


class Channel(msgspec.Struct, frozen=True):
    """The numbers of one sensor.

    Attributes:
        place: where in ``sensordata``.
        rule: its noise.
        is_orientation: whether they are a quaternion.
        low: least value that the sensor gives.
        high: greatest value that the sensor gives.
    """

    place: slice
    rule: NoiseRule
    is_orientation: bool = False
    low: float = -math.inf
    high: float = math.inf


class SensorNoise:
    """Turns true sensor data into readings.

    Args:
        channels: the sensors.
        size: how many numbers there are altogether.
        seed: of everything that is drawn.
        name: of whoever draws; another one draws other numbers.

    Attributes:
        bias: the present bias of each number, shape ``(size,)``.
    """

    def __init__(self, channels: Sequence[Channel], size: int, seed: int, name: str) -> None:
        self._channels = channels
        self._seed, self._name = seed, name
        self._sigma, self._start, self._walk, self._step = (
            _spread(channels, size, name) for name in ("sigma", "bias", "bias_walk", "resolution")
        )
        self._low, self._high = np.full(size, -math.inf), np.full(size, math.inf)
        for channel in channels:
            self._low[channel.place], self._high[channel.place] = channel.low, channel.high
        self._orientations = [c for c in channels if c.is_orientation and c.rule.sigma]
        for channel in self._orientations:
            self._sigma[channel.place] = 0.0
        self._dropout = np.array([channel.rule.dropout for channel in channels])
        self._walks = bool(self._walk.any())
        self.bias = np.zeros(size)
        self.restart()

    @property
    def is_silent(self) -> bool:
        """Whether readings are the truth."""
        arrays = (self._sigma, self._start, self._walk, self._step, self._dropout)
        return not self._orientations and not any(array.any() for array in arrays)

    def sigma_of(self, channel: int) -> float:
        """Standard deviation of the numbers of a channel; of an orientation, rad."""
        return self._channels[channel].rule.sigma

    def restart(self) -> None:
        """The bias is that of the start."""
        self.bias = self._start * self._drawn(0, 1).standard_normal(len(self._start))
        self._walked = -1, self.bias  # the newest step, and the bias before it

    def walk(self, step: int, seconds: float) -> None:
        """Lets the bias walk for as long, up to ``step``; for a step taken again, once."""
        if self._walks:
            if self._walked[0] == step:
                self.bias = self._walked[1]
            self._walked = step, self.bias
            way = self._drawn(step, 2).standard_normal(len(self.bias))
            self.bias = self.bias + self._walk * math.sqrt(seconds) * way

    def readings(self, truth: Array, step: int) -> Array:
        """Readings in place of ``truth``, a new array."""
        noise = self._drawn(step, 3)
        read = truth + self.bias + self._sigma * noise.standard_normal(len(truth))
        for channel in self._orientations:
            turn = channel.rule.sigma * noise.standard_normal(3)
            read[channel.place] = turned(truth[channel.place], turn)
        stepped = self._step > 0.0
        read[stepped] = np.round(read[stepped] / self._step[stepped]) * self._step[stepped]
        clipped: Array = np.clip(read, self._low, self._high)
        return clipped

    def dropped(self, step: int) -> Any:
        """Which sensors give no reading in that step, booleans in the order of the channels."""
        return self._drawn(step, 4).random(len(self._dropout)) < self._dropout

    def save(self) -> dict[str, Any]:
        """What the past has left."""
        return {"bias": self.bias.copy()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on with it."""
        self.bias = vector(state["bias"], len(self.bias), "bias")
        self._walked = -1, self.bias

    def _drawn(self, step: int, purpose: int) -> np.random.Generator:
        return drawn(self._seed, self._name, purpose, step)


def drawn(seed: int, name: str, *moment: int) -> np.random.Generator:
    """What draws the same numbers again for the same seed, name and moment."""
    key = np.random.SeedSequence([seed, zlib.crc32(name.encode()), *moment])
    return np.random.Generator(np.random.Philox(key))


def turned(quat: Array, turn: Array) -> Array:
    """An orientation w x y z, turned by a rotation vector (rad, shape (3,)) in its own axes."""
    angle = float(np.linalg.norm(turn))
    if angle == 0.0:
        return quat.copy()
    half = 0.5 * angle
    return product(quat, np.concatenate(([math.cos(half)], turn * (math.sin(half) / angle))))


def _spread(channels: Sequence[Channel], size: int, name: str) -> Array:
    """A setting of the rules, for each number."""
    values = np.zeros(size)
    for channel in channels:
        values[channel.place] = getattr(channel.rule, name)
    return values
