"""What a plugin knew before the newest step, should that step be undone and taken again.

A hook that raises undoes its step with the engine's state; what plugins keep themselves, nobody
else can take back.

Owns: ``StepMemory``.
Invariants: a step was undone if the time is that of its start again. A command in between is not
taken back: whoever takes one recalls first, and forgets.
Threads: as for hooks.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

T = TypeVar("T")


class StepMemory(Generic[T]):
    """Keeps one value from the start of a step."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: tuple[float, T] | None = None

    def recall(self, data: Any) -> T | None:
        """What was kept at the start of the newest step, if that was undone; else None."""
        kept = self._kept
        return kept[1] if kept is not None and kept[0] == float(data.time) else None

    def keep(self, data: Any, value: T) -> None:
        """A step begins."""
        self._kept = float(data.time), value

    def forget(self) -> None:
        """What comes now is not to be taken back: a command, a reset, a restore."""
        self._kept = None
