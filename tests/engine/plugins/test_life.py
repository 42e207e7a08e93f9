"""The life of an instance: init, reset, copy, destroy, and addresses that come back."""

import copy
import pickle

import mujoco
import numpy as np
import pytest

from mjhost import engine
from mjhost.engine import lives, registry


def recording(name, capabilities=("passive",), **methods):
    """Registers a plugin whose methods are logged."""
    log = []

    class Recorded:
        state_size = 2

        def init(self, model, data, instance):
            log.append("init")
            return [instance]

        def destroy(self, data, instance):
            log.append(("destroy", self.memo))

        def compute(self, model, data, instance, capability):
            log.append(("compute", self.memo))

        def reset(self, model, data, instance):
            log.append(("reset", self.state.tolist()))
            self.state[0] = 1.0

        def advance(self, model, data, instance):
            log.append(("advance", data.time))
            self.state[1] += 1

    for method, function in methods.items():
        setattr(Recorded, method, function)
    engine.plugin(name, capabilities)(Recorded)
    return log


def test_compiling_runs_one_whole_life(name, xml_of, way):
    log = recording(name)
    mujoco.MjModel.from_xml_string(xml_of(name))
    assert [entry if entry == "init" else entry[0] for entry in log] == [
        "init", "reset", "compute", "advance", "destroy",
    ]  # fmt: skip
    assert not len(registry.plugin(name).lives)


def test_reset_finds_zeros_whatever_was_there(name, model_of, way):
    log = recording(name)
    model = model_of(name)
    data = mujoco.MjData(model)
    data.plugin_state[:] = [9.0, np.nan]
    log.clear()
    mujoco.mj_resetData(model, data)
    assert log == [("reset", [0.0, 0.0])]
    assert data.plugin_state.tolist() == [1.0, 0.0]


def test_state_is_zero_without_a_reset_method(name, model_of, way):
    recording(name, reset=None)
    model = model_of(name)
    data = mujoco.MjData(model)
    assert data.plugin_state.tolist() == [0.0, 0.0]
    data.plugin_state[:] = 5.0
    mujoco.mj_resetData(model, data)
    assert data.plugin_state.tolist() == [0.0, 0.0]


def test_advance_comes_after_integration(name, model_of, way):
    log = recording(name)
    model = model_of(name)
    data = mujoco.MjData(model)
    log.clear()
    mujoco.mj_step(model, data)
    assert log[-1] == ("advance", pytest.approx(model.opt.timestep))
    assert data.plugin_state.tolist() == [1.0, 1.0]


def test_a_memo_belongs_to_one_data(name, model_of, way):
    memos = []

    def compute(self, model, data, instance, capability):
        memos.append(self.memo)

    recording(name, compute=compute)
    model = model_of(name)
    one, two = mujoco.MjData(model), mujoco.MjData(model)
    memos.clear()
    mujoco.mj_forward(model, one)
    mujoco.mj_forward(model, two)
    mujoco.mj_forward(model, one)
    assert memos[0] is memos[2]
    assert memos[0] is not memos[1]


def test_destroy_sees_the_memo_and_frees_it(name, model_of, way):
    log = recording(name)
    model = model_of(name)
    data = mujoco.MjData(model)
    log.clear()
    del data
    assert log == [("destroy", [0])]
    assert not len(registry.plugin(name).lives)


@pytest.mark.parametrize("how", ["copy.copy", "mj_copyData"])
def test_a_copy_gets_a_memo_of_its_own(name, model_of, way, how):
    memos = {}

    def compute(self, model, data, instance, capability):
        memos[data._address] = self.memo

    log = recording(name, compute=compute)
    model = model_of(name)
    source = mujoco.MjData(model)
    source.plugin_state[:] = [4.0, 5.0]
    if how == "copy.copy":
        target = copy.copy(source)
    else:
        target = mujoco.MjData(model)
        mujoco.mj_copyData(target, model, source)
    assert target.plugin_state.tolist() == [4.0, 5.0]
    for data in (source, target):
        mujoco.mj_forward(model, data)
    assert memos[source._address] is not memos[target._address]
    del source, target, data
    assert log.count("init") == sum(entry[0] == "destroy" for entry in log)


def test_copy_makes_the_targets_memo_from_the_source(name, model_of, way):
    memos = {}

    def init(self, model, data, instance):
        return {"made by": "init"}

    def copied(self, model, target, source, instance):
        assert self.memo == {"made by": "init"}
        return {"made by": "copy", "times": (source.time, target.time)}

    def compute(self, model, data, instance, capability):
        memos[data._address] = self.memo

    recording(name, init=init, copy=copied, compute=compute)
    model = model_of(name)
    source = mujoco.MjData(model)
    source.time = 3.0
    target = copy.copy(source)
    mujoco.mj_forward(model, target)
    mujoco.mj_forward(model, source)
    assert memos[target._address] == {"made by": "copy", "times": (3.0, 3.0)}
    assert memos[source._address] == {"made by": "init"}


def test_unpickled_data_have_a_life_of_their_own(name, model_of, way):
    memos = {}

    def compute(self, model, data, instance, capability):
        memos[data._address] = self.memo
        self.state[0] += 1

    recording(name, compute=compute)
    model = model_of(name)
    source = mujoco.MjData(model)
    mujoco.mj_step(model, source)
    target = pickle.loads(pickle.dumps(source))
    assert target.plugin_state.tolist() == source.plugin_state.tolist()
    before = source.plugin_state.copy()
    mujoco.mj_step(model, target)
    assert source.plugin_state.tolist() == before.tolist()
    assert target.plugin_state[0] == before[0] + 1
    assert memos[source._address] is not memos[target._address]
    del source
    mujoco.mj_step(model, target)
    mujoco.mj_resetData(model, target)
    assert target.plugin_state.tolist() == [1.0, 0.0]


def test_an_address_that_comes_back_brings_nothing_of_the_old_data(name, model_of, way):
    memos = []

    def init(self, model, data, instance):
        return object()

    def compute(self, model, data, instance, capability):
        memos.append((data._address, self.memo, float(self.kp), len(data.qpos)))

    recording(name, init=init, compute=compute, __annotations__={"kp": float}, kp=1.0)
    extra = '<body><freejoint/><geom size="1"/></body>'
    models = [model_of(name, kp="1"), model_of(name, kp="2", inner=""), model_of(name, kp="3")]
    big = mujoco.MjSpec.from_string("<mujoco/>")
    del big, extra
    addresses = set()
    for turn in range(50):
        model = models[turn % 3]
        data = mujoco.MjData(model)
        memos.clear()
        mujoco.mj_forward(model, data)
        ((address, memo, kp, size),) = memos
        assert address == data._address
        assert kp == turn % 3 + 1
        assert size == model.nq
        addresses.add(address)
        del data, memo
    assert len(addresses) < 50
    assert not len(registry.plugin(name).lives)


def test_data_that_died_without_a_word_leave_nothing(name, model_of, way):
    """The engine forgets an instance when it does not finish making the data: 3.15 does."""
    memos = []

    def compute(self, model, data, instance, capability):
        memos.append(self.memo)

    recording(name, compute=compute)
    model = model_of(name)
    data = mujoco.MjData(model)
    address = data._address
    stale = lives._lives_at[address]
    ((owner, instance),) = stale
    before = owner.known(address, instance)
    owner.begin(model._address, address, instance)
    assert owner.known(address, instance) is not before
    assert len(registry.plugin(name).lives) == 1
    mujoco.mj_forward(model, data)


def test_data_without_a_record_get_one_at_first_use(name, model_of, way):
    log = recording(name)
    model = model_of(name)
    data = mujoco.MjData(model)
    lives.forget(data._address)
    log.clear()
    mujoco.mj_step(model, data)
    assert log[0] == "init"
    assert ("compute", [0]) in log


def test_two_instances_are_told_apart(name, way):
    seen = set()

    def compute(self, model, data, instance, capability):
        seen.add((instance, self.kp, tuple(self.bodies)))

    recording(name, compute=compute, __annotations__={"kp": float}, kp=1.0)
    instances = "".join(
        f'<instance name="i{k}"><config key="kp" value="{k + 1}"/></instance>' for k in range(2)
    )
    bodies = "".join(
        f'<body><joint type="slide"/><geom size=".1"/><plugin instance="i{k}"/></body>'
        for k in range(2)
    )
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><extension><plugin plugin="{name}">{instances}</plugin></extension>'
        f"<worldbody>{bodies}</worldbody></mujoco>"
    )
    seen.clear()
    mujoco.mj_forward(model, mujoco.MjData(model))
    assert seen == {(0, 1.0, (1,)), (1, 2.0, (2,))}


def test_a_shared_instance_computes_once(name, way):
    calls = []

    def compute(self, model, data, instance, capability):
        calls.append(self.sensors.tolist())

    recording(name, ("sensor",), compute=compute, sensor_size=1)
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><extension><plugin plugin="{name}"><instance name="one"/></plugin></extension>'
        '<sensor><plugin instance="one"/><plugin instance="one"/></sensor></mujoco>'
    )
    calls.clear()
    mujoco.mj_forward(model, mujoco.MjData(model))
    assert calls == [[0, 1]]


def test_sizes_may_depend_on_the_configuration(name, model_of, way):
    asked = []

    def state_size(self, model, instance):
        return self.n

    def sensor_size(self, model, instance, sensor):
        asked.append(sensor)
        return 2 * self.n

    recording(
        name,
        ("sensor",),
        state_size=state_size,
        sensor_size=sensor_size,
        __annotations__={"n": int},
        n=2,
    )
    model = model_of(name, "sensor", n="3")
    assert (model.npluginstate, model.nsensordata) == (3, 6)
    assert set(asked) == {0}
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data)


def test_recompiling_keeps_state_and_makes_new_records(name, xml_of, way):
    log = recording(name)
    spec = mujoco.MjSpec.from_string(xml_of(name))
    model = spec.compile()
    data = mujoco.MjData(model)
    data.plugin_state[1] = 8.0
    spec.worldbody.add_body().add_geom(size=[0.1, 0, 0])
    log.clear()
    new_model, new_data = spec.recompile(model, data)
    assert "init" in log
    mujoco.mj_forward(new_model, new_data)


@pytest.mark.slow
def test_visualize_gets_option_and_scene(name, model_of, way):
    seen = []

    def visualize(self, model, data, option, scene, instance):  # noqa: PLR0917
        seen.append((option.label, scene.maxgeom, scene.ngeom))

    recording(name, visualize=visualize)
    model = model_of(name)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    scene = mujoco.MjvScene(model, maxgeom=50)
    option, camera = mujoco.MjvOption(), mujoco.MjvCamera()
    option.label = 3
    mujoco.mjv_updateScene(
        model, data, option, None, camera, mujoco.mjtCatBit.mjCAT_ALL.value, scene
    )
    assert seen
    assert seen[0][:2] == (3, 50)
