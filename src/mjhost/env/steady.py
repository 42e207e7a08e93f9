"""The steady state of a paced simulation: sleep, step, sleep, step.

Owns: the loop that a running env spends its life in while nothing but the engine has to run.
Invariants: it does what ``PhysicsThread`` and ``Stepper.run_slice`` do, in as few instructions as
possible: after a sleep every line of Python is cold and costs ten times what a benchmark of it
shows. Whatever is not plain (a task that is due, a limit, a hook, a wish, a stall) ends the loop
before the step concerned. It ends by itself after 0.2 s, so that the general loop looks around.
Threads: the physics thread; takes and gives back the physics lock for each step.
Failure: as for any step; the exception leaves with the lock given back.
Not a goal: being the only way. The general loop is right without it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mjhost.env.manual import acquire_while_alive

if TYPE_CHECKING:
    from mjhost.env.core import EnvCore
    from mjhost.env.hosted import HostedModel
    from mjhost.env.stepping import Stepper

_LIFE_S = 0.2  # wall; bounds every sleep in here as well
_QUANTUM_S = 0.001  # wall; shorter steps are taken in bundles
_BEHIND_S = 0.05  # sim; the general loop decides about a stall
_ROUNDING = 1e-6


def run_steadily(  # noqa: C901 - few instructions matter more here than few branches
    core: EnvCore, stepper: Stepper, hosted: HostedModel, paced: float
) -> None:
    """Takes steps at their times until something else has to be looked at.

    Args:
        core: the env's state; running, paced and without hooks when this is called.
        stepper: takes the steps.
        hosted: the pair.
        paced: simulated seconds since the pacer was rebased.
    """
    factor, dt, room = core.pacer.factor, hosted.dt, stepper.plain_room(hosted)
    if factor is None or room < 2:
        return
    per_step = dt / factor
    bundle = max(1, int(min(_QUANTUM_S / per_step, room) + _ROUNDING))
    if bundle > stepper.chunk:
        return  # more than fits into a slice: the general loop shares the lock fairly
    sleep, clock, advance = core.waker.sleep, time.monotonic, stepper.advance
    lock, release = core.lock, core.lock.release
    start = now = clock()
    first, end, behind = now + core.pacer.due_in(paced), now + _LIFE_S, -_BEHIND_S / factor
    done, waited = 0, 0.0
    try:
        while done + bundle < room and now < end:
            wait = first + done * per_step - now
            if wait > _LIFE_S:
                break  # a very slow factor: waiting is the general loop's business
            if wait > 0.0:
                waited += wait
                if sleep(wait):
                    break
            elif wait < behind:
                break
            if not acquire_while_alive(lock):
                break
            try:
                if core.attention or core.pacing_stale or not core.running:
                    break
                if core.hosted is not hosted:
                    break
                advance(hosted, bundle)
            finally:
                release()
            done += bundle
            now = clock()
    finally:
        wall = clock() - start
        core.meter.add(step_s=max(0.0, wall - waited), wait_s=min(waited, wall), sim_s=done * dt)
