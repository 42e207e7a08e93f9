"""Adapters and plugins that write down what happens to them."""

from __future__ import annotations

import math

from mjhost.generation import ModelGeneration, PluginGeneration
from mjhost.plugins import HOOKS, Plugin, PluginAdapter, PluginFactory, PluginHost, PluginStatistics

HOOK_METHODS = {phase: method for phase, (method, _) in HOOKS.items()}


class Boom(Exception):
    """What probes raise."""


class ProbeAdapter(PluginAdapter):
    """A hand-made adapter: logs every call, raises where it is told to."""

    def __init__(self, name="probe", log=None, fail=(), error=Boom):
        self._name = name
        self.log = [] if log is None else log
        self.fail = set(fail)
        self.error = error

    def _did(self, what):
        self.log.append((self._name, what))
        if what in self.fail:
            raise self.error(f"{what} of {self._name}")

    @property
    def name(self):
        return self._name

    @property
    def type(self):
        return "tests:Probe"

    def load(self, model, data):
        self._did("load")

    def activate(self):
        self._did("activate")

    def pre_step(self, model, data):
        self._did("pre_step")

    def control(self, model, data):
        self._did("control")

    def passive(self, model, data):
        self._did("passive")

    def last_stage(self, model, data):
        self._did("last_stage")

    def post_step(self, model, data):
        self._did("post_step")

    def render(self, model, data, scene):
        self._did("render")

    def reset(self):
        self._did("reset")

    def geometry_changed(self, model, data, geom_id):
        self._did(("geometry", geom_id))

    def on_pause(self):
        self._did("pause")

    def on_resume(self):
        self._did("resume")

    def statistics(self):
        self._did("statistics")
        return PluginStatistics(name=self._name, type="tests:Probe", load_time=math.nan)

    def backend_object(self):
        return self

    def close(self):
        self._did("close")


class Generations:
    """A host with its counters: ``load`` counts up."""

    def __init__(self, factory, model, data):
        self.host = PluginHost(factory)
        self.model, self.data = model, data
        self.model_generation = ModelGeneration()
        self.plugin_generation = PluginGeneration()

    def load(self, *, new_model=True, **options):
        if new_model:
            self.model_generation = self.model_generation.next()
        self.plugin_generation = self.plugin_generation.next()
        return self.host.load_generation(
            self.model, self.data, self.model_generation, self.plugin_generation, **options
        )

    def dispatch(self, phase):
        """Dispatch one of the phases without further arguments."""
        name = "reset" if phase == "reset" else f"dispatch_{phase}"
        args = () if phase == "reset" else (self.model, self.data)
        getattr(self.host, name)(*args, model_generation=self.model_generation)


def host_of(model, data, *plugins):
    """A loaded host of Plugin classes, instances or records."""
    generations = Generations(PluginFactory(plugins), model, data)
    report = generations.load()
    assert report.ok, report.failures
    return generations


class Everything(Plugin):
    """Overrides every hook and writes its names into a list."""

    def __init__(self, log):
        super().__init__()
        self.log = log

    def control(self, model, data):
        self.log.append("control")

    def passive(self, model, data):
        self.log.append("passive")

    def last_stage(self, model, data):
        self.log.append("last_stage")

    def pre_step(self, model, data):
        self.log.append("pre_step")

    def post_step(self, model, data):
        self.log.append("post_step")

    def render(self, model, data, scene):
        self.log.append("render")

    def reset(self):
        self.log.append("reset")

    def geometry_changed(self, model, data, geom_id):
        self.log.append(("geometry", geom_id))

    def on_pause(self):
        self.log.append("pause")

    def on_resume(self):
        self.log.append("resume")
