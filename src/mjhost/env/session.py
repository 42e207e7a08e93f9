"""The simulated time of a session, which never goes back.

Owns: the offset between ``data.time`` and the session's time.
Invariants: ``at()`` never returns less than it returned before, whatever resets, reloads, engine
auto-resets and users do to ``data.time``; between such jumps both advance alike.
Threads: called under the physics lock only.
"""

from __future__ import annotations

import math


class SessionClock:
    """Maps ``data.time`` to session time."""

    __slots__ = ("_high", "_offset")

    def __init__(self) -> None:
        self._offset = 0.0
        self._high = 0.0

    def at(self, sim_time: float) -> float:
        """Session time that belongs to ``sim_time``, s sim."""
        now = self._offset + sim_time
        if not now >= self._high:  # somebody moved data.time back, or made it NaN
            now = self._high
            if not math.isnan(sim_time):
                self._offset = now - sim_time
        self._high = now
        return now

    def look(self, sim_time: float) -> float:
        """What ``at`` would say, for a moment within a step, which may yet be undone."""
        return max(self._high, self._offset + sim_time)

    def jump(self, before: float, after: float, earliest: float = 0.0) -> None:
        """``data.time`` was moved from ``before`` to ``after`` by the host; session time stays.

        Args:
            before: ``data.time`` of the boundary that was left, s sim.
            after: ``data.time`` of the one it is at now, s sim.
            earliest: what session time ``after`` has at least, s sim.
        """
        now = self.at(before)
        if earliest > now:
            now = self._high = earliest
        self._offset = now - after
