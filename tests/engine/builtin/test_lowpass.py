"""``mjhost.lowpass``: the filter, where its memory moves, and when its output is up to date."""

import copy
import math

import mujoco
import numpy as np
import pytest

from mjhost.engine.builtin import lowpass  # noqa: F401 - registers

MODEL = """
<mujoco>
  <option timestep=".01" integrator="{integrator}"/>
  <extension>
    <plugin plugin="mjhost.lowpass"/><plugin plugin="mjhost.lowpass.pos"/>
    <plugin plugin="mjhost.lowpass.vel"/>
  </extension>
  <worldbody><body>
    <joint name="slide" type="slide" axis="1 0 0"/><geom size=".1"/><site name="site"/>
  </body></worldbody>
  <sensor>
    <jointpos name="place" joint="slide"/> <jointvel name="speed" joint="slide"/>
    <accelerometer name="acceleration" site="site"/>
    {sensors}
  </sensor>
</mujoco>
"""


def filtered(source, size=1, plugin="mjhost.lowpass", frequency=2.0, name="smooth"):
    return f"""<plugin name="{name}" plugin="{plugin}" objtype="sensor" objname="{source}">
      <config key="frequency" value="{frequency}"/><config key="size" value="{size}"/></plugin>"""


def made(*sensors, integrator="Euler"):
    model = mujoco.MjModel.from_xml_string(
        MODEL.format(sensors="".join(sensors), integrator=integrator)
    )
    return model, mujoco.MjData(model)


def test_step_response_is_exact_for_any_timestep(path):
    model, data = made(filtered("place", frequency=3.0))
    for timestep in (0.001, 0.01, 0.1):
        model.opt.timestep = timestep
        mujoco.mj_resetData(model, data)
        mujoco.mj_step(model, data)  # begins at 0
        data.qpos[0] = 1.0
        for k in range(1, 10):
            data.qvel[0] = 0.0
            mujoco.mj_step(model, data)
            right = 1 - math.exp(-2 * math.pi * 3.0 * timestep * k)
            assert data.sensor("smooth").data[0] == pytest.approx(right, rel=1e-12), path


def test_sine_at_the_cutoff_frequency_is_halved_in_power(path):
    frequency = 2.0
    model, data = made(filtered("place", frequency=frequency))
    model.opt.timestep = 0.0005
    output = []
    for _ in range(int(5 / 0.0005)):
        data.qpos[0] = math.sin(2 * math.pi * frequency * data.time)
        data.qvel[0] = 0.0
        mujoco.mj_step(model, data)
        output.append(data.sensor("smooth").data[0])
    assert max(output[5000:]) == pytest.approx(math.sqrt(0.5), rel=0.01), path


def test_it_begins_at_the_first_reading(path):
    model, data = made(filtered("place"))
    data.qpos[0] = 5.0
    mujoco.mj_step(model, data, 3)
    assert data.sensor("smooth").data[0] == 5.0, path
    mujoco.mj_resetData(model, data)
    data.qpos[0] = -2.0
    mujoco.mj_step(model, data, 3)
    assert data.sensor("smooth").data[0] == -2.0, path


def test_looking_moves_no_memory(path):
    model, data = made(filtered("place"), integrator="RK4")
    mujoco.mj_step(model, data)
    data.qpos[0] = 1.0
    before = data.plugin_state.copy()
    for _ in range(5):
        mujoco.mj_forward(model, data)
        first = data.sensor("smooth").data.copy()
    assert np.array_equal(data.plugin_state, before), path
    mujoco.mj_step(model, data)
    assert np.array_equal(data.sensor("smooth").data, first), path
    assert data.plugin_state[1] == first[0], path


def test_memory_is_saved_with_the_state_and_copied(path, runs):
    model, data = made(filtered("acceleration", size=3), filtered("speed", name="other"))
    data.qvel[0] = 1.0
    mujoco.mj_step(model, data, 7)
    data.qvel[0] = -1.0
    saved, twin = runs.state(model, data), copy.copy(data)
    other = mujoco.MjData(model)
    mujoco.mj_setState(model, other, saved, mujoco.mjtState.mjSTATE_INTEGRATION)
    for each in (data, twin, other):
        mujoco.mj_step(model, each, 5)
    assert twin.sensordata.tobytes() == data.sensordata.tobytes(), path
    assert other.sensordata.tobytes() == data.sensordata.tobytes(), path


def test_early_stages_are_up_to_date_before_the_controls_are(path):
    model, data = made(
        filtered("place", name="late"),
        filtered("place", plugin="mjhost.lowpass.pos", name="early"),
        filtered("speed", plugin="mjhost.lowpass.vel", name="early speed"),
    )
    data.qpos[0] = data.qvel[0] = 1.0
    mujoco.mj_step1(model, data)
    values = [data.sensor(name).data[0] for name in ("late", "early", "early speed")]
    assert values == [0.0, 1.0, 1.0], path


def test_filter_of_a_filter_follows_its_order(path):
    model, data = made(filtered("place", name="first"), filtered("first", name="second"))
    mujoco.mj_step(model, data)
    data.qpos[0] = 1.0
    mujoco.mj_forward(model, data)
    once = 1 - math.exp(-2 * math.pi * 2.0 * 0.01)
    assert data.sensor("second").data[0] == pytest.approx(once**2), path


def test_reference_follows_its_sensor_into_another_model():
    xml = MODEL.format(sensors=filtered("place"), integrator="Euler")
    child = mujoco.MjSpec.from_string(xml.replace('timestep=".01"', ""))
    parent = mujoco.MjSpec()
    frame = parent.worldbody.add_frame()
    parent.attach(child, prefix="left_", frame=frame)
    model = parent.compile()
    data = mujoco.MjData(model)
    data.qpos[0] = 0.25
    mujoco.mj_step(model, data)
    assert data.sensor("left_smooth").data[0] == 0.25


def test_both_paths_compute_the_same_bits(on_both_paths, runs):
    xml = MODEL.format(sensors=filtered("acceleration", size=3), integrator="RK4")

    def kicked(_, data):
        data.qvel[0] = 1.0

    python, compiled = on_both_paths(runs.run, xml, np.zeros((40, 0)), kicked)
    assert python.tobytes() == compiled.tobytes()


@pytest.mark.parametrize(
    ("sensor", "complaint"),
    [
        (filtered("acceleration"), 'which has 3 number.*<config key="size" value="3"/>'),
        (
            filtered("acceleration", size=3, plugin="mjhost.lowpass.pos"),
            "stage pos, before sensor 'acceleration' .* at stage acc; use mjhost.lowpass$",
        ),
        (
            filtered("speed", plugin="mjhost.lowpass.pos"),
            "at stage vel; use mjhost.lowpass.vel$",
        ),
        (filtered("smooth"), "computed before sensor 'smooth' .*must be declared before"),
        (filtered("place").replace('objtype="sensor" objname="place"', ""), "filters no sensor"),
        (filtered("place", frequency="fast"), 'frequency="fast" is no number'),
        (filtered("place", frequency=""), "frequency has no value"),
    ],
)
def test_what_cannot_be_filtered_is_refused_with_what_to_write(sensor, complaint):
    with pytest.raises(ValueError, match=f"(?m){complaint}"):
        made(sensor)
