"""When the hooks of a step fire, in which order, at which rate, and what they may ask for."""

from __future__ import annotations

import threading

import pytest

from mjhost import DivergenceError, MujocoEnv, StepReason
from mjhost.callbacks import call_context
from mjhost.callbacks.kinds import KINDS as KIND_TABLE
from mjhost.callbacks.symbols import exported_pointer
from mjhost.env.events import Paused
from tests.env.models import EXPLOSIVE, PENDULUM, state_of
from tests.env.plugs import (
    DT,
    EULER,
    KINDS,
    PLUGIN_HOOKS,
    RICH,
    RK4,
    WAIT_S,
    WAYS,
    Boom,
    Fuse,
    neutral,
    own_forward,
    plugin,
    rated,
    run_until,
    state,
    wait_for,
)

INTEGRATORS = ("Euler", "RK4", "implicit", "implicitfast", "discrete")


def logging_plugin(name, log, hooks=PLUGIN_HOOKS, rate_hz=None):
    made = {hook: lambda *_, hook=hook: log.append(f"{name}.{hook}") for hook in hooks}
    return plugin(name, rate_hz=rate_hz, **made)


# -- order and count -----------------------------------------------------------------------------


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize(("xml", "evaluations"), [(EULER, 1), (RK4, 4)])
def test_the_hooks_of_a_step_run_in_the_documented_order(xml, evaluations, single):
    log = []
    plugins = [
        logging_plugin("A", log),
        logging_plugin("R", log, ("pre_step", "post_step"), rate_hz=1 / DT),
        logging_plugin("B", log),
    ]
    with MujocoEnv(xml, plugins=plugins) as env:
        env.callbacks.add("control", lambda _m, _d: log.append("callback"))
        env.every(1 / DT, lambda _m, _d: log.append("task"))
        env.step()
        log.clear()
        if single:
            env.step()
            env.step()
        else:
            env.step(2)
        step = [
            *("R.pre_step", "A.pre_step", "B.pre_step"),
            *evaluations * ("A.passive", "B.passive", "A.control", "B.control", "callback"),
            *("A.last_stage", "B.last_stage", "A.post_step", "B.post_step"),
            *("R.post_step", "task"),
        ]
        assert log == 2 * step


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_pre_and_post_step_run_once_per_step_whatever_the_integrator(integrator, way):
    log = []
    xml = RICH.format(integrator=integrator)
    with MujocoEnv(xml, plugins=[logging_plugin("P", log)], realtime=None) as env:
        WAYS[way](env, 6)
        counts = [log.count(f"P.{hook}") for hook in PLUGIN_HOOKS]
        evaluations = 24 if integrator == "RK4" else 6
        assert counts == [6, evaluations, evaluations, 6, 6]
        timings = env.plugin_statistics[0].hooks
        assert [timings[hook].calls for hook in PLUGIN_HOOKS] == counts


def test_control_sees_the_state_that_its_evaluation_starts_from():
    times = []
    with MujocoEnv(RK4, plugins=[plugin(control=lambda _m, d: times.append(d.time))]) as env:
        env.step()
        env.step()
    assert times[:4] == pytest.approx([0, DT / 2, DT / 2, DT])
    assert times[4:] == pytest.approx([DT, 1.5 * DT, 1.5 * DT, 2 * DT])


@pytest.mark.parametrize("way", WAYS)
def test_hooks_that_write_nothing_change_nothing(way):
    log = []
    with MujocoEnv(EULER, plugins=[logging_plugin("P", log)], realtime=None) as env:
        with env.access() as (_model, data):
            data.ctrl[:] = 0.3
        for kind in KINDS:
            env.callbacks.add(kind, neutral(kind, lambda *_: None))
        WAYS[way](env, 40)
        found = state(env)
    with MujocoEnv(EULER) as plain:  # without a gain callback the engine's gain would be another
        with plain.access() as (_model, live):
            live.ctrl[:] = 0.3
        plain.callbacks.add("act_gain", lambda _m, _d, _i: 1.0)
        plain.step(40)
        assert found == state(plain)


def test_an_env_whose_plugins_override_no_hook_installs_nothing_and_steps_in_chunks(monkeypatch):
    seen = []
    inert = plugin("Inert", load=lambda _m, _d: None, reset=lambda: seen.append("reset"))
    before = {name: exported_pointer(kind).value for name, kind in KIND_TABLE.items()}
    with MujocoEnv(PENDULUM, plugins=[inert]) as env:
        assert env._core.hooks is None
        chunks = []
        advance = env._stepper.advance
        monkeypatch.setattr(
            env._stepper, "advance", lambda hosted, n: (chunks.append(n), advance(hosted, n))
        )
        env.step(5000)
        assert sum(chunks) == 5000
        assert max(chunks) > 1
        after = {name: exported_pointer(kind).value for name, kind in KIND_TABLE.items()}
        assert after == before
        env.reset()
        assert seen == ["reset"]


def test_only_the_overridden_engine_hooks_are_installed():
    control, passive = (exported_pointer(KIND_TABLE[name]) for name in ("control", "passive"))
    before = control.value, passive.value
    with MujocoEnv(PENDULUM, plugins=[plugin(passive=lambda _m, _d: None)]):
        assert control.value == before[0]
        assert passive.value != before[1]
    assert (control.value, passive.value) == before


# -- where they fire -----------------------------------------------------------------------------


FIRING = {
    "step": (lambda env: env.step(), {"control": 1, "passive": 1, "pre_step": 1}),
    "forward": (lambda env: env.forward(), {"control": 1, "passive": 1, "pre_step": 0}),
    "inverse": (lambda env: env.inverse(), {"control": 0, "passive": 1, "pre_step": 0}),
    "own mj_forward": (own_forward, {"control": 1, "passive": 1, "pre_step": 0}),
}


@pytest.mark.parametrize("entry", FIRING)
def test_hooks_fire_in_the_engine_calls_that_are_the_users(entry):
    log = []
    call, expected = FIRING[entry]
    with MujocoEnv(EULER, plugins=[logging_plugin("P", log)]) as env:
        call(env)
        call(env)
    assert {hook: log.count(f"P.{hook}") / 2 for hook in expected} == expected


def test_hooks_do_not_fire_in_refreshes_of_the_host(tmp_path):
    model = tmp_path / "model.xml"
    model.write_text(EULER)
    log, fuse = [], Fuse()
    plugins = [logging_plugin("P", log), plugin("Fuse", post_step=fuse)]
    with MujocoEnv(model, plugins=plugins) as env:
        for kind in KINDS:
            env.callbacks.add(kind, neutral(kind, lambda *_: log.append("callback")))
        env.step()
        log.clear()
        env.reset()
        env.reset(model=True)
        env.reload()
        env.load(PENDULUM)
        env.reload(model, options="keep")
        env.reload_plugins()
        env.apply_runtime_options({"gravity": (0, 0, -1)})
        env.apply_runtime_options({"integrator": "RK4"})
        env.clear_fault()
        with env.access():
            pass
        assert log == []
        env.step()  # what was added takes effect at a boundary
        fuse.armed = True
        log.clear()
        with pytest.raises(Boom):
            env.step()
        # One step with its four evaluations, and nothing for the way back.
        assert log.count("P.passive") == 4
        assert log.count("P.pre_step") == 1
        fuse.armed = False
        log.clear()
    assert log == []


def test_hooks_do_not_fire_in_the_way_back_from_a_divergence():
    log = []

    def push(_model, data):
        log.append(call_context().entry)
        data.qfrc_applied[0] = 1e25

    with MujocoEnv(EXPLOSIVE, plugins=[plugin(control=push)]) as env:
        with pytest.raises(DivergenceError):
            env.step(20)
        assert set(log) == {"step"}  # the engine evaluates a step twice that it resets in


# -- rates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_the_hooks_of_a_rate_run_at_their_exact_steps(way):
    log = []
    with MujocoEnv(EULER, plugins=[rated(log, 100)], realtime=None) as env:
        WAYS[way](env, 16)
    # post_step at the boundary, pre_step in the step that follows it.
    assert log == [(hook, step) for step in (5, 10, 15) for hook in ("post", "pre")]


def test_a_rate_is_exact_across_resets_reloads_and_changes_of_the_timestep():
    log = []
    with MujocoEnv(EULER, plugins=[rated(log, 100)]) as env:
        env.step(7)
        env.reset()
        env.step(6)
        assert log == [("post", 5), ("pre", 5)] * 2
        log.clear()
        env.step(4)
        env.reload_plugins()
        env.step(1)
        assert log == [("post", 10)]
        log.clear()
        env.reload()
        env.step(5)
        assert log == [("post", 5)]
        log.clear()
        env.reset()
        env.apply_runtime_options({"timestep": 0.0025})
        env.step(9)
        assert [round(step * DT, 6) for _, step in log] == [0.01, 0.01, 0.02, 0.02]


def test_a_task_removed_inside_a_hook_leaves_the_others_exact():
    log = []
    with MujocoEnv(EULER) as env:
        token = env.every(50, lambda *_: None)
        env.every(20, lambda _m, d: log.append(round(d.time / DT)))

        def remove(_model, data):
            if round(data.time / DT) == 5:
                token.remove()

        env.callbacks.add("control", remove)
        env.step(80)
    assert log == [25, 50, 75]


def test_a_rated_hook_holds_up_access_to_its_plugin():
    held = []

    def hook(_model, _data):
        held.append(env._plugging.host.lock.held_by_me())

    with MujocoEnv(EULER, plugins=[plugin(rate_hz=250, pre_step=hook, post_step=hook)]) as env:
        env.step(5)
    assert held == 4 * [True]


# -- what hooks may ask for ----------------------------------------------------------------------


@pytest.mark.parametrize("way", ["step(n)", "running"])
def test_a_pause_requested_in_a_hook_stops_at_the_boundary_of_its_step(way):
    def pause(_model, data):
        if round(data.time / DT) == 5:
            env.request_pause()

    with MujocoEnv(EULER, plugins=[plugin(pre_step=pause)], realtime=None) as env:
        if way == "running":
            run_until(env, 4)
            with env.events.subscribe() as events:
                env.resume()
                wait_for(events, Paused)
            assert env.info.step_count == 6
        else:
            result = env.step(100)
            assert (result.completed, result.reason) == (6, StepReason.PAUSE_REQUESTED)


@pytest.mark.parametrize("way", WAYS)
def test_a_call_put_off_by_a_hook_runs_at_the_boundary_outside_of_dispatch(way):
    seen, called = [], threading.Event()

    def soon():
        seen.append((env.info.step_count, env._plugging.host.lock.held_by_me()))
        env.apply_runtime_options({"density": 1.0})
        called.set()

    def ask(_model, data):
        if round(data.time / DT) == 3:
            env.call_soon(soon)

    with MujocoEnv(EULER, plugins=[plugin(control=ask)], realtime=None) as env:
        WAYS[way](env, 10)
        assert called.wait(WAIT_S)  # after a step() it is the physics thread that calls
        assert env.info.step_count == 10
        if way != "step()":
            assert seen == [(4, False)]
        assert env.runtime_options.density == 1.0


def test_state_written_by_hooks_is_the_state_of_the_run():
    def stop(_model, data):
        data.qvel[:] = 0.0

    with MujocoEnv(PENDULUM, plugins=[plugin(post_step=stop)]) as env:
        start = state_of(env.model, env.data)
        env.step(10)
        assert env.data.qvel.tolist() == [0.0]
        assert start != state_of(env.model, env.data)
