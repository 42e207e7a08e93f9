from __future__ import annotations

import copy
import ctypes
import gc
import pickle
import weakref

import mujoco
import numpy as np
import pytest

from mjhost import layout
from mjhost.engine import views
from mjhost.engine.abi import fields as abi
from tests.engine.views.scenes import SCENES, stepped

# What MuJoCo's Python itself gives otherwise.
NOT_BOUND = {"threadlock"}
BOUND_EMPTY = {"mjVisual.rgba": {"bv", "bvactive"}}


def viewed(scene, steps=5):
    model, data = stepped(scene, steps)
    model_view = views.model_view(model._address)
    return model, data, model_view, views.data_view(data._address, model_view)


def assert_equal(view, bound, struct):
    """Every member of a struct has the value, type and shape that MuJoCo's Python gives."""
    for name, member in abi.fields(struct).items():
        if member.kind == "opaque" or name in NOT_BOUND | BOUND_EMPTY.get(struct, set()):
            continue
        ours, theirs = getattr(view, name), getattr(bound, name)
        if member.struct is None:
            assert_same_value(view, member, ours, theirs)
        elif member.kind == "struct":
            assert_equal(ours, theirs, member.struct)
        else:
            assert_equal_arrays(ours, theirs, member.struct)


def assert_same_value(view, member, ours, theirs):
    where = f"{view.struct}.{member.name}"
    if not isinstance(theirs, np.ndarray):
        assert type(ours) is type(theirs), where
        assert ours == theirs, where
        return
    assert ours.dtype == theirs.dtype, where
    if member.name in abi.arena_fields() and getattr(view, f"_p_{member.name}") is None:
        # The binding makes an array of nothing for what the engine did not need.
        assert ours.shape == (0, *theirs.shape[1:]), where
        return
    assert ours.shape == theirs.shape, where
    assert ours.tobytes() == theirs.tobytes(), where


def assert_equal_arrays(ours, theirs, struct):
    assert len(ours) == len(theirs)
    for index in range(min(len(theirs), 20)):
        assert_equal(ours[index], theirs[index], struct)
    for name in abi.fields(struct):
        column, expected = getattr(ours, name), getattr(theirs, name)
        assert column.dtype == expected.dtype, name
        assert column.shape == expected.shape, name
        assert column.tobytes() == expected.tobytes(), name


@pytest.mark.parametrize("scene", SCENES)
def test_every_member_of_the_model_is_what_mujoco_gives(scene):
    model, _, view, _ = viewed(scene)
    assert_equal(view, model, "mjModel")


@pytest.mark.parametrize("scene", SCENES)
def test_every_member_of_the_data_is_what_mujoco_gives(scene):
    _, data, _, view = viewed(scene)
    assert_equal(view, data, "mjData")


def test_the_scenes_have_what_the_comparison_is_about():
    model, data, _, _ = viewed("rich")
    sizes = ("nflex", "ntendon", "neq", "nsensor", "nmocap", "na", "nkey", "nhfield", "nplugin")
    assert all(getattr(model, name) for name in sizes)
    assert data.ncon
    assert data.nefc
    assert data.nisland
    assert stepped("dual")[1].nA  # efc_AR is there


def test_a_view_follows_the_data_through_steps_that_move_the_arena():
    model, data, _, view = viewed("falling", steps=0)
    seen = set()
    for _ in range(60):
        mujoco.mj_step(model, data)
        data.qpos[2] += 0.01  # the ball leaves the ground
        seen.add(data.ncon)
        assert view.ncon == len(view.contact) == data.ncon
        np.testing.assert_array_equal(view.contact.dist, data.contact.dist)
        np.testing.assert_array_equal(view.efc_force, data.efc_force)
    assert len(seen) > 1


def test_numbers_and_arrays_are_written_where_they_are():
    model, data, model_view, view = viewed("falling")
    view.time = 7.5
    view.qpos[0] = 3.0
    view.qvel[:] = 1.0
    view.qvel += 1.0
    view.contact[0].dist = -0.25
    view.contact[1].pos[:] = (1, 2, 3)
    view.warning[mujoco.mjtWarning.mjWARN_BADQACC].number = 4
    model_view.opt.timestep = 0.001
    model_view.opt.iterations = np.int64(7)
    model_view.opt.gravity[2] = -1.5
    model_view.vis.global_.fovy = 33
    assert (data.time, data.qpos[0], data.qvel[0]) == (7.5, 3.0, 2.0)
    assert data.contact[0].dist == -0.25
    np.testing.assert_array_equal(data.contact[1].pos, (1, 2, 3))
    assert data.warning[mujoco.mjtWarning.mjWARN_BADQACC].number == 4
    assert (model.opt.timestep, model.opt.iterations, model.opt.gravity[2]) == (0.001, 7, -1.5)
    assert model.vis.global_.fovy == 33


def test_columns_of_structs_write_into_each_of_them():
    _, data, _, view = viewed("falling")
    view.contact.dist[:] = -2.0
    view.contact.friction[:, 0] *= 2
    assert (data.contact.dist == -2.0).all()
    assert (view.contact.friction == data.contact.friction).all()


def test_a_data_view_knows_its_model_view():
    _, _, model_view, view = viewed("falling")
    assert view.model is model_view


def test_arrays_of_the_fixed_buffer_are_built_once():
    _, _, model_view, view = viewed("falling")
    assert view.qpos is view.qpos
    assert model_view.geom_size is model_view.geom_size
    assert model_view.opt is model_view.opt


@pytest.mark.parametrize(
    ("reach", "name", "near"),
    [
        (lambda m, d: d, "qposs", "qpos"),
        (lambda m, d: m, "geom_sise", "geom_size"),
        (lambda m, d: m.opt, "timestpe", "timestep"),
        (lambda m, d: m.vis.global_, "fovi", "fovy"),
        (lambda m, d: d.contact, "dits", "dist"),
        (lambda m, d: d.contact[0], "dits", "dist"),
    ],
)
def test_an_unknown_name_is_an_error_that_tells_the_near_one(reach, name, near):
    _, _, model_view, view = viewed("falling")
    owner = reach(model_view, view)
    with pytest.raises(AttributeError, match=f"{name}.*'{near}'"):
        getattr(owner, name)
    with pytest.raises(AttributeError, match=f"{name}.*'{near}'"):
        setattr(owner, name, 1)


@pytest.mark.parametrize(
    ("reach", "name", "told"),
    [
        (lambda m, d: d, "qpos", r"qpos\[:\] = "),
        (lambda m, d: d, "efc_force", r"efc_force\[:\] = "),
        (lambda m, d: m.opt, "gravity", r"gravity\[:\] = "),
        (lambda m, d: d.contact, "dist", r"dist\[:\] = "),
        (lambda m, d: d, "contact", "contact.<member>"),
        (lambda m, d: m, "opt", "opt.<member>"),
        (lambda m, d: d, "ncon", "belongs to the engine"),
        (lambda m, d: m, "nv", "belongs to the engine"),
        (lambda m, d: d, "arena", "belongs to the engine"),
        (lambda m, d: m, "names", "belongs to the engine"),
    ],
)
def test_what_is_no_number_cannot_be_assigned_and_the_error_says_how_to_write(reach, name, told):
    _, _, model_view, view = viewed("falling")
    owner = reach(model_view, view)
    before = getattr(owner, name)
    kept = before.copy() if isinstance(before, np.ndarray) else before
    with pytest.raises(AttributeError, match=told):
        setattr(owner, name, np.zeros(3) if isinstance(before, np.ndarray) else 1)
    after = getattr(owner, name)
    assert np.array_equal(after, kept) if isinstance(before, np.ndarray) else after == before


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("iterations", 2**40, OverflowError),
        ("iterations", 1.5, TypeError),
        ("iterations", "3", TypeError),
        ("timestep", "0.1", TypeError),
        ("timestep", None, TypeError),
    ],
)
def test_a_number_that_does_not_fit_is_refused_and_changes_nothing(name, value, error):
    model, _, model_view, _ = viewed("falling")
    before = getattr(model.opt, name)
    with pytest.raises(error, match=name):
        setattr(model_view.opt, name, value)
    assert getattr(model.opt, name) == before


def test_a_flag_is_a_flag():
    _, data, _, view = viewed("falling")
    view.flg_rnepost = True
    assert data.flg_rnepost is True
    view.flg_rnepost = 0
    assert data.flg_rnepost is False
    with pytest.raises(OverflowError, match="flg_rnepost"):
        view.flg_rnepost = 2


def test_an_index_outside_of_an_array_of_structs_is_an_error():
    _, data, _, view = viewed("falling")
    assert view.contact[-1].dist == data.contact[data.ncon - 1].dist
    assert [contact.dist for contact in view.contact] == list(data.contact.dist)
    assert [c.dist for c in view.contact[1:3]] == list(data.contact.dist[1:3])
    for index in (data.ncon, -data.ncon - 1):
        with pytest.raises(IndexError, match="mjContact"):
            view.contact[index]
    with pytest.raises(TypeError):
        view.contact["0"]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_view_is_not_copied_with_memory_it_does_not_own(copied):
    _, _, model_view, view = viewed("falling")
    for owner in (model_view, view, view.contact, view.contact[0], model_view.opt):
        with pytest.raises(TypeError, match="copy its arrays"):
            copied(owner)


def test_a_view_is_freed_without_the_garbage_collector():
    _, data, _, view = viewed("falling")
    names = [n for n, m in abi.fields("mjData").items() if m.kind != "scalar"]
    for name in names:
        getattr(view, name)
    probe = weakref.ref(view.qpos)
    gc.disable()
    try:
        del view
        assert probe() is None
        assert data.time
    finally:
        gc.enable()


def test_views_of_two_data_of_one_model_do_not_mix():
    model, data, model_view, view = viewed("falling")
    other = mujoco.MjData(model)
    other_view = views.data_view(other._address, model_view)
    other_view.qpos[:] = 9
    assert not (view.qpos == 9).any()
    assert (other.qpos == 9).all()
    assert data.time == view.time


def test_what_a_view_lists_is_what_it_has():
    _, _, model_view, view = viewed("rich")
    for owner in (model_view, view, view.contact, model_view.opt):
        for name in dir(owner):
            getattr(owner, name)
    assert "qpos" in dir(view)
    assert "mjData" in repr(view)


@pytest.fixture
def drawn():
    """A scene of the engine's own, at an address, and MuJoCo's Python's of the same data."""
    model, data = stepped("falling")
    bound = mujoco.MjvScene(model, maxgeom=50)
    option, camera = mujoco.MjvOption(), mujoco.MjvCamera()
    mask = int(mujoco.mjtCatBit.mjCAT_ALL)
    mujoco.mjv_updateScene(model, data, option, None, camera, mask, bound)
    library, structs = layout.library(), {}
    for struct in ("mjvScene", "mjvOption", "mjvCamera"):
        structs[struct] = layout.structure(struct)()
        make = library[struct.replace("mjv", "mjv_default")]
        make(ctypes.byref(structs[struct]))
    scene, option, camera = map(ctypes.byref, structs.values())
    address = ctypes.c_void_p(model._address)
    library["mjv_makeScene"](address, scene, 50)
    update = library["mjv_updateScene"]
    update(address, ctypes.c_void_p(data._address), option, None, camera, mask, scene)
    yield views.view_class("mjvScene").from_address(ctypes.addressof(structs["mjvScene"])), bound
    library["mjv_freeScene"](scene)


def test_geoms_of_a_scene_can_be_read_and_added(drawn):
    scene, bound = drawn
    assert scene.ngeom == bound.ngeom
    assert len(scene.geoms) == scene.maxgeom == 50
    for index in range(bound.ngeom):
        np.testing.assert_array_equal(scene.geoms[index].pos, bound.geoms[index].pos)
        assert scene.geoms[index].type == bound.geoms[index].type
    scene.geoms[scene.ngeom].pos[:] = (1, 2, 3)
    scene.ngeom += 1
    assert scene.ngeom == bound.ngeom + 1
    with pytest.raises(AttributeError, match="maxgeom"):
        scene.maxgeom = 100
