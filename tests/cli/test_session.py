"""The session behind ``mjhost run``, without a process or a terminal of its own."""

from __future__ import annotations

import io
import select
import signal
import threading

import pytest

import mjhost.cli.session as session_module
from mjhost import models
from mjhost.cli.reloads import Reloads
from mjhost.cli.session import KEYS, Plan, Session
from mjhost.cli.status import End
from mjhost.cli.terminal import StatusLine
from mjhost.env import MujocoEnv
from mjhost.errors import DivergenceError, LoadingWindowError
from tests.cli.models import EXPLOSIVE, write


class Typist:
    """A keyboard on which one key is pressed per turn of the loop."""

    def __init__(self, keys: str) -> None:
        self.keys = iter(keys)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def read(self, timeout_s: float) -> str:
        return next(self.keys, "")


@pytest.fixture
def env():
    with MujocoEnv(models.path("pendulum"), realtime=None) as env:
        yield env


def _run(env, keys, **plan):
    line = StatusLine(io.StringIO(), live=False)
    return Session(env, Plan(paused=True, **plan), line, Typist(keys)).run()


def test_every_key_that_is_told_is_understood(env):
    session = Session(env, Plan(), StatusLine(None, live=False), None)
    told = {part.split()[0].replace("space", " ") for part in KEYS.split(", ")}
    assert told == set(session._actions)
    session._reloads.abandon()


def test_steps_by_key_are_counted(env):
    record = _run(env, "...q")
    assert (record.steps, record.ended_by) == (3, End.QUIT)


def test_steps_before_a_reset_are_counted_too(env):
    record = _run(env, "...r.q")
    assert record.steps == 4
    assert record.sim_time == pytest.approx(0.01)
    assert record.session_time == pytest.approx(0.04)


def test_keys_that_mean_nothing_do_nothing(env):
    assert _run(env, "xyzQ\n\0.q").steps == 1


class Nobody(Typist):
    """A keyboard on which nothing is pressed: it is waited for as long as one may wait."""

    def read(self, timeout_s: float) -> str:
        select.select([], [], [], timeout_s)
        return ""


def test_run_is_over_when_its_limit_is_reached_and_not_at_the_next_look(env, monkeypatch):
    monkeypatch.setattr(session_module, "_TURN_S", 20.0)
    line = StatusLine(io.StringIO(), live=False)
    record = Session(env, Plan(steps=50), line, Nobody("")).run()
    assert (record.steps, record.ended_by) == (50, End.LIMIT)
    assert record.wall_time < 10.0


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (" .q", "space pauses it"),
        ("cq", "there is no fault to clear"),
        ("xq", "'x' is no key; keys: space pause or resume"),
    ],
)
def test_answers_speak_of_keys(env, capsys, keys, said):
    _run(env, keys)
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "hosting" not in line]
    assert said in line
    assert "()" not in line


def test_fault_in_the_way_of_a_key_is_answered_by_the_keys_that_clear_it(capsys, tmp_path):
    with MujocoEnv(write(tmp_path, EXPLOSIVE), realtime=None) as env:
        with pytest.raises(DivergenceError):
            env.step(1000)
        record = _run(env, " cq")
    assert record.ended_by == End.QUIT
    assert "c clears it, r resets, l reloads" in capsys.readouterr().err


def test_limit_is_reached_by_key_too(env):
    record = _run(env, "....", steps=2)
    assert (record.steps, record.ended_by) == (2, End.LIMIT)


def test_signal_handlers_are_those_of_before_afterwards(env):
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    _run(env, "q")
    assert [signal.getsignal(number) for number in numbers] == before


def test_second_interrupt_is_not_kept_waiting(env):
    session = Session(env, Plan(), StatusLine(None, live=False), None)
    session._on_signal(signal.SIGINT, None)
    session._on_signal(signal.SIGTERM, None)
    with pytest.raises(KeyboardInterrupt):
        session._on_signal(signal.SIGINT, None)
    session._reloads.abandon()


def test_second_reload_is_refused_while_one_is_going_on():
    gate = threading.Event()

    class Slow:
        def reload(self, **_):
            assert gate.wait(60)
            raise RuntimeError("it does not compile")

    reloads, told = Reloads(Slow()), []
    reloads.begin()
    with pytest.raises(LoadingWindowError):
        reloads.begin()
    reloads.tell(told.append)
    assert told == []
    gate.set()
    reloads._future.exception(timeout=60)
    reloads.tell(told.append)
    assert told == ["error: reload failed, the old model goes on: it does not compile"]
    reloads.abandon()
