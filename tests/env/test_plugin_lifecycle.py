"""Generations of plugins in an env: load, failure, the way back from a failed swap, close."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

from mjhost import (
    ModelLoadError,
    MujocoEnv,
    PluginGeneration,
)
from mjhost.errors import PluginConfigError, PluginLoadError
from tests.env.models import BALL
from tests.env.plugs import (
    EULER,
    WAIT_S,
    Boom,
    drive,
    failures,
    plugin,
    run_until,
    state,
    undisturbed,
)

NOTHING = {"control": lambda _m, _d: None, "passive": lambda _m, _d: None}


def told(log, name, *methods, **more):
    """A plugin that writes down which method of its life ran."""
    made = {method: lambda *_, method=method: log.append(f"{name}.{method}") for method in methods}
    return plugin(name, **{**made, **more})


LIFE = ("load", "activate", "close", "reset")


# -- loading -------------------------------------------------------------------------------------


def test_each_phase_of_a_load_goes_through_all_plugins_before_the_next_one_begins():
    log = []
    plugins = [told(log, name, *LIFE) for name in "AB"]
    with MujocoEnv(EULER, plugins=plugins) as env:
        assert log == ["A.load", "B.load", "A.activate", "B.activate"]
        assert [handle.name for handle in env.plugins] == ["A", "B"]
        log.clear()
    assert log == ["B.close", "A.close"]


def test_the_old_plugins_are_gone_before_the_new_ones_are_made():
    log = []
    plugins = [told(log, name, *LIFE) for name in "AB"]
    with MujocoEnv(EULER, plugins=plugins) as env:
        old = weakref.ref(env._plugging.host._ready_entry("A", None).adapter.plugin)
        log.clear()
        for reload in (env.reload, env.reload_plugins):
            reload()
            assert log == [
                *("B.close", "A.close"),
                *("A.load", "B.load", "A.activate", "B.activate"),
            ]
            log.clear()
        gc.collect()
        assert old() is None


def test_generations_count_loads_and_are_never_used_again():
    with MujocoEnv(EULER, plugins=[plugin(**NOTHING)]) as env:
        seen = [env.generations]
        for change in (env.reload, env.reload_plugins, env.reload, env.reload_plugins):
            change()
            seen.append(env.generations)
        with pytest.raises(ModelLoadError):
            env.reload("<mujoco><nonsense/></mujoco>")
        seen.append(env.generations)
    assert [(g.model.value, g.plugins.value) for g in seen] == [
        (1, 1),
        (2, 2),
        (2, 3),
        (3, 4),
        (3, 5),
        (3, 5),
    ]


def test_a_reload_hands_the_new_pair_to_the_new_plugins():
    pairs = []

    def note(model, data):
        pairs.append((model, data))

    with MujocoEnv(EULER, plugins=[plugin(load=note, control=note)]) as env:
        env.step()
        env.reload(BALL)
        env.step()
        assert [m.nq for m, _ in pairs] == [2, 2, 7, 7]
        assert pairs[3] == (env.model, env.data)
        pairs.clear()


def test_the_report_of_a_load_tells_of_the_plugins():
    def fail(_model, _data):
        raise PluginLoadError("no such robot")

    plugins = [plugin("Good", **NOTHING), plugin("Bad", load=fail)]
    with MujocoEnv(plugins=plugins) as env:
        report = env.load(EULER).plugins
        assert report.ready == ("Good",)
        assert [(f.name, f.phase) for f in report.failures] == [("Bad", "load")]
        assert "no such robot" in report.failures[0].error
        assert env.reload().plugins.plugin_generation == PluginGeneration(2)


# -- plugins that fail ---------------------------------------------------------------------------


def raising(*_):
    raise Boom("at once")


@pytest.mark.parametrize("phase", ["load", "activate"])
def test_a_plugin_that_fails_to_load_stays_visible_and_receives_nothing(phase):
    log = []
    hooks = ("pre_step", "control", "passive", "last_stage", "post_step", "on_pause", "on_resume")
    bad = told(log, "Bad", *hooks, "reset", **{phase: raising})
    good = told(log, "Good", "control")
    with MujocoEnv(EULER, plugins=[bad, good], realtime=None) as env:
        record, other = env.plugin_statistics
        assert (record.name, record.state, other.state) == ("Bad", "failed", "ready")
        assert "at once" in record.error
        env.step(3)
        env.reset()
        env.forward()
        run_until(env, 5)
        assert set(log) == {"Good.control"}
        handle = env.plugins[0]
        with pytest.raises(PluginLoadError, match="at once"), handle.access():
            pass
        assert handle.statistics().state == "failed"
        with env.events.subscribe() as events:
            env.reload_plugins()
            assert failures(events) == [("Bad", phase)]


FAILING_SOURCES = {
    "a missing module": "no_such_module_of_plugins:Wind",
    "a missing file": "nowhere/plugin.py",
    "a wrong key": {"type": "PLUGIN", "config": {"sped": 3}},
    "a wrong type": {"type": "PLUGIN", "config": {"speed": "fast"}},
    "a module that raises": "RAISING",
}
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


def files(folder):
    good, bad = folder / "wind.py", folder / "raising.py"
    good.write_text(SOURCE)
    bad.write_text("raise RuntimeError('at import')\n")
    return good, bad


def resolved(source, good, bad):
    if isinstance(source, dict):
        return {**source, "type": str(good)}
    return str(bad) if source == "RAISING" else source


@pytest.mark.parametrize("problem", FAILING_SOURCES)
def test_a_plugin_that_cannot_be_made_stays_visible_and_the_rest_runs(problem, tmp_path):
    good, bad = files(tmp_path)
    calls = []
    counting = plugin("Counting", control=lambda _m, _d: calls.append(1))
    sources = [resolved(FAILING_SOURCES[problem], good, bad), counting]
    with MujocoEnv(EULER, plugins=sources) as env:
        failed, ready = env.plugin_statistics
        assert (failed.state, ready.state) == ("failed", "ready")
        assert failed.error
        env.step(3)
        assert len(calls) == 3


@pytest.mark.parametrize("problem", FAILING_SOURCES)
def test_a_plugin_that_cannot_be_made_ends_reload_plugins_and_changes_nothing(problem, tmp_path):
    good, bad = files(tmp_path)
    log = []
    with MujocoEnv(EULER, plugins=[told(log, "Old", "close", control=drive)]) as env:
        env.step(7)
        handles, generations, before = env.plugins, env.generations, state(env)
        with env.events.subscribe() as events:
            with pytest.raises(PluginLoadError):
                env.reload_plugins([resolved(FAILING_SOURCES[problem], good, bad)])
            assert list(events.drain()) == []
        assert (env.generations, state(env), log) == (generations, before, [])
        with handles[0].access() as old:
            assert old.name == "Old"
        env.step(13)
        assert state(env) == undisturbed(20)


def test_a_wrong_configuration_names_key_type_and_value(tmp_path):
    good, _ = files(tmp_path)
    with MujocoEnv(EULER) as env, pytest.raises(PluginConfigError) as caught:
        env.reload_plugins([{"type": str(good), "config": {"speed": "fast"}}])
    for word in ("speed", "float", "'fast'"):
        assert word in str(caught.value)


@pytest.mark.parametrize("hook", ["reset", "close", "save_state", "load_state", "statistics"])
def test_failures_in_the_life_of_a_plugin_are_recorded_and_stop_no_other(hook):
    log = []
    hooks = {"save_state": dict, "load_state": lambda _state: None, hook: raising}
    bad, good = plugin("Bad", **hooks), told(log, "Good", "reset", "close", "load")
    with MujocoEnv(EULER, plugins=[bad, good]) as env, env.events.subscribe() as events:
        if hook == "reset":
            with pytest.raises(Boom):
                env.reset()
        else:
            env.reset()
        log.clear()
        report = env.reload_plugins()
        assert log == ["Good.close", "Good.load"]
        assert env.step(3).completed == 3
        recorded = {
            "reset": ("Bad", "reset") in failures(events),
            "close": env.plugin_diagnostics.of("close").count == 1,
            "save_state": "save_state" in report.not_carried.get("Bad", ""),
            "load_state": "load_state" in report.not_carried.get("Bad", ""),
            "statistics": True,  # no hook of a plugin: a method of this name is its own affair
        }
        assert recorded[hook]


def test_a_reset_whose_plugins_fail_is_complete_and_tells_every_plugin():
    log = []
    plugins = [plugin("Bad", reset=raising, control=drive), told(log, "Good", "reset")]
    with MujocoEnv(EULER, plugins=plugins) as env:
        start = state(env)
        env.step(5)
        with pytest.raises(Boom):
            env.reset()
        assert log == ["Good.reset"]
        assert state(env) == start
        assert env.info.step_count == 0
        env.step(20)
        assert state(env) == undisturbed(20)


@pytest.mark.parametrize("operation", ["reload", "reload_plugins"])
def test_an_interrupt_in_a_close_surfaces_and_leaves_an_env_that_works(operation):
    armed = [True]

    def close():
        if armed:
            armed.clear()
            raise KeyboardInterrupt

    calls = []
    hooks = {"close": close, "control": lambda _m, _d: calls.append(1)}
    with MujocoEnv(EULER, plugins=[plugin(**hooks)]) as env:
        env.callbacks.add("passive", lambda _m, _d: calls.append(2))
        env.step()
        with pytest.raises(KeyboardInterrupt):
            getattr(env, operation)()
        assert env.phase == "operational"
        calls.clear()
        env.step(2)
        assert calls.count(2) == 2
        getattr(env, operation)()
        calls.clear()
        env.step(2)
        assert calls == [2, 1, 2, 1]


def test_an_interrupt_in_a_close_at_the_end_is_made_up_for_by_a_second_close():
    armed = [True]

    def close():
        if armed:
            armed.clear()
            raise KeyboardInterrupt

    env = MujocoEnv(EULER, plugins=[plugin(close=close, **NOTHING)])
    with pytest.raises(KeyboardInterrupt):
        env.close()
    env.close()
    assert env.phase == "closed"


# -- the way back from a failed swap -------------------------------------------------------------


def fail_once(monkeypatch, owner, method):
    """Makes a step of the next swap raise, after it was done."""
    genuine = getattr(owner, method)

    def failing(*arguments, **named):
        monkeypatch.setattr(owner, method, genuine)
        genuine(*arguments, **named)
        raise Boom("in the swap")

    monkeypatch.setattr(owner, method, failing)


SWAP = {
    "swap": ("_lifecycle", "_swap_in"),
    "options": ("_lifecycle", "_apply_options"),
    "plugins": ("_plugging", "_plug"),
}


@pytest.mark.parametrize("step", SWAP)
def test_a_swap_that_fails_puts_the_old_pair_back_with_plugins_that_start_anew(step, monkeypatch):
    log = []
    probe = told(log, "Probe", "load", "close", control=drive)
    part, method = SWAP[step]
    with MujocoEnv(EULER, plugins=[probe]) as env:
        env.step(7)
        pair, before = (env.model, env.data), state(env)
        log.clear()
        fail_once(monkeypatch, getattr(env, part), method)
        with pytest.raises(Boom):
            env.reload(BALL)
        assert (env.model, env.data) == pair
        assert state(env) == before
        assert env.phase == "operational"
        assert "in the swap" in env.info.load_error
        assert env.info.step_count == 7
        loads = 1 + (step == "plugins")  # of the new set, and of the old one again
        assert log == ["Probe.close", "Probe.load"] * loads
        # A new ownership epoch each time: the pair that failed, and the old one again.
        assert env.generations.model.value == 3
        assert env.generations.plugins.value == 1 + loads
        env.step(13)
        assert state(env) == undisturbed(20)


@pytest.mark.parametrize("step", SWAP)
def test_a_swap_that_fails_while_running_leaves_the_old_simulation_running(step, monkeypatch):
    stepped = threading.Event()

    def control(model, data):
        drive(model, data)
        stepped.set()

    part, method = SWAP[step]
    with MujocoEnv(EULER, plugins=[plugin(control=control)], realtime=None) as env:
        env.resume()
        fail_once(monkeypatch, getattr(env, part), method)
        with pytest.raises(Boom):
            env.reload(BALL)
        stepped.clear()
        assert stepped.wait(WAIT_S)
        env.pause()
        assert state(env) == undisturbed(env.info.step_count)


def test_a_model_that_does_not_compile_leaves_the_plugins_alone():
    log = []
    with MujocoEnv(EULER, plugins=[told(log, "Probe", *LIFE, control=drive)]) as env:
        env.step(7)
        log.clear()
        handle = env.plugins[0]
        with pytest.raises(ModelLoadError):
            env.reload("<mujoco><worldbody><body/><geom/></worldbody></mujoco>")
        assert log == []
        with handle.access():
            pass
        env.step(13)
        assert state(env) == undisturbed(20)
