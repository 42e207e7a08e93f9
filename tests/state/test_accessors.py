"""Objects of the model that users keep."""

from __future__ import annotations

import gc
import os
import threading
import time
import weakref

import numpy as np
import pytest

from mjhost import (
    EnvClosedError,
    InvalidArgumentError,
    MujocoEnv,
    NotLoadedError,
    StaleGenerationError,
)
from tests.state.zoo import ZOO, everything

WAIT_S = 20.0
ALL = {
    "body": ("floating", "pos", (1.0, 2.0, 3.0)),
    "joint": ("knee", "qpos", 0.5),
    "geom": ("crate", "pos", None),
    "actuator": ("thigh", "ctrl", 0.5),
    "sensor": ("imu", "value", None),
    "equality": ("coupling", "active", True),
    "mocap": ("target", "pos", (1.0, 2.0, 3.0)),
}


def accessor(env, kind):
    return getattr(env, kind)(ALL[kind][0])


@pytest.mark.parametrize("kind", ALL)
def test_what_is_set_is_read(zoo, kind):
    name, attribute, value = ALL[kind]
    kept = accessor(zoo, kind)
    assert (kept.name, kept.generation) == (name, zoo.generations.model)
    assert repr(name) in repr(kept)
    if value is None:
        with pytest.raises(AttributeError):
            setattr(kept, attribute, (0, 0, 0))
    else:
        setattr(kept, attribute, value)
        assert np.array_equal(getattr(kept, attribute), value)
        assert np.array_equal(getattr(accessor(zoo, kind), attribute), value)


@pytest.mark.parametrize("kind", ALL)
def test_an_accessor_is_stale_after_a_reload_to_read_and_to_set(zoo, kind):
    _, attribute, value = ALL[kind]
    kept = accessor(zoo, kind)
    zoo.reload()
    before = everything(zoo)
    with pytest.raises(StaleGenerationError, match="has been replaced"):
        getattr(kept, attribute)
    if value is not None:
        with pytest.raises(StaleGenerationError, match="has been replaced"):
            setattr(kept, attribute, value)
    assert everything(zoo) == before
    getattr(accessor(zoo, kind), attribute)


@pytest.mark.parametrize("kind", ALL)
def test_an_accessor_of_a_closed_env_says_so(kind):
    with MujocoEnv(ZOO) as env:
        kept = accessor(env, kind)
    with pytest.raises(EnvClosedError):
        getattr(kept, ALL[kind][1])


@pytest.mark.parametrize("kind", ALL)
def test_there_is_nothing_to_keep_without_a_model(kind):
    with MujocoEnv() as env, pytest.raises(NotLoadedError):
        accessor(env, kind)


def test_an_accessor_survives_a_reset(zoo):
    knee = zoo.joint("knee")
    knee.qpos = 0.5
    zoo.reset()
    assert knee.qpos == 0.0


def test_copies_stay_and_cannot_be_written_to(zoo):
    root = zoo.joint("root")
    copies = [
        root.qpos,
        root.qvel,
        root.state.qpos,
        zoo.body("floating").pos,
        zoo.body_state("floating").linear,
        zoo.mocap("target").quat,
        zoo.sensor("imu").value,
        zoo.sensors()["imu"].value,
        zoo.ctrl()["gimbal"],
        zoo.actuator("gimbal").ctrl,
        zoo.geom("crate").mat,
    ]
    before = [copy.tolist() for copy in copies]
    for copy in copies:
        with pytest.raises(ValueError, match="read-only"):
            copy[0] = 1.0
    zoo.set_body_state("floating", pos=(9, 9, 9), linear=(1, 1, 1))
    zoo.set_ctrl({"gimbal": (3, 3, 3)})
    zoo.step(10)
    assert [copy.tolist() for copy in copies] == before


def test_an_accessor_has_its_name_and_index_for_good(zoo):
    knee = zoo.joint("knee")
    for attribute in ("name", "id", "generation"):
        with pytest.raises(AttributeError):
            setattr(knee, attribute, 0)
    with pytest.raises(AttributeError):
        knee.qpso = 0.5
    assert knee.id == 2


def test_a_wrong_value_is_refused_and_nothing_changes(zoo):
    before = everything(zoo)
    for kind, attribute in [(kind, each[1]) for kind, each in ALL.items() if each[2] is not None]:
        with pytest.raises(InvalidArgumentError):
            setattr(accessor(zoo, kind), attribute, "1")
    assert everything(zoo) == before


def test_geoms_say_where_they_are(zoo):
    zoo.set_body_state("floating", pos=(1, 2, 3), quat=(0, 1, 0, 0))
    crate = zoo.geom("crate")
    assert (crate.body, crate.pos.tolist()) == ("floating", [1, 2, 3])
    np.testing.assert_allclose(crate.mat, np.diag((1, -1, -1)), atol=1e-15)


def test_a_kept_accessor_keeps_neither_model_nor_env_alive():
    env = MujocoEnv(ZOO)
    kept = [accessor(env, kind) for kind in ALL]
    for each, (_, attribute, _) in zip(kept, ALL.values(), strict=True):
        getattr(each, attribute)
    old = weakref.ref(env.model), weakref.ref(env.data)
    env.reload()
    gc.collect()
    assert [reference() for reference in old] == [None, None]
    gone = weakref.ref(env)
    del env
    gc.collect()
    assert gone() is None
    with pytest.raises(EnvClosedError):
        _ = kept[0].pos


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_in_a_forked_child_an_accessor_is_of_a_closed_env(zoo):
    knee = zoo.joint("knee")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            _ = knee.qpos
        except EnvClosedError:
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def test_a_reader_waits_for_whoever_holds_the_boundary(zoo):
    knee, seen = zoo.joint("knee"), []
    reader = threading.Thread(target=lambda: seen.append(knee.qpos))
    with zoo.access() as (_, data):
        data.qpos[11] = 0.25
        reader.start()
        deadline = time.monotonic() + WAIT_S
        while not zoo._core.lock.contended and time.monotonic() < deadline:
            reader.join(0.001)
        assert seen == []
        data.qpos[11] = 0.5
    reader.join(WAIT_S)
    assert seen == [0.5]


@pytest.mark.slow
def test_reading_while_steps_run_sees_boundaries_only():
    # RK4 puts four states into qpos on its way through a step; only the last one is a boundary's.
    body = (
        '<body pos="{0} 0 0"><joint name="j{0}" type="ball"/><geom size=".1" pos=".1 0 0"/></body>'
    )
    bodies = "".join(body.format(index) for index in range(60))
    option = '<option gravity="0 0 0" integrator="RK4" timestep="0.002"/>'
    with MujocoEnv(f"<mujoco>{option}<worldbody>{bodies}</worldbody></mujoco>") as env:
        env.set_joint_states({name: {"qvel": (1.0, 2.0, 3.0)} for name in env.names("joint")})
        kept = env.joint("j59")
        boundaries, seen = {kept.qpos.tobytes()}, set()
        reached = threading.Event()

        def note(_model, data):
            boundaries.add(data.qpos[-4:].tobytes())
            if data.time > 0.6:
                reached.set()

        env.every(500, note)
        env.realtime = None
        env.resume()
        deadline = time.monotonic() + WAIT_S
        while not reached.is_set() and time.monotonic() < deadline:
            seen.add(kept.qpos.tobytes())
        env.pause()
        assert reached.is_set()
        assert seen <= boundaries
        assert len(seen) > 3
