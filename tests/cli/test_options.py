"""``mjhost options``."""

from __future__ import annotations

import pytest

from mjhost import models
from mjhost.cli.exits import ExitStatus
from mjhost.cli.options import shown
from mjhost.env import MujocoEnv
from mjhost.options import RuntimeOptionInput, descriptors, parse_runtime_options_patch


def test_table_has_every_field_of_the_engine(mjhost):
    outcome = mjhost("options")
    assert outcome.status == ExitStatus.OK
    header, *rows = outcome.out.splitlines()
    assert header.split() == ["FIELD", "TYPE", "DEFAULT", "HELP"]
    assert [row.split()[0] for row in rows] == [field.name for field in descriptors()]


def test_json_table_has_what_the_descriptors_have(mjhost):
    rows = mjhost("options", "--json").json
    assert [row["name"] for row in rows] == [field.name for field in descriptors()]
    (solver,) = [row for row in rows if row["name"] == "solver"]
    assert solver["choices"] == ["PGS", "CG", "Newton"]
    assert "value" not in solver


def test_model_shows_its_values_and_marks_what_differs(mjhost):
    rows = {row["name"]: row for row in mjhost("options", "humanoid", "--json").json}
    with MujocoEnv(models.path("humanoid")) as env:
        live = env.runtime_options.as_dict()
    assert {name: row["value"] for name, row in rows.items()} == live
    assert {name for name, row in rows.items() if row["changed"]} == {
        field.name for field in descriptors() if live[field.name] != rows[field.name]["default"]
    }
    starred = [line.split()[0] for line in mjhost("options", "humanoid").out.splitlines()[1:]
               if line.split()[1] == "*"]  # fmt: skip
    assert starred == [name for name, row in rows.items() if row["changed"]]
    assert "timestep" in starred


def test_accepted_patch_is_shown_and_status_0(mjhost):
    outcome = mjhost("options", "humanoid", "-o", "solver=cg", "-o", "iterations=30", "--json")
    assert outcome.status == ExitStatus.OK
    report = outcome.json
    assert report["accepted"]
    assert report["changed"]["solver"] == {"old": "Newton", "new": "CG"}
    assert report["changed"]["iterations"]["new"] == 30


def test_rejected_patch_shows_every_problem_and_is_status_1(mjhost):
    words = ("options", "humanoid", "-o", "solver=foo", "-o", "iterations=30", "-o", "ls_tol=9")
    report = mjhost(*words, "--json").json
    assert not report["accepted"]
    assert {error["field"] for error in report["errors"]} == {"solver", "ls_tolerance"}
    assert report["changed"] == {}
    outcome = mjhost(*words)
    assert outcome.status == ExitStatus.FAILED
    assert outcome.out.startswith("rejected by humanoid, nothing would change:")
    assert len(outcome.out.splitlines()) == 3


def test_patch_without_a_model_is_tried_on_the_defaults(mjhost):
    outcome = mjhost("options", "-o", "ipc=true")
    assert outcome.status == ExitStatus.FAILED
    assert "ipc needs the integrator discrete" in outcome.out


def test_patch_that_depends_on_the_model_is_judged_on_the_model(mjhost, tmp_path):
    path = tmp_path / "discrete.xml"
    path.write_text("<mujoco><option integrator='discrete' solver='CG'/><worldbody/></mujoco>")
    assert mjhost("options", str(path), "-o", "ipc=true").status == ExitStatus.OK


@pytest.mark.parametrize("field", descriptors(), ids=lambda field: field.name)
def test_shown_default_can_be_typed_again(field):
    typed = RuntimeOptionInput(field.name, shown(field.default))
    assert dict(parse_runtime_options_patch([typed]).items()) == {field.name: field.default}
