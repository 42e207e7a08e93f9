"""The three plugins of the demo: what they promise, on the demo and on smaller models."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from mjhost import MujocoEnv, PluginConfigError, models
from mjhost.demo import PLUGIN_FILE, EnergyMonitor, JointImpedance, Wind

PENDULUM = """
<mujoco>
  <option timestep=".001" integrator="RK4"><flag energy="enable"/></option>
  <worldbody>
    <body><joint axis="0 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 .5 0 0"/></body>
  </worldbody>
</mujoco>
"""
BALL = """
<mujoco>
  <option gravity="0 0 0" timestep=".01"/>
  <worldbody><body name="ball"><freejoint/><geom size=".1" mass=".1"/></body></worldbody>
</mujoco>
"""
ARM = models.path("demo")
JOINTS = slice(0, 7)


@pytest.mark.slow
def test_demo_runs_for_a_minute_without_a_fault_and_stays_clear_of_the_table():
    with MujocoEnv(ARM, plugins=[PLUGIN_FILE]) as env:
        assert [plugin.state for plugin in env.plugin_statistics] == ["ready"] * 3
        bodies = [env.model.body(i).name for i in range(env.model.nbody)]
        moving = {i for i, name in enumerate(bodies) if name.startswith(("link", "hand", "finger"))}
        for _ in range(600):
            env.step(50)
            touched = env.model.geom_bodyid[env.data.contact.geom].ravel()
            assert not moving.intersection(touched.tolist())
        assert env.data.ncon > 0  # the things still lie on the table
        assert not any(env.data.warning.number)


@pytest.mark.slow
def test_arm_follows_its_reference():
    plugin = JointImpedance(sway=0.2, period=4.0)
    with MujocoEnv(ARM, plugins=[plugin]) as env:
        home = env.model.qpos0[JOINTS].copy()
        env.advance(5.0)  # sin(2 pi 5/4) = 1 for the first joint
        assert env.data.qpos[0] - home[0] == pytest.approx(0.2, abs=0.02)
        assert np.abs(env.data.qpos[JOINTS] - home).max() < 0.25


def test_arm_without_sway_stays_where_it_is():
    with MujocoEnv(ARM, plugins=[JointImpedance(sway=0.0)]) as env:
        env.step(200)
        np.testing.assert_allclose(env.data.qpos[JOINTS], env.model.qpos0[JOINTS], atol=1e-3)


def test_gripper_opens_and_closes():
    with MujocoEnv(ARM, plugins=[JointImpedance(period=0.4)]) as env:
        openings = [env.step(50) and env.data.ctrl[7] for _ in range(8)]
    assert min(openings) < 0.005
    assert max(openings) > 0.035


def test_wind_carries_a_ball_along_up_to_its_own_speed():
    with MujocoEnv(BALL, plugins=[Wind(speed=2.0, direction=(0, 3, 0), gusts=0.0)]) as env:
        env.advance(40.0)
        x, y, z = env.data.qvel[:3]
    assert (x, z) == (0.0, 0.0)
    assert y == pytest.approx(2.0, rel=0.1)
    assert y < 2.0


def test_gusts_are_a_function_of_simulation_time():
    ends = []
    for _ in range(2):
        with MujocoEnv(BALL, plugins=[Wind(gusts=1.0)]) as env:
            env.step(300)
            ends.append(env.data.qpos.tobytes())
    assert ends[0] == ends[1]


def test_energy_of_a_frictionless_pendulum_hardly_drifts():
    with MujocoEnv(PENDULUM, plugins=[EnergyMonitor]) as env:
        env.advance(2.0)
        with env.plugins[0].access() as monitor:
            assert monitor.start == pytest.approx(0.0, abs=1e-3)
            assert 0 < abs(monitor.drift) <= abs(monitor.largest) < 1e-3
        (statistics,) = env.plugin_statistics
        assert statistics.hooks["post_step"].calls == 40


def test_energy_is_told_at_a_pause(caplog):
    caplog.set_level(logging.INFO)
    with MujocoEnv(PENDULUM, plugins=[EnergyMonitor], realtime=None) as env:
        env.step(100)
        env.resume()
        env.pause()
    (record,) = caplog.records
    assert record.getMessage().startswith("energy drifted by ")


def test_monitor_goes_on_after_a_reload_of_plugins_and_begins_anew_after_a_reset():
    with MujocoEnv(PENDULUM, plugins=[EnergyMonitor]) as env:
        env.step(100)
        with env.plugins[0].access() as monitor:
            start = monitor.start
        assert env.reload_plugins().carried == ("EnergyMonitor",)
        with env.plugins[0].access() as monitor:
            assert monitor.start == start
        env.reset()
        with env.plugins[0].access() as monitor:
            assert monitor.start is None


@pytest.mark.parametrize("plugin", [JointImpedance, Wind, EnergyMonitor])
def test_model_that_does_not_suit_a_plugin_is_refused_with_the_reason(plugin):
    with MujocoEnv("<mujoco/>", plugins=[plugin]) as env:
        (statistics,) = env.plugin_statistics
        assert statistics.state == "failed"
        assert " needs " in statistics.error
        assert env.step(1).completed == 1


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: JointImpedance(stiffness=-1),
        lambda: JointImpedance(period=0),
        lambda: Wind(direction=(0, 0, 0)),
        lambda: Wind(speed="much"),
    ],
)
def test_configuration_that_makes_no_sense_is_refused_when_it_is_given(wrong):
    with pytest.raises(PluginConfigError):
        wrong()
