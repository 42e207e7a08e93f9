"""What hooks raise, and what they must not return."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
import pytest

from mjhost.callbacks import KINDS
from mjhost.errors import CallbackResultError
from tests.callbacks.scenes import Counter, hinge, rich, step


def raising(kind, error):
    count = len(KINDS[kind].arguments)

    def hook0():
        raise error

    def hook2(model, data):
        raise error

    def hook3(model, data, index):
        raise error

    def hook4(model, data, geom1, geom2):
        raise error

    return {0: hook0, 2: hook2, 3: hook3, 4: hook4}[count]


@pytest.mark.parametrize("error", [ValueError("boom"), KeyError("boom"), KeyboardInterrupt()])
def test_whatever_a_hook_raises_is_parked_as_itself(router, kind, error):
    route = router.attach(*rich())
    route.set(kind, raising(kind, error))
    with route.entered("step"):
        mujoco.mj_step(route.model, route.data)
    assert route.parked
    assert route.parked_kind == kind
    assert route.take() is error
    assert route.parked == []
    assert route.take() is None
    route.detach()


def test_no_hook_runs_while_something_is_parked(router):
    route = router.attach(*rich("RK4"))
    counter = Counter()
    counter.hook_all(route)
    route.set("passive", raising("passive", ValueError("first")))
    with route.entered("step"):
        mujoco.mj_step(route.model, route.data)
    # In the first evaluation the contact filter and two sensor stages come before passive forces.
    assert counter.calls["control"] == counter.calls["act_gain"] == 0
    assert counter.calls["contactfilter"] == 3
    assert len(route.parked) == 1
    assert str(route.take()) == "first"
    route.detach()


def test_the_hooks_run_again_once_the_error_was_taken(router):
    route = router.attach(*hinge())
    calls = []

    def hook(model, data):
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("once")

    route.set("control", hook)
    with pytest.raises(ValueError, match="once"):
        step(route)
    step(route, 2)
    assert len(calls) == 3
    route.detach()


def test_one_pairs_error_does_not_stop_another_pair(router):
    bad, good = router.attach(*hinge()), router.attach(*hinge())
    counter = Counter()
    bad.set("control", raising("control", ValueError("boom")))
    good.set("control", counter.hook("control"))
    mujoco.mj_step(bad.model, bad.data)
    step(good, 3)
    assert counter.calls["control"] == 3
    assert bad.parked
    assert not good.parked
    bad.detach()
    good.detach()


@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicitfast"])
def test_rolling_back_after_an_error_is_exact_and_leaks_no_engine_stack(router, integrator):
    model, data = rich(integrator)
    route = router.attach(model, data)
    spec = mujoco.mjtState.mjSTATE_INTEGRATION
    state = _state(model, data, spec)
    for name in ("contactfilter", "act_gain", "control", "passive"):
        route.set(name, raising(name, ValueError(name)))
        for _ in range(20):
            with pytest.raises(ValueError, match=name):
                step(route)
            mujoco.mj_setState(model, data, state, spec)
        route.set(name, None)
        assert data.pstack == 0
        copy.copy(data)
    fresh = mujoco.MjData(model)
    for each in (data, fresh):
        for _ in range(20):
            mujoco.mj_step(model, each)
    assert data.qpos.tobytes() == fresh.qpos.tobytes()
    route.detach()


def _state(model, data, spec):
    state = np.empty(mujoco.mj_stateSize(model, spec))
    mujoco.mj_getState(model, data, state, spec)
    return state


WRONG = [
    ("act_gain", None),
    ("act_bias", "1.0"),
    ("act_dyn", [1.0]),
    ("contactfilter", None),
    ("contactfilter", 0.5),
    ("contactfilter", "no"),
    ("time", None),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_result_of_the_wrong_type_is_an_error_that_names_the_hook(router, name, value):
    route = router.attach(*rich())
    arguments = KINDS[name].arguments

    if arguments:

        def my_hook(model, data, *ids):
            return value
    else:

        def my_hook():
            return value

    route.set(name, my_hook)
    with pytest.raises(CallbackResultError, match=f"{name} callback .*my_hook.* must return") as e:
        step(route)
    assert isinstance(e.value, TypeError)
    assert repr(value) in str(e.value)
    route.detach()


def test_an_error_during_a_refresh_is_kept_and_the_mute_is_lifted(router):
    route = router.attach(*hinge())
    error = ValueError("kept")
    with route.muted():
        route.parked.append(error)
        assert route.take() is error
        assert route.parked, "still muted"
    assert route.parked == []
    route.detach()
