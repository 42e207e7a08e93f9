"""What MuJoCo does around a plugin, as far as ours build on it; the same on every engine.

When one of these fails on a new engine, its documentation here has to change.
"""

from collections import Counter

import mujoco
import numpy as np
import pytest

from mjhost import engine
from mjhost.engine.abi.symbols import engine as functions


@pytest.fixture
def calls():
    return Counter()


@pytest.fixture
def counting(name, calls):
    """A plugin of every capability but SDF that counts."""

    class Counting:
        state_size = 1
        sensor_size = 1
        a: float = 1.0

        def compute(self, model, data, instance, capability):
            calls[capability] += 1

        def advance(self, model, data, instance):
            calls["advance"] += 1

        def actuator_act_dot(self, model, data, instance):
            calls["act_dot"] += 1
            calls["act_dot before compute"] += not calls[1]

    engine.plugin(name, ("actuator", "sensor", "passive"))(Counting)
    return name


def scene(name, option="", config=""):
    return mujoco.MjModel.from_xml_string(
        f'<mujoco>{option}<extension><plugin plugin="{name}"><instance name="i">{config}</instance>'
        '</plugin></extension><worldbody><body><joint name="j" type="slide"/>'
        '<geom size=".1" contype="0" conaffinity="0"/><plugin instance="i"/></body></worldbody>'
        '<actuator><plugin joint="j" instance="i" actdim="1"/></actuator>'
        '<sensor><plugin instance="i"/><plugin instance="i"/></sensor></mujoco>'
    )


def counted(calls, function):
    calls.clear()
    function()
    return dict(calls)


@pytest.mark.parametrize(("integrator", "times"), [("Euler", 1), ("implicitfast", 1), ("RK4", 4)])
def test_rk4_evaluates_forces_four_times_and_sensors_once(counting, calls, integrator, times):
    model = scene(counting, f'<option integrator="{integrator}"/>')
    data = mujoco.MjData(model)
    found = counted(calls, lambda: mujoco.mj_step(model, data))
    assert (found[1], found[4], found[2], found["advance"]) == (times, times, 1, 1)
    assert found["act_dot"] == times
    assert found["act_dot before compute"] == 1


def test_forward_computes_and_does_not_advance(counting, calls):
    model = scene(counting)
    data = mujoco.MjData(model)
    found = counted(calls, lambda: mujoco.mj_forward(model, data))
    assert (found[1], found[2], found[4], found.get("advance", 0)) == (1, 1, 1, 0)


def test_compiling_takes_one_step(counting, calls):
    found = counted(calls, lambda: scene(counting))
    assert (found[1], found[2], found[4], found["advance"]) == (1, 1, 1, 1)


def test_finite_differences_advance_plugins(counting, calls):
    model = scene(counting)
    data = mujoco.MjData(model)
    size = 2 * model.nv + model.na
    A, B = np.zeros((size, size)), np.zeros((size, model.nu))
    found = counted(
        calls, lambda: mujoco.mjd_transitionFD(model, data, 1e-6, False, A, B, None, None)
    )
    assert found["advance"] == 2 * model.nv + model.na + model.nu + 1


def test_without_springs_and_dampers_no_passive_plugin_runs(counting, calls):
    option = '<option><flag spring="disable" damper="disable"/></option>'
    model = scene(counting, option)
    found = counted(calls, lambda: mujoco.mj_forward(model, mujoco.MjData(model)))
    assert 4 not in found
    assert found[1] == 1


def test_without_sensors_no_sensor_plugin_runs(counting, calls):
    model = scene(counting, '<option><flag sensor="disable"/></option>')
    found = counted(calls, lambda: mujoco.mj_forward(model, mujoco.MjData(model)))
    assert 2 not in found


def test_a_model_counts_instances_and_refers_to_slots(counting):
    model = scene(counting)
    slot, _ = functions().get_plugin(counting)
    assert (model.nplugin, model.plugin.tolist()) == (1, [slot])


def test_plugin_state_is_part_of_the_integration_state(counting):
    model = scene(counting)
    data = mujoco.MjData(model)
    data.plugin_state[:] = 4.0
    spec = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(model, spec))
    mujoco.mj_getState(model, data, state, spec)
    data.plugin_state[:] = 0.0
    mujoco.mj_setState(model, data, state, spec)
    assert data.plugin_state.tolist() == [4.0]
    assert model.npluginstate == 1
    assert model.na == 1  # act is another array


@pytest.mark.parametrize(
    "config", ['<config key="b" value="1"/>', '<config key="a" value="1"/>' * 2]
)
def test_unknown_and_repeated_keys_are_refused(counting, config):
    with pytest.raises(ValueError):
        scene(counting, config=config)


def test_a_plugin_that_the_extension_does_not_declare_is_refused(counting):
    with pytest.raises(ValueError, match="nowhere"):
        scene("nowhere.registered")


@pytest.mark.parametrize(("stage", "sees"), [("pos", 0), ("vel", 1), ("acc", 2)])
def test_a_sensor_runs_after_what_its_stage_says(name, stage, sees):
    seen = []

    @engine.plugin(name, ("sensor",), stage=stage)
    class Sensor:
        sensor_size = 1

        def compute(self, model, data, instance, capability):
            seen.append((data.xpos[1][0], data.cvel[1][3], data.qacc[0]))

    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option gravity="-3 0 0"/><extension><plugin plugin="{name}"><instance name="i"/>'
        '</plugin></extension><worldbody><body><joint type="slide" axis="1 0 0"/>'
        '<geom size=".1"/></body></worldbody><sensor><plugin instance="i"/></sensor></mujoco>'
    )
    data = mujoco.MjData(model)
    data.qpos[0], data.qvel[0] = 2.0, 5.0
    seen.clear()
    mujoco.mj_forward(model, data)
    position, velocity, acceleration = seen[0]
    assert position == 2.0
    assert (velocity == 5.0) == (sees >= 1)
    assert (acceleration == -3.0) == (sees == 2)
