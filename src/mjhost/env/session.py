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

    def catch_up(self, session_time: float, sim_time: float) -> None:
        """``sim_time`` belongs to ``session_time``, if that lies ahead."""
        if session_time > self.at(sim_time):
            self._offset = session_time - sim_time
            self._high = session_time

    def jump(self, before: float, after: float) -> None:
        """``data.time`` was moved from ``before`` to ``after`` by the host; session time stays."""
        now = self.at(before)
        self._offset = now - after
