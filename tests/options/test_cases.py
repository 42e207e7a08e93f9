"""Failures from public reports, as far as they need no host: values, engine, answers."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from mjhost.errors import OptionsRejected
from mjhost.options import OptionBlock, prepare_runtime_options, read_runtime_options

BALL = """
<mujoco model="ball">
  <option timestep="0.002"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <body name="b" pos="0 0 1" {body}><freejoint name="f"/><geom size=".1" mass="1"/></body>
  </worldbody>
</mujoco>
"""


class Ball:
    """A model with data and the three calls that the cases are told in."""

    def __init__(self, body=""):
        self.model = mujoco.MjModel.from_xml_string(BALL.format(body=body))
        self.data = mujoco.MjData(self.model)
        self._block = OptionBlock(self.model.opt)

    def set(self, **changes):
        result = prepare_runtime_options(self._block.read(), changes)
        self._block.write(result.snapshot)
        return result

    def get(self, name):
        return getattr(read_runtime_options(self.model.opt), name)

    def raw(self):
        return self._block.raw()


@pytest.fixture
def ball():
    return Ball()


def test_op_01_timestep_changes_the_very_next_step(ball):
    for _ in range(10):
        mujoco.mj_step(ball.model, ball.data)
    assert ball.data.time == 0.020000000000000004
    ball.set(timestep=0.004)
    assert ball.get("timestep") == 0.004
    for _ in range(10):
        mujoco.mj_step(ball.model, ball.data)
    assert ball.data.time == 0.060000000000000026


def test_op_03_gravity_compensation_goes_and_comes_with_gravity():
    ball = Ball('gravcomp="1"')
    seen = []
    for disabled in (False, True, False):
        ball.set(gravity_disabled=disabled)
        mujoco.mj_forward(ball.model, ball.data)
        seen.append(ball.data.qfrc_gravcomp[2])
        assert not disabled or not ball.data.qacc.any()
    assert seen == [9.81, 0, 9.81]


def test_op_04_integrator_is_set_by_name(ball):
    ball.set(integrator="RK4")
    assert ball.get("integrator") == "RK4"
    assert ball.model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
    ball.set(integrator="implicitfast")
    ball.set(integrator=0)
    assert ball.get("integrator") == "Euler"


@pytest.mark.parametrize(
    "change",
    [{"integrator": 99}, {"integrator": "RK5"}, {"solver": 99}, {"cone": 7}, {"jacobian": 9}],
    ids=str,
)
def test_op_04_unknown_choice_is_refused_at_once(ball, change):
    before = ball.raw()
    with pytest.raises(OptionsRejected):
        ball.set(**change)
    assert ball.raw() == before
    mujoco.mj_step(ball.model, ball.data)
    assert ball.data.time == 0.002


@pytest.mark.parametrize(
    "change",
    [
        {"timestep": True},
        {"timestep": np.True_},
        {"gravity": [0, 0, True]},
        {"gravity": np.array([False, False, True])},
        {"iterations": True},
    ],
    ids=str,
)
def test_op_06_boolean_is_no_number(ball, change):
    before = ball.raw()
    with pytest.raises(OptionsRejected, match="boolean"):
        ball.set(**change)
    assert ball.raw() == before


@pytest.mark.parametrize("value", [-9.81, [0, 0], [0, 0, -5, 1], [[0, 0, -9.81]]], ids=str)
def test_op_07_gravity_of_wrong_length_is_refused_with_the_right_one(ball, value):
    with pytest.raises(OptionsRejected, match="3 numbers"):
        ball.set(gravity=value)
    assert ball.get("gravity") == (0.0, 0.0, -9.81)


@pytest.mark.parametrize(
    ("name", "length"),
    [("magnetic", 3), ("wind", 3), ("o_solref", 2), ("o_solimp", 5), ("o_friction", 5)],
)
def test_op_07_other_arrays_keep_their_length_too(ball, name, length):
    for value in (0.5, [0.5] * (length - 1), [0.5] * (length + 1)):
        with pytest.raises(OptionsRejected, match=f"{length} numbers"):
            ball.set(**{name: value})


def test_op_08_integers_are_accepted_for_floats(ball):
    ball.set(gravity=[0, 0, -10], density=0, tolerance=0)
    assert ball.get("gravity") == (0.0, 0.0, -10.0)
    assert all(type(element) is float for element in ball.get("gravity"))
    result = ball.set(timestep=1)
    assert ball.get("timestep") == 1.0
    assert [warning.field for warning in result.warnings] == ["timestep"]


def test_op_08_text_that_is_no_number_is_refused_with_type_and_value(ball):
    with pytest.raises(OptionsRejected, match=r"timestep must be a number.*got 'fast'"):
        ball.set(timestep="fast")
    assert ball.get("timestep") == 0.002
