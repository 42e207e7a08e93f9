"""How often an entry point of the engine calls each callback; the same on both engines."""

from __future__ import annotations

from collections import Counter

import mujoco
import numpy as np
import pytest

from tests.engine.facts.kit import MAJOR, callbacks, compiled, counted, counting, raw_callbacks

# Three spheres that overlap: three candidate pairs. Three joints, one activation, one control.
SCENE = """
<mujoco>
  <option integrator="{integrator}"><flag {flags}/></option>
  <worldbody>
    <body><joint name="j" type="slide"/><geom size=".1"/></body>
    <body pos=".05 0 0"><joint type="slide"/><geom size=".1"/></body>
    <body pos="0 .05 0"><joint type="slide"/><geom size=".1"/></body>
  </worldbody>
  <actuator>
    <general joint="j" dyntype="user" gaintype="user" biastype="user" actdim="1"/>
  </actuator>
  <sensor>
    <user dim="1" needstage="pos"/><user dim="1" needstage="vel"/><user dim="1" needstage="acc"/>
  </sensor>
</mujoco>
"""
PAIRS, NV = 3, 3
K = 2 * NV + 1 + 1  # columns of a finite difference: 2 nv + na + nu
KINDS = ("control", "passive", "sensor", "act_dyn", "act_gain", "act_bias", "contactfilter")
STEPS = ["Euler", "implicit", "implicitfast", "discrete"]


def scene(integrator="Euler", flags=""):
    return compiled(SCENE.format(integrator=integrator, flags=flags))


def expected(control, passive, sensors, actuator, filtered):
    """A row of the table as counts."""
    row = {
        "control": control,
        "passive": passive,
        **{f"sensor{stage + 1}": sensors[stage] for stage in range(3)},
        **{f"act_{part}": actuator for part in ("dyn", "gain", "bias")},
        "contactfilter": filtered * PAIRS,
    }
    return Counter({kind: count for kind, count in row.items() if count})


@pytest.mark.parametrize("integrator", STEPS)
def test_a_step_evaluates_everything_once(integrator):
    model, data = scene(integrator)
    counts = counted(lambda: mujoco.mj_step(model, data), *KINDS)
    assert counts == expected(1, 1, (1, 1, 1), 1, 1)


def test_a_runge_kutta_step_evaluates_forces_four_times_and_sensors_once():
    model, data = scene("RK4")
    counts = counted(lambda: mujoco.mj_step(model, data), *KINDS)
    assert counts == expected(4, 4, (1, 1, 1), 4, 4)


@pytest.mark.parametrize("integrator", [*STEPS, "RK4"])
def test_forward_evaluates_everything_once(integrator):
    model, data = scene(integrator)
    counts = counted(lambda: mujoco.mj_forward(model, data), *KINDS)
    assert counts == expected(1, 1, (1, 1, 1), 1, 1)


def test_the_first_half_of_a_step_calls_control_and_the_second_the_actuators():
    model, data = scene()
    first = counted(lambda: mujoco.mj_step1(model, data), *KINDS)
    second = counted(lambda: mujoco.mj_step2(model, data), *KINDS)
    assert first == expected(1, 1, (1, 1, 0), 0, 1)
    assert second == expected(0, 0, (0, 0, 1), 1, 0)


def test_inverse_dynamics_calls_neither_control_nor_actuators():
    model, data = scene()
    counts = counted(lambda: mujoco.mj_inverse(model, data), *KINDS)
    assert counts == expected(0, 1, (1, 1, 1), 0, 1)


def transition(model, data, *, centred, outputs):
    nx, nu, ns = 2 * model.nv + model.na, model.nu, model.nsensordata
    state, control = np.empty((nx, nx)), np.empty((nx, nu))
    sensed = (np.empty((ns, nx)), np.empty((ns, nu))) if outputs else (None, None)
    return lambda: mujoco.mjd_transitionFD(model, data, 1e-6, centred, state, control, *sensed)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("outputs", [False, True])
def test_finite_differences_evaluate_once_per_column(centred, outputs):
    model, data = scene()
    sides = 2 if centred else 1
    counts = counted(transition(model, data, centred=centred, outputs=outputs), *KINDS)
    columns = {stage: sides * n + 1 for stage, n in {"q": NV, "qv": 2 * NV, "all": K}.items()}
    sensors = (columns["q"], columns["qv"], columns["all"]) if outputs else (0, 0, 0)
    assert counts == expected(columns["all"], columns["qv"], sensors, columns["all"], columns["q"])


def test_inverse_finite_differences_evaluate_sensors_as_well():
    model, data = scene()
    blocks = [np.empty((model.nv, model.nv)) for _ in range(3)]
    sensed = [np.empty((model.nv, model.nsensordata)) for _ in range(3)]
    mass = np.empty((model.nv, model.nM)) if MAJOR < 4 else None

    def run():
        mujoco.mjd_inverseFD(model, data, 1e-6, False, *blocks, *sensed, mass)

    counts = counted(run, *KINDS)
    assert counts == expected(0, 2 * NV + 1, (NV + 1, 2 * NV + 1, 3 * NV + 1), 0, NV + 1)


def test_finite_differences_refuse_runge_kutta():
    model, data = scene("RK4")
    with pytest.raises(mujoco.FatalError, match="RK4"):
        transition(model, data, centred=False, outputs=False)()
    with pytest.raises(mujoco.FatalError, match="RK4"):
        mujoco.mjd_inverseFD(model, data, 1e-6, False, *[None] * 7)


CLOTH = """
<mujoco>
  <option integrator="discrete" solver="{solver}"><flag ipc="enable"/></option>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <flexcomp name="cloth" type="grid" dim="2" count="4 4 1" spacing=".05 .05 .05" radius=".001"
      mass=".1" pos="0 0 .1"><edge equality="true"/></flexcomp>
    <body pos="1 0 1"><joint name="j"/><geom size=".1"/></body>
  </worldbody>
  <actuator><general joint="j" gaintype="user"/></actuator>
  <sensor>
    <user dim="1" needstage="pos"/><user dim="1" needstage="vel"/><user dim="1" needstage="acc"/>
  </sensor>
</mujoco>
"""


@pytest.mark.parametrize("solver", ["CG", "Newton"])
def test_incremental_potential_contact_evaluates_acceleration_sensors_twice(solver):
    if solver == "Newton" and MAJOR < 4:
        with pytest.raises(ValueError, match="ipc requires solver='CG'"):
            compiled(CLOTH.format(solver=solver))
        return
    model, data = compiled(CLOTH.format(solver=solver))
    kinds = ("control", "passive", "act_gain", "sensor")
    once = {"control": 1, "passive": 1, "act_gain": 1, "sensor1": 1, "sensor2": 1}
    assert counted(lambda: mujoco.mj_step(model, data), *kinds) == once | {"sensor3": 2}
    mujoco.mj_step1(model, data)
    assert counted(lambda: mujoco.mj_step2(model, data), "sensor") == {"sensor3": 2}
    assert counted(lambda: mujoco.mj_forward(model, data), *kinds) == once | {"sensor3": 1}


@pytest.mark.parametrize("flag", ["fwdinv", "energy", "sleep"])
def test_energy_inverse_check_and_sleep_change_no_count(flag):
    model, data = scene(flags=f'{flag}="enable"')
    counts = counted(lambda: mujoco.mj_step(model, data), *KINDS)
    assert counts == expected(1, 1, (1, 1, 1), 1, 1)


def test_disabled_actuation_skips_control_but_for_step1_of_version_3():
    model, data = scene(flags='actuation="disable"')
    counts = counted(lambda: mujoco.mj_step(model, data), *KINDS)
    assert counts == expected(0, 1, (1, 1, 1), 0, 1)
    first = counted(lambda: mujoco.mj_step1(model, data), "control")
    assert first["control"] == (1 if MAJOR < 4 else 0)


@pytest.mark.parametrize(
    ("flags", "passive"),
    [
        ('spring="disable" damper="disable"', 0),
        ('spring="disable"', 1),
        ('damper="disable"', 1),
    ],
)
def test_passive_is_skipped_where_springs_and_dampers_are_both_disabled(flags, passive):
    model, data = scene(flags=flags)
    counts = counted(lambda: mujoco.mj_step(model, data), *KINDS)
    assert counts == expected(1, passive, (1, 1, 1), 1, 1)


def test_disabled_sensors_are_not_computed():
    model, data = scene(flags='sensor="disable"')
    counts = counted(lambda: mujoco.mj_step(model, data), *KINDS)
    assert counts == expected(1, 1, (0, 0, 0), 1, 1)


def test_making_and_resetting_data_call_nothing():
    model, data = scene()

    def run():
        mujoco.MjData(model)
        mujoco.mj_resetData(model, data)
        mujoco.mj_setConst(model, data)

    assert counted(run, *KINDS) == {}


def test_the_compiler_runs_one_step_without_contacts():
    counts = Counter()
    with raw_callbacks(**counting(counts, *KINDS)):
        spec = mujoco.MjSpec.from_string(SCENE.format(integrator="Euler", flags=""))
        model = spec.compile()
        assert counts == expected(1, 1, (1, 1, 1), 1, 0)
        data = mujoco.MjData(model)
        counts.clear()
        spec.recompile(model, data)
        assert counts == expected(1, 1, (1, 1, 1), 1, 0)


@pytest.mark.parametrize("kind", [*KINDS, "time"])
def test_a_python_callback_makes_compilation_fail_where_the_compiler_reaches_it(kind):
    reached = kind not in {"contactfilter", "time"}
    xml = SCENE.format(integrator="Euler", flags="")
    with callbacks(**counting(Counter(), kind)):
        if reached:
            with pytest.raises(ValueError, match="Python exception raised"):
                mujoco.MjModel.from_xml_string(xml)
        else:
            assert mujoco.MjModel.from_xml_string(xml).nu == 1


def test_the_clock_is_read_some_thirty_times_a_step_and_more_often_by_runge_kutta():
    counts = {}
    for integrator in ("Euler", "RK4"):
        model, data = scene(integrator)
        counts[integrator] = counted(lambda: mujoco.mj_step(model, data), "time")["time"]
    assert 20 <= counts["Euler"] <= 40
    assert 90 <= counts["RK4"] <= 140
