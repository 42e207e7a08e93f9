"""Options as transactions on the live model."""

from __future__ import annotations

import pytest

from mjhost.env import MujocoEnv
from mjhost.env.events import OptionsChanged
from mjhost.errors import LoadingWindowError, OptionsRejected, PhaseError
from mjhost.generation import OptionsEpoch
from tests.env.models import BALL, PENDULUM

IPC = """
<mujoco><option integrator="Euler"/>
  <worldbody><body><joint/><geom size=".1"/></body></worldbody></mujoco>
"""


def test_a_patch_is_applied_whole_counted_and_told(pendulum):
    env = pendulum
    with env.events.subscribe() as events:
        result = env.apply_runtime_options({"timestep": 0.004, "integrator": "rk4"})
        assert result.ok
        assert set(result.changed) == {"timestep", "integrator"}
        assert env.model.opt.timestep == 0.004
        assert env.runtime_options.integrator == "RK4"
        assert env.generations.options == OptionsEpoch(1) == result.epoch
        (event,) = events.drain()
    assert isinstance(event, OptionsChanged)
    assert {(c.field, c.old, c.new) for c in event.changes} == {
        ("timestep", 0.002, 0.004),
        ("integrator", "Euler", "RK4"),
    }
    assert event.epoch == 1


def test_a_patch_with_one_bad_value_changes_none_and_lists_all_problems(pendulum):
    env = pendulum
    before = env.runtime_options
    bad = {"timestep": -1, "gravity": [0, 0, -1], "cone": 7, "nonsense": 1}
    with pytest.raises(OptionsRejected) as caught:
        env.apply_runtime_options(bad)
    assert {e.field for e in caught.value.errors} == {"timestep", "cone", "nonsense"}
    result = env.apply_runtime_options(bad, raise_on_error=False)
    assert not result.ok
    assert result.changed == ()
    assert result.snapshot == env.runtime_options == before
    assert env.generations.options == OptionsEpoch(0)


def test_an_empty_patch_is_accepted_and_an_equal_one_advances_the_epoch(pendulum):
    env = pendulum
    assert env.apply_runtime_options({}).ok
    assert env.generations.options == OptionsEpoch(0)
    assert env.apply_runtime_options({"timestep": 0.002}).changed == ()
    assert env.generations.options == OptionsEpoch(1)


def test_a_changed_timestep_is_used_by_the_very_next_step(pendulum):
    env = pendulum
    env.step(10)
    assert env.data.time == 0.020000000000000004
    env.apply_runtime_options({"timestep": 0.004})
    for _ in range(10):
        env.step()
    assert env.data.time == 0.060000000000000026


def test_reload_drops_live_edits_or_keeps_them_by_choice(pendulum):
    env = pendulum
    env.apply_runtime_options({"gravity": [0, 0, -1], "iterations": 7})
    env.reload(BALL, options="keep")
    assert env.runtime_options.gravity == (0.0, 0.0, -1.0)
    assert env.runtime_options.iterations == 7
    report = env.reload(PENDULUM, options="keep")
    assert set(report.kept_options) == {"gravity", "iterations"}
    epoch = env.generations.options
    env.reload()
    assert env.runtime_options.gravity == (0.0, 0.0, -9.81)
    assert env.generations.options == epoch


def test_a_kept_option_that_the_new_model_cannot_have_is_reported(pendulum):
    env = pendulum
    env.apply_runtime_options({"integrator": "discrete", "solver": "CG"})
    env.apply_runtime_options({"ipc": True, "iterations": 9})
    with env.access() as (model, _data):
        model.opt.integrator = 0  # somebody else's edit: what is kept no longer fits
    report = env.reload(options="keep")
    assert "ipc" in report.option_error
    assert env.info.load_error == report.option_error
    assert env.runtime_options.iterations == 9
    assert not env.runtime_options.ipc


def test_startup_options_are_applied_by_the_first_load():
    with MujocoEnv(PENDULUM, options={"timestep": 0.001}) as env:
        assert env.model.opt.timestep == 0.001
        assert env.generations.options == OptionsEpoch(1)
        env.reload()
        assert env.model.opt.timestep == 0.002


def test_malformed_startup_options_fail_at_once():
    with pytest.raises(OptionsRejected):
        MujocoEnv(PENDULUM, options={"timestep": 0})


def test_startup_options_the_model_cannot_have_do_not_fail_the_load():
    with MujocoEnv() as env:
        env.set_pending_runtime_options({"timestep": 0.1})
        env.set_pending_runtime_options({"ls_iterations": 5, "integrator": "discrete"})
        report = env.load(IPC)
        assert report.option_error is None
        with pytest.raises(PhaseError, match="before the first load"):
            env.set_pending_runtime_options({"timestep": 0.1})


def test_a_failed_first_load_keeps_the_startup_options():
    with MujocoEnv(options={"timestep": 0.001}) as env:
        with pytest.raises(ValueError, match="XML"):
            env.load("<mujoco")
        env.load(PENDULUM)
        assert env.model.opt.timestep == 0.001


def test_a_patch_formed_before_a_reload_is_not_applied_to_the_new_model(pendulum, monkeypatch):
    env = pendulum
    core = env._core
    real = core.lock.holding

    def reload_first(asked):
        monkeypatch.setattr(type(core.lock), "holding", lambda lock, name: real(name))
        env.reload(BALL)
        return real(asked)

    monkeypatch.setattr(type(core.lock), "holding", lambda _lock, name: reload_first(name))
    with pytest.raises(LoadingWindowError, match="before a reload"):
        env.apply_runtime_options({"timestep": 0.5})
    assert env.model.opt.timestep == 0.002
