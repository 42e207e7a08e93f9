"""What a reload leaves behind: nothing."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from pathlib import Path

import pytest

from mjhost import MujocoEnv
from tests.env.models import BALL, PENDULUM

GROWTH_MB = 5.0


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def reload_once(env, k, old):
    old.append((weakref.ref(env.data), weakref.ref(env._core.hosted.state)))
    env.apply_runtime_options({"density": k % 7})
    env.reload(BALL if k % 2 else PENDULUM, options="keep" if k % 3 else "model")
    if not k % 10:
        env.reset(model=True)


@pytest.mark.slow
@pytest.mark.parametrize("reloads", [100, pytest.param(1000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("running", [False, True])
def test_reloads_keep_no_model_no_memory_no_thread_and_no_file(reloads, running):
    old = []
    with MujocoEnv(PENDULUM, realtime=None, running=running) as env:
        tokens = [env.every(100, lambda _m, _d: None), env.every(30, lambda _m, _d: None)]
        for k in range(50):
            reload_once(env, k, old)
        gc.collect()
        resident, files, threads = resident_mb(), open_files(), threading.active_count()
        for k in range(reloads):
            reload_once(env, k, old)
            if not running:
                env.step(5)
        gc.collect()
        assert [refs for refs in old if any(ref() is not None for ref in refs)] == []
        assert open_files() == files
        assert threading.active_count() == threads
        assert resident_mb() - resident < GROWTH_MB
        for token in tokens:
            token.remove()


@pytest.mark.slow
def test_envs_that_come_and_go_leave_nothing():
    def live(xml):
        with MujocoEnv(xml, realtime=None, running=True) as env:
            env.pause()
            env.step(3)
            return weakref.ref(env), weakref.ref(env.data)

    for _ in range(10):
        live(PENDULUM)
    gc.collect()
    resident, files, threads = resident_mb(), open_files(), threading.active_count()
    refs = [ref for k in range(60) for ref in live(BALL if k % 2 else PENDULUM)]
    gc.collect()
    assert [ref for ref in refs if ref() is not None] == []
    assert (open_files(), threading.active_count()) == (files, threads)
    assert resident_mb() - resident < GROWTH_MB
