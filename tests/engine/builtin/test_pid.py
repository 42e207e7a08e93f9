"""``mjhost.pid`` against ``mujoco.pid``, to the bit; where that is wrong, against what is right."""

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mjhost.engine.builtin import choice, pid  # noqa: F401 - registers

HEAD = """
<mujoco>
  <option integrator="{integrator}" timestep="{timestep}"/>
  <extension><plugin plugin="{plugin}">{instance}</plugin></extension>
  <worldbody>
    <body><joint name="a" axis="0 1 0" damping=".1"/><geom size=".1" pos=".3 0 0"/>
      <body pos=".6 0 0"><joint name="b" axis="0 1 0" range="-1 1"/><geom size=".05" pos=".2 0 0"/>
      </body>
    </body>
    <body pos="0 1 0"><joint name="c" type="slide" axis="0 0 1"/><geom size=".1"/></body>
    <body pos="0 2 0"><joint name="d" axis="0 1 0"/><geom size=".1" pos=".3 0 0"/></body>
  </worldbody>
  <actuator>{actuators}</actuator>
</mujoco>
"""


def config(**values):
    return "".join(
        f'<config key="{key}" value="{value!r}"/>'
        for key, value in values.items()
        if value is not None
    )


def model_xml(plugin, actuators, *, shared=None, integrator="Euler", timestep=0.002):
    return HEAD.format(
        plugin=plugin,
        instance="" if shared is None else f'<instance name="both">{shared}</instance>',
        actuators=actuators.replace("PID", plugin),
        integrator=integrator,
        timestep=timestep,
    )


gains = st.fixed_dictionaries(
    {
        "kp": st.floats(-5, 15, width=32),
        "ki": st.sampled_from([None, 0.0, 0.5, 7.25]),
        "kd": st.floats(0, 0.25, width=32),
    },
    optional={"imax": st.floats(0, 1, width=32), "slewmax": st.floats(0, 10, width=32)},
)


@st.composite
def own_attributes(draw, values):
    dyntype = draw(st.sampled_from(["none", "integrator", "filter", "filterexact"]))
    dimension = bool(values.get("ki")) + ("slewmax" in values) + (dyntype != "none")
    attributes = {"dyntype": dyntype, "actdim": dimension, "dynprm": draw(st.floats(0.02, 0.5))}
    if draw(st.booleans()):
        attributes["ctrlrange"] = "-.3 .7"
    if dyntype != "none":
        attributes["actearly"] = str(draw(st.booleans())).lower()
        if draw(st.booleans()):
            attributes["actrange"] = "-.4 .9"
    if draw(st.booleans()):
        attributes["forcerange"] = "-2 3"
    if not dimension:
        del attributes["actdim"]
    return " ".join(f'{key}="{value}"' for key, value in attributes.items())


@st.composite
def cases(draw):
    """A model without its plugin's name, and controls."""
    first, shared = draw(gains), draw(gains)
    actuators = (
        f'<plugin plugin="PID" joint="a" {draw(own_attributes(first))}>{config(**first)}</plugin>'
    )
    for joint in "bc":
        more = draw(own_attributes(shared))
        gear = draw(st.sampled_from(["1", "-1.5"]))
        actuators += f'<plugin plugin="PID" instance="both" joint="{joint}" gear="{gear}" {more}/>'
    actuators += '<motor joint="d"/>'
    arguments = {
        "shared": config(**shared),
        "integrator": draw(st.sampled_from(["Euler", "implicitfast", "RK4"])),
        "timestep": draw(st.sampled_from([0.002, 0.01])),
    }
    seed = draw(st.integers(0, 2**16))
    return actuators, arguments, np.random.default_rng(seed).normal(size=(25, 4))


def _compare(runs, case):
    actuators, arguments, controls = case
    mine = runs.run(model_xml("mjhost.pid", actuators, **arguments), controls)
    theirs = runs.run(model_xml("mujoco.pid", actuators, **arguments), controls)
    assert mine.tobytes() == theirs.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True])
def test_every_number_is_that_of_the_native_plugin(compiled, runs):
    if compiled:
        pytest.importorskip("numba")

    @settings(deadline=None, max_examples=60)
    @given(cases())
    def compare(case):
        _compare(runs, case)

    choice.use(compiled=compiled)
    try:
        compare()
    finally:
        choice.use(compiled=False)


BEFORE = '<pid joint="d" kp="3" kv="1"/>'
PLUGIN = (
    '<plugin plugin="PID" joint="c" ctrlrange="-1 1.5" actdim="2">'
    + config(kp=40.0, ki=3.0, kd=5.0, imax=2.0, slewmax=4.0)
    + "</plugin>"
)


def test_actuator_after_one_with_two_inputs_follows_its_own_control(path, runs):
    controls = np.random.default_rng(1).normal(size=(50, 3))
    mine = runs.run(model_xml("mjhost.pid", BEFORE + PLUGIN), controls)
    # Alone, since MuJoCo 3.15 reads beyond its arrays in the other model.
    right = runs.run(model_xml("mujoco.pid", PLUGIN), controls[:, 2:])
    joints_a_b_c = [1, 2, 3, 5, 6, 7]  # positions and velocities, behind the time
    assert mine[:, joints_a_b_c].tobytes() == right[:, joints_a_b_c].tobytes(), path
    assert np.ptp(mine[:, 3]) > 0.01


def test_state_restored_is_continued_to_the_bit(path, runs):
    model = mujoco.MjModel.from_xml_string(model_xml("mjhost.pid", PLUGIN))
    data = mujoco.MjData(model)
    data.ctrl[:] = 1.0
    mujoco.mj_step(model, data, 20)
    saved = runs.state(model, data)
    mujoco.mj_step(model, data, 20)
    other = mujoco.MjData(model)
    mujoco.mj_setState(model, other, saved, mujoco.mjtState.mjSTATE_INTEGRATION)
    mujoco.mj_step(model, other, 20)
    assert runs.state(model, other).tobytes() == runs.state(model, data).tobytes()
    assert model.npluginstate == 0, path


def test_setpoint_moves_no_faster_than_slewmax(path):
    model = mujoco.MjModel.from_xml_string(model_xml("mjhost.pid", PLUGIN))
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data)
    data.ctrl[:] = 1.5
    setpoints = []
    for _ in range(100):
        mujoco.mj_step(model, data)
        setpoints.append(data.act[1])
    assert np.diff(setpoints).max() == pytest.approx(4.0 * 0.002), path


def test_integral_never_pushes_more_than_imax(path):
    actuator = f'<plugin plugin="PID" joint="c" actdim="1">{config(ki=50.0, imax=2.0)}</plugin>'
    model = mujoco.MjModel.from_xml_string(model_xml("mjhost.pid", actuator))
    data = mujoco.MjData(model)
    data.ctrl[:] = 100.0
    forces = []
    for _ in range(100):
        mujoco.mj_step(model, data)
        forces.append(data.actuator_force[0])
    assert max(forces) == pytest.approx(2.0), path


def test_nothing_integrates_while_no_time_passes(path):
    xml = model_xml("mjhost.pid", PLUGIN, timestep=0)
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    data.ctrl[:] = 1.0
    mujoco.mj_step(model, data, 3)
    assert data.act.tolist() == [0.0, 0.0], path


@pytest.mark.parametrize(
    ("actuators", "complaint"),
    [
        (
            f'<plugin name="x" plugin="PID" joint="a" actdim="1">{config(kp=1.0)}</plugin>',
            r"""actuator 'x' \(0\) has actdim="1".*write actdim="0\"""",
        ),
        (
            f'<plugin plugin="PID" joint="a">{config(ki=1.0)}</plugin>',
            r"""actuator 0 has actdim="0".*write actdim="1\"""",
        ),
        (
            f'<plugin plugin="PID" joint="a" dyntype="filter">{config(ki=1, slewmax=1)}</plugin>',
            r"""actdim="1".*write actdim="3\"""",
        ),
        (
            f'<plugin plugin="PID" joint="a" dyntype="user" actdim="1">{config(kp=1.0)}</plugin>',
            "dyntype that a pid has no setpoint for; use none, integrator",
        ),
        (
            f'<plugin plugin="PID" joint="a">{config(imax=-1.0)}</plugin>',
            'imax="-1.0" is too small; expected a number of at least 0',
        ),
        (
            f'<plugin plugin="PID" joint="a">{config(slewmax=-1.0)}</plugin>',
            'slewmax="-1.0" is too small',
        ),
        (
            '<plugin plugin="PID" joint="a"><config key="kp" value="1 2"/></plugin>',
            'kp="1 2" is no number',
        ),
    ],
)
def test_what_cannot_work_is_refused_with_what_to_write(actuators, complaint):
    with pytest.raises(ValueError, match=complaint):
        mujoco.MjModel.from_xml_string(model_xml("mjhost.pid", actuators))


def test_instance_without_actuator_is_refused():
    with pytest.raises(ValueError, match="no actuator names this instance"):
        mujoco.MjModel.from_xml_string(model_xml("mjhost.pid", "", shared=""))


def test_negative_integral_gain_is_limited_by_the_same_force(path):
    actuator = f'<plugin plugin="PID" joint="c" actdim="1">{config(ki=-50.0, imax=2.0)}</plugin>'
    model = mujoco.MjModel.from_xml_string(model_xml("mjhost.pid", actuator))
    data = mujoco.MjData(model)
    data.ctrl[:] = 100.0
    mujoco.mj_step(model, data, 100)
    assert data.actuator_force[0] == pytest.approx(-2.0), path
