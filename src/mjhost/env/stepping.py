"""Engine steps with a way back: chunks, roll-back, divergence, due tasks.

Owns: the only calls of ``mj_step`` in mjhost, and what happens when one goes wrong.
Invariants: a step counts once the engine finished it and it was found good; whatever raises, the
data are in the state before the step that failed and ``hosted.steps`` says how many were good.
A multi-step chunk ends where something is due, so nothing is ever late.
Threads: every function expects the caller to hold the physics lock.
Failure: ``DivergenceError`` with a fault set; anything else is the exception of the engine or of a
task, with a note that says where it happened.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from threading import get_ident
from typing import TYPE_CHECKING

import mujoco

from mjhost.callbacks import Entry, interrupts_surface
from mjhost.env.engine_log import adopt, adopted
from mjhost.env.events import EngineWarning, FaultRaised, Paused, Resumed, StepLimitReached
from mjhost.env.extensions import failure_of, interrupts_kept, raise_failure
from mjhost.env.limits import nominal_time
from mjhost.env.phases import Operation
from mjhost.env.records import Fault, FaultKind, StepReason
from mjhost.env.shortcut import hooked_single_step_of, single_step_of
from mjhost.env.turns import SHORT_STEP_S, turns
from mjhost.errors import DivergenceError, EnginePluginError
from mjhost.locking import held_lower_scopes

if TYPE_CHECKING:
    from mjhost.env.core import EnvCore
    from mjhost.env.hooks import StepHooks
    from mjhost.env.hosted import HostedModel

_WARNING_PERIOD_S = 0.1
_CHUNK_SHARE = 0.25
_STRIDE_SHARE = 0.1
_GROWTH = 2
_PLAIN_STEPS = 2**31


def adopt_this_thread() -> None:
    """Keeps what the engine says to calls of this thread off the terminal and the disk."""
    if get_ident() not in adopted:
        adopt()


class Stepper:
    """Takes engine steps for whoever holds the physics lock."""

    def __init__(self, core: EnvCore) -> None:
        self._core = core
        self._stride = 1  # hooked steps between two looks at the clock
        self._step_s = 0.0  # what a hooked step takes, s wall; 0 while unknown
        self.chunk = 1  # steps that fit into a part of a slice, learned as it goes
        self._warning_counts: dict[str, int] = {}
        self._warning_told: dict[str, float] = {}

    # -- slices ------------------------------------------------------------------------------

    def run_slice(
        self, hosted: HostedModel, wanted: int, deadline: float = float("inf")
    ) -> StepReason | None:
        """Steps until ``wanted`` steps are done, the slice is over, or something must happen.

        Args:
            hosted: the pair to step.
            wanted: most steps to take, at least 1.
            deadline: moment of ``time.perf_counter`` after which no chunk is begun.

        Returns:
            why stepping has to stop here, or ``None`` when the caller may go on after giving up the
            lock.
        """
        if not hosted.extended:
            return self._run_slice(hosted, wanted, deadline)
        with interrupts_kept(hosted):
            return self._run_slice(hosted, wanted, deadline)

    def _run_slice(  # noqa: C901 - every boundary condition stands here once
        self, hosted: HostedModel, wanted: int, deadline: float
    ) -> StepReason | None:
        core = self._core
        adopt_this_thread()
        if not hosted.state.suits_options:  # somebody wrote to model.opt himself
            hosted.options_changed()
        now = time.perf_counter()
        end = min(now + core.slice_s, deadline)
        goal = hosted.steps + wanted
        core.attention = False  # before the flags it stands for are looked at
        self.catch_up_schedule()
        if core.schedule.due:  # an interrupt came between the newest step and its tasks
            self._run_due(hosted)
        while hosted.steps < goal:
            if core.hooks_stale:
                core.plugging.settle()
            room = self._room(hosted, goal - hosted.steps)
            if room == 0:
                return self._limit_reached(hosted)
            hooks = core.hooks
            if hooks is None:
                self._run_chunk(hosted, room)
            else:
                self._run_hooked(hosted, hooks, room, end)
            now = time.perf_counter()
            self._count_steps(hosted)
            if core.schedule.due:
                self._run_due(hosted)
            if core.limit is not None and self._limit_left(hosted) == 0:
                return self._limit_reached(hosted)
            if core.pause_wanted:
                return self._pause_wanted(hosted)
            if core.soon or core.lock.contended or now >= end:
                return None
        return None

    def _room(self, hosted: HostedModel, wanted: int) -> int:
        """Steps until something is due between two steps, at most ``wanted``."""
        core = self._core
        if hosted.dt_cell.value != core.schedule.dt:
            self.anchor(hosted)
        room = min(wanted, core.schedule.next_due)
        return room if core.limit is None else min(room, self._limit_left(hosted))

    def _run_chunk(self, hosted: HostedModel, room: int) -> None:
        """Takes as many steps at once as fit into a quarter of a slice."""
        chunk = min(room, self.chunk)
        if chunk > 1 and chunk == self._core.schedule.next_due:
            # The step that tasks belong to is taken singly: if one raises, the state before it is
            # at hand, and need not be found again with a model that a task may have changed.
            chunk -= 1
        started = time.perf_counter()
        self.advance(hosted, chunk)
        wall_s = time.perf_counter() - started
        target = self._core.slice_s * _CHUNK_SHARE
        fitting = int(target * chunk / wall_s) if wall_s > 0 else chunk * _GROWTH
        self.chunk = max(1, min(fitting, max(self.chunk, chunk * _GROWTH)))

    def _run_hooked(self, hosted: HostedModel, hooks: StepHooks, room: int, end: float) -> None:
        """Takes steps one by one until somebody else is wanted."""
        core, step = self._core, hooks.step_of(self, hosted)
        waiting, host_waiting = core.lock.queue, hooks.host_lock.queue
        hosted.warnings.clear()
        me, route, host_lock = get_ident(), hooks.route, hooks.host_lock
        before, trap = sys.unraisablehook, interrupts_surface(route)
        trap.before[0] = before
        host_lock.acquire(asked=Operation.STEP)
        turns.steppers += 1
        try:
            if threading.current_thread() is threading.main_thread():
                sys.unraisablehook = trap.hook
            with route.stepping(Entry.STEP):
                while room > 0 and not core.attention:
                    if turns.steppers > 1 and self._step_s < SHORT_STEP_S:
                        turns.take(me, self._step_s)
                    started, stride = time.perf_counter(), min(room, self._stride)
                    for _ in range(stride):
                        step()
                        if core.attention:
                            break
                    turns.give(me)
                    room -= stride
                    now = time.perf_counter()
                    self._fit_stride(stride, now - started)
                    if waiting or host_waiting or now >= end:
                        break
        finally:
            turns.steppers -= 1
            # The inlined releases: no call comes before the lock is free, so that an interrupt on
            # the way out cannot leave it held. This thread holds nothing else below physics.
            if sys.unraisablehook is trap.hook:
                sys.unraisablehook = before
            del held_lower_scopes[me]
            host_lock.owner = None
            host_lock.baton.append(None)
            if host_waiting:
                host_lock.kick()
            turns.give(me)

    def _fit_stride(self, stride: int, wall_s: float) -> None:
        """Sizes the steps between two looks at clock and waiters: a tenth of a slice's worth."""
        target = self._core.slice_s * _STRIDE_SHARE
        fitting = int(target * stride / wall_s) if wall_s > 0 else stride * _GROWTH
        self._stride = max(1, min(fitting, stride * _GROWTH))
        # The least that was seen: what others take of the processor is no property of the step.
        self._step_s = min(self._step_s or wall_s, wall_s / stride)

    def _limit_left(self, hosted: HostedModel) -> int:
        limit = self._core.limit
        assert limit is not None
        return limit.remaining(hosted.steps, self.nominal_time(hosted), hosted.dt)

    def _limit_reached(self, hosted: HostedModel) -> StepReason:
        core = self._core
        core.limit = None
        core.hub.publish(StepLimitReached, self.stamp(hosted))
        self.stop_running(hosted)
        return StepReason.LIMIT

    def _pause_wanted(self, hosted: HostedModel) -> StepReason:
        core = self._core
        core.pause_wanted = False
        self.stop_running(hosted)
        return StepReason.PAUSE_REQUESTED

    # -- running -----------------------------------------------------------------------------

    def start_running(self, hosted: HostedModel) -> None:
        """Hands stepping over to the physics thread."""
        core = self._core
        core.pause_wanted = False
        core.pacing_stale = True
        core.single_step = None
        core.running = True
        core.meter.clear()
        core.hub.publish(Resumed, self.stamp(hosted))
        core.plugging.notify_resume(hosted)

    def stop_running(self, hosted: HostedModel) -> None:
        """Takes stepping from the physics thread, if it has it."""
        core = self._core
        if not core.running:
            return
        core.running = False
        core.meter.clear()
        core.hub.publish(Paused, self.stamp(hosted))
        core.plugging.notify_pause(hosted)

    # -- time and rates ----------------------------------------------------------------------

    def anchor(self, hosted: HostedModel) -> None:
        """Starts counting steps anew, for rates and limits, from the present boundary."""
        core = self._core
        core.schedule.reanchor(hosted.dt)
        core.pacing_stale = True
        core.anchor_step = hosted.steps
        self.forget_pace()
        core.anchor_time = hosted.data.time

    def forget_pace(self) -> None:
        """Begins with single steps again: what a step costs may have changed by any factor."""
        self.chunk = 1
        self._stride = 1
        self._step_s = 0.0

    def catch_up_schedule(self) -> None:
        """Tells the schedule of the steps it has not seen: the quick ways of stepping count none.

        They stop before anything is due, so nothing is missed.
        """
        core, hosted = self._core, self._core.hosted
        if hosted is None:
            return
        if hosted.dt != core.schedule.dt:
            self.anchor(hosted)
        else:
            self._count_steps(hosted)

    def _count_steps(self, hosted: HostedModel) -> None:
        """Tells the schedule where the simulation is."""
        core = self._core
        core.schedule.advance(hosted.steps - core.anchor_step - core.schedule.steps)

    def plain_room(self, hosted: HostedModel) -> int:
        """Steps that need nothing but the engine: those before the next task, limit or wish."""
        core = self._core
        with core.lock.holding(Operation.RESUME):
            if core.hosted is not hosted or not core.running or core.attention:
                return 0
            self.catch_up_schedule()
            return self._room(hosted, _PLAIN_STEPS)

    def nominal_time(self, hosted: HostedModel) -> float:
        """Simulation time of the present boundary, free of accumulated rounding, s sim."""
        core = self._core
        steps = hosted.steps - core.anchor_step
        return nominal_time(core.anchor_time, steps, hosted.dt, hosted.data.time)

    def _run_due(self, hosted: HostedModel) -> None:
        """Calls the tasks that belong to the step just taken; one that raises undoes the step."""
        due = self._core.schedule.due
        while due:
            task = due[0]
            if not task.active:
                del due[0]
                continue
            try:
                with self._core.inside(f"task {task.name}"), self._core.plugging.in_task(hosted):
                    task.fn(hosted.model, hosted.data)
            except BaseException as error:
                error.add_note(f"raised by task {task.name!r} in step {hosted.steps}")
                self._undo_last_step(hosted)
                self._core.plugging.tell_failure(hosted, error)
                raise
            del due[:1]

    def _undo_last_step(self, hosted: HostedModel) -> None:
        """Back to the state before the newest step, which was taken singly."""
        hosted.state.restore()
        hosted.steps -= 1
        self._core.schedule.undo_step()
        self._core.plugging.undone(hosted)
        self.refresh(hosted)

    # -- the engine --------------------------------------------------------------------------

    def advance(self, hosted: HostedModel, steps: int) -> None:
        """Takes ``steps`` engine steps with nothing in between, all of them good."""
        hosted.state.save()
        hosted.warnings.clear()
        try:
            mujoco.mj_step(hosted.model, hosted.data, steps)
            warned = hosted.warnings.any()
        except BaseException as error:
            self.back_to_last_good(hosted, steps, error)
            raise
        if warned:
            self.examine(hosted, steps)
        hosted.steps += steps

    def back_to_last_good(self, hosted: HostedModel, steps: int, error: BaseException) -> None:
        """After an exception inside a chunk: the state before the step that raised it."""
        hosted.state.restore()
        # An interrupt is no property of a step: nothing to find, the chunk's start is the state.
        if steps > 1 and isinstance(error, Exception):
            hosted.steps += self._replay(hosted, steps)
        self._refresh_undone(hosted, error)
        where = "in" if isinstance(error, EnginePluginError) else "by the engine in"
        error.add_note(f"raised {where} step {hosted.steps + 1}")

    def roll_back_hooked(self, hosted: HostedModel, hooks: StepHooks, error: BaseException) -> None:
        """After an exception inside a hooked step: the state before its ``pre_step``."""
        hooks.route.take()
        hosted.state.restore()
        hosted.repeats = hosted.steps + 1
        hooks.route.retry = True
        self._refresh_undone(hosted, error)
        error.add_note(f"raised in step {hosted.steps + 1}, which was undone")
        self._core.plugging.tell_failure(hosted, error)

    def examine(self, hosted: HostedModel, steps: int) -> None:
        """The engine warned during a chunk: tells, and turns a divergence into a fault.

        An extension of the engine that raised tells so by a warning of its own kind.
        """
        error = failure_of(hosted.data)
        if error is not None:
            self._undo_extension(hosted, steps, error)
            raise error
        if not hosted.warnings.diverged():
            self._tell(hosted)
            return
        core = self._core
        if not core.divergence_is_fault:
            # The engine set its own time back to 0; host time does not follow.
            core.session.jump(hosted.state.saved_time + steps * hosted.dt, hosted.data.time)
            self._tell(hosted)
            return
        what = ", ".join(sorted(hosted.warnings.counts()))
        hosted.state.restore()
        if steps > 1:
            hosted.steps += self._replay(hosted, steps)
            what = ", ".join(sorted(hosted.warnings.counts())) or what
            hosted.state.restore()
        self._tell(hosted)
        if self._core.hooks is not None:
            hosted.repeats = hosted.steps + 1
            self._core.hooks.route.retry = True
        self.refresh(hosted)
        self._raise_divergence(hosted, what)

    def _undo_extension(self, hosted: HostedModel, steps: int, error: BaseException) -> None:
        """Back to the state before the step in which an extension raised ``error``."""
        hooks = self._core.hooks
        if hooks is not None and hooks.every_step:
            self.roll_back_hooked(hosted, hooks, error)
        else:
            self.back_to_last_good(hosted, steps, error)

    def undo_call(self, hosted: HostedModel, error: BaseException) -> None:
        """Back to the saved state after ``error`` of an engine call that is no step."""
        hosted.state.restore()
        self._refresh_undone(hosted, error)

    def _refresh_undone(self, hosted: HostedModel, error: BaseException) -> None:
        """``refresh`` after ``error``; an extension that raises again does not hide it."""
        hosted.wrenches.forget()  # the saved state is without them
        try:
            self.refresh(hosted)
        except EnginePluginError as again:
            hosted.warnings.clear()
            error.add_note(f"what derives from the state could not be computed anew: {again}")

    def _replay(self, hosted: HostedModel, steps: int) -> int:
        """Repeats a bad chunk step by step; returns how many were good before the bad one.

        Afterwards the data are in the state before the bad step, and the warnings are its.
        """
        for good in range(steps):
            hosted.state.save()
            hosted.warnings.clear()
            try:
                mujoco.mj_step(hosted.model, hosted.data)
            except Exception:  # noqa: BLE001 - the one being looked for; the caller raises it
                hosted.state.restore()
                return good
            if hosted.warnings.any() and failure_of(hosted.data) is not None:
                hosted.state.restore()
                return good
            if hosted.warnings.diverged() and self._core.divergence_is_fault:
                hosted.state.restore()
                return good
        return steps

    def _raise_divergence(self, hosted: HostedModel, what: str) -> None:
        step = hosted.steps + 1
        message = (
            f"the simulation diverged in step {step} at {hosted.data.time:.6g} s ({what}); the "
            "state is that before the step: look at it, then change it or call reset()"
        )
        fault = Fault(FaultKind.DIVERGENCE, message, "engine", step, hosted.data.time)
        self.set_fault(hosted, fault)
        raise DivergenceError(message)

    def refresh(self, hosted: HostedModel) -> None:
        """Recomputes everything derived from the state; no hook fires."""
        adopt_this_thread()
        if self._core.plugging.is_hooked or hosted.extended:
            with self._core.plugging.muted(), interrupts_kept(hosted):
                mujoco.mj_forward(hosted.model, hosted.data)
            raise_failure(hosted.data)
        else:
            mujoco.mj_forward(hosted.model, hosted.data)
        hosted.warnings.clear()

    # -- telling -----------------------------------------------------------------------------

    def stamp(self, hosted: HostedModel) -> tuple[float, float, int, int]:
        """Session time, simulation time, step and model generation of the present boundary."""
        core = self._core
        time_now = hosted.data.time
        return core.session.at(time_now), time_now, hosted.steps, hosted.generation.value

    def set_fault(self, hosted: HostedModel, fault: Fault) -> None:
        """Stops the simulation and tells why."""
        core = self._core
        core.fault = fault
        core.single_step = None
        core.hub.publish(FaultRaised, self.stamp(hosted), fault=fault)
        with contextlib.suppress(BaseException):  # on_pause; recorded and told, the fault is first
            self.stop_running(hosted)

    def _tell(self, hosted: HostedModel) -> None:
        """Publishes the engine's warnings: at most ten events per second and kind."""
        now = time.monotonic()
        for kind, count in hosted.warnings.counts().items():
            total = self._warning_counts.get(kind, 0) + count
            self._warning_counts[kind] = total
            if now - self._warning_told.get(kind, -1.0) >= _WARNING_PERIOD_S:
                self._warning_told[kind] = now
                self._core.hub.publish(EngineWarning, self.stamp(hosted), warning=kind, count=total)
        hosted.warnings.clear()

    # -- the shortcut ------------------------------------------------------------------------

    def grant_single_step(self) -> None:
        """Opens the shortcut for ``step()`` if nothing but the engine has to run in a step."""
        core = self._core
        hosted = core.hosted
        if hosted is None or core.hooks_stale or hosted.extended or not self._free():
            core.single_step = None  # (the trap of `interrupts_kept` stands on the long way only)
        elif core.hooks is None:
            core.single_step = single_step_of(core, self, hosted)
        elif "time" in core.hooks.route.hooked:
            core.single_step = None  # the clock of a thread that steps has to be set up
        else:
            core.single_step = hooked_single_step_of(core, self, hosted, core.hooks)
        # Whoever revokes the shortcut without the lock changes what _free looks at before: one of
        # the two sees the other.
        if not self._free():
            core.single_step = None

    def _free(self) -> bool:
        core = self._core
        return (
            core.machine.operational
            and not core.running
            and core.fault is None
            and core.limit is None
            and not core.soon
            and not core.stopping
            and not len(core.schedule)
        )
