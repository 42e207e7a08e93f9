"""A hosted simulation seen from the command line, from its start to its summary.

Owns: the loop of the main thread, the meaning of the keys, the signal handlers for its time.
Invariants: the loop waits in one place, for at most a tenth of a second, and no longer than until
the run has ended; it never steps. Whatever a key asks for that is not possible is told in one line,
in terms of keys, and changes nothing.
Threads: the main thread. A reload runs in a thread of its own, so that the other keys go on
working; there is one at a time.
Failure: a fault either ends the session or leaves it paused, as asked for.
"""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType
from typing import Any, Final

import msgspec

from mjhost import __version__
from mjhost.cli import output
from mjhost.cli.logs import LogNotes
from mjhost.cli.reloads import Reloads
from mjhost.cli.status import (
    End,
    FailureCount,
    PluginRecord,
    RunRecord,
    colour_of,
    factor_of,
    greeting_text,
    state_of,
    status_text,
)
from mjhost.cli.terminal import Keyboard, StatusLine
from mjhost.cli.watching import Watch
from mjhost.env import MujocoEnv
from mjhost.env.events import (
    EngineWarning,
    Event,
    EventSubscription,
    FaultRaised,
    PluginFailed,
    StepLimitReached,
)
from mjhost.env.pacing import MeasuredRealtime
from mjhost.env.records import EnvInfo, Fault
from mjhost.errors import DivergenceError, FaultError, LoadingWindowError, NotPausedError
from mjhost.plugins import STEP_PHASES, PluginLoadFailure

_TURN_S: Final = 0.1
_KEY_S: Final = 0.02  # wall; keys have no way to end a wait for events, so they are asked for
_RATE_TURNS: Final = 10  # the step rate is over so many turns, about a second
_FAULT_LIMIT_S: Final = 1.0  # wall, from a failed hook to its fault
_FAULTY: Final = frozenset([*STEP_PHASES, "pause"])  # hooks that the physics thread calls
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

KEYS: Final = "space pause or resume, . step, r reset, l reload, c clear fault, q quit"
"""What ``Session`` understands, in words."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a session is to do.

    Attributes:
        paused: whether to begin paused.
        steps: steps after which it ends, counted from the last load or reset.
        seconds: simulation time at which it ends, s sim.
        exit_on_fault: whether a fault ends it.
        keep_state: whether a model whose file changed goes on with the state of the old one.
        options: options that were set, for the record.
        failures: plugins that did not load, for the record.
    """

    paused: bool = False
    steps: int | None = None
    seconds: float | None = None
    exit_on_fault: bool = True
    keep_state: bool = True
    options: Mapping[str, Any] = {}
    failures: tuple[PluginLoadFailure, ...] = ()


class Session:
    """One run of one env."""

    def __init__(
        self,
        env: MujocoEnv,
        plan: Plan,
        line: StatusLine,
        keyboard: Keyboard | None,
        watch: Watch | None = None,
    ) -> None:
        self._env = env
        self._plan = plan
        self._line = line
        self._keyboard = keyboard
        self._watch = watch
        self._logs = LogNotes()
        self._plugins = PluginBook(plan.failures)
        self._end: End | None = None
        self._interrupts = 0
        self._faults = 0
        self._fault_due = False
        self._last_fault: Fault | None = None
        self._fault_before: Fault | None = None  # when the newest reload began
        self._warnings: dict[str, int] = {}
        self._measured: MeasuredRealtime | None = None
        self._rate = StepRate()
        self._reloads = Reloads(env, keep_state=plan.keep_state)
        self._actions: dict[str, Callable[[], object]] = {
            " ": self._toggle,
            ".": self._step,
            "r": env.reset,
            "l": self._reloads.begin,
            "c": self._clear,
            "q": self._quit,
        }

    def run(self) -> RunRecord:
        """Hosts until the limit, a fault, ``q`` or a signal; returns what happened."""
        with ExitStack() as stack:
            events = stack.enter_context(self._env.events.subscribe())
            stack.enter_context(self._stopped_by_signals())
            stack.callback(self._reloads.abandon)
            stack.callback(self._line.clear)
            stack.enter_context(self._logs)
            if self._keyboard is not None:
                stack.enter_context(self._keyboard)
            started = time.perf_counter()
            self._start()
            while self._end is None:
                self._turn(events)
            wall_s = time.perf_counter() - started
            self._pause(events)
            return self._record(self._end, wall_s)

    def _start(self) -> None:
        plan, env = self._plan, self._env
        if self._watch is not None:
            self._watch.follow(env.plugin_files)
        how = "Ctrl-C ends it" if self._keyboard is None else f"keys: {KEYS}"
        self._line.note(greeting_text(env.info, env.runtime_options.timestep, how))
        if plan.steps is not None or plan.seconds is not None:
            env.stop_at(steps=plan.steps, time=plan.seconds)
        if not plan.paused:
            env.resume()

    # -- the loop ----------------------------------------------------------------------------

    def _turn(self, events: EventSubscription) -> None:
        keys = self._wait(events)
        self._take_all(events)
        self._answer_strange(keys)
        for key in keys:
            if self._end is None and key in self._actions:
                self._press(key)
                self._take_all(events)  # a step by key may reach the limit
                self._fault_due = False  # what a key's own call raised was told and is no fault
        self._tell_logs()
        if self._end is None:
            self._reload()
            self._look()

    def _reload(self) -> None:
        """Tells of a reload that is done, and begins one for files that changed."""
        told = self._reloads.tell(self._line.note)
        if self._watch is None:
            return
        if told:
            self._watch.follow(self._env.plugin_files)
            if self._fault_before is not None and self._env.fault is self._fault_before:
                self._line.note("the fault is still set: c clears it, space goes on")
        if not self._reloads.busy:
            self._fault_before = self._env.fault
            self._reloads.begin_for(self._watch.changes())

    def _wait(self, events: EventSubscription) -> str:
        """Waits for keys, the end of the run, or a turn; returns the keys that were pressed."""
        deadline = time.monotonic() + _TURN_S
        while self._end is None and (left := deadline - time.monotonic()) > 0:
            keys = self._keyboard.read(0.0) if self._keyboard is not None else ""
            if keys:
                return keys
            with suppress(TimeoutError):
                self._take(events.get(min(left, _KEY_S)))
        return ""

    def _take_all(self, events: EventSubscription) -> None:
        for event in events.drain():
            self._take(event)

    def _take(self, event: Event) -> None:
        match event:
            case StepLimitReached():
                self._end = self._end or End.LIMIT
            case EngineWarning(warning=kind, count=count):
                self._warn(kind, count, event.message)
            case FaultRaised(fault=fault):
                self._fail(fault)
            case PluginFailed():
                self._plugins.add(event.plugin, event.hook, event.message)
                self._fault_due |= event.hook in _FAULTY

    def _warn(self, kind: str, count: int, message: str) -> None:
        if kind not in self._warnings:
            self._line.note(f"engine warning: {kind}{message and f': {message}'}")
        self._warnings[kind] = count

    def _fail(self, fault: Fault) -> None:
        self._faults += 1
        self._fault_due = False
        self._last_fault = fault
        self._line.note(f"error: {fault.message}")
        if self._plan.exit_on_fault:
            self._end = self._end or End.FAULT

    # -- keys --------------------------------------------------------------------------------

    def _answer_strange(self, keys: str) -> None:
        """One answer to keys that mean nothing, however many were pasted."""
        strange = [key for key in keys if key not in self._actions]
        if strange and self._end is None:
            self._line.note(f"{strange[0]!r} is no key; keys: {KEYS}")

    def _press(self, key: str) -> None:
        try:
            self._actions[key]()
        except DivergenceError:
            return  # its event tells
        except NotPausedError:
            self._line.note("error: a step needs a paused simulation: space pauses it")
        except FaultError:
            self._line.note("error: a fault is set: c clears it, r resets, l reloads")
        except LoadingWindowError:
            self._line.note("error: a reload is in progress: wait until it is done")
        except Exception as error:  # noqa: BLE001 - of whatever the step ran; a key ends nothing
            self._line.note(f"error: {output.told(error)}")

    def _toggle(self) -> None:
        if self._env.info.paused:
            self._env.resume()
        else:
            self._env.pause()

    def _clear(self) -> None:
        if self._env.fault is None:
            self._line.note("there is no fault to clear")
        self._env.clear_fault()

    def _step(self) -> None:
        self._env.step(1)

    def _quit(self) -> None:
        self._end = End.QUIT

    # -- signals -----------------------------------------------------------------------------

    @contextmanager
    def _stopped_by_signals(self) -> Iterator[None]:
        """Ctrl-C, SIGTERM and a hang-up end the session, except where they are ignored (nohup)."""
        before = {
            number: signal.signal(number, self._on_signal)
            for number in _SIGNALS
            if signal.getsignal(number) is not signal.SIG_IGN
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._interrupts += number == signal.SIGINT
        if self._interrupts > 1:
            raise KeyboardInterrupt  # asked twice: something is stuck, a step or the terminal
        self._end = self._end or End.SIGNAL

    # -- telling -----------------------------------------------------------------------------

    def _look(self) -> None:
        """Takes the figures of this moment, and shows them."""
        info = self._env.info
        rate = self._rate.of(info.total_steps, time.perf_counter())
        measured = MeasuredRealtime()
        if not info.paused:
            measured = self._measured = self._env.measured_realtime
        state = state_of(info)
        text = status_text(info, measured, rate, self._faults)
        self._line.show(text, len(state), colour_of(state))

    def _tell_logs(self) -> None:
        for line in self._logs.drain():
            self._line.note(line)

    def _pause(self, events: EventSubscription) -> None:
        """The end of stepping, with what plugins have to say about it."""
        try:
            self._env.pause()
        except Exception as error:  # noqa: BLE001 - of a plugin's on_pause; the run is over anyway
            self._line.note(f"error: {output.told(error)}")
            self._take_all(events)
        else:
            self._take_all(events)
            self._await_fault(events)
        self._tell_logs()
        self._reloads.tell(self._line.note)

    def _await_fault(self, events: EventSubscription) -> None:
        """What a hook raised in the physics thread becomes a fault a moment later."""
        deadline = time.monotonic() + _FAULT_LIMIT_S
        while self._fault_due and (left := deadline - time.monotonic()) > 0:
            with suppress(TimeoutError):
                self._take(events.get(left))

    def _record(self, end: End, wall_s: float) -> RunRecord:
        # A run that was too short for a look has its figures still in the env.
        measured = self._measured or self._env.measured_realtime
        info = self._env.info
        return RunRecord(
            model=info.source or "",
            content_hash=info.content_hash or "",
            engine=info.engine,
            mjhost=__version__,
            ended_by=_end_with(info, end),
            steps=info.total_steps,
            sim_time=info.sim_time,
            session_time=info.session_time,
            wall_time=wall_s,
            factor=factor_of(info, measured, wall_s),
            faults=self._faults,
            fault=self._last_fault,
            warnings=self._warnings,
            options=dict(self._plan.options),
            plugins=self._plugins.records(self._env),
        )


def _end_with(info: EnvInfo, end: End) -> End:
    """A run that is left while a fault is set was ended by it, whoever pressed the last key."""
    return end if info.fault is None else End.FAULT


class PluginBook:
    """What failed in which plugin during a run, reloads of plugins included."""

    def __init__(self, failures: tuple[PluginLoadFailure, ...]) -> None:
        self._found: dict[tuple[str, str], FailureCount] = {}
        for failure in failures:
            self.add(failure.name, failure.phase, failure.error)

    def add(self, name: str, phase: str, error: str) -> None:
        """Enters one failure; of those alike the newest text is kept."""
        before = self._found.get((name, phase))
        count = 1 + (before.count if before is not None else 0)
        self._found[name, phase] = FailureCount(phase=phase, error=error, count=count)

    def records(self, env: MujocoEnv) -> tuple[PluginRecord, ...]:
        """A record per plugin that there is now."""
        return tuple(
            PluginRecord(
                name=plugin.name,
                type=plugin.type,
                state=plugin.state,
                failures=tuple(f for (name, _), f in self._found.items() if name == plugin.name),
            )
            for plugin in env.plugin_statistics
        )


class StepRate:
    """Steps per wall second over the last turns."""

    def __init__(self) -> None:
        self._samples: deque[tuple[int, float]] = deque(maxlen=_RATE_TURNS + 1)

    def of(self, steps: int, now: float) -> float:
        """The rate up to ``now``; NaN before there is one."""
        self._samples.append((steps, now))
        first_steps, first = self._samples[0]
        return (steps - first_steps) / (now - first) if now > first else float("nan")
