"""Public reports about real time, pause and step; the case ids are in the docstrings.

What is measured on the wall clock is measured in windows, and one good window of three is enough:
a machine that is busy for a second says nothing about the pacing.
"""

from __future__ import annotations

import random
import threading
import time
from itertools import pairwise

import pytest

from mjhost import InvalidArgumentError, NotPausedError
from mjhost.env.events import StepLimitReached
from tests.concurrency.support import any_window

pace = threading.Event()  # never set: its wait is the distance between two samples


def sampled(env):
    """Wall time and simulation time of the same moment, as far as two clocks can be read."""
    before = time.perf_counter()
    info = env.info
    return (before + time.perf_counter()) / 2, info.sim_time, info


def paced(env, factor, seconds, *, end_s, any_s):
    """What is wrong with ``seconds`` of wall time at ``factor``."""
    env.realtime = factor
    wall0, sim0, _ = sampled(env)
    problems = []
    while True:
        pace.wait(0.1)
        wall, sim, info = sampled(env)
        error = abs((sim - sim0) - factor * (wall - wall0))
        if error > any_s * max(1.0, factor):
            problems.append(f"{error:.4f} s after {wall - wall0:.2f} s")
        if wall - wall0 >= seconds:
            break
    if error > end_s * max(1.0, factor):
        problems.append(f"{error:.4f} s at the end")
    measured = (sim - sim0) / (wall - wall0)
    if seconds >= 1.5 and abs(info.realtime_measured / measured - 1) > 0.02:
        problems.append(f"reported {info.realtime_measured:.4f}, measured {measured:.4f}")
    return problems


@pytest.mark.slow
def test_simulated_time_keeps_to_the_wall_clock(host_case):
    """RT-01, a fifth of its length and of its tolerances at the end."""
    env = host_case("RT-01", running=True)
    any_window(lambda: paced(env, 1.0, 2.0, end_s=0.004, any_s=0.05))


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_other_factors_are_kept_within_a_percent(host_case, factor):
    """RT-01."""
    env = host_case("RT-01", running=True)
    any_window(lambda: paced(env, factor, 1.5, end_s=0.015 * factor, any_s=0.05))


@pytest.mark.slow
@pytest.mark.soak
def test_simulated_time_keeps_to_the_wall_clock_for_long(host_case):
    """RT-01, at full length."""
    env = host_case("RT-01", running=True)
    any_window(lambda: paced(env, 1.0, 10.0, end_s=0.02, any_s=0.05))
    for factor in (0.5, 2.0):
        any_window(lambda: paced(env, factor, 5.0, end_s=0.05 * factor, any_s=0.05))


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0, float("inf"), None])
def test_unlimited_is_faster_than_real_time(host_case, factor):
    """RT-01."""
    env = host_case("RT-01", realtime=factor, running=True)

    def window():
        wall0, sim0, _ = sampled(env)
        pace.wait(0.3)
        wall, sim, info = sampled(env)
        achieved = (sim - sim0) / (wall - wall0)
        good = achieved > 1 and info.realtime_measured > 1 and info.realtime_target is None
        return [] if good else [f"{achieved} {info.realtime_measured}"]

    any_window(window)


@pytest.mark.slow
@pytest.mark.parametrize("repeats", [40, pytest.param(200, marks=pytest.mark.soak)])
def test_steps_after_a_pause_are_exactly_those_asked_for(host_case, repeats):
    """RT-04, while four threads look at the env."""
    env = host_case("RT-04", realtime=None)
    stop, failures = threading.Event(), []

    def look():
        try:
            while not stop.is_set():
                info = env.info
                if info.step_count != round(info.sim_time / 0.002):
                    failures.append(info)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    chance = random.Random(4)
    try:
        for _ in range(repeats):
            env.resume()
            pace.wait(chance.uniform(0, 0.02))
            env.pause()
            at_pause = env.info
            pace.wait(0.003)
            assert env.info == at_pause
            assert env.step(100).completed == 100
            after = env.info
            assert after.step_count == at_pause.step_count + 100
            assert after.sim_time == pytest.approx(at_pause.sim_time + 0.2, abs=1e-9)
            if after.step_count > 500_000:
                env.reset()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []


def test_a_hundred_steps_from_the_start_end_at_the_exact_sum(host_case):
    """RT-04."""
    env = host_case("RT-04", running=True)
    env.pause()
    env.reset()
    env.step(100)
    assert env.data.time == 0.20000000000000015


@pytest.mark.parametrize("clients", [2, 8])
def test_step_requests_of_several_clients_are_never_merged(host_case, clients):
    """RT-04."""
    env = host_case("RT-04")
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(env.step(100).completed))
        for _ in range(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [100] * clients
    assert env.info.step_count == 100 * clients


@pytest.mark.slow
def test_a_step_request_while_running_is_refused_and_disturbs_nothing(host_case):
    """RT-05; a task at every step stands for the hook."""
    env = host_case("RT-05")
    calls = []
    token = env.every(1000, lambda _m, _d: calls.append(1))
    env.resume()

    def window():
        start, count = time.perf_counter(), env.info.step_count
        for _ in range(20):
            with pytest.raises(NotPausedError, match="running; call pause"):
                env.step(10)
            with pytest.raises(NotPausedError):
                env.advance(0.01)
            with pytest.raises(NotPausedError):
                env.step_async(10)
            pace.wait(0.05)
        steps, elapsed = env.info.step_count - count, time.perf_counter() - start
        error = abs(steps - 1000 * elapsed)
        return [] if error <= 50 else [f"{error} steps off after {elapsed} s"]

    any_window(window)
    env.pause()
    assert len(calls) == env.info.step_count
    for bad in (0, -1, 1.5):
        with pytest.raises(InvalidArgumentError):
            env.step(bad)
    assert len(calls) == env.info.step_count
    token.remove()


def test_one_command_is_one_step_however_it_is_observed(host_case):
    """RT-07; a task at every step stands for the control hook."""
    env = host_case("RT-07")
    calls = []
    token = env.every(1000, lambda _m, _d: calls.append(1))
    expected = 0.0
    for k in range(1, 11):
        with env.access() as (_model, data):
            data.xfrc_applied[1, 2] = k
        assert (len(calls), env.info.step_count, env.data.time) == (k - 1, k - 1, expected)
        env.step(1)
        expected += 0.001
        assert env.data.qpos[2] != 0
        assert (len(calls), env.info.step_count, env.data.time) == (k, k, expected)
    token.remove()


@pytest.mark.parametrize(
    ("factor", "seconds"),
    [
        pytest.param(0.2, 0.1, marks=pytest.mark.slow),
        pytest.param(1.0, 1.0, marks=pytest.mark.slow),
        pytest.param(None, 1.0),
        pytest.param(0.2, 1.0, marks=[pytest.mark.slow, pytest.mark.soak]),
    ],
)
def test_a_rate_is_one_of_simulated_time_at_any_factor(host_case, factor, seconds):
    """RT-08."""
    env = host_case("RT-08", realtime=factor)
    calls = {100: [], 30: []}
    tokens = [
        env.every(rate, lambda _m, _d, steps=steps: steps.append(env.info.step_count))
        for rate, steps in calls.items()
    ]
    with env.events.subscribe() as events:
        env.stop_at(time=seconds)
        env.resume()
        while not isinstance(events.get(30), StepLimitReached):
            continue
    assert env.info.step_count == round(1000 * seconds)
    assert calls[100] == list(range(10, round(1000 * seconds) + 1, 10))
    assert len(calls[30]) == round(30 * seconds)
    gaps = {b - a for a, b in pairwise(calls[30])}
    assert gaps <= {33, 34}
    for token in tokens:
        token.remove()
