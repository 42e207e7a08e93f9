"""Real models: what follows a restore is what followed the checkpoint, from a file too."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import mjhost
from mjhost.checkpoint import Checkpoint
from tests.real import corpus

pytestmark = [pytest.mark.network, pytest.mark.slow]

BEFORE, AFTER = 40, 60


def followed(env: mjhost.MujocoEnv, start: int, steps: int) -> list[bytes]:
    """Steps with controls that depend on the step alone; positions and sensors, as bytes."""
    trace = []
    for step in range(start, start + steps):
        env.data.ctrl[:] = 0.3 * np.sin(0.1 * step + np.arange(env.model.nu))
        env.step()
        trace.append(env.data.qpos.tobytes() + env.data.sensordata.tobytes())
    return trace


@pytest.mark.parametrize("name", corpus.MODEL_IDS)
def test_a_real_model_goes_on_to_the_same_bits(name, real_models, tmp_path):
    path = real_models(name)
    with mjhost.MujocoEnv(path) as env:
        followed(env, 0, BEFORE)
        checkpoint = env.checkpoint()
        asleep = bool(env.model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_SLEEP)
        expected = followed(env, BEFORE, AFTER)
        env.restore(checkpoint)
        assert followed(env, BEFORE, AFTER) == expected
    if asleep:
        return
    checkpoint.save(tmp_path / "it.ckpt")
    with mjhost.MujocoEnv(path) as fresh:
        fresh.restore(Checkpoint.load(tmp_path / "it.ckpt"))
        assert followed(fresh, BEFORE, AFTER) == expected
