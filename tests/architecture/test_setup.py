"""The set-up: which Python is chosen, what is said when there is none, and what is installed."""

from __future__ import annotations

import re
import subprocess
import tomllib

import pytest

from tests.architecture.source import ROOT

PICK = ROOT / "tools" / "pick_python.sh"

FAKE = """#!/bin/sh
case "$2" in
    *ensurepip*) exit {without_venv} ;;
    *sys.exit*) exit {unsupported} ;;
    *) echo {version} ;;
esac
"""


def _fake_python(directory, name, *, version="3.11", unsupported=0, without_venv=0):
    file = directory / name
    file.write_text(
        FAKE.format(version=version, unsupported=unsupported, without_venv=without_venv)
    )
    file.chmod(0o755)


def _pick(directory, *names) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", str(PICK), *names],
        env={"PATH": str(directory)},
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )


def test_newest_suitable_python_is_picked(tmp_path):
    _fake_python(tmp_path, "python3")
    _fake_python(tmp_path, "python3.11")
    _fake_python(tmp_path, "python3.12")
    _fake_python(tmp_path, "python3.13", unsupported=1)
    assert _pick(tmp_path).stdout.strip() == str(tmp_path / "python3.12")


def test_python_without_venv_is_passed_over_for_one_with(tmp_path):
    _fake_python(tmp_path, "python3.12", without_venv=1)
    _fake_python(tmp_path, "python3.11")
    assert _pick(tmp_path).stdout.strip() == str(tmp_path / "python3.11")


def test_named_python_is_the_only_candidate(tmp_path):
    _fake_python(tmp_path, "python3.13")
    _fake_python(tmp_path, "mine")
    assert _pick(tmp_path, "mine").stdout.strip() == str(tmp_path / "mine")


def test_missing_venv_module_is_named_with_its_package(tmp_path):
    _fake_python(tmp_path, "python3", version="3.12", without_venv=1)
    result = _pick(tmp_path)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert "python3.12-venv" in result.stderr


@pytest.mark.parametrize("old", [True, False])
def test_missing_python_is_named_in_one_line(tmp_path, old):
    if old:
        _fake_python(tmp_path, "python3", unsupported=1)
    result = _pick(tmp_path)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert "no Python 3.11 to 3.13 found" in result.stderr


def test_supported_pythons_are_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    classified = {c.rsplit(" ", 1)[1] for c in project["classifiers"] if ":: 3." in c}
    candidates = set(re.findall(r"python(3\.\d+)\b", PICK.read_text().split("missing=")[0]))
    assert classified == candidates
    assert project["requires-python"] == ">=" + min(classified)


def test_every_verb_of_the_makefile_is_phony_and_described():
    text = (ROOT / "Makefile").read_text()
    described = set(re.findall(r"^([a-z-]+):.*## ", text, re.MULTILINE))
    phony = set(" ".join(re.findall(r"^\.PHONY:(.*)$", text, re.MULTILINE)).split())
    wanted = {"run", "test", "test-all", "test-slow", "lint", "type", "docs", "bench", "check"}
    assert wanted <= described <= phony
