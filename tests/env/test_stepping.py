"""Exact manual steps, limits, rates and calls at boundaries."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import mujoco
import numpy as np
import pytest

from mjhost.env import MujocoEnv
from mjhost.env.events import Paused, StepLimitReached
from mjhost.env.records import StepReason
from mjhost.errors import (
    InvalidArgumentError,
    NotLoadedError,
    NotPausedError,
    QueueFullError,
    ReentrancyError,
)
from tests.env.models import BALL, PENDULUM, plain_loop, state_of


@pytest.mark.parametrize("xml", [PENDULUM, BALL])
@pytest.mark.parametrize("calls", [[1] * 50, [50], [7, 43], [1, 48, 1]])
def test_steps_equal_a_plain_loop_however_they_are_asked_for(xml, calls):
    with MujocoEnv(xml) as env:
        for n in calls:
            assert env.step(n).completed == n
        assert state_of(env.model, env.data) == plain_loop(xml, 50)
        assert env.info.step_count == 50


def test_a_long_request_is_chunked_without_changing_a_bit():
    with MujocoEnv(BALL) as env:
        assert env.step(20_000).completed == 20_000
        assert state_of(env.model, env.data) == plain_loop(BALL, 20_000)


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "3", None, 2**63])
def test_a_number_of_steps_that_cannot_be_is_refused(n):
    with MujocoEnv(PENDULUM) as env:
        with pytest.raises(InvalidArgumentError, match="integer of at least 1"):
            env.step(n)
        assert env.info.step_count == 0


def test_step_without_a_model_is_refused():
    with MujocoEnv() as env, pytest.raises(NotLoadedError):
        env.step()


def test_step_while_running_is_refused_and_takes_none(running_pendulum):
    env = running_pendulum
    with pytest.raises(NotPausedError, match="pause"):
        env.step(10)


def test_advance_takes_the_least_steps_that_cover_the_time():
    with MujocoEnv(PENDULUM) as env:
        env.apply_runtime_options({"timestep": 0.005})
        assert env.advance(0.035).completed == 7
        env.apply_runtime_options({"timestep": 1 / 240})
        assert env.advance(0.5).completed == 120


def test_timeout_ends_at_a_boundary_and_says_so():
    with MujocoEnv(PENDULUM) as env:
        result = env.step(10**9, timeout=0.05)
        assert result.reason is StepReason.TIMEOUT
        assert 0 < result.completed < 10**9
        assert env.info.step_count == result.completed


def test_concurrent_requests_are_served_one_after_the_other():
    with MujocoEnv(PENDULUM) as env:
        results = []

        def ask():
            results.extend(env.step(500).completed for _ in range(4))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [500] * 16
        assert env.info.step_count == 8000
        assert state_of(env.model, env.data) == plain_loop(PENDULUM, 8000)


def test_step_async_runs_on_the_physics_thread():
    with MujocoEnv(PENDULUM) as env:
        future = env.step_async(300)
        assert isinstance(future, Future)
        assert future.result(timeout=10).completed == 300
        assert env.step(2).completed == 2
        assert env.info.step_count == 302


def test_cancelled_future_takes_no_step():
    with MujocoEnv(PENDULUM) as env:
        first = env.step_async(50_000)
        second = env.step_async(10)
        assert second.cancel()
        assert first.result(timeout=30).completed == 50_000
        assert env.info.step_count == 50_000


def test_cancel_steps_ends_requests_under_way_and_says_how_far_they_came():
    with MujocoEnv(PENDULUM) as env:
        future = env.step_async(10**12)
        waiting = env.step_async(5)
        assert env.cancel_steps() == 2
        result = future.result(timeout=10)
        assert result.reason is StepReason.CANCELLED_BY_CALL
        assert result.completed == env.info.step_count
        assert waiting.result(timeout=10).completed == 0
        assert env.info.pending_steps == 0


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("reset", StepReason.CANCELLED_BY_RESET),
        ("reload", StepReason.CANCELLED_BY_RELOAD),
        ("resume", StepReason.CANCELLED_BY_RESUME),
        ("close", StepReason.CANCELLED_BY_CLOSE),
    ],
)
def test_what_changes_the_simulation_cancels_manual_steps(action, reason):
    with MujocoEnv(PENDULUM) as env:
        future = env.step_async(10**12)
        getattr(env, action)()
        result = future.result(timeout=10)
        assert result.reason is reason
        assert result.completed < 10**12


def test_the_queue_of_step_requests_is_bounded():
    with MujocoEnv(PENDULUM) as env:
        with pytest.raises(QueueFullError, match="cancel_steps"):
            for _ in range(100):
                env.step_async(10**12)
        env.cancel_steps()


def test_stop_at_steps_is_exact_for_manual_steps_and_for_the_thread():
    with MujocoEnv(PENDULUM, realtime=None) as env, env.events.subscribe() as events:
        env.stop_at(steps=37)
        result = env.step(100)
        assert (result.completed, result.reason) == (37, StepReason.LIMIT)
        env.stop_at(steps=5000)
        env.resume()
        wait_for(events, Paused)
        assert env.info.step_count == 5000
        assert env.info.paused
        assert state_of(env.model, env.data) == plain_loop(PENDULUM, 5000)


def test_stop_at_time_is_not_a_step_late_after_a_million_steps():
    with MujocoEnv(PENDULUM) as env:
        env.apply_runtime_options({"timestep": 0.001})
        env.step(100_000)
        env.stop_at(time=100.1)
        assert env.step(1000).completed == 100
        assert abs(env.data.time - 100.1) < 1e-6


def test_stop_at_behind_the_present_is_refused():
    with MujocoEnv(PENDULUM) as env:
        env.step(10)
        with pytest.raises(InvalidArgumentError, match="ahead"):
            env.stop_at(steps=10)
        with pytest.raises(InvalidArgumentError, match="ahead"):
            env.stop_at(time=0.01)
        with pytest.raises(InvalidArgumentError, match="neither"):
            env.stop_at()
        assert env.step(5).completed == 5


def test_a_limit_applies_once():
    with MujocoEnv(PENDULUM) as env:
        env.stop_at(steps=3)
        assert env.step(10).completed == 3
        assert env.step(10).completed == 10


@pytest.mark.parametrize("rate", [100, 30, 7.5])
def test_a_task_is_called_at_exact_steps(rate):
    with MujocoEnv(PENDULUM) as env:
        env.apply_runtime_options({"timestep": 0.001})
        steps = []
        env.every(rate, lambda _m, d: steps.append(round(d.time / 0.001)))
        env.step(1000)
        expected = [int(np.ceil(n * 1000 / rate - 1e-9)) for n in range(1, int(rate) + 1)]
        assert steps == expected


def test_a_task_added_later_keeps_to_the_same_grid():
    with MujocoEnv(PENDULUM) as env:
        env.apply_runtime_options({"timestep": 0.001})
        for _ in range(37):
            env.step()
        steps = []
        env.every(100, lambda _m, d: steps.append(round(d.time / 0.001)))
        env.step(30)
        assert steps == [40, 50, 60]


def test_a_removed_task_is_not_called_again():
    with MujocoEnv(PENDULUM) as env:
        calls = []
        token = env.every(500, lambda _m, _d: calls.append(1))
        env.step(3)
        token.remove()
        token.remove()
        env.step(3)
        assert len(calls) == token.calls == 3


def test_a_task_cannot_step_write_or_wait():
    with MujocoEnv(PENDULUM) as env:
        seen = []

        def meddle(_model, _data):
            for operation in (
                env.step,
                env.pause,
                env.resume,
                env.reset,
                env.reload,
                env.close,
                lambda: env.apply_runtime_options({"timestep": 0.1}),
                lambda: env.access().__enter__(),
            ):
                with pytest.raises(ReentrancyError, match="meddle"):
                    operation()
            seen.append(env.info.sim_time)

        token = env.every(500, meddle)
        env.step()
        assert seen == [0.002]
        assert env.info.step_count == 1
        token.remove()


def test_an_exception_in_a_task_surfaces_with_the_steps_completed_and_sets_no_fault():
    with MujocoEnv(PENDULUM) as env:

        def bad(_model, data):
            if data.time > 0.019:
                raise KeyError("lost")

        token = env.every(500, bad)
        with pytest.raises(KeyError) as caught:
            env.step(100)
        notes = " ".join(caught.value.__notes__)
        assert "bad" in notes
        assert "completed=9" in notes
        assert env.fault is None
        assert env.info.step_count == 9
        assert state_of(env.model, env.data) == forwarded(PENDULUM, 9)
        token.remove()
        assert env.step(5).completed == 5


@pytest.mark.parametrize("rate", [500, 100, 30])
def test_a_step_undone_by_a_failing_task_is_taken_again_with_the_task(rate):
    with MujocoEnv(PENDULUM) as env:
        calls = []
        fail = [True]

        def sometimes(_model, data):
            calls.append(round(data.time / 0.002))
            if len(calls) == 3 and fail:
                fail.clear()
                raise KeyError("once")

        token = env.every(rate, sometimes)
        with pytest.raises(KeyError):
            env.step(200)
        done = env.info.step_count
        env.step(200 - done)
        assert calls[2] == calls[3] == done + 1
        expected = [int(np.ceil(n * 500 / rate - 1e-9)) for n in range(1, len(calls))]
        assert sorted(set(calls)) == expected
        assert token.calls == len(calls) - 1
        assert state_of(env.model, env.data) == plain_loop(PENDULUM, 200)
        token.remove()


def test_call_soon_runs_at_a_boundary_and_may_use_the_env():
    with MujocoEnv(PENDULUM) as env:
        seen = []

        def soon():
            seen.append((threading.current_thread().name, env.info.step_count))
            env.reset()

        def task(_model, _data):
            if not seen:
                env.call_soon(soon)

        token = env.every(100, task)
        result = env.step(1000)
        assert result.reason is StepReason.CANCELLED_BY_RESET
        assert seen == [(threading.current_thread().name, 5)]
        assert env.info.step_count == 0
        token.remove()


def test_call_soon_runs_while_nothing_steps():
    with MujocoEnv(PENDULUM) as env:
        done = threading.Event()
        env.call_soon(done.set)
        assert done.wait(5)


def test_request_pause_ends_a_manual_request_at_the_boundary():
    with MujocoEnv(PENDULUM) as env:
        token = env.every(100, lambda _m, _d: env.request_pause())
        result = env.step(1000)
        assert (result.completed, result.reason) == (5, StepReason.PAUSE_REQUESTED)
        token.remove()


def test_forward_and_inverse_refresh_without_moving_time():
    with MujocoEnv(PENDULUM) as env:
        with env.access() as (_model, data):
            data.qpos[0] = 1.0
        env.forward()
        assert env.data.xpos[1].any() or env.data.geom_xpos[0][2] < 0
        before = env.data.time
        env.inverse()
        assert env.data.time == before
        reference = mujoco.MjData(env.model)
        reference.qpos[:] = env.data.qpos
        mujoco.mj_forward(env.model, reference)
        assert reference.geom_xpos.tobytes() == env.data.geom_xpos.tobytes()


def test_a_step_limit_event_is_told():
    with MujocoEnv(PENDULUM) as env, env.events.subscribe() as events:
        env.stop_at(steps=3)
        env.step(10)
        assert [type(e) for e in events.drain()] == [StepLimitReached]


def forwarded(xml, steps):
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    for _ in range(steps):
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    return state_of(model, data)


def wait_for(events, kind):
    while True:
        event = events.get(10)
        if isinstance(event, kind):
            return event
