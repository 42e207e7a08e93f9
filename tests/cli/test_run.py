"""``mjhost run`` without a terminal, inside the test process."""

from __future__ import annotations

import pytest

from mjhost.cli.exits import ExitStatus
from mjhost.env import MujocoEnv
from tests.cli.models import EXPLOSIVE, write

FAST = ("--realtime", "0")


def test_steps_are_taken_exactly(mjhost):
    record = mjhost("run", "pendulum", "--steps", "137", *FAST, "--json").json
    assert record["steps"] == 137
    assert record["ended_by"] == "limit"


def test_seconds_are_simulated_seconds(mjhost):
    record = mjhost("run", "pendulum", "--seconds", "20", *FAST, "--json").json
    assert record["steps"] == 2000
    assert record["sim_time"] == pytest.approx(20.0)
    assert record["wall_time"] < 20.0


def test_of_steps_and_seconds_the_first_ends_the_run(mjhost):
    record = mjhost("run", "pendulum", "--seconds", "20", "--steps", "7", *FAST, "--json").json
    assert record["steps"] == 7


@pytest.mark.slow
def test_run_is_no_faster_than_its_target(mjhost):
    record = mjhost("run", "pendulum", "--seconds", "1", "--realtime", "2", "--json").json
    factor = record["factor"]
    assert factor["target"] == 2.0
    assert record["wall_time"] > 0.4
    assert factor["average"] == pytest.approx(record["session_time"] / record["wall_time"])
    assert 0.0 < factor["wait"] <= 1.0


def test_record_describes_the_run(mjhost, engine_version):
    record = mjhost("run", "pendulum", "--steps", "10", *FAST, "--json").json
    assert record["model"].endswith("pendulum.xml")
    assert len(record["content_hash"]) == 64
    assert record["engine"].startswith(".".join(map(str, engine_version)))
    assert record["factor"]["target"] is None
    assert record["factor"]["average"] > 0
    assert (record["faults"], record["fault"], record["warnings"]) == (0, None, {})


def test_json_is_all_there_is_on_stdout(mjhost):
    outcome = mjhost("run", "pendulum", "--steps", "10", *FAST, "--json")
    assert len(outcome.out.splitlines()) == 1
    assert outcome.json["steps"] == 10


def test_summary_is_one_line_on_stdout(mjhost):
    outcome = mjhost("run", "pendulum", "--steps", "1000", *FAST)
    assert outcome.status == ExitStatus.OK
    (line,) = outcome.out.splitlines()
    assert "1,000 steps, 10.000 s simulated in" in line
    assert "no faults; ended by limit; MuJoCo" in line


def test_without_a_terminal_there_is_no_live_line(mjhost):
    outcome = mjhost("run", "pendulum", "--steps", "10", *FAST)
    assert "\r" not in outcome.out + outcome.err
    assert "\x1b" not in outcome.out + outcome.err


def test_options_are_set_before_the_first_step(mjhost):
    words = ("--option", "timestep=0.005", "-o", "gravity=0,0,-1", "--steps", "10", *FAST, "--json")
    record = mjhost("run", "pendulum", *words).json
    assert record["options"] == {"timestep": 0.005, "gravity": [0.0, 0.0, -1.0]}
    assert record["sim_time"] == pytest.approx(0.05)


def test_every_problem_of_the_options_is_told_and_nothing_runs(mjhost):
    wrong = ("-o", "timestpe=1", "-o", "solver=foo", "-o", "iterations=20", "-o", "tolerance=7")
    outcome = mjhost("run", "pendulum", *wrong, "--steps", "5", "--json")
    assert outcome.status == ExitStatus.FAILED
    assert "did you mean 'timestep'?" in outcome.error
    assert "solver" in outcome.error
    assert "tolerance" in outcome.error
    assert outcome.out == ""


def test_option_that_is_accepted_with_a_warning_is_told(mjhost):
    outcome = mjhost("run", "pendulum", "-o", "timestep=0.5", "--steps", "1", *FAST)
    assert "mjhost: warning: timestep is unusual" in outcome.err


def test_fault_ends_the_run_with_status_3_and_one_line(mjhost, tmp_path):
    outcome = mjhost("run", str(write(tmp_path, EXPLOSIVE)), *FAST, "--json")
    assert outcome.status == ExitStatus.FAULT
    assert "diverged in step 2" in outcome.error
    assert "Traceback" not in outcome.err
    record = outcome.json
    assert (record["ended_by"], record["faults"], record["steps"]) == ("fault", 1, 1)
    assert record["fault"]["step"] == 2
    assert record["warnings"] == {"BADQACC": 1}


@pytest.mark.parametrize("flags", [["--paused"], ["--on-fault", "pause"]])
def test_what_nobody_could_resume_is_refused(flags, mjhost):
    outcome = mjhost("run", "demo", *flags)
    assert outcome.status == ExitStatus.USAGE
    assert "nobody could resume" in outcome.error


def test_no_env_is_left_open_by_a_failure_of_the_session(mjhost, monkeypatch):
    closed = []
    close = MujocoEnv.close

    def fail(_):
        raise RuntimeError("no thread to be had")

    monkeypatch.setattr(MujocoEnv, "resume", fail)
    monkeypatch.setattr(MujocoEnv, "close", lambda env: (closed.append(env), close(env)))
    assert "no thread to be had" in mjhost("run", "pendulum").error
    assert closed
