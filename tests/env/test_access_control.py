"""The evaluation token: where it comes from, what it guards, and that it stays unseen."""

from __future__ import annotations

import gc
import logging
import traceback
from types import ModuleType

import pytest

from mjhost import InvalidArgumentError, MujocoEnv, NotAuthorizedError, UnknownNameError
from mjhost.env.access_control import TOKEN_VARIABLE, AccessControl
from mjhost.env.phases import Operation
from tests.env.models import PENDULUM

TOKEN = "s3same-öffne-dich"
READING = [Operation.INFO, Operation.READ_STATE, Operation.OPTIONS_READ]
MUTATING = [operation for operation in Operation if operation not in READING]


@pytest.fixture(autouse=True)
def no_variable(monkeypatch):
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)


@pytest.fixture(params=["constructor", "file", "variable"])
def guarded(request, monkeypatch, tmp_path):
    """An env in evaluation mode, by each of the three ways."""
    token = TOKEN
    if request.param == "file":
        token = tmp_path / "token"
        token.write_text(f"  {TOKEN}\n", encoding="utf-8")
    elif request.param == "variable":
        token = None
        monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    with MujocoEnv(PENDULUM, eval_token=token) as env:
        yield env


def test_without_a_token_everything_is_admitted():
    with MujocoEnv(PENDULUM) as env:
        assert not env.eval_mode
        for operation in Operation:
            env.authorize(operation)
            env.authorize(operation, "anything")


@pytest.mark.parametrize("operation", MUTATING)
def test_what_changes_something_needs_the_token(guarded, operation):
    assert guarded.eval_mode
    assert operation.mutating
    for wrong in (None, "", " ", TOKEN[:-1], TOKEN + " ", TOKEN.upper(), "\ud800"):
        with pytest.raises(NotAuthorizedError, match=operation.value):
            guarded.authorize(operation, wrong)
        with pytest.raises(PermissionError):
            guarded.authorize(operation.value, wrong)
    guarded.authorize(operation, TOKEN)
    guarded.authorize(operation.value, TOKEN)


@pytest.mark.parametrize("operation", READING)
def test_reading_needs_no_token(guarded, operation):
    assert not operation.mutating
    for token in (None, "wrong", TOKEN):
        guarded.authorize(operation, token)


def test_every_operation_is_either_reading_or_guarded():
    assert {op for op in Operation if not op.mutating} == set(READING)
    for name in ("step", "pause", "resume", "reset", "reload", "options_write", "close"):
        assert Operation(name) in MUTATING


def test_python_in_the_same_process_needs_no_token(guarded):
    assert guarded.step(3).completed == 3
    guarded.apply_runtime_options({"timestep": 0.001})
    guarded.reset()


def test_an_unknown_operation_is_refused_whatever_the_token(guarded):
    for token in (None, TOKEN):
        with pytest.raises(UnknownNameError, match="did you mean 'reset'"):
            guarded.authorize("resett", token)


@pytest.mark.parametrize("token", [5, b"bytes", ["list"], True])
def test_a_token_that_is_no_text_is_refused(guarded, token):
    with pytest.raises(InvalidArgumentError, match="must be text"):
        guarded.authorize(Operation.STEP, token)
    with pytest.raises(InvalidArgumentError, match="eval_token must be text, a path or None"):
        MujocoEnv(eval_token=token)


@pytest.mark.parametrize("token", ["", "  \n", "x" * 4097, "ö" * 2049])
def test_an_empty_or_oversized_token_is_refused_wherever_it_comes_from(
    token, tmp_path, monkeypatch
):
    file = tmp_path / "token"
    file.write_text(token, encoding="utf-8")
    for given in (token, file):
        with pytest.raises(InvalidArgumentError, match=r" is empty| at most 4096 bytes"):
            MujocoEnv(PENDULUM, eval_token=given)
    # An evaluation that was meant to be guarded must not start unguarded.
    monkeypatch.setenv(TOKEN_VARIABLE, token)
    with pytest.raises(InvalidArgumentError, match=TOKEN_VARIABLE):
        MujocoEnv(PENDULUM)


def test_a_token_of_the_greatest_length_is_accepted(tmp_path):
    token = "x" * 4096
    file = tmp_path / "token"
    file.write_text(token)
    for given in (token, file):
        control = AccessControl(given)
        control.authorize("step", token)
        with pytest.raises(NotAuthorizedError):
            control.authorize("step", token[:-1])


def test_a_file_that_cannot_be_read_is_refused_and_named(tmp_path):
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe" + TOKEN.encode())
    for path in (tmp_path / "missing", tmp_path, binary):
        with pytest.raises(InvalidArgumentError, match=str(path)):
            MujocoEnv(PENDULUM, eval_token=path)


def test_the_variable_counts_only_where_no_token_is_given(monkeypatch):
    monkeypatch.setenv(TOKEN_VARIABLE, "other")
    control = AccessControl(TOKEN)
    control.authorize("step", TOKEN)
    with pytest.raises(NotAuthorizedError):
        control.authorize("step", "other")


def reachable_texts(root, depth=8):
    """``repr``, ``str`` and attributes of everything that can be reached from ``root``."""
    seen, level = set(), [root]
    for _ in range(depth):
        following = []
        for thing in level:
            if id(thing) in seen or isinstance(thing, (type, ModuleType)):
                continue
            seen.add(id(thing))
            yield repr(thing)
            yield str(thing)
            following += attributes_of(thing)
        level = following
    assert len(seen) > 100


def attributes_of(thing):
    if type(thing).__module__.partition(".")[0] not in ("mjhost", "builtins", "collections"):
        return []
    if callable(thing) and not type(thing).__module__.startswith("mjhost"):
        return []
    slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    values = [getattr(thing, name, None) for name in slots if isinstance(name, str)]
    return values + [value for value in gc.get_referents(thing) if not isinstance(value, type)]


def test_the_token_is_in_nothing_that_can_be_reached(guarded):
    guarded.step(3)
    for text in reachable_texts(guarded):
        assert TOKEN not in text
    assert TOKEN not in repr(guarded.info)


def test_the_search_finds_what_is_there(guarded):
    guarded._core.access_control = [{"token": TOKEN}]
    assert any(TOKEN in text for text in reachable_texts(guarded))


def test_the_token_is_in_no_refusal_and_no_log(guarded, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    near = TOKEN + "x"
    for attempt in (None, near):
        with pytest.raises(NotAuthorizedError) as caught:
            guarded.authorize(Operation.RESET, attempt)
        told = "".join(traceback.format_exception(caught.value))
        assert TOKEN not in told.replace("TOKEN", "")
        assert near not in str(caught.value)
    assert TOKEN not in caplog.text
    assert TOKEN not in "".join(capfd.readouterr())


@pytest.mark.parametrize("oversized", [False, True])
def test_a_refused_token_is_in_no_message(tmp_path, oversized):
    token = TOKEN * 400 if oversized else TOKEN
    file = tmp_path / "token"
    file.write_bytes((b"" if oversized else b"\xff") + token.encode())
    for given in (file, *([token] if oversized else [])):
        with pytest.raises(InvalidArgumentError) as caught:
            AccessControl(given)
        for error in (caught.value, caught.value.__cause__, caught.value.__context__):
            assert TOKEN not in str(error)
            assert TOKEN not in repr(error)
            assert TOKEN.encode() not in getattr(error, "object", b"")
