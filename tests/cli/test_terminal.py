"""``mjhost run`` on a terminal: the live line, the keys, and the terminal afterwards."""

from __future__ import annotations

import os
import signal
import termios

import pytest

from mjhost import models
from tests.cli.models import BROKEN, EXPLOSIVE, write
from tests.cli.process import SHELL, START, Terminal

pytestmark = pytest.mark.slow


def _cooked(mode) -> bool:
    return bool(mode[3] & termios.ICANON) and bool(mode[3] & termios.ECHO)


def test_live_line_shows_state_time_factor_rate_and_faults():
    with Terminal("run", "pendulum", NO_COLOR="1") as terminal:
        terminal.wait_for("keys: space pause or resume")
        terminal.wait_for("running ")
        line = terminal.wait_for("steps/s")
        terminal.wait_for("step")
        terminal.press("q")
        status, screen = terminal.finish()
    assert status == 0
    assert " s | factor " in line
    assert "faults 0 | " in line
    assert "ended by quit" in screen


def test_keys_pause_step_reset_and_quit():
    with Terminal("run", "pendulum", "--paused", NO_COLOR="1") as terminal:
        terminal.wait_for("paused  0.00 s")
        terminal.press(".")
        terminal.wait_for("paused  0.01 s")
        terminal.press("..")
        terminal.wait_for("paused  0.03 s")
        terminal.press("r")
        terminal.wait_for("paused  0.00 s")
        terminal.press(" ")
        terminal.wait_for("running")
        terminal.press(" ")
        terminal.wait_for("paused")
        terminal.press("q")
        status, _ = terminal.finish()
    assert status == 0


def test_key_that_is_not_possible_now_is_told_and_ends_nothing():
    with Terminal("run", "pendulum") as terminal:
        terminal.wait_for("running")
        terminal.press(".")
        terminal.wait_for("step needs a paused simulation: space pauses it")
        terminal.press("q")
        assert terminal.finish()[0] == 0


def test_cursor_keys_are_no_commands(tmp_path):
    with Terminal("run", str(write(tmp_path, EXPLOSIVE)), NO_COLOR="1") as terminal:
        terminal.wait_for("fault ")
        terminal.press("\x1b[c")  # ends like the key that clears the fault
        terminal.press("\x1bOl")
        terminal.press("q")
        status, screen = terminal.finish()
    assert status == 3
    assert "reloaded" not in screen


def test_reload_takes_the_edited_file(tmp_path):
    text = models.path("pendulum").read_text("utf-8")
    path = write(tmp_path, text)
    with Terminal("run", str(path), "--paused", NO_COLOR="1") as terminal:
        terminal.press(".")
        terminal.wait_for("paused  0.01 s")
        path.write_text(text.replace('timestep="0.01"', 'timestep="0.25"'), "utf-8")
        terminal.press("l")
        terminal.wait_for("reloaded ")
        terminal.press(".")
        terminal.wait_for("paused  0.25 s")
        terminal.press("q")
        assert terminal.finish()[0] == 0


def test_model_broken_on_disk_leaves_the_old_one_running(tmp_path):
    path = write(tmp_path, models.path("pendulum").read_text("utf-8"))
    with Terminal("run", str(path)) as terminal:
        terminal.wait_for("running")
        path.write_text(BROKEN, "utf-8")
        terminal.press("l")
        terminal.wait_for("reload failed, the old model goes on: ")
        terminal.wait_for("does not compile")
        terminal.wait_for("running")
        terminal.press("q")
        assert terminal.finish()[0] == 0


def test_fault_pauses_until_it_is_cleared(tmp_path):
    with Terminal("run", str(write(tmp_path, EXPLOSIVE)), NO_COLOR="1") as terminal:
        terminal.wait_for("error: the simulation diverged in step 2")
        terminal.wait_for("fault ")
        terminal.press(" ")
        terminal.wait_for("error: a fault is set: c clears it, r resets, l reloads")
        terminal.press("c")
        terminal.wait_for("paused ")
        terminal.press("q")
        status, screen = terminal.finish()
    assert status == 0
    assert "1 fault" in screen


def test_run_left_with_a_fault_is_status_3(tmp_path):
    with Terminal("run", str(write(tmp_path, EXPLOSIVE)), NO_COLOR="1") as terminal:
        terminal.wait_for("fault ")
        terminal.press("q")
        assert terminal.finish()[0] == 3


def test_on_fault_exit_ends_the_run_on_a_terminal_too(tmp_path):
    with Terminal("run", str(write(tmp_path, EXPLOSIVE)), "--on-fault", "exit") as terminal:
        status, screen = terminal.finish()
    assert status == 3
    assert "ended by fault" in screen


def test_limit_starts_again_with_a_reset():
    with Terminal("run", "pendulum", "--steps", "3", "--paused", "--json") as terminal:
        terminal.wait_for("paused")
        terminal.press("..r")
        terminal.press("..")
        terminal.press(".")
        status, screen = terminal.finish()
    assert status == 0
    assert '"steps": 5' in screen
    assert '"ended_by": "limit"' in screen


@pytest.mark.parametrize("how", ["q", "\x03", "SIGTERM", "limit"])
def test_terminal_is_given_back_on_every_way_out(how):
    limit = ["--seconds", "1"] if how == "limit" else []
    with Terminal("run", "pendulum", *limit) as terminal:
        terminal.wait_for("running")
        assert not _cooked(terminal.mode)
        if how == "SIGTERM":
            terminal.process.send_signal(signal.SIGTERM)
        elif how != "limit":
            terminal.press(how)
        status, screen = terminal.finish()
        assert terminal.mode == terminal.before
    assert status == 0
    assert "ended by" in screen
    assert "Traceback" not in screen


def test_terminal_is_given_back_while_the_process_is_stopped():
    with Terminal(START, "run", "pendulum", start=SHELL, NO_COLOR="1") as terminal:
        terminal.wait_for("running")
        terminal.press("\x1a")
        terminal.wait_for("STOPPED cooked=True")
        terminal.press("\n")
        terminal.wait_for("running")
        assert not _cooked(terminal.mode)
        terminal.press("q")
        status, _ = terminal.finish()
        assert terminal.mode == terminal.before
    assert status == 0


def test_stop_key_where_nobody_could_continue_is_survived():
    with Terminal("run", "pendulum", NO_COLOR="1") as terminal:
        terminal.wait_for("running")
        terminal.press("\x1a")
        terminal.press(" ")
        terminal.wait_for("paused")
        terminal.press("q")
        assert terminal.finish()[0] == 0


def test_headless_has_no_line_and_no_keys():
    with Terminal("run", "pendulum", "--headless", "--seconds", "0.5") as terminal:
        terminal.wait_for("hosting")
        status, screen = terminal.finish()
        assert _cooked(terminal.mode)
    assert status == 0
    assert "running" not in screen
    assert "\x1b" not in screen


def test_colours_are_left_out_where_they_are_not_wanted():
    with Terminal("run", "pendulum", "--seconds", "0.5", NO_COLOR="1") as terminal:
        assert "\x1b[3" not in terminal.finish()[1]
    with Terminal("run", "pendulum", "--seconds", "0.5") as terminal:
        assert "\x1b[32mrunning" in terminal.finish()[1]


def test_line_never_wraps_in_a_narrow_terminal():
    with Terminal("run", "pendulum", "--seconds", "0.5", columns=30, NO_COLOR="1") as terminal:
        _, screen = terminal.finish()
    lines = [part for part in screen.split("\r\x1b[K") if part.startswith("running")]
    assert lines
    assert max(map(len, lines)) <= 29


def test_terminal_that_goes_away_ends_the_run():
    with Terminal("run", "pendulum") as terminal:
        terminal.wait_for("running")
        spare = os.open(os.devnull, os.O_RDONLY)
        os.dup2(spare, terminal.master)  # the last reader is gone: the kernel hangs up
        os.close(spare)
        assert terminal.process.wait(60) == 0
