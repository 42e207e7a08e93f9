"""``mjhost operations``."""

from __future__ import annotations

import pytest

from mjhost.cli.exits import ExitStatus
from mjhost.operations import OPERATIONS


def test_list_has_every_operation_and_marks_what_changes_something(mjhost):
    outcome = mjhost("operations")
    assert outcome.status == ExitStatus.OK
    rows = [line.split(None, 2) for line in outcome.out.splitlines()[1:]]
    assert [row[0] for row in rows] == list(OPERATIONS)
    starred = {row[0] for row in rows if row[1] == "*"}
    assert starred == {name for name, spec in OPERATIONS.items() if spec.mutating}


def test_json_has_fields_and_schema_of_each(mjhost):
    rows = mjhost("operations", "--json").json
    assert [row["name"] for row in rows] == list(OPERATIONS)
    (step,) = [row for row in rows if row["name"] == "step"]
    assert step["mutating"]
    assert step["request"]["fields"][0]["unit"] == "1"
    assert step["request_schema"]["$defs"]["Step"]["properties"]["n"]["minimum"] == 1
    assert mjhost("operations", "step", "--json").json == step


@pytest.mark.parametrize("name", OPERATIONS)
def test_one_operation_shows_every_field(mjhost, name):
    out = mjhost("operations", name).out
    spec = OPERATIONS[name]
    assert out.startswith(f"{name}: {spec.summary}\n")
    words = out.split()
    assert set(spec.request.__struct_fields__) <= set(words)
    assert set(spec.response.__struct_fields__) <= set(words)


def test_an_unknown_operation_lists_the_near_ones(mjhost):
    outcome = mjhost("operations", "stpe")
    assert outcome.status == ExitStatus.FAILED
    assert outcome.error == "no operation is named 'stpe'; did you mean 'step'?"
