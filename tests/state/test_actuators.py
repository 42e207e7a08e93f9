"""The controls of actuators."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mjhost import InvalidArgumentError, UnknownNameError
from tests.state.zoo import everything


def test_controls_are_read_and_written_by_actuator(zoo):
    zoo.set_ctrl({"push": 0.25, "gimbal": (1, 2, 3), "thigh": -0.5, "#2": 4})
    assert {name: values.tolist() for name, values in zoo.ctrl().items()} == {
        "thigh": [-0.5],
        "gimbal": [1, 2, 3],
        "#2": [4],
        "push": [0.25],
    }
    assert zoo.data.ctrl.tolist() == [-0.5, 1, 2, 3, 4, 0.25]


def test_what_ctrl_returned_can_be_set_again(zoo):
    zoo.set_ctrl({"gimbal": (1, 2, 3), "thigh": 0.5})
    kept = zoo.ctrl()
    zoo.set_ctrl({"gimbal": (0, 0, 0), "thigh": 0})
    zoo.set_ctrl(kept)
    assert zoo.data.ctrl.tolist() == [0.5, 1, 2, 3, 0, 0]


def test_others_keep_their_controls(zoo):
    zoo.set_ctrl({"thigh": 0.5})
    zoo.set_ctrl({"push": 0.25})
    assert zoo.actuator("thigh").ctrl == 0.5


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e300, 1.1e10, "1", True, None])
def test_one_bad_control_is_refused_by_name_and_none_is_written(zoo, bad):
    zoo.set_ctrl({"thigh": 0.5, "push": 0.25})
    before = everything(zoo)
    with pytest.raises(InvalidArgumentError, match="ctrl of actuator 'push'"):
        zoo.set_ctrl({"thigh": 0.75, "push": bad})
    assert everything(zoo) == before


def test_all_problems_are_told_at_once(zoo):
    with pytest.raises(InvalidArgumentError) as caught:
        zoo.set_ctrl({"thigh": math.nan, "gimbal": (1, 2), "pusher": 1})
    assert all(word in str(caught.value) for word in ("'thigh'", "'gimbal' must be 3", "'pusher'"))
    with pytest.raises(UnknownNameError, match="did you mean 'push'"):
        zoo.set_ctrl({"pusher": 1})
    with pytest.raises(InvalidArgumentError, match="must be a mapping of actuators"):
        zoo.set_ctrl([0.5] * 6)


def test_a_control_beyond_its_range_is_kept_and_clamped_by_the_engine(zoo):
    zoo.set_ctrl({"thigh": 3})
    zoo.step()
    assert zoo.actuator("thigh").ctrl == 3.0
    assert zoo.actuator("thigh").force == 1.0
    assert zoo.actuator("thigh").ctrlrange.tolist() == [[-1, 1]]
    assert zoo.actuator("gimbal").ctrlrange.tolist() == [[-math.inf, math.inf]] * 3


def test_setting_controls_recomputes_nothing(zoo):
    zoo.data.qpos[11] = 0.5  # a write of the user's own, of which xpos knows nothing
    before = zoo.data.xpos.tobytes()
    zoo.set_ctrl({"thigh": 0.5})
    assert zoo.data.xpos.tobytes() == before
    zoo.set_joint_state("rail", 0.0)
    assert zoo.data.xpos.tobytes() != before


def test_an_actuator_knows_its_inputs_and_outputs(zoo):
    gimbal = zoo.actuator("gimbal")
    gimbal.ctrl = (0.1, 0.2, 0.3)
    zoo.step()
    assert (gimbal.inputs, gimbal.ctrl.tolist(), gimbal.force.shape) == (3, [0.1, 0.2, 0.3], (3,))
    np.testing.assert_array_equal(gimbal.force, zoo.data.actuator_force[1:4])
