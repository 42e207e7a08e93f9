"""Named state of models with engine extensions written in Python."""

from __future__ import annotations

import itertools

import pytest

from mjhost import EnginePluginError, MujocoEnv, engine
from tests.state.zoo import everything

MODEL = """
<mujoco>
  <extension><plugin plugin="{name}"><instance name="drive"/></plugin></extension>
  <worldbody>
    <body name="arm"><joint name="j" axis="0 1 0"/><geom size="0.1" pos="0.3 0 0"/>
      <body name="tip" pos=".5 0 0"/>
    </body>
  </worldbody>
  <actuator><plugin name="a" joint="j" plugin="{name}" instance="drive"/></actuator>
</mujoco>
"""
_numbers = itertools.count()


@pytest.fixture(scope="module")
def limited():
    """An actuator that cannot be computed beyond one radian, and counts its instances."""
    name, made = f"test.limited-{next(_numbers)}", []

    @engine.plugin(name, capabilities=("actuator",))
    class Limited:
        def init(self, model, data, instance):
            made.append(instance)

        def compute(self, model, data, instance, capability):
            if data.qpos[0] > 1.0:
                raise ValueError("out of reach")

    return name, made


@pytest.fixture
def env(limited):
    with MujocoEnv(MODEL.format(name=limited[0])) as env:
        yield env


def test_a_state_that_an_extension_cannot_be_computed_in_is_not_set(env):
    env.set_joint_state("j", 0.5)
    before = everything(env)
    with pytest.raises(EnginePluginError, match="out of reach"):
        env.set_joint_state("j", 1.5)
    assert everything(env) == before
    env.step()
    assert env.fault is None


def test_reading_makes_no_second_instance_and_shows_what_the_data_have(env, limited):
    made = len(limited[1])
    env.set_joint_state("j", 0.5, 1.0)
    env.step()
    tip = env.body("tip")
    assert tip.pos.tolist() == env.data.xpos[tip.id].tolist()
    assert len(limited[1]) == made > 0
    env.forward()
    assert tip.pos.tolist() == env.data.xpos[tip.id].tolist()
