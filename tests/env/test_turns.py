"""Turns at the interpreter: one at a time, first come first served, and no way to wait for ever."""

from __future__ import annotations

import threading

import pytest

from mjhost.env import MujocoEnv
from mjhost.env import turns as module
from mjhost.env.turns import Turns
from mjhost.plugins import Plugin
from tests.env.models import PENDULUM

WAIT_S = 10.0


class Torque(Plugin):
    def control(self, model, data):
        data.ctrl[:] = 0.1


def queued(turns, number):
    """Waits until ``number`` threads are in the queue; a turn is held meanwhile."""
    gate = threading.Event()
    while len(turns._queue) < number:
        gate.wait(0.001)


def test_turns_are_taken_one_at_a_time_and_in_order(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_S", WAIT_S)
    turns, order = Turns(cores=2), []
    turns.take(0, 1e-5)

    def stepper(me):
        turns.take(me, 1e-5)
        order.append((me, dict(turns._ends).keys()))
        turns.give(me)

    threads = []
    for me in (1, 2, 3):
        threads.append(threading.Thread(target=stepper, args=(me,)))
        threads[-1].start()
        queued(turns, me)
    turns.give(0)
    for thread in threads:
        thread.join(WAIT_S)
    assert order == [(1, {1}), (2, {2}), (3, {3})]
    assert not turns._ends
    assert not turns._queue


def test_a_turn_that_was_never_given_back_ends_by_itself(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_S", 0.01)
    monkeypatch.setattr(module, "LEASE_S", 0.0)
    turns = Turns(cores=2)
    turns.take(1, 1e-5)  # and its thread is gone
    turns.take(2, 1e-5)
    assert set(turns._ends) == {2}


def test_a_thread_that_waited_in_vain_steps_without_a_turn_and_frees_none(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_S", 0.01)
    monkeypatch.setattr(module, "LEASE_S", WAIT_S)
    turns = Turns(cores=2)
    turns.take(1, 1e-5)
    turns.take(2, 1e-5)
    assert set(turns._ends) == {1}
    turns.give(2)
    assert set(turns._ends) == {1}


@pytest.mark.parametrize(("step_s", "permits"), [(0.0, 1), (1e-5, 1), (6e-5, 2), (9.9e-5, 3)])
def test_longer_steps_get_more_turns_on_more_cores(monkeypatch, step_s, permits):
    monkeypatch.setattr(module, "PATIENCE_S", 0.0)
    turns = Turns(cores=16)
    for me in range(8):
        turns.take(me, step_s)
    assert len(turns._ends) == permits


def test_a_hook_that_waits_for_the_step_of_another_env_gets_it():
    stepped = threading.Event()

    class Waits(Plugin):
        def control(self, model, data):
            assert stepped.wait(WAIT_S)

    class Steps(Plugin):
        def control(self, model, data):
            pass

        def post_step(self, model, data):
            if data.time > 0.3:
                stepped.set()

    with MujocoEnv(PENDULUM, plugins=[Waits]) as first, MujocoEnv(PENDULUM, plugins=[Steps]) as two:
        threads = [
            threading.Thread(target=first.step, args=(2,)),
            threading.Thread(target=two.step, args=(1000,)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * WAIT_S)
        assert first.info.step_count == 2
        assert two.info.step_count == 1000


@pytest.mark.slow
def test_envs_that_step_side_by_side_reach_what_each_reaches_alone():
    with MujocoEnv(PENDULUM, plugins=[Torque]) as alone:
        alone.step(2000)
        expected = alone.data.qpos.tobytes(), alone.data.time
    envs = [MujocoEnv(PENDULUM, plugins=[Torque]) for _ in range(6)]
    try:
        threads = [threading.Thread(target=env.step, args=(2000,)) for env in envs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)
        assert {(env.data.qpos.tobytes(), env.data.time) for env in envs} == {expected}
        assert module.turns.steppers == 0
        assert not module.turns._ends
    finally:
        for env in envs:
            env.close()
