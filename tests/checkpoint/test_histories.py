"""Any history of operations: a checkpoint leads on to what it led on to when it was taken."""

from __future__ import annotations

from typing import ClassVar

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from mjhost import MujocoEnv, Plugin
from mjhost.checkpoint import persistence
from tests.checkpoint.models import DELAYED, scene

MODEL = scene(more=DELAYED, sensor='<jointvel joint="hinge" delay=".02" nsample="8"/>')
AFTER = 12


class Pushing(Plugin):
    """Remembers how often it was asked, and lets it show."""

    rate_hz = 1 / 0.012  # every third step

    def load(self, model, data):
        self.count = 0

    def pre_step(self, model, data):
        self.count += 1
        data.qfrc_applied[0] = 0.01 * self.count

    def save_state(self):
        return {"count": self.count}

    def load_state(self, state):
        self.count = state["count"]


class Leaning(Plugin):
    stateless: ClassVar[bool] = True

    def control(self, model, data):
        data.ctrl[0] = 0.2 * data.qpos[1] - 0.1 * data.qvel[0]


def wrench(env, size):
    env.apply_wrench("tip", (0.1 * size, 0, 0), name=f"w{size % 2}", duration=0.01 * size)


def edit(env, size):
    env.model.body_mass[1] = 0.5 + 0.1 * size


OPERATIONS = {
    "step": lambda env, size: env.step(size),
    "options": lambda env, size: env.apply_runtime_options({"iterations": 1 + size}),
    "timestep": lambda env, size: env.apply_runtime_options({"timestep": 0.001 * (1 + size)}),
    "wrench": wrench,
    "clear": lambda env, size: env.clear_wrench(),
    "edit": edit,
    "switch": lambda env, size: env.set_joint_state("hinge", qpos=0.05 * size),
    "reset": lambda env, size: env.reset(model=bool(size % 2)),
    "plugins": lambda env, size: env.reload_plugins(),
}


def follow(env):
    trace = []
    for _ in range(AFTER):
        env.step()
        data = env.data
        trace.append(data.qpos.tobytes() + data.sensordata.tobytes() + data.ctrl.tobytes())
    return trace


@pytest.mark.slow
@given(
    history=st.lists(
        st.tuples(
            st.sampled_from([*OPERATIONS, "take", "take", "restore"]),
            st.integers(min_value=1, max_value=7),
        ),
        min_size=3,
        max_size=14,
    ),
    by_file=st.booleans(),
)
@settings(deadline=None, max_examples=25)
def test_a_checkpoint_leads_on_to_the_same_whatever_happened_in_between(history, by_file):
    with MujocoEnv(MODEL, plugins=[Pushing, Leaning]) as env:
        env.model.opt.gravity[2] = -4
        kept = []
        for operation, size in history:
            if operation == "take":
                checkpoint = env.checkpoint()
                trace = follow(env)
                kept.append((checkpoint, trace, env.checkpoint()))
            elif operation != "restore":
                OPERATIONS[operation](env, size)
            elif kept:
                env.restore(kept[size % len(kept)][0])
        for checkpoint, trace, end in kept:
            env.restore(through_a_file(checkpoint) if by_file else checkpoint)
            assert follow(env) == trace
            assert env.info.step_count == end.counters.steps
            assert env.checkpoint().state.tobytes() == end.state.tobytes()
    if by_file and kept:
        checkpoint, trace, _ = kept[0]
        with MujocoEnv(MODEL, plugins=[Pushing, Leaning]) as fresh:
            fresh.model.opt.gravity[2] = -4
            fresh.restore(through_a_file(checkpoint))
            assert follow(fresh) == trace


def through_a_file(checkpoint):
    return persistence.from_bytes(persistence.to_bytes(checkpoint))
