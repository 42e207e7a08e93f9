"""Load, reload, reset, close, and what each leaves behind."""

from __future__ import annotations

import gc
import threading
import weakref

import mujoco
import pytest

from mjhost.env import MujocoEnv
from mjhost.env.events import Loaded, Reloaded, ResetDone
from mjhost.env.phases import Phase
from mjhost.errors import (
    EnvClosedError,
    InvalidArgumentError,
    LoadingWindowError,
    ModelLoadError,
    NotLoadedError,
    StaleGenerationError,
    UnknownNameError,
)
from mjhost.generation import ModelGeneration
from tests.env.models import BALL, PENDULUM, plain_loop, state_of


def test_an_env_without_a_model_says_so():
    with MujocoEnv() as env:
        assert env.phase is Phase.NO_MODEL
        assert env.info.source is None
        for ask in (lambda: env.model, env.reset, env.reload, env.resume, env.forward):
            with pytest.raises(NotLoadedError):
                ask()


def test_a_failed_first_load_leaves_no_model_and_says_why():
    with MujocoEnv() as env:
        with pytest.raises(ModelLoadError):
            env.load("<mujoco><worldbody><geom size='1' type='bogus'/></worldbody></mujoco>")
        assert env.phase is Phase.NO_MODEL
        assert "ModelLoadError" in env.info.load_error
        env.load(PENDULUM)
        assert env.info.load_error is None
        assert env.step(3).completed == 3


def test_a_constructor_that_fails_leaves_nothing_behind():
    before = threading.active_count()
    with pytest.raises(ModelLoadError):
        MujocoEnv("<mujoco", running=True)
    assert threading.active_count() == before


def test_a_reload_makes_a_new_generation_and_restarts_time_but_not_the_session():
    with MujocoEnv(PENDULUM) as env, env.events.subscribe() as events:
        first = env.generations.model
        env.step(100)
        report = env.reload(BALL)
        assert report.generation == env.generations.model > first
        assert report.previous_source != ""
        info = env.info
        assert (info.step_count, info.sim_time) == (0, 0.0)
        assert info.session_time == pytest.approx(0.2)
        assert info.total_steps == 100
        env.step(50)
        assert state_of(env.model, env.data) == plain_loop(BALL, 50)
        assert [type(e) for e in events.drain()] == [Reloaded]


def test_reload_without_a_source_reads_the_file_again(tmp_path):
    path = tmp_path / "model.xml"
    path.write_text(PENDULUM)
    with MujocoEnv(path) as env:
        assert env.model.nv == 1
        first_hash = env.info.content_hash
        path.write_text(BALL)
        env.reload()
        assert env.model.nv == 6
        assert env.info.content_hash != first_hash


def test_a_failed_reload_leaves_the_running_simulation_as_it_was(tmp_path):
    path = tmp_path / "model.xml"
    path.write_text(PENDULUM)
    with MujocoEnv(path, running=True) as env:
        generation = env.generations
        path.write_text("<mujoco><worldbody>")
        with pytest.raises(ModelLoadError):
            env.reload()
        assert env.generations == generation
        assert "ModelLoadError" in env.info.load_error
        before = env.info.step_count
        env.pause()
        env.step(1)
        assert env.info.step_count > before
        path.write_text(PENDULUM)
        env.reload()
        assert env.info.load_error is None


def test_a_running_simulation_goes_on_after_a_reload():
    with MujocoEnv(PENDULUM, realtime=None, running=True) as env, env.events.subscribe() as events:
        env.reload(BALL)
        env.stop_at(steps=env.info.step_count + 100_000)
        while type(events.get(20)).__name__ != "StepLimitReached":
            continue
        assert env.info.total_steps >= 100_000


def test_a_pair_of_an_old_generation_is_refused_by_name():
    with MujocoEnv(PENDULUM) as env:
        old = env.generations.model
        with env.access(old) as (model, data):
            assert (model, data) == (env.model, env.data)
        env.reload(BALL)
        with pytest.raises(StaleGenerationError, match="replaced"), env.access(old):
            pytest.fail("entered")
        assert env.step(1).completed == 1
        with pytest.raises(TypeError):
            assert env.generations.options == ModelGeneration(1)


def test_old_model_and_data_are_released_by_a_reload():
    with MujocoEnv(PENDULUM) as env:
        env.step(3)
        old = weakref.ref(env.data), weakref.ref(env._core.hosted.state)
        env.reload(BALL)
        env.step(1)
        gc.collect()
        assert [ref() for ref in old] == [None, None]


def test_reset_is_complete():
    with MujocoEnv(BALL) as env:
        reference = state_of(env.model, env.data)
        env.step(200)
        with env.access() as (_model, data):
            data.mocap_pos[0] = (3, 2, 1)
            data.xfrc_applied[1] = 5
            data.qvel[:] = 1
            data.qacc_warmstart[:] = 7
        env.step(121)
        env.reset()
        assert state_of(env.model, env.data) == reference
        env.step(200)
        assert state_of(env.model, env.data) == plain_loop(BALL, 200)


def test_reset_to_a_keyframe_by_name_and_index():
    with MujocoEnv(PENDULUM) as env:
        env.reset("up")
        assert (env.data.qpos[0], env.data.ctrl[0]) == (3.1, 0.5)
        env.reset(1)
        assert (env.data.qpos[0], env.data.ctrl[0]) == (1.5, 0.0)


@pytest.mark.parametrize("keyframe", ["upp", 2, -1, ""])
def test_an_unknown_keyframe_is_an_error_and_changes_nothing(keyframe):
    with MujocoEnv(PENDULUM) as env:
        env.step(5)
        with pytest.raises(UnknownNameError, match="keyframe"):
            env.reset(keyframe)
        assert env.info.step_count == 5
    with MujocoEnv(PENDULUM) as env, pytest.raises(InvalidArgumentError):
        env.reset(1.5)


def test_model_edits_survive_a_reset_unless_it_is_asked_to_undo_them():
    with MujocoEnv(PENDULUM) as env:
        model = env.model
        with env.access() as (live, _data):
            live.body_mass[1] = 9
        env.apply_runtime_options({"gravity": [0, 0, -1]})
        epoch = env.generations.options
        env.reset()
        assert (model.body_mass[1], env.runtime_options.gravity[2]) == (9, -1)
        env.reset(model=True)
        assert (model.body_mass[1], env.runtime_options.gravity[2]) == (1, -9.81)
        assert env.model is model
        assert env.generations.options == epoch.next()
        env.step(50)
        assert state_of(env.model, env.data) == plain_loop(PENDULUM, 50)


def test_session_time_never_goes_back():
    with MujocoEnv(PENDULUM) as env:
        times = []
        for act in (
            lambda: env.step(10),
            env.reset,
            lambda: env.step(5),
            env.reload,
            lambda: env.reset("up"),
            lambda: env.step(3),
        ):
            act()
            times.append(env.info.session_time)
        assert times == sorted(times)
        assert times[-1] == pytest.approx(18 * 0.002)
        with env.access() as (_model, data):
            data.time = -5.0
        assert env.info.session_time >= times[-1]


def test_reset_tells_an_event_and_keeps_the_pause_state(running_pendulum):
    env = running_pendulum
    with env.events.subscribe() as events:
        env.reset("up")
        told = [e for e in events.drain() if isinstance(e, ResetDone)]
        assert [e.keyframe for e in told] == ["up"]
    assert not env.info.paused


def test_loaded_is_told_once_the_model_is_there():
    with MujocoEnv() as env, env.events.subscribe() as events:
        env.load(PENDULUM)
        (event,) = events.drain()
        assert isinstance(event, Loaded)
        assert event.content_hash == env.info.content_hash


def test_spec_and_model_sources_are_copied():
    spec = mujoco.MjSpec.from_string(PENDULUM)
    model = mujoco.MjModel.from_xml_string(PENDULUM)
    for source in (spec, model):
        with MujocoEnv(source) as env:
            env.step(10)
            assert state_of(env.model, env.data) == plain_loop(PENDULUM, 10)
            env.model.opt.timestep = 0.5
            env.reload()
            assert env.model.opt.timestep == 0.002
    assert model.opt.timestep == 0.002


def test_everything_after_close_raises_and_close_may_be_repeated():
    env = MujocoEnv(PENDULUM)
    env.close()
    env.close()
    assert env.phase is Phase.CLOSED
    for ask in (
        env.step,
        env.pause,
        env.resume,
        env.reset,
        env.reload,
        lambda: env.info,
        lambda: env.model,
        lambda: env.runtime_options,
        lambda: env.call_soon(print),
        lambda: env.events.subscribe(),
        lambda: env.load(PENDULUM),
    ):
        with pytest.raises(EnvClosedError):
            ask()


def test_an_env_that_is_dropped_ends_its_thread():
    env = MujocoEnv(PENDULUM, running=True)
    assert any(t.name == "mjhost-physics" for t in threading.enumerate())
    thread = next(t for t in threading.enumerate() if t.name == "mjhost-physics")
    del env
    gc.collect()
    thread.join(5)
    assert not thread.is_alive()


def test_what_the_loading_window_refuses_and_admits(loading_env):
    env, let_go = loading_env
    refused = (
        lambda: env.runtime_options,
        lambda: env.apply_runtime_options({"timestep": 0.001}),
        env.reset,
        env.step,
        lambda: env.step_async(3),
        env.reload,
        lambda: env.load(BALL),
    )
    for ask in refused:
        with pytest.raises(LoadingWindowError):
            ask()
    assert env.info.phase is Phase.LOADING
    env.resume()
    env.pause()
    assert env.data.time >= 0
    let_go()
    assert env.model.nv == 6


def test_close_during_a_load_cancels_it(loading_env):
    env, let_go = loading_env
    env.close()
    assert env.phase is Phase.CLOSED
    with pytest.raises(EnvClosedError):
        let_go()


@pytest.fixture
def loading_env(monkeypatch):
    """An env whose reload waits, in another thread, inside the compiler."""
    from mjhost.env import lifecycle

    env = MujocoEnv(PENDULUM)
    entered, go, outcome = threading.Event(), threading.Event(), []
    real = lifecycle.compile_source

    def slow(source, **kwargs):
        entered.set()
        assert go.wait(20)
        return real(source, **kwargs)

    def reload():
        try:
            env.reload(BALL)
        except BaseException as error:
            outcome.append(error)

    monkeypatch.setattr(lifecycle, "compile_source", slow)
    thread = threading.Thread(target=reload)
    thread.start()
    assert entered.wait(20)

    def let_go():
        go.set()
        thread.join(20)
        if outcome:
            raise outcome[0]

    yield env, let_go
    go.set()
    thread.join(20)
    env.close()
