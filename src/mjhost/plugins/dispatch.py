"""The dispatching half of the host: who is called, for which generation, in which order.

Owns: the one active set, the lock it is read under, the ways that lead to its hooks.
Invariants: no active set → silence; another generation → ``StaleGenerationError``; else the ready
adapters in order. The active set changes under the lock only, by the other half.
Threads: every dispatch holds the lock; ``dispatcher`` results rely on a caller who holds it.
Failure: what an adapter raises goes on to the caller; the hook's own frame has reported it.
Not a goal: loading and destroying sets; see ``mjhost.plugins.host``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from mjhost.errors import StaleGenerationError
from mjhost.generation import ModelGeneration, PluginGeneration
from mjhost.locking import OrderedLock
from mjhost.plugins.hooks import HookSite
from mjhost.plugins.loading import ActiveSet, RateTask


class Dispatch:
    """Dispatch under a lock; ``PluginHost`` is the one subclass."""

    def __init__(self, lock: OrderedLock) -> None:
        self.lock = lock
        self._active: ActiveSet | None = None

    def dispatch_pre_step(
        self, model: Any, data: Any, *, model_generation: ModelGeneration | None = None
    ) -> None:
        """Call ``pre_step`` of the ready adapters that have no ``rate_hz``."""
        self._dispatch("pre_step", model_generation, model, data)

    def dispatch_control(
        self, model: Any, data: Any, *, model_generation: ModelGeneration | None = None
    ) -> None:
        """Call ``control`` of the ready adapters.

        Every dispatch returns silently while no generation is active.

        Args:
            model: handed on.
            data: handed on.
            model_generation: what the call was issued for; None (tests only) is not checked.

        Raises:
            StaleGenerationError: another model generation is active; nobody was called.
            BaseException: what an adapter raised, recorded; the later ones were not called.
        """
        self._dispatch("control", model_generation, model, data)

    def dispatch_passive(
        self, model: Any, data: Any, *, model_generation: ModelGeneration | None = None
    ) -> None:
        """Call ``passive`` of the ready adapters."""
        self._dispatch("passive", model_generation, model, data)

    def dispatch_last_stage(
        self, model: Any, data: Any, *, model_generation: ModelGeneration | None = None
    ) -> None:
        """Call ``last_stage`` of the ready adapters."""
        self._dispatch("last_stage", model_generation, model, data)

    def dispatch_post_step(
        self, model: Any, data: Any, *, model_generation: ModelGeneration | None = None
    ) -> None:
        """Call ``post_step`` of the ready adapters that have no ``rate_hz``."""
        self._dispatch("post_step", model_generation, model, data)

    def dispatch_render(
        self, model: Any, data: Any, scene: Any, *, model_generation: ModelGeneration | None = None
    ) -> None:
        """Call ``render`` of the ready adapters."""
        self._dispatch("render", model_generation, model, data, scene)

    def notify_geometry_changed(
        self,
        model: Any,
        data: Any,
        geom_id: int,
        *,
        model_generation: ModelGeneration | None = None,
    ) -> None:
        """Call ``geometry_changed`` of the ready adapters."""
        self._dispatch("geometry", model_generation, model, data, geom_id)

    def reset(self, *, model_generation: ModelGeneration | None = None) -> None:
        """Call ``reset`` of every ready adapter; the first error is raised when all were called."""
        self._dispatch_to_all("reset", model_generation)

    def notify_pause(self, *, model_generation: ModelGeneration | None = None) -> None:
        """Call ``on_pause`` of every ready adapter; the first error is raised afterwards."""
        self._dispatch_to_all("pause", model_generation)

    def notify_resume(self, *, model_generation: ModelGeneration | None = None) -> None:
        """Call ``on_resume`` of every ready adapter; the first error is raised afterwards."""
        self._dispatch_to_all("resume", model_generation)

    # The hot path.

    def step_scope(self) -> OrderedLock:
        """What a stepping thread holds for a whole step: ``with host.step_scope(): …``.

        It is the host lock. ``dispatch_*`` inside it re-enter; ``dispatcher`` results need it.
        """
        return self.lock

    def active_phases(self) -> frozenset[str]:
        """The phases in which a dispatch would reach somebody; empty while nothing is active.

        ``pre_step`` and ``post_step`` that run at a rate are not in it; see ``rate_tasks``.
        """
        with self.lock:
            active = self._active
            phases = () if active is None else active.phases.items()
            return frozenset(phase for phase, calls in phases if calls.bound)

    def dispatcher(self, phase: str, model_generation: ModelGeneration) -> Callable[..., object]:
        """The function that calls the ready adapters of a phase, ``(model, data)`` for a step's.

        Contract: to be called with the host lock held (``step_scope``). Ask for a new one after
        every load; an old one stays right, but goes the slow, checked way.

        Raises:
            StaleGenerationError: another model generation is active.
        """
        with self.lock:
            active = self._checked(model_generation)
            if active is None:
                return partial(self._dispatch, phase, model_generation)
            return active.phases[phase].dispatcher

    def hook_seconds(self) -> float:
        """Wall seconds that the hooks of the active set have taken so far."""
        active = self._active
        if active is None:
            return 0.0
        bound = [hook for calls in active.phases.values() for hook in calls.bound]
        bound += [hook for _, hook in active.rated]
        return sum(hook.total() for hook in bound if hook.total is not None)

    def rate_tasks(self) -> tuple[RateTask, ...]:
        """``pre_step`` and ``post_step`` hooks of plugins with ``rate_hz``, for the env's schedule.

        The env calls each, with the host lock held, at the boundaries of its rate: ``post_step``
        ones after the last ``post_step`` of the step that reaches the boundary, ``pre_step`` ones
        before the ``pre_step`` of the step that follows it. They end with their generation: a call
        after it is silent while nothing is active and raises ``StaleGenerationError`` otherwise.
        """
        with self.lock:
            return () if self._active is None else tuple(task for task, _ in self._active.rated)

    # Inside.

    def _retire(self, active: ActiveSet) -> None:
        for phase, calls in active.phases.items():
            calls.retire(partial(self._dispatch, phase, active.model_generation))
        for task, bound in active.rated:
            bound.retire(partial(self._outlived, task.site, active.plugin_generation))

    def _outlived(self, site: HookSite, generation: PluginGeneration, *_: Any) -> None:
        with self.lock:
            if self._active is not None:
                refuse_stale(f"the rate task of {site}", generation, self._active.plugin_generation)

    def _dispatch(self, phase: str, model_generation: ModelGeneration | None, *args: Any) -> None:
        with self.lock:
            active = self._checked(model_generation)
            if active is not None:
                for call in active.phases[phase].calls:
                    call(*args)

    def _dispatch_to_all(self, phase: str, model_generation: ModelGeneration | None) -> None:
        with self.lock:
            active = self._checked(model_generation)
            if active is None:
                return
            first: BaseException | None = None
            for call in active.phases[phase].calls:
                try:
                    call()
                except BaseException as error:  # noqa: BLE001 - raised below, when all had their turn
                    first = _graver(first, error)
            if first is not None:
                try:
                    raise first
                finally:
                    del first  # its traceback holds this frame: a cycle that would keep the plugin

    def _checked(self, model_generation: ModelGeneration | None) -> ActiveSet | None:
        """The active set, None without one; raises if it is not of ``model_generation``."""
        active = self._active
        if active is None or model_generation is None:
            return active
        current = active.model_generation
        if model_generation is not current and model_generation != current:
            refuse_stale("a dispatch", model_generation, current)
        return active


def refuse_stale(what: str, given: Any, current: Any) -> NoReturn:
    """Say which generation was given and which is active.

    Raises:
        StaleGenerationError: always.
    """
    kind = "plugin" if isinstance(current, PluginGeneration) else "model"
    raise StaleGenerationError(
        f"{what} is for {kind} generation {given.value}, "
        f"but {kind} generation {current.value} is active"
    )


def _graver(first: BaseException | None, error: BaseException) -> BaseException:
    """The one to raise: the first, unless a later one is an interrupt."""
    if first is None or isinstance(error, KeyboardInterrupt):
        return error
    return first
