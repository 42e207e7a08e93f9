"""The guard of tests/conftest.py: each thing a test can leave behind is found and named."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tests.architecture.source import PACKAGE, TESTS

OFFENDERS = """
import ctypes, os, signal, sys, threading
import mujoco
import pytest
from conftest import SYMBOLS
from mjhost.env.environment import MujocoEnv


def test_leaves_nothing():
    thread = threading.Thread(target=int)
    thread.start()


def test_leaves_python_callback():
    mujoco.set_mjcb_control(lambda m, d: None)


def test_leaves_bare_pointer():
    some_function = ctypes.pythonapi.Py_IsInitialized
    SYMBOLS["mjcb_passive"].value = ctypes.cast(some_function, ctypes.c_void_p).value


def test_leaves_thread():
    wait = threading.Event().wait
    threading.Thread(target=wait, args=(60,), name="forgotten", daemon=True).start()


def test_leaves_engine_log():
    open("MUJOCO_LOG.TXT", "w").close()


def test_leaves_directory(tmp_path):
    os.chdir(tmp_path)


def test_leaves_unraisable_hook():
    sys.unraisablehook = lambda u: None


def test_leaves_signal_handler():
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@pytest.mark.parametrize("close", [True, False])
def test_leaves_open_env(close):
    global kept
    kept = MujocoEnv()
    if close:
        kept.close()
"""

NAMED = {
    "test_leaves_python_callback": "get_mjcb_control was None",
    "test_leaves_bare_pointer": "mjcb_passive was None",
    "test_leaves_thread": "forgotten",
    "test_leaves_engine_log": "file left behind: MUJOCO_LOG.TXT",
    "test_leaves_directory": "the working directory",
    "test_leaves_unraisable_hook": "sys.unraisablehook",
    "test_leaves_signal_handler": "the SIGINT handler",
    "test_leaves_open_env[False]": "env left open",
}


@pytest.mark.slow
def test_guard_names_whatever_a_test_leaves_behind(tmp_path):
    shutil.copy(TESTS / "conftest.py", tmp_path)
    (tmp_path / "test_offenders.py").write_text(OFFENDERS, encoding="utf-8")
    result = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-rA",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:randomly",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{PACKAGE.parent}{os.pathsep}{tmp_path}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    errors = {
        line.split("::")[1].split(" - ")[0]: line
        for line in result.stdout.splitlines()
        if line.startswith("ERROR test_offenders.py::")
    }
    assert set(errors) == set(NAMED), result.stdout
    for test, words in NAMED.items():
        section = result.stdout.split(f"ERROR at teardown of {test} ")[1].split("\n____")[0]
        assert words in section
