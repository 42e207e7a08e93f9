"""What the engine does with its global callbacks, ``mjcb_*``, and the binding with Python ones."""

from __future__ import annotations

import re
import threading
from collections import Counter
from pathlib import Path

import mujoco
import numpy as np
import pytest
from mujoco import rollout

from mjhost import layout
from tests.conftest import CALLBACKS, SYMBOLS
from tests.engine.facts.kit import (
    MAJOR,
    PASSIVE,
    RawPlugin,
    callbacks,
    compiled,
    counted,
    order_of,
    raw_callbacks,
    run_script,
)

ROD = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body>
      <joint name="j" axis="0 1 0"/><geom pos="0 0 -.5" size=".1" mass="1"/>
    </body>
  </worldbody>
  {more}
</mujoco>
"""
MOTOR = '<actuator><motor joint="j"/></actuator>'
USER = (
    '<actuator><general joint="j" dyntype="user" gaintype="user" biastype="user" '
    'actdim="{actdim}"/></actuator>'
)
SPHERES = """
<mujoco>
  <worldbody>
    <geom name="a" size=".1"/>
    <body pos=".05 0 0"><freejoint/><geom name="b" size=".1"/></body>
    <body pos="0 .05 0"><freejoint/><geom name="c" size=".1"/></body>
  </worldbody>
  {more}
</mujoco>
"""


def rod(more=""):
    return compiled(ROD.format(more=more))


# -- the pointers --------------------------------------------------------------------------------


def test_there_are_eight_global_callbacks():
    (library,) = Path(mujoco.__file__).parent.glob("libmujoco.*so*")
    found = set(re.findall(rb"\bmjcb_([a-z_]+)", library.read_bytes()))
    assert {name.decode() for name in found} == {*CALLBACKS}


def test_a_callback_set_on_one_thread_runs_for_every_model_on_every_thread():
    calls = []
    pairs = [rod(), compiled(SPHERES.format(more=""))]
    with callbacks(control=lambda model, data: calls.append((threading.get_ident(), model))):
        for pair in pairs:
            thread = threading.Thread(target=mujoco.mj_step, args=pair)
            thread.start()
            thread.join()
    assert [model is pair[0] for (_, model), pair in zip(calls, pairs, strict=True)] == [True] * 2
    assert threading.get_ident() not in {ident for ident, _ in calls}


def test_the_reset_of_all_callbacks_clears_the_clock_as_well_and_leaves_the_getters_behind():
    def nothing(*_):
        return 0

    model, data = rod()
    with callbacks(**dict.fromkeys(CALLBACKS, nothing)):
        mujoco.mj_resetCallbacks()
        assert [SYMBOLS[f"mjcb_{kind}"].value for kind in CALLBACKS] == [None] * 8
        assert all(getattr(mujoco, f"get_mjcb_{kind}")() is nothing for kind in CALLBACKS)
        mujoco.mj_step(model, data)
        assert data.timer[mujoco.mjtTimer.mjTIMER_STEP].duration == 0


def test_the_getter_returns_the_very_object_that_was_set():
    class Controller:
        def __call__(self, model, data):
            return None

    controller = Controller()
    with callbacks(control=controller):
        assert mujoco.get_mjcb_control() is controller


def test_a_pointer_of_compiled_code_is_invisible_to_the_getter_and_lost_by_save_and_restore():
    calls = []
    model, data = rod()
    with raw_callbacks(control=lambda *_: calls.append(1)):
        saved = mujoco.get_mjcb_control()
        assert saved is None
        mujoco.mj_step(model, data)
        mujoco.set_mjcb_control(saved)
        mujoco.mj_step(model, data)
    assert calls == [1]


def refresh_with_controller(model, data, controller):
    before = mujoco.get_mjcb_control()
    try:
        mujoco.set_mjcb_control(controller)
        mujoco.mj_forward(model, data)
    finally:
        mujoco.set_mjcb_control(before)


def test_a_swapped_controller_that_raises_can_be_swapped_back():
    def outer(model, data):
        return None

    def inner(model, data):
        raise ZeroDivisionError("from inside")

    model, data = rod()
    with callbacks(control=outer):
        with pytest.raises(ZeroDivisionError, match="from inside"):
            refresh_with_controller(model, data, inner)
        assert mujoco.get_mjcb_control() is outer
        mujoco.mj_step(model, data)
    assert data.time == model.opt.timestep


def test_a_trampoline_without_its_object_raises_in_the_thread_that_steps():
    """What a swap during a step of another thread leads to, without the race."""
    model, data = rod()
    with callbacks(control=lambda model, data: None):
        trampoline = SYMBOLS["mjcb_control"].value
        mujoco.set_mjcb_control(None)
        SYMBOLS["mjcb_control"].value = trampoline
        with pytest.raises(mujoco.UnexpectedError, match="py_mjcb_control is null"):
            mujoco.mj_step(model, data)
    assert data.time == 0


# -- order ---------------------------------------------------------------------------------------


def test_the_callbacks_of_a_step_come_in_one_order():
    sensors = "".join(f'<user dim="1" needstage="{stage}"/>' for stage in ("pos", "vel", "acc"))
    model, data = compiled(
        f"""<mujoco><worldbody><body><joint name="j" type="slide"/><geom size=".1"/></body>
        <body pos=".05 0 0"><joint type="slide"/><geom size=".1"/></body></worldbody>
        {USER.format(actdim=1)}<sensor>{sensors}</sensor></mujoco>"""
    )
    kinds = [kind for kind in CALLBACKS if kind != "time"]
    order = order_of(lambda: mujoco.mj_step(model, data), *kinds)
    assert " ".join(order) == (
        "contactfilter sensor1 passive sensor2 control act_dyn act_gain act_bias sensor3"
    )


def test_a_control_written_by_the_callback_is_a_force_in_the_same_step():
    model, data = rod(more=MOTOR)

    def control(_model, data):
        data.ctrl[0] = 3.0

    with callbacks(control=control):
        mujoco.mj_step(model, data)
    assert data.actuator_force[0] == 3.0
    assert data.qvel[0] > 0


def test_passive_comes_after_the_engines_own_forces_and_before_those_of_plugins():
    seen = {}
    spring = RawPlugin(PASSIVE, compute=lambda m, d, i, c: seen.update(plugin=data.qfrc_passive[0]))
    model, data = compiled(
        f"""<mujoco><extension><plugin plugin="{spring.name}"/></extension><worldbody>
        <body><plugin plugin="{spring.name}"/><joint type="slide" stiffness="7"/>
        <geom size=".1"/></body></worldbody></mujoco>"""
    )
    data.qpos[0] = 1.0

    def passive(_model, data):
        seen["callback"] = data.qfrc_passive[0]
        data.qfrc_passive[0] += 1000.0

    with callbacks(passive=passive):
        mujoco.mj_forward(model, data)
    assert seen == {"callback": -7.0, "plugin": 993.0}


@pytest.mark.parametrize("flags", ['spring="disable" damper="disable"', ""])
def test_passive_plugins_are_skipped_with_springs_and_dampers(flags):
    plugin = RawPlugin(PASSIVE)
    model, data = compiled(
        f"""<mujoco><option><flag {flags}/></option>
        <extension><plugin plugin="{plugin.name}"/></extension><worldbody>
        <body><plugin plugin="{plugin.name}"/><joint/><geom size=".1"/></body>
        </worldbody></mujoco>"""
    )
    plugin.log.clear()
    calls = counted(lambda: mujoco.mj_forward(model, data), "passive")["passive"]
    assert (calls, plugin.count("compute")) == ((0, 0) if flags else (1, 1))


# -- sensors, actuators, contacts ----------------------------------------------------------------


@pytest.mark.parametrize(("stage", "number"), [("pos", 1), ("vel", 2), ("acc", 3)])
def test_the_sensor_callback_is_called_for_stages_that_own_a_user_sensor_only(stage, number):
    own = f'<sensor><user dim="2" needstage="{stage}"/><jointpos joint="j"/></sensor>'
    model, data = rod(more=own)
    assert counted(lambda: mujoco.mj_step(model, data), "sensor") == {f"sensor{number}": 1}


def test_sensors_of_plugins_do_not_trigger_the_sensor_callback():
    touch = """
    <mujoco><extension><plugin plugin="mujoco.sensor.touch_grid"/></extension>
      <worldbody><body><joint name="j"/><geom size=".1"/><site name="s"/></body></worldbody>
      <sensor>
        <plugin plugin="mujoco.sensor.touch_grid" objtype="site" objname="s">
          <config key="size" value="2 2"/><config key="fov" value="10 10"/>
          <config key="gamma" value="0"/><config key="nchannel" value="1"/>
        </plugin>
      </sensor>
    </mujoco>"""
    model, data = compiled(touch)
    assert model.nsensordata == 4
    assert counted(lambda: mujoco.mj_step(model, data), "sensor") == {}


def test_actuator_callbacks_are_for_user_types_only():
    assert counted(lambda: mujoco.mj_step(*rod(more=MOTOR)), "act_dyn", "act_gain") == {}
    model, data = rod(more='<actuator><general joint="j" biastype="user"/></actuator>')
    kinds = ("act_dyn", "act_gain", "act_bias")
    assert counted(lambda: mujoco.mj_step(model, data), *kinds) == {"act_bias": 1}


def test_what_act_dyn_returns_is_a_derivative():
    model, data = rod(more=USER.format(actdim=1))
    with callbacks(act_dyn=lambda model, data, actuator: 5.0):
        mujoco.mj_step(model, data)
    assert data.act_dot[0] == 5.0
    assert data.act[0] == 5.0 * model.opt.timestep


def test_act_dyn_of_several_activations_writes_act_dot_itself():
    model, data = rod(more=USER.format(actdim=2))

    def act_dyn(_model, data, _actuator):
        data.act_dot[:] = 1.0, 2.0
        return 99.0

    with callbacks(act_dyn=act_dyn):
        mujoco.mj_step(model, data)
    assert data.act.tolist() == [model.opt.timestep, 2 * model.opt.timestep]


@pytest.mark.parametrize(("answer", "contacts"), [(0, 3), (1, 0), (-1, 0), (2, 0)])
def test_anything_but_zero_of_the_contact_filter_drops_the_pair(answer, contacts):
    model, data = compiled(SPHERES.format(more=""))
    with callbacks(contactfilter=lambda model, data, one, two: answer):
        mujoco.mj_forward(model, data)
    assert data.ncon == contacts


def test_explicit_pairs_never_ask_the_contact_filter():
    pair = '<contact><pair geom1="a" geom2="b"/></contact>'
    model, data = compiled(SPHERES.format(more=pair))
    asked = []
    with callbacks(contactfilter=lambda model, data, one, two: asked.append((one, two)) or 1):
        mujoco.mj_forward(model, data)
    assert data.ncon == 1
    assert (0, 1) not in asked
    assert sorted(asked) == [(0, 2), (1, 2)]


@pytest.mark.parametrize("kind", ["act_dyn", "act_gain", "act_bias", "contactfilter"])
def test_an_answer_of_the_wrong_type_is_a_type_error_that_names_the_callback(kind):
    model, data = rod(more=USER.format(actdim=1))
    if kind == "contactfilter":
        model, data = compiled(SPHERES.format(more=""))
    with callbacks(**{kind: lambda *_: "text"}), pytest.raises(TypeError, match=kind):
        mujoco.mj_forward(model, data)


# -- threads -------------------------------------------------------------------------------------


def test_a_step_lets_other_python_threads_run():
    model, data = rod()
    seen, between, started, done = set(), {0.0}, threading.Event(), threading.Event()

    def watch():
        started.set()
        while not done.is_set():
            seen.add(float(data.time))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        assert started.wait(20)
        for _ in range(100):
            mujoco.mj_step(model, data, 5000)
            between.add(float(data.time))
            if seen - between:
                break
    finally:
        done.set()
        watcher.join()
    assert seen - between


def test_callbacks_of_a_threaded_rollout_run_on_the_engines_threads():
    model, _ = rod()
    idents = Counter()
    datas = [mujoco.MjData(model) for _ in range(2)]
    state = np.zeros((8, mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
    with callbacks(control=lambda model, data: idents.update([threading.get_ident()])):
        rollout.rollout(model, datas, state, nstep=5)
    assert threading.get_ident() not in idents
    assert idents.total() == 40


# -- exceptions ----------------------------------------------------------------------------------


def stack_in_use(data):
    return layout.size_cell(data, "mjData", "pstack").value


@pytest.mark.parametrize(
    ("kind", "integrator", "leaks"),
    [
        ("control", "Euler", False),
        ("passive", "Euler", False),
        ("sensor", "Euler", False),
        ("contactfilter", "Euler", True),
        ("act_dyn", "Euler", True),
        ("act_gain", "Euler", True),
        ("act_bias", "Euler", True),
        ("control", "RK4", True),
    ],
)
def test_an_exception_ends_the_step_and_may_leave_engine_stack_in_use(kind, integrator, leaks):
    sensor = '<sensor><user dim="1" needstage="pos"/></sensor>'
    actuator = USER.format(actdim=1)
    model, data = compiled(
        f"""<mujoco><option integrator="{integrator}"/><worldbody>
        <body><joint name="j" type="slide"/><geom size=".1"/></body>
        <body pos=".05 0 0"><joint type="slide"/><geom size=".1"/></body></worldbody>
        {actuator}{sensor}</mujoco>"""
    )
    calls = []

    def raises(*_):
        # The first evaluation of Runge-Kutta comes before its stack frame.
        calls.append(1)
        if integrator == "Euler" or len(calls) == 2:
            raise ZeroDivisionError

    with callbacks(**{kind: raises}), pytest.raises(ZeroDivisionError):
        mujoco.mj_step(model, data)
    assert data.time < 2 * model.opt.timestep
    assert (stack_in_use(data) > 0) == leaks


SETUP = """
import mujoco, sys
model = mujoco.MjModel.from_xml_string(
    '<mujoco><worldbody><body><joint/><geom size=".1"/></body></worldbody></mujoco>')
data = mujoco.MjData(model)
"""


@pytest.mark.slow
def test_a_call_of_mujoco_then_an_exception_aborts_version_3_and_not_version_4(tmp_path):
    script = """
def control(model, data):
    mujoco.mj_energyPos(model, data)
    raise ZeroDivisionError("from inside")
mujoco.set_mjcb_control(control)
try:
    mujoco.mj_step(model, data)
except ZeroDivisionError as error:
    print("raised", error)
"""
    ended = run_script(SETUP + script, folder=tmp_path)
    if MAJOR < 4:
        assert ended.returncode == -6, ended
    else:
        assert (ended.returncode, ended.stdout) == (0, "raised from inside\n")


@pytest.mark.slow
def test_an_exception_on_a_worker_thread_of_a_rollout_ends_the_process(tmp_path):
    script = """
import numpy
from mujoco import rollout
def control(model, data):
    raise ZeroDivisionError
mujoco.set_mjcb_control(control)
state = numpy.zeros((4, mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
datas = [mujoco.MjData(model) for _ in range(int(sys.argv[1]))]
try:
    rollout.rollout(model, datas, state, nstep=3)
except ZeroDivisionError:
    print("raised")
"""
    threaded = run_script(SETUP + script, 2, folder=tmp_path)
    assert threaded.returncode == 1
    assert "Python exception raised" in threaded.stderr
    alone = run_script(SETUP + script, 1, folder=tmp_path)
    assert (alone.returncode, alone.stdout) == (0, "raised\n")
