"""Several pairs in several threads."""

from __future__ import annotations

import threading

import mujoco
import pytest

from tests.callbacks.scenes import Counter, hinge, rich, step, symbols


def in_threads(*jobs, timeout=60):
    errors = []

    def guarded(job):
        try:
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]


def test_two_pairs_stepped_in_turn_never_meet(router):
    a, b = router.attach(*hinge()), router.attach(*hinge())
    calls = {"a": [], "b": []}
    a.set("control", lambda model, data: calls["a"].append(data))
    b.set("control", lambda model, data: calls["b"].append(data))
    for turn in range(11):
        if turn < 7:
            step(a)
        step(b)
    assert len(calls["a"]) == 7
    assert all(data is a.data for data in calls["a"])
    assert len(calls["b"]) == 11
    assert all(data is b.data for data in calls["b"])
    a.detach()
    step(b)
    assert len(calls["b"]) == 12
    b.detach()


@pytest.mark.slow
def test_eight_pairs_in_eight_threads_never_meet(router):
    routes = [router.attach(*rich()) for _ in range(8)]
    wrong, counts = [], [0] * 8

    def hook(number, route):
        def control(model, data):
            if data is not route.data or model is not route.model:
                wrong.append(number)
            counts[number] += 1
            data.ctrl[0] = number

        def clock():
            counts[number] += 0
            return float(number)

        route.set("control", control)
        route.set("act_gain", lambda model, data, i: float(number))
        route.set("time", clock)

    def run(number, route):
        def job():
            with route.stepping():
                for _ in range(150):
                    mujoco.mj_step(route.model, route.data)
                    if route.data.ctrl[0] != number:
                        wrong.append(number)

        return job

    for number, route in enumerate(routes):
        hook(number, route)
    in_threads(*(run(number, route) for number, route in enumerate(routes)))
    assert not wrong
    assert counts == [150] * 8
    for route in routes:
        assert not route.parked
        route.detach()


@pytest.mark.slow
def test_no_call_is_missed_while_other_hooks_come_and_go(router):
    before = symbols()
    steady = router.attach(*hinge())
    calls, done = [], threading.Event()
    steady.set("control", lambda model, data: calls.append(1))
    steps = [0]

    def stepping():
        while not done.is_set():
            mujoco.mj_step(steady.model, steady.data)
            steps[0] += 1

    def changing():
        try:
            for _ in range(150):
                route = router.attach(*hinge())
                counter = Counter()
                for kind in ("control", "passive", "sensor"):
                    route.set(kind, counter.hook(kind))
                step(route)
                assert counter.calls["control"] == counter.calls["passive"] == 1
                route.detach()
        finally:
            done.set()

    in_threads(stepping, changing)
    assert len(calls) == steps[0] > 0
    steady.detach()
    assert symbols() == before


@pytest.mark.slow
def test_installing_and_removing_beside_stepping_strangers_is_safe(router):
    """The last hook goes again and again while a plain loop steps: null is written under it."""
    model, data = hinge()
    done, steps = threading.Event(), [0]

    def plain():
        while not done.is_set():
            mujoco.mj_step(model, data, 20)
            steps[0] += 1

    def changing():
        try:
            for _ in range(300):
                route = router.attach(*hinge())
                route.set("control", lambda model, data: None)
                route.set("passive", lambda model, data: None)
                route.detach()
        finally:
            done.set()

    in_threads(plain, changing)
    assert steps[0] > 0


@pytest.mark.slow
def test_hooks_swapped_from_another_thread_are_each_called_with_their_pair(router):
    route = router.attach(*hinge())
    done, called = threading.Event(), threading.Event()

    def hook(number):
        def control(model, data):
            assert model is route.model
            assert data is route.data
            called.set()

        return control

    def stepping():
        while not done.is_set():
            mujoco.mj_step(route.model, route.data)

    def swapping():
        try:
            for number in range(200):
                route.set("control", hook(number))
                if number % 20 == 0:
                    assert called.wait(30)
                    route.set("control", None)
                    called.clear()
        finally:
            done.set()

    in_threads(stepping, swapping)
    assert not route.parked
    route.detach()


def test_a_rollout_on_worker_threads_leaves_hooks_alone(router):
    from mujoco import rollout

    model, data = hinge()
    route = router.attach(model, data)
    counter = Counter()
    route.set("control", counter.hook("control"))
    import numpy as np

    size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    with rollout.Rollout(nthread=2) as pool:
        pool.rollout(model, [mujoco.MjData(model) for _ in range(2)], np.zeros((4, size)), nstep=5)
    assert counter.calls["control"] == 0
    route.detach()
