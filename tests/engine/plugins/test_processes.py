"""Threads, the end of the interpreter, interrupts, and long use."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest
from mujoco import rollout

from mjhost import engine
from mjhost.engine import failures, frames, lives, registry, trampolines
from mjhost.errors import EnginePluginError

PRELUDE = """
import atexit, sys, threading, time, mujoco

stop = threading.Event()

def run():
    while not stop.is_set():
        mujoco.mj_step(model, data, 50)

thread = threading.Thread(target=run, daemon=True)

@atexit.register
def end():
    if thread.is_alive():
        before = data.plugin_state[0]
        mujoco.mj_step(model, data)
        time.sleep(0.05)
        stop.set()
        thread.join()
        assert data.plugin_state[0] - before < 200, "the engine still enters Python"

from mjhost import engine
from mjhost.engine import frames
if sys.argv[1] == "bare":
    frames.available = lambda: False

@engine.plugin("test.exit", ("passive",))
class Slow:
    state_size = 1
    def destroy(self, data, instance):
        print("destroyed", flush=True)
    def compute(self, model, data, instance, capability):
        self.state[0] += 1

model = mujoco.MjModel.from_xml_string('''<mujoco>
  <extension><plugin plugin="test.exit"><instance name="i"/></plugin></extension>
  <worldbody><body><joint type="slide"/><geom size=".1"/><plugin instance="i"/></body></worldbody>
</mujoco>''')
data = mujoco.MjData(model)
mujoco.mj_step(model, data)
"""


def run(script, way):
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", PRELUDE + textwrap.dedent(script), way],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    [
        "",
        "sys.exit(3)",
        "raise SystemExit(3)",
        # A thread in plain mj_step when the interpreter goes away is fatal without any plugin too;
        # this one is stopped by an exit handler that comes after ours.
        "thread.start(); time.sleep(0.1)",
        "thread.start(); sys.exit(3)",
        "import gc; gc.disable(); keep = [mujoco.MjData(model) for _ in range(20)]",
        "modules = sys.modules; modules['data_kept'] = data",
    ],
)
def test_the_interpreter_ends_cleanly_whatever_lives_or_steps(way, script):
    done = run(script, way)
    assert done.returncode == (3 if "3)" in script else 0), done.stderr
    assert "Traceback" not in done.stderr
    assert "Fatal" not in done.stderr


@pytest.mark.slow
def test_failures_that_nobody_asked_for_are_told_at_the_end(way):
    script = """
    import logging
    logging.basicConfig()
    from mjhost.engine import failures
    failures.park(failures.failure("x", 0, "", "compute", ValueError("never asked for")))
    """
    done = run(script, way)
    assert done.returncode == 0
    assert "never asked for" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_can_step_and_end(way):
    script = """
    import os
    child = os.fork()
    if child == 0:
        mujoco.mj_step(model, data)
        print("stepped", flush=True)
        sys.exit(0)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    done = run(script, way)
    assert (done.returncode, done.stdout.count("stepped")) == (0, 1), done.stderr


def counter(name, **body):
    class Counter:
        state_size = 1

        def compute(self, model, data, instance, capability):
            assert self.state[0] >= 0

        def advance(self, model, data, instance):
            self.state[0] += 1

    for key, value in body.items():
        setattr(Counter, key, value)
    engine.plugin(name, ("passive",))(Counter)


@pytest.mark.parametrize("threads", [0, 2])
def test_a_rollout_gives_the_same_numbers_on_any_number_of_threads(name, model_of, way, threads):
    counter(name)
    model = model_of(name)
    spec = mujoco.mjtState.mjSTATE_FULLPHYSICS
    size = mujoco.mj_stateSize(model, spec)
    datas = [mujoco.MjData(model) for _ in range(max(1, threads))]
    start = np.zeros((6, size))
    mujoco.mj_getState(model, datas[0], start[0], spec)
    start[:] = start[0]
    with rollout.Rollout(nthread=threads) as pool:
        states, _ = pool.rollout([model] * 6, datas, start, nstep=20)
    mujoco.mj_setState(model, datas[0], states[0, -1], spec)
    assert datas[0].plugin_state.tolist() == [20.0]
    assert len({states[k].tobytes() for k in range(6)}) == 1


def test_threads_with_data_of_their_own_do_not_meet(name, model_of, way):
    counter(name)
    model = model_of(name)
    results = {}

    def work(index):
        data = mujoco.MjData(model)
        for _ in range(100 + index):
            mujoco.mj_step(model, data)
        results[index] = data.plugin_state[0]

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {index: 100 + index for index in range(4)}


def test_a_reload_while_another_thread_steps_is_taken_over(name, model_of, way):
    counter(name)
    model = model_of(name)
    stop, seen = threading.Event(), []
    reached = threading.Event()

    class Counter:
        state_size = 1

        def compute(self, model, data, instance, capability):
            if not seen:
                seen.append("new")
                reached.set()

    def work():
        data = mujoco.MjData(model)
        while not stop.is_set():
            mujoco.mj_step(model, data, 10)

    thread = threading.Thread(target=work)
    thread.start()
    registry.reload(name, Counter)
    assert reached.wait(20)
    stop.set()
    thread.join()
    assert seen == ["new"]


def test_an_interrupt_in_a_method_surfaces_as_one(name, model_of, way):
    sent = []

    def compute(self, model, data, instance, capability):
        if sent:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):  # the interpreter looks here
                pass

    counter(name, compute=compute)
    model = model_of(name)
    data = mujoco.MjData(model)
    sent.append(True)
    with pytest.raises(KeyboardInterrupt):
        mujoco.mj_step(model, data)
        engine.check(data)


def test_an_interrupt_that_the_interpreter_drops_can_be_kept(name, model_of, way):
    counter(name)
    model = model_of(name)
    data = mujoco.MjData(model)
    thunk = trampolines.make(registry.plugin(name).lives)["compute"]
    report = SimpleNamespace(
        object=thunk, exc_value=KeyboardInterrupt(), exc_type=None, exc_traceback=None
    )
    assert failures.keep_dropped(report, data._address)
    with pytest.raises(KeyboardInterrupt):
        engine.check(data)
    foreign = SimpleNamespace(object=counter, exc_traceback=None)
    assert not failures.keep_dropped(foreign, data._address)


@pytest.mark.skipif(not frames.available(), reason="the extra fast is not installed")
def test_a_foreign_callback_that_calls_mujoco_does_not_make_a_failure_fatal(name, model_of):
    """On 3.15 such a callback leaves nobody to raise to: the failure is kept instead."""
    other = mujoco.MjModel.from_xml_string("<mujoco/>")
    other_data = mujoco.MjData(other)
    broken = []

    def compute(self, model, data, instance, capability):
        if broken:
            raise ValueError("after a foreign one")

    counter(name, compute=compute)
    model = model_of(name)
    data = mujoco.MjData(model)
    broken.append(True)
    mujoco.set_mjcb_passive(lambda m, d: mujoco.mj_energyPos(other, other_data))
    try:
        for _ in range(20):
            with pytest.raises(EnginePluginError, match="after a foreign one"):
                mujoco.mj_step(model, data)
                engine.check(data)
    finally:
        mujoco.set_mjcb_passive(None)


@pytest.mark.slow
def test_making_and_destroying_data_leaves_nothing(name, model_of, way):
    counter(name, init=lambda self, model, data, instance: bytearray(1000))
    model = model_of(name)
    owner = registry.plugin(name).lives

    def cycle(times):
        for _ in range(times):
            data = mujoco.MjData(model)
            mujoco.mj_step(model, data)
            del data

    cycle(50)
    gc.collect()
    before = len(gc.get_objects())
    cycle(200)
    gc.collect()
    assert len(gc.get_objects()) - before < 50
    assert not owner._records
    assert not owner._by_state
    assert not any(owner.hot.values())
    left = [entry for found in lives._lives_at.values() for entry in found]
    assert owner not in [other for other, _ in left]


def resident_kb():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


@pytest.mark.soak
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux only")
@pytest.mark.parametrize("fails", [False, True])
def test_ten_thousand_data_do_not_grow(name, model_of, way, fails):
    broken = []

    def compute(self, model, data, instance, capability):
        if broken:
            raise ValueError

    counter(name, init=lambda self, model, data, instance: bytearray(1000), compute=compute)
    model = model_of(name)
    if fails:
        broken.append(True)

    def cycle(times):
        for _ in range(times):
            data = mujoco.MjData(model)
            try:
                mujoco.mj_step(model, data)
                engine.check(data)
            except EnginePluginError:
                assert fails
            del data

    cycle(1000)
    gc.collect()
    before = resident_kb()
    cycle(10_000)
    gc.collect()
    assert resident_kb() - before < 2_000
    assert not failures.pending


@pytest.mark.soak
@pytest.mark.skipif(not frames.available(), reason="the extra fast is not installed")
@pytest.mark.parametrize("method", ["init", "reset", "copy"])
def test_a_thousand_failures_to_make_data_do_not_grow(name, model_of, method):
    import copy

    broken = []

    def fail(self, *arguments):
        if broken:
            raise ValueError("broken")

    counter(name, **{method: fail})
    model = model_of(name)
    source = mujoco.MjData(model)
    broken.append(True)

    def cycle(times):
        for _ in range(times):
            with pytest.raises(EnginePluginError):
                copy.copy(source) if method == "copy" else mujoco.MjData(model)

    cycle(200)
    gc.collect()
    before = resident_kb()
    cycle(1000)
    gc.collect()
    assert resident_kb() - before < 2_000
