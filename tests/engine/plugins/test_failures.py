"""What a method raises, from every method and every kind of engine call."""

import copy
import gc
import logging
import pickle
import traceback

import mujoco
import numpy as np
import pytest
from mujoco import rollout

from mjhost import engine
from mjhost.engine import failures, registry
from mjhost.errors import EnginePluginError

framed_only = pytest.mark.parametrize("way", ["framed"], indirect=True)
bare_only = pytest.mark.parametrize("way", ["bare"], indirect=True)


class Switch:
    """Which method raises what; nothing at first, so that models compile."""

    def __init__(self):
        self.method = None
        self.error = ValueError
        self.after = 0
        self.calls = []

    def hit(self, method):
        self.calls.append(method)
        if method == self.method:
            self.after -= 1
            if self.after < 0:
                raise self.error("too late")


@pytest.fixture
def switch():
    return Switch()


@pytest.fixture
def logging_apart(tmp_path, monkeypatch):
    """Lets the engine write its log where nobody looks."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def faulty(name, switch, way):
    """A registered plugin, all capabilities but SDF, each method of which may raise."""

    class Faulty:
        state_size = 1
        kp: float = 1.0

        def sensor_size(self, model, instance, sensor):
            switch.hit("sensor_size")
            return 1

        def init(self, model, data, instance):
            switch.hit("init")
            return "memo"

        def destroy(self, data, instance):
            switch.hit("destroy")

        def copy(self, model, target, source, instance):
            switch.hit("copy")

        def reset(self, model, data, instance):
            switch.hit("reset")

        def compute(self, model, data, instance, capability):
            switch.hit("compute")

        def advance(self, model, data, instance):
            switch.hit("advance")
            self.state[0] += 1

        def actuator_act_dot(self, model, data, instance):
            switch.hit("actuator_act_dot")

        def visualize(self, model, data, option, scene, instance):
            switch.hit("visualize")

    engine.plugin(name, ("actuator", "sensor", "passive"))(Faulty)
    return name


def alive(name):
    """How many instances of a plugin there are."""
    return len(registry.plugin(name).lives)


def scene(name, option="", count=1):
    """A model that uses every capability; ``count`` instances."""
    instances = "".join(f'<instance name="i{k}"/>' for k in range(count))
    passive = "".join(
        f'<body><joint type="slide"/><geom size=".1" contype="0" conaffinity="0"/>'
        f'<plugin instance="i{k}"/></body>'
        for k in range(count)
    )
    return (
        f"<mujoco>{option}"
        f'<extension><plugin plugin="{name}">{instances}</plugin></extension><worldbody>{passive}'
        '<body><joint name="j" type="slide"/><geom size=".1" contype="0" conaffinity="0"/></body>'
        '</worldbody><actuator><plugin joint="j" instance="i0" actdim="1"/></actuator>'
        '<sensor><plugin instance="i0"/></sensor></mujoco>'
    )


@pytest.fixture
def model(faulty, way):
    return mujoco.MjModel.from_xml_string(scene(faulty))


def is_as_good_as_new(model, data):
    """Whether nothing of a failure is left: no engine stack, and the same as new data."""
    copied = copy.copy(data)
    for each in (copied, data):
        mujoco.mj_resetData(model, each)
    fresh = mujoco.MjData(model)
    for each in (copied, data, fresh):
        mujoco.mj_step(model, each)
    return copied.qpos.tobytes() == data.qpos.tobytes() == fresh.qpos.tobytes()


@pytest.mark.parametrize("method", ["compute", "advance", "actuator_act_dot"])
@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicitfast"])
def test_a_failure_in_a_step_is_the_steps(faulty, switch, raises, method, integrator):
    option = f'<option integrator="{integrator}"/>'
    model = mujoco.MjModel.from_xml_string(scene(faulty, option))
    data = mujoco.MjData(model)
    switch.method, switch.after = method, (2 if integrator == "RK4" and method != "advance" else 0)
    error = raises(lambda: mujoco.mj_step(model, data), data)
    assert (error.plugin, error.instance, error.method) == (faulty, 0, method)
    assert "'i0' (0)" in str(error)
    assert isinstance(error.__cause__, ValueError)
    assert "hit" in [frame.name for frame in traceback.extract_tb(error.__cause__.__traceback__)]
    switch.method = None
    assert is_as_good_as_new(model, data)


def test_a_failure_in_reset_is_the_resets(model, switch, raises):
    data = mujoco.MjData(model)
    data.plugin_state[:] = 5.0
    switch.method = "reset"
    error = raises(lambda: mujoco.mj_resetData(model, data), data)
    assert error.method == "reset"
    assert data.plugin_state.tolist() == [0.0]
    switch.method = None
    assert is_as_good_as_new(model, data)


@pytest.mark.parametrize("method", ["init", "copy"])
def test_a_failure_while_copying_is_the_copys(
    faulty, model, switch, raises, method, *, way, logging_apart
):
    data = mujoco.MjData(model)
    switch.method = method
    before = alive(faulty)
    if method == "init" and way == "bare":
        with pytest.raises(mujoco.FatalError):
            copy.copy(data)
        with pytest.raises(EnginePluginError, match="init"):
            engine.check()
    else:
        kept = []
        error = raises(lambda: kept.append(copy.copy(data)), kept[0] if kept else None)
        assert error.method == method
        kept.clear()
    switch.method = None
    assert alive(faulty) == before
    assert is_as_good_as_new(model, data)


def test_a_failure_while_copying_into_data_is_the_copys(model, switch, raises):
    source, target = mujoco.MjData(model), mujoco.MjData(model)
    switch.method = "copy"
    error = raises(lambda: mujoco.mj_copyData(target, model, source), target)
    assert error.method == "copy"
    switch.method = None
    assert is_as_good_as_new(model, target)


@framed_only
@pytest.mark.parametrize("method", ["init", "reset"])
def test_making_data_raises_what_the_plugin_raised(faulty, switch, method):
    model = mujoco.MjModel.from_xml_string(scene(faulty))
    switch.method, before = method, alive(faulty)
    with pytest.raises(EnginePluginError) as info:
        mujoco.MjData(model)
    assert info.value.method == method
    assert isinstance(info.value.__cause__, ValueError)
    assert alive(faulty) == before
    switch.method = None
    assert is_as_good_as_new(model, mujoco.MjData(model))


def test_earlier_instances_are_destroyed_when_a_later_init_fails(faulty, switch, logging_apart):
    model = mujoco.MjModel.from_xml_string(scene(faulty, count=3))
    switch.method, switch.after = "init", 2
    switch.calls.clear()
    before = alive(faulty)
    with pytest.raises((EnginePluginError, mujoco.FatalError)):
        mujoco.MjData(model)
    while failures.take_any():
        pass
    assert switch.calls.count("init") == 3
    assert switch.calls.count("destroy") == 2
    assert alive(faulty) == before
    switch.method = None
    mujoco.mj_step(model, mujoco.MjData(model))


def test_a_failing_destroy_does_not_stop_the_others(faulty, way, switch):
    model = mujoco.MjModel.from_xml_string(scene(faulty, count=3))
    data = mujoco.MjData(model)
    switch.method = "destroy"
    before = alive(faulty) - 3
    del data
    gc.collect()
    found = []
    while (error := failures.take_any()) is not None:
        found.append((error.method, error.instance))
    assert sorted(found) == [("destroy", 0), ("destroy", 1), ("destroy", 2)]
    assert alive(faulty) == before


@pytest.mark.parametrize("method", ["init", "compute", "advance", "reset", "sensor_size"])
def test_a_failure_while_compiling_is_the_compilers_error(faulty, way, switch, method):
    switch.method, before = method, alive(faulty)
    if way == "bare" and method not in {"init", "sensor_size"}:
        # Without frames nothing can stop the compiler there; the failure is kept.
        mujoco.MjModel.from_xml_string(scene(faulty))
        with pytest.raises(EnginePluginError, match=method):
            engine.check()
    else:
        with pytest.raises(ValueError, match=rf"(?s){faulty}.*{method}.*ValueError: too late"):
            mujoco.MjModel.from_xml_string(scene(faulty))
        assert failures.recent[-1].method == method
    assert alive(faulty) == before
    switch.method = None
    model = mujoco.MjModel.from_xml_string(scene(faulty))
    assert is_as_good_as_new(model, mujoco.MjData(model))


def test_a_failure_while_unpickling_never_ends_the_process(model, switch, way):
    pickled = pickle.dumps(mujoco.MjData(model))
    for method in ("init", "reset"):
        switch.method = method
        data = pickle.loads(pickled)
        switch.method = None
        with pytest.raises(EnginePluginError, match=method):
            engine.check(data)
        assert is_as_good_as_new(model, data)


def test_a_kept_failure_is_raised_by_the_next_call_that_can(model, switch, way):
    pickled = pickle.dumps(mujoco.MjData(model))
    switch.method = "reset"
    data = pickle.loads(pickled)
    switch.method = None
    if way == "framed":
        with pytest.raises(EnginePluginError, match="reset"):
            mujoco.mj_step(model, data)
    else:
        mujoco.mj_step(model, data)
        with pytest.raises(EnginePluginError, match="reset"):
            engine.check(data)
    mujoco.mj_step(model, data)


def test_a_failure_in_visualize_is_kept(model, switch):
    """The binding does not wait for errors there."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    drawn = mujoco.MjvScene(model, maxgeom=50)
    option, camera = mujoco.MjvOption(), mujoco.MjvCamera()
    switch.method = "visualize"
    category = mujoco.mjtCatBit.mjCAT_ALL.value
    mujoco.mjv_updateScene(model, data, option, None, camera, category, drawn)
    switch.method = None
    with pytest.raises(EnginePluginError, match="visualize"):
        engine.check(data)
    mujoco.mjv_updateScene(model, data, option, None, camera, category, drawn)


def test_a_failure_in_finite_differences_is_theirs(model, switch, raises):
    data = mujoco.MjData(model)
    size = 2 * model.nv + model.na
    A, B = np.zeros((size, size)), np.zeros((size, model.nu))
    switch.method, switch.after = "compute", 7
    error = raises(lambda: mujoco.mjd_transitionFD(model, data, 1e-6, True, A, B, None, None), data)
    assert error.method == "compute"
    switch.method = None
    assert is_as_good_as_new(model, data)


@pytest.mark.parametrize("threads", [0, 1, 2])
def test_a_failure_in_a_rollout_never_ends_the_process(model, switch, way, threads):
    datas = [mujoco.MjData(model) for _ in range(max(1, threads))]
    states = np.zeros((4, mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
    switch.method, switch.after = "compute", 5
    found = []
    try:
        with rollout.Rollout(nthread=threads) as pool:
            pool.rollout([model] * 4, datas, states, nstep=10)
    except EnginePluginError as error:
        assert (way, threads) == ("framed", 0)
        found.append(error)
    while (error := failures.take_any()) is not None:
        found.append(error)
    assert found
    assert all(error.method == "compute" for error in found)
    switch.method = None
    for data in datas:
        assert is_as_good_as_new(model, data)


@pytest.mark.skipif(mujoco.mj_version() < 4_000_000, reason="batches came with 4.0")
def test_a_failure_in_a_batch_is_that_simulations(model, switch, way):
    batch = pytest.importorskip("mujoco.batch")
    switch.method, switch.after = "compute", 5
    kept = []
    try:
        batch.Batch(model, 4, nthread=2).step(nstep=10)
    except Exception as error:
        assert way == "framed"
        kept.append(error)
        assert "compute" in str(error)
    if way == "bare":
        while (error := failures.take_any()) is not None:
            kept.append(error)
    assert kept
    while failures.take_any():
        pass


@bare_only
def test_the_first_failure_stays_and_nothing_else_runs_until_it_is_taken(faulty, switch):
    model = mujoco.MjModel.from_xml_string(scene(faulty, count=2))
    data = mujoco.MjData(model)
    switch.method = "compute"
    switch.calls.clear()
    mujoco.mj_step(model, data)
    first = failures.pending[data._address]
    assert switch.calls == ["compute"]
    switch.method = "advance"
    mujoco.mj_step(model, data)
    assert failures.pending[data._address] is first
    assert switch.calls == ["compute"]
    switch.method = None
    assert failures.take(data._address) is first
    mujoco.mj_step(model, data)
    assert len(switch.calls) > 1


def test_a_pending_failure_marks_its_data_where_no_number_is(model, monkeypatch):
    data = mujoco.MjData(model)
    before = data.warning.number.tolist()
    failures.park(failures.failure("x", 0, "", "compute", ValueError()), data._address)
    assert data.warning[failures.WARNING].lastinfo == failures.MARK
    assert data.warning.number.tolist() == before
    with pytest.raises(EnginePluginError):
        engine.check(data)
    assert data.warning[failures.WARNING].lastinfo == 0


def test_a_failure_outlives_its_data(model):
    data = mujoco.MjData(model)
    failures.park(failures.failure("x", 0, "", "compute", ValueError()), data._address)
    del data
    gc.collect()
    with pytest.raises(EnginePluginError):
        engine.check()


def test_check_of_one_data_leaves_the_others(model):
    one, two = mujoco.MjData(model), mujoco.MjData(model)
    for data in (one, two):
        failures.park(failures.failure("x", 0, "", "compute", ValueError()), data._address)
    with pytest.raises(EnginePluginError):
        engine.check(one)
    engine.check(one)
    with pytest.raises(EnginePluginError):
        engine.check()
    engine.check()


def test_too_many_failures_are_logged_not_lost(caplog):
    with caplog.at_level(logging.ERROR, logger="mjhost.engine"):
        for _ in range(70):
            failures.park(failures.failure("x", 0, "", "destroy", ValueError()))
    assert len(caplog.records) == 6
    while failures.take_any():
        pass


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_interrupts_and_exits_surface_as_themselves(model, switch, way, kind):
    data = mujoco.MjData(model)
    switch.method, switch.error = "compute", kind
    with pytest.raises(kind) as info:
        mujoco.mj_step(model, data)
        engine.check(data)
    assert "compute" in info.value.__notes__[0]
    switch.method = None
    assert is_as_good_as_new(model, data)


@pytest.mark.parametrize("text", ["%s %n %d", "x" * 5000, "ünïcödé \0 null", ""])
def test_any_message_survives(model, switch, raises, text):
    class Odd(Exception):
        def __init__(self, *_):
            super().__init__(text)

    data = mujoco.MjData(model)
    switch.method, switch.error = "compute", Odd
    error = raises(lambda: mujoco.mj_step(model, data), data)
    assert str(error.__cause__) == text


def test_an_error_that_cannot_be_printed_is_still_an_error(model, switch, raises):
    class Silent(Exception):
        def __str__(self):
            raise RuntimeError("no words")

    data = mujoco.MjData(model)
    switch.method, switch.error = "compute", Silent
    error = raises(lambda: mujoco.mj_step(model, data), data)
    assert error.method == "compute"


@framed_only
@pytest.mark.slow
def test_a_thousand_aborted_steps_leave_nothing(faulty, switch):
    model = mujoco.MjModel.from_xml_string(scene(faulty))
    data = mujoco.MjData(model)
    switch.method = "compute"
    for _ in range(1000):
        with pytest.raises(EnginePluginError):
            mujoco.mj_step(model, data)
    switch.method = None
    assert data.pstack == 0 if hasattr(data, "pstack") else True
    assert is_as_good_as_new(model, data)


@pytest.mark.parametrize("call", ["mj_energyPos", "MjData", "mj_step"])
def test_a_method_may_call_mujoco_and_raise_then(name, model_of, way, call):
    """3.15 forgets who waits for an error when a callback calls the package."""
    broken = []

    @engine.plugin(name, ("passive",))
    class Nested:
        def compute(self, model, data, instance, capability):
            if not broken:
                return
            if call == "mj_energyPos":
                mujoco.mj_energyPos(*other)
            elif call == "MjData":
                mujoco.MjData(other[0])
            else:
                mujoco.mj_step(*other)
            raise ValueError("after a nested call")

    plain = mujoco.MjModel.from_xml_string("<mujoco/>")
    other = plain, mujoco.MjData(plain)
    model = model_of(name)
    data = mujoco.MjData(model)
    broken.append(True)
    for _ in range(20):
        with pytest.raises(EnginePluginError, match="after a nested call"):
            mujoco.mj_step(model, data)
            engine.check(data)
    broken.clear()
    mujoco.mj_step(model, data)


@framed_only
@pytest.mark.parametrize("method", ["init", "sensor_size", "compute", "reset"])
def test_the_compiler_says_a_failure_once(faulty, switch, way, method):
    switch.method = method
    with pytest.raises(ValueError, match="too late") as info:
        mujoco.MjModel.from_xml_string(scene(faulty))
    assert str(info.value).count("too late") == 1
    assert "\n" not in str(info.value)


@framed_only
def test_instances_of_a_refused_compilation_are_destroyed(faulty, switch, way):
    before = alive(faulty)
    switch.method, switch.after = "init", 2
    with pytest.raises(ValueError, match="too late"):
        mujoco.MjModel.from_xml_string(scene(faulty, count=3))
    assert switch.calls.count("init") == 3
    assert switch.calls.count("destroy") == 2
    assert alive(faulty) == before
    assert not registry.plugin(faulty).lives.refused
