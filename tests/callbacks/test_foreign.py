"""Callbacks of other libraries: kept, run, put back, or refused with the ways out."""

from __future__ import annotations

import ctypes

import mujoco
import pytest

from mjhost.callbacks import KINDS
from mjhost.errors import ForeignCallbackError
from tests.callbacks.scenes import Counter, hinge, rich, set_bare, step, symbols

GETTERS = {name: getattr(mujoco, f"get_mjcb_{name}") for name in KINDS}


def their_control(model, data):
    data.userdata_calls = 1


def test_a_foreign_python_function_is_kept_and_put_back(fast_router, foreign, kind):
    theirs = Counter().hook(kind)
    foreign(kind, theirs)
    before = symbols()
    route = fast_router.attach(*rich())
    route.set(kind, Counter().hook(kind))
    assert symbols()[kind] != before[kind]
    assert GETTERS[kind]() is theirs
    route.detach()
    assert symbols() == before
    assert GETTERS[kind]() is theirs


@pytest.mark.parametrize("name", ["control", "passive", "sensor", "contactfilter"])
def test_a_foreign_python_function_runs_after_the_pairs_own_hooks(fast_router, foreign, name):
    order = []
    theirs, ours = Counter(), Counter()

    def wrapped(hook, who):
        def sensor(model, data, stage):
            order.append(who)
            return hook(model, data, stage)

        def filter_(model, data, geom1, geom2):
            order.append(who)
            return hook(model, data, geom1, geom2)

        def pair(model, data):
            order.append(who)
            return hook(model, data)

        return {"sensor": sensor, "contactfilter": filter_}.get(name, pair)

    foreign(name, wrapped(theirs.hook(name), "theirs"))
    route = fast_router.attach(*rich())
    route.set(name, wrapped(ours.hook(name), "ours"))
    step(route)
    assert order
    assert order == ["ours", "theirs"] * (len(order) // 2)
    route.detach()


def test_a_foreign_filter_may_drop_what_ours_keeps(fast_router, foreign):
    foreign("contactfilter", lambda model, data, geom1, geom2: 1)
    route = fast_router.attach(*rich())
    route.set("contactfilter", lambda model, data, geom1, geom2: 0)
    step(route)
    assert route.data.ncon == 0
    route.detach()


def test_a_kind_with_one_owner_is_the_pairs_own(fast_router, foreign):
    foreign("act_gain", lambda model, data, i: 7.0)
    ours, bare = fast_router.attach(*rich()), fast_router.attach(*rich())
    ours.set("act_gain", lambda model, data, i: 2.0)
    ours.data.act[:] = bare.data.act[:] = 1
    for route in (ours, bare):
        mujoco.mj_forward(route.model, route.data)
    assert ours.data.actuator_force[0] == 2.0
    assert bare.data.actuator_force[0] == 7.0
    ours.detach()
    bare.detach()


def test_a_foreign_error_on_an_owned_pair_is_parked(fast_router, foreign):
    error = ValueError("theirs")

    def theirs(model, data):
        raise error

    foreign("control", theirs)
    route = fast_router.attach(*hinge())
    route.set("control", lambda model, data: None)
    with pytest.raises(ValueError, match="theirs") as caught:
        step(route)
    assert caught.value is error
    route.detach()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["control", "passive", "sensor", "act_gain", "contactfilter"])
def test_two_thousand_foreign_exceptions_surface_as_themselves(fast_router, foreign, name):
    errors = iter(range(2000))

    def theirs(*arguments):
        raise ValueError(next(errors))

    foreign(name, theirs)
    route, (model, stranger) = fast_router.attach(*rich()), rich()
    route.set(name, Counter().hook(name))
    for number in range(2000):
        with pytest.raises(ValueError) as caught:
            mujoco.mj_step(model, stranger)
        assert caught.value.args == (number,)
        mujoco.mj_resetData(model, stranger)
    route.detach()


def test_data_that_nobody_owns_reach_the_foreign_function(fast_router, foreign):
    counter = Counter()
    foreign("control", counter.hook("control"))
    route, (model, stranger) = fast_router.attach(*hinge()), hinge()
    route.set("control", lambda model, data: None)
    mujoco.mj_step(model, stranger, 5)
    assert counter.calls["control"] == 5
    route.detach()


def test_without_frames_a_foreign_python_function_is_refused(slow_router, foreign, kind):
    foreign(kind, Counter().hook(kind))
    before = symbols()
    route = slow_router.attach(*rich())
    with pytest.raises(ForeignCallbackError) as caught:
        route.set(kind, Counter().hook(kind))
    text = str(caught.value)
    for part in (
        kind,
        "Counter.hook",
        "scenes.py",
        "set_mjcb",
        "env.callbacks.add",
        "mjhost[fast]",
    ):
        assert part in text
    assert symbols() == before
    assert route.hooked == frozenset()
    assert slow_router.installed == ()
    route.detach()


def test_the_refusal_can_be_asked_for_beforehand(slow_router, fast_router, foreign):
    foreign("control", lambda model, data: None)
    fast_router.probe("control")
    with pytest.raises(ForeignCallbackError):
        slow_router.probe("control")


def c_pointer(kind, calls):
    """A C function of ``kind`` that counts, with the neutral result."""
    neutral = KINDS[kind].neutral

    def function(*arguments):
        calls.append(arguments)
        return neutral

    return KINDS[kind].prototype(function)


@pytest.mark.parametrize("name", [name for name in KINDS if name != "time"])
@pytest.mark.parametrize("bare", [True, False], ids=["bare", "ctypes"])
def test_a_foreign_c_pointer_is_kept_called_and_put_back(router, name, bare):
    calls = []
    pointer = c_pointer(name, calls)
    install = set_bare if bare else lambda kind, p: getattr(mujoco, f"set_mjcb_{kind}")(p)
    install(name, pointer)
    before = symbols()
    ours, (model, stranger) = router.attach(*rich()), rich()
    counter = Counter()
    ours.set(name, counter.hook(name))
    mujoco.mj_step(model, stranger)
    theirs = len(calls)
    assert theirs > 0
    assert {call[1] for call in calls} == {stranger._address}
    step(ours)
    assert counter.calls[name] > 0
    run_after_ours = len(calls) - theirs
    assert run_after_ours == (0 if KINDS[name].sole else counter.calls[name])
    ours.detach()
    assert symbols() == before
    install(name, None)


def test_a_foreign_clock_is_kept(router):
    calls = []

    @KINDS["time"].prototype
    def theirs():
        calls.append(1)
        return 1.0

    mujoco.set_mjcb_time(theirs)
    before = symbols()
    ours, (model, stranger) = router.attach(*hinge()), hinge()
    ours.set("time", lambda: 2.0)
    mujoco.mj_step(model, stranger)
    seen = len(calls)
    assert seen > 0
    step(ours)
    assert len(calls) == seen
    ours.detach()
    assert symbols() == before
    mujoco.set_mjcb_time(None)


def test_a_foreign_python_clock_never_meets_a_long_jump(fast_router, foreign):
    """A hook of ours that fails under a foreign clock gets an answer without the trampoline."""

    def theirs():
        raise ValueError("their clock")

    foreign("time", theirs)
    route = fast_router.attach(*hinge())

    def ours():
        raise KeyError("our clock")

    route.set("time", ours)
    with pytest.raises(KeyError, match="our clock"):
        step(route)
    model, stranger = hinge()
    with pytest.raises(ValueError, match="their clock"):
        mujoco.mj_step(model, stranger)
    route.detach()


def test_a_compiled_hook_still_has_the_foreign_callback_run_after_it(router):
    calls, order = [], []
    theirs = c_pointer("control", calls)

    @KINDS["control"].prototype
    def ours(model, data):
        order.append(len(calls))

    mujoco.set_mjcb_control(theirs)
    route = router.attach(*hinge())
    route.set("control", ours)
    step(route, 2)
    assert len(calls) == 2
    assert order == [0, 1]
    route.detach()
    mujoco.set_mjcb_control(None)


def test_what_the_getter_remembers_after_a_reset_is_no_foreign_callback(slow_router, foreign):
    foreign("control", lambda model, data: None)
    clock = symbols()["time"]
    mujoco.mj_resetCallbacks()
    mujoco.set_mjcb_time(None)
    assert symbols()["time"] == clock
    route = slow_router.attach(*hinge())
    route.set("control", lambda model, data: None)
    route.detach()
    assert symbols()["control"] is None


# -- somebody takes the pointer while the router is in -------------------------------------------


def test_an_untouched_router_has_nothing_to_report(router):
    route = router.attach(*rich())
    assert router.check() is None
    Counter().hook_all(route)
    assert router.check() is None
    route.detach()
    assert router.check() is None


def test_a_pointer_taken_by_a_python_function_is_reported_by_name(router, foreign):
    route = router.attach(*hinge())
    route.set("control", lambda model, data: None)
    foreign("control", their_control)
    report = router.check()
    assert "mjcb_control" in report
    assert "their_control (test_foreign.py" in report
    route.detach()
    assert GETTERS["control"]() is their_control, "what they took stays theirs"
    assert symbols()["control"] is not None


def test_a_reset_of_all_callbacks_is_reported(router):
    route = router.attach(*hinge())
    route.set("passive", lambda model, data: None)
    mujoco.mj_resetCallbacks()
    mujoco.set_mjcb_time(None)
    assert "mjcb_passive was set to null" in router.check()
    route.detach()
    assert symbols()["passive"] is None


def test_a_pointer_taken_by_c_code_is_reported(router):
    route = router.attach(*hinge())
    route.set("control", lambda model, data: None)
    library = ctypes.CDLL(None)
    set_bare("control", library.abs)
    assert "mjcb_control was taken by the C function" in router.check()
    route.detach()
    set_bare("control", None)


def test_a_taken_pointer_can_be_reclaimed_with_the_taker_kept(fast_router, foreign):
    ours, theirs = Counter(), Counter()
    route, (model, stranger) = fast_router.attach(*hinge()), hinge()
    route.set("control", ours.hook("control"))
    foreign("control", theirs.hook("control"))
    taken = symbols()
    assert fast_router.reclaim() == ("control",)
    assert fast_router.check() is None
    step(route)
    assert (ours.calls["control"], theirs.calls["control"]) == (1, 1)
    mujoco.mj_step(model, stranger)
    assert (ours.calls["control"], theirs.calls["control"]) == (1, 2)
    route.detach()
    assert symbols() == taken


def test_reclaiming_after_the_taker_went_needs_no_frames(slow_router, foreign):
    counter = Counter()
    route = slow_router.attach(*hinge())
    route.set("control", counter.hook("control"))
    foreign("control", lambda model, data: None)
    with pytest.raises(ForeignCallbackError):
        slow_router.reclaim()
    mujoco.set_mjcb_control(None)
    assert slow_router.check() is not None
    assert slow_router.reclaim() == ("control",)
    step(route)
    assert counter.calls["control"] == 1
    route.detach()
