"""``mjhost.thermal``: heat, and that looking at a motor does not warm it."""

import math

import mujoco
import numpy as np
import pytest

from mjhost.engine.builtin import thermal  # noqa: F401 - registers

MODEL = """
<mujoco>
  <option timestep=".01" integrator="{integrator}"><flag gravity="disable"/></option>
  <extension><plugin plugin="mjhost.thermal"><instance name="motors">{config}</instance></plugin>
  </extension>
  <worldbody>
    <body><joint name="a" axis="0 1 0" damping="0.5"/><geom size=".1"/></body>
    <body pos="1 0 0"><joint name="b" axis="0 1 0" damping="0.5"/><geom size=".1"/></body>
  </worldbody>
  <actuator>
    <plugin name="a" joint="a" instance="motors" {more}/>
    <plugin name="b" joint="b" instance="motors" actdim="1"/>
  </actuator>
  <sensor><plugin name="temperatures" instance="motors"/></sensor>
</mujoco>
"""
CONFIG = {"torque_constant": 0.1, "resistance": 0.5, "heat_capacity": 2.0, "cooling": 0.25}
COPPER = 0.00393


def made(integrator="Euler", more='actdim="1"', **changes):
    config = "".join(
        f'<config key="{key}" value="{value}"/>' for key, value in {**CONFIG, **changes}.items()
    )
    model = mujoco.MjModel.from_xml_string(
        MODEL.format(integrator=integrator, config=config, more=more)
    )
    return model, mujoco.MjData(model)


def test_motor_settles_where_heat_and_cooling_balance(path):
    model, data = made(heat_capacity=0.2)
    current = 3.0
    data.ctrl[0] = current
    mujoco.mj_step(model, data, 3_000)
    heat = 0.5 * current**2
    assert data.act[0] == pytest.approx(heat / (0.25 - COPPER * heat), rel=1e-6), path
    assert data.act[1] == 0.0, path
    assert data.qfrc_actuator[0] == pytest.approx(0.1 * current), path


def test_cold_motor_warms_at_the_rate_of_its_heat_capacity(path):
    model, data = made()
    data.ctrl[0] = 4.0
    mujoco.mj_step(model, data)
    assert data.act[0] == pytest.approx(0.01 * 0.5 * 16 / 2.0), path


def test_cooling_follows_the_exponential(path):
    model, data = made(integrator="RK4")
    data.act[0] = 40.0
    mujoco.mj_step(model, data, 300)
    assert data.act[0] == pytest.approx(40.0 * math.exp(-3.0 * 0.25 / 2.0), rel=1e-9), path


@pytest.mark.parametrize("integrator", ["Euler", "RK4"])
def test_looking_does_not_warm(integrator, path):
    model, data = made(integrator=integrator)
    data.ctrl[:] = 5.0
    for _ in range(10):
        mujoco.mj_forward(model, data)
    assert data.act.tolist() == [0.0, 0.0], path


def test_hot_motor_gives_less_and_the_hottest_nothing(path):
    model, data = made(limit=80, maximum=120)
    data.ctrl[:] = 2.0
    forces = []
    for temperature in (25.0, 80.0, 100.0, 120.0, 200.0):
        data.act[0] = temperature - 25.0
        mujoco.mj_forward(model, data)
        forces.append(data.actuator_force[0])
    assert forces == pytest.approx([0.2, 0.2, 0.1, 0.0, 0.0]), path


def test_current_is_clamped_to_the_control_range(path):
    model, data = made(more='actdim="1" ctrlrange="-1 1"')
    data.ctrl[:] = -7.0
    mujoco.mj_forward(model, data)
    assert data.actuator_force.tolist() == pytest.approx([-0.1, -0.7]), path


def test_sensor_reads_the_temperatures(path):
    model, data = made(ambient=20.0)
    data.act[:] = 5.0, 7.5
    mujoco.mj_forward(model, data)
    assert data.sensor("temperatures").data.tolist() == [25.0, 27.5], path


def test_reset_makes_it_cold(path):
    model, data = made()
    data.ctrl[:] = 5.0
    mujoco.mj_step(model, data, 10)
    mujoco.mj_resetData(model, data)
    mujoco.mj_forward(model, data)
    assert data.sensor("temperatures").data.tolist() == [25.0, 25.0], path


def test_temperature_is_part_of_the_linearised_system(path):
    model, data = made()
    data.ctrl[:] = 2.0
    data.act[:] = 75.0  # 100 °C: the torque depends on it
    size = 2 * model.nv + model.na
    transition = np.zeros((size, size))
    mujoco.mjd_transitionFD(model, data, 1e-6, True, transition, None, None, None)
    speed_by_temperature = transition[model.nv, 2 * model.nv]
    implicit_inertia = model.body_inertia[1, 1] + 0.01 * 0.5
    right = -0.1 * 2.0 / 40.0 * 0.01 / implicit_inertia
    assert speed_by_temperature == pytest.approx(right, rel=1e-3), path


def test_both_paths_compute_the_same_bits(on_both_paths, runs):
    config = "".join(f'<config key="{key}" value="{value}"/>' for key, value in CONFIG.items())
    xml = MODEL.format(integrator="RK4", config=config, more='actdim="1"')
    controls = 20 * np.random.default_rng(0).normal(size=(100, 2))
    python, compiled = on_both_paths(runs.run, xml, controls)
    assert python.tobytes() == compiled.tobytes()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"more": ""}, 'actuator 0 must have one activation.*write actdim="1"'),
        ({"more": 'actdim="2"'}, "must have one activation"),
        ({"more": 'dyntype="integrator"'}, "no dyntype"),
        ({"limit": 20}, "ambient=25, limit=20 and maximum=120 must be in this order"),
        ({"heat_capacity": 0}, "heat_capacity.*is too small"),
    ],
)
def test_what_cannot_work_is_refused_with_what_to_write(arguments, complaint):
    with pytest.raises(ValueError, match=complaint):
        made(**arguments)
