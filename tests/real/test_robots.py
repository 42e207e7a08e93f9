"""Real robots: what is imported is what an independent reader finds in the same file."""

from __future__ import annotations

import os

import mujoco
import numpy as np
import pytest

from mjhost import MujocoEnv, description
from mjhost.errors import ModelLoadError
from tests.real import conftest, corpus, robots

pytestmark = [pytest.mark.network, pytest.mark.slow]

POSITIONS = 10
CLOSE = 1e-6
# Their authors' inertias are of no body: refused as they are, and imported only when asked to mend.
MENDED = ("hand/allegro", "quadruped/anymal_c")


def path_or_skip(name):
    try:
        return robots.robot_path(name)
    except corpus.Unavailable as error:
        if os.environ.get(conftest.REQUIRE_VARIABLE, "") not in {"", "0"}:
            pytest.fail(f"{conftest.REQUIRE_VARIABLE} is set and {error}", pytrace=False)
        pytest.skip(f"not run: {error}")


@pytest.fixture(scope="module", params=robots.ROBOT_IDS)
def imported(request):
    """A robot: its name, what another reader reads, and our description of it."""
    path = path_or_skip(request.param)
    mends = request.param in MENDED
    found = description.load(path, actuators="motor", balance_inertia=mends)
    return request.param, robots.independently_read(path), found, found.spec.compile()


def relative_pose(data, body, root):
    turn = data.xmat[root].reshape(3, 3).T
    pose = np.eye(4)
    pose[:3, :3] = turn @ data.xmat[body].reshape(3, 3)
    pose[:3, 3] = turn @ (data.xpos[body] - data.xpos[root])
    return pose


def place(model, data, positions):
    for name, value in positions.items():
        data.qpos[model.joint(name).qposadr[0]] = value
    mujoco.mj_kinematics(model, data)


def full_inertia(body):
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, body.iquat)
    turn = turn.reshape(3, 3)
    return turn @ np.diag(body.inertia) @ turn.T


def test_every_link_is_where_another_reader_puts_it(imported):
    name, robot, _, model = imported
    data = mujoco.MjData(model)
    root = model.body(robot.base_link).id
    rng = np.random.default_rng(len(name))
    for _ in range(POSITIONS):
        positions = robots.random_positions(robot, rng)
        place(model, data, positions)
        for link, pose in robots.link_poses(robot, positions).items():
            ours = relative_pose(data, model.body(link).id, root)
            np.testing.assert_allclose(ours, pose, rtol=0, atol=CLOSE, err_msg=link)


def test_every_link_weighs_what_its_description_says(imported):
    _, robot, found, model = imported
    touched = {note.subject for note in found.report.notes if "moments" in note.text}
    made_up = {note.subject for note in found.report.notes if "moves and" in note.text}
    for name, link in robot.link_map.items():
        mass, centre, inertia = robots.inertial(link)
        body = model.body(name)
        assert body.mass[0] == pytest.approx(mass, abs=CLOSE), name
        assert bool(body.mass[0]) == bool(mass) or f"link {name}" in made_up, name
        if mass:
            np.testing.assert_allclose(body.ipos, centre, rtol=0, atol=CLOSE, err_msg=name)
        if mass and f"link {name}" not in touched:
            ours = full_inertia(body)
            np.testing.assert_allclose(ours, inertia, rtol=0, atol=CLOSE, err_msg=name)


def test_every_joint_has_the_bounds_of_its_description(imported):
    _, robot, _, model = imported
    for name, joint in robot.joint_map.items():
        if joint.type == "fixed":
            continue
        ours = model.joint(name)
        bounded = joint.type in ("revolute", "prismatic") and joint.limit.lower < joint.limit.upper
        assert bool(model.jnt_limited[ours.id]) == bounded, name
        if bounded:
            expected = (joint.limit.lower, joint.limit.upper)
            assert ours.range == pytest.approx(expected, abs=CLOSE), name
        if joint.mimic is None and joint.limit is not None and joint.limit.effort:
            most = joint.limit.effort
            assert model.actuator(name).forcerange.tolist() == [-most, most], name


def test_a_robot_runs_and_can_be_driven_as_it_was_imported(imported):
    *_, found, _ = imported
    with MujocoEnv(found.spec) as env:
        env.step(20)
        env.set_ctrl({env.names("actuator")[0]: 0.1})
        env.step(20)
        assert np.isfinite(env.data.qpos).all()
        assert env.fault is None


@pytest.mark.parametrize("name", ["arm/xarm7", "quadruped/solo12"])
def test_a_robots_file_is_hosted_by_its_path(name):
    path = path_or_skip(name)
    with MujocoEnv() as env:
        report = env.load(path)
        assert report.import_report.joints == env.model.njnt
        env.step(1)


@pytest.mark.parametrize("name", MENDED)
def test_a_robot_whose_inertia_is_of_no_body_is_refused_by_link(name):
    with pytest.raises(ModelLoadError, match=r"link '.*' breaks A \+ B >= C"):
        description.load(path_or_skip(name))
