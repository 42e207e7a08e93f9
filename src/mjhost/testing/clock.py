"""A clock that moves only when it is told to.

Threads: for one thread.
"""

from __future__ import annotations


class FakeClock:
    """Stands in for ``time.monotonic`` where code takes a clock.

    Attributes:
        now: what the clock reads, s wall.
    """

    __slots__ = ("now",)

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """What the clock reads."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass."""
        self.now += seconds
