"""Wrenches: they add, end by themselves, and never mix with what users write."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mjhost import MujocoEnv, Plugin
from mjhost.checkpoint import Checkpoint
from mjhost.errors import CheckpointError, InvalidArgumentError, UnknownNameError
from mjhost.state.wrenches import Wrench, Wrenches, loaded

MODEL = """
<mujoco>
  <option timestep="0.002" gravity="0 0 0"/>
  <worldbody>
    <body name="a" pos="0 0 1"><freejoint/><geom name="a" size=".1" mass=".1"/></body>
    <body name="b" pos="2 0 1"><freejoint/><geom type="box" size=".1 .2 .3" mass="2"/></body>
  </worldbody>
</mujoco>
"""


@pytest.fixture
def env():
    with MujocoEnv(MODEL) as env:
        yield env


def speed(env, body="a"):
    return float(env.body_state(body).linear[0])


def test_names_tell_wrenches_apart_and_others_add(env):
    env.apply_wrench("a", [1, 0, 0])
    env.apply_wrench("a", [2, 0, 0], name="wind")
    env.apply_wrench("a", [1, 0, 0])
    assert env.wrench("a").force.tolist() == [3, 0, 0]
    assert env.wrench("a").parts == ("", "wind")
    env.step(100)
    assert speed(env) == pytest.approx(3 / 0.1 * 0.2)
    assert env.clear_wrench("a", "wind") == 1
    assert env.wrench("a").force.tolist() == [1, 0, 0]
    assert env.clear_wrench() == 1
    assert env.clear_wrench("b") == 0


@pytest.mark.parametrize("duration", [0.1, 0.1 + 1e-12, 0.0999])
def test_a_duration_is_exact_in_steps(env, duration):
    env.apply_wrench("a", [1, 0, 0], duration=duration)
    env.step(49)
    assert env.wrench("a").force[0] == 1
    env.step(1)
    assert env.wrench("a").force[0] == 0
    env.step(150)
    assert speed(env) == pytest.approx(1.0, abs=1e-12)


def test_a_change_of_the_timestep_leaves_the_time_as_it_was(env):
    env.apply_wrench("a", [1, 0, 0], duration=0.1)
    env.step(25)
    env.apply_runtime_options({"timestep": 0.001})
    env.step(200)
    assert speed(env) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.slow
@given(
    st.floats(1e-4, 0.5),
    st.lists(
        st.tuples(st.sampled_from([1e-3, 0.002, 1 / 240, 0.01, 0.0003]), st.integers(1, 9)),
        min_size=1,
        max_size=8,
    ),
)
@settings(deadline=None, max_examples=100)
def test_it_acts_in_exactly_the_steps_that_begin_before_its_end(duration, stretches):
    wrenches = Wrenches()
    numbers = {"force": np.ones(3), "torque": np.zeros(3), "point": None, "frame": "world"}
    first = stretches[0][0]
    wrenches.apply(
        Wrench(body=1, label="a", name="", start=7, duration=duration, dt=first, **numbers)
    )
    now, end, steps = Fraction(0), Fraction(duration), 7
    for dt, count in stretches:
        for _ in range(count):
            assert wrenches.expire(steps, dt) == (now < end - Fraction(dt) / 10**9)
            saved = wrenches.save(steps)
            again, missing = loaded(saved, {"a": 3}, steps + 100)
            assert missing == ()
            assert len(again.of(3, steps + 100)) == len(wrenches)
            steps += 1
            now += Fraction(dt)


def test_what_is_left_after_a_change_of_the_timestep_is_not_rounded(env):
    env.apply_wrench("a", [1, 0, 0], duration=0.0999)
    env.step(25)
    env.apply_runtime_options({"timestep": 0.0001})
    env.step(600)
    assert speed(env) == pytest.approx((0.05 + 0.0499) / 0.1, abs=1e-12)


def test_when_the_last_one_has_ended_steps_are_as_quick_as_before(env):
    env.apply_wrench("a", [1, 0, 0], duration=0.01)
    env.step(10)
    assert env._core.hooks is None
    assert len(env._core.hosted.wrenches) == 0


def test_what_users_applied_is_there_after_every_step_to_the_last_bit(env):
    users = np.array([0.1, 1e-17, -3.0, 1e3, 0.3, -0.0])
    env.data.xfrc_applied[1] = users
    env.apply_wrench("a", [0.7, 0.1, 0], [0.3, 0, 0], duration=0.02)
    for _ in range(12):
        env.step()
        assert env.data.xfrc_applied[1].tobytes() == users.tobytes()


class Pushing(Plugin):
    """Adds to what is applied, before each step."""

    stateless = True

    def pre_step(self, model, data):
        data.xfrc_applied[1, 0] = 1.0


def test_forces_that_a_hook_writes_act_as_well():
    with MujocoEnv(MODEL, plugins=[Pushing]) as env:
        env.apply_wrench("a", [1, 0, 0])
        env.step(200)
        assert speed(env) == pytest.approx(8.0)
        assert env.wrench("a").force[0] == 1
        assert env.data.xfrc_applied[1, 0] == 1.0


class Assigning(Plugin):
    """Sets what is applied, in a callback of the engine, and says what it found there."""

    stateless = True
    seen = ()

    def control(self, model, data):
        Assigning.seen = (*Assigning.seen, float(data.xfrc_applied[1, 0]))
        data.xfrc_applied[1, 0] = 1.0


class AssigningPassive(Assigning):
    def passive(self, model, data):
        self.control(model, data)


@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicitfast"])
@pytest.mark.parametrize("plugin", [Assigning, AssigningPassive])
def test_forces_that_a_callback_sets_do_not_take_the_place_of_a_wrench(plugin, integrator):
    Assigning.seen = ()
    model = MODEL.replace("<option", f'<option integrator="{integrator}"')
    with MujocoEnv(model, plugins=[plugin]) as env:
        env.apply_wrench("a", [3, 0, 0])
        env.step(100)
        assert speed(env) == pytest.approx(4 / 0.1 * 0.2, abs=1e-12)
        assert env.data.xfrc_applied[1, 0] == 1.0
        env.forward()
        assert env.data.qacc[0] == pytest.approx(40)
        env.clear_wrench()
        env.step(50)
        assert speed(env) == pytest.approx(4.5 / 0.1 * 0.2, abs=1e-12)
    assert set(Assigning.seen) == {0.0, 1.0}


def test_callbacks_of_users_see_their_own_forces_only(env):
    def push(_model, data):
        data.xfrc_applied[1, 0] += 1.0

    env.apply_wrench("a", [1, 0, 0], duration=0.02)
    token = env.callbacks.add("control", push)
    env.step(10)
    assert env.data.xfrc_applied[1, 0] == 10
    assert speed(env) == pytest.approx((10 + 55) / 0.1 * 0.002, abs=1e-12)
    token.remove()
    env.data.xfrc_applied[:] = 0
    env.step(10)
    assert env._core.hooks is None
    assert speed(env) == pytest.approx((10 + 55) / 0.1 * 0.002, abs=1e-12)


def test_a_forward_of_the_user_after_an_undone_step_finds_no_wrench_left_behind():
    Failing.fail = False
    with MujocoEnv(MODEL, plugins=[Failing]) as env:
        fails = [False]

        def control(_model, _data):
            if fails[0]:
                raise RuntimeError("not now")

        env.callbacks.add("control", control)
        env.data.xfrc_applied[1, 1] = 0.25
        env.apply_wrench("a", [1, 0, 0])
        for undone in (lambda: setattr(Failing, "fail", True), lambda: fails.__setitem__(0, True)):
            env.step()
            undone()
            with pytest.raises(RuntimeError, match="not"):
                env.step()
            Failing.fail = fails[0] = False
            mujoco.mj_forward(env.model, env.data)
            assert env.data.xfrc_applied[1].tolist() == [0, 0.25, 0, 0, 0, 0]
            assert env.data.qacc[:2] == pytest.approx([0, 2.5])


def test_a_rollout_is_without_wrenches_and_leaves_them_alone(env):
    env.callbacks.add("control", lambda _model, _data: None)
    env.apply_wrench("a", [1, 0, 0])
    env.step(10)
    run = env.rollout(np.zeros((10, 0)))
    # Of the state: time, 14 positions, then velocities.
    assert run.state[-1, 15] == pytest.approx(10 * 0.02)
    env.step(10)
    assert speed(env) == pytest.approx(10 * 0.04)


def test_a_sleeping_body_wakes_up():
    model = """
    <mujoco>
      <option><flag sleep="enable"/></option>
      <worldbody>
        <geom type="plane" size="5 5 .1"/>
        <body name="a" pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1" mass="1"/></body>
      </worldbody>
    </mujoco>
    """
    with MujocoEnv(model) as env:
        env.step(2000)
        assert env.data.ntree_awake == 0
        env.apply_wrench("a", [0, 0, 19.81], duration=0.1)
        env.step(50)
        assert env.body_state("a").linear[2] == pytest.approx(1.0, rel=0.05)


def test_a_point_gives_a_torque_and_goes_with_the_body(env):
    env.apply_wrench("b", [0, 0, 1], point=[2.1, 0, 1])
    assert env.wrench("b").torque == pytest.approx([0, -0.1, 0], abs=1e-12)
    env.apply_wrench("b", [0, 0, 1], point=[0.1, 0, 0], frame="body")
    assert env.wrench("b").torque == pytest.approx([0, -0.1, 0], abs=1e-12)
    env.set_body_state("b", quat=[np.sqrt(0.5), 0, 0, np.sqrt(0.5)])
    assert env.wrench("b").torque == pytest.approx([0.1, 0, 0], abs=1e-12)


def test_a_wrench_of_the_body_turns_with_it(env):
    env.set_body_state("b", angular=[0, 0, np.pi])
    env.apply_wrench("b", [1, 0, 0], frame="body", duration=1.0)
    env.step(500)
    turned = env.body_state("b")
    expected = np.array([0.0, 2 / np.pi]) / 2.0  # a half turn of a force of 1 N on 2 kg
    assert turned.linear[:2] == pytest.approx(expected, abs=2e-3)


def test_it_survives_a_pause_and_ends_with_a_reset(env):
    env.apply_wrench("a", [1, 0, 0])
    env.resume()
    env.pause()
    assert env.wrench("a").force[0] == 1
    env.reset()
    assert env.wrench("a").force[0] == 0
    env.step(10)
    assert speed(env) == 0


def test_it_is_part_of_a_checkpoint(env, tmp_path):
    env.apply_wrench("a", [1, 0, 0], duration=0.1, name="push")
    env.apply_wrench("b", [0, 0.5, 0], point=[2, 0, 1.2])
    env.step(20)
    env.checkpoint().save(tmp_path / "w.ckpt")
    env.step(100)
    expected = env.checkpoint().state.tobytes()
    with MujocoEnv(MODEL) as fresh:
        fresh.restore(Checkpoint.load(tmp_path / "w.ckpt"))
        assert fresh.wrench("a").parts == ("push",)
        fresh.step(100)
        assert fresh.checkpoint().state.tobytes() == expected
        fresh.clear_wrench()


@pytest.mark.parametrize(
    "bad",
    [
        {"dt": np.nan},
        {"dt": 0.0},
        {"duration": -1.0},
        {"duration": np.inf},
        {"duration": 1e300},
        {"elapsed": "many"},
        {"force": [1.0, np.nan, 0.0]},
        {"body": "c"},
    ],
    ids=str,
)
def test_a_checkpoint_whose_wrench_cannot_be_is_refused(env, bad):
    env.apply_wrench("a", [1, 0, 0], duration=0.1)
    checkpoint = env.checkpoint()
    (saved,) = checkpoint.wrenches
    env.step(3)
    broken = msgspec.structs.replace(checkpoint, wrenches=({**saved, **bad},))
    with pytest.raises(CheckpointError, match="wrenches"):
        env.restore(broken)
    assert env.info.step_count == 3
    env.step(97)
    assert speed(env) == pytest.approx(1.0, abs=1e-12)


class Failing(Plugin):
    stateless = True
    fail = False

    def post_step(self, model, data):
        if Failing.fail:
            raise RuntimeError("not this step")


def test_a_step_that_is_undone_is_taken_again_with_the_same_wrench():
    Failing.fail = False
    with MujocoEnv(MODEL, plugins=[Failing]) as env:
        env.data.xfrc_applied[1, 1] = 0.25
        env.apply_wrench("a", [1, 0, 0], duration=0.02)
        env.step(5)
        Failing.fail = True
        with pytest.raises(RuntimeError, match="not this step"):
            env.step()
        assert env.data.xfrc_applied[1].tolist() == [0, 0.25, 0, 0, 0, 0]
        Failing.fail = False
        env.step(20)
        assert speed(env) == pytest.approx(0.2, abs=1e-12)


def test_a_forward_sees_what_the_next_step_will(env):
    env.apply_wrench("a", [1, 0, 0])
    env.forward()
    assert env.data.qacc[0] == pytest.approx(10.0)
    assert env.data.xfrc_applied[1, 0] == 0


@pytest.mark.slow
def test_a_running_simulation_takes_it_at_a_boundary(env):
    env.realtime = None
    env.resume()
    env.apply_wrench("a", [0, 0, 1], duration=0.1)  # away from the other body
    with env.events.subscribe() as events:
        env.stop_at(steps=env.info.step_count + 100_000)
        while type(events.get(30)).__name__ != "StepLimitReached":
            continue
    assert env.body_state("a").linear[2] == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"body": "c"}, UnknownNameError, "no body"),
        ({"body": "world"}, InvalidArgumentError, "world"),
        ({"force": [1, 2]}, InvalidArgumentError, "force on 'a'"),
        ({"force": [np.nan, 0, 0]}, InvalidArgumentError, r"force on 'a'\[0\]"),
        ({"torque": "much"}, InvalidArgumentError, "torque on 'a'"),
        ({"point": [1]}, InvalidArgumentError, "point of 'a'"),
        ({"frame": "tool"}, InvalidArgumentError, "frame must be"),
        ({"duration": 0}, InvalidArgumentError, "above 0 s"),
        ({"duration": -1}, InvalidArgumentError, "duration"),
        ({"duration": np.inf}, InvalidArgumentError, "duration"),
        ({"name": 3}, InvalidArgumentError, "name of a wrench"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_applied(env, arguments, error, match):
    with pytest.raises(error, match=match):
        env.apply_wrench(**{"body": "a", "force": [1, 0, 0], **arguments})
    assert len(env._core.hosted.wrenches) == 0
