"""A reload that keeps state goes on as if nothing had happened, as far as the models agree."""

from __future__ import annotations

import re

import mujoco
import pytest

from mjhost import MujocoEnv, Plugin, ReentrancyError
from mjhost.errors import InvalidArgumentError, ModelLoadError, StaleGenerationError
from tests.checkpoint.models import MATRIX, drive
from tests.env.models import PENDULUM, state_of

ARM = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    {first}
    <body name="arm" pos="0 0 1">
      <joint name="shoulder" type="{shoulder}"/><geom size=".05" pos=".2 0 0" mass="1"/>
      <body name="forearm" pos=".4 0 0">
        <joint name="elbow" axis="0 1 0" range="-2 2"/><geom size=".05" mass="{mass}"/>
      </body>
    </body>
    <body name="box" pos="2 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
    <body name="hand" mocap="true" pos="0 0 2"/>
    {last}
  </worldbody>
  <equality><weld name="grip" body1="hand" body2="box" active="false"/></equality>
  <actuator>
    {motor}
    <general name="slow" joint="elbow" dyntype="filter" dynprm=".5" gainprm="1"/>
  </actuator>
</mujoco>
"""
CRATE = '<body name="crate" pos="3 0 1"><freejoint name="crate"/><geom size=".1"/></body>'
MOTOR = '<motor name="fast" joint="elbow"/>'


def arm(*, first="", last="", shoulder="hinge", mass=0.5, motor=MOTOR):
    return ARM.format(first=first, last=last, shoulder=shoulder, mass=mass, motor=motor)


@pytest.fixture
def env():
    with MujocoEnv(arm()) as env:
        env.set_ctrl({"slow": 0.7})
        env.set_joint_states({"elbow": {"qpos": 0.4, "qvel": -1}})
        env.set_mocap("hand", pos=(0.1, 0.2, 2.1))
        env.data.xfrc_applied[env.model.body("box").id] = [0, 0, 3, 0, 0, 0]
        env.data.eq_active[0] = True
        env.step(30)
        yield env


def numbers(env):
    """What has names in both models, as bytes."""
    data, model = env.data, env.model
    joints = {name: (s.qpos.tobytes(), s.qvel.tobytes()) for name, s in env.joint_states().items()
              if not name.startswith("#")}  # fmt: skip
    return {
        **joints,
        "box": data.qpos[model.jnt_qposadr[model.body("box").jntadr[0]] :][:7].tobytes(),
        "act": data.act[model.actuator("slow").actadr[0]],
        "slow": env.ctrl()["slow"].tobytes(),
        "hand": env.mocap_states()["hand"].pos.tobytes(),
        "xfrc": data.xfrc_applied[model.body("box").id].tobytes(),
        "grip": bool(data.eq_active[0]),
        "time": data.time,
        "steps": env.info.step_count,
    }


@pytest.mark.parametrize("name", MATRIX)
def test_the_same_model_goes_on_to_the_same_bits(name):
    with MujocoEnv(MATRIX[name]) as env:
        drive(env, 0, 40)
        checkpoint = env.checkpoint()
        expected = drive(env, 40, 60)
        env.restore(checkpoint)
        report = env.reload(keep_state=True)
        assert report.carried.dropped == report.carried.new == report.carried.restarted == ()
        assert drive(env, 40, 60) == expected


def test_objects_before_and_behind_move_no_state(env):
    before = numbers(env)
    report = env.reload(arm(first=CRATE, last=CRATE.replace("crate", "other")), keep_state=True)
    after = numbers(env)
    assert {key: after[key] for key in before} == before
    assert "joint crate" in report.carried.new
    assert "joint shoulder" in report.carried.carried
    assert "joint 0 of body box" in report.carried.carried
    assert env.joint("crate").qpos[:3].tolist() == [3, 0, 1]


def test_what_is_gone_is_told(env):
    less = re.sub("<equality>.*</equality>", "", arm(motor=""))
    report = env.reload(less, keep_state=True)
    assert set(report.carried.dropped) == {"actuator fast", "equality grip"}
    assert env.ctrl()["slow"][0] == 0.7


def test_a_joint_of_another_type_begins_anew_and_its_neighbours_go_on(env):
    before = numbers(env)
    report = env.reload(arm(shoulder="ball"), keep_state=True)
    assert report.carried.restarted == ("joint shoulder",)
    assert env.joint("shoulder").qpos.tolist() == [1, 0, 0, 0]
    after = numbers(env)
    for name in ("elbow", "box", "act", "time", "steps"):
        assert after[name] == before[name]


def test_time_counters_and_rates_go_on(env):
    calls = []
    env.every(100, lambda _model, _data: calls.append(env.info.step_count))
    session = env.info.session_time
    env.step(2)
    env.reload(arm(mass=0.6), keep_state=True)
    env.step(10)
    assert calls == [35, 40]
    assert env.info.session_time == pytest.approx(session + 12 * 0.002)
    assert env.info.total_steps == env.info.step_count == 42


def test_without_it_everything_begins_anew(env):
    report = env.reload()
    assert report.carried is None
    assert env.data.time == 0
    assert env.info.step_count == 0
    assert not env.ctrl()["slow"].any()


def test_a_robot_that_stands_does_not_notice(env):
    """The solver's warm start is carried, so nothing jolts."""
    env.step(1500)
    resting = env.body_state("box").pos.copy()
    env.reload(arm(mass=0.5001), keep_state=True)
    env.step(50)
    assert env.body_state("box").pos == pytest.approx(resting, abs=1e-6)


def test_wrenches_go_on_if_their_body_does(env):
    env.apply_wrench("forearm", [0, 0, 1], duration=1.0)
    env.apply_wrench("box", [0, 0, 2], name="lift")
    gone = re.sub('<body name="box".*</body>', "", arm()).replace('body2="box"', 'body2="arm"')
    report = env.reload(gone, keep_state=True)
    assert "wrench on box" in report.carried.dropped
    assert env.wrench("forearm").force.tolist() == [0, 0, 1]
    env.step(500 + 1)
    assert env.wrench("forearm").force.tolist() == [0, 0, 0]


def test_options_and_state_can_be_kept_together(env):
    env.apply_runtime_options({"iterations": 9})
    env.reload(keep_state=True, options="keep")
    assert env.runtime_options.iterations == 9
    assert env.info.step_count == 30


def test_a_model_that_does_not_compile_leaves_all_as_it_was(env):
    before = state_of(env.model, env.data), env.generations.model
    with pytest.raises(ModelLoadError):
        env.reload("<mujoco><worldbody><geom/></worldbody></mujoco>", keep_state=True)
    assert (state_of(env.model, env.data), env.generations.model) == before


class Remembering(Plugin):
    def load(self, model, data):
        self.seen = float(data.time)


def test_plugins_are_loaded_against_the_state_that_was_kept():
    with MujocoEnv(PENDULUM, plugins=[Remembering]) as env:
        env.step(10)
        env.reload(keep_state=True)
        with env.plugins[0].access() as plugin:
            assert plugin.seen == env.data.time > 0


def test_a_running_simulation_keeps_running(env):
    env.realtime = None
    env.resume()
    report = env.reload(arm(mass=0.7), keep_state=True)
    assert not env.info.paused
    env.pause()
    assert env.info.step_count >= 30
    assert report.pause_s < 1


def test_sleep_is_told_to_be_inexact():
    flag = '<option timestep="0.002"><flag sleep="enable"/></option>'
    sleeping = arm().replace('<option timestep="0.002"/>', flag)
    with MujocoEnv(sleeping) as env:
        assert env.reload(keep_state=True).carried.exact is False


# -- structural edits ------------------------------------------------------------------------------


def test_an_edit_adds_while_the_rest_goes_on(env):
    before = numbers(env)
    edit = env.edit()
    with edit as spec:
        crate = spec.worldbody.add_body(name="crate", pos=(3, 0, 1))
        crate.add_freejoint(name="crate")
        crate.add_geom(size=[0.1, 0, 0])
        assert "crate" not in env.names("body")
    after = numbers(env)
    assert {key: after[key] for key in before} == before
    assert edit.report.carried.new == ("body crate", "joint crate")
    assert env.info.source.endswith("(edited)")


def test_an_edit_removes(env):
    with env.edit() as spec:
        spec.delete(spec.equality("grip"))
        spec.delete(spec.body("box"))
    assert "box" not in env.names("body")
    env.step(10)


def test_edits_follow_one_another_and_a_reload_reads_the_source_without_them(env):
    for name in ("one", "two"):
        with env.edit() as spec:
            body = spec.worldbody.add_body(name=name, pos=(3, 0, 1))
            body.add_geom(size=[0.1, 0, 0])
    assert {"one", "two"} <= set(env.names("body"))
    assert env.info.source == "XML text (edited)"
    report = env.reload(keep_state=True)
    assert report.edits_dropped == 2
    assert {"body one", "body two"} == set(report.carried.dropped)
    assert env.info.source == "XML text"
    assert env.reload().edits_dropped == 0


def test_an_edited_model_still_finds_the_files_of_its_own(tmp_path):
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "wedge.obj").write_text(
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"
    )
    path = tmp_path / "model.xml"
    path.write_text(
        """<mujoco><compiler meshdir="meshes"/><asset><mesh name="wedge" file="wedge.obj"/></asset>
        <worldbody><body><freejoint name="wedge"/><geom type="mesh" mesh="wedge"/></body>
        </worldbody></mujoco>"""
    )
    with MujocoEnv(path) as env:
        for name in ("one", "two"):
            with env.edit() as spec:
                spec.worldbody.add_body(name=name, mocap=True)
        assert {"one", "two"} <= set(env.names("body"))
        path.write_text(path.read_text().replace('name="wedge"/><geom', 'name="free"/><geom'))
        assert env.reload().edits_dropped == 2
        assert env.names("joint") == ("free",)


def test_of_two_edits_at_once_the_second_to_end_is_refused(env):
    with pytest.raises(StaleGenerationError), env.edit() as one:
        one.worldbody.add_body(name="one")
        with env.edit() as two:
            two.worldbody.add_body(name="two")
    assert "two" in env.names("body")
    assert "one" not in env.names("body")


def test_values_changed_live_are_told_when_the_model_has_its_own_again(env):
    env.model.body_mass[env.model.body("forearm").id] = 3
    report = env.reload(keep_state=True)
    assert "body_mass" in report.values_dropped
    assert env.reload().values_dropped == ()


def test_a_kept_timestep_keeps_the_phase_of_rates(env):
    calls = []
    env.apply_runtime_options({"timestep": 0.001})
    env.every(100, lambda _model, _data: calls.append(env.info.step_count))
    env.step(4)
    env.reload(keep_state=True, options="keep")
    env.step(16)
    assert calls == [40, 50]


def test_another_timestep_anchors_rates_anew(env):
    calls = []
    env.every(100, lambda _model, _data: calls.append(env.info.step_count))
    env.step(2)
    env.reload(arm().replace('timestep="0.002"', 'timestep="0.001"'), keep_state=True)
    env.step(20)
    assert calls == [42, 52]


def test_a_motor_that_became_a_servo_does_not_take_its_torque_for_an_angle(env):
    env.set_ctrl({"fast": 5.0})
    report = env.reload(arm(motor='<position name="fast" joint="elbow" kp="10"/>'), keep_state=True)
    assert report.carried.restarted == ("actuator fast",)
    assert env.ctrl()["fast"].tolist() == [0]
    assert env.ctrl()["slow"].tolist() == [0.7]
    env.set_ctrl({"fast": 0.3})
    env.reload(arm(motor='<position name="fast" joint="elbow" kp="20"/>'), keep_state=True)
    assert env.ctrl()["fast"].tolist() == [0.3]


def test_an_edit_attaches_another_model_with_a_prefix(env):
    other = mujoco.MjSpec.from_string(PENDULUM)
    with env.edit() as spec:
        frame = spec.worldbody.add_frame(pos=(0, 3, 1))
        spec.attach(other, prefix="left_", frame=frame)
    assert "left_hinge" in env.names("joint")
    assert env.info.step_count == 30


def test_an_exception_inside_an_edit_changes_nothing(env):
    before = state_of(env.model, env.data), env.generations
    with pytest.raises(ZeroDivisionError), env.edit() as spec:
        spec.worldbody.add_body(name="crate")
        _ = 1 / 0
    assert (state_of(env.model, env.data), env.generations) == before


def test_an_edit_that_does_not_compile_changes_nothing(env):
    before = state_of(env.model, env.data), env.generations
    with pytest.raises(ModelLoadError, match="does not compile"), env.edit() as spec:
        spec.worldbody.add_body(name="crate").add_freejoint()  # no mass
    assert (state_of(env.model, env.data), env.generations) == before


def test_an_edit_of_a_model_that_is_gone_is_stale(env):
    with pytest.raises(StaleGenerationError), env.edit() as spec:
        spec.worldbody.add_body(name="crate")
        env.reload()
    assert "crate" not in env.names("body")


def test_a_compiled_model_has_no_spec_to_edit():
    compiled = mujoco.MjModel.from_xml_string(PENDULUM)
    refused = pytest.raises(ModelLoadError, match="cannot be edited")
    with MujocoEnv(compiled) as env, refused, env.edit():
        pass
    with MujocoEnv(PENDULUM) as env:
        edit = env.edit()
        with edit:
            pass
        with pytest.raises(InvalidArgumentError, match="used once"), edit:
            pass


def test_an_edit_cannot_be_begun_inside_a_step(env):
    seen = []

    def inside(_model, _data):
        with pytest.raises(ReentrancyError), env.edit():
            pass
        seen.append(True)

    env.every(500, inside)
    env.step(1)
    assert seen


def test_the_state_of_nameless_things_goes_by_their_place():
    text = """<mujoco><worldbody>
      <body pos="0 0 1"><joint name="j" axis="0 1 0"/><geom size=".1"/>
        <body pos="1 0 0"><joint axis="0 1 0"/><geom size=".1"/></body></body>
    </worldbody><actuator><motor joint="j"/></actuator></mujoco>"""
    with MujocoEnv(text) as env:
        env.data.qpos[:] = [0.1, 0.2]
        env.data.ctrl[:] = [0.5]
        env.reload(text.replace("<worldbody>", "<worldbody>" + CRATE), keep_state=True)
        assert env.data.qpos.tolist() == [3, 0, 1, 1, 0, 0, 0, 0.1, 0.2]
        assert env.data.ctrl[0] == 0.5


def test_an_edited_spec_keeps_the_assets_that_it_has_in_memory():
    wedge = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"
    source = mujoco.MjSpec.from_string(
        '<mujoco><asset><mesh name="wedge" file="wedge.obj"/></asset><worldbody><body>'
        '<freejoint name="free"/><geom type="mesh" mesh="wedge"/></body></worldbody></mujoco>',
        assets={"wedge.obj": wedge},
    )
    with MujocoEnv(source) as env:
        for name in ("one", "two"):
            with env.edit() as spec:
                spec.worldbody.add_body(name=name, mocap=True)
        assert env.model.mesh("wedge").vertnum[0] > 0
        env.reload()
        assert "one" not in env.names("body")
