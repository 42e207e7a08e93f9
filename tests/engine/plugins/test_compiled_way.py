"""``compiled=True`` behind the same trampolines: machine code first, Python for what it cannot."""

import pickle

import mujoco
import numpy as np
import pytest
from mujoco import rollout

from mjhost import engine
from mjhost.engine import failures, registry
from mjhost.errors import EnginePluginError

pytest.importorskip("numba")
pytestmark = pytest.mark.slow


def spring(name, factor, *, compiled=True):
    class Spring:
        stiffness: float = 10.0
        state_size = 2

        def compute(self, model, data, instance, capability):
            if data.qpos[0] > 100.0:
                raise ValueError("too far")
            self.state[1] += 1
            data.qfrc_passive[0] -= factor * self.stiffness * (data.qpos[0] - 1.0)

        def advance(self, model, data, instance):
            self.state[0] += model.opt.timestep

    engine.plugin(name, ("passive",), compiled=compiled)(Spring)


@pytest.fixture
def model(name, model_of):
    spring(name, 1.0)
    return model_of(name, stiffness="40")


def test_both_ways_give_the_same_bits(name, model, model_of):
    spring(name + ".python", 1.0, compiled=False)
    other = model_of(name + ".python", stiffness="40")
    one, two = mujoco.MjData(model), mujoco.MjData(other)
    mujoco.mj_step(model, one, 200)
    mujoco.mj_step(other, two, 200)
    assert one.qpos.tobytes() == two.qpos.tobytes()
    assert one.plugin_state.tobytes() == two.plugin_state.tobytes()
    assert one.plugin_state.tolist() == [pytest.approx(0.4), 200.0]


def test_what_a_compiled_method_raises_comes_with_its_traceback(model):
    data = mujoco.MjData(model)
    data.qpos[0] = 1000.0
    for _ in range(3):
        with pytest.raises(EnginePluginError) as info:
            mujoco.mj_step(model, data)
        assert isinstance(info.value.__cause__, ValueError)
        assert str(info.value.__cause__) == "too far"
        assert data.time == 0.0
    data.qpos[0] = 0.0
    mujoco.mj_step(model, data)
    assert data.time > 0.0


def test_unpickled_data_use_records_of_their_own(model):
    source = mujoco.MjData(model)
    mujoco.mj_step(model, source, 5)
    pickled = pickle.dumps(source)
    one, two = pickle.loads(pickled), pickle.loads(pickled)
    del source
    for data in (one, two):
        mujoco.mj_step(model, data, 5)
    reference = mujoco.MjData(model)
    mujoco.mj_step(model, reference, 10)
    assert one.qpos.tobytes() == two.qpos.tobytes() == reference.qpos.tobytes()
    assert one.plugin_state.tolist() == reference.plugin_state.tolist()


def test_a_reload_replaces_machine_code(name, model):
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert data.qfrc_passive[0] == pytest.approx(40.0)
    spring(name, 2.0)
    assert registry.plugin(name).generation == 2
    mujoco.mj_forward(model, data)
    assert data.qfrc_passive[0] == pytest.approx(80.0)
    spring(name, 3.0, compiled=False)
    mujoco.mj_forward(model, data)
    assert data.qfrc_passive[0] == pytest.approx(120.0)
    spring(name, 4.0)
    mujoco.mj_forward(model, data)
    assert data.qfrc_passive[0] == pytest.approx(160.0)


def test_nothing_compiled_runs_while_a_failure_is_pending(model, monkeypatch):
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    failures.park(failures.failure("x", 0, "", "compute", ValueError()), data._address)
    before = data.plugin_state.copy()
    with pytest.raises(EnginePluginError):
        mujoco.mj_forward(model, data)
    assert data.plugin_state.tolist() == before.tolist()
    mujoco.mj_forward(model, data)
    assert data.plugin_state[1] == before[1] + 1


def test_a_failure_on_a_worker_is_kept(model):
    datas = [mujoco.MjData(model) for _ in range(2)]
    spec = mujoco.mjtState.mjSTATE_FULLPHYSICS
    start = np.zeros((4, mujoco.mj_stateSize(model, spec)))
    start[2, 1] = 1000.0
    with rollout.Rollout(nthread=2) as pool:
        pool.rollout([model] * 4, datas, start, nstep=10)
    with pytest.raises(EnginePluginError, match="too far"):
        engine.check()
    while failures.take_any():
        pass


def test_what_cannot_be_compiled_leaves_the_name_free(name, model_of):
    with pytest.raises(engine.NotCompilableError, match="test_compiled_way.py"):

        @engine.plugin(name, ("passive",), compiled=True)
        class Unknown:
            def compute(self, model, data, instance, capability):
                data.qposs[0] = 1.0

    spring(name, 1.0)
    assert mujoco.MjData(model_of(name)).time == 0.0
