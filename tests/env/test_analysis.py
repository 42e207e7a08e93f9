"""Linearization and rollouts: right, with hooks, and without a trace in the simulation."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from mjhost.callbacks import Entry, call_context
from mjhost.env import MujocoEnv
from mjhost.errors import DivergenceError, InvalidArgumentError
from mjhost.plugins import Plugin
from tests.env.models import EXPLOSIVE, PENDULUM, plain_loop, state_of

STATE = int(mujoco.mjtState.mjSTATE_FULLPHYSICS)


class Push(Plugin):
    """Adds a constant force and remembers from where it was called."""

    entries: set

    def __init__(self):
        super().__init__()
        self.entries = set()

    def passive(self, _model, data):
        data.qfrc_passive[0] += 2.0
        self.entries.add(call_context().entry)


def test_linearize_equals_the_engine_and_leaves_no_trace():
    with MujocoEnv(PENDULUM) as env:
        env.step(20)
        env.forward()
        before = state_of(env.model, env.data)
        found = env.linearize(eps=1e-6, centered=True)
        assert state_of(env.model, env.data) == before
        model = mujoco.MjModel.from_xml_string(PENDULUM)
        data = mujoco.MjData(model)
        for _ in range(20):
            mujoco.mj_step(model, data)
        mujoco.mj_forward(model, data)
        expected_a, expected_b = np.zeros((2, 2)), np.zeros((2, 1))
        mujoco.mjd_transitionFD(model, data, 1e-6, True, expected_a, expected_b, None, None)
        assert found.A.tobytes() == expected_a.tobytes()
        assert found.B.tobytes() == expected_b.tobytes()
        env.step(30)
        assert state_of(env.model, env.data) == plain_loop(PENDULUM, 50)


def test_a_rollout_is_what_stepping_would_have_been():
    with MujocoEnv(PENDULUM) as env:
        env.step(10)
        control = np.linspace(-1, 1, 40)[:, None]
        ahead = env.rollout(control)
        assert env.info.step_count == 10
        for step in range(40):
            with env.access() as (_model, data):
                data.ctrl[:] = control[step]
            env.step()
            state = np.empty(mujoco.mj_stateSize(env.model, STATE))
            mujoco.mj_getState(env.model, env.data, state, STATE)
            assert ahead.state[step].tobytes() == state.tobytes()


def test_a_batch_starts_each_run_from_its_own_state():
    with MujocoEnv(PENDULUM) as env:
        start = env.rollout(np.zeros((5, 1))).state[-1]
        both = env.rollout(np.zeros((2, 7, 1)), initial_state=np.stack([start, start]))
        assert both.state.shape == (2, 7, len(start))
        assert both.state[0].tobytes() == both.state[1].tobytes()
        straight = env.rollout(np.zeros((12, 1))).state[5:]
        assert both.state[0].tobytes() == straight.tobytes()


def test_hooks_fire_in_both_and_know_it():
    with MujocoEnv(PENDULUM, plugins=[Push]) as env:
        free = plain_rollout(np.zeros((9, 1)))
        ahead = env.rollout(np.zeros((9, 1)))
        assert ahead.state[-1][1] != free[-1][1]
        env.linearize()
        (handle,) = env.plugins
        with handle.access() as plugin:
            assert plugin.entries == {Entry.ROLLOUT, Entry.FINITE_DIFFERENCE}
        env.step(9)
        assert env.data.qpos[0] == ahead.state[-1][1]


def plain_rollout(control):
    with MujocoEnv(PENDULUM) as env:
        return env.rollout(control).state


def test_what_a_hook_raises_in_a_rollout_or_linearization_surfaces_and_changes_nothing():
    def bad(_model, _data):
        raise KeyError("no")

    with MujocoEnv(PENDULUM) as env:
        env.step(5)
        env.forward()
        before = state_of(env.model, env.data)
        token = env.callbacks.add("control", bad)
        for ask in (lambda: env.rollout(np.zeros((3, 1))), env.linearize):
            with pytest.raises(KeyError, match="no"):
                ask()
        token.remove()
        assert state_of(env.model, env.data) == before
        assert env.step(3).completed == 3


def test_a_rollout_that_diverges_says_when():
    with MujocoEnv(EXPLOSIVE) as env:
        with pytest.raises(DivergenceError) as caught:
            env.rollout(np.full((2000, 1), 1e9))
        assert 0 < caught.value.completed < 2000
        assert env.fault is None
        assert env.step(3).completed == 3


@pytest.mark.parametrize(
    "control", [np.zeros((3, 2)), np.zeros(3), [], [[np.nan]], "far", np.zeros((2, 0, 1))]
)
def test_a_control_that_cannot_be_is_refused(control):
    with MujocoEnv(PENDULUM) as env:
        with pytest.raises(InvalidArgumentError, match="control"):
            env.rollout(control)
        with pytest.raises(InvalidArgumentError, match="eps"):
            env.linearize(eps=0)
