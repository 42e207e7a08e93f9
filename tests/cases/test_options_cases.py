"""Public reports about options at run time, on a live env; the case ids are in the docstrings."""

from __future__ import annotations

import numpy as np
import pytest
import yaml

from mjhost import OptionsRejected
from mjhost.generation import OptionsEpoch


def test_a_changed_timestep_reaches_engine_clock_and_rates_with_the_next_step(host_case):
    """OP-01."""
    env = host_case("OP-01")
    env.step(10)
    assert env.data.time == env.info.sim_time == 0.020000000000000004
    calls = []
    token = env.every(100, lambda _m, _d: calls.append(env.info.step_count))
    env.apply_runtime_options({"timestep": 0.004})
    assert env.runtime_options.timestep == env.model.opt.timestep == 0.004
    env.step(10)
    assert env.data.time == env.info.sim_time == 0.060000000000000026
    env.step(3)  # 13 steps of 4 ms: the 5 calls of 0.05 s, 2.5 steps apart
    assert [step - 10 for step in calls] == [3, 5, 8, 10, 13]
    token.remove()


def test_a_timestep_set_before_the_load_is_stepped_with_and_never_overwritten(host_case):
    """OP-01, the value that was configured and not used."""
    env = host_case("OP-01", options={"timestep": 0.004})
    env.step()
    env.advance(0.004)
    assert env.data.time == 0.008
    assert env.model.opt.timestep == 0.004


def test_gravity_compensation_goes_and_comes_with_the_gravity_flag(host_case):
    """OP-03."""
    env = host_case("OP-03")
    env.forward()
    assert env.data.qfrc_gravcomp.tolist() == [0, 0, 9.81, 0, 0, 0]
    env.apply_runtime_options({"gravity_disabled": True})
    env.forward()
    assert not env.data.qfrc_gravcomp.any()
    assert not env.data.qacc.any()
    env.step(100)
    assert env.data.qpos.tolist() == [0, 0, 1, 1, 0, 0, 0]
    env.apply_runtime_options({"gravity_disabled": False})
    env.forward()
    assert env.data.qfrc_gravcomp[2] == pytest.approx(9.81, abs=1e-9)


@pytest.mark.parametrize(
    "bad",
    [{"integrator": 99}, {"integrator": "RK5"}, {"solver": 99}, {"cone": 7}, {"jacobian": 9}],
    ids=str,
)
def test_an_unknown_choice_is_refused_when_it_is_set_and_the_next_step_works(host_case, bad):
    """OP-04."""
    env = host_case("OP-04")
    env.apply_runtime_options({"integrator": "RK4"})
    assert env.runtime_options.integrator == "RK4"
    env.apply_runtime_options({"integrator": "implicitfast"})
    env.apply_runtime_options({"integrator": 0})
    before = env.runtime_options
    assert before.integrator == "Euler"
    (field,) = bad
    with pytest.raises(OptionsRejected) as caught:
        env.apply_runtime_options(bad)
    assert [error.field for error in caught.value.errors] == [field]
    assert env.runtime_options == before
    assert env.generations.options == OptionsEpoch(3)
    env.step(1)
    assert env.data.time == 0.002


@pytest.mark.parametrize(
    "bad",
    [{"timestep": True}, {"timestep": np.True_}, {"gravity": [0, 0, True]}, {"iterations": True}],
    ids=str,
)
def test_a_boolean_is_no_number(host_case, bad):
    """OP-06."""
    env = host_case("OP-06")
    before = env.runtime_options
    with pytest.raises(OptionsRejected, match="boolean"):
        env.apply_runtime_options(bad)
    assert env.runtime_options == before
    env.apply_runtime_options({name: 1 for name in bad if name != "gravity"} or {"density": 1})
    assert env.generations.options == OptionsEpoch(1)


@pytest.mark.parametrize("bad", [-9.81, [0, 0], [0, 0, -5, 1], [[0, 0, -9.81]]], ids=str)
def test_gravity_of_the_wrong_length_is_refused_and_names_the_right_one(host_case, bad):
    """OP-07."""
    env = host_case("OP-07")
    with pytest.raises(OptionsRejected, match="3 numbers"):
        env.apply_runtime_options({"gravity": bad})
    assert env.model.opt.gravity.tolist() == [0, 0, -9.81]


@pytest.mark.parametrize(
    ("name", "length"),
    [("magnetic", 3), ("wind", 3), ("o_solref", 2), ("o_solimp", 5), ("o_friction", 5)],
)
def test_every_array_has_its_length(host_case, name, length):
    """OP-07."""
    env = host_case("OP-07")
    before = getattr(env.model.opt, name).copy()
    for bad in (0.5, [0.5] * (length - 1), [0.5] * (length + 1)):
        with pytest.raises(OptionsRejected, match=f"{length} numbers"):
            env.apply_runtime_options({name: bad})
    assert (getattr(env.model.opt, name) == before).all()


def test_integers_become_floats(host_case):
    """OP-08, Python."""
    env = host_case("OP-08")
    env.apply_runtime_options({"gravity": [0, 0, -10], "density": 0, "tolerance": 0})
    options = env.runtime_options
    assert options.gravity == (0.0, 0.0, -10.0)
    assert [type(value) for value in (*options.gravity, options.density)] == [float] * 4
    assert env.model.opt.gravity.tolist() == [0, 0, -10]


@pytest.mark.parametrize("text", ["gravity: [0, 0, -10]", "gravity: 0 0 -10", "gravity: 0, 0, -10"])
def test_integers_of_a_yaml_file_become_floats(host_case, text):
    """OP-08, YAML."""
    env = host_case("OP-08")
    env.apply_runtime_options(yaml.safe_load(text))
    assert env.runtime_options.gravity == (0.0, 0.0, -10.0)


def test_a_second_as_timestep_is_taken_with_a_warning(host_case):
    """OP-08, Python and YAML."""
    for patch in ({"timestep": 1}, yaml.safe_load("timestep: 1")):
        env = host_case("OP-08")
        result = env.apply_runtime_options(patch)
        assert [warning.field for warning in result.warnings] == ["timestep"]
        assert env.runtime_options.timestep == 1.0
        env.step()
        assert env.data.time == 1.0


@pytest.mark.parametrize("patch", [{"timestep": "fast"}, yaml.safe_load("timestep: fast")], ids=str)
def test_text_that_is_no_number_is_refused_and_the_env_still_answers(host_case, patch):
    """OP-08, Python and YAML."""
    env = host_case("OP-08")
    with pytest.raises(OptionsRejected, match=r"timestep must be a number.*got 'fast'"):
        env.apply_runtime_options(patch)
    assert env.runtime_options.timestep == 0.002
    assert env.step(3).completed == 3
