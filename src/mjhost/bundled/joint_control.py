"""The control law of one joint.

Owns: ``Gains``, ``Limits``, ``JointControl``.
Invariants: what a drive is told does not jump when a mode begins: the difference to what it was
told last fades.
Not a goal: what comes from where; ``mjhost.bundled.control`` knows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated, Any

import msgspec

from mjhost.bundled.drives import Drive

_NotNegative = Annotated[float, msgspec.Meta(ge=0.0)]
_Positive = Annotated[float, msgspec.Meta(gt=0.0)]


class Gains(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a joint that is driven by efforts is controlled.

    Attributes:
        kp: effort per rad or m; None: of the bandwidth.
        kd: effort per rad/s or m/s; None: critical damping.
        ki: effort per rad·s or m·s.
        integral: greatest effort of the integral, N·m or N.
    """

    kp: _NotNegative | None = None
    kd: _NotNegative | None = None
    ki: _NotNegative = 0.0
    integral: _NotNegative = 0.0


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of a joint, within those of the model.

    Attributes:
        low: least position, rad or m.
        high: greatest position, rad or m.
        velocity: greatest speed of set points, rad/s or m/s.
        effort: greatest effort, N·m or N.
    """

    low: float = -math.inf
    high: float = math.inf
    velocity: _Positive = math.inf
    effort: _NotNegative = math.inf

    def __post_init__(self) -> None:
        """Refuse a range that has nothing in it."""
        if not self.low < self.high:
            raise ValueError(f"low must be below high, got {self.low} and {self.high}")


class JointControl:
    """One joint and what it is told.

    Attributes:
        drive: what moves it.
        mode: ``idle``, ``position``, ``velocity``, ``effort`` or ``trajectory``.
        goal: set point of the mode, in its unit.
        position: desired position, rad or m.
        velocity: desired velocity, rad/s or m/s.
        feed: effort that is added, N·m or N.
        integral: effort of the integral, N·m or N.
        told: what the drive was told last, in its unit; None: nothing yet.
        fade: what is added so that nothing jumps, at ``fade_start``; None: to be found.
    """

    def __init__(
        self,
        drive: Drive,
        gains: Gains,
        limits: Limits,
        bandwidth: float,
        handover: float,
    ) -> None:
        self.drive = drive
        self._bandwidth, self._handover = bandwidth, handover
        w = 2 * math.pi * bandwidth
        self.kp = drive.inertia * w * w if gains.kp is None else gains.kp
        self.kd = 2 * math.sqrt(self.kp * drive.inertia) if gains.kd is None else gains.kd
        self.ki, self.most_integral = gains.ki, gains.integral
        self.low, self.high = max(limits.low, drive.low), min(limits.high, drive.high)
        self.speed = limits.velocity
        self.effort = min(limits.effort, drive.effort)
        self.mode = "idle"
        self.goal = self.position = self.velocity = self.feed = self.integral = 0.0
        self.told: float | None = None
        self.fade: float | None = 0.0
        self.fade_start = 0.0

    # -- what it is told ---------------------------------------------------------------------

    def bounds(self, mode: str) -> tuple[float, float]:
        """Least and greatest set point of a mode."""
        if mode == "position":
            return self.low, self.high
        most = self.speed if mode == "velocity" else self.effort
        return -most, most

    def desired(self, data: Any) -> tuple[float, float]:
        """Where it is to be now, and how fast it is to go; where it is, if that is nowhere."""
        if self.mode in ("position", "trajectory", "velocity"):
            return self.position, self.velocity
        return float(data.qpos[self.drive.qpos]), 0.0

    def within(self, data: Any) -> tuple[float, float]:
        """What ``desired`` says, within the limits."""
        position, velocity = self.desired(data)
        return min(max(position, self.low), self.high), velocity

    def settle(self, data: Any) -> None:
        """Goes on from where it is to be."""
        self.position, self.velocity = self.desired(data)

    def hand_over(self, now: float, mode: str, goal: float) -> None:
        """Goes on in another mode, or to another set point, from ``now`` on."""
        if mode != self.mode or mode == "trajectory":
            self.fade, self.fade_start = None, now
        self.mode, self.goal, self.feed = mode, goal, 0.0

    def hold(self, data: Any) -> None:
        """Stays where it is, within its limits."""
        here = min(max(float(data.qpos[self.drive.qpos]), self.low), self.high)
        self.mode, self.goal, self.feed = "position", here, 0.0
        self.position, self.velocity = here, 0.0
        self.fade, self.fade_start = None, float(data.time)

    def go_limp(self) -> None:
        """No effort, at once."""
        self.mode, self.goal, self.feed, self.fade = "limp", 0.0, 0.0, 0.0

    # -- the law -----------------------------------------------------------------------------

    def approach(self, dt: float) -> None:
        """Moves the desired position towards the goal, no faster than the limit."""
        if self.mode == "position":
            way, most = self.goal - self.position, self.speed * dt
            if abs(way) <= most:
                self.position, self.velocity = self.goal, 0.0
            else:
                step = math.copysign(most, way)
                self.position, self.velocity = self.position + step, step / dt
        elif self.mode == "velocity":
            self.velocity = self.goal
            self.position = min(max(self.position + self.goal * dt, self.low), self.high)

    def command(self, data: Any, now: float, bias: float) -> float:
        """What the drive is told, in its own unit; ``bias`` is added to an effort that controls."""
        value = self._law(data, bias)
        if self._handover > 0.0:
            if self.fade is None:
                self.fade = 0.0 if self.told is None else self.told - value
            value += self.fade * max(0.0, 1.0 - (now - self.fade_start) / self._handover)
        if self.drive.kind == "effort":
            return min(max(value, -self.effort), self.effort)
        return value

    def _law(self, data: Any, bias: float) -> float:
        drive = self.drive
        if drive.kind == "position":
            return self.position
        here, speed = float(data.qpos[drive.qpos]), float(data.qvel[drive.dof])
        if drive.kind == "velocity":
            pull = 0.0 if self.mode == "velocity" else self._pull * (self.position - here)
            return min(max(self.velocity + pull, -self.speed), self.speed)
        if self.mode in ("effort", "limp"):
            return self.goal
        effort = self.kd * (self.velocity - speed) + self.feed + self.integral + bias
        if self.mode != "velocity":
            effort += self.kp * (self.position - here)
        return effort

    @property
    def _pull(self) -> float:
        """Speed per distance of a velocity servo, 1/s."""
        return self.kp / self.kd if self.kp and self.kd else 2 * math.pi * self._bandwidth

    def integrate(self, data: Any, dt: float) -> None:
        """Lets the integral grow, after a step; it ends with the mode."""
        if not self.ki or self.mode not in ("position", "trajectory"):
            self.integral = 0.0
            return
        grown = self.integral + self.ki * dt * (self.position - float(data.qpos[self.drive.qpos]))
        self.integral = min(max(grown, -self.most_integral), self.most_integral)

    # -- the past ----------------------------------------------------------------------------

    def saved(self) -> list[Any]:
        """What changes, as plain values."""
        return [getattr(self, name) for name in _SAVED]

    def restore(self, values: Iterable[Any]) -> None:
        """Takes what ``saved`` gave."""
        for name, value in zip(_SAVED, values, strict=True):
            setattr(self, name, value)


_SAVED = (
    *("mode", "goal", "position", "velocity", "feed", "integral"),
    *("told", "fade", "fade_start"),
)
