"""``env.callbacks``: several per kind, in order, exchangeable."""

from __future__ import annotations

import ctypes

import mujoco
import pytest

from mjhost.callbacks import KINDS, Callbacks
from mjhost.errors import (
    CallbackResultError,
    CallbackSignatureError,
    CallbackTakenError,
    ForeignCallbackError,
    InvalidArgumentError,
    UnknownNameError,
)
from tests.callbacks.scenes import Counter, hinge, rich, step


@pytest.fixture
def bound(router):
    """A registry bound to a pair with something of every kind."""
    route = router.attach(*rich())
    callbacks = Callbacks(over=router)
    callbacks.bind(route)
    yield callbacks, route
    route.detach()


@pytest.mark.parametrize("kind", ["control", "passive", "sensor"])
def test_several_callbacks_all_run_in_order(bound, kind):
    callbacks, route = bound
    order = []
    for number in range(3):
        if kind == "sensor":
            callbacks.add(kind, lambda model, data, stage, n=number: order.append(n))
        else:
            callbacks.add(kind, lambda model, data, n=number: order.append(n))
    step(route)
    assert order == [0, 1, 2] * (3 if kind == "sensor" else 1)


def test_the_plugins_hook_runs_first_whenever_it_comes(bound):
    callbacks, route = bound
    order = []
    callbacks.add("control", lambda model, data: order.append("callback"))
    callbacks.plug("control", lambda model, data: order.append("plugin"))
    step(route)
    assert order == ["plugin", "callback"]
    callbacks.plug("control", None)
    step(route)
    assert order == ["plugin", "callback", "callback"]


def test_passive_forces_of_several_callbacks_add_up(router):
    def speed(*forces):
        route = router.attach(*hinge(gravity="0"))
        callbacks = Callbacks(over=router)
        callbacks.bind(route)
        for force in forces:

            def passive(model, data, force=force):
                data.qfrc_passive[0] += force

            callbacks.add("passive", passive)
        step(route)
        route.detach()
        return route.data.qvel[0]

    assert abs(speed(5, 5) - speed(10)) < 1e-15
    assert speed(10) > 0


@pytest.mark.parametrize(("votes", "contacts"), [((0, 0), 3), ((0, 1), 0), ((2, 0), 0)])
def test_any_filter_drops_the_pair(bound, votes, contacts):
    callbacks, route = bound
    for vote in votes:
        callbacks.add("contactfilter", lambda model, data, geom1, geom2, vote=vote: vote)
    step(route)
    assert route.data.ncon == contacts


def test_a_wrong_result_names_the_filter_that_gave_it(bound):
    callbacks, route = bound
    callbacks.add("contactfilter", lambda model, data, geom1, geom2: 0)

    def forgetful(model, data, geom1, geom2):
        pass

    callbacks.add("contactfilter", forgetful)
    with pytest.raises(CallbackResultError, match="forgetful"):
        step(route)


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.sole])
def test_a_second_owner_is_refused_and_told_who_has_it(bound, kind):
    callbacks, route = bound
    counter, other = Counter(), Counter()
    token = callbacks.add(kind, counter.hook(kind))
    with pytest.raises(CallbackTakenError, match=r"Counter\.hook.*scenes\.py"):
        callbacks.add(kind, other.hook(kind))
    step(route)
    assert counter.calls[kind] > 0
    token.remove()
    callbacks.add(kind, other.hook(kind))
    step(route)
    assert other.calls[kind] > 0


def test_callbacks_may_be_added_before_there_is_a_model(router):
    callbacks, counter = Callbacks(over=router), Counter()
    for kind in KINDS:
        callbacks.add(kind, counter.hook(kind))
    assert len(callbacks) == 8
    assert router.installed == ()
    route = router.attach(*rich())
    callbacks.bind(route)
    step(route, 5)
    assert counter.calls["control"] == counter.calls["passive"] == 5
    callbacks.unbind()
    route.detach()
    second = router.attach(*rich())
    callbacks.bind(second)
    step(second, 5)
    assert counter.calls["control"] == counter.calls["passive"] == 10
    second.detach()


def test_a_one_shot_callback_removes_itself(bound):
    callbacks, route = bound
    calls = []

    def hook(model, data):
        calls.append((model, data))
        if len(calls) == 3:
            token.remove()

    token = callbacks.add("control", hook)
    step(route, 10)
    assert len(calls) == 3
    assert not token.active
    token.remove()


def test_a_replacement_takes_over_at_once_and_in_place(bound):
    callbacks, route = bound
    calls = []
    token = callbacks.add("control", lambda model, data: calls.append("g"))
    callbacks.add("control", lambda model, data: calls.append("after"))
    step(route, 5)
    token.replace(lambda model, data: calls.append("g2"))
    step(route, 5)
    assert calls == ["g", "after"] * 5 + ["g2", "after"] * 5


def test_a_removed_token_cannot_be_replaced(bound):
    callbacks, _ = bound
    token = callbacks.add("control", lambda model, data: None)
    token.remove()
    assert "removed" in repr(token)
    with pytest.raises(InvalidArgumentError, match="add the new one instead"):
        token.replace(lambda model, data: None)


def test_removing_everything_uninstalls_everything(bound, router):
    callbacks, route = bound
    counter = Counter()
    tokens = [callbacks.add(kind, counter.hook(kind)) for kind in KINDS]
    assert set(router.installed) == set(KINDS)
    for token in tokens:
        token.remove()
    assert router.installed == ()
    assert callbacks.kinds == frozenset()
    step(route)


@pytest.mark.parametrize(
    ("kind", "fn", "error"),
    [
        ("sensor", [1, 2], CallbackSignatureError),
        ("sensor", lambda model, data: None, CallbackSignatureError),
        ("contol", lambda model, data: None, UnknownNameError),
    ],
)
def test_a_refused_addition_changes_nothing(bound, router, kind, fn, error):
    callbacks, route = bound
    with pytest.raises(error):
        callbacks.add(kind, fn)
    assert len(callbacks) == 0
    assert router.installed == ()
    good = callbacks.add("sensor", lambda model, data, stage: None)
    with pytest.raises(CallbackSignatureError):
        good.replace(3)
    assert good.active
    step(route)


def test_a_refusal_over_a_foreign_function_comes_from_add(slow_router, foreign):
    route = slow_router.attach(*hinge())
    callbacks = Callbacks(over=slow_router)
    foreign("control", lambda model, data: None)
    with pytest.raises(ForeignCallbackError):
        callbacks.add("control", lambda model, data: None)
    callbacks.bind(route)
    with pytest.raises(ForeignCallbackError):
        callbacks.add("control", lambda model, data: None)
    assert len(callbacks) == 0
    route.detach()


def test_a_bind_that_fails_leaves_no_hook(slow_router, foreign):
    callbacks = Callbacks(over=slow_router)
    callbacks.add("passive", lambda model, data: None)
    callbacks.add("control", lambda model, data: None)
    foreign("control", lambda model, data: None)
    route = slow_router.attach(*hinge())
    with pytest.raises(ForeignCallbackError):
        callbacks.bind(route)
    assert route.hooked == frozenset()
    route.detach()


def test_changes_wait_for_the_boundary_of_whoever_asked_for_it(router):
    route, told = router.attach(*hinge("RK4")), []
    callbacks = Callbacks(lambda: told.append(1), over=router)
    callbacks.bind(route)
    calls = []

    def first(model, data):
        calls.append("first")
        token.replace(second)

    def second(model, data):
        calls.append("second")

    token = callbacks.add("control", first)
    assert callbacks.stale
    step(route)
    assert not calls
    callbacks.settle()
    assert not callbacks.stale
    step(route)
    assert calls == ["first"] * 4, "not in the middle of a step"
    callbacks.settle()
    step(route)
    assert calls == ["first"] * 4 + ["second"] * 4
    assert len(told) == 5
    route.detach()


def test_compiled_and_python_callbacks_run_side_by_side(bound):
    callbacks, route = bound
    order = []

    @KINDS["control"].prototype
    def compiled(model, data):
        order.append(("compiled", data))

    callbacks.add("control", compiled)
    token = callbacks.add("control", lambda model, data: order.append(("python", data)))
    step(route)
    token.remove()
    step(route)
    address = route.data_address
    assert order == [("compiled", address), ("python", route.data), ("compiled", address)]
    assert isinstance(compiled, ctypes._CFuncPtr)


def test_an_error_of_one_callback_keeps_the_later_ones_from_running(bound):
    callbacks, route = bound
    calls = []

    def bad(model, data):
        raise ValueError("bad")

    token = callbacks.add("control", bad)
    callbacks.add("control", lambda model, data: calls.append(1))
    with pytest.raises(ValueError, match="bad"):
        step(route)
    assert not calls
    token.remove()
    step(route)
    assert calls == [1]
    mujoco.mj_resetData(route.model, route.data)
