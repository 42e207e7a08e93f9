"""Plugins: what users subclass, how it is found, and the host that loads and calls it.

``Plugin`` is for authors, ``PluginFactory`` turns ``plugins=`` into adapters, ``PluginHost`` owns
one generation of them at a time. Only the env calls a ``PluginHost``.
"""

from __future__ import annotations

from mjhost.plugins.access import ACCESS_SCOPE, PluginHandle, ScopedPluginAccess
from mjhost.plugins.adapter import PluginAdapter, PluginHookAdapter
from mjhost.plugins.diagnostics import (
    PhaseDiagnostics,
    PluginDiagnostics,
    PluginFailure,
    PluginLoadFailure,
)
from mjhost.plugins.factories import PluginFactory, PluginSource
from mjhost.plugins.hooks import HOOKS, STEP_PHASES, HookSite, active_hook
from mjhost.plugins.host import PluginHost
from mjhost.plugins.loading import AdapterFactory, PluginLoadReport, RateTask, SavedPlugin
from mjhost.plugins.plugin import Plugin
from mjhost.plugins.statistics import HookTiming, PluginStatistics

__all__ = [
    "ACCESS_SCOPE",
    "HOOKS",
    "STEP_PHASES",
    "AdapterFactory",
    "HookSite",
    "HookTiming",
    "PhaseDiagnostics",
    "Plugin",
    "PluginAdapter",
    "PluginDiagnostics",
    "PluginFactory",
    "PluginFailure",
    "PluginHandle",
    "PluginHookAdapter",
    "PluginHost",
    "PluginLoadFailure",
    "PluginLoadReport",
    "PluginSource",
    "PluginStatistics",
    "RateTask",
    "SavedPlugin",
    "ScopedPluginAccess",
    "active_hook",
]
