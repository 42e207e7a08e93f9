"""The part of ``MujocoEnv`` that makes time pass: manual steps, running, calls at boundaries.

Invariants: as for ``MujocoEnv``; a face has no state of its own.
Threads: every method may be called from any thread, unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from mjhost.env.face_reading import ReadingFace
from mjhost.env.limits import checked_limit
from mjhost.env.manual import ManualSteps
from mjhost.env.pacing import MeasuredRealtime, normalise_factor
from mjhost.env.phases import Operation
from mjhost.env.physics_thread import PhysicsThread
from mjhost.env.records import StepReason, StepResult
from mjhost.env.schedule import steps_for
from mjhost.env.stepping import Stepper
from mjhost.env.tasks import TaskFunction, TaskToken
from mjhost.errors import InvalidArgumentError


class SteppingFace(ReadingFace):
    """What makes time pass."""

    _stepper: Stepper
    _manual: ManualSteps
    _thread: PhysicsThread

    # -- manual steps ------------------------------------------------------------------------

    def step(self, n: int = 1, *, timeout: float | None = None) -> StepResult:
        """Takes exactly ``n`` engine steps while paused, in this thread.

        Requests of several threads are served one after the other. A reset, reload, close, resume
        or ``cancel_steps`` ends the request early; the result says so.

        Args:
            n: number of steps, at least 1.
            timeout: stop at the first step boundary after so many seconds, s wall.

        Raises:
            NotPausedError: the simulation is running.
            FaultError: a fault is set.
            DivergenceError: a step diverged; its ``completed`` counts the good ones, the state is
                that before the bad one, and ``fault`` is set.
            Exception: whatever a task raised, with a note that names it and the completed steps.
        """
        if n.__class__ is int and n == 1 and timeout is None:
            single_step = self._core.single_step
            if single_step is not None:
                result = single_step()
                if result is not None:
                    return result
        return self._manual.step(n, timeout)

    def step_async(self, n: int = 1) -> Future[StepResult]:
        """Queues ``n`` steps for the physics thread; errors are those of ``step``."""
        future = self._manual.submit(n)
        self._thread.ensure_started()
        return future

    def cancel_steps(self) -> int:
        """Cancels every step request, waiting or under way; returns how many there were."""
        self._core.admit(Operation.CANCEL_STEPS)
        return self._manual.cancel(StepReason.CANCELLED_BY_CALL)

    def advance(self, seconds: float) -> StepResult:
        """Takes the steps that ``seconds`` of simulated time need: the least k, k·dt >= seconds."""
        self._core.admit(Operation.ADVANCE)
        return self._manual.step(steps_for(seconds, self._hosted("advance").dt), None)

    # -- running -----------------------------------------------------------------------------

    def resume(self) -> None:
        """Lets the physics thread step at the target factor; pending manual steps are cancelled.

        Raises:
            FaultError: a fault is set.
            NotLoadedError: there is no model.
        """
        core = self._core
        core.admit(Operation.RESUME)
        try:
            with core.lock.holding(Operation.RESUME):
                core.admit_locked(Operation.RESUME)
                core.refuse_fault(Operation.RESUME)
                self._manual.cancel(StepReason.CANCELLED_BY_RESUME)
                if not core.running:
                    self._stepper.start_running(self._hosted("resume"))
        finally:  # a plugin that raised in on_resume does not hold up the simulation
            if core.running:
                self._thread.ensure_started()
                core.waker.wake()

    def pause(self) -> None:
        """Stops the physics thread; no step is in flight once this has returned."""
        core = self._core
        core.admit(Operation.PAUSE)
        with core.lock.holding(Operation.PAUSE):
            try:
                if core.hosted is not None:
                    self._stepper.stop_running(core.hosted)
            finally:
                self._stepper.grant_single_step()

    def request_pause(self) -> None:
        """Asks for a pause at the next step boundary and does not wait; allowed inside a step."""
        core = self._core
        core.admit(Operation.REQUEST_PAUSE)
        if core.running or self._manual.busy:
            core.pause_wanted = True
            core.attention = True

    def stop_at(self, *, steps: int | None = None, time: float | None = None) -> None:
        """Arms a limit at which stepping stops by itself, exactly; a later call replaces it.

        It stays armed until it is reached, also across a reset or reload, after which steps and
        time count from zero.

        Args:
            steps: step count (as in ``info.step_count``) to stop at.
            time: simulation time to stop at, s sim: the first boundary at or after it.

        Raises:
            InvalidArgumentError: neither is given, or one lies behind the present boundary.
        """
        core = self._core
        limit = checked_limit(steps, time)
        core.admit(Operation.STOP_AT)
        with core.lock.holding(Operation.STOP_AT):
            hosted = self._hosted("stop_at")
            now = self._stepper.nominal_time(hosted)
            if limit.remaining(hosted.steps, now, hosted.dt) == 0:
                raise InvalidArgumentError(
                    f"stop_at must lie ahead, got steps={steps!r}, time={time!r}; the simulation "
                    f"is at step {hosted.steps}, {now:.9g} s"
                )
            core.limit = limit
            core.single_step = None
            core.attention = True

    @property
    def realtime(self) -> float | None:
        """Target real-time factor, ``None`` for unbound; setting it takes effect at once."""
        return self._core.pacer.factor

    @realtime.setter
    def realtime(self, factor: float | None) -> None:
        self._core.admit(Operation.SET_REALTIME)
        self._core.pacer.factor = normalise_factor(factor)
        self._core.pacing_stale = True
        self._core.waker.wake()

    @property
    def measured_realtime(self) -> MeasuredRealtime:
        """Real-time factor over the last second of wall time, with where that time went."""
        return self._core.meter.reading()

    # -- calls at boundaries -----------------------------------------------------------------

    def every(self, rate_hz: float, fn: TaskFunction, *, name: str | None = None) -> TaskToken:
        """Calls ``fn(model, data)`` at a rate of simulation time, exact in steps.

        The call is part of the step that ends there: ``model`` and ``data`` are live and valid for
        that call only, env operations that step, write or wait raise ``ReentrancyError``, and an
        exception stops the simulation like that of any hook.

        Args:
            rate_hz: calls per second of simulation time; at most one per step.
            fn: what to call.
            name: what errors call it; by default the function's qualified name.

        Returns:
            A token whose ``remove()`` ends the calls.
        """
        core = self._core
        core.admit(Operation.EVERY)
        with core.boundary(Operation.EVERY):
            return TaskToken(core, self._stepper, rate_hz, fn, name)

    def call_soon(self, fn: Callable[[], object]) -> None:
        """Calls ``fn()`` on the stepping thread at the next step boundary, with no lock held.

        Allowed inside a step; this is the way to ask there for what is not. What ``fn`` raises is
        treated like an exception of a task.

        Raises:
            QueueFullError: too many calls are waiting.
        """
        if not callable(fn):
            raise InvalidArgumentError(f"call_soon needs a callable, got {type(fn).__name__}")
        self._core.admit(Operation.CALL_SOON)
        self._core.call_soon(fn)
        self._thread.ensure_started()
