"""Real models with a plugin that overrides every hook and writes nothing: not one bit changes."""

from __future__ import annotations

import pytest

import mjhost
from mjhost.plugins import Plugin
from tests.real import corpus
from tests.real.test_bit_for_bit import (
    STEPS,
    WAYS,
    by_advance,
    by_physics_thread,
    by_single_steps,
    by_step,
    check,
    elsewhere,
    plain,
    seeded_ctrl,
)

__all__ = ["elsewhere"]

pytestmark = [pytest.mark.network, pytest.mark.slow, pytest.mark.usefixtures("elsewhere")]

STEP_HOOKS = ("pre_step", "control", "passive", "last_stage", "post_step")


class Watcher(Plugin):
    """Overrides every hook, looks at the data and writes nothing."""

    def __init__(self):
        super().__init__()
        self.calls = {}

    def _look(self, hook, data=None):
        self.calls[hook] = self.calls.get(hook, 0) + 1
        if data is not None:
            assert data.qpos.shape == data.qpos.copy().shape

    def load(self, model, data):
        self._look("load", data)

    def activate(self):
        self._look("activate")

    def pre_step(self, model, data):
        self._look("pre_step", data)

    def control(self, model, data):
        self._look("control", data)

    def passive(self, model, data):
        self._look("passive", data)

    def last_stage(self, model, data):
        self._look("last_stage", data)

    def post_step(self, model, data):
        self._look("post_step", data)

    def render(self, model, data, scene):
        self._look("render", data)

    def geometry_changed(self, model, data, geom_id):
        self._look("geometry_changed", data)

    def reset(self):
        self._look("reset")

    def on_pause(self):
        self._look("on_pause")

    def on_resume(self):
        self._look("on_resume")

    def save_state(self):
        return {"calls": self.calls}

    def load_state(self, state):
        self.calls = state["calls"]

    def close(self):
        self._look("close")


class Rated(Watcher):
    """The same at a rate that divides nothing."""

    rate_hz = 77.0


def calls(env):
    with env.plugins[0].access() as watcher:
        return dict(watcher.calls)


def check_calls(env, before):
    """Every hook of a step ran: once per step, or as often as the integrator evaluates."""
    after = calls(env)
    took = {hook: after.get(hook, 0) - before.get(hook, 0) for hook in STEP_HOOKS}
    for hook in ("pre_step", "last_stage", "post_step"):
        assert took[hook] == STEPS, hook
    evaluations = 4 if env.runtime_options.integrator == "RK4" else 1
    assert took["passive"] in {0, evaluations * STEPS}  # 0: springs and dampers are off
    assert took["control"] in {0, evaluations * STEPS}  # 0: actuation is off
    assert took["passive"] + took["control"] > 0


@pytest.mark.parametrize("name", corpus.MODEL_IDS)
def test_hooks_that_write_nothing_change_no_bit_of_a_real_model(name, real_models):
    path = real_models(name)
    expected = plain(path, driven=False)
    with mjhost.MujocoEnv(path, realtime=None, plugins=[Watcher, Rated]) as env:
        assert env.plugin_statistics[0].state == "ready"
        for way in WAYS:
            before = calls(env)
            way(env)
            check(env, expected, f"{way.__name__} with hooks")
            check_calls(env, before)
            env.reset()
        assert env.plugin_diagnostics.total == 0


@pytest.mark.parametrize("name", corpus.MODEL_IDS)
def test_hooks_of_models_under_control_survive_reloads_of_model_and_plugins(name, real_models):
    path = real_models(name)
    expected = plain(path, driven=True)
    with mjhost.MujocoEnv(path, realtime=None, plugins=[Watcher]) as env:
        for way in (by_step, by_single_steps, by_physics_thread, by_advance):
            env.reload(path)
            env.data.ctrl[:] = seeded_ctrl(env.model)
            report = env.reload_plugins()
            assert report.carried == ("Watcher",)
            before = calls(env)
            way(env)
            check(env, expected, f"{way.__name__} after reload_plugins")
            check_calls(env, before)


@pytest.mark.parametrize("name", corpus.MODEL_IDS)
def test_a_step_that_a_hook_undid_is_repeated_bit_for_bit(name, real_models):
    path = real_models(name)
    failing = {"pre_step": 211, "control": 433, "post_step": 701}

    class Failing(Plugin):
        """Fails once in each of three hooks, at some step."""

        def __init__(self):
            super().__init__()
            self.left = dict(failing)

        def _maybe(self, hook, data, done):
            if self.left.get(hook) == done:
                del self.left[hook]
                raise ValueError(hook)

        def pre_step(self, model, data):
            self.step = getattr(self, "step", 0) + 1
            self._maybe("pre_step", data, self.step)

        def control(self, model, data):
            self._maybe("control", data, self.step)

        def post_step(self, model, data):
            self._maybe("post_step", data, self.step)

    with mjhost.MujocoEnv(path, realtime=None, plugins=[Failing]) as env:
        raised = []
        while env.info.step_count < STEPS:
            try:
                env.step(STEPS - env.info.step_count)
            except ValueError as error:
                raised.append(str(error))
        assert set(raised) >= {"pre_step", "post_step"}  # control: unless actuation is off
        check(env, plain(path, driven=False), "after three steps that were undone")
