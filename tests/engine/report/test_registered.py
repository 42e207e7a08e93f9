"""What the report says is registered."""

from __future__ import annotations

import itertools
import os

import mujoco
import pytest

from mjhost import engine
from mjhost.engine.report import registered

_NUMBERS = itertools.count()


@pytest.fixture
def name():
    return f"test.report{os.getpid()}x{next(_NUMBERS)}"


def _found(name):
    (record,) = [record for record in registered().plugins if record.name == name]
    return record


def test_plugins_of_the_wheel_have_slot_capability_attributes_and_file():
    pid = _found("mujoco.pid")
    assert (pid.source, pid.capabilities, pid.stage) == ("engine", ("actuator",), None)
    assert [str(attribute) for attribute in pid.attributes] == ["kp", "ki", "kd", "imax", "slewmax"]
    assert pid.origin.endswith("libactuator.so")
    assert _found("mujoco.sensor.touch_grid").stage == "acc"
    assert [record.slot for record in registered().plugins] == [*range(len(registered().plugins))]


def test_declared_plugin_has_its_class_its_line_and_typed_attributes(name):
    @engine.plugin(name, capabilities=("sensor", "passive"), stage="vel")
    class Mine:
        gain: float = engine.attribute(2.0, minimum=0, doc="N per m")
        sensor_size = 1

        def compute(self, model, data, instance, capability):
            """Writes nothing."""

    record = _found(name)
    assert (record.source, record.stage, record.generation) == ("mjhost", "vel", 1)
    assert set(record.capabilities) == {"sensor", "passive"}
    (gain,) = record.attributes
    assert (str(gain), gain.doc) == ("gain=2.0", "N per m")
    assert "at least 0" in gain.expects
    assert record.origin.endswith(".Mine (" + record.origin.partition("(")[2])
    assert "test_registered.py:" in record.origin


def test_generation_grows_with_a_new_implementation_and_instances_are_counted(name):
    def declare():
        @engine.plugin(name, capabilities=("passive",))
        class Mine:
            def compute(self, model, data, instance, capability):
                """Does nothing."""

    declare()
    declare()
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><extension><plugin plugin="{name}"><instance name="a"/></plugin></extension>'
        f'<worldbody><body><joint/><geom size="1"/><plugin instance="a"/></body></worldbody>'
        "</mujoco>"
    )
    kept = mujoco.MjData(model)
    record = _found(name)
    assert (record.generation, record.instances) == (2, 1)
    del kept
    assert _found(name).instances == 0


def test_resources_of_the_wheel_and_declared_ones_are_listed(name):
    prefix = name.replace(".", "-")
    engine.resource_provider(prefix)(lambda uri: b"")
    found = {(record.kind, record.name): record.origin for record in registered().resources}
    assert ("decoder", ".obj") in found
    assert ("encoder", ".mjz") in found
    assert ("archive provider", ".zip") in found
    assert "test_registered.py" in found["resource provider", prefix]
