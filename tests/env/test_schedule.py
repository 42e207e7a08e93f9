"""Rates in steps, against exact arithmetic."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mjhost.env.schedule import NEVER, Schedule, steps_for
from mjhost.errors import InvalidArgumentError


def nothing(*_):
    return None


def due_steps(schedule, task, total):
    """The steps at which ``task`` is due, taken in chunks as large as allowed."""
    steps, k = [], 0
    while k < total:
        chunk = min(schedule.next_due, total - k)
        k += chunk
        if task in schedule.advance(chunk):
            steps.append(k)
    return steps


def exact_due(rate, dt, total):
    """The definition, in fractions."""
    grain = dt / 10**9
    found, n = [], 1
    for k in range(1, total + 1):
        if k * dt >= n / rate - grain:
            found.append(k)
            while n / rate - grain <= k * dt:
                n += 1
    return found


# -- rates ---------------------------------------------------------------------------------------


def test_a_rate_that_divides_is_due_at_every_tenth_step():
    schedule = Schedule(0.001)
    task = schedule.add(100.0, nothing)
    assert due_steps(schedule, task, 1000) == list(range(10, 1001, 10))
    assert task.calls == 100


def test_a_rate_that_does_not_divide_never_drifts():
    schedule = Schedule(0.001)
    task = schedule.add(30, nothing)
    steps = due_steps(schedule, task, 1000)
    assert steps[:3] == [34, 67, 100]
    assert len(steps) == 30
    assert {b - a for a, b in itertools.pairwise(steps)} == {33, 34}


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(
    rate=st.fractions(min_value=Fraction(1, 3), max_value=3000, max_denominator=1000),
    period=st.fractions(
        min_value=Fraction(1, 5000), max_value=Fraction(1, 10), max_denominator=5000
    ),
)
def test_due_steps_are_those_of_exact_arithmetic(rate, period):
    schedule = Schedule(float(period))
    task = schedule.add(float(rate), nothing)
    assert due_steps(schedule, task, 400) == exact_due(rate, period, 400)


def test_the_chunks_in_which_steps_are_taken_do_not_matter():
    one, many = Schedule(0.002), Schedule(0.002)
    slow, fast = one.add(37.0, nothing), many.add(37.0, nothing)
    by_one = [k for k in range(1, 701) if one.advance(1) == (slow,)]
    assert due_steps(many, fast, 700) == by_one


@pytest.mark.parametrize("k", [10**9, 10**12, 10**15])
def test_no_step_is_late_or_early_after_very_many_steps(k):
    schedule = Schedule(1 / 240)
    schedule.advance(8 * k)
    eighth, seventh = schedule.add(240 / 8, nothing), schedule.add(240.0 / 7, nothing)
    assert schedule.next_due == min(8, 7 - 8 * k % 7)
    assert due_steps(schedule, eighth, 80) == list(range(8, 81, 8))
    assert seventh.calls in {11, 12}
    assert schedule.steps == 8 * k + 80


def test_a_task_faster_than_the_timestep_is_due_once_at_every_step():
    schedule = Schedule(0.01)
    task = schedule.add(1e6, nothing)
    assert due_steps(schedule, task, 50) == list(range(1, 51))
    assert task.calls == 50


def test_a_rate_of_exactly_the_timestep_is_due_at_every_step():
    schedule = Schedule(1 / 240)
    task = schedule.add(240.0, nothing)
    assert due_steps(schedule, task, 1000) == list(range(1, 1001))


def test_a_task_added_later_falls_into_the_grid_of_the_anchor():
    schedule = Schedule(0.001)
    schedule.advance(15)
    task = schedule.add(100.0, nothing)
    assert schedule.next_due == 5
    assert schedule.advance(5) == (task,)


def test_a_task_added_on_its_own_boundary_waits_for_the_next():
    schedule = Schedule(0.001)
    schedule.advance(10)
    schedule.add(100.0, nothing)
    assert schedule.next_due == 10


def test_tasks_due_together_come_in_the_order_they_were_added():
    schedule = Schedule(0.001)
    tasks = tuple(schedule.add(rate, nothing) for rate in (100.0, 50.0, 100.0))
    assert schedule.advance(10) == (tasks[0], tasks[2])
    assert schedule.advance(10) == tasks


def test_reanchoring_counts_from_zero_with_the_new_timestep():
    schedule = Schedule(0.001)
    task = schedule.add(100.0, nothing)
    schedule.advance(7)
    schedule.reanchor(0.002)
    assert schedule.steps == 0
    assert schedule.dt == 0.002
    assert due_steps(schedule, task, 20) == [5, 10, 15, 20]


def test_without_tasks_nothing_is_ever_due():
    schedule = Schedule(0.001)
    assert schedule.next_due == NEVER
    assert schedule.advance(10**12) == ()
    assert schedule.steps == 10**12
    assert schedule.next_due > 10**18


def test_removing_a_task_makes_room_for_the_others_and_marks_it():
    schedule = Schedule(0.001)
    fast, slow = schedule.add(100.0, nothing), schedule.add(10.0, nothing)
    schedule.advance(4)
    assert schedule.remove(fast) is True
    assert (fast.active, slow.active) == (False, True)
    assert schedule.next_due == 96
    assert schedule.steps == 4
    assert schedule.remove(fast) is False
    assert schedule.remove(slow) is True
    assert len(schedule) == 0
    assert schedule.steps == 4


def test_overrunning_a_boundary_is_refused_and_counts_nothing():
    schedule = Schedule(0.001)
    schedule.add(100.0, nothing)
    with pytest.raises(RuntimeError, match="due in 10 steps, 11 were taken"):
        schedule.advance(11)
    assert schedule.steps == 0
    assert schedule.next_due == 10


@pytest.mark.parametrize("rate", [0, -1.0, math.inf, math.nan, True, "30", None])
def test_a_rate_that_is_no_rate_is_refused(rate):
    schedule = Schedule(0.001)
    with pytest.raises(InvalidArgumentError, match="rate_hz"):
        schedule.add(rate, nothing)
    assert len(schedule) == 0


def test_a_refused_timestep_changes_nothing():
    schedule = Schedule(0.001)
    schedule.add(100.0, nothing)
    schedule.advance(3)
    with pytest.raises(InvalidArgumentError, match="dt"):
        schedule.reanchor(0.0)
    assert (schedule.dt, schedule.steps, schedule.next_due) == (0.001, 3, 7)


def test_a_task_is_named_after_its_function_unless_told():
    schedule = Schedule(0.001)
    assert schedule.add(1.0, nothing).name == "nothing"
    assert schedule.add(1.0, nothing, "control").name == "control"


# -- durations -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "dt", "steps"),
    [
        (0.035, 0.005, 7),
        (0.0, 0.001, 0),
        (1e-12, 0.001, 0),
        (1e-11, 0.001, 1),
        (0.001, 0.001, 1),
        (0.0011, 0.001, 2),
        (0.1 + 0.2, 0.001, 300),
        (1.0, 1 / 240, 240),
        (0.004166666666666667, 1 / 240, 1),
        (0.0041666666666667, 1 / 240, 1),
        (7 * 0.004166666666666667, 0.004166666666666667, 7),
        (3600.0 * 24 * 365, 0.0005, 63_072_000_000),
        (123456.789, 0.001, 123_456_789),
    ],
)
def test_durations_in_steps(seconds, dt, steps):
    assert steps_for(seconds, dt) == steps


@settings(deadline=None, max_examples=100)
@given(
    steps=st.integers(0, 10**12),
    dt=st.sampled_from([0.001, 0.002, 0.005, 1 / 240, 1 / 60, 1 / 3, 0.0001, 0.0333]),
    off=st.sampled_from([-0.5, -1e-3, 0.0, 1e-3, 0.5]),
)
def test_durations_are_those_of_exact_arithmetic(steps, dt, off):
    meant = Fraction(dt).limit_denominator(10**6)
    seconds = float(max(Fraction(0), steps + Fraction(off)) * meant)
    exact = Fraction(seconds) / meant
    # A duration is itself rounded to a float: judge where that cannot matter.
    if off or steps < 10**5:
        expected = math.ceil(exact - Fraction(1, 10**6)) if off == 0 else math.ceil(steps + off)
        assert steps_for(seconds, dt) == max(0, expected)


@given(
    seconds=st.floats(0.0, 1e4, allow_nan=False),
    dt=st.floats(1e-6, 1.0),
)
@settings(deadline=None, max_examples=150)
def test_the_result_is_the_smallest_that_reaches_the_duration(seconds, dt):
    k, grain = steps_for(seconds, dt), Fraction(1, 10**9)
    slack = Fraction(1, 10**15)  # relative: half a unit in the last place of either number
    ratio = Fraction(seconds) / Fraction(dt)
    assert k >= ratio * (1 - slack) - grain
    assert k == 0 or k - 1 < ratio * (1 + slack) - grain


@pytest.mark.parametrize(
    "seconds", [-1e-9, -1.0, math.inf, -math.inf, math.nan, True, "1", None, 1e300]
)
def test_durations_that_make_no_sense_are_refused(seconds):
    with pytest.raises(InvalidArgumentError, match="duration"):
        steps_for(seconds, 0.001)


def test_durations_of_a_refused_timestep_are_refused():
    with pytest.raises(InvalidArgumentError, match="dt"):
        steps_for(1.0, 0.0)
