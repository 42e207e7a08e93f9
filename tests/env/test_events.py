"""Events: order, bounds, loss, ends."""

from __future__ import annotations

import gc
import os
import threading
import time
import weakref

import msgspec
import pytest

from mjhost.env import events
from mjhost.env.events import (
    AnyEvent,
    EngineWarning,
    Event,
    EventHub,
    FaultRaised,
    OptionChange,
    OptionsChanged,
    Paused,
    PluginFailed,
    PluginsReloaded,
    Reloaded,
    Resumed,
)
from mjhost.env.records import Fault, FaultKind
from mjhost.errors import EnvClosedError, InvalidArgumentError

STAMP = (1.5, 0.5, 250, 3)
LIMIT_S = 20.0


def numbers(received):
    return [event.seq for event in received]


# -- the records ---------------------------------------------------------------------------------


def test_an_event_carries_its_number_and_the_boundary_it_belongs_to():
    hub = EventHub()
    subscription = hub.subscribe()
    hub.publish(EngineWarning, STAMP, warning="BADQACC", count=2)
    event = subscription.get(0)
    assert event == EngineWarning(
        seq=1,
        session_time=1.5,
        sim_time=0.5,
        step=250,
        model_generation=3,
        warning="BADQACC",
        count=2,
    )
    with pytest.raises(AttributeError):
        event.count = 3


def test_every_kind_says_what_it_is_on_the_wire_and_comes_back():
    kinds = [kind for kind in vars(events).values() if isinstance(kind, type)]
    kinds = [kind for kind in kinds if issubclass(kind, Event) and kind is not Event]
    assert set(kinds) == set(AnyEvent.__args__)
    fault = Fault(FaultKind.TASK, "it broke", "task", 3, 0.5)
    samples = [
        (Resumed, {}),
        (Reloaded, {"source": "arm.xml", "kept_state": True}),
        (FaultRaised, {"fault": fault}),
        (PluginsReloaded, {"plugin_generation": 2, "ready": ("a",), "failed": ("b",)}),
        (
            PluginFailed,
            {"plugin": "a", "hook": "load", "message": "no", "plugin_generation": 2},
        ),
        (OptionsChanged, {"changes": (OptionChange("timestep", 0.002, 0.001),), "epoch": 4}),
    ]
    hub = EventHub()
    subscription = hub.subscribe()
    for kind, fields in samples:
        hub.publish(kind, STAMP, **fields)
    for event in subscription.drain():
        text = msgspec.json.encode(event)
        assert msgspec.json.decode(text, type=AnyEvent) == event
        assert msgspec.json.decode(text)["event"].replace("_", "") == type(event).__name__.lower()


# -- delivery ------------------------------------------------------------------------------------


def test_events_arrive_in_order_at_every_subscriber():
    hub = EventHub()
    first, second = hub.subscribe(), hub.subscribe()
    for kind in (Paused, Resumed, Paused):
        hub.publish(kind, STAMP)
    assert [type(event) for event in first.drain()] == [Paused, Resumed, Paused]
    assert numbers(second.drain()) == [1, 2, 3]
    assert first.drain() == []


def test_events_are_numbered_also_while_nobody_listens():
    hub = EventHub()
    hub.publish(Paused, STAMP)
    assert not hub.has_subscribers
    with hub.subscribe() as subscription:
        assert hub.has_subscribers
        hub.publish(Resumed, STAMP)
        assert subscription.get(0).seq == 2
    assert not hub.has_subscribers
    assert hub.seq == 2


def test_an_event_is_not_built_while_nobody_listens():
    hub = EventHub()
    hub.publish(OptionsChanged, STAMP, nonsense=1)
    kept = hub.subscribe()
    with pytest.raises(TypeError):
        hub.publish(OptionsChanged, STAMP, nonsense=1)
    assert kept.drain() == []


def test_a_full_subscription_loses_the_oldest_and_counts_them():
    hub = EventHub()
    small, large = hub.subscribe(maxsize=3), hub.subscribe()
    for _ in range(5):
        hub.publish(Paused, STAMP)
    assert small.lost == 2
    assert numbers(small.drain()) == [3, 4, 5]
    assert large.lost == 0
    assert numbers(large.drain()) == [1, 2, 3, 4, 5]


def test_order_and_numbers_hold_with_several_publishers():
    hub = EventHub()
    first, second = hub.subscribe(maxsize=4000), hub.subscribe(maxsize=4000)

    def publish():
        for _ in range(500):
            hub.publish(Paused, STAMP)

    threads = [threading.Thread(target=publish) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert numbers(first.drain()) == list(range(1, 2001))
    assert numbers(second.drain()) == list(range(1, 2001))


@pytest.mark.parametrize("maxsize", [0, -1, 1.0, True, None, 2**21])
def test_a_size_that_makes_no_sense_is_refused(maxsize):
    hub = EventHub()
    with pytest.raises(InvalidArgumentError, match="maxsize"):
        hub.subscribe(maxsize)
    assert not hub.has_subscribers


# -- waiting -------------------------------------------------------------------------------------


def test_get_without_an_event_times_out():
    subscription = EventHub().subscribe()
    start = time.monotonic()
    with pytest.raises(TimeoutError, match=r"no event within 0\.02 s"):
        subscription.get(0.02)
    assert time.monotonic() - start >= 0.02
    with pytest.raises(TimeoutError):
        subscription.get(0)


def test_get_wakes_up_for_an_event_of_another_thread():
    hub = EventHub()
    subscription, received = hub.subscribe(), []
    thread = threading.Thread(target=lambda: received.append(subscription.get()))
    thread.start()
    hub.publish(Paused, STAMP)
    thread.join(LIMIT_S)
    assert numbers(received) == [1]


def test_one_event_reaches_one_of_several_waiters_of_a_subscription():
    hub = EventHub()
    subscription, received = hub.subscribe(), []
    threads = [
        threading.Thread(target=lambda: received.append(subscription.get().seq)) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for _ in threads:
        hub.publish(Paused, STAMP)
    for thread in threads:
        thread.join(LIMIT_S)
    assert sorted(received) == [1, 2, 3]


def test_publishing_does_not_wait_for_a_subscriber_that_does_nothing():
    hub = EventHub()
    idle = hub.subscribe(maxsize=1)
    for _ in range(100):
        hub.publish(Paused, STAMP)
    assert idle.lost == 99


# -- ends ----------------------------------------------------------------------------------------


def test_a_closed_hub_delivers_the_rest_and_then_says_so():
    hub = EventHub()
    subscription = hub.subscribe()
    hub.publish(Paused, STAMP)
    hub.close()
    hub.close()
    hub.publish(Resumed, STAMP)
    assert subscription.get().seq == 1
    with pytest.raises(EnvClosedError, match="env is closed"):
        subscription.get()
    with pytest.raises(EnvClosedError):
        hub.subscribe()


def test_closing_the_hub_ends_a_wait_and_an_iteration():
    hub = EventHub()
    subscription, seen = hub.subscribe(), []
    thread = threading.Thread(target=lambda: seen.extend(event.seq for event in subscription))
    thread.start()
    hub.publish(Paused, STAMP)
    hub.close()
    thread.join(LIMIT_S)
    assert not thread.is_alive()
    assert seen == [1]


def test_closing_a_subscription_ends_it_alone():
    hub = EventHub()
    ended, other = hub.subscribe(), hub.subscribe()
    hub.publish(Paused, STAMP)
    ended.close()
    ended.close()
    hub.publish(Resumed, STAMP)
    with pytest.raises(EnvClosedError, match="subscription is closed"):
        ended.get()
    assert list(ended) == []
    assert numbers(other.drain()) == [1, 2]


def test_a_dropped_subscription_is_collected_and_forgotten():
    hub = EventHub()
    kept, dropped = hub.subscribe(), hub.subscribe()
    reference = weakref.ref(dropped)
    hub.publish(Paused, STAMP)
    del dropped
    gc.collect()
    assert reference() is None
    hub.publish(Paused, STAMP)
    kept.close()
    assert not hub.has_subscribers


def test_a_subscription_may_be_closed_by_a_finaliser_during_a_publish():
    hub = EventHub()
    subscription = hub.subscribe()

    class Closing(Event, frozen=True, kw_only=True, tag="closing"):
        def __post_init__(self):
            subscription.close()

    hub.publish(Closing, STAMP)
    with pytest.raises(EnvClosedError):
        subscription.get()


def test_a_forked_child_finds_the_hub_closed_whoever_held_its_locks():
    hub = EventHub()
    subscription = hub.subscribe()
    held, leave = threading.Event(), threading.Event()

    def holder():
        with hub._lock, subscription._changed:
            held.set()
            leave.wait(LIMIT_S)

    thread = threading.Thread(target=holder)
    thread.start()
    held.wait(LIMIT_S)
    child = os.fork()
    if child == 0:
        hub.reinit_after_fork()
        try:
            subscription.get(5.0)
        except EnvClosedError:
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    leave.set()
    thread.join(LIMIT_S)
    assert os.waitstatus_to_exitcode(status) == 0
