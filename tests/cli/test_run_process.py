"""``mjhost run`` as a process: signals, pipes, closed streams, the working directory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.process import START, Background, environment, mjhost

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_ends_a_run_with_its_summary(number, tmp_path):
    with Background("run", "demo", "--json", cwd=tmp_path) as background:
        background.wait_for("hosting")
        background.process.send_signal(number)
        status, out, err = background.finish()
    assert (status, err) == (0, "")
    record = json.loads(out)
    assert record["ended_by"] == "signal"
    assert record["factor"]["target"] == 1.0
    assert list(tmp_path.iterdir()) == []


def test_hang_up_is_ignored_under_nohup():
    words = ["-W", "error", "-c", START, "run", "pendulum", "--seconds", "1"]
    script = "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN)"
    launcher = f"{script}; os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    with subprocess.Popen(
        [sys.executable, "-c", launcher, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
    ) as process:
        assert "hosting" in process.stderr.readline()
        process.send_signal(signal.SIGHUP)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "ended by limit" in out


def test_closed_reader_ends_a_listing_quietly():
    reader, writer = os.pipe()
    os.close(reader)
    try:
        result = mjhost("options", stdout=writer)
    finally:
        os.close(writer)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("--help",), ("run", "--help")])
def test_closed_reader_of_a_help_text_is_no_failure(words):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        result = mjhost(*words, stdout=writer)
    finally:
        os.close(writer)
    assert (result.returncode, result.stderr) == (0, "")


def test_closed_reader_does_not_change_the_status_of_a_run(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        result = mjhost("run", "pendulum", "--steps", "5", stdout=writer)
    finally:
        os.close(writer)
    assert result.returncode == 0
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("words", [["options"], ["run", "pendulum", "--steps", "3"]])
def test_full_disk_is_one_error_line(words):
    with Path("/dev/full").open("w") as full:
        result = mjhost(*words, stdout=full)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith("mjhost: error: [Errno 28]")
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(("model", "status"), [("pendulum", 0), ("no-such-model", 1)])
def test_streams_that_do_not_exist_are_no_error(model, status):
    script = 'exec "$0" -c "$1" run "$2" --steps 3 <&- >&- 2>&-'
    result = subprocess.run(
        ["sh", "-c", script, sys.executable, START, model],
        env=environment(),
        timeout=60,
        check=False,
    )
    assert result.returncode == status


def test_module_is_the_command():
    result = subprocess.run(
        [sys.executable, "-m", "mjhost.cli", "--version"],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert result.stdout.startswith("mjhost ")
