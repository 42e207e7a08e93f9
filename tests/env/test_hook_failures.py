"""What remains of a step in which a hook raises, and whose failure it is."""

from __future__ import annotations

import math

import mujoco
import pytest

from mjhost import DivergenceError, FaultError, FaultKind, MujocoEnv
from mjhost.env.events import FaultRaised, StepLimitReached
from tests.env.models import EXPLOSIVE, PENDULUM
from tests.env.plugs import (
    DT,
    EULER,
    PLUGIN_HOOKS,
    RATED_HOOKS,
    RK4,
    SITES,
    WAYS,
    Boom,
    Fuse,
    at_site,
    failures,
    own_forward,
    plugin,
    run_into_fault,
    run_until,
    state,
    undisturbed,
    wait_for,
)

# -- a hook that raises --------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["step(n)", "step()"])
@pytest.mark.parametrize("xml", [EULER, RK4], ids=["Euler", "RK4"])
@pytest.mark.parametrize("site", [site for site in SITES if site != "callback act_gain"])
def test_a_hook_that_raises_leaves_the_state_before_its_step(site, xml, way):
    fuse, name = Fuse(), site.split()[-1]
    with at_site(site, fuse, xml) as env, env.events.subscribe() as events:
        WAYS[way](env, 7)
        before, fuse.armed = state(env), True
        with pytest.raises(Boom) as caught:
            WAYS[way](env, 5)
        assert state(env) == before
        assert env.info.step_count == 7
        assert env.info.paused
        assert env.fault is None
        assert any("step 8" in note for note in caught.value.__notes__)
        of_plugin = site in (*PLUGIN_HOOKS, *RATED_HOOKS)
        assert env.plugin_diagnostics.total == fuse.blown * of_plugin
        assert env.plugin_diagnostics.of(name).count == fuse.blown * of_plugin
        assert failures(events) == [("Probe", name)] * of_plugin
        fuse.armed = False
        WAYS[way](env, 13)
        assert state(env) == undisturbed(20, xml)
        assert env.info.step_count == 20
        assert fuse.blown == 1


@pytest.mark.parametrize("way", ["step(n)", "step()"])
def test_a_gain_callback_that_raises_leaves_the_state_before_its_step(way):
    fuse, calm = Fuse(), Fuse()
    with at_site("callback act_gain", fuse) as env, at_site("callback act_gain", calm) as other:
        for each in (env, other):
            each.data.ctrl[0] = 0.5
            WAYS[way](each, 7)
        before, fuse.armed = state(env), True
        with pytest.raises(Boom):
            WAYS[way](env, 5)
        assert state(env) == before
        fuse.armed = False
        WAYS[way](env, 13)
        other.step(13)
        assert state(env) == state(other)


def test_step_notes_how_many_steps_were_completed():
    calls = []

    def fail_in_fifth(_model, _data):
        calls.append(1)
        if len(calls) == 5:
            raise Boom("fifth")

    with MujocoEnv(EULER, plugins=[plugin(post_step=fail_in_fifth)]) as env:
        with pytest.raises(Boom, match="fifth") as caught:
            env.step(10)
        notes = " ".join(caught.value.__notes__)
        assert "completed=4" in notes
        assert "'Probe'" in notes
        assert "post_step" in notes
        assert env.info.step_count == 4


@pytest.mark.parametrize("site", SITES)
def test_a_hook_that_raises_under_the_physics_thread_becomes_a_fault_that_names_it(site):
    fuse = Fuse()
    of_plugin, name = site in (*PLUGIN_HOOKS, *RATED_HOOKS), site.split()[-1]
    with at_site(site, fuse) as env, env.events.subscribe() as events:
        env.step(3)
        before, fuse.armed = state(env), True
        fault = run_into_fault(env)
        assert fault == env.fault
        assert (fault.plugin, fault.hook) == (("Probe", name) if of_plugin else (None, None))
        kind = FaultKind.TASK if site == "task" else FaultKind.CALLBACK
        assert fault.kind is (FaultKind.HOOK if of_plugin else kind)
        assert name in fault.source
        assert fault.step == 4
        assert fault.sim_time == pytest.approx(3 * DT)
        assert "Boom: blown" in fault.message
        assert fault.error_type.endswith("Boom")
        assert "in __call__" in fault.traceback
        assert env.info.paused
        assert state(env) == before
        assert failures(events) == [("Probe", name)] * of_plugin
        for ask in (
            env.step,
            env.resume,
            lambda: env.advance(1),
            lambda: env.step_async().result(9),
        ):
            with pytest.raises(FaultError, match="clear_fault"):
                ask()
        assert fuse.blown == 1
        fuse.armed = False
        env.clear_fault()
        if site != "callback act_gain":
            run_until(env, 20)
            assert state(env) == undisturbed(20)


@pytest.mark.parametrize("cure", ["clear_fault", "reset", "reload"])
def test_a_fault_of_a_hook_is_cleared_by(cure):
    fuse = Fuse()
    with at_site("control", fuse) as env:
        fuse.armed = True
        run_into_fault(env)
        fuse.armed = False
        getattr(env, cure)()
        assert env.fault is None
        run_until(env, env.info.step_count + 3)


def test_a_plugin_that_fails_every_third_call_is_recorded_exactly_as_often():
    calls = []

    def third(_model, _data):
        calls.append(1)
        if len(calls) % 3 == 0:
            raise Boom("third")

    raised = 0
    with MujocoEnv(EULER, plugins=[plugin(control=third)]) as env:
        for k in range(400):
            try:
                env.step(1 + k % 2)
            except Boom:
                raised += 1
        record = env.plugin_diagnostics.of("control")
        assert record.count == raised == len(calls) // 3
        assert (len(record.first), len(record.last)) == (50, 50)
        assert env.plugin_statistics[0].hooks["control"].raised == raised
        assert env.info.step_count == len(calls) - raised


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit])
@pytest.mark.parametrize("site", ["pre_step", "control", "task", "callback sensor"])
def test_exceptions_that_are_no_errors_surface_and_are_undone_too(site, error):
    fuse = Fuse(error)
    with at_site(site, fuse) as env:
        env.step(3)
        before, fuse.armed = state(env), True
        with pytest.raises(error):
            env.step(2)
        assert state(env) == before
        fuse.armed = False
        assert env.step(2).completed == 2


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_no_exception_of_a_hook_ends_the_physics_thread(error):
    fuse = Fuse(error)
    with at_site("control", fuse) as env:
        fuse.armed = True
        assert error.__name__ in run_into_fault(env).message
        fuse.armed = False
        env.clear_fault()
        run_until(env, 5)


def test_no_failing_on_pause_ends_the_physics_thread():
    fuse = Fuse()

    def on_pause():
        raise Boom("on_pause")

    with MujocoEnv(EULER, plugins=[plugin(control=fuse, on_pause=on_pause)], realtime=None) as env:
        fuse.armed = True
        fault = run_into_fault(env)
        assert (fault.plugin, fault.hook) == ("Probe", "control")
        assert env.plugin_diagnostics.of("pause").count == 1
        fuse.armed = False
        env.clear_fault()
        with env.events.subscribe() as events:
            env.resume()
            with pytest.raises(Boom, match="on_pause"):
                env.pause()
            assert env.info.paused
            assert ("Probe", "pause") in failures(events)
        run_until_limit_despite(env, Boom)


def run_until_limit_despite(env, error):
    """The physics thread still steps; a plugin that raises in on_pause makes a fault of it."""
    env.stop_at(steps=env.info.step_count + 5)
    assert error.__name__ in run_into_fault(env).message
    assert env.fault.hook == "pause"


def test_a_failing_on_resume_is_raised_and_the_simulation_runs():
    def on_resume():
        raise Boom("on_resume")

    with MujocoEnv(EULER, plugins=[plugin(on_resume=on_resume)], realtime=None) as env:
        env.stop_at(steps=50)
        with env.events.subscribe() as events:
            with pytest.raises(Boom, match="on_resume"):
                env.resume()
            wait_for(events, StepLimitReached)
        assert env.info.step_count == 50
        assert env.plugin_diagnostics.of("resume").count == 1


def test_on_pause_and_on_resume_are_told_once_per_change():
    log = []
    made = plugin(on_pause=lambda: log.append("pause"), on_resume=lambda: log.append("resume"))
    with MujocoEnv(EULER, plugins=[made], realtime=None) as env:
        env.pause()
        env.step(3)
        assert log == []
        env.resume()
        env.resume()
        env.pause()
        env.pause()
        assert log == ["resume", "pause"]
        run_until(env, env.info.step_count + 5)
        assert log == ["resume", "pause"] * 2


# -- whose failure it is -------------------------------------------------------------------------


def test_a_failure_of_somebody_else_is_not_blamed_on_the_plugin_that_failed_before():
    fuse = Fuse()

    def failing_call():
        raise RuntimeError("from call_soon")

    with at_site("control", fuse) as env:
        fuse.armed = True
        with pytest.raises(Boom):
            env.step()
        fuse.armed = False
        with env.events.subscribe() as events:
            env.call_soon(failing_call)
            wait_for(events, FaultRaised)
        assert (env.fault.plugin, env.fault.hook) == (None, None)
        assert "from call_soon" in env.fault.message


def test_a_close_that_failed_in_a_reload_is_not_blamed_for_what_fails_later():
    def close():
        raise Boom("close")

    with MujocoEnv(EULER, plugins=[plugin("Old", close=close)], realtime=None) as env:
        env.reload_plugins([])
        assert env.plugin_diagnostics.of("close").count == 1

        def callback(_model, _data):
            raise RuntimeError("callback")

        env.callbacks.add("control", callback)
        with env.events.subscribe() as events:
            fault = run_into_fault(env)
            assert failures(events) == []
        assert fault.plugin is None
        assert fault.kind is FaultKind.CALLBACK


# -- divergence and engine errors ----------------------------------------------------------------


@pytest.mark.parametrize("way", ["step(n)", "step()", "running"])
def test_a_divergence_with_hooks_is_a_fault_at_the_state_before_the_step(way):
    def pre_step(_model, data):
        data.qfrc_applied[0] = 1e25 if data.time > 0.055 else 0.0

    states = {}
    made = plugin("Push", pre_step=pre_step)
    with MujocoEnv(EXPLOSIVE, plugins=[made], realtime=None) as env:
        for k in range(6):
            env.step()
            states[k] = state(env)
        if way == "running":
            run_into_fault(env)
        else:
            with pytest.raises(DivergenceError):
                WAYS[way](env, 20)
        assert env.fault.kind is FaultKind.DIVERGENCE
        assert env.info.step_count == env.fault.step - 1
        assert env.data.time == pytest.approx(env.info.step_count * 0.01)
        assert math.isfinite(env.data.qpos[0])
        assert env.plugin_diagnostics.total == 0


def test_with_the_engines_own_reset_hooked_steps_go_on_and_are_counted():
    def pre_step(_model, data):
        data.qfrc_applied[0] = 1e25 if round(data.time / 0.01) == 5 else 0.0

    with MujocoEnv(EXPLOSIVE, plugins=[plugin(pre_step=pre_step)], divergence="engine") as env:
        assert env.step(30).completed == 30
        assert env.fault is None
        assert env.info.step_count == 30
        assert env.info.sim_time < 0.3
        assert env.info.session_time == pytest.approx(0.3)


@pytest.mark.parametrize("way", ["step(n)", "step()", "running"])
@pytest.mark.parametrize("hook", ["pre_step", "control"])
def test_an_engine_error_in_a_hooked_step_is_undone_and_named(hook, way):
    break_it = [False]

    def breaking(model, _data):
        model.opt.integrator = 99 if break_it[0] else 0

    with MujocoEnv(PENDULUM, plugins=[plugin(**{hook: breaking})], realtime=None) as env:
        env.step(3)
        before, break_it[0] = state(env), True
        if way == "running":
            fault = run_into_fault(env)
            assert fault.kind is FaultKind.ENGINE_ERROR
            assert fault.plugin is None
            env.clear_fault()
        else:
            with pytest.raises(mujoco.FatalError, match="integrator"):
                WAYS[way](env, 2)
        assert state(env) == before
        break_it[0] = False
        env.model.opt.integrator = 0
        WAYS[way](env, 4)
        assert env.info.step_count == 7
        assert env.plugin_diagnostics.total == 0


@pytest.mark.parametrize("operation", ["forward", "inverse"])
def test_a_hook_that_raises_in_forward_or_inverse_leaves_the_data_as_they_were(operation):
    fuse = Fuse()
    with at_site("passive", fuse) as env, env.events.subscribe() as events:
        env.step(5)
        env.forward()
        env.data.qacc[:] = (3.0, -2.0)  # what mj_inverse is asked about
        before, fuse.armed = state(env), True
        derived = env.data.xpos.tobytes(), env.data.qacc.tobytes()
        with pytest.raises(Boom):
            getattr(env, operation)()
        assert state(env) == before
        assert (env.data.xpos.tobytes(), env.data.qacc.tobytes()) == derived
        assert failures(events) == [("Probe", "passive")]
        assert env.fault is None
        fuse.armed = False
        getattr(env, operation)()
        assert env.step(15).completed == 15
        assert env.plugin_diagnostics.total == 1


def test_what_a_hook_raises_in_a_users_own_forward_surfaces_with_the_next_step():
    fuse = Fuse()
    with at_site("control", fuse) as env:
        env.step(3)
        fuse.armed = True
        own_forward(env)
        fuse.armed = False
        assert env.plugin_diagnostics.of("control").count == 1
        with pytest.raises(Boom):
            env.step()
        assert env.info.step_count == 3
        assert env.step(2).completed == 2
        assert env.plugin_diagnostics.total == 1
