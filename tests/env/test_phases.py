"""Phases: the tables of the specification, and the machine against a model of it."""

from __future__ import annotations

import threading

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mjhost.env.phases import (
    ADMISSION,
    TRANSITIONS,
    Operation,
    Phase,
    PhaseEvent,
    PhaseMachine,
)
from mjhost.errors import EnvClosedError, LoadingWindowError, NotLoadedError, PhaseError

FIRST_LOAD = (PhaseEvent.LOAD,)
OPERATIONAL = (*FIRST_LOAD, PhaseEvent.LOADED)
RELOADING = (*OPERATIONAL, PhaseEvent.LOAD)
SWAPPING = (*RELOADING, PhaseEvent.SWAP)
CLOSING = (PhaseEvent.CLOSE,)
CLOSED = (*CLOSING, PhaseEvent.CLOSED)


def machine_after(*events):
    machine = PhaseMachine()
    for event in events:
        machine.advance(event)
    return machine


def outcome(operation, events, *, has_model):
    refused = None
    try:
        machine_after(*events).admit(operation, has_model)
    except (PhaseError, NotLoadedError, EnvClosedError) as error:
        refused = error
    assert refused is None or operation.label in str(refused)
    return refused and type(refused)


# -- admission -----------------------------------------------------------------------------------

# As the specification has it, written down a second time.
WHILE_RELOADING_ADMITTED = {
    "pause",
    "resume",
    "request_pause",
    "set_ctrl",
    "apply_wrench",
    "read_state",
    "info",
    "close",
    "call_soon",
    "every",
    "stop_at",
    "set_realtime",
    "cancel_steps",
    "clear_fault",
    "scoped_access",
    "send",  # as set_ctrl: a controller goes on being told where to go
}
WITHOUT_MODEL_ADMITTED = {
    "load",
    "set_pending_options",
    "info",
    "close",
    "pause",
    "request_pause",
    "call_soon",
    "every",
    "set_realtime",
    "cancel_steps",
    "clear_fault",
}


@pytest.mark.parametrize("operation", Operation)
def test_while_a_model_is_replaced_the_specified_operations_go_on(operation):
    expected = None if operation in WHILE_RELOADING_ADMITTED else LoadingWindowError
    assert outcome(operation, RELOADING, has_model=True) is expected


@pytest.mark.parametrize("operation", Operation)
def test_once_the_swap_began_scoped_access_waits_too(operation):
    admitted = WHILE_RELOADING_ADMITTED - {"scoped_access"}
    expected = None if operation in admitted else LoadingWindowError
    assert outcome(operation, SWAPPING, has_model=True) is expected


@pytest.mark.parametrize("operation", Operation)
def test_without_a_model_only_what_needs_none_is_admitted(operation):
    expected = None if operation in WITHOUT_MODEL_ADMITTED else NotLoadedError
    assert outcome(operation, (), has_model=False) is expected


@pytest.mark.parametrize("operation", Operation)
def test_during_the_first_load_the_rest_is_told_to_come_back(operation):
    admitted = WITHOUT_MODEL_ADMITTED - {"load", "set_pending_options"}
    expected = None if operation in admitted else LoadingWindowError
    assert outcome(operation, FIRST_LOAD, has_model=False) is expected


@pytest.mark.parametrize("operation", Operation)
def test_with_a_model_everything_is_admitted_but_pending_options(operation):
    expected = PhaseError if operation == "set_pending_options" else None
    assert outcome(operation, OPERATIONAL, has_model=True) is expected


@pytest.mark.parametrize("events", [CLOSING, CLOSED, (PhaseEvent.FORKED,)])
@pytest.mark.parametrize("operation", Operation)
def test_once_closing_began_only_close_is_admitted(operation, events):
    expected = None if operation == "close" else EnvClosedError
    assert outcome(operation, events, has_model=True) is expected


def test_every_operation_has_a_row():
    assert set(ADMISSION) == set(Operation)


def test_reading_needs_no_token_and_everything_else_does():
    assert {o for o in Operation if not o.mutating} == {"info", "read_state", "options_read"}


def test_inside_a_step_one_may_read_and_ask_for_later():
    allowed = {o for o in Operation if o.allowed_inside_step}
    assert allowed == {"info", "read_state", "options_read", "call_soon", "request_pause"}


# -- transitions ---------------------------------------------------------------------------------


def test_a_life_without_trouble():
    machine = PhaseMachine()
    assert [machine.advance(event) for event in (*SWAPPING, PhaseEvent.LOADED, *CLOSED)] == [
        Phase.LOADING,
        Phase.OPERATIONAL,
        Phase.LOADING,
        Phase.LOADING,
        Phase.OPERATIONAL,
        Phase.CLOSING,
        Phase.CLOSED,
    ]


def test_a_failed_first_load_goes_back_to_no_model_only():
    machine = machine_after(*FIRST_LOAD)
    with pytest.raises(PhaseError, match="'reload failed' cannot happen"):
        machine.advance(PhaseEvent.RELOAD_FAILED)
    assert machine.loading
    assert machine.advance(PhaseEvent.LOAD_FAILED) is Phase.NO_MODEL


@pytest.mark.parametrize("events", [RELOADING, SWAPPING])
def test_a_failed_reload_never_leaves_the_env_without_its_model(events):
    machine = machine_after(*events)
    with pytest.raises(PhaseError, match="'load failed' cannot happen") as error:
        machine.advance(PhaseEvent.LOAD_FAILED)
    assert "'reload failed'" in str(error.value)
    assert machine.advance(PhaseEvent.RELOAD_FAILED) is Phase.OPERATIONAL
    assert not machine.swapping


def test_a_second_load_is_refused_while_one_goes_on():
    machine = machine_after(*RELOADING)
    with pytest.raises(LoadingWindowError):
        machine.advance(PhaseEvent.LOAD)
    assert machine.loading


def test_a_load_that_ends_after_close_began_finds_the_env_closed():
    machine = machine_after(*RELOADING, PhaseEvent.CLOSE)
    for event in (PhaseEvent.LOADED, PhaseEvent.RELOAD_FAILED, PhaseEvent.LOAD):
        with pytest.raises(EnvClosedError):
            machine.advance(event)
    assert machine.advance(PhaseEvent.CLOSED) is Phase.CLOSED
    assert machine.closed


def test_a_refused_transition_names_phase_event_and_what_is_possible():
    with pytest.raises(PhaseError) as error:
        machine_after().advance(PhaseEvent.SWAP)
    for word in ("'swap'", "'no model'", "'load'", "'close'"):
        assert word in str(error.value)


def test_of_many_threads_that_begin_a_load_one_wins():
    machine, won, lost = PhaseMachine(), [], []
    barrier = threading.Barrier(8)

    def begin():
        barrier.wait(10.0)
        try:
            won.append(machine.advance(PhaseEvent.LOAD))
        except LoadingWindowError as error:
            lost.append(error)

    threads = [threading.Thread(target=begin) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10.0)
    assert (len(won), len(lost)) == (1, 7)


def test_a_forked_child_closes_whatever_thread_held_the_machine():
    machine = machine_after(*OPERATIONAL)
    with machine._mutex:
        assert machine.advance(PhaseEvent.FORKED) is Phase.CLOSED


class Lives(RuleBasedStateMachine):
    """Any sequence of events and requests, against the tables and a count of models."""

    def __init__(self):
        super().__init__()
        self.machine = PhaseMachine()
        self.has_model = False
        self.loading = self.swapping = self.closing = self.closed = False

    def possible(self, event):
        failures = {PhaseEvent.LOAD_FAILED: False, PhaseEvent.RELOAD_FAILED: True}
        if event is PhaseEvent.FORKED:
            return True
        if self.closing or self.closed:
            return event is PhaseEvent.CLOSED and not self.closed
        if event is PhaseEvent.CLOSE:
            return True
        if event is PhaseEvent.LOAD:
            return not self.loading
        if event in failures:
            return self.loading and self.has_model is failures[event]
        return self.loading and event in {PhaseEvent.SWAP, PhaseEvent.LOADED}

    def follow(self, event):
        self.swapping = event is PhaseEvent.SWAP
        self.loading = event in {PhaseEvent.LOAD, PhaseEvent.SWAP}
        self.has_model |= event is PhaseEvent.LOADED
        self.closing = event is PhaseEvent.CLOSE
        self.closed = event in {PhaseEvent.CLOSED, PhaseEvent.FORKED}

    @rule(event=st.sampled_from([e for e in PhaseEvent if e is not PhaseEvent.FORKED]))
    def advance(self, event):
        before = self.machine.phase
        if self.possible(event):
            phase = self.machine.advance(event)
            assert phase is TRANSITIONS[before, event]
            self.follow(event)
            return
        with pytest.raises((PhaseError, EnvClosedError)):
            self.machine.advance(event)
        assert self.machine.phase is before

    @rule()
    def fork(self):
        self.machine.advance(PhaseEvent.FORKED)
        self.follow(PhaseEvent.FORKED)

    @rule(operation=st.sampled_from(list(Operation)))
    def ask(self, operation):
        before = self.machine.phase
        try:
            self.machine.admit(operation, self.has_model)
        except EnvClosedError:
            assert self.closing or self.closed
        except LoadingWindowError:
            assert self.loading
        except NotLoadedError:
            assert not self.has_model
            assert not self.loading
        except PhaseError:
            assert operation is Operation.SET_PENDING_OPTIONS
            assert self.has_model
        else:
            assert operation is Operation.CLOSE or not (self.closing or self.closed)
        assert self.machine.phase is before

    @invariant()
    def phase_and_shortcuts_agree_with_the_history(self):
        machine = self.machine
        if self.closed or self.closing:
            assert machine.phase is (Phase.CLOSED if self.closed else Phase.CLOSING)
        elif self.loading:
            assert machine.phase is Phase.LOADING
        else:
            assert machine.phase is (Phase.OPERATIONAL if self.has_model else Phase.NO_MODEL)
        assert machine.operational is (machine.phase is Phase.OPERATIONAL)
        assert machine.loading is (machine.phase is Phase.LOADING)
        assert machine.closed is self.closed
        assert machine.swapping is self.swapping


Lives.TestCase.settings = settings(deadline=None, max_examples=25, stateful_step_count=25)
TestLives = Lives.TestCase
