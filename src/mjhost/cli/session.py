"""A hosted simulation seen from the command line, from its start to its summary.

Owns: the loop of the main thread, the meaning of the keys, the signal handlers for its time.
Invariants: the loop waits in one place, for at most a tenth of a second; it never steps. Whatever a
key asks for that is not possible is told in one line and changes nothing.
Threads: the main thread. A reload runs in a thread of its own, so that the other keys go on
working; there is one at a time.
Failure: a fault either ends the session or leaves it paused, as asked for.
"""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType
from typing import Any, Final

import msgspec

from mjhost import __version__
from mjhost.cli.status import (
    End,
    RunRecord,
    colour_of,
    factor_of,
    greeting_text,
    state_of,
    status_text,
)
from mjhost.cli.terminal import Keyboard, StatusLine
from mjhost.env import MujocoEnv
from mjhost.env.events import EngineWarning, Event, FaultRaised, StepLimitReached, Subscription
from mjhost.env.pacing import MeasuredRealtime
from mjhost.env.records import EnvInfo, Fault, ReloadReport
from mjhost.errors import DivergenceError, LoadingWindowError

_TURN_S: Final = 0.1
_RATE_TURNS: Final = 10  # the step rate is over so many turns, about a second
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
        options: options that were set, for the record.
    """

    paused: bool = False
    steps: int | None = None
    seconds: float | None = None
    exit_on_fault: bool = True
    options: Mapping[str, Any] = {}


class Session:
    """One run of one env."""

    def __init__(
        self, env: MujocoEnv, plan: Plan, line: StatusLine, keyboard: Keyboard | None
    ) -> None:
        self._env = env
        self._plan = plan
        self._line = line
        self._keyboard = keyboard
        self._end: End | None = None
        self._interrupts = 0
        self._faults = 0
        self._last_fault: Fault | None = None
        self._warnings: dict[str, int] = {}
        self._measured: MeasuredRealtime | None = None
        self._rate = StepRate()
        self._reloads = Reloads(env)
        self._actions: dict[str, Callable[[], object]] = {
            " ": self._toggle,
            ".": self._step,
            "r": env.reset,
            "l": self._reloads.begin,
            "c": env.clear_fault,
            "q": self._quit,
        }

    def run(self) -> RunRecord:
        """Hosts until the limit, a fault, ``q`` or a signal; returns what happened."""
        with ExitStack() as stack:
            events = stack.enter_context(self._env.events.subscribe())
            stack.enter_context(self._stopped_by_signals())
            stack.callback(self._reloads.abandon)
            stack.callback(self._line.clear)
            if self._keyboard is not None:
                stack.enter_context(self._keyboard)
            started = time.perf_counter()
            self._start()
            while self._end is None:
                self._turn(events)
            return self._record(self._end, time.perf_counter() - started)

    def _start(self) -> None:
        plan, env = self._plan, self._env
        how = "Ctrl-C ends it" if self._keyboard is None else f"keys: {KEYS}"
        self._line.note(greeting_text(env.info, env.runtime_options.timestep, how))
        if plan.steps is not None or plan.seconds is not None:
            env.stop_at(steps=plan.steps, time=plan.seconds)
        if not plan.paused:
            env.resume()

    # -- the loop ----------------------------------------------------------------------------

    def _turn(self, events: Subscription) -> None:
        keys = self._wait(events)
        self._take_all(events)
        for key in keys:
            if self._end is None:
                self._press(key)
                self._take_all(events)  # a step by key may reach the limit
        self._reloads.tell(self._line.note)
        if self._end is None:
            self._look()

    def _wait(self, events: Subscription) -> str:
        """Waits until something happened, or for a turn; returns the keys that were pressed."""
        if self._keyboard is not None:
            return self._keyboard.read(_TURN_S)
        with suppress(TimeoutError):
            self._take(events.get(_TURN_S))
        return ""

    def _take_all(self, events: Subscription) -> None:
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

    def _warn(self, kind: str, count: int, message: str) -> None:
        if kind not in self._warnings:
            self._line.note(f"engine warning: {kind}{message and f': {message}'}")
        self._warnings[kind] = count

    def _fail(self, fault: Fault) -> None:
        self._faults += 1
        self._last_fault = fault
        self._line.note(f"error: {fault.message}")
        if self._plan.exit_on_fault:
            self._end = self._end or End.FAULT

    # -- keys --------------------------------------------------------------------------------

    def _press(self, key: str) -> None:
        action = self._actions.get(key)
        if action is None:
            return
        try:
            action()
        except DivergenceError:
            return  # its event tells
        except Exception as error:  # noqa: BLE001 - of whatever the step ran; a key ends nothing
            self._line.note(f"error: {error}")

    def _toggle(self) -> None:
        if self._env.info.paused:
            self._env.resume()
        else:
            self._env.pause()

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

    def _record(self, end: End, wall_s: float) -> RunRecord:
        # A run that was too short for a look has its figures still in the env.
        measured = self._measured or self._env.measured_realtime
        self._env.pause()
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
        )


def _end_with(info: EnvInfo, end: End) -> End:
    """A run that is left while a fault is set was ended by it, whoever pressed the last key."""
    return end if info.fault is None else End.FAULT


class Reloads:
    """Reloads of the model's source, one at a time, in a thread of their own."""

    def __init__(self, env: MujocoEnv) -> None:
        self._env = env
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="mjhost-reload")
        self._future: Future[ReloadReport] | None = None

    def begin(self) -> None:
        """Starts a reload.

        Raises:
            LoadingWindowError: one is going on.
        """
        if self._future is not None:
            raise LoadingWindowError("a reload is in progress; wait until it is done")
        self._future = self._pool.submit(self._env.reload)

    def tell(self, note: Callable[[str], None]) -> None:
        """Tells the outcome of a reload that is done."""
        future = self._future
        if future is None or not future.done():
            return
        self._future = None
        try:
            report = future.result(timeout=0)
        except Exception as error:  # noqa: BLE001 - told; the old model goes on
            note(f"error: reload failed, the old model goes on: {error}")
        else:
            stood_still = f"{report.pause_s * 1e3:.2f} ms"
            note(f"reloaded {report.source}, stepping stood still for {stood_still}")

    def abandon(self) -> None:
        """Waits for nothing: closing the env ends a reload that is going on."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class StepRate:
    """Steps per wall second over the last turns."""

    def __init__(self) -> None:
        self._samples: deque[tuple[int, float]] = deque(maxlen=_RATE_TURNS + 1)

    def of(self, steps: int, now: float) -> float:
        """The rate up to ``now``; NaN before there is one."""
        self._samples.append((steps, now))
        first_steps, first = self._samples[0]
        return (steps - first_steps) / (now - first) if now > first else float("nan")
