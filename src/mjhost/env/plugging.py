"""Plugins and callbacks of one env: attached to a pair, detached from it, reloaded.

Owns: the plugin host (the env is its only caller), the user's callbacks, the route of the present
pair, and the tasks of plugins with a rate.
Invariants: between ``detach`` and ``attach`` no hook can fire. A hook that nobody overrides is not
installed anywhere. A failing plugin is recorded, told and visible; it stops no other.
Threads: everything but reading is called under the physics lock, at a step boundary.
Failure: ``attach`` raises only what installing a callback may raise; single plugins fail in their
report.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from mjhost.callbacks import Callbacks, Entry, GuardedHook, Route, router
from mjhost.env.events import PluginFailed
from mjhost.env.extensions import interrupts_kept, raise_failure
from mjhost.env.hooks import ModelCall, StepHooks, raise_parked
from mjhost.env.schedule import Task
from mjhost.env.wrenching import HIDDEN_FROM, acting, hidden, wrenched
from mjhost.errors import ForeignCallbackError
from mjhost.plugins import HookSite, PluginFailure, PluginHost, PluginLoadReport, RateTask

if TYPE_CHECKING:
    from pathlib import Path

    import mujoco

    from mjhost.env.core import EnvCore
    from mjhost.env.hosted import HostedModel
    from mjhost.env.stepping import Stepper
    from mjhost.plugins import AdapterFactory, PluginFactory, PluginSource

_ENGINE_PHASES = ("control", "passive")


class Plugging:
    """Everything of an env that runs inside a step and is not the engine."""

    def __init__(self, core: EnvCore, stepper: Stepper, factory: PluginFactory) -> None:
        self._core = core
        self._stepper = stepper
        self._factory = factory
        self.host = PluginHost(factory, streams=core.streams)
        self.callbacks = Callbacks(self._callbacks_changed, guard=self.host.lock)
        self._route: Route | None = None
        self._tasks: list[Task] = []
        self._pre_calls: dict[str, ModelCall] = {}  # those of pre_step with a rate, by name
        self._due_pre: list[ModelCall] = []
        core.plugging = self

    # -- the life of a pair ------------------------------------------------------------------

    def detach(self) -> None:
        """Ends the plugin generation and unhooks the pair; nothing fires from here on."""
        core = self._core
        core.hooks = None
        core.single_step = None
        self._drop_tasks()
        self.host.quiesce_and_destroy()
        for phase in _ENGINE_PHASES:
            self.callbacks.plug(phase, None)
        self.callbacks.unbind()
        route, self._route = self._route, None
        if route is not None:
            route.detach()

    def attach(
        self,
        hosted: HostedModel,
        *,
        factory: AdapterFactory | None = None,
        carry_state: bool = False,
    ) -> PluginLoadReport:
        """Hooks the pair and loads a new generation of plugins for it."""
        if self._route is None:
            route = router.attach(hosted.model, hosted.data)
            try:
                self.callbacks.bind(route)
            except BaseException:
                route.detach()
                raise
            self._route = route
        return self._load(hosted, factory, carry_state=carry_state)

    @property
    def files(self) -> tuple[Path, ...]:
        """What the plugins were read from, as far as it is known."""
        return self._factory.watched_files

    def refreshed(self, plugins: PluginSource | None) -> PluginFactory:
        """A factory whose files and modules were read anew; outside the lock."""
        return self._factory.refreshed(plugins)

    def reload(self, hosted: HostedModel, factory: PluginFactory) -> PluginLoadReport:
        """Replaces the plugins of the present pair; state is carried where both sides have it.

        If a hook of the new ones cannot be installed, the old ones are loaded again.
        """
        before, self._factory = self._factory, factory
        self._unplug()
        try:
            return self._load(hosted, factory, carry_state=True)
        except ForeignCallbackError as error:
            self._factory = before
            self._load_again(hosted, error)
            raise

    def _load_again(self, hosted: HostedModel, error: ForeignCallbackError) -> None:
        self._unplug()
        try:
            self._load(hosted, self._factory, carry_state=True)
        except ForeignCallbackError as second:
            self._unplug()
            error.add_note(f"the old plugins go on without their engine callbacks: {second}")

    def _unplug(self) -> None:
        """No hook of a plugin fires from here on; the callbacks of the user stay."""
        core = self._core
        core.hooks = None
        core.single_step = None
        self._drop_tasks()
        for phase in _ENGINE_PHASES:
            self.callbacks.plug(phase, None)
        self.callbacks.settle()

    def _load(
        self, hosted: HostedModel, factory: AdapterFactory | None, *, carry_state: bool
    ) -> PluginLoadReport:
        core = self._core
        core.plugin_generation = core.plugin_generation.next()
        report = self.host.load_generation(
            hosted.model,
            hosted.data,
            hosted.generation,
            core.plugin_generation,
            factory=factory,
            carry_state=carry_state,
        )
        self._plug(hosted)
        self._tell_failures(hosted, report)
        return report

    # -- hooks -------------------------------------------------------------------------------

    def _plug(self, hosted: HostedModel) -> None:
        phases = self.host.active_phases()
        for phase in _ENGINE_PHASES:
            hook = self._engine_hook(phase, hosted) if phase in phases else None
            self.callbacks.plug(phase, hook)
        self._due_pre = []
        for task in self.host.rate_tasks():
            self._add_task(task)
        self._hide_wrenches(hosted)
        self.callbacks.settle()
        self._bundle(hosted)

    def _engine_hook(self, phase: str, hosted: HostedModel) -> GuardedHook:
        """The plugins' hook of an engine callback.

        In a step the host lock is held and the quick way is right; a forward that a user makes
        himself takes the lock and has its generation checked.
        """
        checked = partial(
            getattr(self.host, f"dispatch_{phase}"), model_generation=hosted.generation
        )
        return GuardedHook(self.host.dispatcher(phase, hosted.generation), checked)

    def _bundle(self, hosted: HostedModel) -> None:
        """Makes ``core.hooks`` anew from what is plugged in now."""
        core, route = self._core, self._route
        core.hooks_stale = False
        core.single_step = None
        if route is None:
            core.hooks = None
            return
        phases = self.host.active_phases()
        calls = {
            name: self.host.dispatcher(phase, hosted.generation) if phase in phases else None
            for name, phase in (("pre", "pre_step"), ("last", "last_stage"), ("post", "post_step"))
        }
        if hosted.wrenches:
            calls["pre"], calls["last"] = acting(
                hosted, calls["pre"], calls["last"], self._callbacks_changed
            )
        hooks = StepHooks(self.host.lock, route, due_pre=self._due_pre, **calls)
        if not hooks.every_step and not self._tasks:
            core.hooks = None
            return
        core.hooks = hooks

    def rebundle(self) -> None:
        """Binds the hooks again: the pair's roll-back has changed."""
        hosted = self._core.hosted
        if hosted is not None and self._core.hooks is not None:
            self._bundle(hosted)

    def settle(self) -> None:
        """Lets what was added to or removed from the callbacks take effect; at a boundary."""
        hosted = self._core.hosted
        self._core.hooks_stale = False
        if hosted is not None:
            self._hide_wrenches(hosted)
        self.callbacks.settle()
        if hosted is not None:
            self._bundle(hosted)

    def reclaim(self) -> None:
        """Installs hooks again that somebody wrote over, in front of his."""
        if self._route is not None and self._route.hooked:
            router.reclaim()

    def _hide_wrenches(self, hosted: HostedModel) -> None:
        around = hidden(hosted.wrenches) if hosted.wrenches else None
        self.callbacks.surround(HIDDEN_FROM, around)

    def wrenches_changed(self) -> None:
        """Wrenches were applied or ended, which takes effect at the next boundary."""
        self._callbacks_changed()

    def _callbacks_changed(self) -> None:
        self._core.hooks_stale = True
        self._core.single_step = None
        self._core.attention = True

    @property
    def is_hooked(self) -> bool:
        """Whether any callback of the pair is installed with the engine."""
        return self._route is not None and bool(self._route.hooked)

    def muted(self) -> contextlib.AbstractContextManager[None]:
        """No hook of the pair fires inside: for refreshes that are nobody's business."""
        return contextlib.nullcontext() if self._route is None else self._route.muted()

    # -- the engine outside of steps ---------------------------------------------------------

    def call_engine(
        self,
        hosted: HostedModel,
        entry: Entry,
        call: Callable[[mujoco.MjModel, mujoco.MjData], None],
    ) -> None:
        """One call of the engine on the pair in which hooks fire; undone if one raises."""
        core = self._core
        if core.hooks_stale:
            self.settle()
        hosted.state.save()
        qacc = hosted.data.qacc.copy()  # no part of the state, but what mj_inverse is asked about
        try:
            with interrupts_kept(hosted), self._hooks_in_place(entry), wrenched(hosted):
                call(hosted.model, hosted.data)
            raise_failure(hosted.data)
        except BaseException as error:
            if self._route is not None:
                self._route.take()
            self._stepper.undo_call(hosted, error)
            hosted.data.qacc[:] = qacc
            self.tell_failure(hosted, error)
            raise

    @contextlib.contextmanager
    def _hooks_in_place(self, entry: Entry) -> Iterator[None]:
        hooks, route = self._core.hooks, self._route
        if hooks is None or route is None:
            yield
            return
        with hooks.scope(), route.entered(entry):
            yield
            raise_parked(route)

    @contextlib.contextmanager
    def in_task(self, hosted: HostedModel) -> Iterator[None]:
        """What ``call_context`` says to a task of the step just taken."""
        route = self._route
        if route is None:
            yield
            return
        with route.stepping(Entry.STEP):
            route.retry = hosted.repeats == hosted.steps
            try:
                yield
            finally:
                route.retry = False

    def undone(self, hosted: HostedModel) -> None:
        """A task has undone the step that had just been taken: it will be taken again."""
        hosted.repeats = hosted.steps + 1
        if self._route is not None:
            self._route.retry = True
        if self._core.hooks is not None:
            self._due_pre[:] = self._core.hooks.taken_pre

    # -- tasks of plugins with a rate --------------------------------------------------------

    def _add_task(self, rated: RateTask) -> None:
        core, due_pre, lock = self._core, self._due_pre, self.host.lock

        def call_later(_model: mujoco.MjModel, _data: mujoco.MjData) -> None:
            due_pre.append(rated.call)

        def call_now(model: mujoco.MjModel, data: mujoco.MjData) -> None:
            with lock:
                rated.call(model, data)

        later = rated.site.phase == "pre_step"
        self._stepper.catch_up_schedule()
        call = call_later if later else call_now
        name = str(rated.site)
        self._tasks.append(core.schedule.add(rated.rate_hz, call, name))
        if later:
            self._pre_calls[name] = rated.call

    def _drop_tasks(self) -> None:
        if self._tasks:
            self._stepper.catch_up_schedule()
        for task in self._tasks:
            self._core.schedule.remove(task)
        self._tasks.clear()
        self._pre_calls.clear()

    def due_names(self) -> tuple[str, ...]:
        """Names of the calls that were due at this boundary and belong to the next step."""
        due = self._due_pre
        return tuple(n for n, call in self._pre_calls.items() if call in due) if due else ()

    def place_schedule(self, dt: float, k: int, due: Collection[str]) -> None:
        """Puts every rate ``k`` steps after the anchor, where a checkpoint was taken.

        Args:
            dt: the timestep, s sim.
            k: steps since the anchor.
            due: what ``due_names`` said there; those come before the next step.
        """
        if due or self._due_pre:
            self._due_pre[:] = [call for name, call in self._pre_calls.items() if name in due]
        if self._route is not None:
            self._route.retry = False
        self._core.schedule.place(dt, k)

    # -- telling -----------------------------------------------------------------------------

    def reset(self, hosted: HostedModel) -> None:
        """Tells every plugin that the state was reset; the first error is raised afterwards."""
        if self._route is not None:
            self._route.retry = False
        hosted.repeats = 0
        self._due_pre.clear()
        self._notify(hosted, self.host.reset)

    def geometry_changed(self, hosted: HostedModel, geom: int) -> None:
        """Tells every plugin that a geom is another; the first error is raised afterwards."""

        def notify(**generation: Any) -> None:
            self.host.notify_geometry_changed(hosted.model, hosted.data, geom, **generation)

        self._notify(hosted, notify)

    def notify_pause(self, hosted: HostedModel) -> None:
        """Tells every plugin; the first error is raised afterwards."""
        self._notify(hosted, self.host.notify_pause)

    def notify_resume(self, hosted: HostedModel) -> None:
        """Tells every plugin; the first error is raised afterwards."""
        self._notify(hosted, self.host.notify_resume)

    def _notify(self, hosted: HostedModel, notify: Callable[..., None]) -> None:
        try:
            notify(model_generation=hosted.generation)
        except BaseException as error:
            self.tell_failure(hosted, error)
            raise

    def tell_failure(self, hosted: HostedModel, error: BaseException) -> None:
        """Publishes what a plugin raised, if ``error`` is that."""
        core = self._core
        core.culprit = self.host.take_last_failure()
        failure = self.culprit_of(error)
        if failure is not None:
            core.hub.publish(
                PluginFailed,
                self._stepper.stamp(hosted),
                plugin=failure.name,
                hook=failure.phase,
                message=failure.error,
                plugin_generation=core.plugin_generation.value,
            )

    def culprit_of(self, error: BaseException) -> PluginFailure | None:
        """The plugin that raised ``error``: the host has noted on it which one that was."""
        failure = self._core.culprit
        if failure is None:
            return None
        site = HookSite(failure.name, failure.type, failure.phase)
        return failure if f"raised in {site}" in getattr(error, "__notes__", ()) else None

    def _tell_failures(self, hosted: HostedModel, report: PluginLoadReport) -> None:
        core = self._core
        for failure in report.failures:
            core.hub.publish(
                PluginFailed,
                self._stepper.stamp(hosted),
                plugin=failure.name,
                hook=failure.phase,
                message=failure.error,
                plugin_generation=report.plugin_generation.value,
            )
