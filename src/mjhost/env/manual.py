"""Manual steps: requests that queue for the right to step, one after the other.

Owns: the queue of step requests and whose turn it is.
Invariants: only the request at the head steps; requests are served in the order they came and
never merged; a request ends exactly once, with the number of steps that were really taken.
Threads: ``step`` runs the steps in the calling thread; what ``submit`` queued is run by the physics
thread. The mutex is held for list operations only, never while stepping or waiting.
Failure: an exception in a step ends that request only, with ``completed`` steps kept.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from concurrent.futures import Future
from threading import get_ident
from typing import TYPE_CHECKING

from mjhost.env.phases import Operation
from mjhost.env.records import StepReason, StepResult
from mjhost.errors import (
    DivergenceError,
    InvalidArgumentError,
    NotPausedError,
    QueueFullError,
)

if TYPE_CHECKING:
    from mjhost.env.core import EnvCore
    from mjhost.env.stepping import Stepper
    from mjhost.locking import PhysicsLock

QUEUE_LIMIT = 64
"""Most step requests that may wait; one more raises ``QueueFullError``."""

_MAX_STEPS = 2**62
_WAIT_S = 0.2  # a lost wake-up or a cancelled predecessor is noticed after at most this


class StepRequest:
    """One request for ``wanted`` steps."""

    __slots__ = ("cancelled", "completed", "done", "epoch", "future", "thread", "turn", "wanted")

    def __init__(self, wanted: int, future: Future[StepResult] | None, epoch: int) -> None:
        self.wanted = wanted
        self.epoch = epoch  # of admission: the model that it was meant for
        self.thread = get_ident() if future is None else None
        self.completed = 0
        self.done = False  # whoever finds it in the queue takes it out
        self.cancelled: StepReason | None = None
        self.future = future
        self.turn = threading.Event()

    @property
    def left(self) -> int:
        """Steps not taken yet."""
        return self.wanted - self.completed


class ManualSteps:
    """The queue of manual step requests of one env."""

    def __init__(self, core: EnvCore, stepper: Stepper) -> None:
        self._core = core
        self._stepper = stepper
        self._mutex = threading.Lock()
        self._requests: deque[StepRequest] = deque()  # bounded by QUEUE_LIMIT in _enqueue
        self._server: int | None = None  # the thread that runs what submit queued
        core.pending_steps = self.pending

    # -- asking ------------------------------------------------------------------------------

    def step(self, n: int, timeout_s: float | None) -> StepResult:
        """Takes ``n`` steps in this thread, after the requests that came before."""
        request = StepRequest(checked_steps(n), None, self._core.admission_epoch)
        deadline = checked_deadline(timeout_s)
        self._admit(Operation.STEP)
        self._core.refuse_holding(Operation.STEP)
        try:
            self._enqueue(request)  # inside: an interrupt must not leave it behind
            return self._wait_and_run(request, deadline)
        finally:
            # A plain store first: an interrupt may keep _leave from being entered, and whoever
            # waits behind a request that is done takes it out himself.
            request.done = True
            self._leave(request)

    def submit(self, n: int) -> Future[StepResult]:
        """Queues ``n`` steps for the physics thread."""
        future: Future[StepResult] = Future()
        request = StepRequest(checked_steps(n), future, self._core.admission_epoch)
        self._admit(Operation.STEP_ASYNC)
        self._enqueue(request)
        if self._core.machine.closed:  # since it was admitted: nobody will run it any more
            self.abandon_async(StepReason.CANCELLED_BY_CLOSE)
        self._core.waker.wake()
        return future

    def cancel(self, reason: StepReason) -> int:
        """Cancels every request; returns how many. Those under way end at the next boundary."""
        with self._mutex:
            requests = [r for r in self._requests if r.cancelled is None]
            for request in requests:
                request.cancelled = reason
                request.turn.set()
        self._core.single_step = None
        self._core.waker.wake()
        return len(requests)

    def pending(self) -> int:
        """Steps asked for and not yet taken."""
        with self._mutex:
            waiting = [r for r in self._requests if r.cancelled is None and not r.done]
            return sum(request.left for request in waiting)

    @property
    def busy(self) -> bool:
        """Whether any request waits or runs."""
        return bool(self._requests)

    def _admit(self, operation: Operation) -> None:
        core = self._core
        core.admit(operation)
        core.refuse_fault(operation)
        if core.running:
            raise NotPausedError(
                f"{operation.label} needs a paused simulation and it is running; call pause() first"
            )

    def _enqueue(self, request: StepRequest) -> None:
        with self._mutex:
            if len(self._requests) >= QUEUE_LIMIT:
                raise QueueFullError(
                    f"{QUEUE_LIMIT} step requests wait already, the most there may be; wait for "
                    "one to end or call cancel_steps()"
                )
            self._core.pause_wanted = False
            self._head_locked()
            self._requests.insert(self._place(request), request)
            if self._requests[0] is request:
                request.turn.set()

    def _place(self, request: StepRequest) -> int:
        """Where in the queue: at its end, unless that would wait for something it holds up.

        What ``call_soon`` runs between two slices is part of the request at the head; and the
        physics thread cannot wait for requests that only it can run.
        """
        if not self._requests or request.thread is None:
            return len(self._requests)
        head = self._requests[0]
        if request.thread in (head.thread, self._server):
            return 0 if head.thread in (None, request.thread) else 1
        return len(self._requests)

    def serve_from_here(self) -> None:
        """The calling thread is the one that will run what ``submit`` queues."""
        self._server = get_ident()

    def _leave(self, request: StepRequest) -> None:
        """Takes an ended request out and gives the turn to the next one."""
        request.done = True
        with self._mutex:
            head = self._head_locked()
        if self._core.soon or (head is not None and head.future is not None):
            self._core.waker.wake()

    def _head_locked(self) -> StepRequest | None:
        """The request whose turn it is, after those that are done were taken out."""
        for request in [r for r in self._requests if r.done]:
            self._requests.remove(request)
        head = self._requests[0] if self._requests else None
        if head is not None:
            head.turn.set()
        return head

    # -- running -----------------------------------------------------------------------------

    def _wait_and_run(self, request: StepRequest, deadline: float) -> StepResult:
        while not request.turn.wait(min(_WAIT_S, max(0.0, deadline - time.perf_counter()))):
            if time.perf_counter() >= deadline:
                return StepResult(0, StepReason.TIMEOUT)
            with self._mutex:
                self._head_locked()  # the one before may have been interrupted on its way out
        return self._run(request, deadline)

    def run_next_async(self) -> bool:
        """Runs the request at the head if it is one for the physics thread."""
        with self._mutex:
            head = self._head_locked()
        if head is None or head.future is None:
            return False
        self._run_future(head, head.future)
        return True

    def _run_future(self, request: StepRequest, future: Future[StepResult]) -> None:
        try:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = self._run(request, float("inf"))
            except BaseException as error:  # noqa: BLE001 - handed to whoever asks the future
                future.set_exception(error)
            else:
                future.set_result(result)
        finally:
            self._leave(request)

    def abandon_async(self, reason: StepReason) -> None:
        """Ends every queued future; for close, when no thread will run them any more."""
        with self._mutex:
            # One that runs was asked from inside itself to close; it ends at its next boundary.
            queued = [r for r in self._requests if r.future and not r.future.running()]
            for request in queued:
                self._requests.remove(request)  # here, so that nobody else ends it as well
        for request in queued:
            future = request.future
            if future is not None and future.set_running_or_notify_cancel():
                future.set_result(StepResult(request.completed, reason))

    def _run(self, request: StepRequest, deadline: float) -> StepResult:
        """Slices until the request is done; gives up the lock between them."""
        lock, patient = self._core.lock, request.future is None
        while True:
            if not self._acquire(patient=patient):
                return StepResult(request.completed, StepReason.CANCELLED_BY_CLOSE)
            try:
                reason = request.cancelled or self._run_slice(request, deadline)
            finally:
                # The inlined release of mjhost.locking: an interrupt cannot come before it.
                lock.owner = None
                lock.baton.append(None)
                if lock.queue:
                    lock.kick()
            if reason is not None:
                return StepResult(request.completed, reason)
            self.run_soon()
            if not request.left:
                return StepResult(request.completed)
            if request.future is not None and not threading.main_thread().is_alive():
                return StepResult(request.completed, StepReason.CANCELLED_BY_CLOSE)
            if time.perf_counter() >= deadline:
                return StepResult(request.completed, StepReason.TIMEOUT)

    def _acquire(self, *, patient: bool) -> bool:
        """Waits for the lock; the physics thread only as long as there is a main thread."""
        lock = self._core.lock
        if patient:
            return lock.acquire(asked=Operation.STEP)
        return acquire_while_alive(lock)

    def _run_slice(self, request: StepRequest, deadline: float) -> StepReason | None:
        core = self._core
        hosted = core.hosted
        # Cancelling reaches what is in the queue; these were admitted before and queued after it.
        if hosted is None or core.stopping:
            return StepReason.CANCELLED_BY_CLOSE
        if request.epoch != core.admission_epoch:
            return StepReason.CANCELLED_BY_RELOAD
        if core.running:
            return StepReason.CANCELLED_BY_RESUME
        core.refuse_fault(Operation.STEP)
        core.single_step = None
        start = hosted.steps
        try:
            return self._stepper.run_slice(hosted, request.left, deadline)
        except BaseException as error:
            self._note(error, request.completed + hosted.steps - start)
            raise
        finally:
            request.completed += hosted.steps - start
            self._stepper.grant_single_step()

    @staticmethod
    def _note(error: BaseException, completed: int) -> None:
        if isinstance(error, DivergenceError):
            error.completed = completed
        error.add_note(f"completed={completed}")

    def run_soon(self) -> None:
        """Runs what ``call_soon`` queued; the caller is at a boundary and holds no lock."""
        soon = self._core.soon
        for _ in range(len(soon)):
            try:
                fn = soon.popleft()
            except IndexError:  # another thread at a boundary was first, or the env was closed
                return
            fn()


def acquire_while_alive(lock: PhysicsLock) -> bool:
    """Waits for the lock on the physics thread; false once the main thread has ended.

    Somebody may hold it for ever then: a daemon thread inside ``access()``.
    """
    main = threading.main_thread()
    while not lock.acquire(_WAIT_S, asked=Operation.STEP):
        if not main.is_alive():
            return False
    return True


def checked_steps(n: int) -> int:
    """``n`` if it is a number of steps."""
    if type(n) is not int or not 1 <= n <= _MAX_STEPS:
        raise InvalidArgumentError(f"a number of steps must be an integer of at least 1, got {n!r}")
    return n


def checked_deadline(timeout_s: float | None) -> float:
    """The moment of ``time.perf_counter`` that lies ``timeout_s`` ahead."""
    if timeout_s is None:
        return float("inf")
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, (int, float)) or not timeout_s >= 0:
        raise InvalidArgumentError(
            f"timeout must be a number of seconds of at least 0, or None, got {timeout_s!r}"
        )
    return time.perf_counter() + float(min(timeout_s, 1e9))
