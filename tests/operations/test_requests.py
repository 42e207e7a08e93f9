"""Requests: what is understood, what is refused, and how it is told."""

from __future__ import annotations

import math
import pickle
from typing import Annotated, Literal

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mjhost import InvalidArgumentError, RequestError
from mjhost.operations.fields import Name, Nothing, NotNegative, Request, Triple, about
from mjhost.operations.requests import MAX_DEPTH, MAX_VALUES, request_of, shown
from tests.operations.garbage import JSON


class Inner(Request, frozen=True, kw_only=True):
    """A part."""

    pos: Triple
    name: Name = ""


class Probe(Request, frozen=True, kw_only=True):
    """One field of each kind."""

    count: Annotated[int, about("how many", "1")]
    length: NotNegative | None = None
    point: Triple | None = None
    kind: Literal["a", "b"] = "a"
    parts: dict[Name, Inner] = msgspec.field(default_factory=dict)
    text: Name = ""
    numbers: list[float] = msgspec.field(default_factory=list)


def problems_of(given) -> dict[str, str]:
    with pytest.raises(RequestError) as caught:
        request_of(Probe, given, "probe")
    return {problem.field: problem.message for problem in caught.value.problems}


def test_good_request_becomes_its_record():
    request = request_of(Probe, {"count": 3, "length": 2, "point": [1, 2.5, 3]}, "probe")
    assert request == Probe(count=3, length=2.0, point=(1.0, 2.5, 3.0))


def test_a_record_is_checked_like_a_mapping():
    assert request_of(Probe, Probe(count=3), "probe") == Probe(count=3)
    assert set(problems_of(Probe(count="3", length=math.nan))) == {"count", "length"}
    assert set(problems_of(Probe(count=1, parts={"a": Inner(pos="x")}))) == {"parts[a].pos"}
    nested = Probe(count=1, parts={"a": Inner(pos=(0, 0, math.inf))})
    assert "parts" in next(iter(problems_of(nested)))


def test_a_good_record_with_parts_is_taken():
    probe = Probe(count=1, parts={"a": Inner(pos=(0.0, 0.0, 1.0))})
    assert request_of(Probe, probe, "probe") == probe


def test_nothing_is_the_request_of_operations_without_fields():
    for given_ in (None, {}, Nothing()):
        assert request_of(Nothing, given_, "probe") == Nothing()
    with pytest.raises(RequestError, match="n is no field of it; there are none"):
        request_of(Nothing, {"n": 1}, "probe")


def test_every_problem_is_told_at_once():
    assert problems_of({"lenght": 1, "point": [1, 2], "kind": "c", "length": -1}) == {
        "lenght": "is no field of it; did you mean 'length'?",
        "count": "is missing",
        "point": "must be array of length 3",
        "kind": "must be one of its words; known: 'a', 'b'",
        "length": "must be float >= 0.0",
    }


@pytest.mark.parametrize("value", ["3", True, 3.0, None, [3], {}])
def test_what_is_no_integer_is_not_made_one(value):
    assert problems_of({"count": value}) == {"count": "must be int"}


@pytest.mark.parametrize("value", ["0.5", False, [0.5]])
def test_what_is_no_number_is_not_made_one(value):
    assert problems_of({"count": 1, "length": value}) == {"length": "must be float | null"}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_refused_wherever_they_are(value):
    for field, given_ in (("length", value), ("point", [0, 0, value]), ("numbers", [value])):
        ((path, message),) = problems_of({"count": 1, field: given_}).items()
        assert path.startswith(field)
        assert message == "must be a finite number"


def test_place_inside_a_field_is_told():
    assert problems_of({"count": 1, "parts": {"a": {"pos": [0, 0, "x"]}}}) == {
        "parts[a].pos[2]": "must be float"
    }
    assert problems_of({"count": 1, "parts": {"a": {"name": "b"}}}) == {
        "parts[a]": "cannot be right: object missing required field pos"
    }


@pytest.mark.parametrize("power", [63, 64, 16610])
def test_integers_of_more_than_64_bits_are_refused(power):
    for value in (2**power, -(2**power) - 1):
        assert problems_of({"count": value}) == {"count": "must fit into 64 bits"}


def test_text_that_utf8_cannot_hold_is_refused():
    assert problems_of({"count": 1, "text": "\ud800"}) == {
        "text": "must be text that UTF-8 can hold"
    }
    key = problems_of({"count": 1, "parts": {"\ud800": {}}})
    assert key == {"parts": "must have keys that UTF-8 can hold"}


def test_depth_and_size_are_bounded():
    deep: list = []
    for _ in range(MAX_DEPTH + 1):
        deep = [deep]
    ((path, message),) = problems_of({"count": 1, "numbers": deep}).items()
    assert (path.startswith("numbers"), message) == (
        True,
        f"must be nested at most {MAX_DEPTH} deep",
    )
    endless: list = []
    endless.append(endless)
    assert problems_of({"count": 1, "numbers": endless})


def test_a_request_of_too_many_values_is_refused():
    (message,) = problems_of({"count": 1, "numbers": [0.0] * MAX_VALUES}).values()
    assert message == f"must not bring the request to over {MAX_VALUES} values"


def test_long_names_are_refused():
    assert problems_of({"count": 1, "text": "x" * 1001}) == {
        "text": "must be str of length <= 1000"
    }


@pytest.mark.parametrize("key", ["\ud800", "", 5, None, b"count", ("count",), "x" * 500])
def test_a_key_that_is_no_field_is_refused_whatever_it_is(key):
    (message,) = problems_of({"count": 1, key: 1}).values()
    assert message.startswith("is no field of it")
    with pytest.raises(RequestError, match="there are none"):
        request_of(Nothing, {key: 1}, "probe")


def test_a_key_that_is_too_long_is_told_of_its_map():
    (message,) = problems_of({"count": 1, "parts": {"x" * 2000: {"pos": [0, 0, 0]}}}).values()
    assert message == "must be str of length <= 1000"


def test_what_is_told_of_a_huge_request_is_short():
    given_ = {f"{n}": n for n in range(100_000)} | {"kind": "x" * 10**6, "parts": {"y" * 10**6: 1}}
    with pytest.raises(RequestError) as caught:
        request_of(Probe, given_, "probe")
    assert len(str(caught.value)) < 10_000


class Hostile:
    def __repr__(self):
        raise RuntimeError("no text of mine")


@pytest.mark.parametrize("value", [Hostile(), b"bytes", {1, 2}, 1j, object])
def test_what_json_has_not_is_refused(value):
    assert problems_of({"count": value}) == {"count": "must be a plain value as JSON has them"}
    assert problems_of({"count": 1, "parts": {"a": value}})
    assert problems_of({"count": 1, "parts": {1: value}}) == {"parts": "must have text as keys"}


@pytest.mark.parametrize("value", [5, "text", [], Inner(pos=(0.0, 0.0, 0.0)), Hostile()])
def test_a_request_that_is_no_mapping_is_refused(value):
    assert problems_of(value) == {"request": "must be a mapping or a Probe"}


def test_error_says_operation_field_rule_and_what_was_given():
    with pytest.raises(InvalidArgumentError) as caught:
        request_of(Probe, {"count": "many"}, "probe")
    assert str(caught.value) == "probe: count must be int, got 'many'"
    assert pickle.loads(pickle.dumps(caught.value)).problems == caught.value.problems


def test_shown_is_short_and_can_be_encoded():
    assert shown("\ud800" + "x" * 500).encode()
    assert len(shown("x" * 500)) < 100
    assert shown(10**5000) == "an integer of 16610 bits"
    assert shown(Hostile()) == "<Hostile>"


FIELDS = [field.name for field in msgspec.structs.fields(Probe)]


@settings(deadline=None, max_examples=200)
@given(st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=8), JSON, max_size=6) | JSON)
@example({"count": 1, "numbers": [1e400]})
def test_any_request_is_understood_or_refused_and_what_is_understood_stays_the_same(sent):
    try:
        request = request_of(Probe, sent, "probe")
    except RequestError as error:
        assert error.problems
        assert str(error).encode()
        return
    again = msgspec.json.decode(msgspec.json.encode(request))
    assert request_of(Probe, again, "probe") == request
