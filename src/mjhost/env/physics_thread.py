"""The thread that steps while the simulation is running.

Owns: the thread, and the pacing of its steps against the monotonic clock.
Invariants: the thread is not a daemon (a daemon inside ``mj_step`` at interpreter exit is a
segmentation fault); it looks at ``threading.main_thread().is_alive()`` every slice and bounds every
wait, so a process that ends without ``close()`` ends by itself. It holds the lock for at most a
slice when somebody waits. It never dies of an exception: what a step raises becomes the fault.
Threads: started from any thread, at most once; it alone runs ``_run``.
Failure: a fault is set, the simulation is paused at the state before the failing step, the thread
goes on and waits.
"""

from __future__ import annotations

import threading
import time
import traceback
from typing import TYPE_CHECKING

import mujoco

from mjhost.env.manual import acquire_while_alive
from mjhost.env.phases import Operation
from mjhost.env.records import Fault, FaultKind
from mjhost.env.steady import run_steadily
from mjhost.errors import DivergenceError, EnginePluginError, ForeignCallbackError

if TYPE_CHECKING:
    from mjhost.env.core import EnvCore
    from mjhost.env.hosted import HostedModel
    from mjhost.env.manual import ManualSteps
    from mjhost.env.stepping import Stepper
    from mjhost.plugins import PluginFailure

_IDLE_S = 0.2  # bounds every wait, so that the end of the main thread is seen
_UNBOUND_STEPS = 2**31


class PhysicsThread:
    """Steps while the env is running; serves queued steps and calls while it is paused."""

    def __init__(self, core: EnvCore, stepper: Stepper, manual: ManualSteps) -> None:
        self._core = core
        self._stepper = stepper
        self._manual = manual
        self._mutex = threading.Lock()
        self._thread: threading.Thread | None = None
        self._base_step = 0

    def ensure_started(self) -> None:
        """Starts the thread at its first use."""
        with self._mutex:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="mjhost-physics", daemon=False
                )
                self._thread.start()

    def is_current(self) -> bool:
        """Whether the calling thread is this one."""
        return self._thread is threading.current_thread()

    def stop(self) -> None:
        """Ends the thread and waits for it: at most for a slice, one step and a running task."""
        self._core.stopping = True
        self._core.waker.wake()
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return
        while thread.is_alive():
            thread.join(_IDLE_S)
            self._core.waker.wake()

    # -- the loop ----------------------------------------------------------------------------

    def _run(self) -> None:
        core, main = self._core, threading.main_thread()
        self._manual.serve_from_here()
        while not core.stopping and main.is_alive():
            try:
                self._turn()
            except BaseException as error:  # noqa: BLE001 - recorded as the fault
                self._record(error)

    def _turn(self) -> None:
        core, manual = self._core, self._manual
        if core.running:
            while manual.busy and manual.run_next_async():  # those that resume cancelled
                continue
            self._run_paced()
            manual.run_soon()
        elif manual.busy:
            # Somebody else's request has its own thread, which also runs what call_soon queued.
            if not manual.run_next_async():
                core.waker.sleep(_IDLE_S)
        elif core.soon:
            manual.run_soon()
        else:
            core.waker.sleep(_IDLE_S)

    def _run_paced(self) -> None:
        core = self._core
        start = time.perf_counter()
        wait = self._wait_s()
        if wait > 0:
            self._wait(wait)
            core.meter.add(wait_s=time.perf_counter() - start)
            return
        if not acquire_while_alive(core.lock):
            return
        try:
            hosted = core.hosted
            if not core.running or hosted is None:
                return
            before, in_hooks = hosted.steps, self._hook_seconds()
            try:
                self._stepper.run_slice(hosted, self._steps_due(hosted))
            finally:
                plugins_s = self._hook_seconds() - in_hooks
                core.meter.add(
                    step_s=time.perf_counter() - start - plugins_s,
                    plugins_s=plugins_s,
                    sim_s=(hosted.steps - before) * hosted.dt,
                )
        finally:
            core.lock.release()
        if core.pacer.factor is not None and core.hooks is None and not core.busywait:
            run_steadily(core, self._stepper, hosted, self._paced(hosted))

    def _hook_seconds(self) -> float:
        core = self._core
        return core.plugging.host.hook_seconds() if core.hooks is not None else 0.0

    def _wait(self, seconds: float) -> None:
        if not self._core.busywait:
            self._core.waker.sleep(min(seconds, _IDLE_S))

    # -- pacing ------------------------------------------------------------------------------

    def _wait_s(self) -> float:
        """Wall seconds until the next step is due; 0 or less when it is."""
        core, hosted = self._core, self._core.hosted
        if hosted is None or core.pacer.factor is None:
            return 0.0
        if core.pacing_stale:
            core.pacing_stale = False
            self._base_step = hosted.steps
            core.pacer.rebase(0.0)
        return core.pacer.due_in(self._paced(hosted))

    def _steps_due(self, hosted: HostedModel) -> int:
        core = self._core
        if core.pacer.factor is None:
            return _UNBOUND_STEPS
        return core.pacer.steps_due(self._paced(hosted), hosted.dt, _UNBOUND_STEPS)

    def _paced(self, hosted: HostedModel) -> float:
        """Simulated seconds since the pacer was rebased, counted in whole steps."""
        return (hosted.steps - self._base_step) * hosted.dt

    # -- failure -----------------------------------------------------------------------------

    def _record(self, error: BaseException) -> None:
        core = self._core
        if isinstance(error, DivergenceError):
            return  # the stepper has set the fault
        with core.lock.holding(Operation.RESUME):
            hosted = core.hosted
            if hosted is not None and core.fault is None:
                culprit = core.plugging.culprit_of(error)
                self._stepper.set_fault(hosted, fault_of(error, hosted, culprit))


def fault_of(
    error: BaseException, hosted: HostedModel, culprit: PluginFailure | None = None
) -> Fault:
    """The record of an exception that stopped the physics thread."""
    notes = getattr(error, "__notes__", [])
    detail = f" ({'; '.join(notes)})" if notes else ""
    kind, source = _blame(error, notes, culprit)
    plugin, hook = _culprit_names(error, culprit)
    return Fault(
        kind=kind,
        message=f"{type(error).__name__}: {error}{detail}",
        source=source,
        step=hosted.steps + 1,
        sim_time=hosted.data.time,
        error_type=f"{type(error).__module__}.{type(error).__qualname__}",
        traceback="".join(traceback.format_exception(error)),
        plugin=plugin,
        hook=hook,
    )


def _culprit_names(
    error: BaseException, culprit: PluginFailure | None
) -> tuple[str | None, str | None]:
    if culprit is not None:
        return culprit.name, culprit.phase
    if isinstance(error, EnginePluginError):
        return error.plugin, error.method
    return None, None


def _blame(
    error: BaseException, notes: list[str], culprit: PluginFailure | None
) -> tuple[FaultKind, str]:
    if culprit is not None:
        return FaultKind.HOOK, f"plugin {culprit.name!r}, {culprit.phase}"
    if isinstance(error, ForeignCallbackError):
        return FaultKind.CALLBACK, "another callback"
    if isinstance(error, EnginePluginError):
        return FaultKind.ENGINE_PLUGIN, f"engine plugin {error.plugin!r}, {error.method}"
    source = notes[0] if notes else "mjhost"
    if isinstance(error, (mujoco.FatalError, mujoco.UnexpectedError)):
        return FaultKind.ENGINE_ERROR, source
    return (FaultKind.TASK if "task" in source else FaultKind.CALLBACK), source
