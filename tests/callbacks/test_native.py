"""The tables of the machine-code frames, and compiled hooks."""

from __future__ import annotations

import ctypes
import threading

import mujoco
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mjhost.callbacks import KINDS
from mjhost.callbacks.native import Frames, immortal
from tests.callbacks.scenes import Counter, hinge, rich, step, symbols

numba = pytest.importorskip("numba", reason="the extra fast is not installed")

CONTROL = KINDS["control"]
GAIN = KINDS["act_gain"]


@pytest.fixture(scope="module")
def gain_frame():
    """A frame of its own that no engine calls: hooks get the data address times 2."""
    frame = Frames().of(GAIN)
    doubled = immortal(GAIN.prototype(lambda model, data, index: 2.0 * data))
    tripled = immortal(GAIN.prototype(lambda model, data, index: 3.0 * data))
    return frame, GAIN.prototype(frame.address), (doubled, tripled)


# Keys that collide and keys that do not, as addresses of data are: multiples of 64.
KEYS = st.integers(1, 400).map(lambda k: 64 * k)
ACTIONS = st.lists(st.tuples(st.sampled_from(["double", "triple", "drop"]), KEYS), max_size=300)


@settings(deadline=None, max_examples=60)
@given(ACTIONS)
def test_a_frame_finds_what_its_table_holds_and_nothing_else(gain_frame, actions):
    frame, call, (doubled, tripled) = gain_frame
    addresses = {
        "double": (ctypes.cast(doubled, ctypes.c_void_p).value, 2.0),
        "triple": (ctypes.cast(tripled, ctypes.c_void_p).value, 3.0),
    }
    expected = {}
    for action, key in actions:
        if action == "drop":
            frame.hooks.drop(key)
            expected.pop(key, None)
        else:
            address, factor = addresses[action]
            frame.hooks.put(key, address)
            expected[key] = factor * key
    assert len(frame.hooks) == len(expected)
    for key in {key for _, key in actions} | {64 * 999}:
        assert call(0, key, 0) == expected.get(key, GAIN.neutral)
    for key in tuple(expected):
        frame.hooks.drop(key)
    assert len(frame.hooks) == 0


def test_a_table_that_many_keys_went_through_stays_small():
    table = Frames().of(CONTROL).hooks
    for key in range(64, 64 * 20_000, 64):
        table.put(key, 1)
        table.drop(key)
    assert table._size == 64
    assert table._used == 0


def test_a_key_stays_found_while_others_come_and_go(gain_frame):
    frame, call, (doubled, _) = gain_frame
    address = ctypes.cast(doubled, ctypes.c_void_p).value
    kept = 64 * 5000
    frame.hooks.put(kept, address)
    done, misses = threading.Event(), []

    def look():
        while not done.is_set():
            if call(0, kept, 0) != 2.0 * kept:
                misses.append(1)

    thread = threading.Thread(target=look)
    thread.start()
    for round_ in range(5):
        keys = [64 * (k + 1000 * round_ + 1) for k in range(200)]
        for key in keys:
            frame.hooks.put(key, address)
        for key in keys:
            frame.hooks.drop(key)
    done.set()
    thread.join(10)
    frame.hooks.drop(kept)
    assert not misses


# -- compiled hooks ------------------------------------------------------------------------------


@numba.cfunc("void(voidptr, voidptr)")
def nothing(model, data):
    pass


@numba.cfunc("float64(voidptr, voidptr, int32)")
def gain_five(model, data, index):
    return 5.0


@numba.cfunc("int32(voidptr, voidptr, int32, int32)")
def drop_all(model, data, geom1, geom2):
    return 1


@pytest.mark.parametrize("given_as", ["cfunc", "ctypes"])
def test_a_compiled_hook_works(router, given_as):
    gain, drop = gain_five, drop_all
    if given_as == "ctypes":
        gain, drop = gain.ctypes, drop.ctypes
    route, (_, stranger) = router.attach(*rich()), rich()
    route.set("act_gain", gain)
    route.set("contactfilter", drop)
    route.data.act[:] = stranger.act[:] = 1
    step(route)
    mujoco.mj_step(route.model, stranger)
    assert route.data.actuator_force.tolist() == [5.0, 5.0]
    assert route.data.ncon == 0
    assert stranger.actuator_force.tolist() == [1.0, 1.0]
    assert stranger.ncon == 3
    route.detach()


def test_a_compiled_hook_is_reached_without_python(fast_router):
    route = fast_router.attach(*hinge())
    entered = []
    route.set("control", nothing)
    fast_router.ports["control"].hooks[route.data_address] = lambda: entered.append(1)
    mujoco.mj_step(route.model, route.data)
    assert not entered
    route.detach()


def test_compiled_and_python_hooks_may_follow_each_other(router):
    route = router.attach(*rich())
    route.data.act[:] = 1
    forces = []
    for fn in (gain_five, lambda model, data, i: 2.0, gain_five, None):
        route.set("act_gain", fn)
        mujoco.mj_forward(route.model, route.data)
        forces.append(route.data.actuator_force[0])
    assert forces == [5.0, 2.0, 5.0, 1.0]
    route.detach()


def test_a_muted_compiled_hook_does_not_fire(router):
    route = router.attach(*rich())
    route.data.act[:] = 1
    route.set("act_gain", gain_five)
    with route.muted():
        mujoco.mj_forward(route.model, route.data)
        assert route.data.actuator_force[0] == 1.0
    mujoco.mj_forward(route.model, route.data)
    assert route.data.actuator_force[0] == 5.0
    route.detach()


def test_a_compiled_clock_is_the_clock_of_the_stepping_thread_only(router):
    before = symbols()["time"]
    builtin = KINDS["time"].prototype(before)

    @KINDS["time"].prototype
    def stopped():
        return 42.0

    route = router.attach(*hinge())
    route.set("time", stopped)
    now = KINDS["time"].prototype(symbols()["time"])
    assert abs(now() - builtin()) < 1e6
    with route.stepping():
        assert now() == 42.0
    assert now() != 42.0
    route.detach()
    assert symbols()["time"] == before


def test_strangers_on_other_threads_do_not_enter_python(fast_router):
    """With frames a step of data that nobody owns leaves the GIL alone."""
    route, (model, stranger) = fast_router.attach(*hinge()), hinge()
    counter = Counter()
    route.set("control", counter.hook("control"))
    asked = []
    port = fast_router.ports["control"]
    port.hooks[stranger._address] = lambda: asked.append(1)
    mujoco.mj_step(model, stranger, 10)
    assert not asked
    assert counter.calls["control"] == 0
    del port.hooks[stranger._address]
    route.detach()
