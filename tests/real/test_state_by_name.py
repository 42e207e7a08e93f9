"""Real models: what is read by name is the engine's, and what is set is read."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import mjhost
from mjhost.state.names import ObjectKind
from tests.real import corpus
from tests.state.zoo import integration_state, object_velocity

pytestmark = [pytest.mark.network, pytest.mark.slow]

STEPS = 20


@pytest.fixture(params=corpus.MODEL_IDS)
def real_env(request, real_models):
    with mjhost.MujocoEnv(real_models(request.param)) as env:
        env.data.ctrl[:] = 0.01
        env.step(STEPS)
        yield env


def forwarded(env) -> mujoco.MjData:
    copy = mujoco.MjData(env.model)
    mujoco.mj_copyData(copy, env.model, env.data)
    mujoco.mj_forward(env.model, copy)
    return copy


def assert_every_body_is_read_as_the_engine_has_it(env):
    expected = forwarded(env)
    before = integration_state(env.model, env.data)
    for body, (name, state) in enumerate(env.body_states().items()):
        linear, angular = object_velocity(env.model, expected, body)
        assert state.pos.tobytes() == expected.xpos[body].tobytes(), name
        assert state.quat.tobytes() == expected.xquat[body].tobytes(), name
        np.testing.assert_allclose(state.linear, linear, atol=1e-9)
        np.testing.assert_allclose(state.angular, angular, atol=1e-9)
    assert integration_state(env.model, env.data) == before


def assert_all_states_survive_a_reset(env):
    joints, ctrl = env.joint_states(), env.ctrl()
    env.reset()
    env.set_joint_states(joints)
    env.set_ctrl(ctrl)
    again = env.joint_states()
    for name, state in joints.items():
        # A quaternion of the engine's may be off unit length by rounding, which setting mends.
        np.testing.assert_allclose(again[name].qpos, state.qpos, rtol=0, atol=1e-15)
        assert again[name].qvel.tobytes() == state.qvel.tobytes()
    assert {name: values.tolist() for name, values in env.ctrl().items()} == {
        name: values.tolist() for name, values in ctrl.items()
    }


def assert_every_free_body_can_be_put_somewhere(env):
    model = env.model
    quat = np.array((0.5, -0.5, 0.5, 0.5))
    for name in env.names("body"):
        body = env.body(name).id
        joint = int(model.body_jntadr[body])
        if joint < 0 or model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_FREE:
            continue
        others = np.delete(env.data.qpos, np.arange(7) + model.jnt_qposadr[joint])
        env.set_body_state(name, pos=(1, 2, 3), quat=quat, linear=(1, 0, 2), angular=(0, 3, 1))
        state = env.body_state(name)
        assert (state.pos.tolist(), state.quat.tolist()) == ([1, 2, 3], quat.tolist())
        np.testing.assert_allclose(state.linear, (1, 0, 2), atol=1e-9)
        np.testing.assert_allclose(state.angular, (0, 3, 1), atol=1e-9)
        kept = np.delete(env.data.qpos, np.arange(7) + model.jnt_qposadr[joint])
        assert kept.tobytes() == others.tobytes()


def assert_every_object_is_found_by_its_name(env):
    look_ups = {
        ObjectKind.BODY: env.body,
        ObjectKind.JOINT: env.joint,
        ObjectKind.GEOM: env.geom,
        ObjectKind.ACTUATOR: env.actuator,
        ObjectKind.SENSOR: env.sensor,
        ObjectKind.EQUALITY: env.equality,
    }
    for kind, look_up in look_ups.items():
        found = [look_up(name) for name in env.names(kind)]
        assert [each.id for each in found] == [*range(len(found))]


def test_states_go_out_and_in_by_name(real_env):
    assert_every_object_is_found_by_its_name(real_env)
    assert_every_body_is_read_as_the_engine_has_it(real_env)
    assert_all_states_survive_a_reset(real_env)
    assert_every_free_body_can_be_put_somewhere(real_env)
    assert real_env.fault is None
