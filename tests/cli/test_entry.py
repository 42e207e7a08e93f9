"""The entry point before and without the engine, and the façade that makes it possible."""

from __future__ import annotations

import ast
import importlib
import json
import os
import signal
import subprocess
import sys

import pytest

import mjhost
from mjhost.cli.exits import ExitStatus
from tests.architecture.source import PACKAGE
from tests.cli.process import START

HEAVY = "{'mujoco', 'numpy', 'msgspec', 'typer', 'yaml'}"


def _python(code: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent), **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_every_name_of_the_facade_is_the_one_of_its_home():
    for name in mjhost.__all__:
        home = importlib.import_module(mjhost._HOME_OF[name])
        assert getattr(mjhost, name) is getattr(home, name)


def test_facade_lists_its_names_and_no_others():
    assert set(mjhost._HOME_OF) == set(mjhost.__all__)
    assert {*mjhost.__all__, "models", "__version__"} <= set(dir(mjhost))


def test_type_checkers_see_the_names_that_the_interpreter_finds():
    text = (PACKAGE / "__init__.py").read_text("utf-8")
    tree = ast.parse(text)
    (guarded,) = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
    ]
    seen = {alias.name: node.module for node in guarded.body for alias in node.names}
    assert seen == dict(mjhost._HOME_OF)


def test_unknown_name_of_the_facade_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'MujocoEnw'"):
        mjhost.MujocoEnw  # noqa: B018 - asking is the test


@pytest.mark.parametrize("module", ["mjhost", "mjhost.cli.main"])
def test_light_modules_import_nothing_heavy(module):
    result = _python(f"import sys, {module}; print(*{HEAVY} & set(sys.modules))")
    assert (result.returncode, result.stdout.split()) == (0, [])


@pytest.mark.slow
@pytest.mark.parametrize("words", [("run", "demo"), ("--version",), ("check", "demo")])
def test_engine_that_cannot_be_imported_is_one_line(words):
    result = _python(START, *words, MUJOCO_GL="bogus")
    assert (result.returncode, result.stdout) == (ExitStatus.FAILED, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("mjhost: error: the engine cannot be imported: RuntimeError: ")
    assert "MUJOCO_GL" in line


@pytest.mark.slow
def test_engine_that_cannot_be_imported_has_its_traceback_with_debug():
    result = _python(START, "run", "demo", "--debug", MUJOCO_GL="bogus")
    assert result.stderr.startswith("Traceback")
    assert result.stderr.splitlines()[-1].startswith("mjhost: error: the engine")


@pytest.mark.slow
def test_doctor_finds_an_engine_that_cannot_be_imported():
    result = _python(START, "doctor", "--json", MUJOCO_GL="bogus")
    assert result.returncode == ExitStatus.FAILED
    assert len(result.stderr.splitlines()) == 1
    found = {finding["subject"]: finding for finding in json.loads(result.stdout)}
    assert found["MuJoCo"]["level"] == "failure"
    assert "MUJOCO_GL: bogus" in found["MuJoCo"]["text"]
    assert found["MUJOCO_GL"]["text"] == "'bogus'"


def test_interrupt_while_the_engine_is_imported_is_status_130_and_silent():
    code = (
        "import sys, types; sys.meta_path.insert(0, types.SimpleNamespace(find_spec="
        "lambda name, *_: exec('raise KeyboardInterrupt') if name == 'mujoco' else None)); " + START
    )
    result = _python(code, "run", "demo")
    assert (result.returncode, result.stdout, result.stderr) == (ExitStatus.INTERRUPTED, "", "")


def test_interrupt_that_an_extension_would_swallow_ends_the_process_all_the_same():
    code = (
        "import contextlib, signal, sys, types\n"
        "def find_spec(name, *_):\n"
        "    if name == 'mujoco':\n"
        "        with contextlib.suppress(KeyboardInterrupt):\n"
        "            signal.raise_signal(signal.SIGINT)\n"
        "        raise ImportError('initialization failed')\n"
        "sys.meta_path.insert(0, types.SimpleNamespace(find_spec=find_spec))\n" + START
    )
    result = _python(code, "run", "demo")
    assert (result.returncode, result.stdout, result.stderr) == (ExitStatus.INTERRUPTED, "", "")


def test_interrupts_have_their_handler_back_once_the_engine_is_there(mjhost):
    before = signal.getsignal(signal.SIGINT)
    mjhost("--version")
    assert signal.getsignal(signal.SIGINT) is before
