"""``mjhost.thermal``: an electric motor that heats, and gives less when it is hot.

The control is a current, A; the force is ``torque_constant`` times the current that flows, which is
less than the one asked for above ``limit`` and none at ``maximum`` (°C), linear in between. The
winding heats by ``resistance·current²``, with the resistance of its temperature, and cools by
``cooling`` per kelvin above ``ambient``::

    heat_capacity · dw/dt = resistance·(1 + coefficient·w)·current² - cooling·w

The temperature above ambient, ``w``, K, is the actuator's activation (write ``actdim="1"``): the
engine integrates it once per step, RK4 with its sub-steps, and saves, restores and differentiates
it; a reset makes the motor cold. Adding ``timestep·dw/dt`` in ``compute`` instead would heat the
motor once per evaluation: four times in a step of RK4, and by merely looking with ``mj_forward``.

A plugin sensor that names the same instance reads the temperatures of its motors, °C.
"""

from __future__ import annotations

from typing import Any, Final

import mujoco

from mjhost.engine import attribute
from mjhost.engine.builtin.choice import bundled

_NONE: Final = int(mujoco.mjtDyn.mjDYN_NONE)
_ACTUATOR: Final = int(mujoco.mjtPluginCapabilityBit.mjPLUGIN_ACTUATOR)


@bundled("mjhost.thermal", "actuator", "sensor", stage="pos")
class Thermal:
    """Every motor that names the instance; each has a temperature of its own."""

    torque_constant: float = attribute(1.0, doc="force per current, N·m/A")
    resistance: float = attribute(1.0, minimum=0, doc="of the winding at ambient temperature, Ω")
    coefficient: float = attribute(0.00393, minimum=0, doc="of the resistance, 1/K; copper")
    heat_capacity: float = attribute(50.0, minimum=1e-6, doc="of the winding, J/K")
    cooling: float = attribute(0.5, minimum=0, doc="W/K")
    ambient: float = attribute(25.0, doc="°C")
    limit: float = attribute(80.0, doc="where the current begins to be reduced, °C")
    maximum: float = attribute(120.0, doc="where no current flows, °C")

    def sensor_size(self: Any, model: Any, instance: int, _sensor: int) -> int:
        """One temperature per motor."""
        return sum(int(owner == instance) for owner in model.actuator_plugin)

    def init(self: Any, model: Any, _data: Any, _instance: int) -> None:
        """Checks temperatures and actuators."""
        if not self.ambient < self.limit < self.maximum:
            raise ValueError(
                f"ambient={self.ambient:g}, limit={self.limit:g} and maximum={self.maximum:g} must "
                "be in this order"
            )
        if not len(self.actuators):
            raise ValueError("no actuator names this instance; thermal needs at least one")
        for actuator in self.actuators:
            dimension = int(model.actuator_actnum[actuator])
            if dimension != 1 or model.actuator_dyntype[actuator] != _NONE:
                raise ValueError(
                    f"actuator {actuator} must have one activation, its temperature, and no "
                    f'dyntype; write actdim="1"'
                )
            if model.actuator_ctrlnum[actuator] != 1 or model.actuator_outnum[actuator] != 1:
                raise ValueError(f"actuator {actuator} must have one input and one output")

    def current(self: Any, model: Any, data: Any, k: int) -> Any:
        """What flows, A."""
        control = self.ctrladr[k]
        asked = data.ctrl[control]
        if model.actuator_ctrllimited[control]:
            limits = model.actuator_ctrlrange[control]
            asked = min(max(asked, limits[0]), limits[1])
        temperature = self.ambient + data.act[self.actadr[k]]
        share = (self.maximum - temperature) / (self.maximum - self.limit)
        return asked * min(max(share, 0.0), 1.0)

    def actuator_act_dot(self: Any, model: Any, data: Any, _instance: int) -> None:
        """Heats and cools."""
        for k in range(len(self.actuators)):
            slot = self.actadr[k]
            warmer = data.act[slot]
            current = self.current(model, data, k)
            heat = self.resistance * (1 + self.coefficient * warmer) * current * current
            data.act_dot[slot] = (heat - self.cooling * warmer) / self.heat_capacity

    def compute(self: Any, model: Any, data: Any, _instance: int, capability: int) -> None:
        """Writes the forces, or what the sensors read."""
        if capability == _ACTUATOR:
            for k in range(len(self.actuators)):
                current = self.current(model, data, k)
                data.actuator_force[self.outadr[k]] = self.torque_constant * current
        else:
            for start in self.sensoradr:
                for k in range(len(self.actuators)):
                    data.sensordata[start + k] = self.ambient + data.act[self.actadr[k]]
