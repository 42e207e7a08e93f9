"""Tables, lines and the words of a run: the pure part of the output."""

from __future__ import annotations

import io

import hypothesis.strategies as st
import msgspec
from hypothesis import given, settings

from mjhost import models
from mjhost.cli.output import one_line, table_lines
from mjhost.cli.session import StepRate
from mjhost.cli.status import factor_of, state_of, status_text
from mjhost.cli.terminal import StatusLine
from mjhost.env import MujocoEnv
from mjhost.env.pacing import MeasuredRealtime
from mjhost.env.phases import Phase
from mjhost.env.records import Fault, FaultKind

WORDS = st.text("abc-,. é", max_size=40)


def _info(**changes):
    with MujocoEnv(models.path("pendulum")) as env:
        return msgspec.structs.replace(env.info, **changes)


def test_columns_are_aligned_and_the_last_one_wraps():
    assert table_lines(("A", "TEXT"), [("first", "one two three four five six")], 31) == [
        "A      TEXT",
        "first  one two three four five",
        "       six",
    ]


def test_without_a_width_every_row_is_one_line():
    long = "word " * 100
    assert table_lines(("A", "B"), [("x", long)])[1] == f"x  {long.strip()}"


@settings(deadline=None, max_examples=50)
@given(rows=st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5), width=st.integers(1, 80))
def test_wrapping_loses_no_word(rows, width):
    text = " ".join(table_lines(("A", "B"), rows, width))
    assert "".join(text.split()) == "".join(f"AB{''.join(a + b for a, b in rows)}".split())


@settings(deadline=None, max_examples=50)
@given(st.text())
def test_one_line_is_one_line(text):
    assert len(one_line(text).splitlines()) <= 1


def test_states_of_a_run():
    fault = Fault(FaultKind.DIVERGENCE, "it diverged", "engine", 1, 0.0)
    assert state_of(_info(paused=False)) == "running"
    assert state_of(_info(paused=True)) == "paused"
    assert state_of(_info(paused=True, fault=fault)) == "fault"
    assert state_of(_info(phase=Phase.LOADING, fault=fault)) == "loading"


def test_status_line_in_full():
    measured = MeasuredRealtime(0.9876, step=0.25, wait=0.74, publish=0.001)
    text = status_text(_info(paused=False, sim_time=12.5), measured, 1234.4, 2)
    assert text == (
        "running 12.50 s | factor 0.988 of 1 | faults 2 | 1,234 steps/s | step 25%, wait 74%"
    )


def test_eighty_columns_have_room_for_time_factor_and_faults():
    measured = MeasuredRealtime(123456.7, step=0.25, plugins=0.25, publish=0.25, wait=0.25)
    info = _info(paused=False, sim_time=12_345_678.9, realtime_target=None)
    text = status_text(info, measured, 12_345_678.0, 1000)[:79]
    assert "12345678.90 s" in text
    assert "factor 123,457 of unbound" in text
    assert "| faults 1000 |" in text


def test_status_line_before_anything_was_measured():
    text = status_text(_info(realtime_target=None), MeasuredRealtime(), float("nan"), 0)
    assert text == "paused  0.00 s | factor - of unbound | faults 0 | - steps/s"


def test_factor_of_nothing_is_null_in_json():
    factor = factor_of(_info(), MeasuredRealtime(), 0.0)
    assert (factor.measured, factor.average) == (None, None)


def test_step_rate_is_over_the_last_turns():
    rate = StepRate()
    readings = [rate.of(100 * turn, turn / 10) for turn in range(20)]
    assert all(round(reading) == 1000 for reading in readings[1:])
    slower = [rate.of(1900, 1.9 + turn / 10) for turn in range(1, 12)]
    assert slower[-1] == 0.0


def test_stream_that_is_no_terminal_gets_no_line():
    stream = io.StringIO()
    line = StatusLine(stream)
    line.show("running", 7, "green")
    line.clear()
    assert stream.getvalue() == ""
