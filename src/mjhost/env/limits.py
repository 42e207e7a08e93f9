"""The armed step limit of an env.

Owns: the arithmetic between a wanted time or step count and the steps that are left.
Invariants: counted in whole steps from an anchor, never by adding up floating-point times.
Threads: called under the physics lock only.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from mjhost.env.schedule import steps_for
from mjhost.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class StepLimit:
    """Where stepping stops by itself.

    Attributes:
        steps: step count since the last load or reset at which it stops, or ``None``.
        time: simulation time at whose first boundary it stops, s sim, or ``None``.
    """

    steps: int | None
    time: float | None

    def remaining(self, step_count: int, now: float, dt: float) -> int:
        """Steps until the limit; 0 when it is reached or passed."""
        left: list[int] = []
        if self.steps is not None:
            left.append(max(0, self.steps - step_count))
        if self.time is not None:
            left.append(0 if self.time <= now else steps_for(self.time - now, dt))
        return min(left)


def checked_limit(steps: int | None, time: float | None) -> StepLimit:
    """The limit that was asked for, or an error that says what is wrong with it."""
    if steps is None and time is None:
        raise InvalidArgumentError("stop_at needs steps= or time=, got neither")
    if steps is not None and (type(steps) is not int or steps < 1):
        raise InvalidArgumentError(
            f"stop_at(steps=) must be an integer of at least 1, got {steps!r}"
        )
    if time is not None:
        time = _checked_time(time)
    return StepLimit(steps, time)


def _checked_time(time: float) -> float:
    if (
        isinstance(time, bool)
        or not isinstance(time, (int, float))
        or not abs(time) <= sys.float_info.max
    ):
        raise InvalidArgumentError(
            f"stop_at(time=) must be a finite number of seconds, got {time!r}"
        )
    return float(time)


def nominal_time(anchor_time: float, steps: int, dt: float, actual: float) -> float:
    """Time after ``steps`` steps of ``dt`` from the anchor, free of accumulated rounding.

    ``data.time`` is a running sum: after a million steps it is some 1e-10 s off, which is enough to
    make a limit a step late. Where a user moved ``data.time`` himself, it is taken as it is.
    """
    exact = anchor_time + steps * dt
    return exact if abs(exact - actual) < 1e-3 * dt else actual
