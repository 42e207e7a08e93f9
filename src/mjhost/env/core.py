"""The shared state of one env, and the rule for who may touch what.

Owns: the locks, the phase machine, the hosted model, every counter, queue and flag of an env.
Invariants: a field marked *locked* is written under the physics lock only. ``single_step`` may be
revoked (set to ``None``) by anybody at any time and granted only by a thread that holds the
physics lock: whoever makes a shortcut unsafe can close it without waiting.
Threads: the fields not marked are single stores of immutable values, safe to read anywhere.
Not a goal: behaviour. The collaborators (stepping, manual steps, physics thread, lifecycle,
transaction) act on this state; ``MujocoEnv`` only admits and delegates.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

import mujoco

from mjhost.callbacks import call_context, is_trap_set, remove_left_trap, router
from mjhost.env.access_control import AccessControl
from mjhost.env.carrying import Initial
from mjhost.env.events import EventHub
from mjhost.env.pacing import Pacer, RealtimeMeter, Waker
from mjhost.env.phases import Operation, PhaseEvent, PhaseMachine
from mjhost.env.records import EnvInfo, Fault, Generations, StepResult
from mjhost.env.schedule import Schedule
from mjhost.env.session import SessionClock
from mjhost.env.streaming import Moments
from mjhost.errors import FaultError, LockOrderError, QueueFullError, ReentrancyError
from mjhost.generation import FrameGeneration, ModelGeneration, OptionsEpoch, PluginGeneration
from mjhost.locking import LockLevel, PhysicsLock, held_lower_scopes, refuse_below
from mjhost.plugins import ACCESS_SCOPE, active_hook
from mjhost.streams import StreamHub

if TYPE_CHECKING:
    from mjhost.env.hooks import StepHooks
    from mjhost.env.hosted import HostedModel
    from mjhost.env.limits import StepLimit
    from mjhost.env.plugging import Plugging
    from mjhost.options import RuntimeOptionsPatch
    from mjhost.plugins import PluginFailure

SOON_LIMIT = 1024
"""Most callables that may wait in ``call_soon``; one more raises ``QueueFullError``."""


def _is_of_core(frame: FrameType) -> bool:
    name = str(frame.f_globals.get("__name__", ""))
    return name.startswith(("mjhost.env.", "mjhost.plugins.", "mjhost.callbacks."))


class EnvCore:
    """Everything the collaborators of one env share."""

    def __init__(
        self,
        *,
        realtime: float | None,
        divergence_is_fault: bool,
        slice_s: float,
        busywait: bool,
        access_control: AccessControl,
    ) -> None:
        self.lock = PhysicsLock()
        self.machine = PhaseMachine()
        self.access_control = access_control
        self.hub = EventHub()
        self.streams = StreamHub(Moments(self))
        self.waker = Waker()
        self.pacer = Pacer(realtime)
        self.meter = RealtimeMeter()
        self.slice_s = slice_s
        self.busywait = busywait
        self.divergence_is_fault = divergence_is_fault

        self.hosted: HostedModel | None = None  # locked
        self.running = False  # locked
        self.fault: Fault | None = None  # locked
        self.limit: StepLimit | None = None  # locked
        self.session = SessionClock()  # locked
        self.schedule = Schedule(1.0)  # locked
        self.anchor_step = 0  # locked: hosted.steps at the schedule's anchor
        self.anchor_time = 0.0  # locked: data.time at the schedule's anchor
        self.steps_before = 0  # locked: steps of earlier loads and resets

        self.model_generation = ModelGeneration()  # locked
        self.options_epoch = OptionsEpoch()  # locked
        self.admission_epoch = 0  # advances when a load is admitted; read before the phase
        self.pending_options: RuntimeOptionsPatch | None = None
        self.load_count = 0
        self.initial = Initial(None)  # joint states to start from; replaced as a whole
        self.load_error: str | None = None

        self.soon: deque[Callable[[], object]] = deque()  # bounded by SOON_LIMIT in call_soon
        self.pause_wanted = False
        self.attention = False  # something was asked for that takes effect at the next boundary
        self.pacing_stale = True  # steps were not paced since: start a new base
        self.stopping = False
        self.scope_open = False  # locked: inside access()
        self.single_step: Callable[[], StepResult | None] | None = None
        self.grant: object = None  # locked: token of the newest ``single_step``
        self.pending_steps: Callable[[], int] = int
        self.calling: str | None = None  # locked: name of the task that is being called

        self.plugin_generation = PluginGeneration()  # locked
        self.hooks: StepHooks | None = None  # locked
        self.hooks_stale = False  # callbacks were added or removed and take effect at a boundary
        self.culprit: PluginFailure | None = None  # locked: the plugin that raised last
        self.plugging: Plugging  # set once, by whoever makes it

    # -- admission ---------------------------------------------------------------------------

    def admit(self, operation: Operation) -> None:
        """Raises unless ``operation`` is possible now, from this thread."""
        if not operation.allowed_inside_step:
            if self.is_inside_step():
                if not self._was_left_held():
                    self._refuse_inside(operation, "a step")
                self.lock.release()
            if held_lower_scopes or is_trap_set():
                self._give_back_host_lock()
                if self._is_inside_forward():
                    self._refuse_inside(operation, "a forward on the env's data")
        self.admit_locked(operation)

    def admit_locked(self, operation: Operation) -> None:
        """Asks the phase once more, for a caller that was admitted and now holds the lock."""
        self.machine.admit(operation, self.hosted is not None)

    def _refuse_inside(self, operation: Operation, where: str) -> None:
        caller = self.calling or active_hook() or "a callback"
        raise ReentrancyError(
            f"{operation.label} was called from inside {where}, by {caller}; operations that step, "
            "write or wait are not possible there: use env.call_soon(fn) or env.request_pause()"
        )

    def refuse_holding(self, operation: Operation) -> None:
        """Raises ``LockOrderError`` if this thread holds a lock that ``operation`` would wait for.

        For operations that wait for more than the physics lock, or change something before it.
        """
        if self.lock.held_by_me():
            raise LockOrderError(
                f"{operation.label} waits for a step boundary, which this thread holds: leave the "
                "access() scope first"
            )
        refuse_below(LockLevel.PHYSICS, threading.get_ident(), operation, self.lock.name)

    def refuse_fault(self, operation: Operation) -> None:
        """Raises ``FaultError`` while a fault is set."""
        if self.fault is not None:
            raise FaultError(
                f"{operation.label} is not possible while a fault is set; call clear_fault(), "
                f"reset() or reload() first. The fault: {self.fault.message}"
            )

    # -- user code inside a step -------------------------------------------------------------

    @contextmanager
    def inside(self, name: str) -> Iterator[None]:
        """Names the user code that is being called from a step."""
        before, self.calling = self.calling, name
        try:
            yield
        finally:
            self.calling = before

    def is_inside_step(self) -> bool:
        """Whether this thread is in user code called from a step."""
        return self.lock.owner == threading.get_ident() and not self.scope_open

    @staticmethod
    def _was_left_held() -> bool:
        """Whether this thread owns a lock only because an interrupt kept it from giving it up.

        Such an interrupt hits the very entry of a release, where Python offers no cure. Whoever
        holds the lock by right is mjhost's own code further down this thread's stack; below the
        code that is asking now there is none.
        """
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and _is_of_core(frame):
            frame = frame.f_back
        while frame is not None and not _is_of_core(frame):
            frame = frame.f_back
        return frame is None

    def _give_back_host_lock(self) -> None:
        """Gives up the plugin-host lock if an interrupt left it, as ``admit`` does with its own.

        An open access scope holds it without a frame on the stack, and says so.
        """
        lock = self.plugging.host.lock
        held = lock.held_by_me() and lock.scope != ACCESS_SCOPE
        if (held or is_trap_set()) and self._was_left_held():
            while held and lock.held_by_me():
                lock.release()
            router.forget_thread(threading.get_ident())
            remove_left_trap()

    def _is_inside_forward(self) -> bool:
        """Whether this thread is in a hook that fires in an engine call of the user's own."""
        return self.plugging.host.lock.held_by_me() and call_context().hook is not None

    # -- fork --------------------------------------------------------------------------------

    def close_after_fork(self) -> None:
        """Closes the env in a forked child, whatever locks vanished threads held."""
        self.single_step = None
        self.machine.advance(PhaseEvent.FORKED)
        self.lock.reinit_after_fork()
        self.plugging.host.reinit_after_fork()
        self.hub.reinit_after_fork()
        self.streams.reinit_after_fork()

    # -- call_soon ---------------------------------------------------------------------------

    def call_soon(self, fn: Callable[[], object]) -> None:
        """Queues ``fn`` for the stepping thread's next step boundary."""
        if len(self.soon) >= SOON_LIMIT:
            raise QueueFullError(
                f"call_soon has room for {SOON_LIMIT} waiting calls and they are taken; nothing "
                "was queued"
            )
        self.soon.append(fn)
        self.single_step = None
        self.attention = True
        self.waker.wake()

    # -- reading -----------------------------------------------------------------------------

    @contextmanager
    def boundary(self, asked: str) -> Iterator[None]:
        """A moment in which no step is in flight; inside a step, the present moment."""
        if self.lock.held_by_me():
            yield
            return
        with self.lock.holding(asked):
            yield

    def total_steps_locked(self) -> int:
        """Steps since the env was made."""
        return self.steps_before + (self.hosted.steps if self.hosted is not None else 0)

    def session_time_locked(self) -> float:
        """Session time of the present boundary, s sim."""
        return self.session.at(self.hosted.data.time if self.hosted is not None else 0.0)

    def generations(self) -> Generations:
        """The four counters."""
        return Generations(
            model=self.model_generation,
            plugins=self.plugin_generation,
            frames=FrameGeneration(),
            options=self.options_epoch,
        )

    def info_locked(self) -> EnvInfo:
        """The record behind ``env.info``, as of the present boundary."""
        hosted = self.hosted
        return EnvInfo(
            phase=self.machine.phase,
            source=hosted.source.label if hosted else None,
            content_hash=hosted.compiled.content_hash if hosted else None,
            generations=self.generations(),
            load_count=self.load_count,
            load_error=self.load_error,
            paused=not self.running,
            pending_steps=self.pending_steps(),
            step_count=hosted.steps if hosted else 0,
            total_steps=self.total_steps_locked(),
            sim_time=hosted.data.time if hosted else 0.0,
            session_time=self.session_time_locked(),
            realtime_target=self.pacer.factor,
            realtime_measured=self.meter.reading().factor,
            fault=self.fault,
            engine=mujoco.mj_versionString(),
        )
