"""Files that other versions of the engine and of mjhost wrote; see ``data/README.md``."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from mjhost import MujocoEnv
from mjhost.checkpoint import Checkpoint
from mjhost.errors import CheckpointError

DATA = Path(__file__).with_name("data")
ENGINES = ("3.15", "4.0")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_file_of_format_1_is_read(engine):
    checkpoint = Checkpoint.load(DATA / f"{engine}.ckpt")
    assert checkpoint.engine.startswith(engine)
    assert checkpoint.counters.steps == 40
    assert checkpoint.time == pytest.approx(0.16)
    assert checkpoint.edited_options == ("iterations",)
    assert checkpoint.options.iterations == 33
    assert checkpoint.edits["body_mass"][1] == 2.5
    assert checkpoint.named("actuator.muscle.ctrl").tolist() == [0.5]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_file_of_another_engine_goes_on_if_it_may(engine):
    checkpoint = Checkpoint.load(DATA / f"{engine}.ckpt")
    with MujocoEnv(DATA / "model.xml") as env:
        if checkpoint.engine != mujoco.mj_versionString():
            with pytest.raises(CheckpointError, match="allow_version=True"):
                env.restore(checkpoint)
            assert env.info.step_count == 0
        env.restore(checkpoint, allow_version=True)
        for name in ("qpos", "qvel", "act", "ctrl"):
            assert getattr(env.data, name).tolist() == checkpoint.component(name).tolist()
        assert env.runtime_options.iterations == 33
        assert env.model.body_mass[1] == 2.5
        assert env.step(50).completed == 50
        assert env.info.step_count == 90
        assert np.isfinite(env.data.qpos).all()
