"""Compiling models while callbacks are installed."""

from __future__ import annotations

import threading

import mujoco
import pytest

from mjhost.callbacks import KINDS
from mjhost.errors import ForeignCallbackError
from tests.callbacks.scenes import HINGE, RICH, Counter, hinge, rich, step, symbols

XML = HINGE.format(integrator="Euler", gravity="-9.81")
NEEDS_GUARD = [name for name in KINDS if name not in {"time", "contactfilter"}]


def compile_guarded(router):
    with router.compile_guard():
        return mujoco.MjModel.from_xml_string(XML)


def test_own_hooks_are_no_hindrance_and_do_not_see_the_compiler(router):
    route = router.attach(*rich())
    counter = Counter()
    counter.hook_all(route)
    mujoco.MjModel.from_xml_string(XML)
    compile_guarded(router)
    assert not any(counter.calls.values())
    step(route)
    assert counter.calls["control"] == 1
    route.detach()


@pytest.mark.parametrize("with_route", [True, False])
def test_a_foreign_python_function_does_not_make_our_compile_fail(
    fast_router, foreign, kind, with_route
):
    theirs = Counter()
    foreign(kind, theirs.hook(kind))
    before = symbols()
    route, (model, stranger) = fast_router.attach(*rich()), rich()
    if with_route:
        route.set(kind, Counter().hook(kind))
    theirs.calls[kind] = 0
    compile_guarded(fast_router)
    if kind != "time":
        assert theirs.calls[kind] == 0
    mujoco.mj_step(model, stranger)
    assert theirs.calls[kind] > 0
    route.detach()
    assert symbols() == before


@pytest.mark.parametrize("name", NEEDS_GUARD)
def test_the_guard_is_what_makes_it_work(foreign, name):
    foreign(name, Counter().hook(name))
    with pytest.raises(ValueError, match="Python exception raised"):
        mujoco.MjModel.from_xml_string(RICH.format(integrator="Euler"))


def test_without_frames_a_foreign_function_is_lifted_while_nobody_else_could_miss_it(
    slow_router, foreign
):
    theirs = Counter()
    foreign("control", theirs.hook("control"))
    before, getter = symbols(), mujoco.get_mjcb_control()
    compile_guarded(slow_router)
    assert theirs.calls["control"] == 0
    assert symbols() == before
    assert mujoco.get_mjcb_control() is getter


def test_without_frames_and_with_other_threads_the_compile_is_refused(slow_router, foreign):
    foreign("control", their_control := Counter().hook("control"))
    before, done = symbols(), threading.Event()
    other = threading.Thread(target=done.wait, args=(60,))
    other.start()
    try:
        with pytest.raises(ForeignCallbackError, match="mjhost") as caught:
            compile_guarded(slow_router)
    finally:
        done.set()
        other.join(10)
    assert "without their missing it" in caught.value.__notes__[0]
    assert symbols() == before
    assert mujoco.get_mjcb_control() is their_control
    compile_guarded(slow_router)


def test_a_failed_compile_puts_everything_back(router, foreign):
    foreign("passive", lambda model, data: None)
    before = symbols()
    with pytest.raises(ValueError, match="XML"), router.compile_guard():
        mujoco.MjModel.from_xml_string("<mujoco><nonsense/></mujoco>")
    assert symbols() == before


def test_a_c_callback_does_not_see_our_compile(router):
    calls = []

    @KINDS["control"].prototype
    def theirs(model, data):
        calls.append(data)

    mujoco.set_mjcb_control(theirs)
    before = symbols()
    mujoco.MjModel.from_xml_string(XML)
    assert len(calls) == 1, "the engine steps what it compiles"
    compile_guarded(router)
    assert len(calls) == 1
    assert symbols() == before
    mujoco.set_mjcb_control(None)


def test_a_pointer_that_was_taken_does_not_make_our_compile_fail(router, foreign):
    route = router.attach(*hinge())
    route.set("control", lambda model, data: None)
    foreign("control", Counter().hook("control"))
    assert compile_guarded(router).nbody > 1
    route.detach()


@pytest.mark.slow
def test_other_threads_keep_their_foreign_callback_during_our_compiles(fast_router, foreign):
    theirs = Counter()
    model, data = hinge()
    foreign("control", theirs.hook("control"))
    done, steps = threading.Event(), [0]

    def stepping():
        while not done.is_set():
            mujoco.mj_step(model, data)
            steps[0] += 1

    thread = threading.Thread(target=stepping)
    thread.start()
    try:
        for _ in range(30):
            compile_guarded(fast_router)
    finally:
        done.set()
        thread.join(30)
    assert theirs.calls["control"] == steps[0] > 0


def test_guards_nest_and_overlap_with_routes(fast_router, foreign):
    theirs = Counter()
    foreign("control", theirs.hook("control"))
    before = symbols()
    with fast_router.compile_guard():
        route = fast_router.attach(*hinge())
        route.set("control", Counter().hook("control"))
        with fast_router.compile_guard():
            mujoco.MjModel.from_xml_string(XML)
        mujoco.MjModel.from_xml_string(XML)
    assert theirs.calls["control"] == 0
    assert fast_router.installed == ("control",)
    with pytest.raises(ValueError, match="Python exception raised"):
        mujoco.MjModel.from_xml_string(XML)  # outside a guard theirs is met, as without us
    route.detach()
    assert symbols() == before


def test_a_muted_refresh_reaches_no_foreign_callback(router):
    calls = []

    @KINDS["control"].prototype
    def theirs(model, data):
        calls.append(data)

    mujoco.set_mjcb_control(theirs)
    ours, other = router.attach(*hinge()), router.attach(*hinge())
    ours.set("control", lambda model, data: None)
    with ours.muted():
        mujoco.mj_forward(ours.model, ours.data)
    with other.muted():
        mujoco.mj_forward(other.model, other.data)
    assert not calls
    step(ours)
    assert len(calls) == 1
    ours.detach()
    other.detach()
    mujoco.set_mjcb_control(None)
