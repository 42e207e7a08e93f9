"""``mjhost.pid``: a PID controller as an actuator, with the numbers of ``mujoco.pid``.

The force of each actuator of an instance is ``kp·e + ki·∫e dt + kd·de/dt``, where ``e`` is the
setpoint minus ``actuator_length``. The setpoint is ``ctrl``, clamped to ``ctrlrange``, or, with a
``dyntype``, what that makes of it; only then has it a rate of its own, which is in ``de/dt``.
``slewmax`` limits how fast the setpoint may move, ``imax`` what the integral may contribute.

The integral and the last setpoint are activations, in this order, before that of the ``dyntype``,
so that they are saved, restored and differentiated with the rest of the state. An actuator needs
``actdim`` = 1 for ``ki``, plus 1 for ``slewmax``, plus 1 for a ``dyntype``. The slew limit begins
after the first step, for which there is no last setpoint: it reads ``time > 0``.

Equal to ``mujoco.pid`` to the bit where that is right. Different: addresses are those of the
actuator's own control, activation and force, so that an actuator with several inputs before it does
no harm (MuJoCo 3.15 reads another's control then); ``imax`` and ``slewmax`` are refused when they
are negative or no number; at a timestep of 0 nothing integrates.

Not MuJoCo's ``<position>``, which has no integral and whose damping the implicit integrators
know: forces of any plugin are explicit, so stiff gains need a small timestep. Not its ``<pid>``
either, an actuator with up to three inputs and its own rules for windup and filtering.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import mujoco

from mjhost.engine import attribute
from mjhost.engine.builtin.choice import bundled
from mjhost.engine.views import mj

_NONE: Final = int(mujoco.mjtDyn.mjDYN_NONE)
_FILTER_EXACT: Final = int(mujoco.mjtDyn.mjDYN_FILTEREXACT)
_FILTERS: Final = (
    _NONE,
    int(mujoco.mjtDyn.mjDYN_INTEGRATOR),
    int(mujoco.mjtDyn.mjDYN_FILTER),
    _FILTER_EXACT,
)
_ACTUATOR: Final = int(mujoco.mjtObj.mjOBJ_ACTUATOR)
_SHORTEST_TIME: Final = float(mujoco.mjMINVAL)


class _Memo(NamedTuple):
    """What follows from the attributes.

    Attributes:
        limit: of the integral itself, not of its force.
        integrates: whether there is an activation for the integral.
        slews: whether there is one for the last setpoint.
    """

    limit: float
    integrates: bool
    slews: bool


def _clipped(value: float, low: float, high: float) -> float:
    if value < low:
        return low
    return min(value, high)


@bundled("mjhost.pid", "actuator")
class Pid:
    """One controller for every actuator that names the instance."""

    kp: float = attribute(0.0, doc="proportional gain, force per length")
    ki: float = attribute(0.0, doc="integral gain, force per length and second")
    kd: float = attribute(0.0, doc="derivative gain, force per velocity")
    imax: float = attribute(math.inf, minimum=0, doc="most force of the integral")
    slewmax: float = attribute(math.inf, minimum=0, doc="most change of the setpoint per second")

    def init(self: Any, model: Any, _data: Any, _instance: int) -> _Memo:
        """Checks the actuators; the integral is limited by its force."""
        if not len(self.actuators):
            raise ValueError("no actuator names this instance; a pid needs at least one")
        integrates, slews = self.ki != 0, self.slewmax < math.inf
        for actuator in self.actuators:
            _check(model, int(actuator), integrates + slews)
        return _Memo(self.imax / abs(self.ki) if integrates else 0.0, integrates, slews)

    def setpoint(self: Any, model: Any, data: Any, k: int, early: bool) -> Any:  # noqa: FBT001
        """Where actuator ``k`` of the instance is to go."""
        actuator = self.actuators[k]
        if model.actuator_dyntype[actuator] == _NONE:
            control = self.ctrladr[k]
            goal = data.ctrl[control]
            if model.actuator_ctrllimited[control]:
                limits = model.actuator_ctrlrange[control]
                goal = _clipped(goal, limits[0], limits[1])
        else:
            goal = self.activation(model, data, actuator, early)
        if self.memo.slews and data.time > 0:
            last = data.act[self.actadr[k] + (1 if self.memo.integrates else 0)]
            reach = self.slewmax * model.opt.timestep
            goal = _clipped(goal, last - reach, last + reach)
        return goal

    def activation(self: Any, model: Any, data: Any, actuator: int, early: bool) -> Any:  # noqa: FBT001
        """The activation of the dyntype, or with ``early`` what it will be after this step."""
        slot = model.actuator_actadr[actuator] + model.actuator_actnum[actuator] - 1
        if not early:
            return data.act[slot]
        timestep = model.opt.timestep
        if model.actuator_dyntype[actuator] == _FILTER_EXACT:
            tau = max(_SHORTEST_TIME, model.actuator_dynprm[actuator, 0])
            following = data.act[slot] + data.act_dot[slot] * tau * (1 - math.exp(-timestep / tau))
        else:
            following = data.act[slot] + data.act_dot[slot] * timestep
        if model.actuator_actlimited[actuator]:
            limits = model.actuator_actrange[actuator]
            following = _clipped(following, limits[0], limits[1])
        return following

    def integral(self: Any, model: Any, data: Any, k: int, error: float) -> Any:
        """The integral after this step, if the error stays what it is."""
        after = data.act[self.actadr[k]] + error * model.opt.timestep
        return _clipped(after, -self.memo.limit, self.memo.limit)

    def actuator_act_dot(self: Any, model: Any, data: Any, _instance: int) -> None:
        """Moves the integral and the last setpoint."""
        timestep = model.opt.timestep
        if timestep <= 0:
            return
        for k in range(len(self.actuators)):
            goal = self.setpoint(model, data, k, False)
            error = goal - data.actuator_length[self.outadr[k]]
            slot = self.actadr[k]
            if self.memo.integrates:
                after = self.integral(model, data, k, error)
                data.act_dot[slot] = (after - data.act[slot]) / timestep
                slot += 1
            if self.memo.slews:
                data.act_dot[slot] = (goal - data.act[slot]) / timestep

    def compute(self: Any, model: Any, data: Any, _instance: int, _capability: int) -> None:
        """Writes the forces."""
        for k in range(len(self.actuators)):
            actuator, out = self.actuators[k], self.outadr[k]
            goal = self.setpoint(model, data, k, model.actuator_actearly[actuator] != 0)
            error = goal - data.actuator_length[out]
            goal_rate = 0.0
            if model.actuator_dyntype[actuator] != _NONE:
                slot = model.actuator_actadr[actuator] + model.actuator_actnum[actuator] - 1
                goal_rate = data.act_dot[slot]
            error_rate = goal_rate - data.actuator_velocity[out]
            integral = self.integral(model, data, k, error) if self.memo.integrates else 0.0
            data.actuator_force[out] = self.kp * error + self.kd * error_rate + self.ki * integral


def _check(model: Any, actuator: int, own: int) -> None:
    """Refuses an actuator that is not built for it."""
    name = mj.mj_id2name(model, _ACTUATOR, actuator)
    where = f"actuator {name!r} ({actuator})" if name else f"actuator {actuator}"
    inputs, outputs = model.actuator_ctrlnum[actuator], model.actuator_outnum[actuator]
    if (inputs, outputs) != (1, 1):
        raise ValueError(
            f"{where} has {inputs} inputs and {outputs} outputs; a pid drives actuators with one "
            "of each"
        )
    if model.actuator_dyntype[actuator] not in _FILTERS:
        raise ValueError(
            f"{where} has a dyntype that a pid has no setpoint for; use none, integrator, filter "
            "or filterexact"
        )
    filtered = int(model.actuator_dyntype[actuator] != _NONE)
    given = int(model.actuator_actnum[actuator])
    if given != own + filtered:
        raise ValueError(
            f'{where} has actdim="{given}", but ki, slewmax and dyntype need one activation each '
            f'where they are used; write actdim="{own + filtered}"'
        )
