"""Plugins that are replaced in a live env, the handles on them, and what they leave: nothing."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
import weakref
from pathlib import Path

import pytest

from mjhost import (
    EnvClosedError,
    LockOrderError,
    MujocoEnv,
    StaleGenerationError,
)
from mjhost.env.events import PluginsReloaded
from mjhost.errors import PluginLoadError, ScopeClosedError
from tests.env.models import PENDULUM
from tests.env.plugs import (
    EULER,
    RK4,
    WAIT_S,
    Boom,
    Fuse,
    drive,
    plugin,
    run_until,
    state,
    undisturbed,
)

NOTHING = {"control": lambda _m, _d: None, "passive": lambda _m, _d: None}


SOURCE = """
from dataclasses import dataclass
from mjhost.plugins import Plugin

class Wind(Plugin):
    @dataclass
    class Config:
        speed: float = 1.0

    def passive(self, model, data):
        data.qfrc_passive[0] += self.config.speed
"""


def told(log, name, *methods, **more):
    """A plugin that writes down which method of its life ran."""
    made = {method: lambda *_, method=method: log.append(f"{name}.{method}") for method in methods}
    return plugin(name, **{**made, **more})


# -- reload_plugins ------------------------------------------------------------------------------


def test_reload_plugins_leaves_model_data_time_options_and_counters():
    with MujocoEnv(EULER, plugins=[plugin("Drive", control=drive)]) as env:
        env.apply_runtime_options({"density": 1.0})
        env.step(7)
        pair, options, before, info = (
            (env.model, env.data),
            env.runtime_options,
            state(env),
            env.info,
        )
        with env.events.subscribe() as events:
            report = env.reload_plugins()
            (event,) = events.drain()
        assert (env.model, env.data) == pair
        assert env.runtime_options == options
        assert state(env) == before
        after = env.info
        assert after.generations.model == info.generations.model
        assert after.generations.plugins == report.plugin_generation
        assert (after.step_count, after.session_time, after.load_count) == (
            info.step_count,
            info.session_time,
            info.load_count,
        )
        assert isinstance(event, PluginsReloaded)
        assert (event.ready, event.failed) == (("Drive",), ())


def test_reload_plugins_carries_state_where_both_sides_have_it():
    seen = {}

    def counting(name, *, carries):
        count = [0]

        def control(_model, _data):
            count[0] += 1
            seen[name] = count[0]

        carrying = {
            "save_state": lambda: {"count": count[0]},
            "load_state": lambda saved: count.__setitem__(0, saved["count"]),
        }
        return plugin(name, control=control, **(carrying if carries else {}))

    with MujocoEnv(
        EULER, plugins=[counting("A", carries=True), counting("B", carries=True)]
    ) as env:
        env.step(5)
        report = env.reload_plugins([counting("A", carries=True), counting("B", carries=False)])
        assert report.carried == ("A",)
        assert set(report.not_carried) == {"B"}
        env.step()
        assert seen == {"A": 6, "B": 1}


def test_an_edited_source_is_executed_anew_and_no_bit_of_the_state_is_lost(tmp_path):
    path = tmp_path / "wind.py"
    path.write_text(SOURCE)
    with MujocoEnv(EULER, plugins=[str(path)]) as env:
        env.step(5)
        before = state(env)
        path.write_text(SOURCE.replace("+= self.config.speed", "-= self.config.speed"))
        env.reload_plugins()
        assert state(env) == before
        env.forward()
        assert env.data.qfrc_passive[0] == pytest.approx(
            -1.0 - env.model.dof_damping[0] * env.data.qvel[0]
        )
        path.write_text("this is no Python")
        generation = env.generations.plugins
        with pytest.raises(PluginLoadError):
            env.reload_plugins()
        assert env.generations.plugins == generation
        env.step(3)


def test_reload_plugins_gives_a_pre_step_hook_where_there_was_none_and_back():
    log = []
    with MujocoEnv(EULER) as env:
        env.step(2)
        env.reload_plugins([told(log, "P", "pre_step")])
        env.step(2)
        env.step()
        assert log == ["P.pre_step"] * 3
        env.reload_plugins([])
        env.step(2)
        env.step()
        assert log == ["P.pre_step"] * 3
        assert env._core.hooks is None


@pytest.mark.parametrize("operation", ["reload_plugins", "reload"])
def test_plugins_are_replaced_while_the_simulation_runs(operation):
    generations, stepped = [], threading.Event()

    def control(_model, data):
        generations.append(env.generations.plugins.value)
        drive(_model, data)
        stepped.set()

    with MujocoEnv(EULER, realtime=None) as env:
        env.reload_plugins([plugin("Drive", control=control)])
        env.resume()
        for _ in range(5):
            stepped.clear()
            assert stepped.wait(WAIT_S)
            getattr(env, operation)()
            stepped.clear()
            assert stepped.wait(WAIT_S)
            assert not env.info.paused
        env.pause()
        steps, found = env.info.step_count, state(env)
        assert generations == sorted(generations)
        assert set(generations) == {2, 3, 4, 5, 6, 7}
        assert env.plugin_diagnostics.total == 0
    if operation == "reload_plugins":
        assert found == undisturbed(steps)


def test_a_hanging_load_holds_up_stepping_and_nothing_is_lost():
    loading, go_on = threading.Event(), threading.Event()

    def load(_model, _data):
        loading.set()
        assert go_on.wait(WAIT_S)

    with MujocoEnv(EULER, plugins=[plugin("Drive", control=drive)], realtime=None) as env:
        env.resume()
        slow = [plugin("Drive", control=drive), plugin("Slow", load=load)]
        thread = threading.Thread(target=env.reload_plugins, args=(slow,))
        thread.start()
        assert loading.wait(WAIT_S)
        steps = env._core.hosted.steps
        assert env.phase == "operational"
        assert env.generations.plugins.value == 2
        assert env._core.hosted.steps == steps
        go_on.set()
        thread.join(WAIT_S)
        env.pause()
        assert env.info.step_count >= steps
        assert [handle.name for handle in env.plugins] == ["Drive", "Slow"]
        assert state(env) == undisturbed(env.info.step_count)


# -- handles -------------------------------------------------------------------------------------


def test_a_handle_is_good_for_its_generation_only():
    made = plugin("Probe", **NOTHING)
    env = MujocoEnv(EULER, plugins=[made])
    for change in (env.reload, env.reload_plugins):
        (handle,) = env.plugins
        with handle.access() as proxy:
            assert proxy.name == "Probe"
        change()
        with pytest.raises(StaleGenerationError), handle.access():
            pass
        with pytest.raises(StaleGenerationError):
            handle.statistics()
        with pytest.raises(ScopeClosedError):
            proxy.name  # noqa: B018 - using it is what is refused
    (handle,) = env.plugins
    env.close()
    for use in (handle.access().__enter__, handle.statistics, lambda: env.plugins):
        with pytest.raises(EnvClosedError):
            use()


def test_an_access_scope_holds_up_stepping_and_reloads_but_not_other_threads_reading():
    with MujocoEnv(EULER, plugins=[plugin("Probe", **NOTHING)], realtime=None) as env:
        env.resume()
        with env.plugins[0].access():
            env_info = []
            reader = threading.Thread(target=lambda: env_info.append(env.generations))
            reader.start()
            reader.join(WAIT_S)
            assert env_info
            before = env._core.hosted.steps
            with pytest.raises(LockOrderError):
                env.reload_plugins()
            assert env._core.hosted.steps == before
        env.pause()
        assert env.info.step_count >= before


# -- leaks ---------------------------------------------------------------------------------------


def resident_mb():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@pytest.mark.slow
@pytest.mark.parametrize("reloads", [50, pytest.param(1000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("running", [False, True])
def test_reloads_of_models_and_plugins_keep_nothing(reloads, running):
    old, fuse = [], Fuse()

    def load(model, data):
        old.append(weakref.ref(data))
        old.append(weakref.ref(model))

    plugins = [
        plugin("A", load=load, control=drive, save_state=dict, load_state=lambda _s: None),
        plugin("B", rate_hz=100, pre_step=fuse, post_step=fuse),
        plugin("C", passive=lambda _m, _d: None, post_step=fuse),
    ]

    def once(env, k):
        host = env._plugging.host
        old.extend(weakref.ref(host._ready_entry(name, None).adapter.plugin) for name in "ABC")
        env.reload_plugins()
        old.extend(weakref.ref(host._ready_entry(name, None).adapter.plugin) for name in "ABC")
        env.reload((EULER, RK4, PENDULUM)[k % 2])
        if not running:
            fuse.armed = k % 3 == 0
            with contextlib.suppress(Boom):
                env.step(5)
            fuse.armed = False

    with MujocoEnv(EULER, plugins=plugins, realtime=None, running=running) as env:

        def round_of(count):
            for k in range(count):
                once(env, k)
            gc.collect()
            kept = [ref() for ref in old if ref() is not None]
            assert [each for each in kept if not is_current(env, each)] == []
            old.clear()

        round_of(100)  # until the allocator has found its size
        resident, threads = resident_mb(), threading.active_count()
        for _ in range(reloads // 50):
            round_of(50)
        assert threading.active_count() == threads
        assert resident_mb() - resident < 5.0
        assert env.plugin_diagnostics.total == 0


def is_current(env, thing):
    host = env._plugging.host
    current = [host._ready_entry(name, None).adapter.plugin for name in "ABC"]
    return any(thing is each for each in (env.model, env.data, *current))


SETS = {
    "control": {"control": drive},
    "passive": {"passive": lambda _m, _d: None},
    "post_step": {"post_step": lambda _m, _d: None},
    "rated": {"rate_hz": 100, "pre_step": lambda _m, _d: None, "post_step": lambda _m, _d: None},
    "nothing": {},
}


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize("hooks", SETS)
def test_what_a_reload_replaces_is_gone_at_once_without_the_cyclic_collector(hooks, running):
    made = plugin("Probe", **SETS[hooks])
    gc.collect()
    gc.disable()
    try:
        with MujocoEnv(EULER, plugins=[made], realtime=None) as env:
            env.callbacks.add("sensor", lambda _m, _d, _stage: None)
            env.step(3)
            env.step()
            env.step()
            if running:
                run_until(env, 20)
            core, host = env._core, env._plugging.host
            pair = [weakref.ref(env.model), weakref.ref(env.data), weakref.ref(core.hosted.state)]
            probe = weakref.ref(host._ready_entry("Probe", None).adapter.plugin)
            env.reload_plugins()
            assert probe() is None
            probe = weakref.ref(host._ready_entry("Probe", None).adapter.plugin)
            env.step()
            env.reload()
            assert [ref() for ref in (*pair, probe)] == [None] * 4
    finally:
        gc.enable()
