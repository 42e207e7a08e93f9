"""From a name to an index, and what a wrong name is answered with."""

from __future__ import annotations

import mujoco
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mjhost import InvalidArgumentError, UnknownNameError
from mjhost.state.names import Names, ObjectKind
from tests.state.zoo import ZOO

ENGINE_KINDS = {
    ObjectKind.TEXTURE: mujoco.mjtObj.mjOBJ_TEXTURE,
    ObjectKind.KEYFRAME: mujoco.mjtObj.mjOBJ_KEY,
}


def model_of(names: list[str]) -> mujoco.MjModel:
    spec = mujoco.MjSpec()
    for name in names:
        body = spec.worldbody.add_body(name=name)
        body.add_geom(size=[0.1, 0, 0])
    return spec.compile()


def engine_kind(kind: ObjectKind) -> mujoco.mjtObj:
    return ENGINE_KINDS.get(kind) or getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}")


@pytest.fixture(scope="module")
def model():
    return mujoco.MjModel.from_xml_string(ZOO)


@pytest.mark.parametrize("kind", ObjectKind)
def test_every_kind_agrees_with_the_engine(model, kind):
    names = Names(model)
    for index, name in enumerate(names.of(kind)):
        spelled = mujoco.mj_id2name(model, engine_kind(kind), index)
        assert name == (spelled or f"#{index}")
        assert names.id(kind, name) == index


def test_kinds_cover_everything_that_the_engine_names(model):
    known = {member for member in dir(model) if member.startswith("name_") and member[-3:] == "adr"}
    assert len(ObjectKind) == len(known)


@given(st.lists(st.text(st.characters(categories=("L", "N", "P")), max_size=6), max_size=12))
@settings(deadline=None, max_examples=40)
def test_every_object_has_one_name_of_its_own(given_names):
    unique = list(dict.fromkeys(name for name in given_names if name and name != "world"))
    names = Names(model_of([*unique, "", ""]))
    bodies = names.of(ObjectKind.BODY)
    assert len(set(bodies)) == len(bodies)
    assert set(unique) <= set(bodies)
    assert [names.id(ObjectKind.BODY, name) for name in bodies] == [*range(len(bodies))]


def test_a_name_that_looks_like_an_index_belongs_to_who_bears_it():
    names = Names(model_of(["#2", ""]))
    assert names.of(ObjectKind.BODY) == ("world", "#2", "##2")


def test_the_near_names_are_listed(model):
    with pytest.raises(UnknownNameError, match="no joint is named 'kne'; did you mean 'knee'"):
        Names(model).id(ObjectKind.JOINT, "kne")


def test_a_name_of_another_kind_is_pointed_out(model):
    with pytest.raises(UnknownNameError, match="no joint is named 'floating', but a body is"):
        Names(model).id(ObjectKind.JOINT, "floating")


@pytest.mark.parametrize("name", [3, None, ("knee",), b"knee", ["knee"]])
def test_what_is_no_text_is_no_name(model, name):
    with pytest.raises(InvalidArgumentError, match="joint is asked for by its name"):
        Names(model).id(ObjectKind.JOINT, name)


def test_one_text_is_not_taken_for_several_names(model):
    with pytest.raises(InvalidArgumentError, match=r"write \['knee'\]"):
        Names(model).selected(ObjectKind.JOINT, "knee")
