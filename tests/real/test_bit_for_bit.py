"""Real models, hosted, against a plain loop of ``mj_step``: every bit of the result is the same."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import mujoco
import numpy as np
import pytest

import mjhost
from mjhost.env.events import StepLimitReached
from mjhost.env.records import FaultKind
from tests.real import corpus

pytestmark = [pytest.mark.network, pytest.mark.slow, pytest.mark.usefixtures("elsewhere")]

STEPS = 1000
WAIT_S = 60.0
DERIVED = ("qacc", "sensordata", "actuator_force", "qfrc_bias", "xpos", "cfrc_ext", "energy")
BAD = ("mjWARN_BADQPOS", "mjWARN_BADQVEL", "mjWARN_BADQACC")
DIVERGING = ("suite/humanoid", "suite/quadruped", "suite/walker", "gym/ant", "gym/pusher")
NEXT = dict([*pairwise(corpus.MODEL_IDS), (corpus.MODEL_IDS[-1], corpus.MODEL_IDS[0])])

Bits = dict[str, bytes]


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Another working directory: the plain side's engine writes its log where it stands."""
    monkeypatch.chdir(tmp_path)


# -- the plain side ------------------------------------------------------------------------------


def bits(model: mujoco.MjModel, data: mujoco.MjData) -> Bits:
    """The integration state and derived arrays, byte by byte."""
    spec = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(model, spec))
    mujoco.mj_getState(model, data, state, spec)
    found = {name: np.asarray(getattr(data, name)).tobytes() for name in DERIVED}
    return {"integration state": state.tobytes(), "time": np.float64(data.time).tobytes()} | found


def seeded_ctrl(model: mujoco.MjModel) -> np.ndarray:
    """One constant control inside the ranges, the same in every run."""
    limited = np.asarray(model.actuator_ctrllimited, bool)
    low = np.where(limited, model.actuator_ctrlrange[:, 0], -1.0)
    high = np.where(limited, model.actuator_ctrlrange[:, 1], 1.0)
    return np.random.default_rng(20).uniform(low, high)


def kick(model: mujoco.MjModel) -> np.ndarray:
    """Velocities that no model survives for long."""
    return np.random.default_rng(7).normal(size=model.nv) * 1000


@functools.cache
def plain(path: Path, *, driven: bool) -> Bits:
    """What a plain loop ends in, with zero or with constant control."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    if driven:
        data.ctrl[:] = seeded_ctrl(model)
    for _ in range(STEPS):
        mujoco.mj_step(model, data)
    assert not diverged(data), f"{path.name} diverges by itself; the comparison would be of resets"
    return bits(model, data)


def diverged(data: mujoco.MjData) -> bool:
    return any(data.warning[int(getattr(mujoco.mjtWarning, name))].number for name in BAD)


def plain_until_divergence(path: Path) -> tuple[int, bytes]:
    """Steps that were good after the kick, and the positions that they ended in."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    data.qvel[:] = kick(model)
    for good in range(STEPS):
        before = data.qpos.tobytes()
        mujoco.mj_step(model, data)
        if diverged(data):
            return good, before
    pytest.fail(f"{path.name} survived its kick; the test needs another model")


# -- the hosted side -----------------------------------------------------------------------------


def by_step(env: mjhost.MujocoEnv) -> None:
    assert env.step(STEPS).completed == STEPS


def by_single_steps(env: mjhost.MujocoEnv) -> None:
    for _ in range(STEPS):
        env.step()


def by_physics_thread(env: mjhost.MujocoEnv) -> None:
    subscription = env.events.subscribe()
    env.realtime = None
    env.stop_at(steps=STEPS)
    env.resume()
    wait_for_limit(subscription)
    env.pause()


def by_advance(env: mjhost.MujocoEnv) -> None:
    env.advance(STEPS * env.model.opt.timestep)


def wait_for_limit(subscription) -> None:
    deadline = time.monotonic() + WAIT_S
    while not isinstance(subscription.get(deadline - time.monotonic()), StepLimitReached):
        assert time.monotonic() < deadline, "no step limit event"


WAYS: tuple[Callable[[mjhost.MujocoEnv], None], ...] = (
    by_step,
    by_physics_thread,
    by_advance,
    by_single_steps,
)


def check(env: mjhost.MujocoEnv, expected: Bits, what: str) -> None:
    """The env stands where the plain loop ended."""
    assert env.fault is None
    assert env.info.step_count == STEPS
    found = bits(env.model, env.data)
    different = [name for name in expected if found[name] != expected[name]]
    assert not different, f"{what}: {', '.join(different)} differ from the plain loop's"


# -- properties ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", corpus.MODEL_IDS)
def test_each_way_of_stepping_equals_a_plain_loop_and_a_reset_repeats_it(name, real_models):
    path = real_models(name)
    expected = plain(path, driven=False)
    with mjhost.MujocoEnv(path, realtime=None) as env:
        for way in WAYS:
            way(env)
            check(env, expected, way.__name__)
            env.reset()


@pytest.mark.parametrize("name", corpus.MODEL_IDS)
def test_models_reload_into_one_another_under_control(name, real_models):
    first, second = real_models(name), real_models(NEXT[name])
    with mjhost.MujocoEnv(first, realtime=None) as env:
        for path, way in ((first, by_step), (second, by_physics_thread), (first, by_advance)):
            if env.info.load_count > 1 or path is not first:
                env.reload(path)
            env.data.ctrl[:] = seeded_ctrl(env.model)
            way(env)
            check(env, plain(path, driven=True), f"{way.__name__} in {path.stem}")


@pytest.mark.parametrize("name", DIVERGING)
@pytest.mark.parametrize("whole", [True, False], ids=["step(n)", "step()"])
def test_divergence_is_a_fault_in_the_very_step_in_which_the_engine_would_reset(
    name, whole, real_models
):
    path = real_models(name)
    good, positions = plain_until_divergence(path)
    with mjhost.MujocoEnv(path, realtime=None) as env:
        env.data.qvel[:] = kick(env.model)
        with pytest.raises(mjhost.DivergenceError):
            for _ in range(1 if whole else STEPS):
                env.step(STEPS if whole else 1)
        assert env.info.step_count == good
        assert env.data.qpos.tobytes() == positions
        assert env.fault.kind is FaultKind.DIVERGENCE
        env.reset()
        by_step(env)
        check(env, plain(path, driven=False), "after the fault and a reset")
