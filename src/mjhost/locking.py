"""Locks that serve first come, first served, and refuse an order that could deadlock.

Owns: ``PhysicsLock``, ``OrderedLock``, and the book of which thread holds which lower lock.
Invariants: the order is physics, plugin host, render; a thread that holds a lock of a higher level
number (or another lock of the same one) and asks for a lower one gets ``LockOrderError`` at once
and never waits. When somebody waits, ``release`` makes the first waiter the owner, and nobody can
slip in between: a waiter waits for the holders before it, no longer.
Threads: every method may be called from any thread. An interrupt (Ctrl-C on the main thread) while
waiting leaves the caller without the lock and nobody else without it either.
Failure: a wrong order, a second acquire of a lock that is not reentrant, and a release by somebody
else raise ``LockOrderError``; the lock is as it was.
Not a goal: the order between the physics locks of two envs.

How it works. ``baton`` is a list that holds one token while the lock is free. Taking it is
``del baton[0]`` (``IndexError``: somebody else has it), giving it back is one ``append``. Both are
atomic under the GIL and a quarter of the price of a ``threading.Lock``. What decides, though, is
that the interpreter looks for signals only after calls, at function entry and at backward jumps:
between ``del baton[0]`` and the store into ``owner`` there is none of these, so an interrupt never
finds the baton taken and nobody the owner. ``lock.acquire(False)`` and a store have that gap.

The fast path, to be inlined where a call is too dear (``me`` is ``threading.get_ident()``)::

    if held_lower_scopes or lock.queue or not lock.baton:
        lock.acquire(asked="step")
    else:
        try:
            del lock.baton[0]
            lock.owner = me
        except IndexError:
            lock.acquire(asked="step")
    try:
        ...
    finally:
        lock.owner = None
        lock.baton.append(None)
        if lock.queue:
            lock.kick()
"""

from __future__ import annotations

import math
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from enum import IntEnum
from threading import get_ident
from types import TracebackType
from typing import Final, Self, final

from mjhost.errors import LockOrderError

WAIT_BOUND_S: Final = 0.2
"""The longest single wait; a waiter looks again after it, so a lost wake-up costs this at most."""


class LockLevel(IntEnum):
    """The place of a lock in the order; a thread may only go to higher numbers."""

    PHYSICS = 0
    PLUGIN_HOST = 1
    RENDER = 2


held_lower_scopes: Final[dict[int, list[OrderedLock]]] = {}
"""What each thread holds below physics, outermost first; empty when nobody holds anything.

Each thread touches only the entry of its own id, so no lock is needed, and testing the dict for
truth is all that the physics lock pays while no lower lock is held anywhere.
"""


class _Waiter:
    """One place in the queue. ``granted`` is the truth; ``gate`` only ends the sleep early."""

    __slots__ = ("gate", "granted", "thread")

    def __init__(self, thread: int) -> None:
        self.thread = thread
        self.granted = False
        self.gate = threading.Lock()
        self.gate.acquire()


class _FairLock(ABC):
    """The baton, its queue and the hand-over; what the two public locks have in common.

    Attributes:
        baton: holds one token while the lock is free.
        queue: who waits, first come first.
        owner: id of the owning thread; None while free, and for an instant around a change.
    """

    __slots__ = ("_mutex", "baton", "forked", "name", "owner", "queue")

    def __init__(self, name: str) -> None:
        self.name = name
        self.baton: list[None] = [None]
        self.queue: deque[_Waiter] = deque()
        self.owner: int | None = None
        self.forked = False
        self._mutex = threading.Lock()  # orders changes of the queue; held for a few bytecodes

    @property
    def contended(self) -> bool:
        """Whether somebody waits (hot code tests ``lock.queue`` itself)."""
        return bool(self.queue)

    def held_by_me(self) -> bool:
        """Whether the calling thread is the owner."""
        return self.owner == get_ident()

    @abstractmethod
    def acquire(self, timeout_s: float | None = None, *, asked: str) -> bool:
        """Become the owner."""

    @abstractmethod
    def release(self) -> None:
        """Give the lock up."""

    def holding(self, asked: str) -> Holding:
        """A context manager that holds the lock; ``asked`` is what for, in messages."""
        return Holding(self, asked)

    def kick(self) -> None:
        """Give the baton to the first waiter if it is free: nobody waits for a free lock."""
        with self._mutex:
            if self.queue and self.baton:
                try:
                    del self.baton[0]
                except IndexError:  # taken on the fast path; its release will see the queue
                    return
                # No call between here and the last line: an interrupt cannot come in between.
                waiter = self.queue[0]
                del self.queue[0]
                self.owner = waiter.thread
                waiter.granted = True
                waiter.gate.release()

    def _free(self) -> None:
        # The order is the whole protocol: free first, then look at the queue. Somebody who queues
        # up does it the other way round (queue up, then look at the baton), so one sees the other.
        # Nobody can slip in between: the fast path asks for an empty queue. An interrupt before
        # the second look costs the first waiter its bounded wait, not the lock.
        self.owner = None
        self.baton.append(None)
        if self.queue:
            self.kick()

    def reinit_after_fork(self) -> None:
        """Make the lock free in a forked child, whatever vanished threads held or waited for."""
        self._mutex = threading.Lock()
        self.queue.clear()
        self.owner = None
        self.baton[:] = [None]
        self.forked = True  # scopes that were open at the fork end quietly

    def _wait_in_queue(self, me: int, timeout_s: float | None) -> bool:
        """Queue up and wait; whether the lock is now ours."""
        deadline = math.inf if timeout_s is None else time.monotonic() + timeout_s
        waiter = _Waiter(me)
        try:
            with self._mutex:
                self.queue.append(waiter)
            self.kick()
            return self._wait_for(waiter, deadline)
        except BaseException:
            if self._leave(waiter):
                self._free()
            raise

    def _wait_for(self, waiter: _Waiter, deadline: float) -> bool:
        while not waiter.granted:
            left = deadline - time.monotonic()
            if left <= 0.0:
                return self._leave(waiter)
            if not waiter.gate.acquire(timeout=min(left, WAIT_BOUND_S)):
                self.kick()  # heals a releaser that was interrupted before its second look
        return True

    def _refuse_release(self) -> None:
        if self.forked:
            return
        raise LockOrderError(
            f"the {self.name} is given up only by the thread that holds it; "
            f"that is {self.owner or 'nobody'}, this is thread {get_ident()}"
        )

    def _leave(self, waiter: _Waiter) -> bool:
        """Take ``waiter`` out of the queue; True if it was granted in the same instant."""
        with self._mutex:
            if waiter.granted:
                return True
            if waiter in self.queue:
                self.queue.remove(waiter)
            return False


@final
class PhysicsLock(_FairLock):
    """The lock around model and data. Not reentrant: asking twice is an error, not a deadlock."""

    __slots__ = ()

    def __init__(self, name: str = "physics lock") -> None:
        super().__init__(name)

    def acquire(self, timeout_s: float | None = None, *, asked: str) -> bool:
        """Become the owner, after everybody who asked before.

        Args:
            timeout_s: wall seconds to wait; None waits for as long as it takes, 0 not at all.
            asked: the operation that needs the lock, for messages.

        Returns:
            Whether the caller now owns the lock; always True without a timeout.

        Raises:
            LockOrderError: the thread holds this lock or a lower one; nothing was waited for.
        """
        me = get_ident()
        if held_lower_scopes:
            refuse_below(LockLevel.PHYSICS, me, asked, self.name)
        if not self.queue and self.baton:
            try:
                del self.baton[0]
                self.owner = me
                return True
            except IndexError:
                pass
        return self._acquire_slow(me, timeout_s, asked)

    def try_acquire(self) -> bool:
        """Become the owner if that needs no wait and nobody is before us; no order check."""
        if self.queue or not self.baton:
            return False
        me = get_ident()
        try:
            del self.baton[0]
            self.owner = me
            return True
        except IndexError:
            return False

    def release(self) -> None:
        """Pass the lock to the first waiter, or free it.

        Raises:
            LockOrderError: the calling thread is not the owner; nothing changed.
        """
        if self.owner != get_ident():
            self._refuse_release()
            return
        self.owner = None
        self.baton.append(None)
        if self.queue:
            self.kick()

    def yield_to_waiters(self) -> None:
        """Let everybody who waits now have a turn, then go on as the owner.

        Nothing happens when nobody waits. An interrupt is raised only once the caller owns the lock
        again, so that its ``release`` is always right.
        """
        if not self.queue:
            return
        if self.owner != (me := get_ident()):
            self._refuse_release()
            return
        self._rotate(_Waiter(me))

    def _rotate(self, own: _Waiter) -> None:
        try:
            with self._mutex:
                if not self.queue:
                    return  # the last one gave up meanwhile
                # No call from here to the last line, like in kick: once the baton is granted, our
                # place in the queue is the only way back to it.
                self.queue += (own,)
                waiter = self.queue[0]
                del self.queue[0]
                self.owner = waiter.thread
                waiter.granted = True
                waiter.gate.release()
            self._wait_for(own, math.inf)
        except BaseException:
            while self.owner != own.thread:
                try:
                    self._wait_for(own, math.inf)
                except BaseException:  # noqa: BLE001, S112 - the first one is raised below
                    continue
            raise

    def _acquire_slow(self, me: int, timeout_s: float | None, asked: str) -> bool:
        if self.owner == me:
            raise LockOrderError(
                f"{asked} needs the {self.name}, which is already held by this thread: it is not "
                "reentrant; leave the operation that holds it first"
            )
        if timeout_s is not None and timeout_s <= 0.0:
            return self.try_acquire()
        return self._wait_in_queue(me, timeout_s)


@final
class Holding:
    """A ``with`` scope that holds a lock."""

    __slots__ = ("_asked", "_lock")

    def __init__(self, lock: _FairLock, asked: str) -> None:
        self._lock = lock
        self._asked = asked

    def __enter__(self) -> None:
        self._lock.acquire(asked=self._asked)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()


@final
class OrderedLock(_FairLock):
    """A lock below physics, reentrant for its owner, entered in the book while it is held.

    Attributes:
        level: its place in the order.
        scope: what the owner holds it for, as messages name it.
    """

    __slots__ = ("_again", "level", "scope")

    def __init__(self, name: str, level: LockLevel) -> None:
        super().__init__(name)
        self.level = level
        self.scope = name
        self._again = 0  # how often the owner entered beyond the first time

    def acquire(self, timeout_s: float | None = None, *, asked: str = "") -> bool:
        """Become the owner, or enter once more.

        Args:
            timeout_s: wall seconds to wait; None waits for as long as it takes, 0 not at all.
            asked: the scope that needs the lock, for messages; the lock's name if empty.

        Returns:
            Whether the caller now owns the lock; always True without a timeout.

        Raises:
            LockOrderError: the thread holds a lower lock or another of this level.
        """
        me = get_ident()
        if self.owner == me:
            self._again += 1
            return True
        stack = held_lower_scopes.get(me) if held_lower_scopes else None
        if stack is not None:
            refuse_below(self.level, me, asked or self.name, self.name)
        scope = asked or self.name
        if self.queue or not self.baton:
            return self._acquire_slow(me, timeout_s, scope, stack)
        try:
            del self.baton[0]
        except IndexError:
            return self._acquire_slow(me, timeout_s, scope, stack)
        self.owner = me
        self.scope = scope
        self._again = 0  # an interrupt may have kept an inner leave from counting
        if stack is None:
            held_lower_scopes[me] = [self]
        else:
            stack += (self,)
        return True

    def release(self) -> None:
        """Leave once; the last leave passes the lock to the first waiter, or frees it.

        Raises:
            LockOrderError: the calling thread is not the owner; nothing changed.
        """
        me = get_ident()
        if self.owner != me:
            self._refuse_release()
            return
        if self._again:
            self._again -= 1
            return
        stack = held_lower_scopes[me]
        if stack[-1] is self:  # the way it goes; and without a call, so without an interrupt
            del stack[-1]
        else:
            stack.remove(self)
        if not stack:
            del held_lower_scopes[me]
        self.owner = None
        self.baton.append(None)
        if self.queue:
            self.kick()

    def reinit_after_fork(self) -> None:
        """Make the lock free in a forked child, whatever vanished threads held or waited for."""
        super().reinit_after_fork()
        self._again = 0
        for thread in tuple(held_lower_scopes):
            stack = [lock for lock in held_lower_scopes[thread] if lock is not self]
            held_lower_scopes[thread] = stack
            if not stack:
                del held_lower_scopes[thread]

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def _acquire_slow(
        self, me: int, timeout_s: float | None, scope: str, stack: list[OrderedLock] | None
    ) -> bool:
        impatient = timeout_s is not None and timeout_s <= 0.0
        if impatient or not self._wait_in_queue(me, timeout_s):
            return False
        self.scope = scope
        self._again = 0
        if stack is None:
            held_lower_scopes[me] = [self]
        else:
            stack += (self,)
        return True


def refuse_below(level: LockLevel, me: int, asked: str, wanted: str) -> None:
    """Raise if this thread holds a lock at or below ``level``; the stack's last is the lowest."""
    stack = held_lower_scopes.get(me)
    if stack and stack[-1].level >= level:
        held = " inside ".join(lock.scope for lock in reversed(stack))
        raise LockOrderError(
            f"{asked} needs the {wanted}, but this thread holds a lower lock ({held}); the order "
            "is physics, plugin host, render: leave that scope first"
        )
