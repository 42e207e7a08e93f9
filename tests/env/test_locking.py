"""The fair lock, and the order of locks."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mjhost import locking
from mjhost.errors import LockOrderError
from mjhost.locking import LockLevel, OrderedLock, PhysicsLock, held_lower_scopes

LIMIT_S = 20.0


@pytest.fixture(autouse=True)
def _no_scope_is_left():
    yield
    assert held_lower_scopes == {}


class Crew:
    """Threads that are joined, and whose errors are the test's."""

    def __init__(self):
        self.threads = []
        self.errors = []

    def start(self, fn, *args):
        def run():
            try:
                fn(*args)
            except BaseException as error:
                self.errors.append(error)

        thread = threading.Thread(target=run)
        self.threads.append(thread)
        thread.start()
        return thread

    def join(self):
        for thread in self.threads:
            thread.join(LIMIT_S)
            assert not thread.is_alive()
        if self.errors:
            raise self.errors[0]


@pytest.fixture
def crew():
    crew = Crew()
    yield crew
    crew.join()


@pytest.fixture
def fast_switching():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def wait_until(condition):
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.0005)


def plugin_lock(name="plugin host"):
    return OrderedLock(name, LockLevel.PLUGIN_HOST)


def acquire(lock, timeout_s=None):
    return lock.acquire(timeout_s, asked="test")


BOTH = pytest.mark.parametrize("make", [PhysicsLock, plugin_lock], ids=["physics", "ordered"])


# -- ownership -----------------------------------------------------------------------------------


@BOTH
def test_lock_is_owned_between_acquire_and_release(make):
    lock = make()
    assert not lock.held_by_me()
    assert acquire(lock)
    assert lock.held_by_me()
    assert lock.owner == threading.get_ident()
    lock.release()
    assert lock.owner is None
    assert lock.baton == [None]


@BOTH
def test_release_by_a_thread_that_does_not_own_it_is_refused(make, crew):
    lock = make()
    with pytest.raises(LockOrderError, match="nobody"):
        lock.release()
    acquire(lock)

    def stranger():
        with pytest.raises(LockOrderError, match="only by the thread that holds it"):
            lock.release()

    crew.start(stranger)
    crew.join()
    assert lock.held_by_me()
    lock.release()


def test_asking_twice_for_the_physics_lock_raises_instead_of_deadlocking():
    lock = PhysicsLock()
    with lock.holding("step"):
        with pytest.raises(LockOrderError, match="reload needs .* already held by this thread"):
            lock.acquire(asked="reload")
        assert lock.held_by_me()
    assert not lock.held_by_me()


@BOTH
def test_holding_releases_when_the_body_raises(make):
    lock = make()
    with pytest.raises(KeyError), lock.holding("step"):
        raise KeyError
    assert lock.baton == [None]


def test_try_acquire_refuses_a_lock_that_is_taken_or_waited_for(crew):
    lock = PhysicsLock()
    assert lock.try_acquire()
    assert not lock.try_acquire()
    crew.start(lambda: (acquire(lock), lock.release()))
    wait_until(lambda: lock.contended)
    assert not lock.try_acquire()
    lock.release()
    crew.join()
    assert lock.try_acquire()
    lock.release()


# -- fairness ------------------------------------------------------------------------------------


def queue_up(crew, lock, served, count, after=lambda _: None):
    """Starts ``count`` threads that queue up for ``lock`` one after the other."""

    def waiter(number):
        acquire(lock)
        served.append(number)
        after(number)
        lock.release()

    for number in range(count):
        before = len(lock.queue)
        crew.start(waiter, number)
        wait_until(lambda before=before: len(lock.queue) > before)


@BOTH
def test_waiters_are_served_in_the_order_in_which_they_came(make, crew):
    lock, served = make(), []
    acquire(lock)
    queue_up(crew, lock, served, 12)
    lock.release()
    crew.join()
    assert served == list(range(12))


def test_a_released_lock_goes_to_the_waiter_even_if_the_releaser_asks_at_once(crew):
    lock, served = PhysicsLock(), []
    acquire(lock)
    queue_up(crew, lock, served, 1)
    lock.release()
    assert lock.owner != threading.get_ident()
    acquire(lock)
    served.append("releaser")
    lock.release()
    crew.join()
    assert served == [0, "releaser"]


def test_yielding_serves_everybody_who_waits_and_comes_back_as_the_owner(crew):
    lock, served = PhysicsLock(), []
    acquire(lock)
    queue_up(crew, lock, served, 5)
    lock.yield_to_waiters()
    assert served == list(range(5))
    assert lock.held_by_me()
    lock.release()


def test_yielding_without_waiters_keeps_the_lock():
    lock = PhysicsLock()
    acquire(lock)
    lock.yield_to_waiters()
    assert lock.held_by_me()
    lock.release()


def test_yielding_a_lock_of_somebody_else_is_refused(crew):
    lock, served = PhysicsLock(), []
    acquire(lock)
    queue_up(crew, lock, served, 1)

    def stranger():
        with pytest.raises(LockOrderError):
            lock.yield_to_waiters()

    crew.start(stranger).join()
    lock.release()


@pytest.mark.slow
def test_whoever_waits_when_a_slice_ends_is_served_before_the_next(crew):
    lock, stop, passed_over, slices = PhysicsLock(), threading.Event(), [], [0]

    def holder():
        with lock.holding("physics"):
            while not stop.is_set():
                end = time.perf_counter() + 0.01
                while time.perf_counter() < end:
                    pass
                waiting = tuple(lock.queue)
                lock.yield_to_waiters()
                passed_over.extend(waiter for waiter in waiting if not waiter.granted)
                slices[0] += 1

    crew.start(holder)
    waits = []
    try:
        wait_until(lambda: slices[0] > 0)
        for _ in range(30):
            start = time.perf_counter()
            acquire(lock)
            waits.append(time.perf_counter() - start)
            lock.release()
    finally:
        stop.set()
    crew.join()
    assert passed_over == []
    assert sorted(waits)[len(waits) // 2] < 0.1  # the rest is the machine's scheduler


# -- timeouts ------------------------------------------------------------------------------------


@BOTH
def test_a_timeout_ends_the_wait_and_leaves_the_queue(make, crew):
    lock = make()
    acquire(lock)

    def waiter():
        start = time.monotonic()
        assert acquire(lock, 0.05) is False
        assert time.monotonic() - start >= 0.05
        assert not lock.held_by_me()

    crew.start(waiter)
    crew.join()
    assert not lock.contended
    assert lock.held_by_me()
    lock.release()


@BOTH
def test_no_timeout_at_all_does_not_wait(make, crew):
    lock = make()
    assert acquire(lock, 0.0)
    crew.start(lambda: lock.release() if acquire(lock, 0.0) else None)
    crew.join()
    assert lock.held_by_me()
    lock.release()


def test_a_waiter_that_gives_up_does_not_cost_the_next_its_turn(crew):
    lock, served = PhysicsLock(), []
    acquire(lock)
    crew.start(lambda: served.append(acquire(lock, 0.05)))
    wait_until(lambda: lock.contended)
    queue_up(crew, lock, served, 1)
    wait_until(lambda: served == [False])
    lock.release()
    crew.join()
    assert served == [False, 0]


def test_timeouts_that_race_the_release_never_lose_the_baton(crew, fast_switching):
    lock, granted = PhysicsLock(), []

    def impatient(seed):
        for round_ in range(150):
            if acquire(lock, (seed + round_) % 7 * 2e-5):
                granted.append(1)
                lock.release()

    for seed in range(4):
        crew.start(impatient, seed)
    crew.join()
    assert granted
    assert lock.baton == [None]
    assert not lock.queue
    assert lock.owner is None


# -- stress --------------------------------------------------------------------------------------


@pytest.mark.slow
@BOTH
def test_thousands_of_handovers_lose_no_wakeup_and_exclude_each_other(
    make, crew, fast_switching, monkeypatch
):
    monkeypatch.setattr(locking, "WAIT_BOUND_S", LIMIT_S)  # a lost wake-up shows as a hang
    lock, inside, count, handovers, done = make(), [], [0], [0], []
    start = threading.Barrier(4)

    def work():
        start.wait(LIMIT_S)
        for _ in range(1000):
            acquire(lock)
            inside.append(1)
            assert len(inside) == 1
            count[0] += 1
            while not lock.contended and len(done) < 3:
                select.select([], [], [], 0)  # lets the others run, and queue up
            handovers[0] += lock.contended
            inside.pop()
            lock.release()
        done.append(1)

    for _ in range(4):
        crew.start(work)
    crew.join()
    assert count == [4000]
    assert handovers[0] >= 3000
    assert lock.baton == [None]


@settings(deadline=None, max_examples=15)
@given(
    st.lists(
        st.lists(st.sampled_from(["hold", "yield", "try", "timed"]), min_size=1, max_size=12),
        min_size=2,
        max_size=4,
    )
)
def test_any_mix_of_operations_excludes_and_ends_free(scripts):
    lock, inside, crew = PhysicsLock(), [], Crew()

    def body(action):
        assert not inside
        inside.append(action)
        assert lock.held_by_me()
        inside.pop()
        if action == "yield":
            lock.yield_to_waiters()
            assert not inside
            assert lock.held_by_me()

    def run(script):
        for action in script:
            timeout = {"timed": 1e-4}.get(action)
            got = lock.try_acquire() if action == "try" else acquire(lock, timeout)
            if got:
                body(action)
                lock.release()

    for script in scripts:
        crew.start(run, script)
    crew.join()
    assert lock.baton == [None]
    assert lock.owner is None
    assert not lock.queue


# -- interrupts ----------------------------------------------------------------------------------


class Interrupt(BaseException):
    """Stands for KeyboardInterrupt, which pytest keeps for itself."""


@pytest.fixture
def interrupts(collector_off):
    def handler(_signal, _frame):
        raise Interrupt

    before = signal.signal(signal.SIGUSR1, handler)
    yield lambda: os.kill(os.getpid(), signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


@BOTH
def test_an_interrupt_while_waiting_leaves_the_queue_and_the_lock_usable(make, crew, interrupts):
    lock, held, leave = make(), threading.Event(), threading.Event()

    def holder():
        acquire(lock)
        held.set()
        leave.wait(LIMIT_S)
        lock.release()

    def killer():
        wait_until(lambda: lock.contended)
        interrupts()

    crew.start(holder)
    held.wait(LIMIT_S)
    crew.start(killer)
    with pytest.raises(Interrupt):
        acquire(lock)
    assert not lock.held_by_me()
    assert not lock.contended
    leave.set()
    crew.join()
    assert acquire(lock, LIMIT_S)
    lock.release()


def test_an_interrupt_while_yielding_surfaces_with_the_lock_held_again(crew, interrupts):
    lock = PhysicsLock()
    acquire(lock)
    owner = threading.get_ident()

    def waiter():
        acquire(lock)
        interrupts()
        wait_until(lambda: len(lock.queue) == 1)
        lock.release()

    crew.start(waiter)
    wait_until(lambda: lock.contended)
    with pytest.raises(Interrupt):
        lock.yield_to_waiters()
    assert lock.owner == owner
    lock.release()
    crew.join()
    assert lock.baton == [None]


@pytest.fixture
def alarm(collector_off):
    """Raises ``Interrupt`` once, after some 0.1 ms of this process's own time."""

    def handler(_signal, _frame):
        raise Interrupt

    before = signal.signal(signal.SIGVTALRM, handler)
    yield lambda: signal.setitimer(signal.ITIMER_VIRTUAL, 1e-4)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
    signal.signal(signal.SIGVTALRM, before)


def inlined_until_interrupted(lock, alarm):
    me = threading.get_ident()
    alarm()
    while True:
        try:
            del lock.baton[0]
            lock.owner = me
        except IndexError:
            raise AssertionError("the baton was lost") from None
        try:
            me += 0
        finally:
            lock.owner = None
            lock.baton.append(None)
            if lock.queue:
                lock.kick()


def called_until_interrupted(lock, alarm):
    alarm()
    while True:
        assert lock.acquire(0.0, asked="step"), "the baton was lost"
        lock.release()


@pytest.mark.slow
def test_interrupts_at_any_instant_of_the_inlined_form_leave_the_lock_free(alarm):
    lock = PhysicsLock()
    for _ in range(60):
        with pytest.raises(Interrupt):
            inlined_until_interrupted(lock, alarm)
        assert lock.baton == [None]
        assert lock.owner is None


@pytest.mark.slow
@BOTH
def test_interrupts_at_any_instant_of_acquire_and_release_leave_an_owner_or_a_free_lock(
    make, alarm
):
    lock = make()
    for _ in range(60):
        with pytest.raises(Interrupt):
            called_until_interrupted(lock, alarm)
        if lock.held_by_me():  # it came between the two calls, or at the entry of release
            lock.release()
        assert held_lower_scopes == {}
        assert lock.baton == [None]
        assert lock.owner is None


# -- order ---------------------------------------------------------------------------------------


def test_physics_is_refused_to_a_holder_of_a_lower_lock_which_is_named():
    physics, host = PhysicsLock(), plugin_lock()
    with host.holding("handle.access() of 'arm'"):
        with pytest.raises(LockOrderError, match=r"step needs .*handle\.access\(\) of 'arm'"):
            physics.acquire(asked="step")
        assert host.held_by_me()
    assert physics.acquire(asked="step")
    physics.release()


def test_a_refused_order_never_waits(crew):
    physics, host = PhysicsLock(), plugin_lock()
    acquire(physics)

    def wrong():
        with host, pytest.raises(LockOrderError):
            physics.acquire(asked="reset")

    crew.start(wrong)
    crew.join()  # the physics lock is still held here: a wait would not have ended
    physics.release()


def test_the_right_order_is_admitted_to_the_bottom_and_entered_in_the_book():
    physics, host = PhysicsLock(), plugin_lock()
    render = OrderedLock("render lock", LockLevel.RENDER)
    with physics.holding("step"), host, render:
        assert held_lower_scopes[threading.get_ident()] == [host, render]
    assert held_lower_scopes == {}


def test_host_lock_is_refused_below_the_render_lock_with_both_scopes_named():
    outer, other = plugin_lock("outer host"), plugin_lock("other host")
    render = OrderedLock("render lock", LockLevel.RENDER)
    with outer.holding("dispatch"), render.holding("frame"):
        with pytest.raises(LockOrderError, match="frame inside dispatch"):
            acquire(other)
        with outer:  # the owner may enter again, wherever it is
            assert held_lower_scopes[threading.get_ident()] == [outer, render]


def test_two_locks_of_one_level_are_refused_because_two_orders_would_deadlock():
    first, second = plugin_lock("first host"), plugin_lock("second host")
    with first, pytest.raises(LockOrderError, match="second host"):
        acquire(second)


def test_a_lower_lock_of_another_thread_is_nobodys_concern(crew):
    physics, host, held = PhysicsLock(), plugin_lock(), threading.Event()
    leave = threading.Event()

    def other():
        with host:
            held.set()
            leave.wait(LIMIT_S)

    crew.start(other)
    held.wait(LIMIT_S)
    assert held_lower_scopes
    assert physics.acquire(asked="step")
    physics.release()
    leave.set()


def test_ordered_lock_is_given_up_with_the_last_leave():
    lock = plugin_lock()
    with lock:
        with lock, lock:
            assert lock.held_by_me()
        assert lock.held_by_me()
        assert lock.baton == []
    assert not lock.held_by_me()
    assert lock.baton == [None]


def test_locks_may_be_left_in_any_order():
    host, render = plugin_lock(), OrderedLock("render lock", LockLevel.RENDER)
    acquire(host)
    acquire(render)
    host.release()
    with pytest.raises(LockOrderError, match="render|test"):
        PhysicsLock().acquire(asked="step")
    render.release()


def test_a_waiter_of_an_ordered_lock_is_in_the_book_once_it_is_served(crew):
    lock, seen = plugin_lock(), []
    acquire(lock)

    def waiter():
        with lock.holding("frame"):
            seen.append((lock.scope, held_lower_scopes[threading.get_ident()] == [lock]))

    crew.start(waiter)
    wait_until(lambda: lock.contended)
    lock.release()
    crew.join()
    assert seen == [("frame", True)]


# -- fork ----------------------------------------------------------------------------------------


@BOTH
def test_reinit_frees_a_lock_whose_holder_and_waiters_are_gone(make, crew):
    lock, held, leave = make(), threading.Event(), threading.Event()

    def holder():
        acquire(lock)
        held.set()
        leave.wait(LIMIT_S)
        lock.release()

    crew.start(holder)
    held.wait(LIMIT_S)
    child = os.fork()
    if child == 0:  # the holder does not exist here
        lock.reinit_after_fork()
        right = acquire(lock, 1.0) and lock.held_by_me() and len(held_lower_scopes) <= 1
        os._exit(0 if right else 1)
    _, status = os.waitpid(child, 0)
    leave.set()
    crew.join()
    assert os.waitstatus_to_exitcode(status) == 0
