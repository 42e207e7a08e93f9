"""A lock that an interrupt left held: healed by the next call, and never mistaken for a step."""

from __future__ import annotations

import sys

import mujoco
import pytest

from mjhost.env import MujocoEnv
from mjhost.env.stepping import Stepper
from mjhost.errors import LockOrderError, ReentrancyError
from mjhost.locking import Holding
from tests.env.models import PENDULUM


def call_at(code, fn):
    """A trace function that calls ``fn`` once, when a function with ``code`` is entered."""
    done = []

    def trace(frame, event, _argument):
        if event == "call" and frame.f_code is code and not done:
            done.append(1)
            fn()

    return trace


def interrupt():
    raise KeyboardInterrupt


@pytest.fixture
def traced():
    before = sys.gettrace()
    yield sys.settrace
    sys.settrace(before)


@pytest.mark.parametrize("operation", ["forward", "reset", "pause", "clear_fault"])
@pytest.mark.parametrize("then", ["step", "reset", "reload", "resume", "close"])
def test_an_interrupt_at_the_entry_of_a_release_is_healed_by_the_next_call(operation, then, traced):
    with MujocoEnv(PENDULUM) as env:
        env.step()
        before = sys.gettrace()
        traced(call_at(Holding.__exit__.__code__, interrupt))
        try:
            with pytest.raises(KeyboardInterrupt):
                getattr(env, operation)()
        finally:
            sys.settrace(before)
        getattr(env, then)()
        if then != "close":
            env.pause()
            assert env.step(2).completed == 2


def test_code_that_runs_inside_an_operation_is_refused_not_taken_for_a_lock_left_held(traced):
    with MujocoEnv(PENDULUM) as env:
        outcome = []

        def meddle():
            try:
                env.step()
            except ReentrancyError as error:
                outcome.append(error)

        before = sys.gettrace()
        traced(call_at(Stepper.refresh.__code__, meddle))
        try:
            env.reset()
        finally:
            sys.settrace(before)
        assert len(outcome) == 1
        assert env.info.step_count == 0
        assert env.step(3).completed == 3


def test_an_open_access_scope_is_no_lock_left_held():
    with MujocoEnv(PENDULUM) as env:
        with env.access(), pytest.raises(LockOrderError):
            env.reset()
        assert env.step().completed == 1


def test_a_reset_interrupted_after_the_engines_part_leaves_counters_that_fit(traced):
    with MujocoEnv(PENDULUM) as env:
        env.step(7)
        before = sys.gettrace()
        traced(call_at(Stepper.refresh.__code__, interrupt))
        try:
            with pytest.raises(KeyboardInterrupt):
                env.reset()
        finally:
            sys.settrace(before)
        info = env.info
        assert (info.step_count, info.sim_time, info.total_steps) == (0, 0.0, 7)
        env.step(5)
        data = mujoco.MjData(env.model)
        for _ in range(5):
            mujoco.mj_step(env.model, data)
        assert env.data.qpos.tobytes() == data.qpos.tobytes()
