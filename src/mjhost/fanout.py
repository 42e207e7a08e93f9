"""Bounded queues from one simulation to whoever listens.

Owns: ``Subscription``, one listener's queue, and ``Subscribers``, those of one source.
Invariants: a queue is bounded: when it is full the oldest item is dropped and counted in ``lost``.
A subscription that nobody holds any more is collected.
Threads: everything may be called from any thread. Sending never waits for a listener and never
calls its code; the condition of a queue is a leaf lock, nothing is called while it is held.
Failure: after its source has ended a subscription still gives what it has, then raises
``EnvClosedError``.
Not a goal: what is sent, and in which order; the hub that owns a source knows.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from mjhost.errors import EnvClosedError, InvalidArgumentError

WAIT_BOUND_S: Final = 0.2
"""The longest single wait inside ``get``; it waits again after it."""

MAX_TIMEOUT_S: Final = 1e9
"""A longer wait is the same."""

MAX_SUBSCRIPTION: Final = 1 << 20
"""Most items a subscription may hold."""

T = TypeVar("T")


def checked_timeout(timeout: float) -> float:
    """``timeout`` if it is a number of seconds that one can wait; 0 for a negative one."""
    number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
    if not number or timeout != timeout:  # noqa: PLR0124 - NaN
        raise InvalidArgumentError(f"timeout must be a number of seconds or None, got {timeout!r}")
    return float(min(max(timeout, 0), MAX_TIMEOUT_S))


def checked_size(maxsize: int) -> int:
    """``maxsize`` if a subscription may be that large."""
    if type(maxsize) is not int or not 1 <= maxsize <= MAX_SUBSCRIPTION:
        raise InvalidArgumentError(
            f"maxsize must be an integer from 1 to {MAX_SUBSCRIPTION}, got {maxsize!r}"
        )
    return maxsize


class Subscription(Generic[T]):
    """What was sent since it was made, in order; the inverse of ``subscribe`` is ``close``.

    Iterating waits for each next item and ends when the source or the subscription is closed.

    Attributes:
        lost: items that were dropped because nobody fetched them in time.
    """

    _WHAT = "item"

    def __init__(self, maxsize: int, forget: Callable[[Any], object]) -> None:
        self._forget = forget
        self._items: deque[T] = deque(maxlen=maxsize)
        self._changed = threading.Condition()
        self._ended = ""
        self.lost = 0

    def get(self, timeout: float | None = None) -> T:
        """The next one.

        Args:
            timeout: wall seconds to wait for one; ``None`` waits until there is one or the env is
                closed, 0 does not wait.

        Raises:
            TimeoutError: nothing came in that time.
            EnvClosedError: the env or this subscription is closed and nothing is left.
        """
        deadline = None if timeout is None else time.monotonic() + checked_timeout(timeout)
        with self._changed:
            while not self._items:
                if self._ended:
                    raise EnvClosedError(f"no {self._WHAT} will come any more: {self._ended}")
                left = WAIT_BOUND_S if deadline is None else deadline - time.monotonic()
                if left <= 0.0:
                    raise TimeoutError(f"no {self._WHAT} within {timeout} s")
                self._changed.wait(min(left, WAIT_BOUND_S))
            return self._items.popleft()

    def drain(self) -> list[T]:
        """All that are waiting; returns at once."""
        with self._changed:
            items = list(self._items)
            self._items.clear()
            return items

    def close(self) -> None:
        """End the subscription; what was not fetched is gone."""
        self._forget(self)
        with self._changed:
            self._items.clear()
            self._end_locked("the subscription is closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[T]:
        while True:
            try:
                item = self.get()
            except EnvClosedError:
                return
            yield item

    def put(self, item: T) -> None:
        """Let the listener have ``item``; for the source."""
        with self._changed:
            if self._ended:
                return
            if len(self._items) == self._items.maxlen:
                self.lost += 1  # the append below drops the oldest
            self._items.append(item)
            self._changed.notify()

    def end(self, why: str) -> None:
        """Nothing more will come; for the source."""
        with self._changed:
            self._end_locked(why)

    def reinit_after_fork(self) -> None:
        """A new condition in a forked child, whatever vanished threads held."""
        self._changed = threading.Condition()

    def _end_locked(self, why: str) -> None:
        self._ended = self._ended or why
        self._changed.notify_all()


S = TypeVar("S", bound=Subscription[Any])


class Subscribers(Generic[S]):
    """The subscriptions of one source, held weakly.

    Threads: the caller serialises ``add``, ``forget`` and ``end_all``; ``living`` may run beside
    them.
    """

    __slots__ = ("_references",)

    def __init__(self) -> None:
        self._references: tuple[weakref.ref[S], ...] = ()

    def __bool__(self) -> bool:
        return bool(self._references)

    def living(self) -> tuple[S, ...]:
        """Those that somebody holds; the others are forgotten at the next ``add``."""
        found = (reference() for reference in self._references)
        return tuple(subscription for subscription in found if subscription is not None)

    def add(self, subscription: S) -> None:
        """One more."""
        self._references = (*map(weakref.ref, self.living()), weakref.ref(subscription))

    def forget(self, gone: S | None = None) -> None:
        """Leave out ``gone``, and those that nobody holds."""
        self._references = tuple(weakref.ref(kept) for kept in self.living() if kept is not gone)

    def end_all(self, why: str) -> None:
        """Ends and forgets every one."""
        living, self._references = self.living(), ()
        for subscription in living:
            subscription.end(why)

    def reinit_after_fork(self) -> None:
        """Locks of vanished threads are nobody's in a forked child."""
        for subscription in self.living():
            subscription.reinit_after_fork()
