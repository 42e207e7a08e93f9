"""Turns at the interpreter for threads that step with Python hooks.

Owns: the book of the process about which threads may step hooked envs at present.
Invariants: a turn is a *lease*: it ends when it is given back, or by itself after ``LEASE_S`` when
somebody has waited for ``PATIENCE_S``; nobody waits longer than that, and then goes on without. So
no order of locks can deadlock here, and nothing is wrong, only slower, if every turn is lost. First
come, first served.
Threads: any. Single reads and stores of a dict and a deque; a race costs one turn too many, or one
wait of ``PATIENCE_S``.
Failure: none.

Why. A hooked step needs the interpreter lock twice, in its callback and at its end. Threads that
step at the same time wake each other at each of these points, and on short steps the wake-ups cost
more than the steps do: eight pendulums in as many threads took three times as long as one after the
other. So each takes a bundle of steps while the rest sleep. Long steps are left alone: their engine
part runs in parallel, and is worth more than the wake-ups.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from typing import Final

LEASE_S: Final = 0.01  # wall; a bundle of steps takes a twentieth of it
PATIENCE_S: Final = 0.02  # wall; a hook may wait for another env, whose thread has to get on
SHORT_STEP_S: Final = 1e-4  # wall; longer steps gain more by running beside each other
_PER_PERMIT_S: Final = 3e-5  # wall; what a step must last to be worth another thread beside it


class Turns:
    """See the module; ``turns`` is the one of the process.

    Attributes:
        steppers: how many threads are in a loop of hooked steps; below 2 nobody needs a turn.
    """

    __slots__ = ("_cores", "_ends", "_queue", "steppers")

    def __init__(self, cores: int) -> None:
        self.steppers = 0
        self._cores = cores
        self._ends: dict[int, float] = {}
        self._queue: deque[threading.Lock] = deque()

    def take(self, me: int, step_s: float) -> None:
        """Waits for a turn of the calling thread, at most ``PATIENCE_S``.

        Args:
            me: the calling thread.
            step_s: what its steps take, s wall.
        """
        permits = max(1, min(self._cores // 2, int(step_s / _PER_PERMIT_S)))
        if self._queue or len(self._ends) >= permits:
            self._wait()
        if len(self._ends) < permits:
            self._ends[me] = time.perf_counter() + LEASE_S

    def give(self, me: int) -> None:
        """Ends the turn of the calling thread, if it has one."""
        if self._ends.pop(me, None) is not None:
            with contextlib.suppress(IndexError):
                self._queue.popleft().release()

    def _wait(self) -> None:
        gate = threading.Lock()
        gate.acquire()
        self._queue.append(gate)
        if gate.acquire(timeout=PATIENCE_S):
            return
        with contextlib.suppress(ValueError):  # woken in this very moment
            self._queue.remove(gate)
        now = time.perf_counter()
        for holder, end in tuple(self._ends.items()):
            if end < now:
                self._ends.pop(holder, None)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


turns: Final = Turns(_cores())


def _forget_turns() -> None:
    """In a forked child nobody steps, whatever a vanished thread did."""
    turns.__init__(_cores())  # type: ignore[misc]


os.register_at_fork(after_in_child=_forget_turns)
