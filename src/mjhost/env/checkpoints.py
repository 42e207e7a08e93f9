"""Checkpoints of a live simulation: taken and restored at a step boundary.

Owns: the order of both, and the way back from a restore that fails.
Invariants: a checkpoint shares nothing with the simulation. A restore validates everything before
it writes; then model, options, state, counters and plugins change as one, or none of them.
Threads: any; waits for the physics lock. Inside a step ``ReentrancyError``.
Failure: ``CheckpointError`` before anything is touched; what a plugin's ``load_state`` raises,
after which state, options and the plugins that already had theirs are as they were.
Not a goal: what a state consists of and how it is kept; ``mjhost.checkpoint`` knows.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import mujoco

import mjhost
from mjhost.checkpoint import Checkpoint, Counters, PluginState, StateLayout, trees
from mjhost.checkpoint.edits import EditWatch
from mjhost.checkpoint.identity import ModelIdentity, told
from mjhost.checkpoint.vector import INTEGRATION
from mjhost.env.events import CheckpointRestored, CheckpointTaken
from mjhost.env.phases import Operation
from mjhost.env.records import StepReason
from mjhost.errors import CheckpointError, LoadingWindowError, did_you_mean
from mjhost.layout import size_cell
from mjhost.options import changed_fields, validate_runtime_options
from mjhost.options import layout as option_layout
from mjhost.plugins import SavedPlugin
from mjhost.state.names import ObjectKind
from mjhost.state.wrenches import Wrenches, loaded

if TYPE_CHECKING:
    from mjhost.checkpoint.vector import Vector
    from mjhost.env.core import EnvCore
    from mjhost.env.hosted import HostedModel
    from mjhost.env.manual import ManualSteps
    from mjhost.env.stepping import Stepper
    from mjhost.env.transaction import OptionsTransaction
    from mjhost.options import RuntimeOptionsSnapshot


class Archive:
    """What taking and restoring need to know of one hosted model, found out once.

    Attributes:
        identity: of the model as it was compiled.
        layout: of its state vector.
        watch: finds what was edited since.
    """

    __slots__ = ("_stack", "identity", "layout", "watch")

    def __init__(self, hosted: HostedModel) -> None:
        compiled = hosted.compiled
        self.identity = ModelIdentity.of(hosted.pristine, compiled.label, compiled.content_hash)
        self.layout = StateLayout.of(hosted.model)
        self.watch = EditWatch(hosted.model, hosted.pristine)
        data = hosted.data
        self._stack = size_cell(data, "mjData", "pstack"), size_cell(data, "mjData", "pbase")

    def give_stack_back(self) -> None:
        """Lets go of frames that an exception left on the engine's stack."""
        for cell in self._stack:
            cell.value = 0


class Checkpoints:
    """Takes and restores the checkpoints of one env."""

    def __init__(
        self, core: EnvCore, stepper: Stepper, manual: ManualSteps, options: OptionsTransaction
    ) -> None:
        self._core = core
        self._stepper = stepper
        self._manual = manual
        self._options = options

    # -- taking ------------------------------------------------------------------------------

    def take(self) -> Checkpoint:
        """Everything the present boundary needs to be gone on from."""
        core = self._core
        core.admit(Operation.CHECKPOINT)
        with core.lock.holding(Operation.CHECKPOINT):
            core.admit_locked(Operation.CHECKPOINT)
            hosted = _hosted(core)
            try:
                plugins = tuple(map(_kept, core.plugging.host.snapshot()))
            except BaseException as error:
                core.plugging.tell_failure(hosted, error)
                raise
            checkpoint = self._taken(hosted, plugins)
            core.hub.publish(CheckpointTaken, self._stepper.stamp(hosted), exact=checkpoint.exact)
            return checkpoint

    def _taken(self, hosted: HostedModel, plugins: tuple[PluginState, ...]) -> Checkpoint:
        archive = archive_of(hosted)
        model, data = hosted.model, hosted.data
        self._stepper.catch_up_schedule()
        return Checkpoint(
            model=archive.identity,
            layout=archive.layout,
            state=archive.layout.read(model, data),
            option_bytes=hosted.option_block.raw(),
            edited_options=tuple(hosted.edited_options),
            edits=archive.watch.read(),
            counters=self._counters(hosted),
            plugins=plugins,
            wrenches=hosted.wrenches.save(hosted.steps),
            mjhost=mjhost.__version__,
            data=copy.copy(data) if hosted.state.strategy == "copy" else None,
        )

    def _counters(self, hosted: HostedModel) -> Counters:
        core = self._core
        return Counters(
            steps=hosted.steps,
            anchor_step=core.anchor_step,
            anchor_time=core.anchor_time,
            session_time=core.session_time_locked(),
            options_epoch=core.options_epoch.value,
            due=core.plugging.due_names(),
        )

    # -- restoring ---------------------------------------------------------------------------

    def restore(self, checkpoint: Checkpoint, *, allow_version: bool) -> None:
        """Goes back, or over, to ``checkpoint``."""
        if not isinstance(checkpoint, Checkpoint):
            raise CheckpointError(
                f"restore needs a Checkpoint, got {type(checkpoint).__name__}; "
                "Checkpoint.load(path) reads one from a file"
            )
        core = self._core
        formed_against = core.hosted
        core.admit(Operation.RESTORE)
        with core.lock.holding(Operation.RESTORE):
            core.admit_locked(Operation.RESTORE)
            hosted = _hosted(core)
            if hosted is not formed_against:
                raise LoadingWindowError(
                    "restore was asked for before a reload that has happened since; ask again if "
                    "the checkpoint is meant for the new model"
                )
            host = core.plugging.host
            if host.is_empty and self._is_only_state(hosted, checkpoint):
                self._go_back(hosted, checkpoint)
                return
            former = () if host.is_empty else host.snapshot()
            plan = _Plan(hosted, checkpoint, former, allow_version)
            if self._manual.busy:
                self._manual.cancel(StepReason.CANCELLED_BY_RESTORE)
            try:
                self._carry_out(hosted, plan)
            finally:
                if core.single_step is None:
                    self._stepper.grant_single_step()

    def _is_only_state(self, hosted: HostedModel, checkpoint: Checkpoint) -> bool:
        """Whether it was taken of this very model, and nothing but the state has to be put back."""
        archive = hosted.archive
        return (
            archive is not None
            and checkpoint.model is archive.identity
            and archive.layout.is_checked(checkpoint.state)
            and checkpoint.data is None
            and not (checkpoint.edits or checkpoint.plugins or checkpoint.wrenches)
            and not (hosted.wrenches or self._manual.busy or hosted.model.nplugin)
            and checkpoint.option_bytes == hosted.option_block.raw()
            and archive.watch.sees_none
        )

    def _go_back(self, hosted: HostedModel, checkpoint: Checkpoint) -> None:
        """The usual restore, of which there are many in a search: what it costs is the forward."""
        core, counters, state = self._core, checkpoint.counters, hosted.state
        state.save()
        archive_of(hosted).give_stack_back()
        before = hosted.data.time
        try:
            mujoco.mj_setState(hosted.model, hosted.data, checkpoint.state, INTEGRATION)
            self._stepper.refresh(hosted)
        except BaseException as error:
            self._stepper.undo_call(hosted, error)
            raise
        hosted.edited_options = set(checkpoint.edited_options)
        self._count_from(hosted, counters, before)
        core.fault = None
        core.hub.publish(
            CheckpointRestored, self._stepper.stamp(hosted), source=checkpoint.model.label
        )
        if core.single_step is None:
            self._stepper.grant_single_step()

    def _carry_out(self, hosted: HostedModel, plan: _Plan) -> None:
        core, checkpoint = self._core, plan.checkpoint
        former = _Former(hosted, self._counters(hosted))
        try:
            if former.edits or checkpoint.edits:
                archive_of(hosted).watch.write(checkpoint.edits)
            if plan.options is not None or checkpoint.option_bytes != former.option_bytes:
                self._set_options(hosted, checkpoint.option_bytes, plan.options)
            hosted.edited_options = set(checkpoint.edited_options)
            self._set_wrenches(hosted, plan.wrenches)
            self._move(hosted, checkpoint.counters, lambda: self._set_state(hosted, plan))
            if plan.plugins:
                core.plugging.host.put_back(plan.plugins)
        except BaseException as error:
            self._undo(hosted, former, plan, error)
            raise
        core.fault = None
        core.hub.publish(
            CheckpointRestored, self._stepper.stamp(hosted), source=checkpoint.model.label
        )

    def _undo(
        self, hosted: HostedModel, former: _Former, plan: _Plan, error: BaseException
    ) -> None:
        core = self._core
        core.plugging.tell_failure(hosted, error)
        archive_of(hosted).watch.write(former.edits)
        self._set_options(hosted, former.option_bytes, None)
        hosted.edited_options = former.edited_options
        self._set_wrenches(hosted, former.wrenches)
        self._move(hosted, former.counters, former.state.restore)
        hosted.options_changed()
        self._stepper.refresh(hosted)
        with contextlib.suppress(Exception):  # recorded by the host; the first error is the one
            core.plugging.host.put_back(plan.former)

    def _set_wrenches(self, hosted: HostedModel, wrenches: Wrenches) -> None:
        if wrenches or hosted.wrenches:
            hosted.wrenches = wrenches
            self._core.plugging.wrenches_changed()

    def _set_options(
        self, hosted: HostedModel, raw: bytes, foreign: RuntimeOptionsSnapshot | None
    ) -> None:
        """Makes the live options those bytes, or a snapshot of another engine version's."""
        old = hosted.option_block.read()
        if foreign is None:
            hosted.option_block.restore(raw)
        else:
            hosted.option_block.write(foreign)
        hosted.options_changed()
        self._core.plugging.rebundle()
        new = hosted.option_block.read()
        changed = changed_fields(old, new)
        if changed:
            self._options.advance_epoch(hosted, old, new, changed)

    def _set_state(self, hosted: HostedModel, plan: _Plan) -> None:
        if plan.checkpoint.data is not None:  # complete, and more exact than a forward makes it
            mujoco.mj_copyData(hosted.data, hosted.model, plan.checkpoint.data)
            hosted.warnings.clear()
            return
        archive_of(hosted).give_stack_back()
        mujoco.mj_setState(hosted.model, hosted.data, plan.state, INTEGRATION)
        self._stepper.refresh(hosted)
        if hosted.model.nplugin:  # one that breaks the rules moves its state in a forward
            mujoco.mj_setState(hosted.model, hosted.data, plan.state, INTEGRATION)

    def _move(self, hosted: HostedModel, counters: Counters, write: Callable[[], None]) -> None:
        """Writes a state and puts the counters to it; session time and total of steps go on."""
        before = hosted.data.time
        try:
            write()
        finally:  # an interrupt comes after the engine's part: the counters have to follow it
            self._count_from(hosted, counters, before)

    def _count_from(self, hosted: HostedModel, counters: Counters, before: float) -> None:
        """Puts the counters to the state, which was at the time ``before``."""
        core, now = self._core, hosted.data.time
        core.session.jump(before, now, counters.session_time)
        core.steps_before += hosted.steps - counters.steps
        hosted.steps = counters.steps
        hosted.repeats = 0
        core.anchor_step = counters.anchor_step
        core.anchor_time = counters.anchor_time
        core.pacing_stale = True
        self._stepper.forget_pace()
        steps = counters.steps - counters.anchor_step
        core.plugging.place_schedule(hosted.dt, steps, counters.due)


class _Former:
    """What a restore that fails goes back to."""

    __slots__ = ("counters", "edited_options", "edits", "option_bytes", "state", "wrenches")

    def __init__(self, hosted: HostedModel, counters: Counters) -> None:
        self.edits = archive_of(hosted).watch.read()
        self.option_bytes = hosted.option_block.raw()
        self.edited_options = hosted.edited_options
        self.counters = counters
        self.wrenches = hosted.wrenches
        self.state = hosted.state
        self.state.save()


class _Plan:
    """A restore that is known to be possible.

    Attributes:
        checkpoint: what is restored.
        state: its vector in the layout of the model.
        options: its options if its own bytes mean nothing to this engine.
        wrenches: what is applied from then on.
        plugins: what the plugins get.
        former: what they have now.
    """

    def __init__(
        self,
        hosted: HostedModel,
        checkpoint: Checkpoint,
        former: tuple[SavedPlugin, ...],
        allow_version: bool,  # noqa: FBT001 - private
    ) -> None:
        archive = archive_of(hosted)
        self.checkpoint = checkpoint
        self.options: RuntimeOptionsSnapshot | None = None
        self.former = former
        check_model(checkpoint, archive.identity, allow_version=allow_version)
        if checkpoint.option_values is not None:
            self.options = checkpoint.options
        elif checkpoint.option_bytes != hosted.option_block.raw():
            validate_runtime_options(_decoded(checkpoint.option_bytes), touched=())
        self.state = self._state(hosted, archive)
        problem = archive.watch.problem(checkpoint.edits) if checkpoint.edits else None
        if problem is not None:
            raise CheckpointError(f"the edits in the checkpoint do not fit: {problem}")
        self.wrenches = _wrenches(hosted, checkpoint)
        self.plugins = _matched(checkpoint.plugins, former) if checkpoint.plugins else ()

    def _state(self, hosted: HostedModel, archive: Archive) -> Vector:
        given = self.checkpoint
        if given.data is not None and not _is_of_sizes(hosted, given.data):
            raise CheckpointError("the copy of the data in the checkpoint is of another model")
        if given.layout is archive.layout or given.layout == archive.layout:
            return archive.layout.checked(given.state)
        fresh = archive.layout.read(hosted.model, mujoco.MjData(hosted.model))
        given.layout.checked(given.state)
        return archive.layout.checked(archive.layout.adapted(given.state, given.layout, fresh))


def check_model(checkpoint: Checkpoint, present: ModelIdentity, *, allow_version: bool) -> None:
    """Raises ``CheckpointError`` unless the checkpoint is of the present model."""
    its = checkpoint.model
    if its is present:
        return
    if its.engine != present.engine:
        if not allow_version:
            raise CheckpointError(
                f"the checkpoint was taken with MuJoCo {its.engine} and this is {present.engine}: "
                "what follows would not be the same to the bit; allow_version=True restores it "
                "nevertheless"
            )
        if its.is_like(present):
            return
    elif its.is_same(present):
        return
    differences = told(present.differences(its))
    raise CheckpointError(
        f"the checkpoint is of another model ({its.label}) than the one that is loaded "
        f"({present.label}): {differences}"
    )


def _matched(
    saved: Iterable[PluginState], present: tuple[SavedPlugin, ...]
) -> tuple[SavedPlugin, ...]:
    """What each plugin gets; a plugin that took part and does not work here is an error."""
    here = {plugin.name: plugin for plugin in present}
    given = []
    for plugin in saved:
        mine = here.get(plugin.name)
        if mine is None:
            near = did_you_mean(plugin.name, list(here))
            raise CheckpointError(
                f"plugin {plugin.name!r} ({plugin.type}) was part of the simulation in the "
                f"checkpoint and is not loaded, or failed to; {near}"
            )
        if _class_of(mine.type) != _class_of(plugin.type):
            raise CheckpointError(
                f"plugin {plugin.name!r} is {plugin.type} in the checkpoint, the one that is "
                f"loaded is {mine.type}"
            )
        if plugin.saved and not mine.saved:
            raise CheckpointError(
                f"the checkpoint has the state of plugin {plugin.name!r} ({plugin.type}), the one "
                "that is loaded is without load_state"
            )
        state = trees.thawed(plugin.state, f"plugin {plugin.name!r}")
        given.append(SavedPlugin(mine.name, mine.type, state, plugin.saved, plugin.exact))
    return tuple(given)


def _class_of(type_: str) -> str:
    """The class in a plugin's type; how its module was found differs between processes."""
    return type_.rpartition(":")[2].rpartition(".")[2]


def _decoded(raw: bytes) -> RuntimeOptionsSnapshot:
    if len(raw) != option_layout.SIZE:
        raise CheckpointError("the options of the checkpoint are not those of this engine")
    return option_layout.decode(raw)


def archive_of(hosted: HostedModel) -> Archive:
    """The archive of a hosted model, made when it is first asked for."""
    archive = hosted.archive
    if archive is None:
        archive = hosted.archive = Archive(hosted)
    return archive


def _wrenches(hosted: HostedModel, checkpoint: Checkpoint) -> Wrenches:
    if not checkpoint.wrenches:
        return Wrenches()
    bodies = dict(hosted.names.selected(ObjectKind.BODY, None))
    try:
        wrenches, missing = loaded(checkpoint.wrenches, bodies, checkpoint.counters.steps)
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
        raise CheckpointError(f"the wrenches of the checkpoint are none: {error!r}") from error
    if missing:
        raise CheckpointError(
            f"the checkpoint has wrenches on bodies that are not there: {missing}"
        )
    return wrenches


def _kept(plugin: SavedPlugin) -> PluginState:
    state = trees.frozen(plugin.state, f"save_state of plugin {plugin.name!r}")
    return PluginState(plugin.name, plugin.type, state, plugin.saved, plugin.exact)


def _hosted(core: EnvCore) -> HostedModel:
    hosted = core.hosted
    assert hosted is not None, "admitted without a model"
    return hosted


def _is_of_sizes(hosted: HostedModel, data: mujoco.MjData) -> bool:
    live = hosted.data
    return all(
        getattr(live, name).shape == getattr(data, name).shape
        for name in (
            "qpos",
            "qvel",
            "act",
            "ctrl",
            "sensordata",
            "xpos",
            "plugin_state",
            "eq_active",
        )
    )
