"""What runs inside a step besides the engine, as one bundle.

Owns: ``StepHooks``, made anew whenever plugins or callbacks change, and the closures that take one
step with them.
Invariants: a hooked step is taken singly. It covers everything from ``pre_step`` to ``post_step``:
whatever raises in between, the data are in the state before it, and the step does not count.
Threads: the closures expect the physics lock and the plugin-host lock to be held.
Failure: the exception of the hook or of the engine, with a note that names the step.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import get_ident
from typing import TYPE_CHECKING, Any, TypeAlias

import mujoco

from mjhost.callbacks import IDLE, Route, interrupts_surface, router
from mjhost.env.engine_log import adopted
from mjhost.env.records import StepResult
from mjhost.env.rollback import MemoryBlock
from mjhost.errors import ForeignCallbackError
from mjhost.locking import OrderedLock, held_lower_scopes

if TYPE_CHECKING:
    from mjhost.env.core import EnvCore
    from mjhost.env.hosted import HostedModel
    from mjhost.env.stepping import Stepper

ModelCall: TypeAlias = Callable[[mujoco.MjModel, mujoco.MjData], object]

_ONE_STEP = StepResult(1)


@dataclass(frozen=True, slots=True, eq=False)
class StepHooks:
    """The hooks of one pair and one plugin generation.

    Attributes:
        host_lock: held for a whole step.
        route: the pair's callbacks, and what they raised.
        pre, last, post: the once-per-step dispatchers, ``None`` where nobody listens.
        due_pre: ``pre_step`` calls at a rate that belong to the step that comes next.
    """

    host_lock: OrderedLock
    route: Route
    pre: ModelCall | None = None
    last: ModelCall | None = None
    post: ModelCall | None = None
    due_pre: list[ModelCall] = field(default_factory=list)

    @property
    def every_step(self) -> bool:
        """Whether each step has to be taken by itself."""
        listeners = (self.pre, self.last, self.post)
        return bool(self.route.hooked) or any(call is not None for call in listeners)

    def step_of(self, stepper: Stepper, hosted: HostedModel) -> Callable[[], None]:
        """One step with these hooks; both locks are held by the caller."""
        return hooked_step_of(stepper, hosted, self)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Everything that has to be in place while hooked steps are taken one after the other."""
        with self.host_lock, self.route.stepping():
            if threading.current_thread() is not threading.main_thread():
                yield
                return
            with interrupts_surface(self.route):
                yield


def hooked_step_of(  # noqa: C901 - one closure on purpose, see below
    stepper: Stepper, hosted: HostedModel, hooks: StepHooks
) -> Callable[[], None]:
    """One hooked step as a closure over the raw parts.

    The caller holds both locks and has cleared the warnings: before the first of several steps is
    enough, since whoever finds some clears them.
    """
    state, route = hosted.state, hooks.route
    # Inlined ``state.save()``, ``warnings.clear()`` and ``warnings.any()``: on a small model the
    # calls alone are a tenth of the step.
    kept: Any
    live: Any
    kept, live = (state.dst, state.src) if isinstance(state, MemoryBlock) else (None, None)
    save, time_cell = state.save, state.time_cell
    warned, no_warning = hosted.warnings.view, hosted.warnings.zero
    warnings_now = warned.tobytes
    model, data, mj_step = hosted.model, hosted.data, mujoco.mj_step
    pre, last, post, due_pre, parked = (
        hooks.pre,
        hooks.last,
        hooks.post,
        hooks.due_pre,
        route.parked,
    )
    counted = not route.hooked.isdisjoint(("control", "passive"))

    def step() -> None:  # noqa: C901 - every call saved counts on this path
        if kept is None:
            save()
        else:
            kept[:] = live
            state.saved_time = time_cell.value
        route.turn = 0
        try:
            if due_pre:
                for call in due_pre:
                    call(model, data)
            if pre is not None:
                pre(model, data)
            mj_step(model, data)
            if parked:
                raise_parked(route)
            if counted and not route.turn:
                raise_if_taken()
            if last is not None:
                last(model, data)
            if post is not None:
                post(model, data)
            silent = warnings_now() == no_warning
        except BaseException as error:
            route.turn = IDLE
            stepper.roll_back_hooked(hosted, hooks, error)
            raise
        # No call from here to the count, so that an interrupt cannot separate them.
        route.turn = IDLE
        route.retry = False
        if due_pre:
            del due_pre[:]
        if not silent:
            stepper.examine(hosted, 1)
        hosted.steps += 1

    return step


def raise_if_taken() -> None:
    """Raises if somebody wrote over a callback pointer that the router had installed."""
    taken = router.check()
    if taken is not None:
        raise ForeignCallbackError(
            f"{taken}; the hooks of this env are not reached any more: remove that callback, or "
            "call clear_fault() to install ours again in front of it"
        )


def raise_parked(route: Route) -> None:
    """Raises what a callback raised first, if any did; its traceback is the callback's own."""
    error = route.take()
    if error is not None:
        raise error


def hooked_single_step_of(  # noqa: C901 - the inlined locks of mjhost.locking, twice
    core: EnvCore, stepper: Stepper, hosted: HostedModel, hooks: StepHooks
) -> Callable[[], StepResult | None]:
    """The shortcut of ``env.step()`` for an env with hooks; see ``single_step_of``."""
    lock, host_lock, step = core.lock, hooks.host_lock, hooks.step_of(stepper, hosted)
    baton, queue, free, kick = lock.baton, lock.queue, lock.baton.append, lock.kick
    host_baton, host_queue = host_lock.baton, host_lock.queue
    host_free, host_kick = host_lock.baton.append, host_lock.kick
    main = threading.main_thread().ident if hooks.route.hooked else None
    trap: Any = interrupts_surface(hooks.route)
    warned, no_warning = hosted.warnings.view, hosted.warnings.zero
    core.grant = grant = object()

    def single_step() -> StepResult | None:  # noqa: PLR0912 - see above
        if held_lower_scopes or queue or not baton or host_queue or not host_baton:
            return None
        me = get_ident()
        if me not in adopted:
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
            try:
                if me == main:
                    # The inlined ``with trap``.
                    trap.before = before = sys.unraisablehook
                    sys.unraisablehook = trap.hook
                    try:
                        step()
                    finally:
                        if sys.unraisablehook is trap.hook:
                            sys.unraisablehook = before
                else:
                    step()
                return _ONE_STEP
            finally:
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
