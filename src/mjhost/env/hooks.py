"""What runs inside a step besides the engine, as one bundle.

Owns: ``StepHooks``, made anew whenever plugins or callbacks change, and the closures that take one
step with them.
Invariants: a hooked step is taken singly. It covers everything from ``pre_step`` to ``post_step``:
whatever raises in between, the data are in the state before it, and the step does not count.
Threads: the closures expect the physics lock and the plugin-host lock to be held.
Failure: the exception of the hook or of the engine, with a note that names the step.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import mujoco

from mjhost.callbacks import IDLE, Entry, Route, interrupts_surface
from mjhost.env.rollback import MemoryBlock
from mjhost.errors import ForeignCallbackError
from mjhost.locking import OrderedLock

if TYPE_CHECKING:
    from mjhost.env.hosted import HostedModel
    from mjhost.env.stepping import Stepper

ModelCall: TypeAlias = Callable[[mujoco.MjModel, mujoco.MjData], object]

_TOLD_BY_TURN = (frozenset({"control"}), frozenset({"passive"}))


@dataclass(frozen=True, slots=True, eq=False)
class StepHooks:
    """The hooks of one pair and one plugin generation.

    Attributes:
        host_lock: held for a whole step.
        route: the pair's callbacks, and what they raised.
        pre, last, post: the once-per-step dispatchers, ``None`` where nobody listens.
        due_pre: ``pre_step`` calls at a rate that belong to the step that comes next.
        taken_pre: those that the newest step took, for the case that it is undone.
    """

    host_lock: OrderedLock
    route: Route
    pre: ModelCall | None = None
    last: ModelCall | None = None
    post: ModelCall | None = None
    due_pre: list[ModelCall] = field(default_factory=list)
    taken_pre: list[ModelCall] = field(default_factory=list, init=False)

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
        with self.host_lock, self.route.stepping(Entry.STEP):
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
    pre, last, post, parked = hooks.pre, hooks.last, hooks.post, route.parked
    due_pre, taken_pre = hooks.due_pre, hooks.taken_pre
    # A single hook that the engine reaches in every step tells by itself that it is still there.
    watched, told_by_turn = bool(route.hooked), route.hooked in _TOLD_BY_TURN

    def step() -> None:  # noqa: C901 - every call saved counts on this path
        if kept is None:
            save()
        else:
            kept[:] = live
            state.saved_time = time_cell.value
        try:
            if due_pre:
                for call in due_pre:
                    call(model, data)
            if pre is not None:
                pre(model, data)
            # Counted from here to there only: a forward that a hook makes itself is no part of it.
            route.turn = 0
            mj_step(model, data)
            turn, route.turn = route.turn, IDLE
            if parked:
                raise_parked(route)
            if watched and not (told_by_turn and turn):
                raise_if_taken(route)
            if last is not None:
                last(model, data)
            if post is not None:
                post(model, data)
            silent = warnings_now() == no_warning
        except BaseException as error:
            route.turn = IDLE
            stepper.roll_back_hooked(hosted, hooks, error)
            raise
        if not silent:
            stepper.examine(hosted, 1)
        # No call from here to the count, so that an interrupt cannot separate them.
        route.retry = False
        if due_pre or taken_pre:
            taken_pre[:] = due_pre
            del due_pre[:]
        hosted.steps += 1

    return step


def raise_if_taken(route: Route) -> None:
    """Raises if somebody wrote over a callback pointer that leads to the hooks of the pair."""
    taken = route.taken()
    if taken is not None:
        raise ForeignCallbackError(
            f"{taken}; the hooks of this env are not reached any more: remove that callback, or "
            "call clear_fault() to install ours again in front of it"
        )


def raise_parked(route: Route) -> None:
    """Raises what a callback raised first, if any did; its traceback is the callback's own."""
    kind = route.parked_kind
    error = route.take()
    if error is not None:
        if isinstance(error, Exception) and not getattr(error, "__notes__", None):
            error.add_note(f"raised in the {kind} callback")
        raise error
