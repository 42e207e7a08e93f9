"""The table against the env: nothing is missing, nothing is told twice, everything is described."""

from __future__ import annotations

import inspect
import re
from typing import Annotated

import msgspec
import pytest
from msgspec import inspect as kinds

from mjhost import InvalidArgumentError, MujocoEnv
from mjhost.env.phases import Operation
from mjhost.env.vocabulary import WORDS, operation_of
from mjhost.operations import NOT_OFFERED, OPERATIONS, Request, Response
from mjhost.operations.fields import Done, Nothing, about, facts_of
from mjhost.operations.kinds import type_words
from mjhost.operations.schema import operation_row, parts_of
from mjhost.operations.spec import described

SPECS = list(OPERATIONS.values())
DIRECTED = {
    "pos", "quat", "linear", "angular", "force", "torque", "point", "gravity", "wind",
    "magnetic", "com", "anchor", "relpos", "relquat",
}  # fmt: skip


def _public_members() -> set[str]:
    return {name for name in dir(MujocoEnv) if not name.startswith("_")}


def _records(spec) -> list[type[msgspec.Struct]]:
    return [spec.request, spec.response, *parts_of(spec)]


RECORDS = sorted({r for spec in SPECS for r in _records(spec)}, key=lambda r: r.__name__)


def _holds_numbers(kind: kinds.Type) -> bool:
    match kind:
        case kinds.IntType() | kinds.FloatType():
            return True
        case kinds.Metadata():
            return _holds_numbers(kind.type)
        case kinds.UnionType():
            return any(map(_holds_numbers, kind.types))
        case kinds.TupleType():
            return any(map(_holds_numbers, kind.item_types))
        case kinds.VarTupleType() | kinds.ListType():
            return _holds_numbers(kind.item_type)
        case kinds.DictType():
            return _holds_numbers(kind.value_type)
    return False


def test_every_member_of_the_env_is_offered_or_has_a_reason_not_to_be():
    offered = {member for spec in SPECS for member in spec.members}
    assert offered | set(NOT_OFFERED) == _public_members()
    assert not offered & set(NOT_OFFERED)


def test_every_operation_is_a_word_that_authorize_knows():
    with MujocoEnv(eval_token="token") as env:
        for name in OPERATIONS:
            env.authorize(name, "token")


def test_every_word_beside_the_operations_of_the_env_is_in_the_table():
    assert set(WORDS) - {operation.value for operation in Operation} <= set(OPERATIONS)


def test_name_and_flag_of_an_operation_are_those_of_the_vocabulary():
    for name, spec in OPERATIONS.items():
        assert spec.name == name
        assert spec.asks is WORDS[name]
        assert spec.mutating is operation_of(name).mutating


def test_an_operation_named_like_one_of_the_env_is_that_one():
    for operation in Operation:
        assert WORDS[operation.value] is operation


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_operation_is_one_sentence_and_two_records(spec):
    assert re.fullmatch(r"[A-Z][^\n]*[^.]\.", spec.summary)
    assert ". " not in spec.summary
    assert issubclass(spec.request, Request)
    assert issubclass(spec.response, Response)
    assert spec.request.__struct_config__.frozen
    assert spec.request.__struct_config__.forbid_unknown_fields
    assert spec.response.__struct_config__.frozen


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_operation_has_json_schema_with_units(spec):
    row = operation_row(spec)
    assert msgspec.json.decode(msgspec.json.encode(row))["name"] == spec.name
    for record, schema in (
        (spec.request, row.request_schema),
        (spec.response, row.response_schema),
    ):
        properties = schema["$defs"][record.__name__]["properties"]
        for field in msgspec.structs.fields(record):
            facts = facts_of(field.type)
            told = properties[field.name]
            assert told["description"] == facts.description
            assert told.get("x-unit", "") == facts.unit
            assert told.get("x-frame", "") == facts.frame


def test_records_with_one_name_are_one_record():
    records = {record for spec in SPECS for record in _records(spec)}
    assert len({record.__name__ for record in records}) == len(records)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_fields_are_described_with_unit_and_frame(record):
    assert record.__doc__
    for field in msgspec.structs.fields(record):
        facts = facts_of(field.type)
        assert facts.description, field.name
        assert not facts.description.endswith("."), field.name
        assert bool(facts.unit) == _holds_numbers(kinds.type_info(field.type)), field.name
        assert facts.frame or field.name not in DIRECTED, field.name


def test_operations_are_listed_group_by_group():
    groups = [spec.group for spec in SPECS]
    assert len([1 for i, group in enumerate(groups) if group not in groups[:i]]) == len(
        [1 for before, group in zip([None, *groups], groups, strict=False) if before != group]
    )


def test_a_function_without_records_is_no_operation():
    def step(site, request: int) -> Done:
        """Takes a number."""

    def pause(site) -> int:
        """Gives a number."""

    for function in (step, pause):
        with pytest.raises(InvalidArgumentError, match="must take a Request and return a Response"):
            described("Group", function)


def test_a_function_that_is_no_word_is_no_operation():
    def dance(site, request: Nothing) -> Done:
        """Dances."""

    with pytest.raises(LookupError, match="no operation is named 'dance'"):
        described("Group", dance)


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (int, "integer"),
        (Annotated[float, msgspec.Meta(ge=0)] | None, "number >= 0 or null"),
        (tuple[float, float, float], "list of 3: number"),
        (tuple[tuple[float | None, ...], ...], "list of (list of (number or null))"),
        (dict[str, list[int]], "map of names to (list of integer)"),
        (Annotated[bool, about("x")], "bool"),
    ],
)
def test_types_in_words(annotation, words):
    assert type_words(annotation) == words


def test_what_about_says_is_read_back():
    facts = facts_of(Annotated[float, about("where it is", "m", frame="world", shape="(3,)")])
    assert (facts.description, facts.unit) == ("where it is", "m")
    assert (facts.frame, facts.shape) == ("world", "(3,)")
    assert facts_of(float).description == ""


def test_only_the_docstring_says_what_an_operation_does():
    for spec in SPECS:
        assert spec.summary in " ".join((inspect.getdoc(spec.perform) or spec.summary).split())
