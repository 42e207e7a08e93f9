"""Attributes: annotations, limits, MJCF text."""

import enum
import math
from typing import ClassVar, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mjhost.engine.attributes import attribute, specifications
from mjhost.errors import EngineDeclarationError


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


class Holder:
    gain: float = attribute(10.0, minimum=0, maximum=100)
    count: int = 3
    loud: bool = False
    label: str = "x"
    mode: Mode = Mode.FAST
    axis: "float64[3]" = (0, 0, 1)  # noqa: F821
    any_size: "float64[:]" = ()  # noqa: F821
    pair: tuple[float, float] = (1.0, 2.0)
    many: tuple[float, ...] = ()
    ids: "int32[:]" = (1, 2)  # noqa: F821
    level: Literal["low", "high"] = "low"
    limit: float = math.inf
    needed: float = attribute(minimum=1)
    shared: ClassVar[int] = 7
    constant = 8


SPECS = specifications(Holder, {})


def test_annotated_names_are_the_attributes_in_the_order_of_the_text():
    assert list(SPECS) == [
        "gain", "count", "loud", "label", "mode", "axis", "any_size", "pair", "many", "ids",
        "level", "limit", "needed",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("gain", "2.5", 2.5),
        ("gain", " 1e1 ", 10.0),
        ("gain", "", 10.0),
        ("count", "-4", -4),
        ("loud", "true", True),
        ("loud", "0", False),
        ("label", "any text", "any text"),
        ("mode", "SLOW", Mode.SLOW),
        ("level", "high", "high"),
        ("limit", "inf", math.inf),
        ("limit", "-3", -3.0),
    ],
)
def test_text_becomes_the_value_it_says(name, text, value):
    parsed = SPECS[name].parse(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "size", "dtype"),
    [
        ("axis", "0 1 0", 3, "float64"),
        ("any_size", "1 2 3 4", 4, "float64"),
        ("any_size", "", 0, "float64"),
        ("pair", "1, 2", 2, "float64"),
        ("ids", "4 5", 2, "int32"),
    ],
)
def test_vectors_are_read_only_arrays(name, text, size, dtype):
    value = SPECS[name].parse(text)
    assert (len(value), value.dtype) == (size, np.dtype(dtype))
    assert not value.flags.writeable


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("gain", "abc"),
        ("gain", "1 2"),
        ("gain", "nan"),
        ("gain", "inf"),
        ("gain", "1_0"),
        ("gain", "-1"),
        ("gain", "101"),
        ("gain", "0x10"),
        ("count", "1.0"),
        ("count", str(2**63)),
        ("count", "1e3"),
        ("loud", "yes"),
        ("loud", "True"),
        ("mode", "slow"),
        ("mode", "1"),
        ("axis", "1 2"),
        ("axis", "1 2 3 4"),
        ("axis", "1 2 x"),
        ("axis", "1 2 nan"),
        ("ids", "1.5"),
        ("ids", str(2**40)),
        ("level", "medium"),
        ("limit", "nan"),
        ("needed", ""),
        ("needed", "0.5"),
    ],
)
def test_wrong_text_is_refused_with_text_and_expectation(name, text):
    with pytest.raises(ValueError) as info:
        SPECS[name].parse(text)
    message = str(info.value)
    assert name in message
    assert text in message
    assert SPECS[name].expectation in message


@settings(deadline=None, max_examples=60)
@given(st.floats(min_value=0, max_value=100))
def test_a_number_survives_its_own_text(value):
    assert SPECS["gain"].parse(repr(value)) == value


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=12))
def test_any_text_is_a_number_within_the_limits_or_refused(text):
    try:
        value = SPECS["gain"].parse(text)
    except ValueError:
        return
    assert 0 <= value <= 100


def declared(annotation, default):
    return type("Made", (), {"__annotations__": {"x": annotation}, "x": default})


@pytest.mark.parametrize(
    ("annotation", "default"),
    [
        (float, "1"),
        (int, 1.5),
        (int, True),
        (bool, 1),
        (str, 1),
        (Mode, "FAST"),
        ("float64[3]", (1, 2)),
        ("float64[:]", ((1, 2), (3, 4))),
        (float, attribute(-1.0, minimum=0)),
        (float, attribute(1.0, minimum=2, maximum=1)),
        (str, attribute("a", minimum=0)),
        (float, attribute(1.0, minimum=math.nan)),
        (str, attribute("a", choices=("b", "c"))),
        (str, attribute("a", choices=())),
        (float, math.nan),
        (list, []),
        (dict[str, int], {}),
        (object, None),
        ("Unknown", 1.0),
        ("float |", 1.0),
        (tuple[str, ...], ()),
        (tuple[float, int], (1.0, 2)),
    ],
)
def test_what_makes_no_attribute_is_refused_by_name(annotation, default):
    with pytest.raises(EngineDeclarationError, match="'x'"):
        specifications(declared(annotation, default), {})


def test_an_underscore_is_no_key():
    cls = type("Made", (), {"__annotations__": {"_x": float}, "_x": 1.0})
    with pytest.raises(EngineDeclarationError, match="underscore"):
        specifications(cls, {})


def test_a_subclass_has_the_attributes_of_its_base_and_may_change_defaults():
    class Base:
        a: float = attribute(1.0, minimum=0)
        b: int = 2

    class Derived(Base):
        c: float = 3.0
        b = 5

    specs = specifications(Derived, {})
    assert list(specs) == ["a", "b", "c"]
    assert specs["b"].default == 5
    assert specs["a"].minimum == 0
