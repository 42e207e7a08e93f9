"""Streams of one env: the moment that a record belongs to, and commands that are sent in.

Invariants: stamps of one env never go back, also when a step is undone and taken again. A command
is handed over between two steps; if its handler raises, the state is what it was.
Threads: a moment is told to whoever holds the physics lock; ``send`` waits for that lock.
Failure: typed errors of ``mjhost.errors``; what a handler raises goes to the sender.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mjhost.env.phases import Operation
from mjhost.errors import InvalidArgumentError, MjhostError, NotLoadedError
from mjhost.plugins import active_hook
from mjhost.streams import Stamp

if TYPE_CHECKING:
    from mjhost.env.core import EnvCore
    from mjhost.streams import Record

_AFTER_THE_ENGINE = ("last_stage", "post_step")


class Moments:
    """Tells the present moment of an env, from inside of its hooks and tasks."""

    def __init__(self, core: EnvCore) -> None:
        self._core = core
        self._latest = 0.0

    def __call__(self) -> Stamp:
        """The stamp of what is measured now.

        Raises:
            InvalidArgumentError: the caller is on a thread beside the simulation.
            NotLoadedError: there is no model.
        """
        core = self._core
        hosted = core.hosted
        if not core.lock.held_by_me():
            raise InvalidArgumentError(
                "only hooks and tasks have a present moment; from another thread publish with the "
                "stamp of an earlier outlet.now()"
            )
        if hosted is None:
            raise NotLoadedError("there is no model, so there is no time either")
        now = hosted.data.time
        self._latest = max(self._latest, core.session.look(now))
        steps = hosted.steps + self._is_after_the_engine()
        return Stamp(self._latest, now, steps, hosted.generation.value)

    def _is_after_the_engine(self) -> bool:
        """Whether the step that this belongs to is done, but not counted yet."""
        hook = active_hook()
        in_step = hook is not None and hook.phase in _AFTER_THE_ENGINE
        return in_step and self._core.calling is None


def send(core: EnvCore, name: str, record: Record) -> Any:
    """Hands a command to the inlet of that name; what its handler answers."""
    core.admit(Operation.SEND)
    with core.lock.holding(Operation.SEND):
        core.admit_locked(Operation.SEND)
        hosted = core.hosted
        assert hosted is not None, "admitted without a model"
        command = core.streams.command(name, record)
        hosted.state.save()
        try:
            return command(hosted.model, hosted.data)
        except BaseException as error:
            hosted.state.restore()
            if not isinstance(error, MjhostError):
                core.plugging.tell_failure(hosted, error)
            raise
