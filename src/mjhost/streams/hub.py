"""Streams of records out of a simulation, and the inlets through which commands come in.

Owns: ``StreamHub``, its outlets and subscriptions; the names of both.
Invariants: a name is declared once; a plugin's names end with its generation. A subscription is
bounded and outlives every stream: it is by name. What nobody listens to is neither stamped nor
kept, but for the last record of a latched stream.
Threads: everything may be called from any thread. Publishing never waits for a subscriber and never
calls its code.
Failure: names that are taken, unknown or malformed, and records of another type, are typed errors;
nothing was published. A stream that has ended raises ``StaleGenerationError``.
Not a goal: who may send, and when; the env asks that.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec

from mjhost.errors import (
    EnvClosedError,
    InvalidArgumentError,
    StaleGenerationError,
    UnknownNameError,
    did_you_mean,
)
from mjhost.fanout import Subscribers, Subscription, checked_size
from mjhost.streams.records import Record
from mjhost.streams.stamp import Stamp

R = TypeVar("R", bound=Record)

Handler: TypeAlias = Callable[[Any, Any, R], Any]
"""Takes live model and data, valid for the call only, and a command."""

_NAME: Final = re.compile(r"[^\s/]+(/[^\s/]+)*")
_LONGEST_NAME: Final = 256


class Sample(NamedTuple):
    """One record as it was published.

    Attributes:
        stream: name of the stream.
        stamp: when, and of which model.
        record: the record.
    """

    stream: str
    stamp: Stamp
    record: Any


class StreamInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A stream or an inlet as it is now.

    Attributes:
        name: of the stream.
        record: the type of its records.
        owner: the plugin it is of; empty for one of the env or its user.
        latched: whether a new subscription gets the last record first.
        takes: whether it is an inlet, to which commands are sent.
        listeners: subscriptions that get its records.
        published: records since it was declared.
    """

    name: str
    record: type[Record]
    owner: str = ""
    latched: bool = False
    takes: bool = False
    listeners: int = 0
    published: int = 0


class StreamSubscription(Subscription[Sample]):
    """The samples since it was made, in order; the inverse of ``subscribe`` is ``close``.

    Iterating waits for each next sample and ends when the env or the subscription is closed.
    """

    _WHAT = "sample"

    def __init__(self, maxsize: int, forget: Callable[[Any], object], names: Iterable[str]) -> None:
        super().__init__(maxsize, forget)
        self._names = frozenset(names)

    def wants(self, name: str) -> bool:
        """Whether it is for the stream of that name."""
        return not self._names or name in self._names


class Outlet(Generic[R]):
    """The end of a stream that records go into; ``declare`` makes it.

    Attributes:
        name: of the stream.
        record: the type of its records.
        owner: the plugin it is of; empty for one of the env or its user.
        latched: whether its last record is kept for those who come later.
        published: records so far.
    """

    def __init__(
        self, hub: StreamHub, name: str, record: type[R], owner: str, *, latched: bool
    ) -> None:
        self.name, self.record, self.owner, self.latched = name, record, owner, latched
        self.published = 0
        self._hub = hub
        self._listeners: Subscribers[StreamSubscription] = Subscribers()
        self._last: Sample | None = None
        self._ended = False

    @property
    def wanted(self) -> bool:
        """Whether it is worth making a record; False spares the work of measuring."""
        return self.latched or bool(self._listeners)

    def now(self) -> Stamp:
        """The stamp of the present moment, for a record that is published later; in a hook."""
        return self._hub.stamp()

    def publish(self, record: R, stamp: Stamp | None = None) -> None:
        """Hand a record to whoever listens; one that nobody wants is forgotten at once.

        A step that is undone because a later hook raised takes back nothing that was published.

        Args:
            record: of the type that was declared; nobody writes to its arrays any more.
            stamp: of an earlier ``now()``, for what was measured then, or from a thread of your
                own; by default the present moment, which only a hook has.

        Raises:
            InvalidArgumentError: it is of another type, or there is no present moment.
            StaleGenerationError: the stream has ended, with its plugin or with the env.
        """
        if type(record) is not self.record:
            raise InvalidArgumentError(
                f"stream {self.name!r} carries {self.record.__name__}, got {type(record).__name__}"
            )
        if self._ended:
            raise StaleGenerationError(
                f"stream {self.name!r} has ended, with the plugin or env that it was of; declare "
                "it anew in the present one"
            )
        self.published += 1
        if not self.latched and not self._listeners:
            return
        self._hub.deliver(self, Sample(self.name, stamp or self._hub.stamp(), record))


class Inlet(Generic[R]):
    """Takes commands; ``accept`` makes it.

    Attributes:
        name: by which commands are sent to it.
        record: the type of the commands.
        owner: the plugin it is of; empty for one of the env or its user.
        handler: takes a command.
    """

    def __init__(self, name: str, record: type[R], owner: str, handler: Handler[R]) -> None:
        self.name, self.record, self.owner, self.handler = name, record, owner, handler


class StreamHub:
    """All streams and inlets of one env.

    Args:
        stamp: tells the present moment; raises where there is none.

    Attributes:
        lock: orders all changes; a leaf, held for a few bytecodes.
        stamp: as given.
    """

    def __init__(self, stamp: Callable[[], Stamp]) -> None:
        self.stamp = stamp
        # Reentrant: a finaliser that the collector runs in here may close a subscription.
        self.lock = threading.RLock()
        self._outlets: dict[str, Outlet[Any]] = {}
        self._inlets: dict[str, Inlet[Any]] = {}
        self._subscribers: Subscribers[StreamSubscription] = Subscribers()
        self._changes = 0
        self._closed = False

    @property
    def changes(self) -> int:
        """Grows whenever a stream or an inlet comes or goes: a look at it spares one at all."""
        return self._changes

    def streams(self) -> tuple[StreamInfo, ...]:
        """Every stream, then every inlet, each in the order of declaration."""
        with self.lock:
            outlets, inlets = tuple(self._outlets.values()), tuple(self._inlets.values())
        return tuple(map(_outlet_info, outlets)) + tuple(
            StreamInfo(name=inlet.name, record=inlet.record, owner=inlet.owner, takes=True)
            for inlet in inlets
        )

    def subscribe(self, *names: str, maxsize: int = 64) -> StreamSubscription:
        """The samples of these streams from now on; of all streams if none is named.

        A stream that is declared later under one of the names belongs to it, so a subscription
        outlives reloads. Latched streams give their last record first.

        Args:
            names: of streams.
            maxsize: samples it holds; when it is full the oldest is dropped.

        Raises:
            InvalidArgumentError: a name is no name, ``maxsize`` no integer from 1 to 2**20.
            EnvClosedError: the env is closed.
        """
        for name in names:
            _check_name(name)
        subscription = StreamSubscription(checked_size(maxsize), self._forget, names)
        with self.lock:
            self._check_open()
            self._subscribers.add(subscription)
            for outlet in self._outlets.values():
                if subscription.wants(outlet.name):
                    outlet._listeners.add(subscription)
                    if outlet._last is not None:
                        subscription.put(outlet._last)
        return subscription

    # -- for those who publish and take ------------------------------------------------------

    def declare(
        self, name: str, record: type[R], *, owner: str = "", latched: bool = False
    ) -> Outlet[R]:
        """A new stream of that name.

        Raises:
            InvalidArgumentError: the name is malformed or taken, or ``record`` is no record type.
            EnvClosedError: the env is closed.
        """
        _check_declaration(name, record)
        outlet = Outlet(self, name, record, owner, latched=latched)
        with self.lock:
            self._check_free(name, self._outlets)
            for subscription in self._subscribers.living():
                if subscription.wants(name):
                    outlet._listeners.add(subscription)
            self._outlets[name] = outlet
            self._changes += 1
        return outlet

    def accept(
        self, name: str, record: type[R], handler: Handler[R], *, owner: str = ""
    ) -> Inlet[R]:
        """Let ``handler`` take what is sent to ``name``.

        Raises:
            InvalidArgumentError: the name is malformed or taken, or ``record`` is no record type.
            EnvClosedError: the env is closed.
        """
        _check_declaration(name, record)
        if not callable(handler):
            raise InvalidArgumentError(f"what takes {name!r} must be a function, got {handler!r}")
        inlet = Inlet(name, record, owner, handler)
        with self.lock:
            self._check_free(name, self._inlets)
            self._inlets[name] = inlet
            self._changes += 1
        return inlet

    def withdraw(self, *ends: Outlet[Any] | Inlet[Any]) -> None:
        """Take streams and inlets back; twice is once."""
        with self.lock:
            for end in ends:
                if isinstance(end, Outlet):
                    end._ended = True
                table: dict[str, Any] = self._outlets if isinstance(end, Outlet) else self._inlets
                if table.get(end.name) is end:
                    del table[end.name]
                    self._changes += 1

    def command(self, name: str, record: Record) -> Callable[[Any, Any], Any]:
        """What hands ``record`` to the inlet of that name, called with live model and data.

        Raises:
            UnknownNameError: there is no such inlet.
            InvalidArgumentError: the inlet takes records of another type.
        """
        with self.lock:
            inlet = self._inlets.get(name)
            known = list(self._inlets)
        if inlet is None:
            raise UnknownNameError(
                f"nothing takes commands as {name!r}; {did_you_mean(name, known)}"
            )
        if type(record) is not inlet.record:
            raise InvalidArgumentError(
                f"{name!r} takes {inlet.record.__name__}, got {type(record).__name__}"
            )
        handler = inlet.handler
        return lambda model, data: handler(model, data, record)

    def deliver(self, outlet: Outlet[Any], sample: Sample) -> None:
        """Hands a sample to the listeners of its stream; for ``Outlet.publish``."""
        with self.lock:  # a subscription is not made between the last record and the listeners
            if outlet.latched:
                outlet._last = sample
            living = outlet._listeners.living()
            if not living:
                outlet._listeners.forget()
        for subscription in living:
            subscription.put(sample)

    # -- ends --------------------------------------------------------------------------------

    def close(self) -> None:
        """End every stream and subscription; twice is once."""
        with self.lock:
            self._closed = True
            self.withdraw(*self._outlets.values(), *self._inlets.values())
            self._subscribers.end_all("the env is closed")

    def reinit_after_fork(self) -> None:
        """Close the hub in a forked child, whatever locks vanished threads held."""
        self.lock = threading.RLock()
        self._subscribers.reinit_after_fork()
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise EnvClosedError("streams need an open env, this one is closed")

    def _check_free(self, name: str, taken: dict[str, Any]) -> None:
        self._check_open()
        if name in taken:
            whose = taken[name].owner
            by = f"plugin {whose!r}" if whose else "the env"
            raise InvalidArgumentError(f"the name {name!r} is taken by {by}; choose another")

    def _forget(self, subscription: StreamSubscription) -> None:
        with self.lock:
            self._subscribers.forget(subscription)
            for outlet in self._outlets.values():
                outlet._listeners.forget(subscription)


class PluginStreams:
    """The streams and inlets of one plugin; they end with its generation.

    Args:
        hub: of the env.
        owner: name of the plugin.
        calling: calls a handler, given first, as plugin code is called.
    """

    def __init__(self, hub: StreamHub, owner: str, calling: Callable[..., Any]) -> None:
        self._hub, self._owner, self._calling = hub, owner, calling
        self._ends: list[Outlet[Any] | Inlet[Any]] = []
        self._closed = False

    def declare(self, name: str, record: type[R], *, latched: bool = False) -> Outlet[R]:
        """A new stream.

        Args:
            name: words without spaces, separated by slashes; of all plugins only one may have it.
            record: the type of its records.
            latched: keep the last record for those who subscribe later.

        Raises:
            InvalidArgumentError: the name is malformed or taken, or ``record`` is no record type.
            StaleGenerationError: the plugin's generation has ended.
        """
        with self._hub.lock:
            self._check_open()
            outlet = self._hub.declare(name, record, owner=self._owner, latched=latched)
            self._ends.append(outlet)
        return outlet

    def accept(self, name: str, record: type[R], handler: Handler[R]) -> None:
        """Let ``handler`` take what ``env.send`` sends to ``name``; it runs between two steps.

        What it raises goes to the sender; an error of ``mjhost.errors`` says that the command was
        refused, any other one is recorded as a failure of the plugin.

        Args:
            name: words without spaces, separated by slashes; of all plugins only one may have it.
            record: the type of the commands.
            handler: takes ``(model, data, command)``; what it returns goes to the sender.

        Raises:
            InvalidArgumentError: the name is malformed or taken, or ``record`` is no record type.
            StaleGenerationError: the plugin's generation has ended.
        """
        entered = partial(self._calling, handler) if callable(handler) else handler
        with self._hub.lock:
            self._check_open()
            self._ends.append(self._hub.accept(name, record, entered, owner=self._owner))

    def close(self) -> None:
        """Take all of them back; twice is once."""
        with self._hub.lock:
            self._closed = True
            ends, self._ends = self._ends, []
            self._hub.withdraw(*ends)

    def _check_open(self) -> None:
        if self._closed:
            raise StaleGenerationError(
                f"plugin {self._owner!r} has ended and can have no streams any more"
            )


def _outlet_info(outlet: Outlet[Any]) -> StreamInfo:
    return StreamInfo(
        name=outlet.name,
        record=outlet.record,
        owner=outlet.owner,
        latched=outlet.latched,
        listeners=len(outlet._listeners.living()),
        published=outlet.published,
    )


def _check_declaration(name: str, record: type[Record]) -> None:
    _check_name(name)
    if not (isinstance(record, type) and issubclass(record, Record)):
        raise InvalidArgumentError(f"stream {name!r} needs a type of record, got {record!r}")


def _check_name(name: str) -> None:
    if not isinstance(name, str) or len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        raise InvalidArgumentError(
            "the name of a stream is words without spaces, separated by single slashes, such as "
            f"'imu/data', got {name!r}"
        )
