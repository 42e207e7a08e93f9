"""Rates in simulation time, exact in steps.

Owns: the tasks of an env and the step at which each is due.
Invariants: with k integer steps since the anchor, the n-th call of a task (n = 1, 2, 3, …) belongs
to the first k with ``k*dt >= n/rate - 1e-9*dt``. Everything is computed from the integers n and k,
so no error adds up; a timestep or rate that is the nearest float to a short fraction (0.001, 1/240)
counts as that fraction. A task faster than the timestep is due at every step, once: calls are never
bunched. A task that is added later falls into the same grid, from the next boundary on.
Threads: none of its own; the caller holds the physics lock.
Failure: a refused argument changes nothing.
Not a goal: calling anybody. ``advance`` says who is due.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

from mjhost.errors import InvalidArgumentError

NEVER: Final = 1 << 62
"""Steps until something is due when nothing is."""

MAX_STEPS: Final = 1 << 53
"""Most steps a duration may mean; beyond it a float does not count them any more."""

_GRAIN: Final = 10**9  # a boundary counts as reached within one part of this of a step
_SHORT: Final = 10**6  # largest denominator that is taken for what somebody meant
_FLOAT_IS_ENOUGH: Final = 1e6


class Task:
    """A function with a rate in simulation time.

    Attributes:
        name: for messages and statistics.
        rate_hz: calls per second of simulation.
        fn: what the owner of the schedule calls.
        calls: how often it was due.
        active: False once it was removed, also in the middle of a step.
    """

    __slots__ = ("_due", "_per_call", "active", "calls", "fn", "name", "rate_hz")

    def __init__(self, rate_hz: float, fn: Callable[..., Any], name: str) -> None:
        self.name = name
        self.rate_hz = rate_hz
        self.fn = fn
        self.calls = 0
        self.active = True
        self._per_call = Fraction(1)  # steps from one call to the next
        self._due = 0  # k of the next call

    def __repr__(self) -> str:
        return f"Task({self.name!r}, rate_hz={self.rate_hz:g}, calls={self.calls})"


class Schedule:
    """Which tasks are due at which step.

    Attributes:
        dt: the timestep the steps are counted in, s sim.
        due: tasks whose boundary was reached and that were not called yet; whoever calls one takes
            it out. An interrupt between a step and its tasks loses none that way.
        next_due: steps from now to the next boundary at which a task is due, at least 1; about
            ``NEVER`` without tasks.
    """

    __slots__ = ("_before", "_horizon", "_tasks", "dt", "due", "next_due")

    def __init__(self, dt: float) -> None:
        self.dt = _positive("dt", dt)
        self._tasks: list[Task] = []
        self.due: list[Task] = []
        self._before: tuple[int, list[tuple[Task, int]]] = (0, [])
        # The only counter is next_due: k is the distance it has gone from the horizon.
        self._horizon = NEVER
        self.next_due = NEVER

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def steps(self) -> int:
        """Steps since the anchor."""
        return self._horizon - self.next_due

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks, in the order in which they were added."""
        return tuple(self._tasks)

    def add(self, rate_hz: float, fn: Callable[..., Any], name: str | None = None) -> Task:
        """Add a task; its first call is at the next boundary of its grid, never at once.

        Raises:
            InvalidArgumentError: ``rate_hz`` is not a finite number above 0.
        """
        rate = _positive("rate_hz", rate_hz)
        task = Task(rate, fn, name if name is not None else getattr(fn, "__qualname__", repr(fn)))
        k = self.steps
        self._fit(task, k)
        self._tasks.append(task)
        self._look_ahead(k)
        return task

    def remove(self, task: Task) -> bool:
        """Remove a task; whether it was there."""
        if task not in self._tasks:
            return False
        k = self.steps
        self._tasks.remove(task)
        task.active = False
        self._look_ahead(k)
        return True

    def reanchor(self, dt: float) -> None:
        """Count steps of ``dt`` from 0: after a reset or a change of the timestep."""
        self.dt = _positive("dt", dt)
        self.due.clear()
        for task in self._tasks:
            self._fit(task, 0)
        self._look_ahead(0)

    def place(self, dt: float, k: int) -> None:
        """Be ``k`` steps of ``dt`` after the anchor, as if they had been counted."""
        if dt != self.dt:
            self.dt = _positive("dt", dt)
        self.due.clear()
        for task in self._tasks:
            self._fit(task, k)
        self._look_ahead(k)

    def advance(self, steps: int) -> tuple[Task, ...]:
        """Count ``steps`` steps; the tasks that are due now, in the order they were added.

        Raises:
            RuntimeError: a boundary lies in between; the caller took more than ``next_due`` steps.
        """
        left = self.next_due - steps
        if left > 0:
            self.next_due = left
            return ()
        if left < 0:
            raise RuntimeError(
                f"a task is due in {self.next_due} steps, {steps} were taken: it would be late"
            )
        return self._collect(self._horizon)

    def undo_step(self) -> None:
        """Take back the last step of the newest ``advance`` that said who is due.

        Those tasks are due again at the next step, which is the same one.
        """
        self.due.clear()
        k, due = self._before
        for task, its_due in due:
            task.calls -= 1
            task._due = its_due
        self._look_ahead(k - 1)

    def _collect(self, k: int) -> tuple[Task, ...]:
        due = tuple(task for task in self._tasks if task._due == k)
        following = [_next_boundary(k, task._per_call) for task in due]
        self._before = k, [(task, k) for task in due]
        self.due += [task for task in due if task not in self.due]
        for task, step in zip(due, following, strict=True):
            task.calls += 1
            task._due = step
        self._look_ahead(k)
        return due

    def _fit(self, task: Task, k: int) -> None:
        task._per_call = 1 / (_meant(task.rate_hz) * _meant(self.dt))
        task._due = _next_boundary(k, task._per_call)

    def _look_ahead(self, k: int) -> None:
        self._horizon = min(task._due for task in self._tasks) if self._tasks else NEVER + k
        self.next_due = self._horizon - k


def steps_for(seconds: float, dt: float) -> int:
    """The smallest k with ``k*dt >= seconds - 1e-9*dt``.

    Raises:
        InvalidArgumentError: ``seconds`` is negative, not finite, not a number, or more than 2**53
            steps; ``dt`` is not a finite number above 0.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise InvalidArgumentError(
            f"a duration must be a number of seconds, got {type(seconds).__name__}"
        )
    if not 0.0 <= seconds <= sys.float_info.max:
        raise InvalidArgumentError(f"a duration must be finite and at least 0 s, got {seconds!r}")
    ratio = seconds / _positive("dt", dt)
    if ratio > MAX_STEPS:
        raise InvalidArgumentError(
            f"a duration must be at most 2**53 steps of {dt!r} s, got {seconds!r} s"
        )
    near = ratio - 1.0 / _GRAIN
    if ratio < _FLOAT_IS_ENOUGH and abs(near - round(near)) > 0.6 / _GRAIN:
        return max(0, math.ceil(near))  # the rounding of the division (4e-10) cannot matter
    return _ceiling(_meant(seconds) / _meant(dt))


def _next_boundary(k: int, per_call: Fraction) -> int:
    """The first due step after ``k``; several calls that fall on one step count as one."""
    p, q = per_call.numerator, per_call.denominator
    reached = (k * _GRAIN + 1) * q // (_GRAIN * p)  # calls whose boundary is not after k
    return _ceiling((reached + 1) * per_call)


def _ceiling(steps: Fraction) -> int:
    """The smallest integer that is at least ``steps`` - 1e-9."""
    p, q = steps.numerator, steps.denominator
    return max(0, -((q - p * _GRAIN) // (q * _GRAIN)))


def _meant(number: float) -> Fraction:
    """The fraction that ``number`` stands for: a short one if that is what it reads as."""
    exact = Fraction(number)
    short = exact.limit_denominator(_SHORT)
    return short if float(short) == number else exact


def _positive(name: str, value: float) -> float:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not 0.0 < value <= sys.float_info.max:
        raise InvalidArgumentError(f"{name} must be a finite number above 0, got {value!r}")
    return float(value)
