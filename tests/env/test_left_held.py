"""A lock that an interrupt left held: healed by the next call, and never mistaken for a step."""

from __future__ import annotations

import contextlib
import sys
from threading import get_ident

import mujoco
import pytest

from mjhost.callbacks import InterruptsSurface, router
from mjhost.callbacks.route import Stepping
from mjhost.env import MujocoEnv
from mjhost.env.stepping import Stepper
from mjhost.errors import LockOrderError, ReentrancyError
from mjhost.locking import Holding, OrderedLock
from mjhost.plugins import Plugin
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


class Controlled(Plugin):
    def control(self, model, data):
        data.ctrl[:] = 0.1

    def post_step(self, model, data):
        pass


RELEASES = {
    "release": OrderedLock.release,
    "exit": OrderedLock.__exit__,
    "end of the mark": Stepping.__exit__,
    "end of the trap": InterruptsSurface.__exit__,
}


@pytest.mark.parametrize("where", sorted(RELEASES))
@pytest.mark.parametrize("operation", ["forward", "inverse", "reset", "reload_plugins"])
@pytest.mark.parametrize("then", ["step", "reset", "reload_plugins", "close"])
def test_the_host_lock_and_its_marks_do_not_outlive_an_interrupt(operation, where, then, traced):
    trap = sys.unraisablehook
    with MujocoEnv(PENDULUM, plugins=[Controlled]) as env:
        env.step(3)
        before = sys.gettrace()
        traced(call_at(RELEASES[where].__code__, interrupt))
        try:
            with contextlib.suppress(KeyboardInterrupt):  # not every operation comes by there
                getattr(env, operation)()
        finally:
            sys.settrace(before)
        getattr(env, then)()
        if then == "step":
            env.pause()  # the shortcut of a step looks at nothing
        assert not env._plugging.host.lock.held_by_me()
        assert sys.unraisablehook is trap
        assert get_ident() not in router.hosting
        if then != "close":
            assert env.step(2).completed == 2


def test_an_open_plugin_access_scope_is_no_host_lock_left_held():
    with MujocoEnv(PENDULUM, plugins=[Controlled]) as env:
        (handle,) = env.plugins
        with handle.access(), pytest.raises(LockOrderError):
            env.reset()
        assert env.step().completed == 1
