"""The one interface that the host sees, and the adapter that puts a ``Plugin`` behind it.

Owns: ``PluginAdapter``; ``PluginHookAdapter``, which builds a plugin, measures it and knows which
hooks it overrides.
Invariants: an adapter serves one generation and is never used again. Its plugin object is built by
``load``, never before, and let go by ``close``.
Threads: called under the plugin-host lock only.
Failure: whatever a method raises is the host's to record; ``close`` works after any of them.
Not a goal: finding and configuring plugins; factories do that.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from time import perf_counter
from typing import Any

from mjhost.errors import PluginConfigError, PluginLoadError
from mjhost.plugins.hooks import (
    HOOKS,
    RATED_PHASES,
    STEP_PHASES,
    BoundHook,
    HookFunction,
    HookSite,
    Report,
    guarded,
    measured,
    measured_any,
    overridden,
    signature_problem,
)
from mjhost.plugins.plugin import Plugin, keeps_state
from mjhost.plugins.statistics import PluginStatistics
from mjhost.streams import PluginStreams


class PluginAdapter(ABC):
    """What the host loads, calls and closes.

    Hooks that a subclass does not override are never called. ``model`` and ``data`` are live and
    valid for the running call only.
    """

    _mjhost_used = False  # set by the host that took it; an adapter serves one generation

    @property
    @abstractmethod
    def name(self) -> str:
        """Unique in its generation."""

    @property
    @abstractmethod
    def type(self) -> str:
        """What it is, for people and for carrying state over."""

    @property
    def rate_hz(self) -> float | None:
        """Rate of ``pre_step`` and ``post_step`` (Hz, simulation time); None: every step."""
        return None

    def connect(self, streams: PluginStreams) -> None:
        """Where to publish and to take commands; called before ``load``."""

    @abstractmethod
    def load(self, model: Any, data: Any) -> None:
        """Get ready; raise to fail."""

    def activate(self) -> None:
        """Hooks run from now on."""

    def pre_step(self, model: Any, data: Any) -> None:
        """Before the engine step."""

    def control(self, model: Any, data: Any) -> None:
        """Inside ``mjcb_control``."""

    def passive(self, model: Any, data: Any) -> None:
        """Inside ``mjcb_passive``."""

    def last_stage(self, model: Any, data: Any) -> None:
        """After the engine step."""

    def post_step(self, model: Any, data: Any) -> None:
        """After every adapter's ``last_stage``."""

    def render(self, model: Any, data: Any, scene: Any) -> None:
        """A snapshot for pictures is taken."""

    def reset(self) -> None:
        """The state was reset."""

    def geometry_changed(self, model: Any, data: Any, geom_id: int) -> None:
        """A geom was changed through the env."""

    def on_pause(self) -> None:
        """The simulation was paused."""

    def on_resume(self) -> None:
        """The simulation goes on."""

    @property
    def carries_state(self) -> bool:
        """Whether ``save_state`` and ``load_state`` mean something."""
        return overridden(self, PluginAdapter, "save_state") and overridden(
            self, PluginAdapter, "load_state"
        )

    @property
    def keeps_state(self) -> bool:
        """Whether the past of the simulation may be kept in it."""
        return True

    def save_state(self) -> Any:
        """What the next generation should know; called only if ``carries_state``."""
        raise NotImplementedError

    def load_state(self, state: Any) -> None:
        """Take what ``save_state`` of the generation before returned."""
        raise NotImplementedError

    @abstractmethod
    def statistics(self) -> PluginStatistics:
        """What was measured so far."""

    def backend_object(self) -> object | None:
        """The object behind the adapter, for scoped access."""
        return None

    def close(self) -> None:
        """The generation ends; also called if ``load`` raised."""

    def bind(self, phase: str, site: HookSite, report: Report) -> BoundHook | None:
        """The hook of ``phase`` as the host calls it, or None if it is not overridden."""
        method = HOOKS[phase][0]
        if not overridden(self, PluginAdapter, method):
            return None
        return guarded(getattr(self, method), site, report)


class PluginHookAdapter(PluginAdapter):
    """The adapter of a ``Plugin``.

    Args:
        name: the plugin's unique name.
        type_: where it came from.
        build: makes the plugin object; called by ``load``.
        rate_hz: replaces the plugin's own rate if not None.
    """

    def __init__(
        self, name: str, type_: str, build: Callable[[], Plugin], rate_hz: float | None = None
    ) -> None:
        self._name = name
        self._type = type_
        self._build = build
        self._rate_hz = rate_hz
        self._plugin: Plugin | None = None
        self._streams: PluginStreams | None = None
        self._bound: dict[str, BoundHook] = {}
        self._load_time = math.nan
        self._reset_time = math.nan

    @property
    def name(self) -> str:
        """The plugin's unique name."""
        return self._name

    @property
    def type(self) -> str:
        """``module:Class`` or ``path.py:Class``."""
        return self._type

    @property
    def rate_hz(self) -> float | None:
        """Rate of ``pre_step`` and ``post_step``, None for every step."""
        return self._rate_hz

    @property
    def plugin(self) -> Plugin:
        """The plugin object.

        Raises:
            PluginLoadError: it was not built, or the generation has ended.
        """
        if self._plugin is None:
            raise PluginLoadError(f"plugin {self._name!r} ({self._type}) is not loaded")
        return self._plugin

    def connect(self, streams: PluginStreams) -> None:
        """Keep them for the plugin."""
        self._streams = streams

    def load(self, model: Any, data: Any) -> None:
        """Build the plugin, check its hooks, run its ``load``."""
        started = perf_counter()
        try:
            self._plugin = plugin = self._build()
            plugin.name = self._name
            if self._streams is not None:
                plugin.streams = self._streams
            self._rate_hz = self._checked_rate(plugin)
            _check_hooks(plugin, self._name)
            plugin.load(model, data)
        finally:
            self._load_time = perf_counter() - started
        plugin._mjhost_skip.clear()

    def activate(self) -> None:
        """Run the plugin's ``activate``."""
        self.plugin.activate()

    def reset(self) -> None:
        """Run the plugin's ``reset``."""
        started = perf_counter()
        try:
            self.plugin.reset()
        finally:
            self._reset_time = perf_counter() - started

    @property
    def carries_state(self) -> bool:
        """Whether the plugin overrides both halves."""
        plugin = self._plugin
        return plugin is not None and all(
            overridden(plugin, Plugin, half) for half in ("save_state", "load_state")
        )

    @property
    def keeps_state(self) -> bool:
        """Whether the plugin has attributes of its own and does not say that it is stateless."""
        return self._plugin is not None and keeps_state(self._plugin)

    def save_state(self) -> Any:
        """The plugin's ``save_state``."""
        return self.plugin.save_state()

    def load_state(self, state: Any) -> None:
        """The plugin's ``load_state``."""
        self.plugin.load_state(state)

    def statistics(self) -> PluginStatistics:
        """Everything measured so far."""
        hooks = {
            HOOKS[phase][0]: bound.timing()
            for phase, bound in self._bound.items()
            if bound.timing is not None
        }
        return PluginStatistics(
            name=self._name,
            type=self._type,
            rate_hz=self._rate_hz,
            load_time=self._load_time,
            reset_time=self._reset_time,
            hooks=hooks,
        )

    def backend_object(self) -> object | None:
        """The plugin object, None before ``load`` and after ``close``."""
        return self._plugin

    def close(self) -> None:
        """Run the plugin's ``close`` and let it go."""
        plugin, self._plugin = self._plugin, None
        self._bound.clear()
        if plugin is not None:
            plugin.close()

    def bind(self, phase: str, site: HookSite, report: Report) -> BoundHook | None:
        """The plugin's own method with its measuring, or None if it is not overridden."""
        method = HOOKS[phase][0]
        plugin = self.plugin
        if not overridden(plugin, Plugin, method):
            return None
        bind = measured if phase in STEP_PHASES else measured_any
        # reset is measured like a hook and once more as reset_time, by this adapter's method.
        hook: HookFunction = self.reset if phase == "reset" else getattr(plugin, method)
        self._bound[phase] = bound = bind(hook, site, report, plugin._mjhost_skip)
        return bound

    def _checked_rate(self, plugin: Plugin) -> float | None:
        rate = plugin.rate_hz if self._rate_hz is None else self._rate_hz
        if rate is None:
            return None
        where = f"plugin {self._name!r}"
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < math.inf:
            raise PluginConfigError(where, [f"rate_hz must be a finite number > 0, got {rate!r}"])
        if not any(overridden(plugin, Plugin, phase) for phase in RATED_PHASES):
            problem = (
                "rate_hz sets the rate of pre_step and post_step, and "
                f"{type(plugin).__qualname__} overrides neither; override one or leave it out"
            )
            raise PluginConfigError(where, [problem])
        return float(rate)


def _check_hooks(plugin: Plugin, name: str) -> None:
    """Find hooks that could only fail, before the first step rather than in it."""
    for method, arguments in HOOKS.values():
        if overridden(plugin, Plugin, method):
            problem = signature_problem(getattr(plugin, method), arguments)
            if problem is not None:
                raise PluginLoadError(f"hook {method} of plugin {name!r} {problem}")
