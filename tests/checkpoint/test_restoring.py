"""What a restore puts back, what it refuses, and that a refusal changes nothing."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import ClassVar

import msgspec
import mujoco
import numpy as np
import pytest

from mjhost import MujocoEnv, Plugin, ReentrancyError
from mjhost.checkpoint import Checkpoint, StateLayout, compare
from mjhost.env.records import StepReason
from mjhost.errors import CheckpointError, NotLoadedError
from tests.checkpoint.models import MATRIX, drive
from tests.env.models import EXPLOSIVE, PENDULUM, state_of


@pytest.fixture
def env():
    with MujocoEnv(MATRIX["equality"]) as env:
        drive(env, 0, 20)
        yield env


def replaced(checkpoint, **fields):
    return msgspec.structs.replace(checkpoint, **fields)


def test_a_checkpoint_does_not_change_with_the_simulation(env):
    checkpoint = env.checkpoint()
    before = checkpoint.state.tobytes()
    drive(env, 20, 20)
    assert checkpoint.state.tobytes() == before
    with pytest.raises(ValueError, match="read-only"):
        checkpoint.state[0] = 1.0


def test_options_counters_and_edits_of_the_model_come_back(env):
    env.apply_runtime_options({"iterations": 7})
    env.model.body_mass[1] = 3.5
    checkpoint = env.checkpoint()
    assert list(checkpoint.edits) == ["body_mass"]
    total, session = env.info.total_steps, env.info.session_time
    env.apply_runtime_options({"iterations": 50, "timestep": 0.001, "integrator": "RK4"})
    env.model.body_mass[1] = 1.0
    env.model.geom_friction[:] = 0.1
    env.step(10)
    env.restore(checkpoint)
    assert env.runtime_options == checkpoint.options
    assert env.model.body_mass[1] == 3.5
    assert compare(checkpoint, env.checkpoint())[0].name == "session_time"
    assert env.info.step_count == checkpoint.counters.steps
    assert env.info.total_steps == total + 10
    assert env.info.session_time > session


def test_options_that_a_restore_changes_are_told(env):
    checkpoint = env.checkpoint()
    env.apply_runtime_options({"iterations": 7})
    with env.events.subscribe() as events:
        env.restore(checkpoint)
        told = [event for event in events.drain() if type(event).__name__ == "OptionsChanged"]
    assert [change.field for event in told for change in event.changes] == ["iterations"]


def test_reset_with_the_model_forgets_what_a_restore_put_back(env):
    pristine = env.model.body_mass[1].copy()
    env.model.body_mass[1] = 3.5
    checkpoint = env.checkpoint()
    env.reset(model=True)
    env.restore(checkpoint)
    env.reset(model=True)
    assert env.model.body_mass[1] == pristine


def test_rates_go_on_in_the_phase_of_the_checkpoint():
    calls = []
    with MujocoEnv(PENDULUM) as env:
        env.every(100, lambda _model, data: calls.append(round(data.time / 0.002)))
        env.step(7)
        checkpoint = env.checkpoint()
        env.step(10)
        assert calls == [5, 10, 15]
        env.restore(checkpoint)
        calls.clear()
        env.step(10)
        assert calls == [10, 15]


class Rated(Plugin):
    """Notes the steps before which it was called."""

    rate_hz = 100.0
    stateless: ClassVar[bool] = True
    calls: ClassVar[list[int]] = []

    def pre_step(self, model, data):
        self.calls.append(round(data.time / model.opt.timestep))


def test_a_pre_step_that_was_due_at_the_checkpoint_is_due_after_the_restore():
    with MujocoEnv(PENDULUM, plugins=[Rated]) as env:
        env.step(5)
        checkpoint = env.checkpoint()
        Rated.calls.clear()
        env.step(6)
        first = list(Rated.calls)
        env.step(3)
        env.restore(checkpoint)
        Rated.calls.clear()
        env.step(6)
        assert Rated.calls == first == [5, 10]
    with MujocoEnv(PENDULUM, plugins=[Rated]) as fresh:
        fresh.restore(checkpoint)
        Rated.calls.clear()
        fresh.step(6)
        assert Rated.calls == first


def test_a_restore_clears_a_fault():
    with MujocoEnv(EXPLOSIVE) as env:
        checkpoint = env.checkpoint()
        env.data.qvel[:] = 1e11
        with pytest.raises(ArithmeticError):
            env.step(3)
        env.restore(checkpoint)
        assert env.fault is None
        assert env.step(3).completed == 3


def test_manual_steps_that_wait_are_cancelled(env):
    checkpoint = env.checkpoint()
    future = None
    with env.access():
        future = env.step_async(10)
    env.restore(checkpoint)
    result = future.result(timeout=10)
    assert result.completed == 10 or result.reason == StepReason.CANCELLED_BY_RESTORE


def test_it_is_not_possible_inside_a_step(env):
    seen = []

    def inside(_model, _data):
        for call in (env.checkpoint, lambda: env.restore(checkpoint)):
            with pytest.raises(ReentrancyError):
                call()
            seen.append(True)

    checkpoint = env.checkpoint()
    token = env.every(250, inside)
    env.step(1)
    token.remove()
    assert len(seen) == 2


def test_without_a_model_there_is_nothing_to_take():
    with MujocoEnv() as env, pytest.raises(NotLoadedError):
        env.checkpoint()


# -- what is refused -------------------------------------------------------------------------------


def bad_checkpoints(env):
    good = env.checkpoint()
    vector = good.state

    def poisoned(name, value):
        state = vector.copy()
        state[good.layout.component(name).start] = value
        return replaced(good, state=state)

    yield "numbers .* got", replaced(good, state=vector[:-1])
    yield "numbers .* got", replaced(good, state=np.append(vector, 0.0))
    yield "float64", replaced(good, state=vector.astype(np.float32))
    yield r"qpos\[0\].*finite", poisoned("qpos", np.nan)
    yield r"mocap_quat\[0\].*finite", poisoned("mocap_quat", np.nan)
    yield r"ctrl\[0\].*finite", poisoned("ctrl", np.inf)
    yield r"eq_active\[0\].*0 or 1", poisoned("eq_active", 0.5)
    yield "options", replaced(good, option_bytes=b"short")
    yield "options|integrator", replaced(good, option_bytes=b"\xff" * len(good.option_bytes))
    yield "no array 'nothing'", replaced(good, edits={"nothing": np.zeros(3)})
    yield "body_mass", replaced(good, edits={"body_mass": np.zeros(1)})
    yield "needs a Checkpoint", vector


def test_a_bad_checkpoint_is_refused_and_nothing_changes(env):
    for match, bad in bad_checkpoints(env):
        before = state_of(env.model, env.data), env.info.step_count, env.runtime_options
        with pytest.raises(ValueError, match=match):
            env.restore(bad)
        assert (state_of(env.model, env.data), env.info.step_count, env.runtime_options) == before


def test_one_of_another_model_is_refused_with_the_first_differences(env):
    checkpoint = env.checkpoint()
    heavier = MATRIX["equality"].replace('<geom size=".06"/>', '<geom size=".07"/>')
    for model, match in ((PENDULUM, "body 'post' is missing"), (heavier, "values in .*body_mass")):
        with MujocoEnv(model) as other:
            before = state_of(other.model, other.data)
            with pytest.raises(CheckpointError, match=match):
                other.restore(checkpoint)
            assert state_of(other.model, other.data) == before


def other_version(checkpoint):
    """The checkpoint as another engine version would have written it: a component less, or more."""
    identity = replaced(checkpoint.model, engine="9.9.9", content_hash="0" * 64)
    values = checkpoint.options.as_dict()
    return replaced(checkpoint, model=identity, option_bytes=b"", option_values=values)


def test_another_engine_version_needs_permission(env):
    checkpoint = other_version(env.checkpoint())
    qpos = env.data.qpos.copy()
    env.step(5)
    with pytest.raises(CheckpointError, match=r"9\.9\.9.*allow_version"):
        env.restore(checkpoint)
    env.restore(checkpoint, allow_version=True)
    assert (env.data.qpos == qpos).all()


# -- plugins ---------------------------------------------------------------------------------------


class Counting(Plugin):
    """A controller whose output depends on how often it was asked, and on chance."""

    def load(self, model, data):
        self.count = 0
        self.rng = np.random.default_rng(7)

    def pre_step(self, model, data):
        self.count += 1
        data.ctrl[0] = 0.1 * self.count + self.rng.normal()

    def save_state(self):
        return {"count": self.count, "rng": self.rng.bit_generator.state}

    def load_state(self, state):
        self.count = state["count"]
        self.rng.bit_generator.state = state["rng"]


class Forgetful(Counting):
    save_state = Plugin.save_state
    load_state = Plugin.load_state


class Calm(Plugin):
    def pre_step(self, model, data):
        data.ctrl[0] = data.qpos[0]


class Sure(Forgetful):
    stateless: ClassVar[bool] = True


def vector_of(env):
    return StateLayout.of(env.model).read(env.model, env.data).tobytes()


def follow(env, steps=50):
    return [env.step() and env.data.qpos.tobytes() for _ in range(steps)]


def test_the_state_of_plugins_is_part_of_it(tmp_path):
    with MujocoEnv(PENDULUM, plugins=[Counting]) as env:
        env.step(30)
        checkpoint = env.checkpoint()
        assert checkpoint.exact
        expected = follow(env)
        env.restore(checkpoint)
        assert follow(env) == expected
        checkpoint.save(tmp_path / "p.ckpt")
    with MujocoEnv(PENDULUM, plugins=[Counting]) as fresh:
        fresh.restore(Checkpoint.load(tmp_path / "p.ckpt"))
        assert follow(fresh) == expected


@pytest.mark.parametrize(
    ("plugin", "exact"), [(Forgetful, False), (Calm, True), (Sure, True), (Counting, True)]
)
def test_a_plugin_that_holds_state_and_says_nothing_makes_it_inexact(plugin, exact):
    with MujocoEnv(PENDULUM, plugins=[plugin]) as env:
        checkpoint = env.checkpoint()
        assert checkpoint.exact is exact
        assert any("Forgetful" in line for line in checkpoint.inexact_because) is not exact
        env.restore(checkpoint)


def test_a_plugin_whose_state_would_be_lost_is_missed():
    with MujocoEnv(PENDULUM, plugins=[Counting]) as env:
        checkpoint = env.checkpoint()
    for plugins in ([], [Forgetful], [Calm]):
        with MujocoEnv(PENDULUM, plugins=plugins) as other:
            before = vector_of(other)
            with pytest.raises(CheckpointError, match=r"'Counting'.* not loaded"):
                other.restore(checkpoint)
            assert vector_of(other) == before


class Refusing(Counting):
    def load_state(self, state):
        raise RuntimeError("not today")


def test_a_load_state_that_raises_undoes_the_restore():
    with MujocoEnv(PENDULUM, plugins=[Counting, Refusing]) as env:
        env.step(10)
        checkpoint = env.checkpoint()
        env.apply_runtime_options({"iterations": 9})
        env.step(10)
        before, options = vector_of(env), env.runtime_options
        with env.plugins[0].access() as counting:
            count = counting.count
        with pytest.raises(RuntimeError, match="not today") as raised:
            env.restore(checkpoint)
        assert any("Refusing" in note for note in raised.value.__notes__)
        assert vector_of(env) == before
        assert env.runtime_options == options
        assert env.info.step_count == 20
        with env.plugins[0].access() as counting:
            assert counting.count == count


class Unplain(Counting):
    def save_state(self):
        return {"deep": [{"generator": self.rng}]}


class Failing(Counting):
    def save_state(self):
        raise RuntimeError("cannot tell")


@pytest.mark.parametrize(
    ("plugin", "match"),
    [(Unplain, r"\['deep'\]\[0\]\['generator'\]"), (Failing, "cannot tell")],
)
def test_a_state_that_cannot_be_kept_is_an_error_that_names_the_place(plugin, match):
    with MujocoEnv(PENDULUM, plugins=[plugin]) as env:
        env.step(3)
        with pytest.raises((CheckpointError, RuntimeError), match=match):
            env.checkpoint()
        assert env.step(3).completed == 3


def test_threads_that_take_and_restore_never_mix_two_states():
    with MujocoEnv(MATRIX["Euler-Newton"], realtime=None) as env:
        env.step(5)
        first = env.checkpoint()
        env.step(50)
        second = env.checkpoint()
        sound = {first.component("qpos").tobytes(), second.component("qpos").tobytes()}
        seen, errors = [], []

        def race(checkpoint):
            try:
                for _ in range(30):
                    env.restore(checkpoint)
                    seen.append(env.checkpoint().component("qpos").tobytes())
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=race, args=(c,)) for c in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not errors
        assert set(seen) <= sound


def test_an_old_model_is_not_kept_alive_by_a_checkpoint():
    with MujocoEnv(PENDULUM) as env:
        old = weakref.ref(env._core.hosted.state)
        checkpoint = env.checkpoint()
        env.reload()
        gc.collect()
        assert old() is None
        env.restore(checkpoint)
        assert isinstance(env.data, mujoco.MjData)
