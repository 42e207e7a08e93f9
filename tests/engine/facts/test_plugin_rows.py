"""The engine's rules about instances and their state, seen by plugins declared with mjhost."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
import pytest
from mujoco import rollout

from mjhost import engine
from tests.engine.facts.kit import compiled, fresh_name, state_of

SCENE = """
<mujoco>
  <option gravity="0 0 0" integrator="{integrator}"/>
  <extension><plugin plugin="{name}">{instances}</plugin></extension>
  <worldbody><body><joint name="j" type="slide"/><geom size=".1" mass="1"/></body></worldbody>
  <actuator>{actuators}</actuator>
  <sensor>{sensors}</sensor>
</mujoco>
"""


def scene(name, *, actuators=(), sensors=(), integrator="Euler"):
    """Model and data; ``actuators`` and ``sensors`` name the instance of each."""
    labels = dict.fromkeys([*actuators, *sensors])
    instances = "".join(
        f'<instance name="{label}"><config key="gain" value="{index + 1}"/></instance>'
        for index, label in enumerate(labels)
    )
    return compiled(
        SCENE.format(
            name=name,
            instances=instances,
            integrator=integrator,
            actuators="".join(f'<plugin joint="j" instance="{one}"/>' for one in actuators),
            sensors="".join(f'<plugin instance="{one}"/>' for one in sensors),
        )
    )


@pytest.fixture
def counter():
    """A sensor that reports ``gain`` times the steps before."""
    name = fresh_name()

    @engine.plugin(name, capabilities=("sensor",))
    class Counter:
        gain: float = 1.0
        state_size = 1
        sensor_size = 1

        def compute(self, model, data, instance, capability):
            self.sensordata[:] = self.gain * self.state[0]

        def advance(self, model, data, instance):
            self.state[0] += 1

    return name


def test_two_instances_of_a_name_have_states_and_attributes_of_their_own(counter):
    model, data = scene(counter, sensors=("one", "two"))
    data.plugin_state[1] = 10.0
    mujoco.mj_step(model, data, 3)
    assert data.plugin_state.tolist() == [3.0, 13.0]
    assert data.sensordata.tolist() == [2.0, 24.0]


def test_an_instance_shared_by_sensors_has_one_state(counter):
    model, data = scene(counter, sensors=("one", "one"))
    mujoco.mj_step(model, data, 3)
    assert data.plugin_state.tolist() == [3.0]
    assert data.sensordata.tolist() == [2.0, 2.0]


def test_the_state_belongs_to_the_data(counter):
    model, data = scene(counter, sensors=("one",))
    other = mujoco.MjData(model)
    mujoco.mj_step(model, data, 3)
    mujoco.mj_step(model, other)
    copied = copy.copy(data)
    mujoco.mj_step(model, copied)
    assert [d.plugin_state[0] for d in (data, other, copied)] == [3.0, 1.0, 4.0]


@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicit", "implicitfast", "discrete"])
def test_the_state_advances_once_per_step_of_any_integrator(counter, integrator):
    model, data = scene(counter, sensors=("one",), integrator=integrator)
    mujoco.mj_step(model, data, 5)
    assert data.plugin_state.tolist() == [5.0]


def test_a_rollout_is_the_same_on_one_thread_and_on_two():
    name = fresh_name()

    @engine.plugin(name, capabilities=("actuator", "sensor"))
    class Smoothed:
        gain: float = 1.0
        state_size = 1
        sensor_size = 1

        def compute(self, model, data, instance, capability):
            if capability == 1:
                data.actuator_force[self.outadr[0]] = self.gain * self.state[0]
            else:
                self.sensordata[:] = self.state[0]

        def advance(self, model, data, instance):
            target = data.ctrl[self.ctrladr[0]]
            self.state[0] += 0.1 * (target - self.state[0])

    model, data = scene(name, actuators=("one",), sensors=("one",))
    start = state_of(model, data, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    control = np.random.default_rng(3).normal(size=(6, 30, 1))
    results = []
    for threads in (1, 2):
        datas = [mujoco.MjData(model) for _ in range(threads)]
        results.append(rollout.rollout(model, datas, np.tile(start, (6, 1)), control))
    for one, two in zip(*results, strict=True):
        assert one.tobytes() == two.tobytes()
    assert np.abs(results[0][1][:, -1]).min() > 0
    engine.check()


def test_no_plugin_can_be_a_solver():
    with pytest.raises(engine.EngineDeclarationError, match="none that replaces a solver"):

        @engine.plugin(fresh_name(), capabilities=("solver",))
        class Solver:
            def compute(self, model, data, instance, capability):
                return None
