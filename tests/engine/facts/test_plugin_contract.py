"""What the engine calls of a C plugin, and when: plugins of thunks, nothing of ours in between."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
import pytest

from mjhost.engine.abi.symbols import engine
from tests.engine.facts.kit import (
    ACTUATOR,
    MAJOR,
    PASSIVE,
    SENSOR,
    RawPlugin,
    callbacks,
    compiled,
    fresh_name,
    plugin_word,
    run_script,
    set_plugin_word,
    state_of,
)

SCENE = """
<mujoco>
  <option gravity="0 0 0" integrator="{integrator}"/>
  <extension><plugin plugin="{name}">{instances}</plugin></extension>
  <worldbody>
    <body>{inner}<joint name="j" type="slide"/><geom name="g" size=".1" mass="1"/></body>
  </worldbody>
  {elements}
</mujoco>
"""
ELEMENTS = {
    ACTUATOR: '<actuator><plugin joint="j" instance="{}" {more}/></actuator>',
    SENSOR: '<sensor><plugin instance="{}" {more}/></sensor>',
}


def xml_of(plugin, kind, *, instances=("one",), more="", config="", integrator="Euler"):
    elements = [ELEMENTS[kind].format(name, more=more) for name in instances if kind in ELEMENTS]
    inner = f'<plugin instance="{instances[0]}"/>' if kind == PASSIVE else ""
    return SCENE.format(
        name=plugin.name,
        instances="".join(f'<instance name="{name}">{config}</instance>' for name in instances),
        elements="".join(elements),
        inner=inner,
        integrator=integrator,
    )


def hosted(plugin, kind, **arguments):
    """Model and data with an instance; the log holds what is called from here on."""
    model, data = compiled(xml_of(plugin, kind, **arguments))
    plugin.log.clear()
    return model, data


def steps_of(plugin, *slots):
    return [call for call in plugin.calls if call in (slots or {"compute", "advance"})]


# -- registration --------------------------------------------------------------------------------


def test_the_engine_registers_a_capability_that_it_never_asks_for():
    solver = RawPlugin(16, nsensordata=lambda *_: 1)
    assert solver.refusal is None
    assert solver.slot >= 0
    with pytest.raises(ValueError, match="does not support sensors"):
        compiled(xml_of(solver, SENSOR))
    model, data = hosted(solver, None)
    mujoco.mj_step(model, data)
    assert solver.calls == []


def test_registration_checks_names_only_and_takes_a_plugin_without_functions():
    slots = ("nstate", "init", "destroy", "copy", "reset", "compute", "nsensordata")
    empty = RawPlugin(SENSOR, **dict.fromkeys(slots))
    assert empty.refusal is None
    assert engine().get_plugin(empty.name)[0] == empty.slot


def test_a_name_that_differs_in_case_only_is_refused():
    first = RawPlugin(PASSIVE)
    assert first.refusal is None

    class Shouting(RawPlugin):
        name = property(lambda self: first.name.upper(), lambda self, name: None)

    assert "already registered" in Shouting(PASSIVE).refusal


def test_a_model_holds_slots_and_counts_instances_not_plugins():
    plugin = RawPlugin(SENSOR)
    model, _ = hosted(plugin, SENSOR, instances=("one", "two"))
    assert model.nplugin == 2
    assert model.plugin.tolist() == [plugin.slot] * 2


def test_an_undeclared_plugin_is_unrecognized_and_an_unregistered_one_not_found():
    name = RawPlugin(SENSOR).name
    sensor = f'<sensor><plugin plugin="{name}"/></sensor>'
    with pytest.raises(ValueError, match=f"unrecognized plugin '{name}'"):
        compiled(f"<mujoco><worldbody/>{sensor}</mujoco>")
    missing = fresh_name()
    with pytest.raises(ValueError, match=f"plugin {missing} not found"):
        compiled(f'<mujoco><extension><plugin plugin="{missing}"/></extension></mujoco>')


def test_elements_share_an_instance_only_by_its_name():
    plugin = RawPlugin(SENSOR)
    anonymous = f'<sensor>{2 * f"""<plugin plugin="{plugin.name}"/>"""}</sensor>'
    extension = f'<extension><plugin plugin="{plugin.name}"/></extension>'
    model, _ = compiled(f"<mujoco>{extension}<worldbody/>{anonymous}</mujoco>")
    assert model.nplugin == 2


# -- lives ---------------------------------------------------------------------------------------


def test_compiling_asks_for_sizes_then_lives_one_step():
    plugin = RawPlugin(SENSOR, advance=lambda *_: None)
    mujoco.MjModel.from_xml_string(xml_of(plugin, SENSOR))
    calls = plugin.calls
    assert calls[: calls.index("init")].count("nsensordata") == 2
    assert {*calls[: calls.index("init")]} == {"nstate", "nsensordata"}
    assert calls[calls.index("init") :] == ["init", "reset", "compute", "advance", "destroy"]


def test_making_data_calls_init_then_reset():
    plugin = RawPlugin(SENSOR)
    model, _data = hosted(plugin, SENSOR)
    second = mujoco.MjData(model)
    assert plugin.calls == ["init", "reset"]
    del second
    assert plugin.calls == ["init", "reset", "destroy"]


@pytest.mark.parametrize("answer", [0, 1, 7])
def test_init_may_return_anything_that_is_not_negative(answer):
    plugin = RawPlugin(SENSOR, init=lambda *_: answer)
    model, data = hosted(plugin, SENSOR)
    mujoco.mj_step(model, data)
    assert plugin.calls == ["compute"]


def test_a_negative_init_fails_the_data_and_only_version_4_destroys_those_before():
    answers = [0, 0]
    plugin = RawPlugin(SENSOR, init=lambda model, data, instance: answers[instance])
    model, _data = hosted(plugin, SENSOR, instances=("one", "two"))
    answers[1] = -1
    with pytest.raises(mujoco.FatalError, match="plugin->init failed"):
        mujoco.MjData(model)
    destroyed = [entry[2] for entry in plugin.log if entry[0] == "destroy"]
    assert destroyed == ([] if MAJOR < 4 else [0])


def test_a_reset_keeps_plugin_data_and_calls_the_plugin():
    plugin = RawPlugin(SENSOR)
    model, data = hosted(plugin, SENSOR)
    set_plugin_word(data, 0x1234)
    mujoco.mj_resetData(model, data)
    assert plugin.calls == ["reset"]
    assert plugin_word(data) == 0x1234
    assert plugin.log[0][3:] == (0x1234, 0)


def test_plugin_state_survives_a_reset_of_a_plugin_without_a_reset():
    plugin = RawPlugin(SENSOR, state=2, reset=None)
    model, data = hosted(plugin, SENSOR)
    data.plugin_state[:] = 3.0, 4.0
    mujoco.mj_resetData(model, data)
    assert data.plugin_state.tolist() == [3.0, 4.0]


def test_copying_data_keeps_the_targets_plugin_data_and_calls_copy():
    plugin = RawPlugin(SENSOR, state=1)
    model, source = hosted(plugin, SENSOR)
    target = mujoco.MjData(model)
    set_plugin_word(source, 1)
    set_plugin_word(target, 2)
    source.plugin_state[0] = 5.0
    plugin.log.clear()
    mujoco.mj_copyData(target, model, source)
    ((slot, *arguments),) = plugin.log
    assert (slot, arguments[0], arguments[2]) == ("copy", target._address, source._address)
    assert (plugin_word(target), target.plugin_state[0]) == (2, 5.0)


def test_a_copy_made_by_python_is_inited_and_copied_but_not_reset():
    plugin = RawPlugin(SENSOR)
    _model, data = hosted(plugin, SENSOR)
    _copied = copy.copy(data)
    assert plugin.calls == ["init", "copy"]


@pytest.mark.slow
def test_data_that_are_alive_at_the_end_are_destroyed_while_the_interpreter_ends(tmp_path):
    script = """
import mujoco
from tests.engine.facts.kit import SENSOR, RawPlugin, _kept
from tests.engine.facts.test_plugin_contract import xml_of
plugin = RawPlugin(SENSOR, destroy=lambda data, instance: print("destroy", flush=True))
model = mujoco.MjModel.from_xml_string(xml_of(plugin, SENSOR))
print("compiled", flush=True)
data = mujoco.MjData(model)
print("end", flush=True)
"""
    ended = run_script(script, folder=tmp_path)
    assert ended.stdout.split() == ["destroy", "compiled", "end", "destroy"], ended


# -- what may be null ----------------------------------------------------------------------------


@pytest.mark.parametrize("slot", ["init", "destroy", "copy", "reset"])
def test_functions_of_a_life_may_be_null(slot):
    plugin = RawPlugin(SENSOR, **{slot: None})
    model, data = compiled(xml_of(plugin, SENSOR))
    mujoco.mj_step(model, data)
    mujoco.mj_resetData(model, data)
    mujoco.mj_copyData(mujoco.MjData(model), model, data)
    assert plugin.count(slot) == 0
    assert plugin.count("compute") == 2


@pytest.mark.parametrize("slot", ["nstate", "nsensordata", "compute"])
def test_sizes_and_compute_must_not_be_null(slot):
    plugin = RawPlugin(SENSOR, **{slot: None})
    with pytest.raises(ValueError, match=f"(?i){slot}"):
        compiled(xml_of(plugin, SENSOR))


# -- a step --------------------------------------------------------------------------------------


def test_an_instance_shared_by_two_sensors_is_computed_once():
    plugin = RawPlugin(SENSOR)
    xml = xml_of(plugin, SENSOR).replace("</sensor>", '<plugin instance="one"/></sensor>')
    model, data = compiled(xml)
    assert (model.nplugin, model.nsensor) == (1, 2)
    plugin.log.clear()
    mujoco.mj_step(model, data)
    assert plugin.count("compute") == 1


@pytest.mark.parametrize(
    ("stage", "computed"), [(0, "pos"), (1, "pos"), (2, "vel"), (3, "acc"), (4, None)]
)
def test_a_sensor_is_computed_at_its_stage_and_an_unknown_one_never(stage, computed):
    plugin = RawPlugin(SENSOR, stage=stage)
    model, data = hosted(plugin, SENSOR)
    seen = {}
    for name, evaluate in (
        ("pos", mujoco.mj_sensorPos),
        ("vel", mujoco.mj_sensorVel),
        ("acc", mujoco.mj_sensorAcc),
    ):
        plugin.log.clear()
        evaluate(model, data)
        seen[name] = plugin.count("compute")
    assert seen == {name: int(name == computed) for name in seen}


def test_passive_plugins_compute_after_the_velocity_stage_began_and_before_control():
    order = []
    plugin = RawPlugin(PASSIVE, compute=lambda *_: order.append("plugin"))
    model, data = hosted(plugin, PASSIVE)
    order.clear()
    with callbacks(
        passive=lambda *_: order.append("passive"), control=lambda *_: order.append("control")
    ):
        mujoco.mj_step(model, data)
    assert order == ["passive", "plugin", "control"]


def test_the_derivative_of_a_plugin_comes_after_the_engines_own_and_before_its_force():
    seen = []

    def act_dot(_model, _data, _instance):
        seen.append(live[0].act_dot.tolist())

    plugin = RawPlugin(ACTUATOR, actuator_act_dot=act_dot, state=0)
    more = 'dyntype="integrator" actdim="2"'
    model, data = hosted(plugin, ACTUATOR, more=more)
    live = [data]
    data.ctrl[0] = 6.0
    plugin.log.clear()
    mujoco.mj_step(model, data)
    assert plugin.calls == ["actuator_act_dot", "compute"]
    assert seen == [[0.0, 6.0]]


def test_the_activation_of_a_dyntype_comes_after_that_of_the_plugin():
    plugin = RawPlugin(ACTUATOR)
    model, data = hosted(plugin, ACTUATOR, more='dyntype="integrator" actdim="2"')
    data.ctrl[0] = 6.0
    mujoco.mj_step(model, data)
    assert data.act.tolist() == [0.0, 6.0 * model.opt.timestep]


@pytest.mark.parametrize(("kind", "evaluations"), [(PASSIVE, 4), (ACTUATOR, 4), (SENSOR, 1)])
def test_runge_kutta_computes_forces_four_times_and_advances_once(kind, evaluations):
    plugin = RawPlugin(kind, advance=lambda *_: None)
    model, data = hosted(plugin, kind, integrator="RK4")
    mujoco.mj_step(model, data)
    assert steps_of(plugin) == ["compute"] * evaluations + ["advance"]


@pytest.mark.parametrize(("kind", "evaluations"), [(PASSIVE, 1), (ACTUATOR, 0), (SENSOR, 1)])
def test_inverse_dynamics_compute_passive_forces_and_sensors(kind, evaluations):
    plugin = RawPlugin(kind, advance=lambda *_: None)
    model, data = hosted(plugin, kind)
    mujoco.mj_inverse(model, data)
    assert steps_of(plugin) == ["compute"] * evaluations


def test_finite_differences_advance_once_per_column():
    plugin = RawPlugin(PASSIVE, advance=lambda *_: None)
    model, data = hosted(plugin, PASSIVE)
    size = 2 * model.nv + model.na
    mujoco.mjd_transitionFD(model, data, 1e-6, False, np.empty((size, size)), None, None, None)
    assert plugin.count("advance") == size + model.nu + 1


def test_advance_sees_time_positions_and_activations_already_advanced():
    seen = []

    def advance(*_):
        seen.append((live[0].time, live[0].qpos[0], live[0].act[0]))

    plugin = RawPlugin(ACTUATOR, advance=advance)
    model, data = hosted(plugin, ACTUATOR, more='dyntype="integrator" actdim="1"')
    live = [data]
    data.qvel[0], data.ctrl[0] = 1.0, 6.0
    seen.clear()
    mujoco.mj_step(model, data)
    timestep = model.opt.timestep
    assert seen == [(timestep, timestep, 6.0 * timestep)]


# -- state ---------------------------------------------------------------------------------------


def test_plugin_state_is_one_bit_of_the_state():
    bit = mujoco.mjtState.mjSTATE_PLUGIN
    assert bit == 8192
    plugin = RawPlugin(SENSOR, state=2)
    model, data = hosted(plugin, SENSOR)
    data.plugin_state[:] = 1.0, 2.0
    assert state_of(model, data, bit).tolist() == [1.0, 2.0]
    mujoco.mj_setState(model, data, np.zeros(2), int(bit))
    assert data.plugin_state.tolist() == [0.0, 0.0]
    holding = {
        name: bool(getattr(mujoco.mjtState, f"mjSTATE_{name}") & bit)
        for name in ("PHYSICS", "FULLPHYSICS", "INTEGRATION")
    }
    assert holding == {"PHYSICS": False, "FULLPHYSICS": True, "INTEGRATION": True}


# -- what a file holds ----------------------------------------------------------------------------

REGISTER = """
import mujoco, sys
from tests.engine.facts.kit import SENSOR, RawPlugin
from tests.engine.facts.test_plugin_contract import xml_of
"""


@pytest.mark.slow
def test_a_binary_model_holds_slots_and_runs_whatever_is_registered_there(tmp_path):
    script = """
first, second = RawPlugin(SENSOR), RawPlugin(SENSOR)
if sys.argv[1] == "write":
    model = mujoco.MjModel.from_xml_string(xml_of(first, SENSOR))
    mujoco.mj_saveModel(model, "model.mjb")
else:
    first, second = second, first
    model = mujoco.MjModel.from_binary_path("model.mjb")
    first.log.clear()
    second.log.clear()
    mujoco.mj_step(model, mujoco.MjData(model))
    print(first.count("compute"), second.count("compute"))
"""
    # In the second process the names are the other way round.
    ended = run_script(REGISTER + script, "write", folder=tmp_path)
    assert ended.returncode == 0, ended
    ended = run_script(REGISTER + script, "read", folder=tmp_path)
    assert ended.stdout == "0 1\n", ended


@pytest.mark.slow
def test_pickled_data_carry_the_pointers_of_plugins(tmp_path):
    script = """
import pickle
from tests.engine.facts.kit import plugin_word, set_plugin_word
plugin = RawPlugin(SENSOR)
model = mujoco.MjModel.from_xml_string(xml_of(plugin, SENSOR))
data = mujoco.MjData(model)
set_plugin_word(data, 0x1234)
plugin.log.clear()
again = pickle.loads(pickle.dumps(data))
print(hex(plugin_word(again)), plugin.count("copy"))
"""
    ended = run_script(REGISTER + script, folder=tmp_path)
    assert ended.stdout == "0x1234 0\n", ended
