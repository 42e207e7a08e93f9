"""The shortcut of ``env.step()``: one whole step as one closure.

Owns: the two closures that ``Stepper.grant_single_step`` hands out, without hooks and with them.
Invariants: a closure does exactly what the long way would do, or does nothing and returns ``None``:
when it cannot have a lock at once, was revoked meanwhile, or its thread was not adopted yet. Taking
and giving back the locks is the inlined form that ``mjhost.locking`` gives, with its guarantee
against interrupts.
Threads: any; whoever calls one need not hold a lock.
Failure: as for ``Stepper.advance`` and a hooked step.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING, Any

import mujoco

from mjhost.callbacks import Entry, interrupts_surface, router
from mjhost.env.engine_log import adopted
from mjhost.env.records import StepResult
from mjhost.env.rollback import MemoryBlock
from mjhost.locking import held_lower_scopes

if TYPE_CHECKING:
    from mjhost.env.core import EnvCore
    from mjhost.env.hooks import StepHooks
    from mjhost.env.hosted import HostedModel
    from mjhost.env.stepping import Stepper

_ONE_STEP = StepResult(1)


def single_step_of(
    core: EnvCore, stepper: Stepper, hosted: HostedModel
) -> Callable[[], StepResult | None]:
    """One whole step as a closure over the raw parts: what ``env.step()`` costs.

    The closure returns ``None``, having done nothing, when it cannot have the lock at once or was
    revoked in the meantime; the caller then takes the long way. Everything is bound here because an
    attribute look-up costs as much as the state copy. Taking and giving back the lock is the
    inlined form that ``mjhost.locking`` gives, with its guarantee against interrupts.
    """
    lock, state = core.lock, hosted.state
    baton, queue = lock.baton, lock.queue
    free, kick = baton.append, lock.kick
    kept: Any
    live: Any
    kept, live = (state.dst, state.src) if isinstance(state, MemoryBlock) else (None, None)
    save, time_cell = state.save, state.time_cell
    warned, no_warning = hosted.warnings.view, hosted.warnings.zero
    warnings_now = warned.tobytes
    model, data, mj_step = hosted.model, hosted.data, mujoco.mj_step
    # Compared instead of the closure, which would then refer to itself and keep the pair alive.
    core.grant = grant = object()

    def single_step() -> StepResult | None:
        if queue or not baton:
            return None
        me = get_ident()
        if me in held_lower_scopes or me not in adopted:
            return None
        try:
            del baton[0]
            lock.owner = me
        except IndexError:
            return None
        try:
            if core.grant is not grant or core.single_step is None:
                return None
            # Outside the inner try: an interrupt in here must not bring back an older state.
            if kept is None:
                save()
            else:
                kept[:] = live
                state.saved_time = time_cell.value
            warned[:] = no_warning
            try:
                mj_step(model, data)
                silent = warnings_now() == no_warning
            except BaseException as error:
                stepper.back_to_last_good(hosted, 1, error)
                raise
            if not silent:
                stepper.examine(hosted, 1)
            hosted.steps += 1
            return _ONE_STEP
        finally:
            lock.owner = None
            free(None)
            if queue:
                kick()

    return single_step


def hooked_single_step_of(  # noqa: C901, PLR0915 - the inlined locks of mjhost.locking, twice
    core: EnvCore, stepper: Stepper, hosted: HostedModel, hooks: StepHooks
) -> Callable[[], StepResult | None]:
    """The shortcut of ``env.step()`` for an env with hooks; see ``single_step_of``."""
    lock, host_lock, step = core.lock, hooks.host_lock, hooks.step_of(stepper, hosted)
    baton, queue, free, kick = lock.baton, lock.queue, lock.baton.append, lock.kick
    host_baton, host_queue = host_lock.baton, host_lock.queue
    host_free, host_kick = host_lock.baton.append, host_lock.kick
    main = threading.main_thread().ident if hooks.route.hooked else None
    trap = interrupts_surface(hooks.route)
    trap_before, trap_hook = trap.before, trap.hook
    route, hosting, in_step, idle = hooks.route, router.hosting, Entry.STEP, Entry.UNKNOWN
    warned, no_warning = hosted.warnings.view, hosted.warnings.zero
    between = (hooks.pre, hooks.last, hooks.post) != (None, None, None)
    book = [host_lock]
    core.grant = grant = object()

    def single_step() -> StepResult | None:  # noqa: C901, PLR0912 - see above
        if queue or not baton or host_queue or not host_baton:
            return None
        me = get_ident()
        if me in held_lower_scopes or me not in adopted:
            return None
        try:
            del baton[0]
            lock.owner = me
        except IndexError:
            return None
        try:
            if core.grant is not grant or core.single_step is None:
                return None
            try:
                del host_baton[0]
                host_lock.owner = me
            except IndexError:
                return None
            warned[:] = no_warning
            held_lower_scopes[me] = book
            if between:
                # The inlined ``with route.stepping(Entry.STEP)``; whoever grants this looks for the
                # clock that is left out here. A callback finds its route without.
                hosting[me] = route
                route.entry = in_step
            try:
                if me == main:
                    # The inlined ``with trap``.
                    trap_before[0] = before = sys.unraisablehook
                    sys.unraisablehook = trap_hook
                    try:
                        step()
                    finally:
                        if sys.unraisablehook is trap_hook:
                            sys.unraisablehook = before
                else:
                    step()
                return _ONE_STEP
            finally:
                if between:
                    route.entry = idle
                    del hosting[me]
                del held_lower_scopes[me]
                host_lock.owner = None
                host_free(None)
                if host_queue:
                    host_kick()
        finally:
            lock.owner = None
            free(None)
            if queue:
                kick()

    return single_step
