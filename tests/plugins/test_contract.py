from __future__ import annotations

from mjhost.plugins import Plugin, PluginFactory
from mjhost.testing.plugin_contract import PluginAdapterContract
from tests.plugins.probes import Everything


class Idle(Plugin):
    """Overrides nothing."""


class TestAdapterOfAPluginWithEveryHook(PluginAdapterContract):
    def make_adapter(self):
        (adapter,) = PluginFactory(Everything([]))()
        return adapter


class TestAdapterOfAPluginWithoutHooks(PluginAdapterContract):
    def make_adapter(self):
        (adapter,) = PluginFactory(Idle)()
        return adapter
