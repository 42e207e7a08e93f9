"""Divergence, engine errors and failing tasks: the state before the step, and a typed outcome."""

from __future__ import annotations

import math

import mujoco
import pytest

from mjhost.env import MujocoEnv
from mjhost.env.events import EngineWarning, FaultRaised
from mjhost.env.records import FaultKind
from mjhost.errors import DivergenceError, FaultError
from tests.env.models import EXPLOSIVE, PENDULUM, state_of

HUGE = 1e25


def push(env, value=HUGE):
    with env.access() as (_model, data):
        data.qfrc_applied[0] = value


def good_steps_before_divergence():
    """How many steps a plain engine loop takes before it warns."""
    model = mujoco.MjModel.from_xml_string(EXPLOSIVE)
    data = mujoco.MjData(model)
    data.qfrc_applied[0] = 1e9
    for step in range(1000):
        mujoco.mj_step(model, data)
        if any(w.number for w in data.warning):
            return step
    pytest.fail("the model does not diverge")


@pytest.mark.parametrize("chunk", [1, 1000])
def test_a_divergence_stops_at_the_state_before_the_bad_step(chunk, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # the plain engine leaves its log there
    good = good_steps_before_divergence()
    with MujocoEnv(EXPLOSIVE) as env:
        push(env, 1e9)
        with pytest.raises(DivergenceError) as caught:
            for _ in range(1000):
                env.step(chunk)
        assert env.info.step_count == good
        assert env.data.time == pytest.approx(good * 0.01)
        assert env.fault.kind is FaultKind.DIVERGENCE
        assert env.fault.step == good + 1
        assert caught.value.completed == (0 if chunk == 1 else good)

        model = mujoco.MjModel.from_xml_string(EXPLOSIVE)
        data = mujoco.MjData(model)
        data.qfrc_applied[0] = 1e9
        for _ in range(good):
            mujoco.mj_step(model, data)
        mujoco.mj_forward(model, data)
        assert state_of(env.model, env.data) == state_of(model, data)


def test_a_fault_refuses_stepping_until_it_is_cleared():
    with MujocoEnv(EXPLOSIVE) as env:
        push(env)
        with pytest.raises(DivergenceError):
            env.step(1000)
        for ask in (env.step, env.resume, lambda: env.advance(1)):
            with pytest.raises(FaultError, match="clear_fault"):
                ask()
        push(env, 0.0)
        env.clear_fault()
        assert env.step(5).completed == 5


@pytest.mark.parametrize("cure", ["reset", "reload"])
def test_reset_and_reload_clear_a_fault(cure):
    with MujocoEnv(EXPLOSIVE) as env:
        push(env)
        with pytest.raises(DivergenceError):
            env.step(1000)
        getattr(env, cure)()
        assert env.fault is None
        assert env.step(5).completed == 5


def test_the_physics_thread_turns_a_divergence_into_a_fault():
    with MujocoEnv(EXPLOSIVE, realtime=None) as env, env.events.subscribe() as events:
        push(env)
        env.resume()
        while not isinstance(event := events.get(10), FaultRaised):
            continue
        assert event.fault == env.fault
        assert env.info.paused
        assert math.isfinite(env.data.qpos[0])


def test_with_autoreset_disabled_a_divergence_is_a_fault_as_well():
    with MujocoEnv(EXPLOSIVE) as env:
        env.apply_runtime_options({"autoreset_disabled": True})
        push(env)
        with pytest.raises(DivergenceError):
            env.step(1000)
        assert math.isfinite(env.data.qpos[0])


def test_the_engine_policy_leaves_the_reset_and_host_time_does_not_follow():
    with (
        MujocoEnv(EXPLOSIVE, divergence="engine") as env,
        env.events.subscribe() as events,
    ):
        push(env, 1e9)
        assert env.step(500).completed == 500
        assert env.fault is None
        info = env.info
        assert info.step_count == 500
        assert info.session_time == pytest.approx(500 * 0.01)
        assert info.sim_time < 5.0
        assert any(isinstance(e, EngineWarning) for e in events.drain())


def test_an_engine_error_surfaces_as_itself_at_the_state_before_the_step():
    with MujocoEnv(PENDULUM) as env:
        env.step(10)
        env.forward()
        before = state_of(env.model, env.data)
        env.model.opt.integrator = 77  # past the seam, as only code in the same process can
        with pytest.raises(mujoco.FatalError, match="integrator") as caught:
            env.step(5)
        assert "completed=0" in caught.value.__notes__
        env.model.opt.integrator = 0
        assert state_of(env.model, env.data) == before
        assert env.step(3).completed == 3


def test_an_exception_on_the_physics_thread_becomes_the_fault():
    with MujocoEnv(PENDULUM, realtime=None) as env, env.events.subscribe() as events:

        def bad(_model, data):
            if data.time > 0.101:
                raise ValueError("no more")

        token = env.every(500, bad, name="bad task")
        env.resume()
        while not isinstance(events.get(10), FaultRaised):
            continue
        fault = env.fault
        assert fault.kind is FaultKind.TASK
        assert "bad task" in fault.source
        assert "ValueError: no more" in fault.message
        assert "in bad" in fault.traceback
        assert env.info.step_count == 50
        assert fault.step == 51
        token.remove()
        env.clear_fault()
        assert env.step(1).completed == 1


def test_no_engine_log_and_no_output(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with MujocoEnv(EXPLOSIVE) as env:
        push(env)
        with pytest.raises(DivergenceError):
            env.step(1000)
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")
