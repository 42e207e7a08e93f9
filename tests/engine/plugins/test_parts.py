"""``self``: attribute values and exactly the instance's own parts of the data."""

import mujoco
import numpy as np
import pytest

from mjhost import engine

PID = """
<actuator>
  <pid name="two" joint="slide" kp="1" ki="1"/>
  <plugin joint="slide" instance="{label}" actdim="{actdim}" {more}/>
  <plugin joint="slide" instance="{label}" actdim="{actdim}" {more}/>
</actuator>
"""


def seen_by(name, capabilities, **options):
    """Registers a plugin that remembers ``self`` and what it saw."""
    seen = {}

    @engine.plugin(name, capabilities, **options)
    class Seen:
        kp: float = engine.attribute(2.0, minimum=0)
        axis: "float64[3]" = (0.0, 0.0, 1.0)  # noqa: F821
        state_size = 2

        def compute(self, model, data, instance, capability):
            seen.update(self=self, model=model, data=data, call=(instance, capability))

        if "sensor" in capabilities:

            def sensor_size(self, model, instance, sensor):
                return 2

        if "actuator" in capabilities:

            def actuator_act_dot(self, model, data, instance):
                self.act_dot[:] = [1.0, 2.0, 3.0, 4.0][: len(self.act_dot)]

    return seen


def test_self_has_the_values_of_the_model_and_the_defaults(name, model_of, way):
    seen = seen_by(name, ("passive",))
    model = model_of(name, kp="7.5")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert seen["self"].kp == 7.5
    assert seen["self"].axis.tolist() == [0, 0, 1]
    assert seen["call"] == (0, 4)
    assert seen["self"].bodies.tolist() == [1]
    assert [len(getattr(seen["self"], part)) for part in ("act", "actuators", "sensors")] == [0] * 3


def test_state_is_a_view_of_the_own_part_of_plugin_state(name, model_of, way):
    seen = seen_by(name, ("passive",))
    model = model_of(name)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    seen["self"].state[:] = [3.0, 4.0]
    assert data.plugin_state.tolist() == [3.0, 4.0]


def test_sensordata_is_a_view_of_the_own_outputs(name, model_of, way):
    seen = seen_by(name, ("sensor",), stage="pos")
    model = model_of(name, "sensor")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    own = seen["self"]
    own.sensordata[:] = [5.0, 6.0]
    assert data.sensordata.tolist() == [5.0, 6.0]
    assert (own.sensors.tolist(), own.sensoradr.tolist()) == ([0], [0])


@pytest.mark.parametrize(("more", "actdim"), [("", 1), ("", 2), ('dyntype="integrator"', 1)])
def test_actuator_parts_are_right_after_a_multi_input_actuator(name, xml_of, way, more, actdim):
    seen = seen_by(name, ("actuator",))
    elements = PID.format(label="one", more=more, actdim=actdim + bool(more))
    xml = xml_of(name, "passive").replace("</mujoco>", elements + "</mujoco>")
    xml = xml.replace('<plugin instance="one"/>', "")
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    own = seen["self"]
    assert own.actuators.tolist() == [1, 2]
    assert own.ctrladr.tolist() == [2, 3]
    assert own.outadr.tolist() == [1, 2]
    assert own.actadr.tolist() == model.actuator_actadr[1:].tolist()
    interleaved = bool(more)  # each actuator's own state is followed by that of its dyntype
    assert len(own.act) == (0 if interleaved else 2 * actdim)
    if not interleaved:
        assert np.shares_memory(own.act, data.act)
        assert data.act_dot[own.actadr[0]] == 1.0


def test_self_is_frozen_after_init_and_says_where_state_belongs(name, model_of, raises):
    assigning = []

    @engine.plugin(name, ("passive",))
    class Assigning:
        kp: float = 1.0

        def init(self, model, data, instance):
            self.extra = 3

        def compute(self, model, data, instance, capability):
            assert self.extra == 3
            if assigning:
                self.kp = 2.0

    model = model_of(name)
    data = mujoco.MjData(model)
    assigning.append(True)
    error = raises(lambda: mujoco.mj_forward(model, data), data)
    assert "plugin_state" in str(error)
    assert "self.memo" in str(error)


def test_self_is_an_instance_of_the_class_and_has_its_helpers(name, model_of, way):
    results = []

    @engine.plugin(name, ("passive",))
    class Helping:
        factor = 3.0

        def compute(self, model, data, instance, capability):
            results.append((isinstance(self, Helping), self.tripled(2)))

        def tripled(self, value):
            return self.factor * value

    model = model_of(name)
    mujoco.mj_forward(model, mujoco.MjData(model))
    assert set(results) == {(True, 6.0)}


def test_self_points_to_nothing_once_the_data_are_gone(name, model_of, way):
    seen = seen_by(name, ("passive",))
    model = model_of(name)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    own = seen.pop("self")
    seen.clear()
    del data
    with pytest.raises(AttributeError):
        own.state  # noqa: B018


def test_views_follow_the_model_that_is_stepped_with(name, model_of, way):
    seen = seen_by(name, ("passive",))
    one, two = model_of(name, kp="1"), model_of(name, kp="2")
    two.opt.timestep = 0.123
    data = mujoco.MjData(one)
    mujoco.mj_forward(two, data)
    assert seen["model"].opt.timestep == 0.123
    assert seen["self"].kp == 1.0  # the configuration is that of the data's birth
    mujoco.mj_forward(one, data)
    assert seen["model"].opt.timestep == 0.002
