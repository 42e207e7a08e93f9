"""What must hold under attack."""

from __future__ import annotations

import gc
import resource
import threading
import tracemalloc
import weakref
from pathlib import Path

import mujoco
import pytest

from mjhost.errors import LockOrderError
from mjhost.generation import ModelGeneration, PluginGeneration
from mjhost.locking import LockLevel, OrderedLock
from mjhost.plugins import Plugin, PluginFactory, PluginHost
from tests.plugins.probes import Boom, Generations, ProbeAdapter, host_of

WAIT_S = 10.0


def run_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    return thread


@pytest.mark.parametrize("ending", ["quiesce", "load"])
def test_quiesce_waits_for_a_callback_in_flight_on_another_thread(model, data, ending):
    inside, go_on = threading.Event(), threading.Event()
    order = []

    class Slow(Plugin):
        def control(self, model, data):
            inside.set()
            assert go_on.wait(WAIT_S)
            order.append("callback returned")

        def close(self):
            order.append("closed")

    generations = host_of(model, data, Slow)
    host = generations.host
    stepping = run_thread(lambda: generations.dispatch("control"))
    assert inside.wait(WAIT_S)
    end = host.quiesce_and_destroy if ending == "quiesce" else generations.load
    closing = run_thread(end)
    while not host.lock.contended:  # until the closing thread waits
        closing.join(0.001)
    assert order == []
    go_on.set()
    stepping.join(WAIT_S)
    closing.join(WAIT_S)
    assert order == ["callback returned", "closed"]


def test_quiesce_waits_for_a_step_scope_of_another_thread(model, data):
    order = []

    class Watched(Plugin):
        def control(self, model, data):
            order.append("control")

        def close(self):
            order.append("closed")

    generations = host_of(model, data, Watched)
    host = generations.host
    call = host.dispatcher("control", generations.model_generation)
    with host.step_scope():
        call(model, data)
        closing = run_thread(host.quiesce_and_destroy)
        while not host.lock.contended:
            closing.join(0.001)
        call(model, data)
    closing.join(WAIT_S)
    assert order == ["control", "control", "closed"]


def test_dispatch_from_many_threads_and_reloads_never_meet(model, data):
    """A closed plugin is never called, and no two hooks run at the same time."""
    problems = []

    class Alone(Plugin):
        def __init__(self):
            super().__init__()
            self.closed = False
            self.busy = 0

        def control(self, model, data):
            self.busy += 1
            if self.closed or self.busy != 1:
                problems.append((self.closed, self.busy))
            self.busy -= 1

        def close(self):
            if self.busy:
                problems.append("closed while busy")
            self.closed = True

    generations = host_of(model, data, Alone, Alone)
    done = threading.Event()

    def hammer():
        while not done.is_set():
            generations.host.dispatch_control(model, data)

    threads = [run_thread(hammer) for _ in range(3)]
    for _ in range(30):
        generations.load()
    done.set()
    for thread in threads:
        thread.join(WAIT_S)
    assert problems == []


def reload_often(model, count):
    refs = []

    class Heavy(Plugin):
        def load(self, model, data):
            self.payload = bytearray(50_000)
            self.kept = (model, data)
            refs.append(weakref.ref(self))

        def control(self, model, data):
            raise Boom

        def post_step(self, model, data): ...

        def reset(self): ...

    host = PluginHost(PluginFactory([Heavy, Heavy, Heavy]))
    old = []
    for number in range(1, count + 1):
        data = mujoco.MjData(model)
        if number % 10 == 0:
            old.append(weakref.ref(data))
        generation = ModelGeneration(number)
        assert host.load_generation(model, data, generation, PluginGeneration(number)).ok
        call = host.dispatcher("control", generation)
        with pytest.raises(Boom):
            call(model, data)
        host.dispatch_post_step(model, data, model_generation=generation)
        with host.acquire_scoped_access() as access:
            access.proxy("Heavy_2")
        host.reset(model_generation=generation)
        host.statistics()
    host.quiesce_and_destroy()
    del data
    return host, refs, old


@pytest.mark.slow
def test_a_thousand_generations_leave_no_object_behind(model):
    threads = threading.active_count()
    host, refs, old = reload_often(model, 1000)
    gc.collect()
    assert len(refs) == 3000
    assert [ref for ref in refs if ref() is not None] == []
    assert [ref for ref in old if ref() is not None] == []
    assert threading.active_count() == threads
    assert host.statistics() == ()


def test_generations_do_not_need_the_garbage_collector(model):
    gc.collect()
    gc.disable()
    try:
        _, refs, _ = reload_often(model, 5)
        assert [ref for ref in refs[:-3] if ref() is not None] == []
    finally:
        gc.enable()


@pytest.mark.soak
def test_a_thousand_generations_do_not_grow_the_process(model):
    reload_often(model, 200)
    gc.collect()
    before = rss_kb()
    reload_often(model, 1000)
    gc.collect()
    assert rss_kb() - before < 5 * 1024


def rss_kb():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() // 1024


@pytest.mark.slow
def test_python_memory_does_not_grow_with_generations(model):
    reload_often(model, 20)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        reload_often(model, 100)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 200_000


@pytest.mark.parametrize("calls", [2, 3, 299, 600])
def test_a_plugin_that_fails_every_third_call_is_recorded_as_often_as_it_failed(model, data, calls):
    class Third(Plugin):
        count = 0

        def control(self, model, data):
            self.count += 1
            if self.count % 3 == 0:
                raise Boom(self.count)

    generations = host_of(model, data, Third)
    raised = 0
    for _ in range(calls):
        try:
            generations.dispatch("control")
        except Boom:
            raised += 1
    found = generations.host.diagnostics().of("control")
    assert raised == found.count == calls // 3
    kept = [int(f.error.removeprefix("Boom: ")) for f in (*found.first, *found.last)]
    failing = list(range(3, calls + 1, 3))
    expected = failing if len(failing) <= 100 else failing[:50] + failing[-50:]
    assert kept == expected
    timing = generations.host.statistics()[0].hooks["control"]
    assert (timing.calls, timing.raised) == (calls, raised)


def test_diagnostics_survive_quiesce_and_are_cleared_by_the_next_load(model, data):
    class Fails(Plugin):
        def control(self, model, data):
            raise Boom

        def close(self):
            raise Boom("close")

    generations = host_of(model, data, Fails)
    with pytest.raises(Boom):
        generations.dispatch("control")
    generations.host.quiesce_and_destroy()
    assert {f.phase for f in generations.host.diagnostics()} == {"control", "close"}
    generations.load()
    assert generations.host.diagnostics().total == 0


def test_failures_of_the_close_that_a_load_begins_with_are_kept(model, data):
    class Fails(Plugin):
        def close(self):
            raise Boom

    generations = host_of(model, data, Fails)
    generations.load()
    assert [f.phase for f in generations.host.diagnostics()] == ["close"]


def test_the_host_lock_is_below_physics_and_above_render(model, data):
    generations = host_of(model, data, Plugin)
    render = OrderedLock("render lock", LockLevel.RENDER)
    with generations.host.step_scope(), render:
        pass
    with render, pytest.raises(LockOrderError, match="render lock"):
        generations.dispatch("control")


def test_an_exception_whose_text_cannot_be_made_is_recorded_and_raised(model, data):
    class Hostile(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    class Fails(Plugin):
        def control(self, model, data):
            raise Hostile

    generations = host_of(model, data, Fails)
    with pytest.raises(Hostile):
        generations.dispatch("control")
    assert generations.host.diagnostics().of("control").first[0].error.startswith("Hostile")


def test_a_huge_error_text_is_cut(model, data):
    class Fails(Plugin):
        def control(self, model, data):
            raise Boom("x" * 10_000_000)

    generations = host_of(model, data, Fails)
    with pytest.raises(Boom):
        generations.dispatch("control")
    failure = generations.host.diagnostics().of("control").first[0]
    assert len(failure.error) < 3_000
    assert len(failure.traceback) < 30_000


def test_endless_recursion_in_a_hook_is_a_recorded_failure(model, data):
    class Deep(Plugin):
        def control(self, model, data):
            self.control(model, data)

    generations = host_of(model, data, Deep)
    with pytest.raises(RecursionError):
        generations.dispatch("control")
    assert generations.host.diagnostics().of("control").count == 1


def test_a_failing_adapter_among_hundreds_stops_no_other(model, data):
    fail = {n: ("load", "activate", "statistics")[n // 7 % 3] for n in range(0, 300, 7)}
    generations = Generations(
        lambda: [ProbeAdapter(f"p{n}", fail=[fail.get(n, "")]) for n in range(300)], model, data
    )
    report = generations.load()
    assert len(report.failures) == len(fail)
    dead = {f"p{n}" for n, phase in fail.items() if phase != "statistics"}
    assert set(report.ready) == {f"p{n}" for n in range(300)} - dead
