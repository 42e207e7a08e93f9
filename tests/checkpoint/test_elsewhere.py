"""What a file may be restored into, and what it must not be able to do there."""

from __future__ import annotations

import shutil
from types import MappingProxyType
from typing import ClassVar

import msgspec
import mujoco
import numpy as np
import pytest

from mjhost import MujocoEnv, Plugin
from mjhost.checkpoint import Checkpoint, StateLayout, persistence
from mjhost.demo import PLUGIN_FILE
from mjhost.errors import CheckpointError
from mjhost.models import path
from tests.checkpoint.models import MATRIX, drive
from tests.env.models import PENDULUM

TETRAHEDRON = """
v 0 0 0
v .1 0 0
v 0 .1 0
v 0 0 .1
f 1 3 2
f 1 2 4
f 1 4 3
f 2 3 4
"""
WITH_A_MESH = """
<mujoco>
  <asset><mesh name="m" file="m.obj"/></asset>
  <worldbody>
    <body><freejoint/><geom type="mesh" mesh="m"/><geom name="ball" size=".05"/></body>
  </worldbody>
</mujoco>
"""


@pytest.fixture
def env():
    with MujocoEnv(MATRIX["equality"]) as env:
        drive(env, 0, 20)
        yield env


def state_of(env):
    return StateLayout.of(env.model).read(env.model, env.data).tobytes()


def through_a_file(checkpoint, **fields):
    return persistence.from_bytes(
        persistence.to_bytes(msgspec.structs.replace(checkpoint, **fields))
    )


def test_the_folder_of_a_model_is_no_part_of_its_identity(tmp_path):
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "m.obj").write_text(TETRAHEDRON)
        (tmp_path / folder / "model.xml").write_text(WITH_A_MESH)
    with MujocoEnv(tmp_path / "here" / "model.xml") as env:
        env.step(5)
        checkpoint, state = env.checkpoint(), state_of(env)
    with MujocoEnv(tmp_path / "there" / "model.xml") as other:
        other.restore(checkpoint)
        assert state_of(other) == state


def test_another_shape_of_a_mesh_is_another_model(tmp_path):
    model = tmp_path / "model.xml"
    (tmp_path / "m.obj").write_text(TETRAHEDRON)
    model.write_text(WITH_A_MESH)
    with MujocoEnv(model) as env:
        checkpoint = env.checkpoint()
    (tmp_path / "m.obj").write_text(TETRAHEDRON.replace("0 0 .1", "0 0 .2"))
    with MujocoEnv(model) as other, pytest.raises(CheckpointError, match="other values in"):
        other.restore(checkpoint)


# -- plugins ---------------------------------------------------------------------------------------


class Damped(Plugin):
    stateless: ClassVar[bool] = True

    def pre_step(self, model, data):
        data.qfrc_applied[0] = -data.qvel[0]


def test_a_plugin_that_took_part_is_missed_also_without_a_state():
    with MujocoEnv(PENDULUM, plugins=[Damped]) as env:
        checkpoint = env.checkpoint()
    with MujocoEnv(PENDULUM) as other:
        other.step(3)
        before = state_of(other)
        with pytest.raises(CheckpointError, match=r"'Damped'.* not loaded"):
            other.restore(checkpoint)
        assert state_of(other) == before


@pytest.mark.slow
def test_the_demo_can_be_taken_exactly():
    with MujocoEnv(path("demo"), plugins=[str(PLUGIN_FILE)]) as env:
        env.step(50)
        checkpoint = env.checkpoint()
        assert checkpoint.inexact_because == ()
        env.step(100)
        expected = state_of(env)
        env.restore(checkpoint)
        env.step(100)
        assert state_of(env) == expected


NUDGE = """
import mjhost

class Nudge(mjhost.Plugin):
    def load(self, model, data):
        self.count = 0

    def pre_step(self, model, data):
        self.count += 1
        data.qfrc_applied[0] = 0.01 * self.count

    def save_state(self):
        return {"count": self.count}

    def load_state(self, state):
        self.count = state["count"]
"""


def test_a_plugin_is_known_wherever_its_file_lies(tmp_path):
    (tmp_path / "nudge.py").write_text(NUDGE)
    (tmp_path / "elsewhere").mkdir()
    moved = shutil.copy(tmp_path / "nudge.py", tmp_path / "elsewhere")
    with MujocoEnv(PENDULUM, plugins=[str(tmp_path / "nudge.py")]) as env:
        env.step(7)
        checkpoint = env.checkpoint()
        env.step(5)
        expected = state_of(env)
    with MujocoEnv(PENDULUM, plugins=[str(moved)]) as other:
        other.restore(checkpoint)
        other.step(5)
        assert state_of(other) == expected


class Rated(Plugin):
    rate_hz = 100.0
    stateless: ClassVar[bool] = True
    calls: ClassVar[list[float]] = []

    def pre_step(self, model, data):
        self.calls.append(data.time)


def test_a_rate_that_begins_on_its_grid_has_no_call_that_it_would_not_have_had():
    with MujocoEnv(PENDULUM, plugins=[Rated]) as env:
        per_call = round(0.01 / env.model.opt.timestep)
        env.step(per_call)
        env.reload_plugins()  # at the very step at which a call would be due
        checkpoint = env.checkpoint()
        Rated.calls.clear()
        env.step(per_call)
        expected = list(Rated.calls)
        env.restore(checkpoint)
        Rated.calls.clear()
        env.step(per_call)
        assert Rated.calls == expected


# -- edits -----------------------------------------------------------------------------------------


def test_an_edit_of_a_value_goes_through_a_file(env):
    env.model.geom_type[0] = mujoco.mjtGeom.mjGEOM_BOX
    env.model.geom_contype[:] = 3
    env.model.body_mass[1] = 2.5
    checkpoint = through_a_file(env.checkpoint())
    assert set(checkpoint.edits) == {"geom_type", "geom_contype", "body_mass"}
    env.reset(model=True)
    env.restore(checkpoint)
    assert env.model.geom_type[0] == mujoco.mjtGeom.mjGEOM_BOX
    assert (env.model.geom_contype == 3).all()


@pytest.mark.parametrize("name", ["geom_bodyid", "jnt_qposadr", "body_parentid", "geom_dataid"])
def test_an_index_cannot_be_edited_by_a_file(env, name):
    wild = np.full_like(getattr(env.model, name), 10**6)
    with pytest.raises(CheckpointError, match=f"{name} can be in no file.*index"):
        through_a_file(env.checkpoint(), edits=MappingProxyType({name: wild}))


def test_a_value_that_the_engine_would_look_up_is_refused(env):
    wild = np.full_like(env.model.geom_type, 77)
    with pytest.raises(CheckpointError, match="geom_type can be in no file"):
        through_a_file(env.checkpoint(), edits=MappingProxyType({"geom_type": wild}))
    mesh = np.full_like(env.model.geom_type, mujoco.mjtGeom.mjGEOM_MESH)
    checkpoint = through_a_file(env.checkpoint(), edits=MappingProxyType({"geom_type": mesh}))
    before = state_of(env)
    with pytest.raises(CheckpointError, match="needs a mesh"):
        env.restore(checkpoint)
    assert state_of(env) == before


def test_an_edit_of_an_index_stays_in_memory(env, tmp_path):
    env.model.geom_matid[:] = -1
    env.model.cam_resolution[:] = 7
    env.model.site_bodyid[0] = 0
    checkpoint = env.checkpoint()
    with pytest.raises(CheckpointError, match="can be in no file"):
        checkpoint.save(tmp_path / "it.ckpt")
    env.reset(model=True)
    env.restore(checkpoint)
    assert env.model.site_bodyid[0] == 0


def test_watching_a_model_leaves_its_pristine_copy_as_it_was():
    with MujocoEnv(MATRIX["cloth"]) as env:
        pristine = env._core.hosted.pristine
        before = {
            name: np.array(getattr(pristine, name))
            for name in dir(pristine)
            if isinstance(getattr(pristine, name), np.ndarray)
        }
        env.model.bvh_nodeid[:] += 0
        env.model.bvh_aabb[:] += 0.01
        env.model.mesh_vert[:] = 0.0
        edits = env.checkpoint().edits
        assert list(edits) == ["bvh_aabb"]
        for name, array in before.items():
            assert (array == getattr(pristine, name)).all(), name


def test_numbers_that_could_not_be_read_again_are_not_written(env, tmp_path):
    env.data.ctrl[1] = np.nan
    with pytest.raises(CheckpointError, match=r"ctrl\[1\].*finite"):
        env.checkpoint().save(tmp_path / "it.ckpt")
    assert not (tmp_path / "it.ckpt").exists()


def test_the_boxes_that_collisions_are_looked_up_by_come_back(tmp_path):
    with MujocoEnv(MATRIX["equality"]) as env:
        env.model.geom_size[1] *= 2
        env.model.geom_aabb[1] *= 2
        env.model.bvh_aabb[:] *= 2
        checkpoint = env.checkpoint()
        checkpoint.save(tmp_path / "it.ckpt")
        boxes = env.model.bvh_aabb.copy()
    with MujocoEnv(MATRIX["equality"]) as fresh:
        fresh.restore(Checkpoint.load(tmp_path / "it.ckpt"))
        assert (fresh.model.bvh_aabb == boxes).all()


@pytest.mark.parametrize("wrenches", [[1], [{}], "text", [{"body": "tip"}], {"a": 1}, 7])
def test_wrenches_that_are_none_are_refused_and_nothing_changes(env, wrenches):
    checkpoint = through_a_file(env.checkpoint(), wrenches=wrenches)
    before = state_of(env)
    env.apply_wrench("tip", (1, 0, 0))
    with pytest.raises(CheckpointError, match="wrenches"):
        env.restore(checkpoint)
    assert state_of(env) == before
    assert env.wrench("tip").force.tolist() == [1, 0, 0]


def test_restoring_often_is_restoring_once(env):
    calls = []
    env.every(1 / (3 * env.model.opt.timestep), lambda model, data: calls.append(data.time))
    env.step(4)
    checkpoint = env.checkpoint()
    expected = drive(env, 24, 20)
    first, calls[:] = list(calls), []
    for _ in range(3):
        env.restore(checkpoint)
        assert env.info.step_count == checkpoint.counters.steps
        calls.clear()
        assert drive(env, 24, 20) == expected
        assert calls == [time for time in first if time > checkpoint.time]
