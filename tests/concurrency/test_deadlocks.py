"""Orders of events in which a thread could wait for itself, and requests that come a moment late.

What needs an unlucky moment is brought about on purpose: the moment is patched in.
"""

from __future__ import annotations

import threading
import time
from functools import partial

import pytest

from mjhost import (
    EnvClosedError,
    LockOrderError,
    MujocoEnv,
    UnknownNameError,
)
from mjhost.env import stepping
from mjhost.env.records import StepReason, StepResult
from tests.concurrency.support import Crew, any_window, together
from tests.env.models import BALL, PENDULUM, plain_loop, state_of

HOUR = 10**12  # steps that nobody waits for


def once_soon(env, fn):
    """Lets the step at hand ask for ``fn`` at the boundary that follows."""
    token = None

    def task(_model, _data):
        token.remove()
        env.call_soon(fn)

    token = env.every(100, task, name="asks")


# -- calls from the boundary ---------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 3])
def test_a_call_soon_may_step_in_the_middle_of_a_step_request(n):
    with MujocoEnv(PENDULUM) as env:
        inner = []
        once_soon(env, lambda: inner.append(env.step(n)))
        outer = []
        together(lambda: outer.append(env.step(100)), limit_s=10)
        assert inner == [StepResult(n)]
        assert outer == [StepResult(100)]
        assert env.info.step_count == 100 + n
        assert state_of(env.model, env.data) == plain_loop(PENDULUM, 100 + n)


def test_a_call_soon_may_step_on_the_physics_thread():
    with MujocoEnv(PENDULUM) as env:
        inner = []
        once_soon(env, lambda: inner.append(env.step(3)))
        first, second = env.step_async(100), env.step_async(10)
        assert first.result(10) == StepResult(100)
        assert second.result(10) == StepResult(10)
        assert inner == [StepResult(3)]
        assert env.info.step_count == 113


def test_the_physics_thread_does_not_wait_for_requests_that_only_it_can_run():
    with MujocoEnv(PENDULUM) as env:
        inner, queued = [], []

        def soon():
            queued.append(env.step_async(10))
            inner.append(env.step(3))

        env.call_soon(soon)
        together(lambda: wait_until(lambda: inner), limit_s=10)
        assert queued[0].result(10) == StepResult(10)
        assert inner == [StepResult(3)]


def wait_until(condition):
    pause = threading.Event()
    while not condition():
        pause.wait(0.001)


def test_each_call_soon_runs_once_when_two_threads_are_at_a_boundary():
    with MujocoEnv(PENDULUM) as env:
        calls = []
        go = threading.Barrier(2)

        def meet():
            calls.append("first")
            go.wait(10)
            go.wait(10)

        def rest():
            env._manual.run_soon()

        env._core.soon.extend([meet, lambda: calls.append("second")])
        crew = Crew()
        crew.start(rest)
        go.wait(10)
        rest()  # takes the second, which the other one has counted as well
        go.wait(10)
        crew.join(10)
        assert calls == ["first", "second"]
        assert env.step(3).completed == 3


@pytest.mark.parametrize("start", ["running", "async", "idle"])
def test_close_may_be_called_from_the_physics_thread(start):
    env = MujocoEnv(PENDULUM, realtime=None, running=start == "running")
    future = env.step_async(HOUR) if start == "async" else None
    env.call_soon(env.close)
    together(lambda: wait_until(lambda: env.phase.name == "CLOSED"), limit_s=10)
    if future is not None:
        assert future.result(10).reason is StepReason.CANCELLED_BY_CLOSE
    env.close()


@pytest.mark.slow
@pytest.mark.parametrize("running", [False, True])
def test_two_closers_of_which_one_is_waited_for_do_not_wait_for_each_other(running):
    env = MujocoEnv(PENDULUM, realtime=None, running=running)
    entered, both = threading.Event(), threading.Event()

    def closes_as_well():
        entered.set()
        both.wait(10)
        env.close()

    env.call_soon(closes_as_well)
    assert entered.wait(10)
    crew = Crew()
    crew.start(env.close)
    wait_until(lambda: env.phase.name == "CLOSING")
    both.set()
    crew.join(10)
    assert env.phase.name == "CLOSED"


# -- inside access() -----------------------------------------------------------------------------


@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize(
    "ask",
    ["step", "close", "reload", "reset", "resume", "pause", "forward", "clear_fault"],
)
def test_what_would_wait_is_refused_inside_an_access_scope_and_changes_nothing(ask, busy):
    with MujocoEnv(PENDULUM) as env:
        other = env.step_async(HOUR) if busy else None
        before = env.generations, env.info.load_error

        def inside():
            with env.access(), pytest.raises(LockOrderError):
                getattr(env, ask)()

        together(inside, limit_s=10)
        assert env.phase.name == "OPERATIONAL"
        assert (env.generations, env.info.load_error) == before
        if other is not None:
            assert not other.done()
            env.cancel_steps()
            assert other.result(10).completed > 0
        assert env.step(3).completed == 3


def test_close_is_refused_inside_an_access_scope_of_a_running_env_and_works_after_it():
    env = MujocoEnv(PENDULUM, realtime=None, running=True)

    def inside():
        with env.access(), pytest.raises(LockOrderError, match="access"):
            env.close()

    together(inside, limit_s=10)
    assert env.phase.name == "OPERATIONAL"
    env.close()
    assert env.phase.name == "CLOSED"


# -- requests that come a moment late ------------------------------------------------------------


def in_between(env, monkeypatch, act):
    """Lets ``act`` happen after a step request was admitted and before it is in the queue."""
    manual = env._manual
    real = manual._enqueue

    def enqueue(request):
        monkeypatch.setattr(manual, "_enqueue", real)
        act()
        real(request)

    monkeypatch.setattr(manual, "_enqueue", enqueue)


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        ("resume", StepReason.CANCELLED_BY_RESUME),
        ("reload", StepReason.CANCELLED_BY_RELOAD),
        ("close", StepReason.CANCELLED_BY_CLOSE),
    ],
)
def test_a_request_that_was_overtaken_takes_no_step(act, reason, monkeypatch):
    with MujocoEnv(PENDULUM) as env:
        in_between(env, monkeypatch, getattr(env, act))
        results = []
        together(lambda: results.append(env.step(50)), limit_s=10)
        assert results == [StepResult(0, reason)]


def test_a_future_asked_for_while_the_env_closes_is_ended(monkeypatch):
    with MujocoEnv(PENDULUM) as env:
        in_between(env, monkeypatch, env.close)
        assert env.step_async(50).result(10) == StepResult(0, StepReason.CANCELLED_BY_CLOSE)


def test_resume_ends_the_futures_that_wait_behind_the_one_under_way():
    with MujocoEnv(PENDULUM) as env:
        futures = [env.step_async(HOUR), env.step_async(5), env.step_async(7)]
        env.resume()
        results = [future.result(10) for future in futures]
        assert {result.reason for result in results} == {StepReason.CANCELLED_BY_RESUME}
        assert [result.completed for result in results[1:]] == [0, 0]
        assert not env.info.paused


def test_a_future_that_a_resume_overtook_is_ended_while_running(monkeypatch):
    with MujocoEnv(PENDULUM) as env:
        in_between(env, monkeypatch, env.resume)
        assert env.step_async(50).result(10) == StepResult(0, StepReason.CANCELLED_BY_RESUME)
        assert not env.info.paused


def test_a_future_asked_for_before_a_reload_is_not_run_on_the_new_model(monkeypatch):
    with MujocoEnv(PENDULUM) as env:
        in_between(env, monkeypatch, partial(env.reload, BALL))
        assert env.step_async(50).result(10) == StepResult(0, StepReason.CANCELLED_BY_RELOAD)
        assert env.info.step_count == 0


def test_an_interrupt_right_after_queueing_leaves_no_request_behind(monkeypatch):
    with MujocoEnv(PENDULUM) as env:
        manual = env._manual
        real = manual._enqueue

        def interrupted(request):
            real(request)
            raise KeyboardInterrupt

        monkeypatch.setattr(manual, "_enqueue", interrupted)
        with pytest.raises(KeyboardInterrupt):
            env.step(5)
        monkeypatch.setattr(manual, "_enqueue", real)
        assert env.info.pending_steps == 0
        results = []
        together(lambda: results.append(env.step(5)), limit_s=10)
        assert results == [StepResult(5)]


def test_an_interrupted_close_can_be_repeated(monkeypatch):
    env = MujocoEnv(PENDULUM, realtime=None, running=True)
    real = env._thread.stop

    def interrupted():
        monkeypatch.setattr(env._thread, "stop", real)
        raise KeyboardInterrupt

    monkeypatch.setattr(env._thread, "stop", interrupted)
    with pytest.raises(KeyboardInterrupt):
        env.close()
    env.close()
    assert env.phase.name == "CLOSED"


def test_the_shortcut_of_a_closing_env_is_not_opened_again(monkeypatch):
    env = MujocoEnv(PENDULUM)
    real = stepping.single_step_of

    def revoked_meanwhile(core, stepper, hosted):
        shortcut = real(core, stepper, hosted)
        env.close()
        return shortcut

    with env.access():  # what grants it holds the lock
        env._core.single_step = None
    monkeypatch.setattr(stepping, "single_step_of", revoked_meanwhile)
    env._stepper.grant_single_step()
    assert env._core.single_step is None
    with pytest.raises(EnvClosedError):
        env.step()


def test_a_reset_that_is_refused_leaves_requests_alone():
    with MujocoEnv(PENDULUM) as env:
        future = env.step_async(20_000)
        with pytest.raises(UnknownNameError):
            env.reset("nonsense")
        assert future.result(20) == StepResult(20_000)


# -- how long the lock is held -------------------------------------------------------------------

HEAVY = """
<mujoco>
  <option timestep="0.001" integrator="RK4"/>
  <worldbody>
    <geom type="plane" size="9 9 .1"/>
    <replicate count="100" offset=".15 0 0">
      <body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1" mass="1"/></body>
    </replicate>
  </worldbody>
</mujoco>
"""


@pytest.mark.slow
@pytest.mark.parametrize("replace", ["reload", "load"])
def test_steps_that_became_dear_do_not_hold_up_anybody(replace):
    def window():
        with MujocoEnv(PENDULUM, realtime=None, running=True) as env:
            wait_until(lambda: env.info.step_count > 20_000)
            start = time.perf_counter()
            getattr(env, replace)(HEAVY)  # takes the lock twice; the compile takes 10 ms
            for _ in range(3):
                env.apply_runtime_options({"density": 1})
            env.pause()
            waited = time.perf_counter() - start
            return [] if waited < 1.0 else [f"{waited:.3f} s"]

    any_window(window)
