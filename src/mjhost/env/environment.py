"""The one owner of a simulation.

Owns: ``MjModel`` and ``MjData``, the phase, stepping, load, reload and reset, the locks, and the
order in which everything else is told.
Invariants: every operation is admitted by phase and thread before anything is touched; one that
raises has changed nothing, unless its docstring says what.
Threads: every method may be called from any thread. From inside a step (a task of ``every``) those
that step, write or wait raise ``ReentrancyError``; see ``docs/concurrency.md``.
Failure: typed errors of ``mjhost.errors``; what stops the physics thread becomes ``env.fault``.
Not a goal: how options are validated, how a model is compiled, how a client is served.
"""

from __future__ import annotations

import os
import threading
import weakref
from types import TracebackType
from typing import Literal, Self

from mjhost.env import engine_log, forks
from mjhost.env.access_control import AccessControl
from mjhost.env.carrying import InitialState, checked_initial, given_initial
from mjhost.env.checkpoints import Checkpoints
from mjhost.env.core import EnvCore
from mjhost.env.edits import Edit
from mjhost.env.face_analysis import AnalysisFace
from mjhost.env.face_checkpoints import CheckpointFace
from mjhost.env.face_plugins import PluginFace
from mjhost.env.face_properties import PropertiesFace
from mjhost.env.face_state import StateFace
from mjhost.env.face_stepping import SteppingFace
from mjhost.env.lifecycle import Lifecycle, OptionsMode
from mjhost.env.loading import ModelInput
from mjhost.env.manual import ManualSteps
from mjhost.env.physics_thread import PhysicsThread
from mjhost.env.plugging import Plugging
from mjhost.env.records import (
    LoadReport,
    ReloadReport,
)
from mjhost.env.state_access import StateAccess
from mjhost.env.stepping import Stepper
from mjhost.env.transaction import OptionsTransaction
from mjhost.errors import InvalidArgumentError, LockOrderError, ReentrancyError
from mjhost.options import OptionsResult, PatchInputs, RuntimeOptionsSnapshot
from mjhost.plugins import PluginFactory, PluginSource
from mjhost.state.initial import OnError


class MujocoEnv(SteppingFace, PluginFace, AnalysisFace, StateFace, PropertiesFace, CheckpointFace):
    """Hosts one MuJoCo simulation.

    Args:
        model: what to load at once: a path (MJCF, MJB, mjz, URDF), MJCF text, an ``MjSpec`` or an
            ``MjModel`` (both are copied), or ``None`` to load later.
        plugins: what runs inside each step: ``Plugin`` classes or instances, ``module:Class`` text,
            paths, records, or an iterable of them; see ``mjhost.Plugin``.
        options: startup options, as for ``set_pending_runtime_options``.
        initial_state: where joints start, at each load and reset without a keyframe: by joint its
            numbers (free 7: xyz and wxyz, ball 4: wxyz, others 1), or a mapping with ``qpos`` and
            ``qvel`` (free 6, ball 3, others 1).
        realtime: target real-time factor of the physics thread; ``None``, 0 or infinity: unbound.
        running: whether the physics thread starts stepping at once.
        divergence: ``"fault"`` stops the simulation at the state before a step that diverges;
            ``"engine"`` leaves the engine's automatic reset alone, but counts and reports it.
        eval_token: turns on the evaluation mode, see ``authorize``: the token, or the path of a
            file that holds it. ``None``: the variable ``MJHOST_EVAL_TOKEN``, if set.
        time_slice_s: longest time the physics thread keeps the lock while somebody waits, s wall.
        busywait: spin instead of sleeping until the next step is due; one core for less jitter.

    Raises:
        ModelLoadError: the model cannot be hosted. The env is closed.
        OptionsRejected: an option that no model could accept. The env is closed.
        InvalidArgumentError: any other argument that cannot be right.

    Example:
        >>> with MujocoEnv("<mujoco><worldbody/></mujoco>") as env:
        ...     env.step(10).completed
        10
    """

    def __init__(
        self,
        model: ModelInput | None = None,
        *,
        plugins: PluginSource = (),
        options: PatchInputs | None = None,
        initial_state: InitialState | None = None,
        realtime: float | None = 1.0,
        running: bool = False,
        divergence: Literal["fault", "engine"] = "fault",
        eval_token: str | os.PathLike[str] | None = None,
        time_slice_s: float = 0.01,
        busywait: bool = False,
    ) -> None:
        core = EnvCore(
            realtime=realtime,
            divergence_is_fault=_checked_divergence(divergence),
            slice_s=_checked_slice(time_slice_s),
            busywait=busywait,
            access_control=AccessControl(eval_token),
        )
        self._core = core
        self._stepper = Stepper(core)
        self._manual = ManualSteps(core, self._stepper)
        self._thread = PhysicsThread(core, self._stepper, self._manual)
        self._options = OptionsTransaction(core, self._stepper)
        self._access = StateAccess(core, self._stepper)
        self._checkpoints = Checkpoints(core, self._stepper, self._manual, self._options)
        self._plugging = Plugging(core, self._stepper, PluginFactory(plugins))
        self._lifecycle = Lifecycle(core, self._stepper, self._manual, self._thread, self._options)
        engine_log.acquire()
        forks.register(core)
        # An env that is dropped without close() must not leave its thread behind. At interpreter
        # exit the thread ends by itself (see PhysicsThread), so nothing runs there.
        self._finalizer = weakref.finalize(self, _close_dropped, self._lifecycle)
        self._finalizer.atexit = False
        try:
            if options is not None:
                self.set_pending_runtime_options(options)
            core.initial = checked_initial(initial_state)
            if model is not None:
                self.load(model)
            if running:
                self.resume()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        hosted = self._core.hosted
        label = hosted.source.label if hosted else "no model"
        return f"<MujocoEnv {label}, {self._core.machine.phase}>"

    # -- lifecycle ---------------------------------------------------------------------------

    def load(
        self,
        source: ModelInput,
        *,
        initial_state: InitialState | None = None,
        on_error: OnError = "raise",
    ) -> LoadReport:
        """Hosts ``source``; a model that is there is replaced as by ``reload(source)``.

        Args:
            source: what to load.
            initial_state: joint states to start from, from now on; ``None`` for those in force.
            on_error: ``"warn"`` leaves out initial states that cannot be; the report lists them.

        Raises:
            UnknownNameError, InvalidArgumentError: an initial state cannot be; nothing changed.
            ModelLoadError: it cannot be hosted; the env is as it was, ``info.load_error`` says why.
            LoadingWindowError: another load is in progress.
        """
        initial = given_initial(initial_state, on_error)
        return self._lifecycle.load(source, "model", initial)

    def reload(
        self,
        source: ModelInput | None = None,
        *,
        keep_state: bool = False,
        options: OptionsMode = "model",
        initial_state: InitialState | None = None,
        on_error: OnError = "raise",
    ) -> ReloadReport:
        """Compiles the present source again, or ``source``, and swaps it in at a step boundary.

        The simulation goes on while the model is compiled, and is paused afterwards only if it was
        before. Time and counters start at zero, ``session_time`` goes on; with ``keep_state`` all
        of them go on.

        Args:
            source: what to load instead of the present source, which files are read again.
            keep_state: carry positions, velocities, activations, controls, mocap poses, applied
                forces, active equalities and wrenches over, by name; ``report.carried`` lists what
                was carried and what was not. Initial states in force then only apply to joints that
                are new; those given here to all they name.
            options: ``"model"`` takes the model's own options; ``"keep"`` applies the values that
                transactions changed since the load, as far as the new model accepts them.
            initial_state: joint states to start from, from now on; ``None`` for those in force.
            on_error: ``"warn"`` leaves out initial states that cannot be; the report lists them.

        Raises:
            UnknownNameError, InvalidArgumentError: an initial state cannot be; nothing changed.
            ModelLoadError: it cannot be hosted; the old model goes on as if nothing had happened.
            LoadingWindowError: another load is in progress.
            NotLoadedError: there is no model to replace.
        """
        initial = given_initial(initial_state, on_error)
        return self._lifecycle.reload(source, options, keep_state=keep_state, initial=initial)

    def edit(self) -> Edit:
        """A scope in which the model's spec may be changed, while the simulation goes on.

        ::

            with env.edit() as spec:
                spec.worldbody.add_body(name="crate", pos=(0, 0, 1)).add_freejoint()

        When the scope ends the spec is compiled and swapped in as by ``reload(keep_state=True,
        options="keep")``; ``report`` of the scope says what became of the state. After an
        exception in it, or if the spec does not compile, everything is as it was. ``reload()``
        without a source reads what was loaded, without the edits; its report counts them.

        Raises:
            ModelLoadError: on entry: the model has no spec (MJB, ``MjModel``); at the end: the edit
                does not compile.
            StaleGenerationError: at the end: another model was loaded meanwhile.
            LoadingWindowError: a load is in progress.
        """
        return Edit(self._core, self._lifecycle)

    def reset(
        self,
        keyframe: str | int | None = None,
        *,
        model: bool = False,
        initial_state: InitialState | None = None,
    ) -> None:
        """Puts the simulation back to its defaults or a keyframe, completely; clears a fault.

        Time, positions, velocities, activations, controls, mocap poses, applied forces, active
        equalities, user data, plugin state, warm start and history all restart, and so do the step
        count and every rate. Whether it is paused stays as it is; ``session_time`` goes on.

        Args:
            keyframe: name or index of a keyframe of the model, or ``None`` for its defaults.
            model: also undo every change of the model (options, masses, ...) since the load.
            initial_state: joint states to start from, from now on; ``None`` for those in force,
                which a keyframe takes the place of.

        Raises:
            InvalidArgumentError: an initial state cannot be; nothing changed.
            UnknownNameError: no such keyframe; nothing changed.
        """
        initial = given_initial(initial_state, "raise")
        self._lifecycle.reset(keyframe, model=model, initial=initial)

    def close(self) -> None:
        """Ends the thread and lets go of model and data; a load in progress is cancelled.

        May be called again. Every other call then raises ``EnvClosedError``.
        """
        self._lifecycle.close()
        if self._finalizer.detach() is not None:
            engine_log.release()

    # -- options -----------------------------------------------------------------------------

    @property
    def runtime_options(self) -> RuntimeOptionsSnapshot:
        """The options the next step will use, read from the live model."""
        return self._options.read()

    def apply_runtime_options(
        self, patch: PatchInputs, *, raise_on_error: bool = True
    ) -> OptionsResult:
        """Changes options at a step boundary, all of them or none.

        Args:
            patch: a ``RuntimeOptionsPatch``, a mapping of names to values, or an iterable of
                ``RuntimeOptionInput``.
            raise_on_error: raise what is wrong, or return it in the result.

        Raises:
            OptionsRejected: at least one problem; ``.errors`` lists all of them, nothing changed.
            LoadingWindowError: a load is in progress, or one happened while this call waited.
        """
        return self._options.apply(patch, raise_on_error=raise_on_error)

    def set_pending_runtime_options(self, patch: PatchInputs) -> None:
        """Keeps ``patch`` for the first load; a second call replaces the first.

        Raises:
            OptionsRejected: no model could accept it.
            PhaseError: there is or was a model, or one is being loaded.
        """
        self._options.set_pending(patch)


def _close_dropped(lifecycle: Lifecycle) -> None:
    """Closes an env that was collected; the collector may run anywhere, inside a hook too."""
    try:
        lifecycle.close()
    except (LockOrderError, ReentrancyError):
        threading.Thread(target=lifecycle.close, name="mjhost-close", daemon=False).start()
    engine_log.release()


def _checked_divergence(divergence: str) -> bool:
    if divergence not in ("fault", "engine"):
        raise InvalidArgumentError(f"divergence must be 'fault' or 'engine', got {divergence!r}")
    return divergence == "fault"


def _checked_slice(time_slice_s: float) -> float:
    number = isinstance(time_slice_s, (int, float)) and not isinstance(time_slice_s, bool)
    if not number or not 1e-4 <= time_slice_s <= 1.0:
        raise InvalidArgumentError(
            f"time_slice_s must lie between 0.0001 and 1 s, got {time_slice_s!r}"
        )
    return float(time_slice_s)
