"""What happens to an env, as ordered records, and how they reach whoever listens.

Owns: the event types, ``EventHub``, ``Subscription``.
Invariants: every event has a number, ``seq``, that grows by one, counted whether anybody listens or
not; all subscribers see the same order. A subscription is bounded: when it is full the oldest
event is dropped and counted in ``lost``.
Threads: everything may be called from any thread. ``publish`` never waits for a subscriber and
never calls user code. A subscription that nobody holds any more is collected.
Failure: after the hub closed, a subscription still delivers what it has, then raises
``EnvClosedError``; publishing to a closed hub does nothing.
"""

from __future__ import annotations

import threading
from typing import Any

import msgspec

from mjhost.env.records import Fault
from mjhost.errors import EnvClosedError
from mjhost.fanout import Subscribers, Subscription, checked_size


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    """Something that happened at one step boundary.

    Attributes:
        seq: number of the event in this env, from 1.
        session_time: simulated time since the env was made, s sim; never goes back.
        sim_time: ``data.time``, s sim.
        step: steps since the last load or reset.
        model_generation: value of the ``ModelGeneration`` it belongs to.
    """

    seq: int
    session_time: float
    sim_time: float
    step: int
    model_generation: int


class Loaded(Event, frozen=True, kw_only=True, tag="loaded"):
    """A first model is there.

    Attributes:
        source: label of the source.
        content_hash: SHA-256 of the model.
    """

    source: str
    content_hash: str = ""


class Reloaded(Event, frozen=True, kw_only=True, tag="reloaded"):
    """The model was replaced.

    Attributes:
        source: label of the source.
        content_hash: SHA-256 of the model.
        kept_state: whether state was carried over by name.
        rolled_back: whether it is the old model again, after a failure in the swap.
    """

    source: str
    content_hash: str = ""
    kept_state: bool = False
    rolled_back: bool = False


class PluginsReloaded(Event, frozen=True, kw_only=True, tag="plugins_reloaded"):
    """A new generation of plugins is there.

    Attributes:
        plugin_generation: value of the ``PluginGeneration``.
        ready: names of those that work.
        failed: names of those that do not.
    """

    plugin_generation: int
    ready: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class ResetDone(Event, frozen=True, kw_only=True, tag="reset_done"):
    """The simulation was put back to its start.

    Attributes:
        keyframe: name or number of the keyframe, if one was asked for.
        model: whether edits of the model were undone too.
    """

    keyframe: str | int | None = None
    model: bool = False


class CheckpointTaken(Event, frozen=True, kw_only=True, tag="checkpoint_taken"):
    """A checkpoint was taken.

    Attributes:
        exact: whether it holds everything, as far as can be known.
    """

    exact: bool = True


class CheckpointRestored(Event, frozen=True, kw_only=True, tag="checkpoint_restored"):
    """The simulation goes on from a checkpoint.

    Attributes:
        source: label of the model that it was taken of.
    """

    source: str = ""


class Paused(Event, frozen=True, kw_only=True, tag="paused"):
    """The physics thread stopped stepping."""


class Resumed(Event, frozen=True, kw_only=True, tag="resumed"):
    """The physics thread goes on stepping."""


class OptionChange(msgspec.Struct, frozen=True):
    """One option of a transaction.

    Attributes:
        field: canonical name of the option.
        old: its value before.
        new: its value now.
    """

    field: str
    old: Any
    new: Any


class OptionsChanged(Event, frozen=True, kw_only=True, tag="options_changed"):
    """An options transaction was applied.

    Attributes:
        changes: one entry per changed field.
        epoch: value of the ``OptionsEpoch``.
    """

    changes: tuple[OptionChange, ...]
    epoch: int


class FaultRaised(Event, frozen=True, kw_only=True, tag="fault_raised"):
    """The simulation was stopped by a fault.

    Attributes:
        fault: the record that ``env.fault`` shows.
    """

    fault: Fault


class PluginFailed(Event, frozen=True, kw_only=True, tag="plugin_failed"):
    """A plugin did not load, or raised.

    Attributes:
        plugin: its name.
        hook: where it failed.
        message: what it said.
        plugin_generation: value of the ``PluginGeneration`` it belongs to.
    """

    plugin: str
    hook: str
    message: str
    plugin_generation: int


class EngineWarning(Event, frozen=True, kw_only=True, tag="engine_warning"):
    """The engine warned.

    Attributes:
        warning: the engine's name of the warning.
        count: how often so far, since the env was made.
        message: the engine's text, if it gave one.
    """

    warning: str
    count: int
    message: str = ""


class StepLimitReached(Event, frozen=True, kw_only=True, tag="step_limit_reached"):
    """The limit of ``stop_at`` was reached; the simulation is paused."""


AnyEvent = (
    Loaded
    | Reloaded
    | PluginsReloaded
    | ResetDone
    | Paused
    | Resumed
    | OptionsChanged
    | FaultRaised
    | PluginFailed
    | EngineWarning
    | StepLimitReached
    | CheckpointTaken
    | CheckpointRestored
)
"""Every kind, for decoding: ``msgspec.json.decode(text, type=AnyEvent)``."""


class EventSubscription(Subscription[Event]):
    """The events since it was made, in order; the inverse of ``subscribe`` is ``close``.

    Iterating waits for each next event and ends when the env or the subscription is closed.
    """

    _WHAT = "event"


class EventHub:
    """Numbers events and hands them to every subscription."""

    def __init__(self) -> None:
        # Reentrant: a finaliser that the collector runs in here may close a subscription.
        self._lock = threading.RLock()
        self._subscribers: Subscribers[EventSubscription] = Subscribers()
        self._closed = False
        self._seq = 0

    @property
    def has_subscribers(self) -> bool:
        """Whether it is worth preparing an event; a few may have gone since the last one."""
        return bool(self._subscribers)

    @property
    def seq(self) -> int:
        """Number of the last event."""
        return self._seq

    def subscribe(self, maxsize: int = 1024) -> EventSubscription:
        """A new subscription, which begins empty and holds at most ``maxsize`` events.

        Raises:
            InvalidArgumentError: ``maxsize`` is no integer from 1 to 2**20.
            EnvClosedError: the hub is closed.
        """
        subscription = EventSubscription(checked_size(maxsize), self._forget)
        with self._lock:
            if self._closed:
                raise EnvClosedError("subscribe needs an open env, this one is closed")
            self._subscribers.add(subscription)
        return subscription

    def publish(
        self, kind: type[Event], stamp: tuple[float, float, int, int], /, **fields: Any
    ) -> None:
        """Number an event and hand it to every subscription; it is built only if there is one."""
        with self._lock:
            if self._closed:
                return
            self._seq += 1
            if not self._subscribers:
                return
            living = self._subscribers.living()
            if not living:
                self._subscribers.forget()
                return
            session_time, sim_time, step, generation = stamp
            event = kind(
                seq=self._seq,
                session_time=session_time,
                sim_time=sim_time,
                step=step,
                model_generation=generation,
                **fields,
            )
            for subscription in living:
                subscription.put(event)

    def close(self) -> None:
        """End every subscription; twice is once."""
        with self._lock:
            self._closed = True
            self._subscribers.end_all("the env is closed")

    def reinit_after_fork(self) -> None:
        """Close the hub in a forked child, whatever locks vanished threads held."""
        self._lock = threading.RLock()
        self._subscribers.reinit_after_fork()
        self.close()

    def _forget(self, subscription: EventSubscription) -> None:
        with self._lock:
            self._subscribers.forget(subscription)
