"""Plugins and callbacks of several envs, changed, looked at and stepped by several threads."""

from __future__ import annotations

import threading
import time

import mujoco
import pytest

from mjhost import (
    FaultError,
    LoadingWindowError,
    LockOrderError,
    MujocoEnv,
    NotLoadedError,
    NotPausedError,
    QueueFullError,
    StaleGenerationError,
)
from mjhost.callbacks.kinds import KINDS as TABLE
from mjhost.callbacks.symbols import exported_pointer
from tests.concurrency.support import LIMIT_S, together
from tests.env.plugs import (
    EULER,
    RK4,
    WAIT_S,
    Boom,
    drive,
    neutral,
    plugin,
    state,
    undisturbed,
)

REFUSALS = (
    LoadingWindowError,
    NotPausedError,
    StaleGenerationError,
    QueueFullError,
    NotLoadedError,
)


def own_controller(number, log):
    """Control that is an env's own: another amplitude, and a note of whose data it saw."""

    def control(_model, data):
        data.ctrl[1] = number + data.qvel[1]
        log.append(data)

    return plugin(f"Own{number}", control=control, passive=lambda _m, d: log.append(d))


def expected_of(number, steps):
    """The run of the same controller in an env that is alone."""
    with MujocoEnv(EULER, plugins=[own_controller(number, [])]) as env:
        env.step(steps)
        return state(env)


@pytest.mark.slow
@pytest.mark.parametrize("single", [True, False], ids=["step()", "step(n)"])
@pytest.mark.parametrize("count", [2, 8])
def test_envs_in_threads_of_their_own_never_meet(count, single):
    steps = 400
    before = {name: exported_pointer(kind).value for name, kind in TABLE.items()}
    logs = [[] for _ in range(count)]
    envs = [MujocoEnv(EULER, plugins=[own_controller(k, logs[k])]) for k in range(count)]

    def run(env):
        if single:
            for _ in range(steps):
                env.step()
        else:
            env.step(steps)

    together(*(lambda env=env: run(env) for env in envs))
    for k, (env, log) in enumerate(zip(envs, logs, strict=True)):
        assert len(log) == 2 * steps
        assert all(data is env.data for data in log)
        assert state(env) == expected_of(k, steps)
    closed, left = envs[::2], envs[1::2]
    together(*(env.close for env in closed), *(lambda env=env: run(env) for env in left))
    for log, env in zip(logs[1::2], left, strict=True):
        assert len(log) == 4 * steps
        env.close()
    assert {name: exported_pointer(kind).value for name, kind in TABLE.items()} == before


@pytest.mark.slow
def test_physics_threads_of_several_envs_run_their_own_hooks_while_others_come_and_go():
    logs = [[] for _ in range(3)]
    envs = [MujocoEnv(EULER, plugins=[own_controller(k, logs[k])], realtime=None) for k in range(3)]

    def come_and_go():
        for k in range(30):
            with MujocoEnv(RK4, plugins=[own_controller(9, [])]) as env:
                env.step(3)
                env.reload(EULER)
                env.step(1 + k % 2)

    for env in envs:
        env.resume()
    together(come_and_go, come_and_go)
    for k, env in enumerate(envs):
        env.pause()
        steps = env.info.step_count
        assert steps > 0
        assert env.fault is None
        assert all(data is env.data for data in logs[k])
        assert state(env) == expected_of(k, steps)
        env.close()


@pytest.mark.slow
def test_envs_whose_hooks_step_each_other_end_with_an_error_and_never_deadlock():
    found, both = [], threading.Barrier(2, timeout=WAIT_S)
    envs = []

    def cross(other):
        def control(_model, _data):
            both.wait()
            try:
                envs[other].step()
            except LockOrderError as error:
                found.append(error)

        return plugin(control=control)

    envs += [MujocoEnv(EULER, plugins=[cross(1)]), MujocoEnv(EULER, plugins=[cross(0)])]
    together(*(lambda env=env: [env.step(), env.step(2)] for env in envs), limit_s=30)
    assert len(found) == 6
    for env in envs:
        assert env.info.step_count == 3
        env.close()


@pytest.mark.slow
def test_a_hook_at_a_rate_never_runs_inside_an_access_scope_of_another_thread():
    inside, met = threading.Event(), []

    def hook(_model, _data):
        if inside.is_set():
            met.append(1)

    rated = plugin("Rated", rate_hz=250, pre_step=hook, post_step=hook)
    always = plugin("Always", pre_step=hook, control=hook, passive=hook, post_step=hook)
    with MujocoEnv(EULER, plugins=[rated, always], realtime=None) as env:
        env.every(100, lambda _m, _d: None)
        env.resume()
        for handle in 60 * env.plugins:
            with handle.access():
                inside.set()
                for _ in range(200):
                    threading.Event().is_set()  # a moment in which the other thread could run
                inside.clear()
        env.pause()
        assert env.info.step_count > 0
    assert met == []


@pytest.mark.slow
def test_a_waiting_access_scope_gets_its_turn_within_a_slice():
    with MujocoEnv(EULER, plugins=[plugin(control=drive)], realtime=None) as env:
        env.resume()
        (handle,) = env.plugins
        waits = []
        for _ in range(100):
            asked = time.monotonic()
            with handle.access():
                waits.append(time.monotonic() - asked)
        env.pause()
        assert sorted(waits)[len(waits) // 2] < 0.02


class Storm:
    """Threads that do everything to one env until time is up."""

    def __init__(self, env, seconds):
        self.env = env
        self.until = time.monotonic() + seconds
        self.done = {}

    def client(self, name, operation):
        def run():
            while time.monotonic() < self.until:
                try:
                    operation(self.env)
                except REFUSALS:
                    pass
                except FaultError:
                    self.env.clear_fault()
                except Boom:
                    pass
                self.done[name] = self.done.get(name, 0) + 1

        return run


def use_handles(env):
    for handle in env.plugins:
        handle.statistics()
        with handle.access() as proxy:
            assert proxy.name


def change_callbacks(env):
    tokens = [env.callbacks.add(k, neutral(k, lambda *_: None)) for k in ("passive", "sensor")]
    tokens[0].replace(neutral("passive", lambda *_: None))
    for token in tokens:
        token.remove()


def change_tasks(env):
    env.every(200, lambda _m, _d: None).remove()


def own_forward(env):
    with env.access() as (model, data):
        mujoco.mj_forward(model, data)


CLIENTS = {
    "reload": lambda env: env.reload(EULER),
    "reload_plugins": lambda env: env.reload_plugins(),
    "reset": lambda env: env.reset(),
    "options": lambda env: env.apply_runtime_options({"density": 1.0}),
    "handles": use_handles,
    "callbacks": change_callbacks,
    "tasks": change_tasks,
    "pause and step": lambda env: (env.pause(), env.step(3), env.resume()),
    "forward": lambda env: (env.forward(), env.inverse()),
    "own forward": own_forward,
    "reading": lambda env: (env.info, env.plugin_statistics, env.plugin_diagnostics),
    "soon": lambda env: env.call_soon(lambda: None),
}


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [2, pytest.param(60, marks=pytest.mark.soak)])
@pytest.mark.parametrize("failing", [False, True])
def test_everything_at_once_ends_in_typed_outcomes_and_an_env_that_works(seconds, failing):
    calls = [0]

    def post_step(_model, _data):
        calls[0] += 1
        if failing and calls[0] % 97 == 0:
            raise Boom("now and then")

    plugins = [
        plugin("Drive", control=drive, save_state=dict, load_state=lambda _s: None),
        plugin("Rated", rate_hz=100, pre_step=lambda _m, _d: None, post_step=lambda _m, _d: None),
        plugin("Probe", passive=lambda _m, _d: None, post_step=post_step),
    ]
    with MujocoEnv(EULER, plugins=plugins, realtime=None) as env:
        storm = Storm(env, seconds)
        env.resume()
        together(*(storm.client(*each) for each in CLIENTS.items()), limit_s=LIMIT_S + seconds)
        assert set(storm.done) == set(CLIENTS)
        failing = False
        env.pause()
        env.reload(EULER)
        assert env.fault is None
        assert len(env.callbacks) == 0
        env.reload_plugins([plugin("Drive", control=drive)])
        env.step(40)
        assert state(env) == undisturbed(40)
