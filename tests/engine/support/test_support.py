"""Where a model's extensions run: what the table says is what happens."""

from __future__ import annotations

import itertools
import os

import mujoco
import numpy as np
import pytest
from mujoco import rollout

from mjhost import engine
from mjhost.engine.backends import BACKENDS, refusals

_NUMBERS = itertools.count()
USER = """
<mujoco>
  <worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody>
  <actuator>
    <general name="g" joint="j" dyntype="user" gaintype="user" biastype="user" actdim="1"/>
  </actuator>
  <sensor><user name="s" dim="1" needstage="vel"/></sensor>
</mujoco>
"""
HAS_BATCH = mujoco.mj_version() >= 4_000_000


@pytest.fixture
def plugin_model():
    name = f"test.support{os.getpid()}x{next(_NUMBERS)}"

    @engine.plugin(name, capabilities=("passive",))
    class Mine:
        def compute(self, model, data, instance, capability):
            data.qfrc_passive[0] += 1

    model = mujoco.MjModel.from_xml_string(
        '<mujoco><extension><plugin plugin="mujoco.pid"><instance name="p"/></plugin>'
        f'<plugin plugin="{name}"><instance name="m"/></plugin></extension>'
        '<worldbody><body><joint name="j"/><geom size=".1"/><plugin instance="m"/></body>'
        '</worldbody><actuator><plugin joint="j" instance="p"/></actuator></mujoco>'
    )
    return name, model


def test_every_plugin_is_answered_for_every_backend(plugin_model):
    name, model = plugin_model
    found = {entry.name: entry for entry in engine.support(model)}
    assert set(found) == {"mujoco.pid", name}
    for entry in found.values():
        assert tuple(entry.answers) == BACKENDS
        assert all(answer.runs or answer.reason for answer in entry.answers.values())
        assert entry.answers["mj_step"].runs
        assert entry.answers["rollout"].runs
        assert entry.answers["batch"].runs is HAS_BATCH
        assert not entry.answers["mjx"].runs
    assert "one thread at a time" in found[name].answers["rollout"].reason
    assert found["mujoco.pid"].answers["rollout"].reason == ""


def test_what_is_said_to_run_in_rollout_and_batch_runs(plugin_model):
    _, model = plugin_model
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.zeros((4, mujoco.mj_stateSize(model, full)))
    data = [mujoco.MjData(model) for _ in range(2)]
    assert refusals(model, "rollout") == ()
    ended, _ = rollout.rollout(model, data, state, nstep=5)
    assert (ended[:, -1, 1] > 0).all()
    assert bool(refusals(model, "batch")) is not HAS_BATCH
    if HAS_BATCH:
        from mujoco import batch

        many = batch.Batch(model, nsim=4, nthread=2)
        qvel = many.bind("qvel")
        many.step()
        assert (qvel > 0).all()


def test_kinds_that_a_model_needs_are_named_until_something_is_there():
    model = mujoco.MjModel.from_xml_string(USER)
    needed = [entry.name for entry in engine.support(model)]
    assert needed == [
        "act_dyn, needed by actuator g (dyntype user)",
        "act_gain, needed by actuator g (gaintype user)",
        "act_bias, needed by actuator g (biastype user)",
        "sensor, needed by sensor s (type user)",
    ]
    assert "the engine takes 1" in engine.support(model)[1].answers["mj_step"].reason
    data = mujoco.MjData(model)
    gain = engine.callback("act_gain")(lambda model, data, id: 2.0)
    with gain.attach(model, data), engine.callback_scope(sensor=lambda model, data, stage: None):
        found = {entry.name.partition(",")[0]: entry for entry in engine.support(model)}
        assert found["act_gain"].answers["mj_step"].runs
        assert found["sensor"].answers["rollout"].runs
        assert not found["act_dyn"].answers["mj_step"].runs
        assert not found["act_gain"].answers["batch"].runs


def test_refusals_are_sentences_about_each_extension(plugin_model):
    _, model = plugin_model
    told = refusals(model, "mjx")
    assert len(told) == 2
    assert all("MJX runs no engine plugin" in sentence for sentence in told)


def test_model_without_extensions_runs_everywhere():
    assert engine.support(mujoco.MjModel.from_xml_string("<mujoco/>")) == ()
