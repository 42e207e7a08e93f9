"""Registered with ``compiled=True``, a plugin is run by the engine as machine code."""

import copy
import ctypes
import gc
import pickle
import sys
import threading

import mujoco
import numpy as np
import pytest
from mujoco import rollout

from mjhost import engine, layout
from mjhost.engine import frames, lives
from mjhost.engine.compiled.records import TABLE
from mjhost.errors import EnginePluginError
from tests.engine.compiled.kit import unique

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not frames.available(), reason="the extra fast is not installed"),
]

SCENE = """
<mujoco>
  <extension><plugin plugin="{name}"><instance name="it">
    <config key="kp" value="40"/><config key="ki" value="4"/><config key="kd" value="3"/>
  </instance></plugin></extension>
  <worldbody>
    <body><joint name="a" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.05"/>
      <body pos="0 0 -0.5"><joint name="b" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.05"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <plugin joint="a" plugin="{name}" instance="it" actdim="1"/>
    <plugin joint="b" plugin="{name}" instance="it" actdim="1"/>
  </actuator>
</mujoco>
"""


class Pid:
    kp: float = 0.0
    ki: float = 0.0
    kd: float = 0.0

    def error(self, data, k):
        return data.ctrl[self.ctrladr[k]] - data.actuator_length[self.outadr[k]]

    def actuator_act_dot(self, model, data, instance):
        for k in range(len(self.actuators)):
            data.act_dot[self.actadr[k]] = self.error(data, k)

    def compute(self, model, data, instance, capability):
        for k in range(len(self.actuators)):
            out, error = self.outadr[k], self.error(data, k)
            if data.ctrl[self.ctrladr[k]] > 100.0:
                raise ValueError(f"a set point of {data.ctrl[self.ctrladr[k]]}")
            integral = data.act[self.actadr[k]] + error * model.opt.timestep
            force = self.kp * error - self.kd * data.actuator_velocity[out]
            data.actuator_force[out] = force + self.ki * integral


CODES = {Pid.compute.__code__, Pid.actuator_act_dot.__code__, Pid.error.__code__}


@pytest.fixture(scope="module")
def compiled(_own_cache):
    name = unique()
    engine.plugin(name, ("actuator",), compiled=True)(Pid)
    return name


def model_of(name):
    return mujoco.MjModel.from_xml_string(SCENE.format(name=name))


@pytest.fixture
def model(compiled):
    return model_of(compiled)


@pytest.fixture
def data(model):
    made = mujoco.MjData(model)
    made.ctrl[:] = 0.7, -0.2
    return made


def calls_of(run):
    """How often ``run`` has Python execute a method of the class."""
    found = []

    def profile(frame, event, _):
        if event == "call" and frame.f_code in CODES:
            found.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(before)
    return len(found)


def test_a_step_runs_no_python(model, data):
    assert calls_of(lambda: mujoco.mj_step(model, data, 20)) == 0


@pytest.fixture(scope="module")
def uncompiled():
    name = unique()
    engine.plugin(name, ("actuator",))(Pid)
    return name


def end_of(name, integrator):
    """The state after half a second, as bytes."""
    model = model_of(name)
    model.opt.integrator = integrator
    data = mujoco.MjData(model)
    data.ctrl[:] = 0.7, -0.2
    mujoco.mj_step(model, data, 500)
    return data.qpos.tobytes(), data.qvel.tobytes(), data.act.tobytes()


def test_the_same_class_uncompiled_is_python(uncompiled):
    model = model_of(uncompiled)
    data = mujoco.MjData(model)
    assert calls_of(lambda: mujoco.mj_step(model, data, 20)) > 0


@pytest.mark.parametrize("integrator", ["mjINT_EULER", "mjINT_RK4", "mjINT_IMPLICITFAST"])
def test_trajectories_are_those_of_the_source_bit_for_bit(compiled, uncompiled, integrator):
    number = getattr(mujoco.mjtIntegrator, integrator)
    assert end_of(compiled, number) == end_of(uncompiled, number)


def test_trajectories_are_those_of_the_engines_own_pid_bit_for_bit(compiled):
    number = mujoco.mjtIntegrator.mjINT_EULER
    assert end_of(compiled, number) == end_of("mujoco.pid", number)


def test_an_error_is_that_of_the_source_with_its_line(model, data):
    data.ctrl[0] = 1000.0
    with pytest.raises(EnginePluginError, match="compute") as info:
        mujoco.mj_step(model, data)
        engine.check(data)
    cause = info.value.__cause__
    assert isinstance(cause, ValueError)
    assert str(cause) == "a set point of 1000.0"
    lines = []
    trace = cause.__traceback__
    while trace is not None:
        lines.append((trace.tb_frame.f_code, trace.tb_lineno))
        trace = trace.tb_next
    assert lines[-1][0] is Pid.compute.__code__


def test_data_step_on_after_an_error(model, data):
    data.ctrl[0] = 1000.0
    with pytest.raises(EnginePluginError):
        mujoco.mj_step(model, data)
        engine.check(data)
    data.ctrl[0] = 0.7
    assert calls_of(lambda: mujoco.mj_step(model, data)) == 0


def test_copies_run_on_their_own(model, data):
    mujoco.mj_step(model, data, 10)
    other = copy.copy(data)
    assert calls_of(lambda: mujoco.mj_step(model, other, 10)) == 0
    mujoco.mj_step(model, data, 10)
    assert (other.qpos == data.qpos).all()


def test_unpickled_data_run_although_they_hold_the_handle_of_others(model, data):
    mujoco.mj_step(model, data, 10)
    other = pickle.loads(pickle.dumps(data))
    assert other.plugin_data[0] == data.plugin_data[0]
    mujoco.mj_step(model, other, 10)
    mujoco.mj_step(model, data, 10)
    assert (other.qpos == data.qpos).all()
    assert other.plugin_data[0] != data.plugin_data[0]
    assert calls_of(lambda: mujoco.mj_step(model, other)) == 0


def test_data_that_come_and_go_leave_no_record(model):
    gc.collect()
    before = TABLE.count(), lives.count()
    for _ in range(200):
        data = mujoco.MjData(model)
        mujoco.mj_step(model, data)
        del data
    gc.collect()
    assert (TABLE.count(), lives.count()) == before


def test_a_rollout_in_threads_gives_what_one_thread_gives(model):
    states = np.zeros((8, mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
    states[:, 1] = np.linspace(-1, 1, 8)
    control = np.full((8, 50, model.nu), 0.3)
    one, _ = rollout.rollout(model, mujoco.MjData(model), states, control)
    pool = [mujoco.MjData(model) for _ in range(2)]
    two, _ = rollout.rollout(model, pool, states, control)
    assert (one == two).all()


def test_steps_go_on_while_another_thread_keeps_the_interpreter(model, data):
    """Holding the GIL in C stops every Python callback, and no machine code."""
    holding = ctypes.PyDLL(layout.library()._name).mj_step  # keeps the GIL
    holding.argtypes, holding.restype = (ctypes.c_void_p, ctypes.c_void_p), None
    own = mujoco.MjData(model)
    addresses = layout.address_of(model, "mjModel"), layout.address_of(own, "mjData")
    ends = []
    thread = threading.Thread(target=lambda: ends.append(mujoco.mj_step(model, data, 2000)))
    thread.start()
    for _ in range(2000):
        holding(*addresses)
    thread.join()
    assert ends == [None]
    assert own.time == data.time


# -- distances -----------------------------------------------------------------------------------

SDF = """
<mujoco>
  <extension><plugin plugin="{name}"><instance name="it">
    <config key="radius" value="0.3"/>
  </instance></plugin></extension>
  <asset><mesh name="ball"><plugin instance="it"/></mesh></asset>
  <worldbody>
    <geom type="sphere" size="0.2" pos="0 0 -0.4"/>
    <body><freejoint/><geom type="sdf" mesh="ball"><plugin instance="it"/></geom></body>
  </worldbody>
</mujoco>
"""


class Ball:
    radius: float = engine.attribute(0.5, minimum=0.01)

    def sdf_static_distance(self, point):
        squared = point[0] * point[0] + point[1] * point[1] + point[2] * point[2]
        return squared**0.5 - self.radius

    def sdf_aabb(self):
        return (0.0, 0.0, 0.0, self.radius, self.radius, self.radius)


def test_a_distance_is_the_same_compiled_and_not():
    found = []
    for compiled in (True, False):
        name = unique()
        engine.plugin(name, ("sdf",), compiled=compiled)(Ball)
        model = mujoco.MjModel.from_xml_string(SDF.format(name=name))
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        assert data.ncon
        found.append((model.mesh_vert.tobytes(), data.contact.dist.tobytes()))
    assert found[0] == found[1]


class Sized(Ball):
    """Reads an array of the data, whose length only the model knows."""

    def sdf_distance(self, point, data, instance):
        data.userdata[0] = len(data.qpos)
        return self.sdf_static_distance(point) + 0.0 * data.qpos[len(data.qpos) - 1]


@pytest.mark.usefixtures("_own_cache")
def test_a_distance_reads_lengths_after_the_model_of_the_data_is_gone():
    name = unique()
    engine.plugin(name, ("sdf",), compiled=True)(Sized)
    xml = SDF.format(name=name)
    model = mujoco.MjModel.from_xml_string(xml.replace("<asset>", '<size nuserdata="1"/><asset>'))
    first = copy.copy(model)
    data = mujoco.MjData(first)
    raw = layout.address_of(first, "mjModel")
    library = ctypes.PyDLL(layout.library()._name)
    library.mj_step.argtypes, library.mj_step.restype = (ctypes.c_void_p,) * 2, None
    address = layout.address_of(data, "mjData")
    # As if it had been freed: whoever followed it would see no array at all.
    saved = ctypes.string_at(raw, layout.size_of("mjModel"))
    ctypes.memset(raw, 0, layout.size_of("mjModel"))
    try:
        library.mj_step(layout.address_of(model, "mjModel"), address)
    finally:
        ctypes.memmove(raw, saved, len(saved))
    assert data.ncon
    assert data.userdata[0] == model.nq
