"""``mjhost doctor``."""

from __future__ import annotations

import mujoco
import pytest

from mjhost.cli import doctor as doctor_module
from mjhost.cli.doctor import (
    Finding,
    Level,
    defect_findings,
    engine_finding,
    fast_finding,
    mismatch_findings,
    numbers,
    python_finding,
    trial_finding,
)
from mjhost.cli.exits import ExitStatus

CHOLESKY, ABORT, CACHE = (defect.text for defect in doctor_module.DEFECTS)


def test_this_machine_is_fit(mjhost):
    outcome = mjhost("doctor", "--json")
    assert outcome.status == ExitStatus.OK
    found = {finding["subject"]: finding for finding in outcome.json}
    assert found["MuJoCo"]["text"].startswith(mujoco.mj_versionString())
    assert found["trial"]["level"] == "ok"
    assert {"Python", "mjhost", "processors", "extra fast"} <= set(found)


def test_table_has_a_line_per_finding(mjhost):
    findings = mjhost("doctor", "--json").json
    assert len(mjhost("doctor").out.splitlines()) == len(findings) + 1


def test_failure_is_status_1_with_the_findings(mjhost, monkeypatch):
    bad = Finding("MuJoCo", Level.FAILURE, "too old")
    monkeypatch.setattr(doctor_module, "engine_finding", lambda _: bad)
    outcome = mjhost("doctor")
    assert outcome.status == ExitStatus.FAILED
    assert "too old" in outcome.out
    assert outcome.error.startswith("mjhost cannot work here")


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ("3.14.9", Level.FAILURE),
        ("3.15.0", Level.OK),
        ("3.16.0", Level.WARNING),
        ("3.17.2", Level.WARNING),
        ("4.0.0", Level.OK),
        ("4.0.3", Level.OK),
        ("4.1.0", Level.FAILURE),
        ("5.0.0", Level.FAILURE),
    ],
)
def test_only_the_tested_engines_are_promised(version, level):
    assert engine_finding(version).level == level


@pytest.mark.parametrize(
    ("version", "defects"),
    [("3.15.0", [ABORT, CACHE]), ("3.17.0", [ABORT, CACHE]), ("4.0.0", [CHOLESKY]), ("4.0.1", [])],
)
def test_each_engine_has_its_defects(version, defects):
    assert [finding.text for finding in defect_findings(version)] == defects


def test_defect_that_is_handled_is_no_warning():
    levels = {finding.text: finding.level for finding in defect_findings("3.15.0")}
    assert levels == {ABORT: Level.WARNING, CACHE: Level.OK}


@pytest.mark.parametrize(
    ("version", "level"),
    [((3, 10), Level.WARNING), ((3, 11), Level.OK), ((3, 13), Level.OK), ((3, 14), Level.WARNING)],
)
def test_only_the_tested_pythons_are_promised(version, level):
    assert python_finding(version).level == level


def test_library_of_another_version_is_a_failure():
    assert list(mismatch_findings("4.0.0", "4.0.0")) == []
    (finding,) = mismatch_findings("4.0.0", "3.15.0")
    assert finding.level == Level.FAILURE


def test_host_that_does_not_work_is_a_failure_with_its_reason():
    def fail():
        raise OSError("no such library\nat all")

    finding = trial_finding(fail)
    assert finding.level == Level.FAILURE
    assert "OSError: no such library; at all" in finding.text


def test_missing_extra_is_named_and_no_warning():
    assert fast_finding({"numba": "1", "llvmlite": "2"}.get).text == "numba 1, llvmlite 2"
    without = fast_finding({"numba": "1"}.get)
    assert without.level == Level.OK
    assert "llvmlite" in without.text


@pytest.mark.parametrize(
    ("text", "parts"), [("4.0.1", (4, 0, 1)), ("4.0.1rc2", (4, 0, 1)), ("3.15", (3, 15))]
)
def test_numbers_of_a_version(text, parts):
    assert numbers(text) == parts
