"""Errors, statuses and help: what all commands have in common."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import mjhost.cli.check as check_module
from mjhost.cli.app import app
from mjhost.cli.exits import MEANINGS, ExitStatus
from tests.architecture.source import PACKAGE, ROOT
from tests.cli.models import BROKEN, write
from tests.cli.process import START

COMMANDS = ["run", "demo", "plugins", "check", "options", "operations", "doctor"]

USAGE = [
    (["rnu", "demo"], "did you mean 'run'"),
    (["run"], "missing argument 'MODEL'"),
    (["run", "demo", "--bogus"], "--bogus"),
    (["run", ""], "must be a path or the name of a bundled model, got ''"),
    (["check", " "], "must be a path"),
    (["run", "demo", "--steps", "0"], "'--steps': must be at least 1, got '0' (see"),
    (["run", "demo", "--steps", "1.5"], "'--steps': must be an integer, got '1.5' (see"),
    (["run", "demo", "--seconds", "x"], "'--seconds': must be a number, got 'x' (see"),
    (["run", "demo", "--seconds", "0"], "above 0"),
    (["run", "demo", "--seconds", "nan"], "above 0"),
    (["run", "demo", "--realtime", "-1"], "real-time factor"),
    (["run", "demo", "--realtime", "nan"], "real-time factor"),
    (["run", "demo", "--on-fault", "no"], "'--on-fault': 'no' is not one of 'pause', 'exit' (see"),
    (["run", "demo", "--option", "gravity"], "NAME=VALUE, got 'gravity'"),
    (["options", "-o", "=1", "-o", "x"], "'=1', 'x'"),
]


@pytest.mark.parametrize(("words", "said"), USAGE, ids=lambda value: " ".join(value)[:40])
def test_wrong_words_are_status_2_and_one_line(words, said, mjhost):
    outcome = mjhost(*words)
    assert outcome.status == ExitStatus.USAGE
    assert said in outcome.error.replace("Did", "did")
    assert outcome.out == ""
    assert len(outcome.err.splitlines()) == 1


def test_wrong_words_name_the_help_of_the_command(mjhost):
    assert mjhost("check").error.endswith("(see mjhost check --help)")


@pytest.mark.parametrize("command", ["run", "check", "options"])
def test_unknown_model_is_status_1_and_names_the_near_ones(command, mjhost):
    outcome = mjhost(command, "humanoit")
    assert outcome.status == ExitStatus.FAILED
    assert "did you mean 'humanoid'?" in outcome.error


@pytest.mark.parametrize("command", ["run", "check", "options"])
def test_broken_model_is_status_1_and_one_line(command, mjhost, tmp_path):
    outcome = mjhost(command, str(write(tmp_path, BROKEN)))
    assert outcome.status == ExitStatus.FAILED
    assert "does not compile" in outcome.error
    assert "Traceback" not in outcome.err
    assert outcome.out == ""


def test_missing_file_is_status_1_and_names_what_is_there(mjhost, tmp_path):
    write(tmp_path, BROKEN, "robot.xml")
    assert "'robot.xml'" in mjhost("check", str(tmp_path / "robt.xml")).error


def test_file_is_taken_before_the_bundled_model_of_that_name(mjhost, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, BROKEN, "demo")
    assert "a model file ends in" in mjhost("check", "demo").error


def test_debug_shows_the_traceback_before_the_line(mjhost):
    outcome = mjhost("check", "nothing.xml", "--debug")
    assert outcome.err.startswith("Traceback")
    assert "does not exist" in outcome.error


def test_unknown_option_names_where_they_are_listed(mjhost):
    assert mjhost("run", "demo", "-o", "iteratons=3").error.endswith("; see mjhost options")
    assert mjhost("options", "-o", "iteratons=3").out.rstrip().endswith("; see mjhost options")
    assert "see mjhost options" not in mjhost("run", "demo", "-o", "timestep=x").error


def test_unforeseen_exception_is_one_line_and_status_1(mjhost, monkeypatch):
    def fail(_):
        raise ZeroDivisionError("line one\nline two")

    monkeypatch.setattr(check_module, "model_path", fail)
    outcome = mjhost("check", "demo")
    assert outcome.status == ExitStatus.FAILED
    assert outcome.error == "ZeroDivisionError: line one; line two (--debug shows where)"
    assert len(outcome.err.splitlines()) == 1


def test_interrupt_outside_a_run_is_status_130(mjhost, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(check_module, "model_path", interrupt)
    outcome = mjhost("check", "demo")
    assert outcome == (ExitStatus.INTERRUPTED, "", "")


def test_no_arguments_show_the_help_of_all_commands(mjhost):
    outcome = mjhost()
    assert outcome.status == ExitStatus.OK
    assert all(re.search(rf"\b{command}\b", outcome.out) for command in COMMANDS)


def test_version_names_all_three(mjhost):
    outcome = mjhost("--version")
    assert outcome.status == ExitStatus.OK
    assert re.fullmatch(r"mjhost \d\S*, MuJoCo \d\S*, Python \d\S*\n", outcome.out)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_and_every_exit_status(command):
    result = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}, color=False)
    assert result.exit_code == 0
    assert f"mjhost {command}" in result.output
    for status, meaning in MEANINGS.items():
        assert f"{status.value}: {meaning}" in result.output


def test_docs_explain_every_command_flag_and_exit_status():
    page = (ROOT / "docs" / "cli.md").read_text("utf-8")
    for command in COMMANDS:
        help_text = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
        assert f"mjhost {command}" in page
        missing = [flag for flag in re.findall(r"--[a-z-]+", help_text) if f"`{flag}" not in page]
        assert set(missing) <= {"--help"}
    for status in MEANINGS:
        assert f"| {status.value} |" in page


def _complete(words: str) -> list[str]:
    """What bash would offer for the last of ``words``."""
    result = subprocess.run(
        [sys.executable, "-c", START],
        env={
            **os.environ,
            "PYTHONPATH": str(PACKAGE.parent),
            "_MJHOST_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return result.stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("mjhost ru", ["run"]),
        ("mjhost run hu", ["humanoid"]),
        ("mjhost run demo --on", ["--on-fault"]),
        ("mjhost run demo --option noslip_i", ["noslip_iterations="]),
        ("mjhost run demo --option cone=", ["cone=pyramidal", "cone=elliptic"]),
    ],
)
def test_shell_completion_offers(words, offered):
    assert _complete(words) == offered
