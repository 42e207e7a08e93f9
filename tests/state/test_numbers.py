"""What is accepted as numbers, positions and orientations."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mjhost import InvalidArgumentError
from mjhost.state.numbers import LIMIT, flag, vector
from mjhost.state.poses import conjugate, product, quaternion, rotated, rotated_back

NO_NUMBERS = [
    None,
    "0.5",
    b"0.5",
    True,
    np.True_,
    [True, 0.5, 0.5],
    ["1", "2", "3"],
    [1, [2], 3],
    [[1, 2, 3]],
    [1, 2],
    [1, 2, 3, 4],
    {1, 2, 3},
    {"x": 1},
    1j,
    [1j, 0, 0],
    object(),
    (n for n in (1, 2, 3)),
    np.array([1, 2, 3], dtype=object),
    np.array([True, False, True]),
    np.array(["1", "2", "3"]),
    10**400,
]
NOT_FINITE = [math.nan, math.inf, -math.inf, 1.1e10, -1.1e10, 1e300, np.longdouble("1e4000")]
numbers = st.floats(-1e3, 1e3)


@pytest.mark.parametrize("values", NO_NUMBERS, ids=repr)
def test_what_is_not_three_numbers_is_refused_by_name(values):
    with pytest.raises(InvalidArgumentError, match="^pos of body 'b' must be 3 numbers, got "):
        vector(values, 3, "pos of body 'b'")


@pytest.mark.parametrize("values", ["0.5", True, None, [True], [1, 2], [[1]], np.True_], ids=repr)
def test_what_is_not_one_number_is_refused_by_name(values):
    with pytest.raises(InvalidArgumentError, match="^ctrl must be one number, got "):
        vector(values, 1, "ctrl")


@pytest.mark.parametrize("bad", NOT_FINITE, ids=repr)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_what_the_engine_takes_for_a_divergence_is_refused_with_its_place(bad, at):
    values = [0.0, 0.0, 0.0]
    values[at] = bad
    with pytest.raises(
        InvalidArgumentError, match=rf"^q\[{at}\] must be finite and at most 1e\+10"
    ):
        vector(values, 3, "q")


@pytest.mark.parametrize("bad", NOT_FINITE, ids=repr)
def test_one_number_that_is_not_finite_is_refused(bad):
    with pytest.raises(InvalidArgumentError, match=r"^ctrl must be finite"):
        vector(bad, 1, "ctrl")


def test_the_limit_is_the_engines_own():
    assert vector([LIMIT, -LIMIT], 2, "q").tolist() == [1e10, -1e10]
    assert mujoco.mju_isBad(LIMIT) == 0
    assert mujoco.mju_isBad(np.nextafter(LIMIT, np.inf)) == 1


@pytest.mark.parametrize("values", [2, 2.0, np.float32(2), np.int8(2), [2], (2.0,), np.array([2])])
def test_a_single_number_will_do_for_one(values):
    assert vector(values, 1, "q").tolist() == [2.0]


def test_the_callers_array_is_not_kept():
    mine = np.array([1.0, 2.0, 3.0])
    theirs = vector(mine, 3, "q")
    mine[:] = 0.0
    assert theirs.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("value", [0, 1, "true", None, [True], 1.0], ids=repr)
def test_only_a_flag_is_a_flag(value):
    with pytest.raises(InvalidArgumentError, match="^active must be True or False"):
        flag(value, "active")
    assert (flag(True, "active"), flag(np.False_, "active")) == (True, False)


@given(st.lists(numbers, min_size=4, max_size=4).filter(lambda q: max(map(abs, q)) > 1e-9))
@settings(deadline=None)
def test_quaternions_come_out_of_unit_length_and_then_stay(values):
    quat = quaternion(values, "quat")
    assert abs(np.linalg.norm(quat) - 1.0) < 1e-15 * 4
    np.testing.assert_allclose(quat * np.linalg.norm(values), values, atol=1e-9)
    assert quaternion(quat, "quat").tobytes() == quat.tobytes()


@pytest.mark.parametrize("values", [(0, 0, 0, 0), (-0.0, 0, 0, 0), (1e-16, 0, 0, 0)])
def test_no_orientation_is_made_of_zeros(values):
    with pytest.raises(InvalidArgumentError, match=r"quat must be an orientation wxyz"):
        quaternion(values, "quat")


def test_a_tiny_quaternion_still_is_an_orientation():
    assert quaternion((0, 1e-12, 0, 0), "quat").tolist() == [0, 1, 0, 0]


@pytest.mark.slow
@given(*[st.lists(numbers, min_size=n, max_size=n) for n in (4, 4, 3)])
@settings(deadline=None)
def test_the_algebra_is_the_engines(left, right, point):
    left, right = (quaternion([*q[:3], q[3] + 2e3], "quat") for q in (left, right))
    expected = np.zeros(4)
    mujoco.mju_mulQuat(expected, left, right)
    np.testing.assert_allclose(product(left, right), expected, atol=1e-12)
    turned = np.zeros(3)
    mujoco.mju_rotVecQuat(turned, np.array(point), left)
    np.testing.assert_allclose(rotated(np.array(point), left), turned, atol=1e-9)
    np.testing.assert_allclose(rotated_back(turned, left), point, atol=1e-9)
    np.testing.assert_allclose(product(left, conjugate(left)), (1, 0, 0, 0), atol=1e-12)
