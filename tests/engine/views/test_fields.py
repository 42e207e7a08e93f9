from __future__ import annotations

import ctypes

import mujoco
import pytest
from mujoco.introspect import structs

from mjhost import layout
from mjhost.engine.abi import fields as abi
from mjhost.errors import UnsupportedEngineError
from tests.engine.views.scenes import SCENES, stepped

DESCRIBED = [name for name in structs.STRUCTS if not name.startswith(("mjui", "mjUI"))]


@pytest.mark.parametrize("struct", DESCRIBED)
def test_every_member_of_a_struct_is_in_its_table_at_its_offset(struct):
    members = abi.fields(struct)
    mirror = layout.structure(struct)
    assert [member.offset for member in members.values()] == [
        getattr(mirror, name).offset for name, *_ in mirror._fields_
    ]


@pytest.mark.parametrize("struct", DESCRIBED)
def test_inline_members_fill_exactly_the_room_up_to_the_next_one(struct):
    mirror = layout.structure(struct)
    for (name, ctype, *_), member in zip(mirror._fields_, abi.fields(struct).values(), strict=True):
        if member.kind in {"scalar", "struct"}:
            assert ctypes.sizeof(member.ctype) == ctypes.sizeof(ctype), name
        elif member.kind == "array":
            count = 1
            for extent in member.extents:
                assert extent.size is None
                count *= extent.factor
            assert count * ctypes.sizeof(member.ctype) == ctypes.sizeof(ctype), name


def test_a_nested_struct_without_a_name_is_reached_through_its_member():
    member = abi.fields("mjVisual")["global_"]
    assert member.struct == "mjVisual.global_"
    assert "fovy" in abi.fields(member.struct)


def test_a_product_of_a_size_and_a_number_is_one_dimension():
    extents = abi.fields("mjModel")["key_mpos"].extents
    assert extents == (abi.Extent(1, "nkey", "mjModel"), abi.Extent(3, "nmocap", "mjModel"))


def test_a_length_named_by_a_constant_of_the_engine_is_its_value():
    assert abi.fields("mjModel")["jnt_solref"].extents[1] == abi.Extent(mujoco.mjNREF)
    roles = len([name for name in dir(mujoco.mjtTextureRole) if name.startswith("mjTEXROLE")])
    assert abi.fields("mjModel")["mat_texid"].extents[1] == abi.Extent(roles)


def test_a_size_that_both_structs_have_is_the_models():
    assert abi.size_owner("nplugin") == "mjModel"
    assert abi.size_owner("nv") == "mjModel"
    assert abi.size_owner("nefc") == "mjData"


def test_a_size_that_nobody_has_is_an_error():
    with pytest.raises(UnsupportedEngineError, match="nfoo"):
        abi.size_owner("nfoo")


@pytest.mark.parametrize("name", ["mjFoo", "mjVisual.foo"])
def test_a_struct_that_does_not_exist_is_an_error(name):
    with pytest.raises(UnsupportedEngineError):
        abi.fields(name)


@pytest.mark.parametrize("scene", SCENES)
def test_arena_fields_are_those_outside_of_the_buffer_of_any_data(scene):
    _, data = stepped(scene)
    start = layout.address_of(data, "mjData")
    raw = abi.mirror("mjData").from_address(start)
    for name, member in abi.fields("mjData").items():
        if member.kind != "pointer":
            continue
        address = ctypes.c_size_t.from_address(start + member.offset).value
        inside = raw.buffer <= address <= raw.buffer + raw.nbuffer
        assert inside == (name not in abi.arena_fields()), name


def test_contacts_and_constraints_are_in_the_arena_and_the_state_is_not():
    assert {"contact", "efc_force", "efc_J", "island_nv"} <= abi.arena_fields()
    assert not {"qpos", "act", "plugin_state", "sensordata"} & abi.arena_fields()


def test_lengths_of_arrays_and_the_allocators_numbers_are_read_only():
    assert {"ncon", "nefc", "narena", "pstack", "nplugin"} <= abi.read_only("mjData")
    assert {"nq", "nv", "nbuffer", "signature"} <= abi.read_only("mjModel")
    assert not {"time", "flg_rnepost"} & abi.read_only("mjData")
    assert not abi.read_only("mjOption")
