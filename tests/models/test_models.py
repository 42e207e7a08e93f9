"""Properties of the bundled models."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from mjhost import models
from mjhost.errors import UnknownNameError


def load(name: str) -> tuple[mujoco.MjModel, mujoco.MjData]:
    model = mujoco.MjModel.from_xml_path(str(models.path(name)))
    return model, mujoco.MjData(model)


def names_of(model: mujoco.MjModel, kind: str, count: int) -> list[str]:
    return [getattr(model, kind)(index).name for index in range(count)]


def test_names_are_sorted_and_each_has_a_file():
    assert list(models.names()) == sorted(models.names())
    assert all(models.path(name).is_file() for name in models.names())


def test_unknown_name_suggests_the_near_one():
    with pytest.raises(UnknownNameError, match="did you mean 'humanoid'"):
        models.path("humanoyd")


def test_unknown_name_far_from_all_lists_what_exists():
    with pytest.raises(UnknownNameError, match="known: 'demo', 'humanoid', 'pendulum'"):
        models.path("xxxxxxxxxx")


@pytest.mark.slow
@pytest.mark.parametrize("name", models.names())
def test_no_warning_and_no_runaway_in_ten_seconds_without_control(name):
    model, data = load(name)
    mujoco.mj_step(model, data, nstep=round(10 / model.opt.timestep))
    assert [int(warning.number) for warning in data.warning] == [0] * len(data.warning)
    assert np.abs(data.qvel).max() < (7 if name == "pendulum" else 0.1)


@pytest.mark.parametrize("name", models.names())
def test_everything_that_can_be_addressed_has_a_name(name):
    model, _ = load(name)
    for kind, count in (
        ("body", model.nbody),
        ("joint", model.njnt),
        ("actuator", model.nu),
        ("sensor", model.nsensor),
        ("cam", model.ncam),
        ("key", model.nkey),
    ):
        found = names_of(model, kind, count)
        assert all(found), (kind, found)
        assert len(set(found)) == len(found)


@pytest.mark.parametrize("name", models.names())
def test_starts_moving_without_control(name):
    model, data = load(name)
    before = data.qpos.copy()
    mujoco.mj_step(model, data, nstep=round(0.5 / model.opt.timestep))
    assert np.abs(data.qpos - before).max() > 0.05


def test_demo_home_is_the_pose_it_starts_in():
    model, data = load("demo")
    mujoco.mj_resetDataKeyframe(model, data, model.key("home").id)
    np.testing.assert_array_equal(data.qpos, model.qpos0)


def test_demo_arm_is_driven_by_torque_and_its_gripper_by_position():
    model, _ = load("demo")
    arm = [model.actuator(f"motor{k}") for k in range(1, 8)]
    assert all(motor.biastype[0] == mujoco.mjtBias.mjBIAS_NONE for motor in arm)
    assert all(motor.ctrlrange[0] == -motor.ctrlrange[1] for motor in arm)
    assert model.actuator("gripper").biastype[0] == mujoco.mjtBias.mjBIAS_AFFINE


def test_demo_stack_stands_while_the_arm_holds_its_pose():
    model, data = load("demo")
    mujoco.mj_resetDataKeyframe(model, data, model.key("home").id)
    start = data.qpos.copy()
    for _ in range(500):
        data.ctrl[:7] = 200 * (start[:7] - data.qpos[:7]) - 20 * data.qvel[:7] + data.qfrc_bias[:7]
        mujoco.mj_step(model, data)
    assert np.abs(data.qpos - start).max() < 2e-3


def test_demo_gripper_holds_what_it_closes_on():
    model, data = load("demo")
    mujoco.mj_resetDataKeyframe(model, data, model.key("home").id)
    mujoco.mj_forward(model, data)
    start = data.qpos[:7].copy()
    cube = model.joint("cube").qposadr[0]
    data.qpos[cube : cube + 3] = data.site("tcp").xpos
    data.qpos[cube + 3 : cube + 7] = 1, 0, 0, 0
    for step in range(1000):
        data.ctrl[:7] = 200 * (start - data.qpos[:7]) - 20 * data.qvel[:7] + data.qfrc_bias[:7]
        data.ctrl[7] = 0.0
        if step < 100:  # nothing holds it until the fingers have closed
            data.qpos[cube : cube + 3] = data.site("tcp").xpos
            data.qvel[model.joint("cube").dofadr[0] :][:6] = 0
        mujoco.mj_step(model, data)
    assert np.linalg.norm(data.body("cube").xpos - data.site("tcp").xpos) < 0.02
    assert data.sensor("left_touch").data[0] > 1
    assert data.sensor("right_touch").data[0] > 1
