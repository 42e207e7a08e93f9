"""Public reports about callbacks, and the hooks in those about reload and real time."""

from __future__ import annotations

import gc
import threading
import time
from itertools import pairwise

import mujoco
import pytest

from mjhost import MujocoEnv, NotPausedError
from mjhost.env.events import StepLimitReached
from mjhost.errors import CallbackSignatureError
from tests.cases.inputs import case_file, copied_case
from tests.cases.test_reload_cases import open_files, resident_mb
from tests.concurrency.support import together
from tests.env.plugs import WAIT_S, plugin, wait_for

INTEGRATORS = {"Euler": 1, "RK4": 4, "implicit": 1, "implicitfast": 1, "discrete": 1}


class Calls:
    """Counts calls and keeps what they were about."""

    def __init__(self):
        self.seen = []

    def __len__(self):
        return len(self.seen)

    def __call__(self, model, data):
        assert model is not None
        assert data is not None
        self.seen.append(data)

    def among(self, *allowed):
        return all(any(data is each for each in allowed) for data in self.seen)


# -- CB ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_plugin", [True, False], ids=["plugin", "callbacks.add"])
def test_hooks_that_are_there_before_the_model_do_not_stop_it_from_loading(as_plugin):
    """CB-01."""
    passive, control = Calls(), Calls()
    hooked = [plugin(passive=passive, control=control)] if as_plugin else []
    with MujocoEnv(plugins=hooked) as env:
        if not as_plugin:
            env.callbacks.add("passive", passive)
            env.callbacks.add("control", control)
        env.load(case_file("CB-01"))
        first = env.data
        env.step(5)
        assert (len(passive), len(control)) == (5, 5)
        env.reload(case_file("CB-01"))
        env.step(5)
        assert (len(passive), len(control)) == (10, 10)
        assert passive.among(first, env.data)
        assert control.among(first, env.data)


@pytest.mark.parametrize("threads", [False, True], ids=["interleaved", "two threads"])
@pytest.mark.parametrize("as_plugin", [True, False], ids=["plugin", "callbacks.add"])
def test_two_simulations_in_one_process_never_run_each_others_controller(
    host_case, threads, as_plugin
):
    """CB-03."""
    calls = Calls(), Calls()
    envs = [
        host_case("CB-03", plugins=[plugin(control=each)] if as_plugin else []) for each in calls
    ]
    if not as_plugin:
        for env, each in zip(envs, calls, strict=True):
            env.callbacks.add("control", each)
    a, b = envs
    if threads:
        together(lambda: [a.step() for _ in range(7)], lambda: [b.step() for _ in range(11)])
    else:
        for k in range(11):
            if k < 7:
                a.step(1)
            b.step(1)
    assert [len(each) for each in calls] == [7, 11]
    assert calls[0].among(a.data)
    assert calls[1].among(b.data)
    a.close()
    b.step(1)
    assert [len(each) for each in calls] == [7, 12]


@pytest.mark.parametrize("single", [True, False])
def test_a_control_callback_may_be_removed_from_inside_and_replaced_between_steps(
    host_case, single
):
    """CB-04."""
    env = host_case("CB-04")
    calls, replaced, replacing = Calls(), Calls(), Calls()

    def step(n):
        if single:
            for _ in range(n):
                env.step()
        else:
            env.step(n)

    def removing(model, data):
        calls(model, data)
        if len(calls) == 3:
            token.remove()

    token = env.callbacks.add("control", removing)
    step(10)
    assert len(calls) == 3
    second = env.callbacks.add("control", replaced)
    step(5)
    second.replace(replacing)
    step(5)
    assert (len(replaced), len(replacing)) == (5, 5)


def test_the_once_per_step_hook_does_not_depend_on_the_integrator(host_case):
    """CB-06."""
    times, before, raw = [], Calls(), Calls()

    def control(model, data):
        raw(model, data)
        times.append(data.time)

    env = host_case("CB-06", plugins=[plugin(pre_step=before, control=control)])
    env.step(10)
    assert (len(before), len(raw)) == (10, 40)
    assert times[:4] == pytest.approx([0.0, 0.001, 0.001, 0.002])
    env.apply_runtime_options({"integrator": "Euler"})
    env.step(10)
    assert (len(before), len(raw)) == (20, 50)
    for integrator, evaluations in INTEGRATORS.items():
        env.apply_runtime_options({"integrator": integrator})
        before.seen.clear()
        raw.seen.clear()
        env.step(10)
        assert (len(before), len(raw)) == (10, 10 * evaluations), integrator


def pushing(torque):
    def passive(_model, data):
        data.qfrc_passive[0] += torque

    return passive


@pytest.mark.parametrize("as_plugin", [True, False], ids=["plugin", "callbacks.add"])
def test_passive_hooks_add_up_and_equal_an_applied_force(host_case, as_plugin):
    """CB-08."""

    def velocity(*torques, applied=0.0, direct=0.0):
        hooks = [plugin(passive=pushing(torque)) for torque in torques]
        env = host_case("CB-08", plugins=hooks if as_plugin else [])
        if not as_plugin:
            for torque in torques:
                env.callbacks.add("passive", pushing(torque))
        with env.access() as (_model, data):
            data.qfrc_applied[0] = applied
            data.qfrc_passive[0] = direct
        env.step(1)
        return env.data.qvel[0]

    expected = velocity(applied=10.0)
    assert expected == pytest.approx(0.07874015748031496)
    assert velocity(10.0) == expected
    assert velocity(5.0, 5.0) == expected
    assert velocity(direct=10.0) == 0.0


def test_a_sensor_callback_of_the_wrong_shape_is_refused_when_it_is_registered(host_case):
    """CB-09."""
    env = host_case("CB-09")
    with pytest.raises(CallbackSignatureError, match=r"sensor.*cannot be called"):
        env.callbacks.add("sensor", [1, 2])
    with pytest.raises(CallbackSignatureError, match=r"sensor.*model, data, stage"):
        env.callbacks.add("sensor", lambda _model, _data: None)
    stages = []
    env.callbacks.add("sensor", lambda _model, _data, stage: stages.append(int(stage)))
    env.step(1)
    assert stages == [1, 2, 3]
    env.apply_runtime_options({"sensor_disabled": True})
    env.step(1)
    assert stages == [1, 2, 3]


# -- RL, with hooks ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reloads",
    [
        pytest.param(40, marks=pytest.mark.slow),
        pytest.param(500, marks=[pytest.mark.slow, pytest.mark.soak]),
    ],
)
def test_repeated_reloads_with_three_hooks_keep_no_file_open_and_no_memory(tmp_path, reloads):
    """RL-02, with its three hooks and no camera."""
    model = copied_case("RL-02", tmp_path) / "model.xml"
    calls = Calls()
    hooks = {"control": calls, "passive": calls, "post_step": calls}
    with MujocoEnv(model, plugins=[plugin(**hooks)]) as env:
        for _ in range(40):
            env.reload(model)
        gc.collect()
        files, resident = open_files(), resident_mb()
        for _ in range(reloads):
            env.reload(model)
            env.step(3)
            assert len(calls) == 9
            calls.seen.clear()
        gc.collect()
        assert open_files() == files
        assert resident_mb() - resident < 10


def median(values):
    return sorted(values)[len(values) // 2]


@pytest.mark.slow
@pytest.mark.parametrize("share", [5, pytest.param(1, marks=pytest.mark.soak)])
def test_resets_and_reloads_of_two_clients_never_hang_while_hooks_run(share):
    """RL-11, with hooks and no camera."""
    took = {"reset": [], "reload": []}

    def client(operation, count):
        for _ in range(count):
            started = time.monotonic()
            try:
                getattr(env, operation)()
            except Exception as error:
                assert "Window" in type(error).__name__, error
            took[operation].append(time.monotonic() - started)

    calls = Calls()
    hooks = {"control": lambda _m, _d: None, "post_step": lambda _m, _d: None, "load": calls}
    with MujocoEnv(case_file("RL-12"), plugins=[plugin(**hooks)], running=True) as env:
        threads = threading.active_count()
        files = open_files()
        together(lambda: client("reset", 500 // share), lambda: client("reload", 200 // share))
        assert threading.active_count() == threads
        assert open_files() == files
        assert env.fault is None
        for durations in took.values():
            assert max(durations) < 2.0
            assert median(durations[-50:]) <= 2 * median(durations[:50]) + 0.02
        assert len(calls) == env.info.load_count


# -- RT, with hooks ------------------------------------------------------------------------------


def test_a_step_asked_for_while_running_is_refused_and_no_step_lacks_its_hook(host_case):
    """RT-05, with a hook."""
    calls, entered, refused = Calls(), threading.Event(), threading.Event()

    def control(model, data):
        calls(model, data)
        if len(calls) == 5:
            entered.set()
            assert refused.wait(WAIT_S)

    env = host_case("RT-05", plugins=[plugin(control=control)], realtime=None)
    env.stop_at(steps=300)
    with env.events.subscribe() as events:
        env.resume()
        assert entered.wait(WAIT_S)
        with pytest.raises(NotPausedError, match="pause"):
            env.step(10)
        refused.set()
        wait_for(events, StepLimitReached)
    assert len(calls) == env.info.step_count == 300


def test_step_runs_exactly_so_many_engine_steps_and_reading_runs_none(host_case):
    """RT-07, with a control hook as the independent observer."""
    calls = Calls()
    env = host_case("RT-07", plugins=[plugin(control=calls)])
    for _ in range(10):
        with env.access() as (_model, data):
            data.ctrl[:] = 0.1
        env.info, env.runtime_options, env.data.qpos.copy()
        env.step(1)
    assert len(calls) == env.info.step_count == 10
    expected = 0.0
    for _ in range(10):
        expected += env.model.opt.timestep
    assert env.data.time == expected


@pytest.mark.slow
@pytest.mark.parametrize("factor", [2.0, 10.0, None], ids=["2", "10", "unbound"])
@pytest.mark.parametrize(("rate", "gaps"), [(100, {10}), (30, {33, 34})])
def test_the_rate_of_a_plugin_is_one_of_simulation_time_at_any_factor(
    host_case, factor, rate, gaps
):
    """RT-08, with a plugin that has a rate."""
    steps = []

    def post_step(_model, data):
        steps.append(round(data.time / 0.001))

    env = host_case("RT-08", plugins=[plugin(rate_hz=rate, post_step=post_step)], realtime=factor)
    assert env.model.opt.timestep == 0.001
    with env.events.subscribe() as events:
        env.stop_at(steps=1000)
        env.resume()
        wait_for(events, StepLimitReached)
    assert len(steps) == rate
    assert {after - before for before, after in pairwise(steps)} == gaps
    assert steps[0] in gaps


def test_a_reload_never_hands_old_data_to_a_hook(host_case):
    """RL-14, with hooks."""
    pairs = []

    def control(model, data):
        pairs.append((model.nbody, data.xpos.shape[0], mujoco.mj_stateSize(model, 1)))

    env = host_case("RL-14", "small.xml", plugins=[plugin(control=control)])
    env.step(2)
    env.reload(case_file("RL-14", "big.xml"))
    env.step(2)
    assert pairs[-1][:2] == (201, 201)
    assert all(bodies == rows for bodies, rows, _ in pairs)
