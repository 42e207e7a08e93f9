from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given, settings

from mjhost.errors import InvalidArgumentError, OptionsRejected
from mjhost.options import (
    RuntimeOptionsPatch,
    default_snapshot,
    descriptors,
    merge_runtime_options,
    parse_runtime_options_patch,
    validate_runtime_options,
)
from tests.options.strategies import good_changes

ENGINES = ("3.15.0", "4.0.0")


def _with(**values):
    return msgspec.structs.replace(default_snapshot(), **values)


def _errors(candidate, **kwargs):
    return validate_runtime_options(candidate, raise_on_error=False, **kwargs).errors


def _fields(errors):
    return [error.field for error in errors]


@pytest.mark.parametrize("engine", ENGINES)
def test_defaults_are_valid(engine):
    result = validate_runtime_options(default_snapshot(), engine=engine)
    assert result.ok
    assert not result.warnings


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("timestep", 0.0),
        ("timestep", -0.002),
        ("timestep", math.nan),
        ("timestep", math.inf),
        ("impratio", math.nan),
        ("viscosity", math.inf),
        ("gravity", (0.0, 0.0, math.nan)),
        ("solimp", (0.9, 0.95, 0.001, 0.5, math.inf)),
        ("iterations", 0),
        ("iterations", 1_000_001),
        ("ls_iterations", 0),
        ("ls_iterations", 1_000_001),
        ("noslip_iterations", 1_000_001),
        ("ccd_iterations", 4),
        ("ccd_iterations", 1001),
        ("sdf_initpoints", -1),
        ("sdf_initpoints", 10_001),
        ("sdf_iterations", 2**31),
        ("integrator", "5"),
        ("cone", "7"),
        ("jacobian", "-1"),
        ("solver", "magic"),
    ],
)
@pytest.mark.parametrize("touched", [(), None])
def test_value_the_engine_does_not_survive_is_refused_touched_or_not(field, value, touched):
    assert _fields(_errors(_with(**{field: value}), touched=touched)) == [field]


@pytest.mark.parametrize(
    ("field", "low", "high"),
    [
        ("timestep", 1e-6, 1.0),
        ("impratio", 0.01, 1e4),
        ("tolerance", 0.0, 1e-2),
        ("ls_tolerance", 1e-6, 1.0),
        ("noslip_tolerance", 0.0, 1e-2),
        ("ccd_tolerance", 1e-12, 1e-2),
        ("sleep_tolerance", 0.0, 1.0),
        ("density", 0.0, 1e5),
        ("margin", 0.0, 1.0),
        ("iterations", 1, 1000),
        ("ls_iterations", 1, 500),
        ("noslip_iterations", 0, 100),
        ("ccd_iterations", 5, 1000),
        ("sdf_initpoints", 1, 1000),
        ("sdf_iterations", 1, 1000),
    ],
)
def test_domain_ends_are_inside_and_what_is_beyond_is_refused(field, low, high):
    whole = isinstance(low, int)
    for inside in (low, high):
        assert _errors(_with(**{field: inside})) == ()
    for outside in (
        low - 1 if whole else math.nextafter(low, -1e9),
        high + 1 if whole else math.nextafter(high, 1e9),
    ):
        assert _fields(_errors(_with(**{field: outside}))) == [field]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("gravity", (0.0, 0.0, -1.1e4)),
        ("viscosity", -1e-9),
        ("solref", (0.02, -1.0)),
        ("solref", (-1.0, 1.0)),
        ("solref", (0.0, 0.0)),
        ("solref", (0.02, 0.0)),
        ("solimp", (0.0, 0.95, 0.001, 0.5, 2.0)),
        ("solimp", (0.96, 0.95, 0.001, 0.5, 2.0)),
        ("solimp", (0.9, 1.0, 0.001, 0.5, 2.0)),
        ("solimp", (0.9, 0.95, 0.0, 0.5, 2.0)),
        ("solimp", (0.9, 0.95, 0.001, 0.0, 2.0)),
        ("solimp", (0.9, 0.95, 0.001, 1.0, 2.0)),
        ("solimp", (0.9, 0.95, 0.001, 0.5, 0.9)),
        ("friction", (1.0, 1.0, 0.0, 0.0001, 0.0001)),
        ("friction", (2e3, 1.0, 0.005, 0.0001, 0.0001)),
    ],
)
def test_odd_value_is_refused_only_where_it_was_touched(field, value):
    candidate = _with(**{field: value})
    assert _fields(_errors(candidate)) == [field]
    assert _fields(_errors(candidate, touched=[field])) == [field]
    assert _errors(candidate, touched=["energy"]) == ()


@pytest.mark.parametrize(
    ("field", "value"),
    [("solref", (0.02, 1.0)), ("solref", (-1000.0, -10.0)), ("wind", (1e300, 0.0, 0.0)),
     ("solimp", (0.9, 0.9, 1e-9, 0.5, 1.0))],
)  # fmt: skip
def test_unusual_but_sensible_value_is_accepted(field, value):
    assert _errors(_with(**{field: value})) == ()


@pytest.mark.parametrize(
    ("count", "tolerance"),
    [("iterations", "tolerance"), ("ls_iterations", "ls_tolerance"),
     ("noslip_iterations", "noslip_tolerance")],
)  # fmt: skip
def test_many_iterations_need_a_tolerance(count, tolerance):
    endless = _with(**{count: 1001, tolerance: 0.0})
    assert _fields(_errors(endless, touched=())) == [tolerance]
    assert _fields(_errors(endless, touched=[tolerance, "wind"])) == [tolerance]
    assert _errors(_with(**{count: 1000, tolerance: 0.0}), touched=()) == ()
    assert _errors(_with(**{count: 1001, tolerance: 1e-9}), touched=()) == ()


@pytest.mark.parametrize(
    ("values", "engine", "blamed"),
    [
        ({"ipc": True, "solver": "CG"}, "4.0.0", "ipc"),
        ({"ipc": True, "solver": "CG", "integrator": "implicit"}, "3.15.0", "ipc"),
        ({"ipc": True, "integrator": "discrete"}, "3.15.0", "ipc"),
        ({"ipc": True, "integrator": "discrete", "solver": "PGS"}, "3.15.0", "ipc"),
        ({"ipc": True, "integrator": "discrete", "solver": "PGS"}, "4.0.0", "ipc"),
        ({"ipc": True, "integrator": "discrete", "solver": "CG", "sleep": True}, "4.0.0", "ipc"),
        ({"ipc": True, "integrator": "discrete", "solver": "CG", "fwd_inv": True}, "4.0.0", "ipc"),
        ({"sleep": True, "integrator": "discrete", "island_disabled": True}, "4.0.0", "sleep"),
        ({"fwd_inv": True, "inv_discrete": True, "integrator": "RK4"}, "3.15.0", "fwd_inv"),
    ],
)
def test_combination_the_engine_refuses_is_refused(values, engine, blamed):
    assert _fields(_errors(_with(**values), touched=(), engine=engine)) == [blamed]


@pytest.mark.parametrize(
    ("values", "engine"),
    [
        ({"ipc": True, "integrator": "discrete", "solver": "CG"}, "3.15.0"),
        ({"ipc": True, "integrator": "discrete", "solver": "CG"}, "4.0.0"),
        ({"ipc": True, "integrator": "discrete", "solver": "Newton"}, "4.0.0"),
        ({"sleep": True, "integrator": "discrete"}, "4.0.0"),
        ({"sleep": True, "island_disabled": True}, "4.0.0"),
        ({"inv_discrete": True, "integrator": "RK4"}, "4.0.0"),
        ({"speculative": True}, "4.0.1"),
    ],
)
def test_combination_the_engine_runs_is_accepted(values, engine):
    assert _errors(_with(**values), engine=engine) == ()


def test_rule_between_fields_is_reported_at_the_touched_one():
    candidate = _with(ipc=True, integrator="Euler")
    (error,) = _errors(candidate, touched=["integrator"], engine="4.0.0")
    assert error.field == "integrator"
    assert "ipc needs the integrator discrete" in error.message
    assert error.given == "ipc=True, integrator='Euler'"


def test_speculative_is_refused_where_the_engine_lacks_it():
    assert _fields(_errors(_with(speculative=True), touched=(), engine="3.15.0")) == ["speculative"]


def test_large_timestep_is_accepted_with_a_warning():
    result = validate_runtime_options(_with(timestep=1.0), touched=["timestep"])
    assert result.ok
    assert [warning.field for warning in result.warnings] == ["timestep"]
    assert validate_runtime_options(_with(timestep=0.1)).warnings == ()
    assert validate_runtime_options(_with(timestep=1.0), touched=["wind"]).warnings == ()


def test_all_problems_are_reported_together_and_raised_by_default():
    candidate = _with(timestep=-1.0, ccd_iterations=0, ipc=True, density=-1.0)
    with pytest.raises(OptionsRejected) as caught:
        validate_runtime_options(candidate)
    assert _fields(caught.value.errors) == ["timestep", "ccd_iterations", "density", "ipc", *(
        ["ipc"] if _needs_cg() else []
    )]  # fmt: skip
    assert all(name in str(caught.value) for name in ("timestep", "ccd_iterations", "density"))


def _needs_cg():
    return len(descriptors()) == len(descriptors("3.15.0"))


def test_errors_say_what_is_allowed_and_what_was_given():
    (error,) = _errors(_with(timestep=5.0))
    assert str(error) == (
        "timestep must be within its sensible range, got 5.0 (allowed: 1e-06 to 1 s)"
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [("timestep", 1), ("timestep", "1"), ("gravity", [0.0, 0.0, 1.0]), ("gravity", (0, 0, 1)),
     ("energy", 1), ("iterations", 50.0), ("disable_actuator", (1,)), ("integrator", "rk4"),
     ("gravity", None), ("energy", None), ("disable_actuator", frozenset({31}))],
)  # fmt: skip
def test_snapshot_made_by_hand_with_a_wrong_type_is_refused(field, value):
    candidate = _with(**{field: value})
    if (field, value) == ("gravity", (0, 0, 1)):
        assert _errors(candidate) == ()  # equal to what is stored
    else:
        assert _fields(_errors(candidate, touched=())) == [field]


@pytest.mark.parametrize("candidate", [None, {}, RuntimeOptionsPatch(), 5])
def test_candidate_that_is_no_snapshot_is_refused(candidate):
    with pytest.raises(InvalidArgumentError, match="must be a RuntimeOptionsSnapshot"):
        validate_runtime_options(candidate)


@pytest.mark.parametrize("touched", [["o_margin"], ["nothing"], "ls_iter", [3]])
def test_touched_name_that_is_not_canonical_is_refused(touched):
    with pytest.raises(InvalidArgumentError, match="canonical"):
        validate_runtime_options(default_snapshot(), touched=touched)


def test_touched_may_be_the_patch():
    patch = parse_runtime_options_patch({"density": -1})
    candidate = merge_runtime_options(default_snapshot(), patch)
    assert _fields(_errors(candidate, touched=patch)) == ["density"]
    assert _errors(candidate, touched=RuntimeOptionsPatch(energy=True)) == ()


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(good_changes())
def test_domain_values_break_no_rule_of_their_own_field(changes):
    patch = parse_runtime_options_patch(changes)
    candidate = merge_runtime_options(default_snapshot(), patch)
    between = {"ipc", "fwd_inv", "sleep", "integrator", "solver", "island_disabled", "inv_discrete"}
    assert {error.field for error in _errors(candidate, touched=patch)} <= between
