"""The part of ``MujocoEnv`` that is about hooks, and the engine calls in which they fire.

Invariants: as for ``MujocoEnv``; a face has no state of its own.
Threads: every method may be called from any thread, unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco

from mjhost.callbacks import Callbacks, Entry
from mjhost.env.events import PluginsReloaded
from mjhost.env.face_reading import ReadingFace
from mjhost.env.phases import Operation
from mjhost.env.plugging import Plugging
from mjhost.env.stepping import adopt_this_thread
from mjhost.env.streaming import send
from mjhost.plugins import (
    PluginDiagnostics,
    PluginHandle,
    PluginLoadReport,
    PluginSource,
    PluginStatistics,
)
from mjhost.streams import Record, StreamHub


class PluginFace(ReadingFace):
    """Plugins, callbacks, and what they take part in."""

    _plugging: Plugging

    # -- plugins -----------------------------------------------------------------------------

    @property
    def plugins(self) -> tuple[PluginHandle, ...]:
        """A handle per plugin, failed ones too, in the order of the configuration.

        A handle is good until plugins or model are reloaded; using it later raises
        ``StaleGenerationError``. ``with handle.access() as plugin:`` holds up stepping.
        """
        self._core.admit(Operation.INFO)
        return self._plugging.host.handles(self._admit_handle)

    def _admit_handle(self, _asked: str) -> None:
        self._core.admit(Operation.SCOPED_ACCESS)

    @property
    def plugin_statistics(self) -> tuple[PluginStatistics, ...]:
        """Timings and state of every plugin, failed ones too."""
        self._core.admit(Operation.INFO)
        return self._plugging.host.statistics()

    @property
    def plugin_diagnostics(self) -> PluginDiagnostics:
        """What plugins raised since the newest load began, bounded, by phase."""
        self._core.admit(Operation.INFO)
        return self._plugging.host.diagnostics()

    @property
    def plugin_load_report(self) -> PluginLoadReport | None:
        """What became of the plugins at the newest load or reload; ``None`` before the first."""
        self._core.admit(Operation.INFO)
        return self._plugging.host.load_report

    @property
    def plugin_files(self) -> tuple[Path, ...]:
        """The plugin lists and plugin sources whose change ``reload_plugins`` would pick up."""
        self._core.admit(Operation.INFO)
        return self._plugging.files

    def reload_plugins(self, config: PluginSource | None = None) -> PluginLoadReport:
        """Replaces the plugins at a step boundary; model, data, time and options stay.

        Files are read and modules executed anew before anything is touched. State is carried by
        ``save_state`` and ``load_state`` where both sides have it.

        Args:
            config: another list of plugins; ``None`` for the present one.

        Raises:
            PluginLoadError: a plugin cannot be imported or configured; the old ones go on.
            LoadingWindowError: a model is being loaded.
        """
        core = self._core
        core.admit(Operation.RELOAD_PLUGINS)
        core.refuse_holding(Operation.RELOAD_PLUGINS)
        factory = self._plugging.refreshed(config)
        with core.lock.holding(Operation.RELOAD_PLUGINS):
            core.admit_locked(Operation.RELOAD_PLUGINS)
            hosted = self._hosted("reload_plugins")
            report = self._plugging.reload(hosted, factory)
            core.hub.publish(
                PluginsReloaded,
                self._stepper.stamp(hosted),
                plugin_generation=report.plugin_generation.value,
                ready=report.ready,
                failed=tuple(failure.name for failure in report.failures),
            )
            self._stepper.grant_single_step()
            return report

    # -- streams -----------------------------------------------------------------------------

    @property
    def streams(self) -> StreamHub:
        """What plugins publish: ``streams.subscribe(name)``, ``streams.streams()`` for the list."""
        return self._core.streams

    def send(self, name: str, record: Record) -> Any:
        """Hands a command to the plugin that takes commands of that name, between two steps.

        Args:
            name: of the inlet, see ``streams.streams()``.
            record: of the type that the inlet takes, from ``mjhost.streams.records``.

        Returns:
            What the plugin answers.

        Raises:
            UnknownNameError: nothing takes commands of that name.
            InvalidArgumentError: the record is of another type, or the plugin refuses it.
            Exception: whatever else the plugin raises; the state is what it was.
        """
        return send(self._core, name, record)

    @property
    def callbacks(self) -> Callbacks:
        """Engine callbacks of this env alone: ``callbacks.add(kind, fn) -> token``."""
        self._core.admit(Operation.INFO)
        return self._plugging.callbacks

    # -- the engine with hooks ---------------------------------------------------------------

    def forward(self) -> None:
        """Recomputes everything derived from the present state (``mj_forward``); time stays.

        Hooks fire; if one raises, the data are as they were.
        """
        self._with_hooks(Operation.FORWARD, Entry.FORWARD, mujoco.mj_forward)

    def inverse(self) -> None:
        """Computes inverse dynamics of the present state (``mj_inverse``) into ``qfrc_inverse``.

        Hooks fire; if one raises, the data are as they were.
        """
        self._with_hooks(Operation.INVERSE, Entry.INVERSE, mujoco.mj_inverse)

    def _with_hooks(
        self,
        operation: Operation,
        entry: Entry,
        call: Callable[[mujoco.MjModel, mujoco.MjData], None],
    ) -> None:
        core = self._core
        core.admit(operation)
        with core.lock.holding(operation):
            core.admit_locked(operation)
            adopt_this_thread()
            self._plugging.call_engine(self._hosted(operation), entry, call)
