"""The clock of a session: whatever happens to ``data.time``, it does not go back."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mjhost import MujocoEnv
from mjhost.env.session import SessionClock
from tests.env.models import BALL, PENDULUM

TIMES = st.floats(-1e6, 1e6) | st.just(math.nan)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.booleans(), TIMES, TIMES), max_size=15))
def test_it_never_goes_back_whatever_becomes_of_the_time(moves):
    clock, seen = SessionClock(), [0.0]
    for jumps, before, after in moves:
        if jumps and not math.isnan(after):
            clock.jump(before, after)
            seen.append(clock.at(after))
        else:
            seen.append(clock.at(before))
    assert all(later >= earlier for earlier, later in pairwise(seen))
    assert not any(math.isnan(time) for time in seen)


@settings(deadline=None, max_examples=40)
@given(st.floats(0, 1e3), st.floats(-1e3, 1e3), st.floats(0, 10))
def test_a_jump_takes_no_time_and_time_goes_on_after_it(before, after, seconds):
    clock = SessionClock()
    reached = clock.at(before)
    clock.jump(before, after)
    assert clock.at(after) == pytest.approx(reached, abs=1e-9)
    assert clock.at(after + seconds) == pytest.approx(reached + seconds, abs=1e-9)


def test_time_moved_back_by_hand_stands_still_and_then_goes_on():
    with MujocoEnv(PENDULUM) as env:
        env.step(100)
        reached = env.info.session_time
        with env.access() as (_model, data):
            data.time = 0.05
        assert env.info.session_time == reached
        env.step(10)
        assert env.info.session_time == pytest.approx(reached + 0.02)


def test_a_time_that_is_no_number_does_not_poison_the_session():
    with MujocoEnv(PENDULUM) as env:
        env.step(100)
        reached = env.info.session_time
        with env.access() as (_model, data):
            data.time = math.nan
        assert env.info.session_time == reached
        env.reset()
        env.step(10)
        assert env.info.session_time == pytest.approx(reached + 0.02)


def test_every_event_carries_a_session_time_that_does_not_go_back():
    with MujocoEnv() as env, env.events.subscribe() as events:
        env.load(PENDULUM)
        env.step(50)
        env.reset("up")
        env.stop_at(steps=20)
        env.step(30)
        env.reload(BALL)
        env.resume()
        env.pause()
        env.apply_runtime_options({"timestep": 0.001})
        env.reset()
        times = [event.session_time for event in events.drain()]
        assert len(times) == 8
        assert times == sorted(times)
        assert times[-1] >= 70 * 0.002


def test_a_keyframe_with_a_time_of_its_own_does_not_move_the_session():
    xml = PENDULUM.replace('name="side"', 'name="side" time="7.5"')
    with MujocoEnv(xml) as env:
        env.step(100)
        env.reset("side")
        info = env.info
        assert info.sim_time == 7.5
        assert info.session_time == pytest.approx(0.2)
        env.step(5)
        assert env.info.session_time == pytest.approx(0.21)
