"""What sensors read."""

from __future__ import annotations

import mujoco

from mjhost import MujocoEnv
from mjhost.state.sensors import _JOINT_UNITS, _UNITS


def test_every_sensor_reads_its_own_numbers(zoo):
    zoo.set_joint_states({"knee": 0.5, "rail": 0.1})
    readings = zoo.sensors()
    assert [*readings] == ["knee angle", "rail length", "imu", "attitude", "#4"]
    for name, reading in readings.items():
        sensor = zoo.sensor(name)
        first = int(zoo.model.sensor_adr[sensor.id])
        numbers = zoo.data.sensordata[first : first + sensor.dim].tolist()
        assert reading == sensor.reading
        assert reading.value.tolist() == numbers
        assert sensor.value == numbers[0] if sensor.dim == 1 else sensor.value.tolist() == numbers


def test_types_and_units_are_stated_where_they_are_known(zoo):
    assert {name: (r.type, r.unit) for name, r in zoo.sensors().items()} == {
        "knee angle": ("jointpos", "rad"),
        "rail length": ("jointpos", "m"),
        "imu": ("accelerometer", "m/s²"),
        "attitude": ("framequat", ""),
        "#4": ("clock", "s"),
    }


def test_every_unit_is_of_a_sensor_that_exists():
    known = {name.removeprefix("mjSENS_").lower() for name in mujoco.mjtSensor.__members__}
    assert {*_UNITS, *_JOINT_UNITS} <= known


def test_a_reading_is_as_of_the_last_forward():
    xml = """
    <mujoco><worldbody><body><joint name="j" type="slide" axis="0 0 1"/><geom size=".1"/></body>
    </worldbody><sensor><jointpos name="s" joint="j"/></sensor></mujoco>"""
    with MujocoEnv(xml) as env:
        env.step(2)
        assert env.sensor("s").value != env.joint("j").qpos
        env.forward()
        assert env.sensor("s").value == env.joint("j").qpos < 0
