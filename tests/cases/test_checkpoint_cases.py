"""Public reports about checkpoints and state; the case ids are in the docstrings."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from mjhost import MujocoEnv
from mjhost.checkpoint import Checkpoint
from mjhost.errors import CheckpointError
from tests.cases import acme  # noqa: F401 - registers the engine plugin of PL-08


def logged(env, steps):
    return [env.step() and (env.data.qpos.tobytes(), env.data.qvel.tobytes()) for _ in range(steps)]


def test_a_pile_of_boxes_goes_on_to_the_same_bits_in_place_and_elsewhere(host_case, tmp_path):
    """CK-01."""
    env = host_case("CK-01")
    env.step(150)
    checkpoint = env.checkpoint()
    expected = logged(env, 200)
    env.restore(checkpoint)
    assert logged(env, 200) == expected
    checkpoint.save(tmp_path / "c")
    fresh = host_case("CK-01")
    fresh.restore(Checkpoint.load(tmp_path / "c"))
    assert logged(fresh, 200) == expected


def test_controls_and_applied_forces_are_part_of_a_checkpoint(host_case):
    """CK-02."""
    env = host_case("CK-02")
    env.set_ctrl({"p": 0.4})
    env.data.xfrc_applied[1] = [1, 0, 0, 0, 0, 0]
    env.step(50)
    checkpoint = env.checkpoint()
    expected = logged(env, 100)
    env.set_ctrl({"p": -0.9})
    env.data.xfrc_applied[:] = 0
    env.step(30)
    env.restore(checkpoint)
    assert env.ctrl()["p"] == 0.4
    assert env.data.xfrc_applied[1].tolist() == [1, 0, 0, 0, 0, 0]
    assert logged(env, 100) == expected


def test_a_state_of_the_wrong_size_or_with_nan_is_refused_by_name(host_case):
    """CK-05."""
    env = host_case("CK-05")
    env.step(10)
    good = env.checkpoint()
    before = good.state.tobytes()
    qpos, quat = good.layout.component("qpos").start, good.layout.component("mocap_quat").start

    def with_nan(index):
        state = good.state.copy()
        state[index] = np.nan
        return state

    for state, match in (
        (good.state[:-1], "75 numbers"),
        (np.append(good.state, 0.0), "75 numbers"),
        (with_nan(qpos + 1), r"qpos\[1\]"),
        (with_nan(quat + 2), r"mocap_quat\[2\]"),
        (good.state.astype(np.float32), "float64"),
    ):
        with pytest.raises(CheckpointError, match=match):
            env.restore(msgspec.structs.replace(good, state=state))
        assert env.checkpoint().state.tobytes() == before


def test_every_component_survives_the_file_bit_for_bit(host_case, tmp_path):
    """CK-06."""
    env = host_case("CK-06")
    data = env.data
    data.eq_active[:] = [0, 1]
    data.mocap_pos[0] = [1, 2, 3]
    data.mocap_quat[0] = [0.5, 0.5, 0.5, 0.5]
    data.userdata[:] = [1, 2, 3]
    data.ctrl[:] = [0.1, 0.2, 0.3]
    checkpoint = env.checkpoint()
    sizes = {part.name: part.size for part in checkpoint.layout.components}
    expected = {
        "time": 1,
        "qpos": 2,
        "qvel": 2,
        "act": 1,
        "history": 26,
        "warmstart": 2,
        "ctrl": 3,
        "qfrc_applied": 2,
        "xfrc_applied": 24,
        "eq_active": 2,
        "mocap_pos": 3,
        "mocap_quat": 4,
        "userdata": 3,
        "plugin": 0,
    }
    assert {name: sizes[name] for name in expected} == expected
    assert sum(sizes[name] for name in expected) == 75
    checkpoint.save(tmp_path / "c")
    fresh = host_case("CK-06")
    fresh.restore(Checkpoint.load(tmp_path / "c"))
    for name in ("eq_active", "mocap_pos", "mocap_quat", "userdata", "ctrl", "qpos"):
        assert getattr(fresh.data, name).tobytes() == getattr(data, name).tobytes()


def test_queries_right_after_a_restore_see_the_restored_state(host_case):
    """CK-10."""
    env = host_case("CK-10")
    checkpoint = env.checkpoint()
    env.step(100)
    assert env.body_state("b0").pos[2] == pytest.approx(0.0999, abs=1e-3)
    assert env.data.ncon > 0
    env.restore(checkpoint)
    assert env.body_state("b0").pos[2] == 0.3
    assert env.data.xpos[env.model.body("b0").id][2] == 0.3
    assert env.data.ncon == 0


def test_the_history_of_a_delayed_actuator_goes_on(host_case):
    """CK-12."""
    env = host_case("CK-12")

    def ramp(host: MujocoEnv, start: int, steps: int) -> list[float]:
        forces = []
        for k in range(start, start + steps):
            host.data.ctrl[0] = k
            host.step()
            forces.append(round(float(host.data.actuator_force[0]), 9))
        return forces

    assert ramp(env, 0, 12) == [0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6]
    checkpoint = env.checkpoint()
    fresh = host_case("CK-12")
    fresh.restore(checkpoint)
    assert ramp(fresh, 12, 4) == [7, 8, 9, 10]


def test_the_state_of_an_engine_plugin_comes_back_in_place_and_elsewhere(host_case, tmp_path):
    """PL-08."""
    env = host_case("PL-08")
    env.step(5)
    checkpoint = env.checkpoint()
    checkpoint.save(tmp_path / "c")
    env.step(7)
    env.restore(checkpoint)
    assert env.data.plugin_state.tolist() == [5, 1]
    fresh = host_case("PL-08")
    fresh.restore(Checkpoint.load(tmp_path / "c"))
    assert fresh.data.plugin_state.tolist() == [5, 1]
    fresh.step()
    assert fresh.data.plugin_state.tolist() == [6, 1]
    fresh.reset()
    assert fresh.data.plugin_state.tolist() == [0, 1]
