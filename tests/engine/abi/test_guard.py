from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

import mjhost
from mjhost import layout
from mjhost.engine.abi import guard, structs
from mjhost.engine.abi.guard import HANDLER, no_exit
from mjhost.engine.abi.structs import Decoder, Encoder, Provider
from mjhost.engine.abi.symbols import engine
from mjhost.env import engine_log

Message = layout.structure("mjLogMessage")
INFO = layout.constants()["mjLOG_INFO"]


def thread_handler():
    """The calling thread's log handler, 0 if it has none."""
    found = engine().set_thread_log_handler(0)
    engine().set_thread_log_handler(found)
    return found


def say(text, level=INFO):
    """Lets the engine log ``text`` on this thread."""
    speak = ctypes.CFUNCTYPE(None, ctypes.POINTER(Message))(("mju_message", layout.library()))
    speak(Message(level=level, subject=text.encode()))


@contextmanager
def listening():
    """Makes this thread's handler one that collects (level, text)."""
    heard = []

    def hear(address):
        message = Message.from_address(address)
        heard.append((message.level, message.subject.decode()))

    thunk = HANDLER(hear)
    before = engine().set_thread_log_handler(structs.address_of(thunk))
    try:
        yield heard
    finally:
        engine().set_thread_log_handler(before)


# -- registrations -------------------------------------------------------------------------------


def test_a_clashing_plugin_is_refused_with_the_engines_words(clash):
    slot, before = engine().get_plugin("mujoco.pid")
    compute = before.compute
    with no_exit() as said:
        assert engine().register_plugin(clash) == -1
    assert said.failed
    assert said.message == "plugin 'mujoco.pid' is already registered"
    assert engine().plugin_at(slot).compute == compute


def test_a_clashing_provider_is_known_from_the_guard_only(fresh_name, filled):
    functions = {
        "open": lambda resource: 0,
        "read": lambda resource, out: -1,
        "close": lambda resource: None,
    }
    first = filled(Provider, functions, prefix=fresh_name.encode())
    second = filled(Provider, functions, prefix=fresh_name.encode())
    with no_exit() as said:
        slot = engine().register_provider(first)
    assert not said.failed
    with no_exit() as said:
        engine().register_provider(second)
    assert said.failed
    assert "already registered" in said.message
    assert engine().provider_at(slot).open == first.open


def test_a_provider_that_is_none_is_a_warning_that_reaches_no_log(filled):
    with no_exit() as said:
        assert engine().register_provider(Provider(prefix=b"under_score")) == -1
    assert not said.failed
    assert "under_score" in said.message


@pytest.mark.parametrize("kind", [Decoder, Encoder])
def test_a_clashing_codec_is_refused_and_the_first_stays(kind, fresh_name, filled):
    slots = structs.DECODER_PROTOTYPES if kind is Decoder else structs.ENCODER_PROTOTYPES
    functions = {slot: lambda *arguments: 0 for slot in slots}
    register = engine().register_decoder if kind is Decoder else engine().register_encoder
    for failed in (False, True):
        with no_exit() as said:
            register(filled(kind, functions, extension=f".{fresh_name}".encode()))
        assert said.failed is failed


def test_after_a_refusal_other_threads_can_still_register(clash):
    with no_exit():
        engine().register_plugin(clash)
    messages = []

    def again():
        with no_exit() as said:
            engine().register_plugin(clash)
        messages.append(said.message)

    thread = threading.Thread(target=again)
    thread.start()
    thread.join(30)
    assert messages == ["plugin 'mujoco.pid' is already registered"]


CLASH = """
import ctypes
from mjhost.engine.abi.guard import no_exit
from mjhost.engine.abi.structs import Plugin
from mjhost.engine.abi.symbols import engine
_slot, pid = engine().get_plugin("mujoco.pid")
other = Plugin()
ctypes.memmove(ctypes.byref(other), ctypes.byref(pid), ctypes.sizeof(other))
other.compute = other.init
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "alive"),
    [
        ("engine().register_plugin(other)", False),
        ("with no_exit(): engine().register_plugin(other)", True),
    ],
)
def test_only_the_guard_keeps_the_process_alive(body, alive, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", f"{CLASH}\n{body}\nprint('alive')"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(mjhost.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode == 0) is alive, done.stderr
    assert (done.stdout == "alive\n") is alive
    assert (tmp_path / "MUJOCO_LOG.TXT").exists() is not alive


# -- the handler ---------------------------------------------------------------------------------


def test_the_handler_before_is_back_afterwards_and_heard_nothing_meanwhile():
    with listening() as heard:
        before = thread_handler()
        with no_exit() as said:
            engine().warn("inside")
        assert thread_handler() == before
        engine().warn("after")
    assert said.warnings == ["inside"]
    assert [text for _level, text in heard] == ["after"]


def test_a_thread_without_a_handler_has_none_afterwards():
    before = thread_handler()
    with no_exit():
        assert thread_handler() != before
    assert thread_handler() == before


def test_an_exception_inside_restores_the_handler():
    before = thread_handler()
    with pytest.raises(KeyError), no_exit():
        raise KeyError
    assert thread_handler() == before
    assert guard._local.listening is None


def test_nested_guards_hear_each_their_own():
    before = thread_handler()
    with no_exit() as outer:
        engine().warn("one")
        with no_exit() as inner:
            engine().warn("two")
        engine().warn("three")
    assert outer.warnings == ["one", "three"]
    assert inner.warnings == ["two"]
    assert thread_handler() == before


def test_another_thread_is_not_guarded():
    with listening() as heard, no_exit() as said:
        handlers = []
        thread = threading.Thread(target=lambda: handlers.append(thread_handler()))
        thread.start()
        thread.join(30)
        engine().warn("here")
    assert handlers == [0]
    assert said.warnings == ["here"]
    assert heard == []


def test_what_is_no_error_and_no_warning_goes_to_the_handler_before():
    with listening() as heard, no_exit() as outer, no_exit() as inner:
        say("for your information")
    assert heard == [(INFO, "for your information")]
    assert outer.message is None
    assert inner.message is None


def test_handlers_that_pass_on_to_each_other_end_at_the_first(monkeypatch):
    monkeypatch.setattr(engine_log, "_is_ours", lambda frame: False)
    with listening() as heard, no_exit() as outer, engine_log.captured(), no_exit() as inner:
        say("through all of them")
        engine().warn("kept by the innermost")
    assert heard == [(INFO, "through all of them")]
    assert inner.warnings == ["kept by the innermost"]
    assert outer.message is None


def test_a_handler_that_was_left_in_place_passes_everything_on():
    heard = []
    thunk = HANDLER(lambda address: heard.append(Message.from_address(address).subject))
    setter = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(
        ("mju_setLogHandler", layout.library())
    )
    process_handler = setter(structs.address_of(thunk))
    before = engine().set_thread_log_handler(guard._thunk_address)
    try:
        engine().warn("to the process's handler")
    finally:
        engine().set_thread_log_handler(before)
        setter(process_handler)
    assert heard == [b"to the process's handler"]


def test_subject_and_body_of_a_message_are_one_line():
    body = ctypes.create_string_buffer(b"more\n  words")
    message = Message(
        level=layout.constants()["mjLOG_WARNING"],
        subject=b"some",
        body=ctypes.cast(body, ctypes.c_void_p),
    )
    with no_exit() as said:
        guard._on_message(ctypes.addressof(message))
    assert said.message == "some more words"


def test_a_message_lost_to_an_interrupt_counts_as_an_error(monkeypatch):
    interrupts = []

    def interrupted(message):
        raise KeyboardInterrupt

    monkeypatch.setattr(guard, "_text", interrupted)
    monkeypatch.setattr(guard._thread, "interrupt_main", lambda: interrupts.append(1))
    with no_exit() as said:
        engine().warn("lost")
    assert said.failed
    assert interrupts == [1]


def test_an_error_comes_before_the_warnings_around_it():
    with no_exit() as said:
        engine().warn("first")
        say("second", layout.constants()["mjLOG_ERROR"])
    assert said.errors == ["second"]
    assert said.message == "second"
