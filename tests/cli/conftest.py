"""The command line inside the test process."""

from __future__ import annotations

import json
import signal
from typing import NamedTuple

import pytest

from mjhost.cli.main import main


class Outcome(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """The one line of the error."""
        (line,) = [line for line in self.err.splitlines() if line.startswith("mjhost: error: ")]
        return line.removeprefix("mjhost: error: ")


@pytest.fixture(autouse=True)
def _hang_up_is_heard():
    """Children inherit what is ignored: a suite run under nohup would test something else."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def mjhost(capsys):
    """Runs the command line in this process, without a terminal."""

    def call(*words: str) -> Outcome:
        capsys.readouterr()
        status = main(list(words))
        return Outcome(int(status), *capsys.readouterr())

    return call
