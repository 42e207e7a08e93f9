"""Public reports about reload and reset; the case ids are in the docstrings."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import mujoco
import numpy as np
import pytest

from mjhost import ModelLoadError, MujocoEnv, StaleGenerationError
from mjhost.env.events import ResetDone
from tests.cases.inputs import copied_case
from tests.env.models import state_of

BAD_RELOADS = {
    "missing_mesh.xml": "gone.stl",
    "missing_tex.xml": "gone.png",
    "missing_inc.xml": "gone.xml",
    "syntax.xml": "line",
}


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_a_failed_reload_names_the_reason_and_the_old_simulation_runs_on(host_case, tmp_path):
    """RL-01."""
    folder = copied_case("RL-01", tmp_path)
    env = host_case("RL-01", "good.xml", realtime=None)
    called = threading.Event()
    token = env.every(500, lambda _m, _d: called.set())
    env.resume()
    generations, pair = env.generations, (env.model, env.data)
    for name, reason in BAD_RELOADS.items():
        before = env.info
        with pytest.raises(ModelLoadError, match=f"(?i){reason}") as caught:
            env.reload(folder / name)
        assert name in str(caught.value)
        assert reason in env.info.load_error.lower()
        called.clear()
        assert called.wait(20)
        info = env.info
        assert info.sim_time > before.sim_time
        assert (info.source, info.paused) == (before.source, False)
    env.pause()
    assert env.generations == generations
    assert (env.model, env.data) == pair
    token.remove()


@pytest.mark.parametrize(
    "reloads",
    [
        pytest.param(40, marks=pytest.mark.slow),
        pytest.param(500, marks=[pytest.mark.slow, pytest.mark.soak]),
    ],
)
def test_repeated_reloads_keep_no_file_open_and_no_memory(tmp_path, reloads):
    """RL-02, with three tasks instead of hooks and no camera."""
    model = copied_case("RL-02", tmp_path) / "model.xml"
    with MujocoEnv(model) as env:
        tokens = [env.every(rate, lambda _m, _d: None) for rate in (500, 100, 30)]
        for _ in range(20):
            env.reload(model)
        gc.collect()
        files, resident = open_files(), resident_mb()
        for _ in range(reloads):
            env.reload(model)
            env.step(3)
        gc.collect()
        assert open_files() == files
        assert resident_mb() - resident < 10
        assert env.info.load_count == reloads + 21
        for token in tokens:
            token.remove()


@pytest.mark.slow
def test_a_changed_mesh_attribute_is_compiled_as_in_a_fresh_process(tmp_path):
    """RL-04."""
    folder = copied_case("RL-04", tmp_path)
    code = (
        "import sys, mujoco; m = mujoco.MjModel.from_xml_path(sys.argv[1]);"
        "print(m.mesh_normal.tobytes().hex())"
    )
    cold = {
        name: subprocess.run(
            [sys.executable, "-c", code, str(folder / name)],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout.strip()
        for name in ("flat.xml", "smooth.xml")
    }
    assert cold["flat.xml"] != cold["smooth.xml"]
    with MujocoEnv(folder / "flat.xml") as env:
        for name in ("smooth.xml", "flat.xml", "smooth.xml"):
            env.reload(folder / name)
            assert env.model.mesh_normal.tobytes().hex() == cold[name]


def test_the_session_clock_goes_on_over_a_reset_and_publishers_with_it(host_case):
    """RL-09, the default mode; a task stands for the publisher of joint states."""
    env = host_case("RL-09")
    published = []
    token = env.every(50, lambda _m, _d: published.append(env.info.session_time))
    env.step(1000)
    clock = env.info.session_time
    assert clock == pytest.approx(2.0)
    assert len(published) == 100
    with env.events.subscribe() as events:
        env.reset()
        assert [type(event) for event in events.drain()] == [ResetDone]
    assert env.info.session_time >= clock
    assert env.info.sim_time == 0.0
    env.step(1)
    assert env.info.session_time > clock
    env.step(9)  # one period of 20 ms
    assert len(published) == 101
    assert clock < published[-1] <= clock + 0.02 + 1e-9
    assert published == sorted(published)
    token.remove()


def disturb(env):
    """Everything that somebody who plays with the robot leaves behind."""
    with env.access() as (_model, data):
        data.xfrc_applied[:] = 3
        data.qfrc_applied[:] = 1
        data.ctrl[:] = 1
        data.qvel[:] = 2
        data.eq_active[:] = 0
        data.qacc_warmstart[:] = 5
    env.step(321)


def logged(model, data, step):
    log = []
    for _ in range(200):
        step()
        log.append(data.qpos.copy())
    return np.array(log)


def test_a_run_after_a_reset_is_bit_for_bit_that_of_a_fresh_load(host_case):
    """RL-12."""
    env = host_case("RL-12")
    model = mujoco.MjModel.from_xml_path(env.info.source)
    data = mujoco.MjData(model)
    reference = logged(model, data, lambda: mujoco.mj_step(model, data))
    fresh = state_of(env.model, env.data)
    for _ in range(2):
        disturb(env)
        env.reset()
        live = env.data
        for name in ("qvel", "act", "ctrl", "xfrc_applied", "qfrc_applied", "qacc_warmstart"):
            assert not getattr(live, name).any(), name
        assert live.qpos.tolist() == env.model.qpos0.tolist()
        assert state_of(env.model, live) == fresh
        log = logged(env.model, live, env.step)
        assert log.tobytes() == reference.tobytes()


def test_data_of_an_old_model_never_reaches_the_engine_with_the_new_one(host_case):
    """RL-14; checkpoints and cameras come with their parts."""
    env = host_case("RL-14", "small.xml")
    generation, old = env.generations.model, env.data
    env.reload(Path(env.info.source).with_name("big.xml"))
    assert env.model.nbody == 201
    entered = []
    with pytest.raises(StaleGenerationError, match="replaced"), env.access(generation):
        entered.append(1)
    assert entered == []
    time_of_old = old.time
    assert env.step(50).completed == 50
    assert old.time == time_of_old
    assert env.data is not old
    assert np.isfinite(env.data.qpos).all()
