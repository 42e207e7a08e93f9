"""Load, reload, reset and close: every change of what the env owns.

Owns: the order of these, and the way back from a failure in the middle.
Invariants: a model is compiled, checked and forwarded outside the lock while the old one goes on
running; under the lock it is swapped in, forwarded with no hook alive, and given its options. A
load that fails leaves model, data, options and time as they were; a swap that fails puts the old
pair back as a new ownership epoch. An env that had a model keeps one.
Threads: runs in the caller's thread; two loads never overlap (the phase machine admits one).
Failure: the error is raised and kept as ``load_error``.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Literal

import mujoco

from mjhost.callbacks import router
from mjhost.env.carrying import Initial, Start
from mjhost.env.events import Loaded, Reloaded, ResetDone
from mjhost.env.hosted import HostedModel
from mjhost.env.loading import ModelInput, ModelSource, compile_source
from mjhost.env.phases import Operation, Phase, PhaseEvent
from mjhost.env.records import LoadReport, ReloadReport, StepReason
from mjhost.env.reports import Installed, load_report, reload_report
from mjhost.env.transaction import edited_patch
from mjhost.errors import (
    EnvClosedError,
    InvalidArgumentError,
    MjhostError,
    ModelLoadError,
    NotLoadedError,
    StaleGenerationError,
    UnknownNameError,
    did_you_mean,
)
from mjhost.options import changed_fields

if TYPE_CHECKING:
    from mjhost.env.core import EnvCore
    from mjhost.env.manual import ManualSteps
    from mjhost.env.physics_thread import PhysicsThread
    from mjhost.env.stepping import Stepper
    from mjhost.env.transaction import OptionsTransaction
    from mjhost.options import RuntimeOptionsPatch
    from mjhost.state.carry import CarryReport
    from mjhost.state.joints import JointPlan

OptionsMode = Literal["model", "keep"]


class Lifecycle:
    """Changes what an env owns."""

    def __init__(
        self,
        core: EnvCore,
        stepper: Stepper,
        manual: ManualSteps,
        thread: PhysicsThread,
        options: OptionsTransaction,
    ) -> None:
        self._core = core
        self._stepper = stepper
        self._manual = manual
        self._thread = thread
        self._options = options
        self._close_mutex = threading.Lock()

    # -- load and reload ---------------------------------------------------------------------

    def load(
        self, source: ModelInput, options: OptionsMode, initial: Initial | None = None
    ) -> LoadReport:
        """Makes ``source`` the hosted model."""
        self._core.admit(Operation.LOAD)
        self._core.refuse_holding(Operation.LOAD)
        return self._load(self._source_of(source), options, initial)

    def _source_of(self, model: ModelInput) -> ModelSource:
        try:
            return ModelSource.of(model)
        except ModelLoadError as error:
            self._core.load_error = f"{type(error).__name__}: {error}"
            raise

    def reload(
        self,
        model: ModelInput | None,
        options: OptionsMode,
        *,
        keep_state: bool = False,
        initial: Initial | None = None,
    ) -> ReloadReport:
        """Compiles the present source again, or another one, and swaps it in."""
        core = self._core
        core.admit(Operation.RELOAD)
        core.refuse_holding(Operation.RELOAD)
        source = None if model is None else self._source_of(model)
        old = core.hosted
        if old is None:
            raise NotLoadedError("reload needs a model and none is loaded; call load(source)")
        source = source or old.source.origin or old.source
        return self._replace(old, source, options, initial, keep_state=keep_state)

    def take_over(self, source: ModelSource, edited: HostedModel) -> ReloadReport:
        """Swaps in an edit of ``edited``, with state and options kept."""
        self._core.admit(Operation.EDIT)
        self._core.refuse_holding(Operation.EDIT)
        return self._replace(edited, source, "keep", None, keep_state=True)

    def _replace(
        self,
        old: HostedModel,
        source: ModelSource,
        options: OptionsMode,
        initial: Initial | None,
        *,
        keep_state: bool,
    ) -> ReloadReport:
        report = self._load(
            source, options, initial, keep_state=keep_state, replaces=old if source.edits else None
        )
        return reload_report(report, old, old.source.edits if source.edits == 0 else 0)

    def _load(
        self,
        source: ModelSource,
        options: OptionsMode,
        initial: Initial | None,
        *,
        keep_state: bool = False,
        replaces: HostedModel | None = None,
    ) -> LoadReport:
        if options not in ("model", "keep"):
            raise InvalidArgumentError(f"options must be 'model' or 'keep', got {options!r}")
        core = self._core
        # The phase before the epoch; see OptionsTransaction.apply for the reader's side.
        core.machine.advance(PhaseEvent.LOAD)
        core.admission_epoch += 1
        try:
            if replaces is not None and core.hosted is not replaces:
                raise StaleGenerationError(
                    f"{source.label} was made of {replaces.generation!r}, which has been replaced "
                    "since; nothing of it was taken over: begin anew with the present model"
                )
            self._manual.cancel(StepReason.CANCELLED_BY_RELOAD)
            compiled = compile_source(source, guard=router.compile_guard())
            candidate = HostedModel(compiled, core.model_generation)
            start = Start(
                candidate,
                core.hosted if keep_state else None,
                core.initial if initial is None else initial,
                given=initial is not None,
            )
            installed = self._install(candidate, options, start)
        except BaseException as error:
            self._load_failed(error)
            raise
        core.waker.wake()
        return load_report(compiled, installed, start)

    def _load_failed(self, error: BaseException) -> None:
        core = self._core
        core.load_error = f"{type(error).__name__}: {error}"
        if core.machine.loading:
            failed = PhaseEvent.LOAD_FAILED if core.hosted is None else PhaseEvent.RELOAD_FAILED
            core.machine.advance(failed)
        with core.lock.holding(Operation.LOAD):
            self._stepper.grant_single_step()

    def _install(self, candidate: HostedModel, options: OptionsMode, start: Start) -> Installed:
        """Steps 3 to 7 of a reload: the only part that holds up stepping."""
        core = self._core
        with core.lock.holding(Operation.RELOAD):
            started = time.perf_counter()
            if not core.machine.loading:
                raise EnvClosedError("the env was closed while the model was being loaded")
            core.machine.advance(PhaseEvent.SWAP)
            old = core.hosted
            kept = edited_patch(old) if old is not None and options == "keep" else None
            try:
                core.plugging.detach()
                carried = self._swap_in(candidate, start)
                applied, problem = self._apply_options(candidate, kept)
                self._stepper.catch_up_schedule()
                plugins = core.plugging.attach(candidate)
            except BaseException as error:
                self._put_back(old, error)
                raise
            core.load_count += 1
            core.initial = start.standing
            core.load_error = problem
            core.fault = None
            # In the same scope: an interrupt cannot leave the phase behind.
            self._loaded(candidate, had_model=old is not None, kept_state=start.keeps_state)
            pause_s = time.perf_counter() - started
            return Installed(candidate, pause_s, applied, problem, plugins, carried)

    def _swap_in(self, candidate: HostedModel, start: Start) -> CarryReport | None:
        core = self._core
        core.single_step = None
        old = core.hosted
        before = old.data.time if old is not None else 0.0
        total = core.total_steps_locked()
        core.model_generation = core.model_generation.next()
        candidate.generation = core.model_generation
        if start.keeps_state:
            self._stepper.catch_up_schedule()
        report = start.apply(candidate, old)
        core.hosted = candidate
        core.steps_before = total - candidate.steps
        self._stepper.refresh(candidate)
        core.session.jump(before, candidate.data.time)
        if start.keeps_state:  # rates go on; whether the timestep does is known with the options
            core.pacing_stale = True
            self._stepper.forget_pace()
        else:
            self._stepper.anchor(candidate)
        return report

    def _apply_options(
        self, hosted: HostedModel, kept: RuntimeOptionsPatch | None
    ) -> tuple[tuple[str, ...], str | None]:
        if self._core.load_count == 0:
            return self._options.apply_pending_locked(hosted)
        if kept is None or not kept.names():
            return (), None
        return self._options.keep_locked(hosted, kept)

    def _put_back(self, old: HostedModel | None, error: BaseException) -> None:
        """The old pair becomes the env's again: a new ownership epoch with its state untouched."""
        core = self._core
        failed = core.hosted
        core.plugging.detach()
        core.model_generation = core.model_generation.next()
        if old is None:
            core.hosted = None
            return
        restored = old.again(core.model_generation)
        core.steps_before = core.total_steps_locked() - restored.steps
        core.session.jump(failed.data.time if failed else 0.0, restored.data.time)
        core.hosted = restored
        self._stepper.anchor(restored)
        try:
            core.plugging.attach(restored)
        except MjhostError as second:  # a callback of somebody else came in between
            error.add_note(f"the old model goes on without hooks: {second}")

    def _loaded(self, hosted: HostedModel, *, had_model: bool, kept_state: bool) -> None:
        core = self._core
        core.machine.advance(PhaseEvent.LOADED)
        core.hub.publish(
            Reloaded if had_model else Loaded,
            self._stepper.stamp(hosted),
            source=hosted.source.label,
            content_hash=hosted.compiled.content_hash,
            **({"kept_state": kept_state} if had_model else {}),
        )
        self._stepper.grant_single_step()

    # -- reset -------------------------------------------------------------------------------

    def reset(
        self, keyframe: str | int | None, *, model: bool, initial: Initial | None = None
    ) -> None:
        """Back to the defaults, or to a keyframe, completely."""
        core = self._core
        core.admit(Operation.RESET)
        with core.lock.holding(Operation.RESET):
            core.admit_locked(Operation.RESET)
            hosted = core.hosted
            assert hosted is not None, "admitted without a model"
            key = keyframe_id(hosted.model, keyframe)
            standing = core.initial if initial is None else initial
            start = standing.plan(hosted) if key is None or initial is not None else None
            self._manual.cancel(StepReason.CANCELLED_BY_RESET)
            core.plugging.reclaim()
            if model:
                self._restore_model(hosted)
            self._reset_data(hosted, key, start)
            core.initial = standing
            core.fault = None
            core.hub.publish(ResetDone, self._stepper.stamp(hosted), keyframe=keyframe, model=model)
            try:
                core.plugging.reset(hosted)
            finally:
                self._stepper.grant_single_step()

    def _restore_model(self, hosted: HostedModel) -> None:
        old = hosted.option_block.read()
        hosted.restore_model()
        new = hosted.option_block.read()
        changed = changed_fields(old, new)
        if changed:
            self._options.advance_epoch(hosted, old, new, changed)

    def _reset_data(self, hosted: HostedModel, key: int | None, start: JointPlan | None) -> None:
        core, model, data = self._core, hosted.model, hosted.data
        before = data.time
        core.session.at(before)
        # The engine leaves the state of plugins without a reset function as it is.
        data.plugin_state[:] = 0.0
        if hosted.wrenches.clear():
            core.plugging.wrenches_changed()
        try:
            if key is None:
                mujoco.mj_resetData(model, data)
            else:
                mujoco.mj_resetDataKeyframe(model, data, key)
            if start is not None:
                start.apply(data)
            self._stepper.refresh(hosted)
        finally:  # an interrupt comes after the engine's part: the counters have to follow it
            core.session.jump(before, data.time)
            core.steps_before += hosted.steps
            hosted.steps = 0
            self._stepper.anchor(hosted)

    # -- close -------------------------------------------------------------------------------

    def close(self) -> None:
        """Ends the env: cancels what waits, ends the thread, lets go of model and data."""
        core = self._core
        if core.machine.closed:
            return
        core.admit(Operation.CLOSE)
        core.refuse_holding(Operation.CLOSE)
        if not self._thread.is_current():
            with self._close_mutex:
                self._close_once()
        elif self._close_mutex.acquire(blocking=False):
            try:
                self._close_once()
            finally:
                self._close_mutex.release()
        # else: whoever closes waits for this very thread, which therefore must not wait for him.

    def _close_once(self) -> None:
        core = self._core
        if core.machine.closed:
            return
        if core.machine.phase is not Phase.CLOSING:  # else an interrupt ended an earlier attempt
            core.machine.advance(PhaseEvent.CLOSE)
        core.single_step = None
        self._manual.cancel(StepReason.CANCELLED_BY_CLOSE)
        self._thread.stop()
        with core.lock.holding(Operation.CLOSE):
            core.running = False
            core.steps_before = core.total_steps_locked()
            core.plugging.detach()
            core.hosted = None
            core.single_step = None
        core.soon.clear()
        core.machine.advance(PhaseEvent.CLOSED)
        # After the phase: whoever queues one later sees that the env is closed and ends it himself.
        self._manual.abandon_async(StepReason.CANCELLED_BY_CLOSE)
        core.hub.close()
        core.streams.close()


def keyframe_id(model: mujoco.MjModel, keyframe: str | int | None) -> int | None:
    """Index of a keyframe given by name or index, or an error that lists what exists."""
    if keyframe is None:
        return None
    if isinstance(keyframe, str):
        names = [model.key(i).name for i in range(model.nkey)]
        if keyframe in names and keyframe:
            return names.index(keyframe)
        near = did_you_mean(keyframe, [name for name in names if name])
        raise UnknownNameError(f"no keyframe is named {keyframe!r}; {near}")
    if type(keyframe) is not int:
        raise InvalidArgumentError(
            f"keyframe must be a name, an index or None, got {type(keyframe).__name__}"
        )
    if not 0 <= keyframe < model.nkey:
        raise UnknownNameError(
            f"no keyframe has index {keyframe}; the model has {model.nkey}, counted from 0"
        )
    return keyframe
