"""Streams: names, bounds, loss, latches, ends."""

from __future__ import annotations

import gc
import os
import threading

import pytest

from mjhost.errors import (
    EnvClosedError,
    InvalidArgumentError,
    StaleGenerationError,
    UnknownNameError,
)
from mjhost.streams import PluginStreams, Sample, Stamp, StreamHub
from mjhost.streams.records import GroupCommand, ScalarReading, StopCommand

STAMP = Stamp(1.5, 0.5, 250, 3)
LIMIT_S = 20.0


@pytest.fixture
def hub():
    return StreamHub(lambda: STAMP)


def reading(value=1.0):
    return ScalarReading(value=value)


def values(samples):
    return [sample.record.value for sample in samples]


def straight(handler, *arguments):
    return handler(*arguments)


# -- out -----------------------------------------------------------------------------------------


def test_records_arrive_in_order_with_stream_and_stamp(hub):
    outlet = hub.declare("a/b", ScalarReading)
    samples = hub.subscribe("a/b")
    first, second = reading(1.0), reading(2.0)
    outlet.publish(first)
    outlet.publish(second, Stamp(9.0, 8.0, 7, 6))
    assert samples.drain() == [
        Sample("a/b", STAMP, first),
        Sample("a/b", Stamp(9.0, 8.0, 7, 6), second),
    ]


def test_a_subscription_gets_the_streams_it_names_and_one_without_names_all(hub):
    one, other = hub.declare("one", ScalarReading), hub.declare("other", ScalarReading)
    some, every = hub.subscribe("one", "third"), hub.subscribe()
    one.publish(reading(1.0))
    other.publish(reading(2.0))
    assert values(some.drain()) == [1.0]
    assert values(every.drain()) == [1.0, 2.0]


def test_a_full_subscription_drops_the_oldest_and_counts_them(hub):
    outlet = hub.declare("a", ScalarReading)
    narrow, wide = hub.subscribe(maxsize=2), hub.subscribe(maxsize=9)
    for value in range(5):
        outlet.publish(reading(float(value)))
    assert (values(narrow.drain()), narrow.lost) == ([3.0, 4.0], 3)
    assert (len(wide.drain()), wide.lost) == (5, 0)


def test_what_nobody_listens_to_is_neither_stamped_nor_kept():
    hub = StreamHub(lambda: pytest.fail("stamped for nobody"))
    outlet = hub.declare("a", ScalarReading)
    assert not outlet.wanted
    outlet.publish(reading())
    assert outlet.published == 1
    assert hub.subscribe("a").drain() == []
    assert outlet.wanted


def test_a_stream_that_comes_later_belongs_to_a_subscription_of_its_name(hub):
    samples = hub.subscribe("later")
    hub.declare("later", ScalarReading).publish(reading(4.0))
    assert values(samples.drain()) == [4.0]


def test_a_latched_stream_gives_its_last_record_to_who_comes_later(hub):
    outlet = hub.declare("a", ScalarReading, latched=True)
    assert outlet.wanted
    outlet.publish(reading(1.0))
    outlet.publish(reading(2.0))
    assert values(hub.subscribe("a").drain()) == [2.0]
    assert hub.subscribe("b").drain() == []


def test_a_subscription_that_is_closed_or_dropped_is_no_listener(hub):
    outlet = hub.declare("a", ScalarReading)
    with hub.subscribe("a") as closed:
        assert outlet.wanted
    dropped = hub.subscribe("a")
    assert hub.streams()[0].listeners == 1
    del dropped
    gc.collect()
    outlet.publish(reading())
    assert not outlet.wanted
    with pytest.raises(EnvClosedError, match="the subscription is closed"):
        closed.get()


def test_records_of_another_type_are_refused_and_nobody_gets_them(hub):
    outlet, samples = hub.declare("a", ScalarReading), hub.subscribe("a")
    with pytest.raises(InvalidArgumentError, match="carries ScalarReading, got StopCommand"):
        outlet.publish(StopCommand())
    assert (samples.drain(), outlet.published) == ([], 0)


def test_publishers_in_many_threads_lose_nothing_while_subscribers_come_and_go(hub):
    outlet = hub.declare("a", ScalarReading)
    samples = hub.subscribe("a", maxsize=4_000)
    done = threading.Event()

    def come_and_go():
        while not done.is_set():
            hub.subscribe("a").close()

    def publish():
        for value in range(1_000):
            outlet.publish(reading(float(value)))

    guest = threading.Thread(target=come_and_go)
    publishers = [threading.Thread(target=publish) for _ in range(3)]
    for thread in (guest, *publishers):
        thread.start()
    for thread in publishers:
        thread.join(LIMIT_S)
    done.set()
    guest.join(LIMIT_S)
    assert sorted(values(samples.drain())) == sorted(3 * [float(v) for v in range(1_000)])


# -- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", " ", "a b", "/a", "a/", "a//b", "a\n", "x" * 257, None, 3])
def test_a_name_that_is_none_is_refused(hub, name):
    for ask in (
        lambda: hub.declare(name, ScalarReading),
        lambda: hub.accept(name, StopCommand, print),
        lambda: hub.subscribe(name),
    ):
        with pytest.raises(InvalidArgumentError, match="the name of a stream"):
            ask()
    assert hub.streams() == ()


def test_a_name_is_declared_once_and_the_error_says_by_whom(hub):
    hub.declare("a", ScalarReading, owner="imu")
    with pytest.raises(InvalidArgumentError, match="'a' is taken by plugin 'imu'"):
        hub.declare("a", ScalarReading)
    hub.accept("a", StopCommand, print)  # an inlet may have the name of a stream
    with pytest.raises(InvalidArgumentError, match="'a' is taken by the env"):
        hub.accept("a", StopCommand, print)


@pytest.mark.parametrize("record", [int, ScalarReading(value=1.0), None])
def test_a_stream_needs_a_type_of_record(hub, record):
    with pytest.raises(InvalidArgumentError, match="needs a type of record"):
        hub.declare("a", record)


@pytest.mark.parametrize("maxsize", [0, -1, 1 << 21, 1.0, True])
def test_the_size_of_a_subscription_is_bounded(hub, maxsize):
    with pytest.raises(InvalidArgumentError, match="maxsize"):
        hub.subscribe(maxsize=maxsize)


def test_the_list_tells_streams_and_inlets(hub):
    before = hub.changes
    outlet = hub.declare("out", ScalarReading, owner="p", latched=True)
    hub.accept("in", StopCommand, print, owner="q")
    outlet.publish(reading())
    kept = hub.subscribe("out")
    out, into = hub.streams()
    assert (out.name, out.record, out.owner, out.latched, out.takes) == (
        *("out", ScalarReading, "p"),
        *(True, False),
    )
    assert (out.listeners, out.published) == (1, 1)
    assert (into.name, into.record, into.owner, into.takes) == ("in", StopCommand, "q", True)
    assert hub.changes == before + 2
    kept.close()


# -- in ------------------------------------------------------------------------------------------


def test_a_command_reaches_its_inlet_and_the_answer_comes_back(hub):
    hub.accept("go", GroupCommand, lambda model, data, command: (model, data, command.values))
    command = hub.command("go", GroupCommand(values=(1.0,)))
    assert command("model", "data") == ("model", "data", (1.0,))


def test_unknown_inlets_and_wrong_commands_are_refused(hub):
    hub.accept("stop", StopCommand, print)
    with pytest.raises(UnknownNameError, match="'stopp'; did you mean 'stop'"):
        hub.command("stopp", StopCommand())
    with pytest.raises(InvalidArgumentError, match="takes StopCommand, got GroupCommand"):
        hub.command("stop", GroupCommand(values=()))
    with pytest.raises(InvalidArgumentError, match="must be a function, got 3"):
        hub.accept("b", StopCommand, 3)


# -- ends ----------------------------------------------------------------------------------------


def test_the_streams_of_a_plugin_end_together_and_their_names_are_free_again(hub):
    old = PluginStreams(hub, "p", straight)
    outlet = old.declare("a", ScalarReading)
    old.accept("b", StopCommand, print)
    kept = hub.subscribe("a")
    old.close()
    old.close()
    assert hub.streams() == ()
    with pytest.raises(StaleGenerationError, match="'a' has ended"):
        outlet.publish(reading())
    for ask in (
        lambda: old.declare("c", ScalarReading),
        lambda: old.accept("c", StopCommand, print),
    ):
        with pytest.raises(StaleGenerationError, match="plugin 'p' has ended"):
            ask()
    new = PluginStreams(hub, "p", straight)
    new.declare("a", ScalarReading).publish(reading(2.0))
    old.close()  # a second time: what is declared anew is not its own
    assert values(kept.drain()) == [2.0]
    assert [info.name for info in hub.streams()] == ["a"]


def test_a_closed_hub_gives_what_was_sent_and_then_says_so(hub):
    outlet, samples = hub.declare("a", ScalarReading), hub.subscribe()
    outlet.publish(reading())
    hub.close()
    hub.close()
    assert samples.get().stamp == STAMP
    with pytest.raises(EnvClosedError, match="no sample will come any more: the env is closed"):
        samples.get()
    for ask in (hub.subscribe, lambda: hub.declare("b", ScalarReading)):
        with pytest.raises(EnvClosedError):
            ask()
    with pytest.raises(StaleGenerationError):
        outlet.publish(reading())


def test_waiting_for_a_sample_ends_in_time(hub):
    samples = hub.subscribe()
    with pytest.raises(TimeoutError, match="no sample within 0 s"):
        samples.get(timeout=0)


def test_in_a_forked_child_the_hub_is_closed_whoever_held_its_lock(hub):
    samples = hub.subscribe()
    with hub.lock:
        child = os.fork()
        if child == 0:
            hub.reinit_after_fork()
            try:
                samples.get(timeout=5.0)
            except EnvClosedError:
                os._exit(0)
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
