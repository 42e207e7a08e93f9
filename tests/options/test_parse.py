from __future__ import annotations

import itertools

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mjhost.errors import InvalidArgumentError, OptionsRejected
from mjhost.options import (
    UNSET,
    RuntimeOptionInput,
    RuntimeOptionsPatch,
    default_snapshot,
    descriptors,
    parse_runtime_options_patch,
)
from tests.options.strategies import ANYTHING, NAMES, good_changes


def _parsed(name, value):
    patch = parse_runtime_options_patch({name: value})
    ((_, result),) = patch.items()
    return result


def _refused(inputs, **kwargs):
    with pytest.raises(OptionsRejected) as caught:
        parse_runtime_options_patch(inputs, **kwargs)
    return caught.value.errors


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("timestep", 1, 1.0),
        ("timestep", "0.004", 0.004),
        ("timestep", " 4e-3\n", 0.004),
        ("timestep", ".5", 0.5),
        ("timestep", "+5.", 5.0),
        ("timestep", np.float32(0.5), 0.5),
        ("timestep", np.int8(1), 1.0),
        ("timestep", np.array(0.25), 0.25),
        ("iterations", 50.0, 50),
        ("iterations", "50", 50),
        ("iterations", "5e1", 50),
        ("iterations", "50.0", 50),
        ("iterations", np.uint8(50), 50),
        ("iterations", np.float64(50), 50),
        ("energy", "true", True),
        ("energy", "False", False),
        ("energy", 1, True),
        ("energy", 0, False),
        ("energy", "0", False),
        ("energy", np.bool_(True), True),
        ("energy", np.int64(1), True),
        ("energy", np.array(False), False),
        ("gravity", [0, 0, -10], (0.0, 0.0, -10.0)),
        ("gravity", "0 0 -10", (0.0, 0.0, -10.0)),
        ("gravity", "0,0,-10", (0.0, 0.0, -10.0)),
        ("gravity", "0, 0 ,-10", (0.0, 0.0, -10.0)),
        ("gravity", np.array([0, 0, -10]), (0.0, 0.0, -10.0)),
        ("gravity", np.array([0, 0, -10], dtype=np.float32), (0.0, 0.0, -10.0)),
        ("gravity", ["0", "0", "-10"], (0.0, 0.0, -10.0)),
        ("gravity", range(3), (0.0, 1.0, 2.0)),
        ("disable_actuator", [3, 0, 3], frozenset({0, 3})),
        ("disable_actuator", {5}, frozenset({5})),
        ("disable_actuator", np.array([1, 2]), frozenset({1, 2})),
        ("disable_actuator", "1, 2", frozenset({1, 2})),
        ("disable_actuator", [], frozenset()),
        ("disable_actuator", "none", frozenset()),
        ("integrator", "rk4", "RK4"),
        ("integrator", "IMPLICITFAST", "implicitfast"),
        ("integrator", 4, "discrete"),
        ("integrator", "4", "discrete"),
        ("integrator", np.int32(0), "Euler"),
        ("integrator", mujoco.mjtIntegrator.mjINT_RK4, "RK4"),
        ("cone", mujoco.mjtCone.mjCONE_ELLIPTIC, "elliptic"),
    ],
)  # fmt: skip
def test_exactly_representable_value_is_converted(name, given, expected):
    result = _parsed(name, given)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        *itertools.product(
            ["timestep", "iterations"],
            [True, np.True_, np.array(True), None, "", " ", "fast", "nan", "-inf", float("nan"),
             float("inf"), "1e400", 10**400, "0x10", "1_0", "1 2", "٣", [1], np.array([1.0]), 1j,
             b"1", {}, "1" * 10_000],
        ),
        ("timestep", 2**53 + 1),
        ("timestep", "1e-400"),
        ("iterations", 2.5),
        ("iterations", "2.5"),
        ("iterations", "1.00000000000000000000001"),
        ("iterations", 2**31),
        ("iterations", "1e300"),
        ("energy", 2),
        ("energy", 0.5),
        ("energy", "yes"),
        ("energy", ""),
        ("energy", None),
        ("energy", [True]),
        ("energy", np.array([True])),
        ("energy", float("nan")),
        *itertools.product(
            ["gravity", "wind", "magnetic"],
            [-9.81, "-9.81", [0, 0], [0, 0, -5, 1], [[0, 0, -9.81]], np.zeros((1, 3)), None, "",
             [0, 0, True], [0, 0, np.True_], np.array([0, 0, 1], dtype=bool), [0, 0, None],
             [0, 0, float("nan")], "0,,1", ",0 0 1", "0 0 nan", b"abc", {0, 1, 2},
             {"x": 0}, np.array(-9.81), [0.0] * 10_000, np.zeros(10_000), "[0 0 1]"],
        ),
        ("disable_actuator", 3),
        ("disable_actuator", [31]),
        ("disable_actuator", [-1]),
        ("disable_actuator", [1.5]),
        ("disable_actuator", [True]),
        ("disable_actuator", ""),
        ("disable_actuator", None),
        ("disable_actuator", range(10_000)),
        ("disable_actuator", set(range(10_000))),
        ("integrator", 99),
        ("integrator", -1),
        ("integrator", "RK5"),
        ("integrator", "99"),
        ("integrator", True),
        ("integrator", ""),
        ("integrator", None),
        ("integrator", 1.5),
        ("integrator", mujoco.mjtSolver.mjSOL_CG),
        ("cone", 7),
    ],
)  # fmt: skip
def test_value_that_is_not_exactly_representable_is_refused(name, given):
    (error,) = _refused({name: given})
    assert error.field == name
    assert error.allowed
    assert len(str(error)) < 500


@pytest.mark.skipif(
    np.finfo(np.longdouble).eps >= np.finfo(float).eps, reason="long double is no wider here"
)
def test_long_double_that_no_double_holds_is_refused():
    assert _parsed("timestep", np.longdouble(0.5)) == 0.5
    (error,) = _refused({"timestep": np.longdouble(1) / 3})
    assert "exactly representable" in error.message


@pytest.mark.parametrize(
    ("alias", "name", "value"),
    [(alias, field.name, field.default) for field in descriptors() for alias in field.aliases],
)
def test_alias_names_its_field(alias, name, value):
    if isinstance(value, frozenset):
        value = [1]
    assert parse_runtime_options_patch({alias: value}).names() == (name,)


@pytest.mark.parametrize(
    "alias",
    ["ls_iter", "ls_tol", "noslip_iter", "noslip_tol", "ccd_iter", "ccd_tol", "sdf_iter",
     "sdf_init", "o_margin", "o_solref", "o_solimp", "o_friction", "actuatorgroupdisable"],
)  # fmt: skip
def test_published_alias_exists(alias):
    assert any(alias in field.aliases for field in descriptors())


@pytest.mark.parametrize("name", ["fwdinv", "invdiscrete", "contact", "diagexact", "override"])
def test_mjcf_name_of_a_flag_is_not_an_alias(name):
    (error,) = _refused({name: True})
    assert "is not a run-time option" in error.message


def test_passive_disabled_stands_for_spring_and_damper():
    patch = parse_runtime_options_patch({"passive_disabled": True})
    assert patch == RuntimeOptionsPatch(spring_disabled=True, damper_disabled=True)


def test_passive_disabled_together_with_one_of_its_fields_names_it_twice():
    errors = _refused({"passive_disabled": True, "damper_disabled": True})
    assert [error.field for error in errors] == ["damper_disabled"]
    assert "passive_disabled" in errors[0].message


def test_problem_with_passive_disabled_is_reported_under_canonical_names():
    errors = _refused({"passive_disabled": "perhaps"})
    assert [error.field for error in errors] == ["spring_disabled", "damper_disabled"]


@pytest.mark.parametrize("second", ["iterations", "ls_iterations"])
def test_field_named_twice_is_refused(second):
    inputs = [
        RuntimeOptionInput("ls_iter" if second == "ls_iterations" else second, 5),
        RuntimeOptionInput(second, 5),
        RuntimeOptionInput("energy", True),
    ]
    result = parse_runtime_options_patch(inputs, raise_on_error=False)
    assert [error.field for error in result.errors] == [second]
    assert result.patch.names() == ("energy",)


def test_field_named_three_times_stays_unread():
    inputs = [RuntimeOptionInput("energy", True)] * 3
    result = parse_runtime_options_patch(inputs, raise_on_error=False)
    assert result.patch == RuntimeOptionsPatch()
    assert {error.field for error in result.errors} == {"energy"}


def test_all_problems_are_reported_together_in_order_under_canonical_names():
    errors = _refused({"ls_iter": "x", "o_margin": None, "nothing": 1, "cone": 7, "energy": 3})
    assert [error.field for error in errors] == [
        "ls_iterations", "margin", "nothing", "cone", "energy",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "near"),
    [("timestp", "timestep"), ("Timestep", "timestep"), ("contact", "contact_disabled"),
     ("ls_iters", "ls_iter")],
)  # fmt: skip
def test_unknown_field_suggests_near_names(name, near):
    (error,) = _refused({name: 1})
    assert error.field == name
    assert f"did you mean {near!r}" in error.message


def test_unknown_field_of_huge_length_is_shortened():
    (error,) = _refused({"x" * 1_000_000: "y" * 1_000_000})
    assert len(str(error)) < 1000


@pytest.mark.parametrize(
    "inputs", [None, 5, "timestep", b"x", [5], ["timestep"], [("timestep", 1)], {3: 1}, [None] * 3]
)
def test_request_of_wrong_shape_is_refused(inputs):
    errors = _refused(inputs)
    assert {error.field for error in errors} == {"patch"}


def test_endless_request_is_refused():
    errors = _refused(RuntimeOptionInput(f"f{i}", i) for i in itertools.count())
    assert errors[-1].field == "patch"
    assert len(errors) < 200


def test_single_input_is_a_request():
    patch = parse_runtime_options_patch(RuntimeOptionInput("timestep", 1))
    assert patch == RuntimeOptionsPatch(timestep=1.0)


@pytest.mark.parametrize("inputs", [{}, [], RuntimeOptionsPatch(), iter(())])
def test_empty_request_gives_an_empty_patch(inputs):
    patch = parse_runtime_options_patch(inputs)
    assert patch == RuntimeOptionsPatch()
    assert patch.names() == ()
    assert patch.timestep is UNSET


def test_values_of_a_patch_made_by_hand_are_converted():
    patch = RuntimeOptionsPatch(timestep=1, gravity=[0, 0, -10])
    assert parse_runtime_options_patch(patch) == RuntimeOptionsPatch(
        timestep=1.0, gravity=(0.0, 0.0, -10.0)
    )


@pytest.mark.parametrize("engine", ["3.15.0", "4.0.0"])
def test_snapshot_names_every_field_of_the_engine(engine):
    patch = parse_runtime_options_patch(default_snapshot(), engine=engine)
    assert patch.names() == tuple(field.name for field in descriptors(engine))


@pytest.mark.parametrize("value", [True, False])
def test_field_that_the_engine_lacks_cannot_be_named(value):
    (error,) = _refused({"speculative": value}, engine="3.15.0")
    assert (error.field, error.given) == ("speculative", str(value))
    assert error.message == "needs MuJoCo 4.0 or newer, this is 3.15"
    patch = parse_runtime_options_patch({"speculative": value}, engine="4.0.0")
    assert patch.speculative is value


def test_engine_that_is_no_version_is_refused():
    with pytest.raises(InvalidArgumentError):
        parse_runtime_options_patch({}, engine="newest")


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(good_changes())
def test_domain_values_are_parsed_as_they_are(changes):
    patch = parse_runtime_options_patch(changes)
    assert dict(patch.items()) == changes
    assert parse_runtime_options_patch(patch) == patch


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(good_changes())
def test_plain_form_of_a_patch_parses_to_the_patch(changes):
    patch = parse_runtime_options_patch(changes)
    assert parse_runtime_options_patch(patch.as_dict()) == patch


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(good_changes())
def test_text_form_of_a_patch_parses_to_the_patch(changes):
    patch = parse_runtime_options_patch(changes)
    assert parse_runtime_options_patch({n: _text(v) for n, v in patch.items()}) == patch


def _text(value):
    if isinstance(value, (tuple, frozenset)):
        return " ".join(map(repr, value)) or "none"
    return value if isinstance(value, str) else str(value).lower()


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.tuples(NAMES | ANYTHING, ANYTHING), max_size=8)
    | st.dictionaries(NAMES | st.text(), ANYTHING, max_size=8)
    | ANYTHING
)
def test_parser_raises_nothing_but_rejection(request_):
    pairs = request_ if isinstance(request_, list) else []
    inputs = [RuntimeOptionInput(*entry) for entry in pairs if isinstance(entry, tuple)]
    for candidate in (request_, inputs):
        problems, patch = _problems(candidate)
        assert all(len(str(error)) < 1000 for error in problems)
        assert parse_runtime_options_patch(patch) == patch


def _problems(inputs):
    try:
        return (), parse_runtime_options_patch(inputs)
    except OptionsRejected as rejected:
        return rejected.errors, RuntimeOptionsPatch()
