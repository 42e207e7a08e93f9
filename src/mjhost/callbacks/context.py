"""``call_context()``: why the engine is calling a hook just now.

Invariants: exact or ``unknown``, never a guess. Asking reads the thread's own frames and the
route's counts; a step in which nobody asks pays for the counts only.
Threads: any; the answer is about the calling thread. One that a hook started is in no callback.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from threading import get_ident
from types import FrameType

import mujoco

from mjhost.callbacks.doorways import is_doorway, owner_of
from mjhost.callbacks.kinds import CallbackKind
from mjhost.callbacks.route import Entry, Route
from mjhost.callbacks.router import router
from mjhost.callbacks.thunks import DIGIT_MASK, SHIFTS

_RK4_STAGES = 4
_RK4 = int(mujoco.mjtIntegrator.mjINT_RK4)
_NO_ACTUATION = int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)
_NO_PASSIVE = int(mujoco.mjtDisableBit.mjDSBL_SPRING | mujoco.mjtDisableBit.mjDSBL_DAMPER)


@dataclass(frozen=True, slots=True)
class CallContext:
    """Where in the engine's work the calling code runs.

    Attributes:
        entry: the operation under way. ``unknown`` when it did not go through mjhost, for instance
            in a ``mujoco.mj_forward`` that somebody made on an env's data.
        hook: name of the engine's callback, or ``None`` outside of one (``pre_step``, a task).
        substep: which evaluation of the step this is, from 1; ``None`` where it cannot be known:
            outside of a callback, for an unknown entry, and in a contact filter or clock under RK4
            when the pair has no control or passive hook to count by.
        substeps: evaluations per step: 4 under RK4, else 1; ``None`` for an unknown entry.
        repeat: how often the same evaluation ran before, as the second sensor pass of ``ipc`` does.
        retry: whether this step was begun before and rolled back.
    """

    entry: Entry
    hook: str | None = None
    substep: int | None = None
    substeps: int | None = None
    repeat: int = 0
    retry: bool = False


_UNKNOWN = CallContext(Entry.UNKNOWN)


def call_context() -> CallContext:
    """Why the engine, or the host, is calling this code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_doorway(frame):
            return _inside(*owner_of(frame))
        frame = frame.f_back
    route = router.hosting.get(get_ident())
    if route is None:
        return _UNKNOWN
    return CallContext(route.entry, retry=route.retry)


def _inside(kind: CallbackKind, route: Route | None, stage: int | None) -> CallContext:
    if route is None:
        return CallContext(Entry.UNKNOWN, kind.name)
    if route.turn >= 0:
        return _in_step(route, kind, stage)
    if route.entry in {Entry.UNKNOWN, Entry.STEP}:
        return CallContext(Entry.UNKNOWN, kind.name)
    return CallContext(route.entry, kind.name, 1, 1, retry=route.retry)


def _in_step(route: Route, kind: CallbackKind, stage: int | None) -> CallContext:
    substeps = _RK4_STAGES if route.model.opt.integrator == _RK4 else 1
    count = _count(route, kind, stage, substeps)
    if count is None:
        return CallContext(Entry.STEP, kind.name, None, substeps, retry=route.retry)
    # RK4 evaluates sensors in its first evaluation only.
    reached = substeps if stage is None else 1
    substep, repeat = min(count, reached), max(0, count - reached)
    return CallContext(Entry.STEP, kind.name, substep, substeps, repeat, route.retry)


def _count(route: Route, kind: CallbackKind, stage: int | None, substeps: int) -> int | None:
    """Which call of the step this is, counting a whole pass over actuators or pairs as one."""
    name = kind.name if stage is None else f"sensor {stage}"
    if name in SHIFTS:
        return _digit(route, name) or None
    if substeps == 1:
        return 1
    return _count_by_neighbour(route) if kind.arguments else None


def _count_by_neighbour(route: Route) -> int | None:
    """Contact filters run before both in each evaluation, so that they count the ones before."""
    flags = route.model.opt.disableflags
    if "passive" in route.hooked and flags & _NO_PASSIVE != _NO_PASSIVE:
        return _digit(route, "passive") + 1
    if "control" in route.hooked and not flags & _NO_ACTUATION:
        return _digit(route, "control") + 1
    return None


def _digit(route: Route, name: str) -> int:
    return route.turn >> SHIFTS[name] & DIGIT_MASK
