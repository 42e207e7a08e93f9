"""Pacing against a clock that the test moves."""

from __future__ import annotations

import math
import random
import threading
import time
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mjhost.env.pacing import WAIT_BOUND_S, Pacer, RealtimeMeter, Waker, normalise_factor
from mjhost.errors import InvalidArgumentError
from mjhost.testing.clock import FakeClock

# -- the factor ----------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, 0, 0.0, -0.0, math.inf, np.float64(0)])
def test_none_zero_and_infinity_mean_unbound(value):
    assert normalise_factor(value) is None


@pytest.mark.parametrize("value", [1, 0.5, 1e-9, 1e9, np.float32(2.0), np.int64(3)])
def test_positive_numbers_are_factors(value):
    factor = normalise_factor(value)
    assert factor == value
    assert type(factor) is float


@pytest.mark.parametrize(
    "value", [-1, -0.5, -math.inf, math.nan, True, False, "1", [1.0], Decimal(1), 1j, 10**400]
)
def test_everything_else_is_refused_as_a_factor(value):
    with pytest.raises(InvalidArgumentError, match="real-time factor"):
        normalise_factor(value)


def test_a_refused_factor_changes_nothing():
    pacer = Pacer(2.0, FakeClock())
    with pytest.raises(InvalidArgumentError):
        pacer.set_factor(-1.0, 5.0)
    assert pacer.factor == 2.0
    assert pacer.due_in(1.0) == 0.5


# -- due times -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("factor", "wait"), [(1.0, 0.2), (0.5, 0.4), (2.0, 0.1)])
def test_simulation_ahead_by_some_time_waits_for_it_over_the_factor(factor, wait):
    clock = FakeClock(100.0)
    pacer = Pacer(factor, clock)
    pacer.rebase(7.0)
    assert pacer.due_in(7.0) == 0.0
    assert pacer.due_in(7.2) == pytest.approx(wait)
    clock.advance(wait / 2)
    assert pacer.due_in(7.2) == pytest.approx(wait / 2)


def test_unbound_is_always_due():
    pacer = Pacer(None, FakeClock())
    assert pacer.due_in(1e9) == 0.0
    assert pacer.steps_due(1e9, 0.001, 77) == 77


def run(pacer, clock, dt, wall_s, overhead):
    """A stepping thread: waits as told, takes the steps as told; returns (sim, wakes)."""
    steps, wakes, end = 0, 0, clock.now + wall_s
    while clock.now < end:
        wait = pacer.due_in(steps * dt)
        if wait > 0.0:
            clock.advance(wait)
            wakes += 1
            continue
        steps += pacer.steps_due(steps * dt, dt)
        clock.advance(overhead())
    return steps * dt, wakes


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(
    factor=st.sampled_from([0.1, 0.5, 1.0, 2.0, 3.7]),
    dt=st.sampled_from([1e-4, 0.001, 0.002, 0.005, 1 / 240, 0.05]),
    seed=st.integers(0, 2**32),
)
def test_nothing_drifts_whatever_the_overhead_of_a_round(factor, dt, seed):
    rng = random.Random(seed)
    clock = FakeClock(12345.678)
    pacer = Pacer(factor, clock)
    sim, _ = run(pacer, clock, dt, 10.0, lambda: rng.uniform(0.0, 0.5) * min(dt, 0.001) / factor)
    assert pacer.resyncs == 0
    assert abs(sim - 10.0 * factor) <= max(2.0 * dt, 0.0021 * factor)


def test_a_million_steps_accumulate_no_error():
    clock = FakeClock()
    pacer = Pacer(1.0, clock)
    clock.now = 1e6 * 0.001
    pacer.rebase(0.0)
    start = clock.now
    for k in range(0, 1_000_000, 997):
        clock.now = start + k * 0.001
        assert abs(pacer.due_in(k * 0.001)) < 1e-9


def test_a_stall_within_the_limit_is_caught_up():
    clock = FakeClock()
    pacer = Pacer(1.0, clock)
    clock.advance(0.09)
    assert pacer.due_in(0.0) == pytest.approx(-0.09)
    assert pacer.steps_due(0.0, 0.01, 100) == 10  # the one due at 0 and nine missed ones
    assert pacer.due_in(0.1) == pytest.approx(0.01)
    assert pacer.resyncs == 0


@pytest.mark.parametrize("factor", [0.5, 1.0, 4.0])
def test_a_longer_stall_is_forgotten_and_counted(factor):
    clock = FakeClock()
    pacer = Pacer(factor, clock)
    clock.advance(0.11 / factor)
    assert pacer.due_in(0.0) == 0.0
    assert pacer.resyncs == 1
    assert pacer.steps_due(0.0, 0.01, 100) == 1
    assert pacer.due_in(0.01) == pytest.approx(0.01 / factor)


def test_rebasing_after_a_pause_leaves_nothing_to_catch_up():
    clock = FakeClock()
    pacer = Pacer(1.0, clock)
    clock.advance(3600.0)
    pacer.rebase(1.5)
    assert pacer.due_in(1.5) == 0.0
    assert pacer.steps_due(1.5, 0.001, 100) == 1
    assert pacer.resyncs == 0


def test_short_steps_come_in_bundles_of_one_quantum():
    pacer = Pacer(1.0, FakeClock())
    assert pacer.steps_due(0.0, 1e-4, 1000) == 10
    pacer = Pacer(2.0, FakeClock())
    assert pacer.steps_due(0.0, 1e-4, 1000) == 20
    pacer = Pacer(0.1, FakeClock())
    assert pacer.steps_due(0.0, 1e-4, 1000) == 1


@pytest.mark.parametrize("dt", [0.001, 0.002, 0.05])
def test_long_steps_come_one_by_one(dt):
    pacer = Pacer(1.0, FakeClock())
    assert pacer.steps_due(0.0, dt, 1000) == 1


def test_bundles_keep_the_wakes_at_about_one_per_quantum():
    clock = FakeClock()
    _, wakes = run(Pacer(1.0, clock), clock, 1e-4, 1.0, lambda: 1e-5)
    assert 900 <= wakes <= 1100


@settings(deadline=None)
@given(
    late=st.floats(0.0, 0.099),
    dt=st.floats(1e-6, 1.0),
    factor=st.floats(1e-3, 1e3),
    limit=st.integers(1, 1000),
)
def test_steps_due_are_at_least_one_and_at_most_the_limit(late, dt, factor, limit):
    clock = FakeClock()
    pacer = Pacer(factor, clock)
    clock.advance(late / factor)
    steps = pacer.steps_due(0.0, dt, limit)
    assert 1 <= steps <= limit
    if steps < limit:
        # the step after the last is not due yet
        assert pacer.due_in(steps * dt) > -2e-6 * dt / factor - 1e-12


# -- the meter -----------------------------------------------------------------------------------


def measured(clock, meter, factor, dt, wall_s):
    """Steps of ``dt`` at ``factor``, a fifth of the time in steps and the rest in waiting."""
    for _ in range(round(wall_s * factor / dt)):
        period = dt / factor
        clock.advance(0.8 * period)
        meter.add(wait_s=0.8 * period)
        clock.advance(0.2 * period)
        meter.add(step_s=0.2 * period, sim_s=dt)
    return meter.reading()


@pytest.mark.parametrize("factor", [0.1, 0.5, 1.0, 2.0, 13.0])
@pytest.mark.parametrize("dt", [0.0005, 0.002, 0.033, 0.1])
def test_measured_factor_is_within_two_percent(factor, dt):
    clock = FakeClock(1000.02)
    meter = RealtimeMeter(clock)
    reading = measured(clock, meter, factor, dt, 3.0 + dt / factor)
    assert reading.factor == pytest.approx(factor, rel=0.02)
    assert reading.step == pytest.approx(0.2, abs=0.05)
    assert reading.wait == pytest.approx(0.8, abs=0.05)


def test_measured_factor_is_right_long_before_a_second_is_over():
    clock = FakeClock(5.0)
    meter = RealtimeMeter(clock)
    assert measured(clock, meter, 1.0, 0.002, 0.1).factor == pytest.approx(1.0, rel=0.02)


def test_measured_factor_follows_a_change_within_a_second():
    clock = FakeClock(5.0)
    meter = RealtimeMeter(clock)
    measured(clock, meter, 1.0, 0.002, 2.0)
    assert measured(clock, meter, 0.25, 0.002, 1.1).factor == pytest.approx(0.25, rel=0.02)


def test_nothing_measured_reads_nan_and_no_shares():
    meter = RealtimeMeter(FakeClock(3.0))
    reading = meter.reading()
    assert math.isnan(reading.factor)
    assert (reading.step, reading.wait) == (0.0, 0.0)


def test_clearing_forgets_what_was_and_the_pause_after_it():
    clock = FakeClock(5.0)
    meter = RealtimeMeter(clock)
    measured(clock, meter, 1.0, 0.002, 1.0)
    meter.clear()
    assert math.isnan(meter.reading().factor)
    clock.advance(60.0)
    meter.clear()
    assert measured(clock, meter, 1.0, 0.002, 0.2).factor == pytest.approx(1.0, rel=0.02)


def test_a_hanging_step_pulls_the_factor_down_while_it_hangs():
    clock = FakeClock(5.0)
    meter = RealtimeMeter(clock)
    measured(clock, meter, 1.0, 0.002, 1.0)
    clock.advance(0.5)
    assert meter.reading().factor == pytest.approx(0.5, abs=0.1)
    clock.advance(9.0)
    assert meter.reading().factor < 0.02


def test_shares_name_every_part_and_stay_within_one():
    clock = FakeClock(5.0)
    meter = RealtimeMeter(clock)
    for _ in range(500):
        clock.advance(0.002)
        meter.add(
            step_s=0.0008,
            plugins_s=0.0004,
            publish_s=0.0002,
            render_s=0.0001,
            wait_s=0.0005,
            sim_s=0.002,
        )
    reading = meter.reading()
    shares = (reading.step, reading.plugins, reading.publish, reading.render, reading.wait)
    assert shares == pytest.approx((0.4, 0.2, 0.1, 0.05, 0.25), abs=0.02)
    assert sum(shares) <= 1.0 + 1e-9


# -- the waker -----------------------------------------------------------------------------------


def test_sleep_without_a_wake_takes_its_time_and_says_so():
    waker = Waker()
    start = time.monotonic()
    assert waker.sleep(0.01) is False
    assert time.monotonic() - start >= 0.01


def test_a_wake_before_the_sleep_is_kept_and_twice_is_once():
    waker = Waker()
    waker.wake()
    waker.wake()
    assert waker.sleep(10.0) is True
    assert waker.sleep(0.0) is False


def test_a_wake_ends_the_sleep_of_another_thread():
    waker, woken = Waker(), []

    def sleeper():
        while not waker.sleep(WAIT_BOUND_S):
            pass
        woken.append(True)

    thread = threading.Thread(target=sleeper)
    thread.start()
    waker.wake()
    thread.join(10.0)
    assert woken == [True]


@pytest.mark.slow
def test_no_sleep_is_longer_than_the_bound():
    waker = Waker()
    start = time.monotonic()
    assert waker.sleep(math.inf) is False
    assert WAIT_BOUND_S <= time.monotonic() - start < 10 * WAIT_BOUND_S


def test_wakes_from_many_threads_at_once_never_raise():
    waker, errors = Waker(), []

    def wake():
        try:
            for _ in range(500):
                waker.wake()
        except RuntimeError as error:
            errors.append(error)

    threads = [threading.Thread(target=wake) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        waker.sleep(0.001)
    for thread in threads:
        thread.join()
    assert errors == []
