"""The phases of an env, how they follow each other, and what is possible in which.

Owns: the transition table, the admission table, and ``PhaseMachine.advance``, the only function
that changes a phase.
Invariants: what is in neither table is refused, with an error that names the phase; a failed load
goes back to the phase it began in; once closing has begun nothing but ``close`` is admitted.
Threads: ``advance`` is atomic; of two threads that begin a load one is refused. Reading the phase
is one attribute. ``admit`` looks at one instant: whoever must not be overtaken asks again under the
physics lock.
Failure: a refused transition or operation leaves the machine as it was.
"""

from __future__ import annotations

import threading
from enum import Enum, StrEnum
from typing import Final, NamedTuple

from mjhost.errors import EnvClosedError, LoadingWindowError, NotLoadedError, PhaseError


class Phase(StrEnum):
    """Where an env is in its life."""

    NO_MODEL = "no model"
    LOADING = "loading"
    OPERATIONAL = "operational"
    CLOSING = "closing"
    CLOSED = "closed"


class PhaseEvent(StrEnum):
    """What happens to an env."""

    LOAD = "load"
    SWAP = "swap"
    LOADED = "loaded"
    LOAD_FAILED = "load failed"
    RELOAD_FAILED = "reload failed"
    CLOSE = "close"
    CLOSED = "closed"
    FORKED = "forked"


TRANSITIONS: Final[dict[tuple[Phase, PhaseEvent], Phase]] = {
    (Phase.NO_MODEL, PhaseEvent.LOAD): Phase.LOADING,
    (Phase.OPERATIONAL, PhaseEvent.LOAD): Phase.LOADING,
    (Phase.LOADING, PhaseEvent.SWAP): Phase.LOADING,
    (Phase.LOADING, PhaseEvent.LOADED): Phase.OPERATIONAL,
    (Phase.LOADING, PhaseEvent.LOAD_FAILED): Phase.NO_MODEL,
    (Phase.LOADING, PhaseEvent.RELOAD_FAILED): Phase.OPERATIONAL,
    (Phase.NO_MODEL, PhaseEvent.CLOSE): Phase.CLOSING,
    (Phase.LOADING, PhaseEvent.CLOSE): Phase.CLOSING,
    (Phase.OPERATIONAL, PhaseEvent.CLOSE): Phase.CLOSING,
    (Phase.CLOSING, PhaseEvent.CLOSED): Phase.CLOSED,
    **{(phase, PhaseEvent.FORKED): Phase.CLOSED for phase in Phase},
}
"""What may happen in which phase, and the phase that follows; everything else is refused."""

# These two lead back to the phase the load began in, each from its own: a reload that fails never
# leaves the env without a model, a first load never leaves it with half a one.
_FAILURES: Final = frozenset({PhaseEvent.LOAD_FAILED, PhaseEvent.RELOAD_FAILED})


class Operation(StrEnum):
    """What can be asked of an env; the value is the word that messages and transports use."""

    STEP = "step"
    STEP_ASYNC = "step_async"
    CANCEL_STEPS = "cancel_steps"
    ADVANCE = "advance"
    PAUSE = "pause"
    RESUME = "resume"
    REQUEST_PAUSE = "request_pause"
    STOP_AT = "stop_at"
    SET_REALTIME = "set_realtime"
    RESET = "reset"
    LOAD = "load"
    RELOAD = "reload"
    RELOAD_PLUGINS = "reload_plugins"
    OPTIONS_READ = "options_read"
    OPTIONS_WRITE = "options_write"
    SET_PENDING_OPTIONS = "set_pending_options"
    SET_CTRL = "set_ctrl"
    SET_STATE = "set_state"
    APPLY_WRENCH = "apply_wrench"
    SEND = "send"
    READ_STATE = "read_state"
    INFO = "info"
    CLEAR_FAULT = "clear_fault"
    CHECKPOINT = "checkpoint"
    RESTORE = "restore"
    EDIT = "edit"
    SCOPED_ACCESS = "scoped_access"
    FORWARD = "forward"
    INVERSE = "inverse"
    LINEARIZE = "linearize"
    ROLLOUT = "rollout"
    CALL_SOON = "call_soon"
    EVERY = "every"
    CLOSE = "close"

    @property
    def mutating(self) -> bool:
        """Whether it changes the simulation, so that the evaluation mode guards it."""
        return self not in _READING

    @property
    def label(self) -> str:
        """What the env calls it, for messages."""
        return _LABELS.get(self, self.value)

    @property
    def allowed_inside_step(self) -> bool:
        """Whether code that is called from a step may ask for it."""
        return self in _INSIDE_STEP


_READING: Final = frozenset({Operation.INFO, Operation.READ_STATE, Operation.OPTIONS_READ})
_INSIDE_STEP: Final = _READING | {Operation.CALL_SOON, Operation.REQUEST_PAUSE}


_LABELS: Final = {
    Operation.INFO: "looking at the env",
    Operation.READ_STATE: "the state",
    Operation.OPTIONS_READ: "runtime_options",
    Operation.OPTIONS_WRITE: "apply_runtime_options",
    Operation.SET_PENDING_OPTIONS: "set_pending_runtime_options",
    Operation.SCOPED_ACCESS: "access",
    Operation.SET_REALTIME: "realtime",
}


class Verdict(Enum):
    """What the admission table says."""

    ADMIT = "admitted"
    LOADING = "refused with LoadingWindowError"
    UNLOADED = "refused with NotLoadedError"
    PHASE = "refused with PhaseError"


class Admission(NamedTuple):
    """One row of the admission table."""

    no_model: Verdict
    first_load: Verdict
    reloading: Verdict
    swapping: Verdict
    operational: Verdict


_OK, _WAIT, _NONE = Verdict.ADMIT, Verdict.LOADING, Verdict.UNLOADED

# The rows that occur: no model, first load, reloading, swapping, operational.
_ALWAYS: Final = Admission(_OK, _OK, _OK, _OK, _OK)
_WITH_MODEL: Final = Admission(_NONE, _WAIT, _OK, _OK, _OK)
_UNTIL_SWAP: Final = Admission(_NONE, _WAIT, _OK, _WAIT, _OK)
_OUTSIDE_LOADING: Final = Admission(_NONE, _WAIT, _WAIT, _WAIT, _OK)
_BEGINS_LOADING: Final = Admission(_OK, _WAIT, _WAIT, _WAIT, _OK)
_BEFORE_FIRST_MODEL: Final = Admission(_OK, _WAIT, _WAIT, _WAIT, Verdict.PHASE)

ADMISSION: Final[dict[Operation, Admission]] = {
    Operation.INFO: _ALWAYS,
    Operation.CLOSE: _ALWAYS,
    Operation.PAUSE: _ALWAYS,
    Operation.REQUEST_PAUSE: _ALWAYS,
    Operation.CANCEL_STEPS: _ALWAYS,
    Operation.SET_REALTIME: _ALWAYS,
    Operation.CLEAR_FAULT: _ALWAYS,
    Operation.CALL_SOON: _ALWAYS,
    Operation.EVERY: _ALWAYS,
    Operation.RESUME: _WITH_MODEL,
    Operation.STOP_AT: _WITH_MODEL,
    Operation.SET_CTRL: _WITH_MODEL,
    Operation.APPLY_WRENCH: _WITH_MODEL,
    Operation.SEND: _WITH_MODEL,
    Operation.READ_STATE: _WITH_MODEL,
    Operation.SCOPED_ACCESS: _UNTIL_SWAP,
    Operation.STEP: _OUTSIDE_LOADING,
    Operation.STEP_ASYNC: _OUTSIDE_LOADING,
    Operation.ADVANCE: _OUTSIDE_LOADING,
    Operation.RESET: _OUTSIDE_LOADING,
    Operation.RELOAD: _OUTSIDE_LOADING,
    Operation.RELOAD_PLUGINS: _OUTSIDE_LOADING,
    Operation.OPTIONS_READ: _OUTSIDE_LOADING,
    Operation.OPTIONS_WRITE: _OUTSIDE_LOADING,
    Operation.SET_STATE: _OUTSIDE_LOADING,
    Operation.CHECKPOINT: _OUTSIDE_LOADING,
    Operation.RESTORE: _OUTSIDE_LOADING,
    Operation.EDIT: _OUTSIDE_LOADING,
    Operation.FORWARD: _OUTSIDE_LOADING,
    Operation.INVERSE: _OUTSIDE_LOADING,
    Operation.LINEARIZE: _OUTSIDE_LOADING,
    Operation.ROLLOUT: _OUTSIDE_LOADING,
    Operation.LOAD: _BEGINS_LOADING,
    Operation.SET_PENDING_OPTIONS: _BEFORE_FIRST_MODEL,
}


class PhaseMachine:
    """The present phase of one env.

    Attributes:
        phase: where the env is.
        operational: whether that is ``OPERATIONAL``; an attribute because hot paths ask.
        swapping: whether the load that is going on has begun to replace the model.
        forked: whether this is the copy in a forked child, where nothing is possible.
    """

    __slots__ = ("_mutex", "_origin", "forked", "operational", "phase", "swapping")

    def __init__(self) -> None:
        self.phase = Phase.NO_MODEL
        self.operational = False
        self.swapping = False
        self._origin = Phase.NO_MODEL
        self.forked = False
        self._mutex = threading.Lock()

    @property
    def loading(self) -> bool:
        """Whether a load or reload is going on."""
        return self.phase is Phase.LOADING

    @property
    def closed(self) -> bool:
        """Whether closing is over."""
        return self.phase is Phase.CLOSED

    def advance(self, event: PhaseEvent) -> Phase:
        """Go where ``event`` leads; returns the new phase.

        Raises:
            LoadingWindowError: a load is to begin while another one is going on.
            EnvClosedError: the env is closing or closed.
            PhaseError: the event cannot happen in this phase.
        """
        if event is PhaseEvent.FORKED:
            self.forked = True
            self._mutex = threading.Lock()  # its holder may not exist in this process
        with self._mutex:
            following = TRANSITIONS.get((self.phase, event))
            if following is None or (event in _FAILURES and following is not self._origin):
                raise self._refusal(event)
            if event is PhaseEvent.LOAD:
                self._origin = self.phase
            self.swapping = event is PhaseEvent.SWAP
            self.operational = following is Phase.OPERATIONAL
            self.phase = following
            return following

    def admit(self, operation: Operation, has_model: bool) -> None:  # noqa: FBT001
        """Return if ``operation`` is possible now, else raise what says why not.

        Args:
            operation: what is asked.
            has_model: whether the env has a model; while loading, that is the one being replaced.

        Raises:
            EnvClosedError: the env is closing or closed.
            LoadingWindowError: a model is being loaded and the operation would not fit it.
            NotLoadedError: there is no model.
            PhaseError: not possible in this phase for another reason.
        """
        if self.operational and ADMISSION[operation].operational is _OK:
            return
        phase = self.phase
        if phase is Phase.CLOSING or phase is Phase.CLOSED:
            if operation is Operation.CLOSE:
                return
            raise EnvClosedError(
                f"{operation.label} needs an open env, this one is {self._ending()}"
            )
        verdict = self._verdict(ADMISSION[operation], phase, has_model=has_model)
        if verdict is not _OK:
            raise _refusal(operation, phase, verdict)

    def _ending(self) -> str:
        return "of the process that this one was forked from" if self.forked else str(self.phase)

    def _verdict(self, row: Admission, phase: Phase, *, has_model: bool) -> Verdict:
        if phase is Phase.OPERATIONAL:
            return row.operational
        if phase is Phase.NO_MODEL:
            return row.no_model
        if not has_model:
            return row.first_load
        return row.swapping if self.swapping else row.reloading

    def _possible(self) -> list[str]:
        return [
            str(event)
            for (phase, event), following in TRANSITIONS.items()
            if phase is self.phase and not (event in _FAILURES and following is not self._origin)
        ]

    def _refusal(self, event: PhaseEvent) -> Exception:
        phase = self.phase
        message = f"{str(event)!r} cannot happen in phase {str(phase)!r}; what can: " + ", ".join(
            repr(name) for name in self._possible()
        )
        if phase is Phase.CLOSING or phase is Phase.CLOSED:
            return EnvClosedError(message)
        if phase is Phase.LOADING and event is PhaseEvent.LOAD:
            return LoadingWindowError(message)
        return PhaseError(message)


def _refusal(operation: Operation, phase: Phase, verdict: Verdict) -> Exception:
    if verdict is Verdict.LOADING:
        return LoadingWindowError(
            f"{operation.label} is not possible in phase {str(phase)!r}: a model is being loaded "
            "and the request was formed without knowing it; try again when the load is done"
        )
    if verdict is Verdict.UNLOADED:
        return NotLoadedError(
            f"{operation.label} needs a model, the env is in phase {str(phase)!r}; load one first"
        )
    return PhaseError(
        f"{operation.label} is not possible in phase {str(phase)!r}, only before the first load"
    )
