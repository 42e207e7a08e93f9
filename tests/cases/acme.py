"""The engine plugin of the cases, ``acme.counter``: a sensor that reports the steps before."""

from __future__ import annotations

from mjhost import engine

SIZE_QUERIES = []
"""Index of the sensor, each time its size was asked for."""

RESETS = []
"""Index of the instance, each time one was reset."""


@engine.plugin("acme.counter", capabilities=("sensor",))
class Counter:
    """Two numbers of state, the count and a gain; the sensor is their product."""

    GAIN = 1.0
    state_size = 2

    def sensor_size(self, model, instance, sensor):
        SIZE_QUERIES.append(sensor)
        return 1

    def reset(self, model, data, instance):
        RESETS.append(instance)
        self.state[:] = 0.0, self.GAIN

    def compute(self, model, data, instance, capability):
        self.sensordata[:] = self.state[0] * self.state[1]

    def advance(self, model, data, instance):
        self.state[0] += 1.0
