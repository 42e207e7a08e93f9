"""Error records: stable codes, texts that can be sent, nothing that leaks."""

from __future__ import annotations

import msgspec
import mujoco
import pytest

from mjhost import MjhostError, OptionsRejected, PhaseError, UnknownNameError, errors
from mjhost.operations import ErrorRecord, RequestProblem, error_record
from mjhost.operations.failures import CODES, HINTS, code_of
from mjhost.options import RuntimeOptionsError

# What programs decide by. It may grow; a code that goes away breaks them.
PUBLISHED = {
    "callback_result", "callback_signature", "callback_taken", "divergence", "engine_declaration",
    "engine_error", "engine_name_taken", "engine_plugin", "env_closed", "exception", "fault",
    "foreign_callback", "invalid_argument", "loading_window", "lock_order", "mjhost", "model_load",
    "not_authorized", "not_compilable", "not_loaded", "not_offered", "not_paused",
    "options_rejected", "phase", "checkpoint",
    "plugin_config", "plugin_load", "queue_full", "reentrancy", "request", "scope_closed",
    "stale_generation", "system_error", "unknown_name", "unsupported_engine",
}  # fmt: skip


def test_published_codes_are_all_there():
    assert set(CODES.values()) >= PUBLISHED


def test_every_error_class_has_a_code_of_its_own():
    classes = [
        error
        for error in vars(errors).values()
        if isinstance(error, type) and issubclass(error, MjhostError)
    ]
    codes = [CODES[error] for error in classes]
    assert len(set(codes)) == len(classes)
    assert CODES[errors.LoadingWindowError] == "loading_window"
    assert CODES[errors.OptionsRejected] == "options_rejected"


def test_hints_are_of_codes_that_exist():
    assert set(HINTS) <= set(CODES.values())


class Late(PhaseError):
    """A subclass somebody else made."""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Late("x"), "phase"),
        (mujoco.FatalError("x"), "engine_error"),
        (FileNotFoundError("x"), "system_error"),
        (ValueError("x"), "exception"),
        (KeyboardInterrupt(), "exception"),
        (UnknownNameError("x"), "unknown_name"),
    ],
)
def test_code_is_that_of_the_nearest_class(error, code):
    assert code_of(error) == code


def test_message_is_the_errors_own_and_foreign_ones_are_named():
    assert error_record(UnknownNameError("no joint is named 'x'")) == ErrorRecord(
        code="unknown_name", message="no joint is named 'x'"
    )
    assert error_record(ValueError("broken")).message == "ValueError: broken"
    assert error_record(ValueError()).message == "ValueError"


def test_notes_say_where_it_was_raised():
    error = ValueError("broken")
    error.add_note("raised in plugin 'a', hook control")
    assert error_record(error).message == (
        "ValueError: broken (raised in plugin 'a', hook control)"
    )


def test_problems_are_listed_by_field():
    rejected = OptionsRejected([RuntimeOptionsError("solver", "must be a solver", given="'x'")])
    record = error_record(rejected)
    assert record.problems == (RequestProblem("solver", "must be a solver", "'x'"),)
    assert record.hint


class Hostile(Exception):
    def __str__(self):
        raise RuntimeError("no text of mine")


@pytest.mark.parametrize("error", [Hostile(), ValueError("\ud800"), ValueError("x" * 10**6)])
def test_record_can_be_sent_whatever_the_error_says(error):
    record = error_record(error)
    assert len(msgspec.json.encode(record)) < 20_000
    assert record.message


def test_no_traceback_is_sent():
    try:
        raise ValueError("broken")
    except ValueError as error:
        record = error_record(error)
    assert "Traceback" not in record.message
    assert __file__ not in record.message
