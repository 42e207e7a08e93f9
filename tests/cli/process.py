"""``mjhost`` in a process of its own: with pipes, or on a terminal with somebody in front."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time

from tests.architecture.source import PACKAGE

START = "import sys; from mjhost.cli.main import main; sys.exit(main())"
# What a shell does for its foreground job: the terminal becomes the one that Ctrl-C belongs to.
START_ON_TERMINAL = f"import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); {START}"
# A shell in miniature: it has a terminal and one job, and says how the terminal is whenever the
# job stops; a line of input puts the job into the foreground again.
SHELL = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.executable, [sys.executable, "-c", sys.argv[1], *sys.argv[2:]])
while True:
    _, status = os.waitpid(job, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        sys.exit(os.waitstatus_to_exitcode(status))
    os.tcsetpgrp(0, os.getpid())
    cooked = bool(termios.tcgetattr(0)[3] & termios.ICANON)
    print(f"STOPPED cooked={cooked}", flush=True)
    input()
    os.tcsetpgrp(0, job)
    os.kill(job, signal.SIGCONT)
"""
LIMIT_S = 60.0


def environment(**changes: str) -> dict[str, str]:
    clean = {key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "COLUMNS"}}
    return {**clean, "PYTHONPATH": str(PACKAGE.parent), "TERM": "xterm", **changes}


def mjhost(*words: str, **how) -> subprocess.CompletedProcess[str]:
    """Runs to its end, without a terminal."""
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | how
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", START, *words],
        stdin=subprocess.DEVNULL,
        env=environment(),
        text=True,
        timeout=LIMIT_S,
        check=False,
        **how,
    )


class Background:
    """A process without a terminal that is talked to by signals; a context manager."""

    def __init__(self, *words: str, cwd=None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", START, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            cwd=cwd,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(LIMIT_S)
        self.process.stdout.close()
        self.process.stderr.close()

    def wait_for(self, text: str) -> str:
        """Reads stderr until ``text`` was there; returns all of it."""
        return _read_until(self.process.stderr.fileno(), text, "")

    def finish(self) -> tuple[int, str, str]:
        """Status, stdout and the rest of stderr."""
        out, err = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, out.decode(), err.decode()


class Terminal:
    """A process whose three streams are a terminal of its own; a context manager."""

    def __init__(self, *words: str, start: str = START_ON_TERMINAL, columns=120, **env) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.process = subprocess.Popen(
            [sys.executable, "-c", start, *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment(**env),
            start_new_session=True,
        )
        # Kept open: a terminal that nobody has open loses its mode.
        self.slave = slave
        self.screen = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(LIMIT_S)
        os.close(self.master)
        os.close(self.slave)

    @property
    def mode(self):
        return termios.tcgetattr(self.slave)

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def wait_for(self, text: str) -> str:
        """Reads until ``text`` appears in what was written since the last call."""
        seen = _read_until(self.master, text, self.screen)
        found, _, self.screen = seen.partition(text)
        return found + text

    def finish(self) -> tuple[int, str]:
        """Status, and what was written since the last ``wait_for``."""
        deadline = time.monotonic() + LIMIT_S
        while self.process.poll() is None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"still running after {LIMIT_S} s: {self.screen!r}")
            self.screen += _read(self.master, 0.05)
        while more := _read(self.master, 0.0):
            self.screen += more
        return self.process.returncode, self.screen


def _read(fd: int, timeout_s: float) -> str:
    ready, _, _ = select.select([fd], [], [], timeout_s)
    return os.read(fd, 65536).decode() if ready else ""


def _read_until(fd: int, text: str, seen: str) -> str:
    deadline = time.monotonic() + LIMIT_S
    while text not in seen:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"no {text!r} within {LIMIT_S} s in {seen!r}")
        more = _read(fd, left)
        if not more and select.select([fd], [], [], 0)[0]:
            raise EOFError(f"the process ended without {text!r}: {seen!r}")
        seen += more
    return seen
