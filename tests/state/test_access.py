"""Named state through the env: at boundaries, wholly or not at all, never from inside a step."""

from __future__ import annotations

import threading

import mujoco
import numpy as np
import pytest

from mjhost import (
    EnvClosedError,
    InvalidArgumentError,
    LoadingWindowError,
    LockOrderError,
    MujocoEnv,
    NotLoadedError,
    Plugin,
    ReentrancyError,
    UnknownNameError,
)
from mjhost.env import lifecycle
from tests.state.zoo import ZOO, everything

WAIT_S = 20.0

SETTERS = {
    "set_body_state": lambda env: env.set_body_state("floating", pos=(1, 2, 3)),
    "set_joint_state": lambda env: env.set_joint_state("knee", 0.5),
    "set_joint_states": lambda env: env.set_joint_states({"knee": 0.5}, sync_mocap=True),
    "set_mocap": lambda env: env.set_mocap("target", pos=(1, 2, 3)),
    "sync_mocap": lambda env: env.sync_mocap(),
    "equality.active": lambda env: setattr(env.equality("coupling"), "active", True),
    "joint.qpos =": lambda env: setattr(env.joint("knee"), "qpos", 0.5),
    "set_ctrl": lambda env: env.set_ctrl({"thigh": 0.5}),
    "actuator.ctrl =": lambda env: setattr(env.actuator("thigh"), "ctrl", 0.5),
}
GETTERS = {
    "body_state": lambda env: env.body_state("floating").pos,
    "body.pos": lambda env: env.body("floating").pos,
    "joint_state": lambda env: env.joint_state("knee").qpos,
    "joint.qpos": lambda env: env.joint("knee").qpos,
    "ctrl": lambda env: env.ctrl()["thigh"],
    "sensors": lambda env: env.sensors()["imu"].value,
    "mocap_states": lambda env: env.mocap_states()["target"].pos,
    "names": lambda env: len(env.names("joint")),
}


@pytest.fixture
def compiling(monkeypatch):
    """An env whose reload waits, in another thread, until it is told to go on."""
    go, there = threading.Event(), threading.Event()
    compile_source = lifecycle.compile_source

    def slow(source, **arguments):
        there.set()
        assert go.wait(WAIT_S)
        return compile_source(source, **arguments)

    with MujocoEnv(ZOO) as env:
        monkeypatch.setattr(lifecycle, "compile_source", slow)
        reload = threading.Thread(target=env.reload)
        reload.start()
        assert there.wait(WAIT_S)
        yield env, go, reload
        go.set()
        reload.join(WAIT_S)


# -- inside a step -------------------------------------------------------------------------------


class Asker:
    """Asks an env for everything and keeps what came of it, by hook."""

    def __init__(self):
        self.env = None
        self.found = {}

    def __call__(self, hook):
        if self.env is None:
            return
        for name, call in {**SETTERS, **GETTERS}.items():
            try:
                self.found[hook, name] = call(self.env)
            except ReentrancyError as error:
                self.found[hook, name] = error


def asking_plugin(ask):
    class Asking(Plugin):
        def pre_step(self, model, data):
            ask("pre_step")

        def control(self, model, data):
            ask("control")

        def passive(self, model, data):
            ask("passive")

        def post_step(self, model, data):
            ask("post_step")

    return Asking


@pytest.mark.parametrize("way", ["step", "forward", "running"])
def test_inside_a_hook_reading_works_and_writing_is_refused(way):
    asker = Asker()
    with MujocoEnv(ZOO, plugins=[asking_plugin(asker)]) as env:
        before = everything(env)
        asker.env = env
        if way == "step":
            env.step()
        elif way == "forward":
            env.forward()
        else:
            env.stop_at(steps=1)
            paused = env.events.subscribe()
            env.resume()
            while type(paused.get(WAIT_S)).__name__ != "Paused":
                pass
        hooks = {"control", "passive"} | ({"pre_step", "post_step"} if way != "forward" else set())
        assert {hook for hook, _ in asker.found} == hooks
        for (_, name), found in asker.found.items():
            assert isinstance(found, ReentrancyError) == (name in SETTERS)
        assert env.fault is None
        if way == "forward":
            assert everything(env) == before


def test_a_task_reads_the_state_that_its_step_ended_in(zoo):
    seen = []
    zoo.joint("knee").qvel = 1.0
    zoo.every(500, lambda _m, data: seen.append((data.qpos[11], zoo.joint("knee").qpos)))
    zoo.step(3)
    assert len(seen) == 3
    assert all(live == read for live, read in seen)


def test_a_hook_sets_the_state_by_calling_soon():
    class Restarter(Plugin):
        def post_step(self, model, data):
            if data.qpos[11] > 0.0:
                zoo.call_soon(lambda: zoo.set_joint_state("knee", -0.5, 0.0))

    with MujocoEnv(ZOO, plugins=[Restarter]) as zoo:
        zoo.joint("knee").qvel = 1.0
        zoo.step(2)
        assert zoo.joint("knee").qpos == pytest.approx(-0.5, abs=0.01)


# -- phases --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*SETTERS, *GETTERS])
def test_nothing_is_read_or_set_without_a_model_or_after_the_end(name):
    call = {**SETTERS, **GETTERS}[name]
    with MujocoEnv() as env, pytest.raises(NotLoadedError):
        call(env)
    with pytest.raises(EnvClosedError):
        call(env)


def test_while_a_reload_compiles_controls_are_set_on_the_old_model_and_states_are_refused(
    compiling,
):
    env, go, reload = compiling
    knee, thigh = env.joint("knee"), env.actuator("thigh")
    env.set_ctrl({"thigh": 0.5})
    thigh.ctrl += 0.25
    assert (thigh.ctrl, knee.qpos) == (0.75, 0.0)
    for name in SETTERS.keys() - {"set_ctrl", "actuator.ctrl ="}:
        with pytest.raises(LoadingWindowError):
            SETTERS[name](env)
    go.set()
    reload.join(WAIT_S)
    assert env.actuator("thigh").ctrl == 0.0
    env.set_joint_state("knee", 0.5)


@pytest.mark.parametrize("name", ["set_joint_state", "set_ctrl"])
def test_a_change_that_waited_while_the_model_was_replaced_is_not_applied(zoo, name, monkeypatch):
    """The reload happens between the admission and the lock, as it may if the caller waits."""
    holding = zoo._core.lock.holding
    reloaded = []

    def reload_first(asked):
        if not reloaded:
            reloaded.append(asked)
            zoo.reload()
        return holding(asked)

    monkeypatch.setattr(type(zoo._core.lock), "holding", lambda _lock, asked: reload_first(asked))
    with pytest.raises(LoadingWindowError, match="before a reload that has happened since"):
        SETTERS[name](zoo)
    assert reloaded
    assert zoo.joint("knee").qpos == zoo.actuator("thigh").ctrl == 0.0


def test_inside_access_reading_works_and_setters_say_that_the_lock_is_held(zoo):
    with zoo.access() as (_, data):
        data.qpos[11] = 0.5
        assert zoo.joint("knee").qpos == 0.5
        assert zoo.joint_state("knee").qpos.tolist() == [0.5]
        body = zoo.body_state("tip")
        with pytest.raises(LockOrderError):
            zoo.set_joint_state("knee", 0.0)
    assert zoo.body_state("tip") == body


# -- wholly or not at all ------------------------------------------------------------------------


def test_a_refresh_that_fails_leaves_everything_as_it_was(zoo, monkeypatch):
    zoo.step(5)
    before = everything(zoo)
    refresh, calls = zoo._stepper.refresh, []

    def fail_once(hosted):
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        refresh(hosted)

    monkeypatch.setattr(zoo._stepper, "refresh", fail_once)
    with pytest.raises(KeyboardInterrupt):
        zoo.set_joint_states({"knee": 0.5, "rail": 0.1})
    monkeypatch.undo()
    assert everything(zoo)[0] == before[0]
    expected = mujoco.MjData(zoo.model)
    mujoco.mj_copyData(expected, zoo.model, zoo.data)
    mujoco.mj_forward(zoo.model, expected)
    assert zoo.data.xpos.tobytes() == expected.xpos.tobytes()


def test_hooks_do_not_fire_when_the_state_is_set():
    calls = []

    class Counter(Plugin):
        def control(self, model, data):
            calls.append(1)

    with MujocoEnv(ZOO, plugins=[Counter]) as env:
        for setter in SETTERS.values():
            setter(env)
        assert calls == []
        env.step()
        assert calls


def test_what_follows_a_setter_is_what_follows_the_same_write_by_hand(zoo):
    model = mujoco.MjModel.from_xml_string(ZOO)
    data = mujoco.MjData(model)
    for _ in range(20):
        mujoco.mj_step(model, data)
    data.qpos[11], data.qvel[9], data.ctrl[0] = 0.5, 0.25, 0.1
    mujoco.mj_forward(model, data)
    for _ in range(50):
        mujoco.mj_step(model, data)
    zoo.step(20)
    zoo.set_joint_state("knee", 0.5, 0.25)
    zoo.set_ctrl({"thigh": 0.1})
    zoo.body_states()
    for _ in range(50):
        zoo.step()
    assert zoo.data.qpos.tobytes() == data.qpos.tobytes()
    assert zoo.data.qvel.tobytes() == data.qvel.tobytes()


def test_setting_works_while_the_simulation_runs(zoo):
    zoo.resume()
    for value in np.linspace(0.1, 0.9, 9):
        zoo.set_joint_state("rail", value, 0.0)
        zoo.set_ctrl({"thigh": value})
    zoo.pause()
    assert zoo.actuator("thigh").ctrl == pytest.approx(0.9)
    assert zoo.fault is None


def test_states_can_be_set_while_a_fault_stands_and_do_not_clear_it(zoo):
    zoo.data.qvel[0] = 1e12
    with pytest.raises(ArithmeticError):
        zoo.step()
    zoo.set_joint_state("root", qvel=(0,) * 6)
    assert zoo.fault is not None
    zoo.clear_fault()
    zoo.step()


# -- names ---------------------------------------------------------------------------------------


def test_names_of_every_kind_can_be_listed(zoo):
    assert zoo.names("actuator") == ("thigh", "gimbal", "#2", "push")
    assert zoo.names("mesh") == ()
    with pytest.raises(UnknownNameError, match="did you mean 'joint'"):
        zoo.names("joints")


@pytest.mark.parametrize(
    "kind", ["body", "joint", "geom", "actuator", "sensor", "equality", "mocap"]
)
@pytest.mark.parametrize("name", ["nothing like it", "", "#99", 3, None])
def test_what_does_not_exist_is_refused_by_every_look_up(zoo, kind, name):
    error = UnknownNameError if isinstance(name, str) else InvalidArgumentError
    with pytest.raises(error):
        getattr(zoo, kind)(name)
