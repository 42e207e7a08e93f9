"""Tasks that ``env.every`` runs at a rate of simulation time.

Owns: the token through which a task is removed.
Invariants: a removed task is not called again, even within the step under way.
Threads: a token may be used from any thread, and inside a step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import mujoco

from mjhost.env.phases import Operation
from mjhost.errors import InvalidArgumentError

if TYPE_CHECKING:
    from mjhost.env.core import EnvCore
    from mjhost.env.stepping import Stepper

TaskFunction: TypeAlias = Callable[[mujoco.MjModel, mujoco.MjData], object]


class TaskToken:
    """One running task; made by ``env.every`` at a step boundary."""

    __slots__ = ("_core", "_stepper", "_task")

    def __init__(
        self,
        core: EnvCore,
        stepper: Stepper,
        rate_hz: float,
        fn: TaskFunction,
        name: str | None,
    ) -> None:
        if not callable(fn):
            raise InvalidArgumentError(f"every needs a callable, got {type(fn).__name__}")
        self._core = core
        self._stepper = stepper
        stepper.catch_up_schedule()
        self._task = core.schedule.add(rate_hz, fn, name or _name_of(fn))
        core.single_step = None
        core.attention = True

    @property
    def name(self) -> str:
        """What errors call the task."""
        return self._task.name

    @property
    def calls(self) -> int:
        """How often it has been called."""
        return self._task.calls

    def remove(self) -> None:
        """Ends the calls; may be called again."""
        core = self._core
        if core.machine.closed:
            return
        with core.boundary(Operation.EVERY):
            self._stepper.catch_up_schedule()
            core.schedule.remove(self._task)
            if not core.is_inside_step():
                self._stepper.grant_single_step()


def _name_of(fn: object) -> str:
    return getattr(fn, "__qualname__", None) or type(fn).__qualname__
