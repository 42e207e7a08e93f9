"""Sensors as records: every type, right values, frames and stamps; noise, latency, checkpoints."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest

from mjhost import MujocoEnv
from mjhost.bundled.noise import turned
from mjhost.bundled.sensor_records import channels
from mjhost.bundled.sensors import Sensors
from mjhost.errors import PluginConfigError
from mjhost.plugins import Plugin
from mjhost.state.names import Names
from mjhost.streams.records import (
    ArrayReading,
    ImuReading,
    MagneticReading,
    OrientationReading,
    RangeReading,
    ScalarReading,
    VectorReading,
    WrenchReading,
)

DT = 0.01
MODEL = f"""
<mujoco>
  <option timestep="{DT}" magnetic="0 -0.5 0"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1"/>
    <body name="box" pos="0 0 .3" gravcomp="1"><freejoint/>
      <geom type="box" size=".1 .1 .1" mass="2"/>
      <site name="imu here" euler="0 0 90"/>
      <site name="down" euler="180 0 0" pos="0 0 1"/>
      <site name="up" pos="0 0 1"/>
      <body name="arm" pos="0 0 .5" gravcomp="1">
        <joint name="hinge" axis="0 1 0" damping="1"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass=".1"/>
        <site name="wrist"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="motor" joint="hinge"/></actuator>
  <sensor>
    <accelerometer name="acc" site="imu here"/>
    <gyro name="gyro" site="imu here"/>
    <framequat name="quat" objtype="site" objname="imu here"/>
    <magnetometer name="compass" site="imu here"/>
    <rangefinder name="range" site="down" cutoff="4"/>
    <rangefinder name="sky" site="up"/>
    <force name="force" site="wrist"/>
    <torque name="torque" site="wrist"/>
    <jointpos joint="hinge"/>
    <actuatorfrc name="effort" actuator="motor" cutoff=".5"/>
    <framepos name="place" objtype="xbody" objname="arm" reftype="xbody" refname="box"/>
    <fromto name="between" geom1="floor" body2="arm" cutoff="10"/>
    <user name="mine" dim="4"/>
    <clock name="clock"/>
  </sensor>
</mujoco>
"""


def make(model=MODEL, **config):
    return MujocoEnv(model, plugins=[Sensors(**config)])


def readings(env, steps=1, *streams):
    """The samples of some steps, by stream the last one's record."""
    assert env.plugin_load_report.ok, env.plugin_load_report.failures
    with env.streams.subscribe(*streams, maxsize=10_000) as samples:
        env.step(steps)
        return samples.drain()


def last(samples):
    return {sample.stream: sample.record for sample in samples}


# -- records -------------------------------------------------------------------------------------


def test_every_sensor_has_a_stream_of_its_name_or_type_and_number():
    with make() as env:
        names = [info.name for info in env.streams.streams()]
    assert names == [
        *("sensors/acc", "sensors/gyro", "sensors/quat", "sensors/compass", "sensors/range"),
        *("sensors/sky", "sensors/force", "sensors/torque", "sensors/jointpos_8"),
        *("sensors/effort", "sensors/place", "sensors/between", "sensors/mine", "sensors/clock"),
        *("imu/imu_here", "force_torque/wrist"),
    ]


def test_readings_are_right_in_value_type_frame_and_unit():
    with make() as env:
        found = last(readings(env))
    acc = found["sensors/acc"]
    assert isinstance(acc, VectorReading)
    assert (acc.frame, acc.quantity, acc.unit) == ("imu here", "accelerometer", "m/s²")
    np.testing.assert_allclose(acc.value, [0, 0, 9.81], atol=1e-9)
    half = math.sqrt(0.5)
    quat = found["sensors/quat"]
    assert (type(quat), quat.frame) == (OrientationReading, "world")
    np.testing.assert_allclose(quat.value, [half, 0, 0, half], atol=1e-12)
    compass = found["sensors/compass"]
    assert isinstance(compass, MagneticReading)
    np.testing.assert_allclose(compass.value, [-0.5, 0, 0], atol=1e-12)
    assert isinstance(found["sensors/range"], RangeReading)
    assert found["sensors/range"].value == pytest.approx(0.5 - 0.02)  # the arm is below
    assert found["sensors/range"].maximum == 4.0
    assert (found["sensors/sky"].value, found["sensors/sky"].maximum) == (math.inf, math.inf)
    place = found["sensors/place"]
    assert (type(place), place.frame) == (VectorReading, "box")
    np.testing.assert_allclose(place.value, [0, 0, 0.5], atol=1e-9)
    joint = found["sensors/jointpos_8"]
    assert (type(joint), joint.value, joint.unit) == (ScalarReading, 0.0, "rad")
    assert (type(found["sensors/between"]), found["sensors/between"].value.shape) == (
        *(ArrayReading, (6,)),
    )
    assert found["sensors/mine"].value.shape == (4,)


def test_what_a_site_has_together_is_one_record():
    with make() as env:
        found = last(readings(env, 1, "imu/imu_here", "force_torque/wrist"))
    imu, wrist = found["imu/imu_here"], found["force_torque/wrist"]
    assert isinstance(imu, ImuReading)
    assert imu.frame == "imu here"
    np.testing.assert_allclose(imu.linear_acceleration, [0, 0, 9.81], atol=1e-9)
    np.testing.assert_allclose(imu.angular_velocity, 0.0, atol=1e-12)
    assert imu.orientation is not None
    assert isinstance(wrist, WrenchReading)
    with make(groups=False) as env:
        assert not any(info.name.startswith("imu/") for info in env.streams.streams())


def test_a_reading_is_stamped_with_the_boundary_at_which_the_engine_measured():
    with make() as env:
        samples = readings(env, 3, "sensors/clock")
    for sample in samples:
        assert sample.stamp.sim_time == pytest.approx(sample.record.value, abs=1e-12)
    assert [sample.stamp.step for sample in samples] == [0, 1, 2]
    with make(rate=50.0) as env:
        samples = readings(env, 6, "sensors/clock")
    assert [sample.stamp.step for sample in samples] == [1, 3, 5]
    for sample in samples:
        assert sample.stamp.sim_time == pytest.approx(sample.record.value, abs=1e-12)


def test_every_type_of_the_engine_has_a_record():
    model = mujoco.MjModel.from_xml_string(MODEL)
    for number in mujoco.mjtSensor.__members__.values():
        if int(number) == int(mujoco.mjtSensor.mjSENS_PLUGIN):
            continue
        model.sensor_type[-1] = int(number)
        found = channels(model, Names(model))[-1]
        record = found.reading(np.zeros(found.place.stop - found.place.start))
        assert type(record) is found.record


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"include": ["gyro", "clock"]}, {"sensors/gyro", "sensors/clock"}),
        ({"include": ["rangefinder"], "exclude": ["sky"]}, {"sensors/range"}),
        (
            {"include": ["clock"], "ground_truth": True},
            {"sensors/clock", "ground_truth/sensors/clock"},
        ),
    ],
)
def test_sensors_are_chosen_by_name_or_type(config, expected):
    with make(**config) as env:
        assert {info.name for info in env.streams.streams()} == expected


# -- noise ---------------------------------------------------------------------------------------


def numbers(samples):
    return np.array([np.ravel(sample.record.value) for sample in samples])


def test_without_rules_readings_are_the_truth_to_the_bit():
    with make() as env, make() as plain:
        found = last(readings(env, 5, "sensors/force"))["sensors/force"].value
        plain.step(5)
        assert found.tobytes() == plain.data.sensor("force").data.tobytes()


def test_gaussian_noise_has_its_sigma_and_the_truth_is_beside_it():
    config = {"noise": {"accelerometer": {"sigma": 0.2}}, "ground_truth": True}
    with make(**config) as env:
        samples = readings(env, 2_000, "sensors/acc", "ground_truth/sensors/acc", "sensors/gyro")
    noisy = numbers(s for s in samples if s.stream == "sensors/acc")
    truth = numbers(s for s in samples if s.stream == "ground_truth/sensors/acc")
    np.testing.assert_allclose(truth[0], [0, 0, 9.81], atol=1e-9)
    assert (noisy - truth).std(axis=0) == pytest.approx([0.2] * 3, rel=0.08)
    assert (noisy - truth).mean(axis=0) == pytest.approx([0.0] * 3, abs=0.02)
    assert np.abs(numbers(s for s in samples if s.stream == "sensors/gyro")).max() < 1e-12


def test_rules_go_by_name_before_type_before_the_rest():
    rules = {"acc": {"sigma": 0.0}, "accelerometer": {"sigma": 9.0}, "*": {"sigma": 1.0}}
    with make(noise=rules) as env:
        found = last(readings(env))
        np.testing.assert_allclose(found["sensors/acc"].value, [0, 0, 9.81], atol=1e-9)
        assert found["sensors/gyro"].value.all()


def test_the_noise_attribute_of_the_model_is_a_sigma_if_asked_for():
    model = MODEL.replace('<gyro name="gyro"', '<gyro name="gyro" noise=".5"')
    with make(model) as env:
        assert not numbers(readings(env, 1, "sensors/gyro")).any()
    with make(model, model_noise=True) as env:
        spread = numbers(readings(env, 1_000, "sensors/gyro")).std()
        variances = last(readings(env, 1, "imu/imu_here"))["imu/imu_here"].variances
    assert spread == pytest.approx(0.5, rel=0.1)
    assert variances == pytest.approx((0.0, 0.25, 0.0))


def test_an_orientation_stays_one_and_turns_by_its_sigma():
    with make(noise={"quat": {"sigma": 0.05}}) as env:
        found = numbers(readings(env, 1_000, "sensors/quat"))
    assert np.linalg.norm(found, axis=1) == pytest.approx(np.ones(1_000))
    half = math.sqrt(0.5)
    cosine = np.abs(found @ [half, 0, 0, half])
    angles = 2 * np.arccos(np.minimum(1.0, cosine))
    assert np.sqrt((angles**2).mean()) == pytest.approx(0.05 * math.sqrt(3), rel=0.1)
    quat = turned(np.array([1.0, 0, 0, 0]), np.array([0.0, 0, math.pi]))
    np.testing.assert_allclose(quat, [0, 0, 0, 1], atol=1e-12)


def test_bias_begins_with_its_sigma_and_walks_with_the_root_of_time():
    starts, ends = [], []
    for seed in range(60):
        with make(noise={"gyro": {"bias": 0.3, "bias_walk": 0.4}}, seed=seed) as env:
            found = numbers(readings(env, 100, "sensors/gyro"))
            starts.append(found[0])
            ends.append(found[-1] - found[0])
    assert np.std(starts) == pytest.approx(0.3, rel=0.2)
    assert np.std(ends) == pytest.approx(0.4, rel=0.2)  # after a second


def test_resolution_and_dropout():
    with make(noise={"acc": {"resolution": 0.25}, "clock": {"dropout": 0.5}}) as env:
        samples = readings(env, 400, "sensors/acc", "sensors/clock")
    values = numbers(s for s in samples if s.stream == "sensors/acc")
    np.testing.assert_allclose(values[0], [0, 0, 9.75], atol=1e-9)
    came = sum(s.stream == "sensors/clock" for s in samples)
    assert came == pytest.approx(200, abs=40)


def test_cutoff_holds_for_readings_with_noise_and_no_return_has_none():
    with make(noise={"*": {"sigma": 3.0}}) as env:
        env.set_ctrl({"motor": 0.4})
        samples = readings(env, 200, "sensors/effort", "sensors/sky", "sensors/range")
    efforts = numbers(s for s in samples if s.stream == "sensors/effort")
    assert (np.abs(efforts).max(), np.abs(efforts).min() < 0.5) == (0.5, True)
    assert {s.record.value for s in samples if s.stream == "sensors/sky"} == {math.inf}
    seen = numbers(s for s in samples if s.stream == "sensors/range")
    assert (seen[np.isfinite(seen)] < 4.0).all()
    assert np.isinf(seen).any()


def test_latency_delays_a_reading_and_not_its_stamp():
    with make(noise={"clock": {"latency": 3 * DT}}) as env, env.streams.subscribe() as samples:
        env.step(3)
        assert [s for s in samples.drain() if s.stream == "sensors/clock"] == []
        env.step(2)
        found = [s for s in samples.drain() if s.stream == "sensors/clock"]
    assert [s.stamp.step for s in found] == [0, 1]
    assert [s.record.value for s in found] == pytest.approx([0.0, DT])


NOISY = {"noise": {"*": {"sigma": 0.1, "bias": 0.1, "bias_walk": 0.1, "latency": 2 * DT}}}


def noise_of(env, steps):
    samples = readings(env, steps, "sensors/acc", "sensors/clock")
    return [(s.stream, s.stamp.step, np.ravel(s.record.value).tobytes()) for s in samples]


def test_noise_comes_again_after_a_reset_and_does_not_depend_on_listeners():
    with make(**NOISY) as env:
        first = noise_of(env, 20)
        env.reset()
        env.step(10)
        assert noise_of(env, 10) == first[16:]
    with make(**NOISY, seed=1) as env:
        assert not {*noise_of(env, 20)} & {*first}


def test_a_checkpoint_and_a_reload_of_plugins_go_on_with_bias_and_what_is_under_way():
    with make(**NOISY) as env:
        env.step(7)
        checkpoint = env.checkpoint()
        assert checkpoint.exact
        expected = noise_of(env, 20)
        env.restore(checkpoint)
        assert noise_of(env, 20) == expected
        env.restore(checkpoint)
        env.reload_plugins()
        assert noise_of(env, 20) == expected


def test_a_step_that_is_undone_walks_once_and_comes_late_once():
    class Fails(Plugin):
        failing = False

        def post_step(self, model, data):
            if Fails.failing:
                raise ArithmeticError("once")

    with MujocoEnv(MODEL, plugins=[Sensors(**NOISY), Fails]) as env, make(**NOISY) as twin:
        for each in (env, twin):
            each.step(7)
        Fails.failing = True
        with pytest.raises(ArithmeticError):
            env.step()
        Fails.failing = False
        env.clear_fault()
        found, expected = noise_of(env, 20), noise_of(twin, 20)
        assert found == expected[2:]  # what came in the undone step came; none comes twice


# -- life ----------------------------------------------------------------------------------------


def test_publishing_writes_nothing_into_the_simulation():
    with MujocoEnv(MODEL) as plain, make(**NOISY, ground_truth=True) as env:
        readings(env, 50)
        plain.step(50)
        assert env.data.sensordata.tobytes() == plain.data.sensordata.tobytes()
        assert env.data.qpos.tobytes() == plain.data.qpos.tobytes()


def test_without_a_listener_nothing_is_made():
    with make() as env:
        env.step(5)
        timing = env.plugin_statistics[0].hooks["post_step"]
    assert (timing.calls, timing.skipped) == (5, 5)


def test_by_its_entry_point_with_configuration_from_plain_values():
    record = {"type": "sensors", "config": {"noise": {"gyro": {"sigma": 0.1}}, "rate": 50}}
    with MujocoEnv(MODEL, plugins=[record]) as env:
        assert len(readings(env, 10, "sensors/gyro")) == 5


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"include": ["gyra"]}, "name or type 'gyra'; did you mean 'gyro'"),
        ({"noise": {"acce": {"sigma": 1.0}}}, "name or type 'acce'"),
        ({"include": ["gyro"], "exclude": ["gyro"]}, "there is no sensor to publish"),
    ],
)
def test_sensors_that_are_not_there_are_told_at_load(config, told):
    with make(**config) as env:
        assert told in env.plugin_load_report.failures[0].error


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"noise": {"acc": {"sigma": -1.0}}}, "sigma"),
        ({"noise": {"acc": {"dropout": 2.0}}}, "dropout"),
        ({"noise": {"acc": {"latency": 1e9}}}, "latency"),
        ({"noise": {"acc": {"sigmma": 1.0}}}, "sigmma"),
        ({"rate": -1.0}, "rate"),
        ({"seed": -1}, "seed"),
    ],
)
def test_settings_that_cannot_be_are_refused_by_name(config, told):
    with pytest.raises(PluginConfigError, match=told):
        Sensors(**config)
