"""The contract of a ``PluginAdapter`` as tests to inherit from.

Owns: ``PluginAdapterContract``.
Use::

    class TestMyAdapter(PluginAdapterContract):
        def make_adapter(self):
            return MyAdapter(...)

Threads: one.
Not a goal: what the adapter computes.
"""

from __future__ import annotations

import math
from typing import Any

import mujoco

from mjhost.generation import ModelGeneration, PluginGeneration
from mjhost.plugins import HOOKS, PluginAdapter, PluginHost, PluginStatistics

_XML = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="pole" pos="0 0 1">
      <joint name="hinge" type="hinge" axis="0 1 0"/>
      <geom type="capsule" size="0.02" fromto="0 0 0 0.5 0 0"/>
    </body>
  </worldbody>
  <actuator><motor name="hinge" joint="hinge"/></actuator>
</mujoco>
"""


class PluginAdapterContract:
    """What the host may rely on; inherit, and give ``make_adapter``."""

    def make_adapter(self) -> PluginAdapter:
        """A fresh adapter, at every call another."""
        raise NotImplementedError

    def make_model(self) -> Any:
        """The model to load against; override for an adapter that needs a certain one."""
        return mujoco.MjModel.from_xml_string(_XML)

    def arguments(self, model: Any, data: Any) -> dict[str, tuple[Any, ...]]:
        """What each phase of a dispatch is called with."""
        step = (model, data)
        given: dict[str, tuple[Any, ...]] = dict.fromkeys(HOOKS, step)
        given |= {"render": (*step, mujoco.MjvScene(model, 100)), "geometry": (*step, 0)}
        return given | {"reset": (), "pause": (), "resume": ()}

    def test_name_and_type_are_text_before_load(self) -> None:
        """They are shown even if nothing else works."""
        adapter = self.make_adapter()
        assert isinstance(adapter.name, str)
        assert adapter.name
        assert isinstance(adapter.type, str)

    def test_statistics_work_before_load(self) -> None:
        """A failed adapter stays visible."""
        adapter = self.make_adapter()
        record = adapter.statistics()
        assert isinstance(record, PluginStatistics)
        assert (record.name, record.type) == (adapter.name, adapter.type)
        assert math.isnan(record.load_time)

    def test_close_works_before_load(self) -> None:
        """A generation may end, or its load fail, at any point."""
        adapter = self.make_adapter()
        adapter.close()
        assert adapter.backend_object() is None

    def test_load_is_measured(self) -> None:
        """``load_time`` is a duration once ``load`` ran."""
        adapter, model = self.make_adapter(), self.make_model()
        adapter.load(model, mujoco.MjData(model))
        try:
            assert adapter.statistics().load_time >= 0.0
        finally:
            adapter.close()

    def test_every_hook_survives_a_dispatch(self) -> None:
        """Every hook of a loaded adapter can be called, and is counted if it is measured."""
        model = self.make_model()
        data = mujoco.MjData(model)
        host, generation = self._loaded_host(model, data)
        try:
            for phase, arguments in self.arguments(model, data).items():
                host.dispatcher(phase, generation)(*arguments)
            hooks = host.statistics()[0].hooks
            assert all(timing.calls == 1 for timing in hooks.values())
        finally:
            host.quiesce_and_destroy()

    def test_nothing_is_left_after_the_generation_ended(self) -> None:
        """No failure in ``close``, no statistics, no backend object."""
        model = self.make_model()
        host, _ = self._loaded_host(model, mujoco.MjData(model))
        host.quiesce_and_destroy()
        assert host.diagnostics().total == 0
        assert host.statistics() == ()

    def _loaded_host(self, model: Any, data: Any) -> tuple[PluginHost, ModelGeneration]:
        host, generation = PluginHost(lambda: [self.make_adapter()]), ModelGeneration()
        report = host.load_generation(model, data, generation, PluginGeneration())
        assert report.ok, report.failures
        return host, generation
