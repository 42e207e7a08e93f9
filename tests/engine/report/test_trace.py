"""The way of a model's plugins: what is measured is what the rule says."""

from __future__ import annotations

import functools
import itertools
import os

import mujoco
import numpy as np
import pytest

from mjhost import engine
from mjhost.engine import failures
from mjhost.engine.abi.symbols import engine as functions
from mjhost.engine.trace import expected, trace

_NUMBERS = itertools.count()
MODEL = """
<mujoco>
  <option {option}><flag {flags}/></option>
  <extension>
    <plugin plugin="{name}"><instance name="mine"><config key="gain" value="3"/></instance></plugin>
    <plugin plugin="mujoco.pid">
      <instance name="theirs"><config key="kp" value="2"/></instance>
    </plugin>
  </extension>
  <worldbody>
    {flex}
    <body name="b"><joint name="j"/><geom size=".1"/><plugin instance="mine"/></body>
  </worldbody>
  <actuator>
    <plugin name="a" joint="j" instance="mine" actdim="1"/>
    <plugin joint="j" instance="theirs"/>
  </actuator>
  <sensor><plugin name="s" instance="mine"/></sensor>
</mujoco>
"""
ALL = ("actuator", "sensor", "passive")


def declare(compiled=False, *, raises=False):
    name = f"test.trace{os.getpid()}x{next(_NUMBERS)}"

    @engine.plugin(name, capabilities=ALL, compiled=compiled)
    class Mine:
        gain: float = 1.0
        sensor_size = 1
        state_size = 2

        def compute(self, model, data, instance, capability):
            if raises and data.time > 0:
                raise ValueError("boom")
            self.state[0] = self.gain

        def advance(self, model, data, instance):
            self.state[1] += 1

        def actuator_act_dot(self, model, data, instance):
            self.state[0] = 0.0

    return name


def compile_(name, option="", flags="", flex=""):
    return mujoco.MjModel.from_xml_string(
        MODEL.format(name=name, option=option, flags=flags, flex=flex)
    )


def test_trace_leads_from_declaration_to_elements():
    name = declare()
    mine, theirs = trace(compile_(name))
    assert (mine.plugin, mine.name, mine.source, mine.state_size) == (name, "mine", "mjhost", 2)
    assert mine.slot == functions().get_plugin(name)[0]
    assert "test_trace.py:" in mine.origin
    assert mine.config == {"gain": "3"}
    assert mine.elements == {"actuator": ("a",), "sensor": ("s",), "body": ("b",)}
    assert theirs.config == {"kp": "2"}
    assert theirs.elements == {"actuator": ("1",)}
    assert theirs.origin.endswith("libactuator.so")
    assert {call.basis for call in mine.calls} == {"measured"}
    assert {call.basis for call in theirs.calls} == {"rule"}


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("option", "flags"),
    [
        ("", ""),
        ('integrator="RK4"', ""),
        ('integrator="implicitfast"', ""),
        ("", 'actuation="disable"'),
        ("", 'sensor="disable"'),
        ("", 'spring="disable"'),
        ("", 'spring="disable" damper="disable"'),
        ('integrator="RK4"', 'actuation="disable" sensor="disable"'),
        ('integrator="discrete" solver="CG"', 'ipc="enable"'),
    ],
)
def test_measured_calls_are_those_of_the_rule(option, flags, compiled, named):
    if compiled:
        pytest.importorskip("numba", reason="the extra fast is not installed")
    model = compile_(named(compiled), option, flags)
    (mine, _) = trace(model)
    plugin = functions().plugin_at(mine.slot)
    assert {call.method: call.count for call in mine.calls} == expected(model, plugin)
    assert mine.failure is None


@pytest.fixture(scope="module")
def named():
    """Declares the plugin of a path once."""
    return functools.cache(declare)


def test_sensors_of_accelerations_are_computed_twice_where_ipc_moves_a_flex(named):
    flex = (
        '<flexcomp name="f" type="grid" dim="2" count="3 3 1" spacing=".1 .1 .1" radius=".01">'
        '<contact selfcollide="none"/><edge equality="true"/></flexcomp>'
    )
    model = compile_(named(False), 'integrator="discrete" solver="CG"', 'ipc="enable"', flex)
    (mine, _) = trace(model)
    assert {call.method: call.count for call in mine.calls}["compute (sensor)"] == 2
    assert expected(model, functions().plugin_at(mine.slot))["compute (sensor)"] == 2


def test_nothing_of_the_callers_is_touched():
    model = compile_(declare())
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data)
    state = np.empty(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_INTEGRATION))
    mujoco.mj_getState(model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
    before = state.tobytes()
    trace(model)
    mujoco.mj_getState(model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
    assert state.tobytes() == before
    mujoco.mj_step(model, data)
    assert data.plugin_state[1] == 2


def test_plugin_that_raises_is_traced_with_its_failure():
    mine, theirs = trace(compile_(declare(raises=True)))
    assert "ValueError: boom" in mine.failure
    assert mine.calls == ()
    assert theirs.failure is None
    assert not failures.pending


def test_model_without_plugins_has_no_trace():
    assert trace(mujoco.MjModel.from_xml_string("<mujoco/>")) == ()
