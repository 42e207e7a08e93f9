"""Public reports about extensions that run on threads of the engine, or beside a busy one."""

from __future__ import annotations

import threading
import time

import mujoco
import numpy as np
import pytest
from mujoco import rollout

from mjhost import EnginePluginError, MujocoEnv, engine
from tests.cases.inputs import case_file


def test_an_exception_in_a_hook_of_a_rollout_reaches_the_caller(host_case):
    """CB-11, with a hook of the env."""

    def control(_model, _data):
        raise RuntimeError("boom")

    env = host_case("CB-11")
    token = env.callbacks.add("control", control)
    with pytest.raises(Exception, match="boom"):
        env.rollout(np.zeros((4, 3, 0)))
    token.remove()
    env.step(1)
    assert env.info.step_count == 1


@pytest.fixture(scope="module")
def fragile():
    """A passive plugin that raises while ``broken`` is set."""
    broken = threading.Event()

    @engine.plugin("case.cb11", capabilities=("passive",))
    class Fragile:
        def compute(self, model, data, instance, capability):
            if broken.is_set():
                raise RuntimeError("boom")

    return broken


def fragile_model():
    return (
        case_file("CB-11")
        .read_text()
        .replace("<worldbody>", '<extension><plugin plugin="case.cb11"/></extension><worldbody>')
        .replace('<body name="rod">', '<body name="rod"><plugin plugin="case.cb11"/>')
    )


def test_an_exception_in_an_engine_plugin_of_a_rollout_reaches_the_caller(fragile):
    """CB-11, with an engine plugin in a rollout of the env."""
    with MujocoEnv(fragile_model()) as env:
        fragile.set()
        try:
            with pytest.raises(EnginePluginError, match="boom"):
                env.rollout(np.zeros((4, 3, 0)))
        finally:
            fragile.clear()
        engine.check()
        env.step(1)
        assert env.rollout(np.zeros((4, 3, 0))).state.shape[:2] == (4, 3)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_exception_in_an_engine_plugin_on_a_worker_thread_is_kept_for_the_caller(
    fragile, threads
):
    """CB-11, with an engine plugin in ``mujoco.rollout``."""
    model = mujoco.MjModel.from_xml_string(fragile_model())
    datas = [mujoco.MjData(model) for _ in range(threads)]
    spec = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.zeros((4, mujoco.mj_stateSize(model, spec)))
    raised = []
    fragile.set()
    try:
        rollout.rollout(model, datas, state, nstep=3)
    except EnginePluginError as error:
        raised.append(error)
    fragile.clear()
    for data in datas:
        try:
            engine.check(data)
        except EnginePluginError as error:
            raised.append(error)
    assert raised
    for error in raised:
        assert str(error.__cause__) == "boom"
    engine.check()
    states, _ = rollout.rollout(model, datas, state, nstep=3)
    assert np.isfinite(states).all()


OBJ = b"v 0 0 0\nv .1 0 0\nv 0 .1 0\nv 0 0 .1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


@pytest.fixture(scope="module")
def robot_assets():
    """A provider of ``case12:`` that takes its time, and what it was asked for."""
    log = []

    @engine.resource_provider("case12")
    def fetch(uri):
        log.append(uri)
        threading.Event().wait(0.01)  # an asset that comes from afar
        return OBJ

    return log


@pytest.mark.parametrize("busy", [False, True], ids=["alone", "beside a busy thread"])
@pytest.mark.parametrize("hosted", [True, False], ids=["MujocoEnv", "mujoco"])
def test_compiling_again_with_assets_of_a_python_provider_does_not_hang(robot_assets, busy, hosted):
    """CB-12."""
    robot_assets.clear()
    done = threading.Event()
    # Names of each trial: the engine keeps decoded assets by name.
    folder = f"case12:robot{busy:d}{hosted:d}"
    text = case_file("CB-12").read_text().replace("mem:robot", folder)
    spin = threading.Thread(target=lambda: [None for _ in iter(done.is_set, True)])
    if busy:
        spin.start()
    started = time.monotonic()
    try:
        spec = mujoco.MjSpec.from_string(text)
        meshes = _recompiled_by_env(spec, folder) if hosted else _recompiled(spec, folder)
    finally:
        done.set()
        if busy:
            spin.join()
    assert time.monotonic() - started < 5.0
    assert meshes == 2
    assert {*robot_assets} == {f"{folder}/a.obj", f"{folder}/b.obj"}


def _with_another_mesh(spec, folder):
    spec.add_mesh(name="b", file=f"{folder}/b.obj")
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="b")


def _recompiled(spec, folder):
    model = spec.compile()
    data = mujoco.MjData(model)
    _with_another_mesh(spec, folder)
    model, data = spec.recompile(model, data)
    mujoco.mj_step(model, data)
    return model.nmesh


def _recompiled_by_env(spec, folder):
    with MujocoEnv(spec) as env:
        env.step(1)
        _with_another_mesh(spec, folder)
        env.reload(spec)
        env.step(1)
        return env.model.nmesh
