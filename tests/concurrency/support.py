"""Threads that hand over what they caught, and measurements that survive a busy machine."""

from __future__ import annotations

import faulthandler
import sys
import threading
import time

import pytest

WINDOWS = 3
LIMIT_S = 40.0


class Crew:
    """Threads of one test; ``join`` fails with every stack if one of them hangs."""

    def __init__(self):
        self.errors = []
        self._threads = []

    def start(self, *functions):
        for function in functions:
            thread = threading.Thread(target=self._guarded, args=(function,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _guarded(self, function):
        try:
            function()
        except BaseException as error:
            self.errors.append(error)

    def join(self, limit_s=LIMIT_S):
        """Waits for all and raises the first error of any."""
        deadline = time.monotonic() + limit_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if any(thread.is_alive() for thread in self._threads):
            faulthandler.dump_traceback(file=sys.stderr)
            pytest.fail(f"a thread hung for {limit_s} s")
        if self.errors:
            raise self.errors[0]


def together(*functions, limit_s=LIMIT_S):
    """Runs the functions in one thread each, to the end."""
    crew = Crew()
    crew.start(*functions)
    crew.join(limit_s)


def any_window(measure):
    """Demands one good window of three; ``measure`` returns a list of problems.

    A machine that is busy for a second says nothing about what is measured.
    """
    seen = []
    for _ in range(WINDOWS):
        problems = measure()
        if not problems:
            return
        seen.append(problems)
    pytest.fail(f"no window of {WINDOWS} was good: {seen}")
