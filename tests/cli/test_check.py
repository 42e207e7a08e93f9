"""``mjhost check``."""

from __future__ import annotations

import mujoco
import pytest

import mjhost.cli.check as check_module
from mjhost import models
from mjhost.cli.exits import ExitStatus
from tests.cli.models import EXPLOSIVE, ODD, write


@pytest.mark.slow
@pytest.mark.parametrize("name", models.names())
def test_bundled_model_passes(name, mjhost):
    outcome = mjhost("check", name, "--json")
    assert outcome.status == ExitStatus.OK
    report = outcome.json
    assert report["trial"]["steps"] == 100
    assert report["trial"]["failure"] is None
    assert report["trial"]["realtime_factor"] > 0
    assert report["compiler_warnings"] == report["unusual_options"] == []


@pytest.mark.slow
def test_sizes_and_names_are_those_of_the_model(mjhost):
    report = mjhost("check", "demo", "--json").json
    model = mujoco.MjModel.from_xml_path(str(models.path("demo")))
    assert all(size == getattr(model, name) for name, size in report["sizes"].items())
    assert {"nq", "nv", "nu", "nbody"} <= set(report["sizes"])
    assert report["names"]["actuators"] == [model.actuator(i).name for i in range(model.nu)]
    assert report["timestep"] == model.opt.timestep


def test_unusual_options_are_listed_and_no_reason_to_refuse(mjhost, tmp_path):
    outcome = mjhost("check", str(write(tmp_path, ODD)), "--json")
    assert outcome.status == ExitStatus.OK
    unusual = outcome.json["unusual_options"]
    assert [text.split()[0] for text in unusual] == ["impratio", "timestep"]


def test_divergence_is_status_1_with_report_and_reason(mjhost, tmp_path):
    outcome = mjhost("check", str(write(tmp_path, EXPLOSIVE)), "--json")
    assert outcome.status == ExitStatus.FAILED
    assert "does not survive its trial: the simulation diverged in step 2" in outcome.error
    trial = outcome.json["trial"]
    assert trial["steps"] == 1
    assert "diverged" in trial["failure"]
    assert trial["warnings"] == {"BADQACC": 1}


def test_text_has_one_fact_per_line(mjhost):
    lines = mjhost("check", "pendulum").out.splitlines()
    facts = dict(line.split(maxsplit=1) for line in lines)
    assert facts["joints"] == "hinge"
    assert facts["timestep"] == "0.01 s"
    assert facts["trial"].startswith("100 of 100 steps, all good; ")


def test_model_that_is_too_slow_gets_fewer_steps(mjhost, monkeypatch):
    monkeypatch.setattr(check_module, "_TRIAL_LIMIT_S", 0.0)
    trial = mjhost("check", "humanoid", "--json").json["trial"]
    assert 0 < trial["steps"] < 100
    assert trial["failure"] is None


@pytest.mark.parametrize(
    ("value", "text"), [(1234.0, "1,200"), (99.6, "100"), (3.14, "3.1"), (0.0312, "0.031")]
)
def test_estimate_has_two_digits(value, text):
    assert check_module._two_digits(value) == text
