"""Controllers: modes, limits, hand-over, trajectories, the emergency stop, checkpoints."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from mjhost import MujocoEnv, models
from mjhost.bundled.control import Control
from mjhost.bundled.trajectory import planned
from mjhost.errors import InvalidArgumentError, PluginConfigError, UnknownNameError
from mjhost.plugins import Plugin
from mjhost.streams.records import (
    CancelTrajectory,
    GroupCommand,
    JointCommand,
    StopCommand,
    TrajectoryCommand,
    TrajectoryPoint,
)

DT = 0.002
MODEL = f"""
<mujoco>
  <option timestep="{DT}" integrator="implicitfast"/>
  <worldbody>
    <body name="upper">
      <joint name="motor" axis="0 1 0" range="-120 120"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass="1"/>
      <body name="lower" pos=".3 0 0">
        <joint name="servo" axis="0 1 0" damping=".2"/>
        <geom type="capsule" fromto="0 0 0 .2 0 0" size=".02" mass=".5"/>
        <body name="tip" pos=".2 0 0">
          <joint name="wheel" axis="1 0 0"/>
          <geom type="cylinder" fromto="0 0 0 .02 0 0" size=".05" mass=".1"/>
        </body>
      </body>
    </body>
    <body name="bare" pos="0 1 0"><joint name="bare" axis="0 0 1"/><geom size=".1" mass="1"/></body>
    <body name="ball" pos="0 2 0"><joint name="ball" type="ball"/><geom size=".1" mass="1"/></body>
  </worldbody>
  <actuator>
    <motor joint="motor" gear="2" ctrlrange="-10 10"/>
    <position joint="servo" kp="80" kv="4"/>
    <velocity joint="wheel" kv=".05"/>
  </actuator>
</mujoco>
"""


def make(**config):
    env = MujocoEnv(MODEL, plugins=[Control(**config)])
    assert env.plugin_load_report.ok, env.plugin_load_report.failures
    return env


def q(env, joint="motor"):
    return float(env.joint(joint).qpos)


def send(env, mode, **values):
    env.send("control/joint", JointCommand(mode=mode, values=values))


def way(*points, joints=("motor",), **more):
    """A trajectory through (time, position[, velocity[, acceleration]])."""
    made = []
    for time, *given in points:
        rows = [tuple(np.atleast_1d(row).tolist()) for row in given]
        fields = dict(zip(("positions", "velocities", "accelerations"), rows, strict=False))
        made.append(TrajectoryPoint(time=time, **fields))
    return TrajectoryCommand(joints=joints, points=tuple(made), **more)


def outcomes(samples):
    return [(s.record.trajectory, s.record.status) for s in samples.drain()]


# -- set points ----------------------------------------------------------------------------------


def test_untold_joints_are_held_where_they_are_against_gravity():
    with make() as env:
        env.advance(1.0)
        assert q(env) == pytest.approx(0.0, abs=2e-3)
        assert q(env, "servo") == pytest.approx(0.0, abs=5e-2)  # a servo gives way by its kp
    with make(start="idle") as env:
        env.advance(0.2)
        assert q(env) > 0.1


def test_what_the_engine_holds_itself_is_not_held_twice():
    light = MODEL.replace('<body name="', '<body gravcomp="1" name="')
    with MujocoEnv(light, plugins=[Control]) as env:
        env.advance(0.5)
        assert np.abs(env.data.ctrl).max() < 1e-6
        assert abs(q(env)) < 1e-6
    half = MODEL.replace('<body name="', '<body gravcomp=".5" name="')
    with MujocoEnv(half, plugins=[Control]) as env:
        env.advance(1.0)
        assert abs(q(env)) < 1e-3
        assert abs(env.data.ctrl[0]) > 0.5


def test_a_motor_goes_to_its_position_a_servo_to_its_own():
    with make() as env:
        send(env, "position", motor=0.5, servo=-0.4)
        env.advance(2.0)
        assert q(env) == pytest.approx(0.5, abs=1e-2)
        assert q(env, "servo") == pytest.approx(-0.4, abs=5e-2)


def test_velocities_are_kept_by_motors_and_servos():
    with make(bandwidth=5.0) as env:
        send(env, "velocity", motor=-0.3, wheel=2.0)
        env.advance(1.5)
        assert float(env.joint("motor").qvel) == pytest.approx(-0.3, abs=2e-2)
        assert float(env.joint("wheel").qvel) == pytest.approx(2.0, abs=2e-2)


def test_an_effort_is_what_the_joint_gets_through_gear_and_gain():
    with make() as env:
        send(env, "effort", motor=1.5)
        env.advance(0.2)
        assert env.data.qfrc_actuator[0] == pytest.approx(1.5)
        assert env.data.ctrl[0] == pytest.approx(0.75)


def test_a_joint_without_an_actuator_is_driven_by_a_force_if_asked_for():
    with make(forces=True, joints=["bare"]) as env:
        send(env, "position", bare=1.0)
        env.advance(2.0)
        assert q(env, "bare") == pytest.approx(1.0, abs=1e-2)
        assert not env.data.ctrl.any()
        send(env, "effort", bare=0.25)
        env.advance(0.2)
        assert env.data.qfrc_applied[env.model.joint("bare").dofadr[0]] == 0.25


def test_groups_are_told_together_in_their_order():
    groups = {
        "arm": {"joints": ["servo", "motor"]},
        "spin": {"joints": ["wheel"], "mode": "velocity"},
    }
    with make(groups=groups) as env:
        env.send("control/group/arm", GroupCommand(values=(0.2, -0.3)))
        env.send("control/group/spin", GroupCommand(values=(1.0,)))
        env.advance(2.0)
        assert (q(env), q(env, "servo")) == pytest.approx((-0.3, 0.2), abs=5e-2)
        with pytest.raises(InvalidArgumentError, match="must be 2 numbers"):
            env.send("control/group/arm", GroupCommand(values=(0.2,)))


def test_set_points_move_no_faster_than_the_limit():
    with make(limits={"servo": {"velocity": 0.5}}) as env, env.streams.subscribe() as samples:
        send(env, "position", servo=1.0)
        env.advance(1.0)
        told = [s.record for s in samples.drain() if s.stream == "control/state"]
    desired = np.array([r.desired_position[r.names.index("servo")] for r in told])
    assert np.diff(desired).max() == pytest.approx(0.5 * 0.01, rel=1e-6)
    assert desired[-1] == pytest.approx(0.5, abs=0.011)


def test_the_integral_takes_away_what_is_left_and_is_bounded():
    gains = {"motor": {"kp": 20.0, "kd": 2.0}}
    with make(gains=gains, compensate=False) as env:
        env.advance(3.0)
        sagging = abs(q(env))
    assert sagging > 0.05
    gains["motor"] |= {"ki": 40.0, "integral": 10.0}
    with make(gains=gains, compensate=False) as env:
        env.advance(6.0)
        assert abs(q(env)) < 0.1 * sagging
    gains["motor"] |= {"integral": 0.5}
    with make(gains=gains, compensate=False) as env:
        env.advance(6.0)
        assert 0.5 * sagging < abs(q(env)) < sagging


# -- nothing jumps -------------------------------------------------------------------------------


def jumps(env, steps, ctrl=0):
    """Greatest change of a control from step to step."""
    told = [float(env.data.ctrl[ctrl])]
    for _ in range(steps):
        env.step()
        told.append(float(env.data.ctrl[ctrl]))
    return np.abs(np.diff(told)).max()


@pytest.mark.parametrize(
    ("first", "then"), [*itertools.permutations(["position", "velocity", "effort"], 2)]
)
def test_a_change_of_mode_does_not_jump(first, then):
    goals = {"position": 0.3, "velocity": 0.4, "effort": 3.0}
    with make() as env:
        env.advance(0.5)
        send(env, first, motor=goals[first])
        env.advance(0.5)
        before = float(env.data.ctrl[0])
        send(env, then, motor=q(env) if then == "position" else goals[then])
        env.step()
        assert abs(env.data.ctrl[0] - before) < 0.05 * 10
        assert jumps(env, 100) < 0.5


def test_the_start_takes_over_what_drives_were_told_before():
    with MujocoEnv(MODEL) as env:
        env.set_ctrl({"#0": 4.0, "#1": 0.5})
        env.step()
        env.reload_plugins([Control])
        env.step()
        assert env.data.ctrl[0] == pytest.approx(4.0, abs=0.2)
        assert env.data.ctrl[1] == pytest.approx(0.5, abs=0.02)
        env.advance(1.0)
        assert env.data.ctrl[1] == pytest.approx(q(env, "servo"), abs=0.3)


def test_without_a_handover_the_law_acts_at_once():
    with make(handover=0.0) as env:
        env.advance(0.5)
        send(env, "effort", motor=15.0)
        env.step()
        assert env.data.ctrl[0] == pytest.approx(7.5)


# -- trajectories --------------------------------------------------------------------------------


def test_a_trajectory_goes_through_its_points_and_succeeds():
    with make(bandwidth=8.0) as env, env.streams.subscribe("control/outcome") as samples:
        env.advance(0.3)
        number = env.send(
            "control/trajectory",
            way((0.5, (0.4, 0.1), (0, 0)), (1.0, (-0.2, 0.0), (0, 0)), joints=("motor", "servo")),
        )
        env.advance(0.5)
        assert q(env) == pytest.approx(0.4, abs=2e-2)
        assert outcomes(samples) == []
        env.advance(0.5 + DT)
        assert q(env) == pytest.approx(-0.2, abs=2e-2)
        assert outcomes(samples) == [(number, "succeeded")]
        env.advance(1.0)
        assert q(env) == pytest.approx(-0.2, abs=1e-2)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_between_points_the_way_is_a_line_a_cubic_or_a_quintic(rows):
    points = [(0.0, 0.0, 0.0, 0.0), (2.0, 1.0, 0.0, 0.0)]
    plan = planned(way(*[(p[0], *p[1 : 1 + rows]) for p in points]), {"motor": (0.0, 0.0)})
    s = 0.25
    expected = {1: s, 2: 3 * s**2 - 2 * s**3, 3: 10 * s**3 - 15 * s**4 + 6 * s**5}[rows]
    rate = {1: 1.0, 2: 6 * s - 6 * s**2, 3: 30 * s**2 - 60 * s**3 + 30 * s**4}[rows] / 2.0
    assert plan.sample(0.5).position[0] == pytest.approx(expected)
    assert plan.sample(0.5).velocity[0] == pytest.approx(rate)
    for time, position in ((-1.0, 0.0), (0.0, 0.0), (2.0, 1.0), (9.0, 1.0)):
        assert plan.sample(time).position[0] == pytest.approx(position)


def test_quintics_meet_velocities_and_accelerations_at_both_ends():
    plan = planned(way((0.0, 1.0, 2.0, 3.0), (0.5, -1.0, 0.5, -2.0)), {"motor": (0.0, 0.0)})
    h = 1e-5
    for at, position, velocity, acceleration in ((0.0, 1, 2, 3), (0.5, -1, 0.5, -2)):
        inner = at + (h if at == 0.0 else -h)
        found, near = plan.sample(min(at, 0.5 - 1e-12)), plan.sample(inner)
        assert found.position[0] == pytest.approx(position, abs=1e-6)
        assert found.velocity[0] == pytest.approx(velocity, abs=1e-6)
        slope = (near.velocity[0] - found.velocity[0]) / (inner - at)
        assert slope == pytest.approx(acceleration, abs=1e-2)


def test_a_start_in_the_future_waits_and_one_in_the_past_joins_under_way():
    with make(bandwidth=8.0) as env:
        env.advance(0.2)
        env.send("control/trajectory", way((1.0, 0.5), start=env.info.session_time + 0.5))
        env.advance(0.4)
        assert q(env) == pytest.approx(0.0, abs=5e-3)
        env.advance(1.2)
        assert q(env) == pytest.approx(0.5, abs=2e-2)
    with make(bandwidth=8.0) as env:
        env.advance(1.0)
        env.send("control/trajectory", way((0.0, 0.0), (1.0, 0.5), start=0.5))
        env.advance(0.3)
        assert q(env) == pytest.approx(0.4, abs=3e-2)


def test_a_trajectory_that_replaces_another_begins_where_that_is_without_a_jump():
    with make() as env, env.streams.subscribe("control/outcome") as samples:
        env.advance(0.3)
        first = env.send("control/trajectory", way((1.0, 0.8, 0.0)))
        env.advance(0.5)
        before = float(env.data.ctrl[0])
        second = env.send("control/trajectory", way((1.0, -0.2, 0.0)))
        assert outcomes(samples) == [(first, "replaced")]
        env.step()
        assert abs(env.data.ctrl[0] - before) < 0.3
        assert jumps(env, 100) < 0.3
        env.advance(2.0)
        assert outcomes(samples) == [(second, "succeeded")]


def test_a_set_point_ends_the_trajectory_of_its_joint_and_the_others_stay():
    with make() as env, env.streams.subscribe("control/outcome") as samples:
        both = way((1.0, (0.8, 0.4), (0, 0)), joints=("motor", "servo"))
        env.send("control/trajectory", both)
        env.advance(0.5)
        held = q(env, "servo")
        send(env, "position", motor=0.0)
        assert [status for _, status in outcomes(samples)] == ["replaced"]
        env.advance(1.0)
        assert q(env, "servo") == pytest.approx(held, abs=6e-2)
        assert q(env) == pytest.approx(0.0, abs=2e-2)


def test_cancel_holds_the_joints_where_they_are():
    with make() as env, env.streams.subscribe("control/outcome") as samples:
        number = env.send("control/trajectory", way((1.0, 0.8, 0.0)))
        env.advance(0.5)
        here = q(env)
        assert env.send("control/cancel", CancelTrajectory(trajectory=number)) == 1
        assert outcomes(samples) == [(number, "cancelled")]
        env.advance(1.0)
        assert q(env) == pytest.approx(here, abs=0.1)
        assert env.send("control/cancel", CancelTrajectory()) == 0
        with pytest.raises(UnknownNameError, match="no trajectory 7 is under way"):
            env.send("control/cancel", CancelTrajectory(trajectory=7))


def test_tolerances_end_a_trajectory_that_is_not_followed():
    weak = {"gains": {"motor": {"kp": 0.5, "kd": 0.5}}, "compensate": False}
    with make(**weak) as env, env.streams.subscribe("control/outcome") as samples:
        env.send("control/trajectory", way((0.5, -0.8, 0.0), path_tolerance={"motor": 0.1}))
        env.advance(0.5)
        (sample,) = samples.drain()
        assert sample.record.status == "path_tolerance"
        assert "joint 'motor' is" in sample.record.message
    with make(**weak) as env, env.streams.subscribe("control/outcome") as samples:
        goal = way((0.3, -0.8, 0.0), goal_tolerance={"motor": 0.01}, goal_time=0.2)
        env.send("control/trajectory", goal)
        env.advance(0.45)
        assert outcomes(samples) == []
        env.advance(0.1)
        assert [status for _, status in outcomes(samples)] == ["goal_tolerance"]


def test_the_arm_of_the_demo_follows_a_trajectory_within_a_hundredth_of_a_rad():
    with MujocoEnv(models.path("demo"), plugins=[Control(bandwidth=6.0)]) as env:
        assert env.plugin_load_report.ok, env.plugin_load_report.failures
        state = next(i for i in env.streams.streams() if i.name == "control/state")
        assert state.owner == "Control"
        with env.streams.subscribe("control/state", maxsize=1) as samples:
            env.advance(0.5)
            names = samples.drain()[-1].record.names
        hinges = tuple(n for n in names if env.joint(n).type == "hinge")[:6]
        start = np.array([q(env, n) for n in hinges])
        goal = start + 0.2 * (-1.0) ** np.arange(len(hinges))
        points = ((1.0, goal, np.zeros(len(hinges))), (2.0, start, np.zeros(len(hinges))))
        with env.streams.subscribe("control/outcome") as samples:
            env.send("control/trajectory", way(*points, joints=hinges))
            env.advance(1.0)
            assert np.abs(np.array([q(env, n) for n in hinges]) - goal).max() < 1e-2
            env.advance(1.5)
            assert [status for _, status in outcomes(samples)] == ["succeeded"]
        assert np.abs(np.array([q(env, n) for n in hinges]) - start).max() < 1e-2


# -- the emergency stop --------------------------------------------------------------------------


def test_the_stop_holds_at_once_refuses_commands_and_is_released_without_a_jump():
    with make() as env, env.streams.subscribe("control/outcome") as samples:
        number = env.send("control/trajectory", way((1.0, 0.8, 0.0)))
        env.advance(0.5)
        here = q(env)
        env.send("control/stop", StopCommand())
        assert outcomes(samples) == [(number, "stopped")]
        for refused in (
            lambda: send(env, "position", motor=0.0),
            lambda: env.send("control/trajectory", way((1.0, 0.0))),
        ):
            with pytest.raises(InvalidArgumentError, match="the emergency stop is in force"):
                refused()
        env.advance(1.0)
        assert q(env) == pytest.approx(here, abs=0.1)
        env.send("control/stop", StopCommand(stop=False))
        assert jumps(env, 50) < 0.2
        send(env, "position", motor=0.0)
        env.advance(1.5)
        assert q(env) == pytest.approx(0.0, abs=2e-2)


def test_a_limp_stop_gives_no_effort_and_servos_hold():
    with make(on_stop="limp") as env:
        env.advance(0.2)
        env.send("control/stop", StopCommand())
        env.step()
        assert env.data.ctrl[0] == 0.0
        env.advance(0.3)
        assert q(env) > 0.1
        env.send("control/stop", StopCommand(stop=False))
        env.step()
        assert abs(env.data.ctrl[0]) < 0.5


# -- the past ------------------------------------------------------------------------------------


def trace(env, steps):
    found = []
    for _ in range(steps):
        env.step()
        found.append(env.data.qpos.tobytes() + env.data.ctrl.tobytes())
    return found


@pytest.mark.parametrize("after", [0.05, 0.4, 1.2])
def test_a_checkpoint_in_the_middle_of_a_trajectory_goes_on_to_the_same_bits(after, tmp_path):
    gains = {"*": {"ki": 1.0, "integral": 2.0}}
    with make(gains=gains) as env:
        env.send("control/trajectory", way((0.5, 0.4, 0.1), (1.0, -0.2, 0.0)))
        env.advance(after)
        checkpoint = env.checkpoint()
        assert checkpoint.exact
        expected = trace(env, 300)
        env.restore(checkpoint)
        assert trace(env, 300) == expected
        file = tmp_path / "state.mjcp"
        checkpoint.save(file)
    with make(gains=gains) as other:
        other.restore(type(checkpoint).load(file))
        assert trace(other, 300) == expected


def test_plugins_reloaded_in_the_middle_go_on_with_the_trajectory():
    with make() as env, make() as twin:
        for each in (env, twin):
            each.send("control/trajectory", way((0.5, 0.4, 0.0)))
            each.advance(0.2)
        env.reload_plugins()
        assert trace(env, 300) == trace(twin, 300)


def test_a_reset_ends_trajectories_with_an_outcome_and_begins_anew():
    with make() as env, env.streams.subscribe("control/outcome") as samples:
        first = trace(env, 50)
        env.reset()
        number = env.send("control/trajectory", way((1.0, 0.8, 0.0)))
        env.send("control/stop", StopCommand())
        env.send("control/stop", StopCommand(stop=False))
        number = env.send("control/trajectory", way((1.0, 0.8, 0.0)))
        env.advance(0.3)
        samples.drain()
        env.reset()
        (sample,) = samples.drain()
        assert (sample.record.trajectory, sample.record.status) == (number, "cancelled")
        assert trace(env, 50) == first


def test_a_step_that_is_undone_is_controlled_alike_when_it_is_taken_again():
    class Fails(Plugin):
        failing = False

        def last_stage(self, model, data):
            if Fails.failing is True:
                raise ArithmeticError("once")

        def post_step(self, model, data):
            if Fails.failing == "late":
                raise ArithmeticError("once")

    config = {
        "gains": {"*": {"ki": 5.0, "integral": 2.0}},
        "limits": {"servo": {"velocity": 0.5}},
    }
    with MujocoEnv(MODEL, plugins=[Control(**config), Fails]) as env, make(**config) as twin:
        for each in (env, twin):
            each.send("control/trajectory", way((0.2, 0.4, 0.0)))
            send(each, "position", servo=1.0)
            send(each, "velocity", wheel=1.0)
            each.advance(0.1)
        for steps in (1, 49, 1):  # the last ends the trajectory
            for when in (True, "late"):
                Fails.failing = when
                with pytest.raises(ArithmeticError):
                    env.step()
                Fails.failing = False
                env.clear_fault()
            assert trace(env, steps) == trace(twin, steps)
        Fails.failing = "late"
        with pytest.raises(ArithmeticError):
            env.step()
        Fails.failing = False
        env.clear_fault()
        for each in (env, twin):
            send(each, "position", motor=0.1)
        assert trace(env, 200) == trace(twin, 200)


# -- what cannot be ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "error", "told"),
    [
        (way((1.0, 9.0)), InvalidArgumentError, "positions of joint 'motor' must be from -2.09"),
        (way((1.0, 0.5, math.nan)), InvalidArgumentError, "velocities of point 0"),
        (way((1.0, 0.5), (1.0, 0.6)), InvalidArgumentError, "times of points must grow"),
        (way((-1.0, 0.5)), InvalidArgumentError, "time of point 0 must be at least 0"),
        (way((1.0, (0.5, 0.5))), InvalidArgumentError, "positions of point 0 must be one number"),
        (way(), InvalidArgumentError, "from 1 to 100000 points, got 0"),
        (way((1.0,)), InvalidArgumentError, "needs positions"),
        (way((1.0, 0.5), joints=()), InvalidArgumentError, "needs joints, each once"),
        (way((1.0, 0.5), joints=("moter",)), UnknownNameError, "did you mean 'motor'"),
        (way((1.0, 0.5), path_tolerance={"servo": 1}), UnknownNameError, "path_tolerance names"),
        (way((1.0, 0.5), goal_time=-1.0), InvalidArgumentError, "goal_time must be at least 0"),
        (way((1.0, 0.5), start=math.inf), InvalidArgumentError, "start must be finite"),
    ],
)
def test_a_trajectory_that_cannot_be_is_refused_and_the_one_under_way_goes_on(command, error, told):
    with make() as env, make() as twin:
        for each in (env, twin):
            each.send("control/trajectory", way((0.5, 0.4, 0.0)))
            each.advance(0.1)
        with pytest.raises(error, match=told):
            env.send("control/trajectory", command)
        assert env.plugin_diagnostics.total == 0
        assert trace(env, 50) == trace(twin, 50)


@pytest.mark.parametrize(
    ("mode", "values", "error", "told"),
    [
        ("position", {"motor": 9.0}, InvalidArgumentError, "position of joint 'motor' must be"),
        ("position", {"motor": 0.1, "moter": 0.0}, UnknownNameError, "did you mean 'motor'"),
        ("position", {"motor": math.nan}, InvalidArgumentError, "must be finite"),
        ("position", {"motor": "a"}, InvalidArgumentError, "position of joint 'motor'"),
        ("effort", {"motor": 21.0}, InvalidArgumentError, "from -20 to 20, got 21"),
        ("effort", {"servo": 1.0}, InvalidArgumentError, "position servo, which takes no effort"),
        ("push", {"motor": 1.0}, InvalidArgumentError, "mode must be one of"),
    ],
)
def test_set_points_that_cannot_be_are_refused_and_none_is_taken(mode, values, error, told):
    with make() as env, make() as twin:
        with pytest.raises(error, match=told):
            env.send("control/joint", JointCommand(mode=mode, values=values))
        assert trace(env, 50) == trace(twin, 50)


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"joints": ["ball"]}, "it is neither a hinge nor a slide"),
        ({"joints": ["bare"]}, "it has no actuator; forces=True"),
        ({"joints": ["moter"]}, "did you mean 'motor'"),
        ({"gains": {"moter": {"kp": 1.0}}}, "no joint 'moter' is controlled"),
        ({"groups": {"a": {"joints": ["ball"]}}}, "no joint 'ball' is controlled"),
    ],
)
def test_joints_that_cannot_be_controlled_are_told_at_load_with_the_reason(config, told):
    with MujocoEnv(MODEL, plugins=[Control(**config)]) as env:
        assert told in env.plugin_load_report.failures[0].error


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"gains": {"motor": {"kp": -1.0}}}, "kp"),
        ({"gains": {"motor": {"kq": 1.0}}}, "kq"),
        ({"limits": {"motor": {"velocity": 0.0}}}, "velocity"),
        ({"limits": {"motor": {"low": 1.0, "high": 1.0}}}, "low must be below high"),
        ({"rate": 0.0}, "rate"),
        ({"start": "run"}, "start"),
    ],
)
def test_settings_that_cannot_be_are_refused_by_name(config, told):
    with pytest.raises(PluginConfigError, match=told):
        Control(**config)
