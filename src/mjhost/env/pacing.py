"""Keeping simulation time in step with the wall clock, and measuring how well that goes.

Owns: ``Pacer`` (when the next step may be taken), ``RealtimeMeter`` (what the last second was spent
on), ``Waker`` (a sleep that can be ended).
Invariants: due times follow from one anchor, never from the previous step, so nothing drifts; a
stall longer than 0.1 s of simulation is forgotten, a shorter one is caught up.
Threads: the pacer and the meter belong to the stepping thread; others may read ``Pacer.factor`` and
``RealtimeMeter.reading``, which is then at worst one bucket out. ``Waker.wake`` may be called from
anywhere.
Not a goal: sleeping. The stepping thread decides how.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from numbers import Real
from typing import Final

import msgspec

from mjhost.errors import InvalidArgumentError

STALL_S: Final = 0.1
"""Simulation seconds behind which nothing is caught up."""

WAIT_BOUND_S: Final = 0.2
"""The longest sleep; a stepping thread looks at the state of the process after it."""

UNBOUND_STEPS: Final = 1 << 31
"""How many steps are due when nothing paces them."""

MIN_FACTOR: Final = 1e-9
MAX_FACTOR: Final = 1e9
"""Between these the arithmetic of pacing is exact; beyond, nobody can tell the difference."""

_WINDOW_BUCKETS: Final = 20
_BUCKET_S: Final = 0.05
_ROUNDING: Final = 1e-6  # of a step
_PARTS: Final = ("step", "plugins", "publish", "render", "wait")


def normalise_factor(value: object) -> float | None:
    """The real-time factor that ``value`` asks for; ``None`` (also from 0 and inf): unbound.

    Raises:
        InvalidArgumentError: negative, NaN, a bool or no number.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidArgumentError(
            "the real-time factor must be a number of at least 0 or None (unbound), "
            f"got {type(value).__name__} {value!r}"
        )
    try:
        factor = float(value)
    except OverflowError:  # an integer beyond every float is a mistake, not a wish
        factor = math.nan
    if not factor >= 0.0:
        raise InvalidArgumentError(
            f"the real-time factor must be at least 0 (0, inf and None are unbound), got {value!r}"
        )
    if factor in {0.0, math.inf}:
        return None
    if not MIN_FACTOR <= factor <= MAX_FACTOR:
        raise InvalidArgumentError(
            f"the real-time factor must lie between {MIN_FACTOR:g} and {MAX_FACTOR:g} (0, inf and "
            f"None are unbound), got {value!r}"
        )
    return factor


class Pacer:
    """Says when the next step may be taken.

    The step from ``sim_time`` may be taken when
    ``wall >= anchor_wall + (sim_time - anchor_sim) / factor``.

    Args:
        factor: see ``normalise_factor``.
        clock: wall seconds, never going back.

    Attributes:
        factor: simulation seconds per wall second; ``None`` is unbound.
        resyncs: stalls that were forgotten instead of caught up.
    """

    __slots__ = ("_anchor_sim", "_anchor_wall", "_clock", "factor", "resyncs")

    def __init__(
        self, factor: float | None = 1.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.factor = normalise_factor(factor)
        self.resyncs = 0
        self._clock = clock
        self._anchor_sim = 0.0
        self._anchor_wall = clock()

    def set_factor(self, value: float | None, sim_time: float) -> None:
        """Go on from ``sim_time`` at another factor; a refused one changes nothing."""
        self.factor = normalise_factor(value)
        self.rebase(sim_time)

    def rebase(self, sim_time: float) -> None:
        """Let ``sim_time`` be due now: after a start, pause, reset, reload or new timestep."""
        self._anchor_sim = sim_time
        self._anchor_wall = self._clock()

    def due_in(self, sim_time: float) -> float:
        """Wall seconds until the step from ``sim_time`` may be taken; 0 or less: it is due.

        Rebases, and counts it, when the simulation is more than 0.1 s of its own time behind.
        """
        factor = self.factor
        if factor is None:
            return 0.0
        due = self._anchor_wall + (sim_time - self._anchor_sim) / factor
        wait = due - self._clock()
        if wait * factor < -STALL_S:
            self.resyncs += 1
            self.rebase(sim_time)
            return 0.0
        return wait

    def steps_due(
        self, sim_time: float, dt: float, limit: int = UNBOUND_STEPS, quantum_s: float = 0.001
    ) -> int:
        """How many steps to take now that the step from ``sim_time`` is due.

        As many as are due; and where a step is shorter than ``quantum_s`` of wall time, as many as
        begin within it, so that the thread wakes about once per quantum. At least 1, at most
        ``limit``.
        """
        factor = self.factor
        if factor is None:
            return limit
        late = max(0.0, -self.due_in(sim_time))
        steps_per_s = factor / dt
        due = math.floor(min(late * steps_per_s + _ROUNDING, limit)) + 1
        bundle = math.floor(min((late + quantum_s) * steps_per_s + _ROUNDING, limit))
        return max(1, min(max(due, bundle), limit))


class MeasuredRealtime(msgspec.Struct, frozen=True):
    """What the last second of wall time brought.

    Attributes:
        factor: simulation seconds per wall second; NaN when nothing was measured.
        step, plugins, publish, render, wait: shares of the wall time, 0 to 1.
    """

    factor: float = math.nan
    step: float = 0.0
    plugins: float = 0.0
    publish: float = 0.0
    render: float = 0.0
    wait: float = 0.0


class _Bucket:
    """Sums over 50 ms, and the wall time that the simulation in it took."""

    __slots__ = ("adds", "end", "index", "sim", "start", *_PARTS)

    def __init__(self) -> None:
        self.restart(-1, 0.0)

    def restart(self, index: int, start: float) -> None:
        self.index = index
        self.start = start
        self.end = start
        self.adds = 0
        self.sim = self.step = self.plugins = self.publish = self.render = self.wait = 0.0


class RealtimeMeter:
    """A sliding second of measurements, in 20 buckets.

    The factor is taken between two moments at which simulation time advanced, not between the edges
    of the window: with long steps that is the difference between exact and 5 % wrong.
    """

    __slots__ = ("_advanced", "_bucket", "_clock", "_ring")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ring = [_Bucket() for _ in range(_WINDOW_BUCKETS)]
        self.clear()

    def clear(self, now: float | None = None) -> None:
        """Forget everything and measure from now on: at every start and stop of the stepping."""
        for bucket in self._ring:
            bucket.restart(-1, 0.0)
        self._bucket = self._ring[0]
        # Without ``now`` the window begins with the first round: the thread may be slow to come.
        self._advanced: float | None = now

    def add(
        self,
        *,
        step_s: float = 0.0,
        plugins_s: float = 0.0,
        publish_s: float = 0.0,
        render_s: float = 0.0,
        wait_s: float = 0.0,
        sim_s: float = 0.0,
        now: float | None = None,
    ) -> None:
        """Account for a round, or a part of one, of the stepping thread that ended at ``now``.

        Args:
            step_s: wall seconds that went into steps.
            plugins_s: the same for plugins.
            publish_s: the same for publication.
            render_s: the same for copies for the renderer.
            wait_s: the same for waiting, for the clock or a lock.
            sim_s: simulation seconds that it brought.
            now: the clock's present reading, if the caller has it.
        """
        if now is None:
            now = self._clock()
        if self._advanced is None:
            self._advanced = now - (step_s + plugins_s + publish_s + render_s + wait_s)
        index = int(now / _BUCKET_S)
        bucket = self._bucket
        if bucket.index != index:
            bucket = self._bucket = self._ring[index % _WINDOW_BUCKETS]
            bucket.restart(index, self._advanced)
        bucket.step += step_s
        bucket.plugins += plugins_s
        bucket.publish += publish_s
        bucket.render += render_s
        bucket.wait += wait_s
        if sim_s > 0.0:
            bucket.adds += 1
            bucket.sim += sim_s
            bucket.end = self._advanced = now

    def reading(self, now: float | None = None) -> MeasuredRealtime:
        """The figures of the second before ``now``; a single step that took longer counts whole."""
        if now is None:
            now = self._clock()
        first = int(now / _BUCKET_S) - _WINDOW_BUCKETS
        used = [b for b in self._ring if b.index > first] or [self._bucket]
        advanced = [b for b in used if b.adds]
        if not advanced:
            return MeasuredRealtime()
        return _summary(used, advanced, now)


def _summary(used: list[_Bucket], advanced: list[_Bucket], now: float) -> MeasuredRealtime:
    start = min(b.start for b in advanced)
    end = max(b.end for b in advanced)
    wall = end - start
    # The round that is going on counts once it is plainly longer than the others.
    if now - end > max(_BUCKET_S, 2.0 * wall / sum(b.adds for b in advanced)):
        wall = now - start
    parts = [sum(getattr(b, part) for b in used) for part in _PARTS]
    whole = max(wall, sum(parts))
    if wall <= 0.0:
        return MeasuredRealtime()
    factor = sum(b.sim for b in advanced) / wall
    return MeasuredRealtime(factor, *(part / whole for part in parts))


class Waker:
    """A sleep that ``wake`` ends, for one sleeping thread, as cheap as ``time.sleep``."""

    __slots__ = ("_gate",)

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._gate.acquire()  # closed: whoever sleeps waits for it

    def sleep(self, seconds: float) -> bool:
        """Sleep, at most 0.2 s; whether it was ended by ``wake``, now or before."""
        if seconds <= 0.0:
            return self._gate.acquire(blocking=False)
        return self._gate.acquire(timeout=min(seconds, WAIT_BOUND_S))

    def wake(self) -> None:
        """End the sleep, or the next one if nobody sleeps; twice is once."""
        # Releasing an open gate raises; asking first would leave a gap between two wakers.
        try:
            self._gate.release()
        except RuntimeError:
            return
