"""Hooks of one pair: every kind, on both makes of router."""

from __future__ import annotations

import ctypes
import gc
import weakref

import mujoco
import numpy as np
import pytest

from mjhost.callbacks import KINDS
from mjhost.errors import CallbackSignatureError, InvalidArgumentError, NotLoadedError
from tests.callbacks.scenes import Counter, hinge, pair, rich, step, symbols

# Calls per step: engine facts, the same on both engines.
ONE_STEP = {
    "Euler": {"control": 1, "passive": 1, "sensor": 3, "contactfilter": 3, "act": 2},
    "RK4": {"control": 4, "passive": 4, "sensor": 3, "contactfilter": 12, "act": 8},
}


@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicit", "implicitfast"])
def test_every_kind_is_called_as_often_as_the_engine_calls_it(router, integrator):
    route = router.attach(*rich(integrator))
    counter = Counter()
    counter.hook_all(route)
    step(route)
    expected = ONE_STEP.get(integrator, ONE_STEP["Euler"])
    for name, calls in counter.calls.items():
        if name != "time":
            assert calls == expected[name.partition("_")[0]], name
    assert counter.calls["time"] > 10
    route.detach()


def test_a_hook_gets_the_very_objects_of_its_pair(router):
    model, data = rich()
    route = router.attach(model, data)
    seen = []
    route.set("control", lambda m, d: seen.append((m, d)))
    route.set("sensor", lambda m, d, stage: seen.append((m, d)))
    step(route)
    assert all(m is model and d is data for m, d in seen)
    assert len(seen) == 4
    route.detach()


def test_sensor_stages_come_in_order_and_not_when_sensors_are_disabled(router):
    route = router.attach(*hinge())
    stages = []
    route.set("sensor", lambda model, data, stage: stages.append(stage))
    step(route)
    assert stages == [1, 2, 3]
    route.model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_SENSOR)
    step(route)
    assert stages == [1, 2, 3]
    route.detach()


def test_a_passive_hook_pushes_as_an_applied_force_does(router):
    def speed_after(write, hook):
        route = router.attach(*hinge(gravity="0"))
        if hook:
            route.set("passive", write)
        else:
            write(route.model, route.data)
        step(route)
        route.detach()
        return route.data.qvel[0]

    def passive(model, data):
        data.qfrc_passive[0] += 10

    def applied(model, data):
        data.qfrc_applied[0] = 10

    assert speed_after(applied, hook=False) == speed_after(passive, hook=True) > 0
    assert speed_after(passive, hook=False) == 0


def test_actuator_hooks_make_the_force(router):
    route = router.attach(*rich())
    route.set("act_gain", lambda model, data, i: 3.0 + i)
    route.set("act_bias", lambda model, data, i: -1)
    route.set("act_dyn", lambda model, data, i: np.float32(5))
    route.data.act[:] = 2
    with route.entered("forward"):
        mujoco.mj_forward(route.model, route.data)
    assert list(route.data.actuator_force) == [5.0, 7.0]
    assert list(route.data.act_dot) == [5.0, 5.0]
    route.detach()


@pytest.mark.parametrize("drops", [1, -1, 2, True, np.True_, np.int32(4), 2**40])
def test_a_contact_filter_drops_with_anything_but_zero(router, drops):
    route = router.attach(*rich())
    route.set("contactfilter", lambda model, data, geom1, geom2: drops if geom1 == 0 else 0)
    step(route)
    assert route.data.ncon == 1
    route.detach()


def test_an_explicit_pair_never_asks_the_contact_filter(router):
    xml = """
    <mujoco>
      <worldbody>
        <geom name="floor" type="plane" size="1 1 .1"/>
        <body pos="0 0 .05"><freejoint/><geom name="ball" size=".1"/></body>
      </worldbody>
      <contact><pair geom1="floor" geom2="ball"/></contact>
    </mujoco>
    """
    route = router.attach(*pair(xml))
    counter = Counter()
    route.set("contactfilter", counter.hook("contactfilter"))
    step(route)
    assert counter.calls["contactfilter"] == 0
    assert route.data.ncon == 1
    route.detach()


def test_the_clock_of_a_stepping_thread_is_the_routes(router):
    route = router.attach(*hinge())
    ticks = iter(range(10_000))
    route.set("time", lambda: float(next(ticks)))
    mujoco.mj_step(route.model, route.data)
    assert next(ticks) == 0, "a step that nobody announced has the built-in clock"
    step(route)
    assert next(ticks) > 10
    route.detach()


def test_the_clock_may_be_hooked_and_unhooked_inside_a_step(router):
    route = router.attach(*hinge())
    before = symbols()["time"]
    counter = Counter()
    with route.stepping():
        route.set("time", counter.hook("time"))
        mujoco.mj_step(route.model, route.data)
        once = counter.calls["time"]
        route.set("time", None)
        mujoco.mj_step(route.model, route.data)
    assert counter.calls["time"] == once > 0
    assert symbols()["time"] == before
    route.detach()


def test_a_nested_step_has_its_own_clock_and_gives_back_the_outer_one(router):
    outer, inner, bare = (router.attach(*hinge()) for _ in range(3))
    ours, theirs = Counter(), Counter()
    outer.set("time", ours.hook("time"))
    inner.set("time", theirs.hook("time"))
    with outer.stepping():
        with inner.stepping():
            mujoco.mj_step(inner.model, inner.data)
        assert (ours.calls["time"], theirs.calls["time"] > 0) == (0, True)
        with bare.stepping():
            mujoco.mj_step(bare.model, bare.data)
        assert ours.calls["time"] == 0
        mujoco.mj_step(outer.model, outer.data)
        assert ours.calls["time"] > 0
    for route in (outer, inner, bare):
        route.detach()


def test_everything_is_put_back_when_the_last_hook_goes(router, kind):
    before = symbols()
    first, second = router.attach(*rich()), router.attach(*rich())
    counter = Counter()
    first.set(kind, counter.hook(kind))
    assert symbols()[kind] != before[kind]
    second.set(kind, counter.hook(kind))
    first.detach()
    assert router.installed == (kind,)
    assert symbols()[kind] != before[kind]
    second.set(kind, None)
    assert symbols() == before
    second.detach()


def test_a_kind_that_nobody_hooks_is_not_installed(router):
    before = symbols()
    route = router.attach(*hinge())
    assert symbols() == before
    route.set("passive", lambda model, data: None)
    changed = {name for name, value in symbols().items() if value != before[name]}
    assert changed == {"passive"}
    route.detach()


def test_data_that_nobody_owns_get_neutral_values(router):
    mine, (model, stranger) = router.attach(*rich()), rich()
    alone = mujoco.MjData(model)
    stranger.act[:] = alone.act[:] = 0.5
    mujoco.mj_step(model, alone)
    counter = Counter()
    counter.hook_all(mine)
    for name, value in [("act_gain", 7.0), ("act_bias", 7.0), ("act_dyn", 7.0)]:
        mine.set(name, lambda m, d, i, value=value: value)
    mine.set("contactfilter", lambda m, d, geom1, geom2: 1)
    mujoco.mj_step(model, stranger)
    assert not any(counter.calls.values())
    # Without a callback the engine takes 1 for the gain and 0 for the rest, as the router does.
    assert stranger.actuator_force.tolist() == alone.actuator_force.tolist() == [0.5, 0.5]
    assert stranger.qpos.tolist() == alone.qpos.tolist()
    assert stranger.ncon == alone.ncon == 3
    mine.detach()


def test_an_address_that_is_used_again_has_no_hooks(router):
    model, data = hinge()
    keeper = router.attach(model, mujoco.MjData(model))
    keeper.set("control", lambda m, d: None)  # the kind stays installed
    calls, met = [], set()
    for _ in range(50):
        route = router.attach(model, data)
        assert route.data_address not in router.ports["control"].hooks
        route.set("control", lambda m, d: calls.append(1))
        met.add(route.data_address)
        route.detach()
        del route, data
        data = mujoco.MjData(model)
        mujoco.mj_step(model, data)
    assert calls == []
    assert len(met) < 50, "the point of the test is that addresses come back"
    keeper.detach()


def test_detaching_lets_go_of_everything(router):
    model, data = hinge()
    route = router.attach(model, data)

    def hook(m, d):
        return None

    route.set("control", hook)
    route.set("passive", hook)
    with route.stepping():
        mujoco.mj_step(model, data)
    route.detach()
    gone = weakref.ref(data), weakref.ref(hook)
    del model, data, route, hook
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


def test_a_detached_route_takes_no_hooks(router):
    route = router.attach(*hinge())
    route.detach()
    route.detach()
    with pytest.raises(NotLoadedError, match="attach them again"):
        route.set("control", lambda m, d: None)
    assert router.installed == ()


def test_data_have_one_owner(router):
    model, data = hinge()
    route = router.attach(model, data)
    with pytest.raises(InvalidArgumentError, match="another route owns them"):
        router.attach(model, data)
    route.detach()
    router.attach(model, data).detach()


def test_muted_hooks_do_not_fire_and_come_back(router):
    route = router.attach(*rich())
    counter = Counter()
    counter.hook_all(route)
    counter.calls["time"] = 0
    with route.muted(), route.muted():
        mujoco.mj_forward(route.model, route.data)
    assert not any(counter.calls.values())
    step(route)
    assert counter.calls["control"] == 1
    route.detach()


def test_a_swap_is_seen_by_the_next_call(router):
    route = router.attach(*hinge("RK4"))
    calls = []

    def second(model, data):
        calls.append("second")

    def first(model, data):
        calls.append("first")
        route.set("control", second)

    route.set("control", first)
    step(route)
    assert calls == ["first", "second", "second", "second"]
    route.detach()


def test_a_hook_may_remove_itself(router):
    route = router.attach(*hinge())
    calls = []

    def hook(model, data):
        calls.append((model, data))
        if len(calls) == 3:
            route.set("control", None)

    route.set("control", hook)
    step(route, 10)
    assert len(calls) == 3
    assert None not in calls[0]
    route.detach()


BAD = [
    ("sensor", [1, 2]),
    ("sensor", lambda model, data: None),
    ("control", lambda model: None),
    ("control", "control"),
    ("time", lambda model, data: 0.0),
    ("contactfilter", lambda model, data, pair: 0),
    ("act_gain", 1.0),
]


@pytest.mark.parametrize(("name", "fn"), BAD)
def test_what_cannot_be_called_is_refused_at_once_with_the_signature(router, name, fn):
    route = router.attach(*hinge())
    expected = ", ".join(KINDS[name].arguments)
    with pytest.raises(CallbackSignatureError, match=rf"\({expected}\)") as caught:
        route.set(name, fn)
    assert isinstance(caught.value, TypeError)
    assert router.installed == ()
    route.detach()


def test_a_coroutine_function_is_refused(router):
    route = router.attach(*hinge())

    async def hook(model, data):
        return None

    with pytest.raises(CallbackSignatureError, match="would never run"):
        route.set("control", hook)
    route.detach()


def test_a_pointer_of_another_shape_is_refused(router):
    route = router.attach(*hinge())
    two = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(lambda m, d: None)
    with pytest.raises(CallbackSignatureError, match="C arguments"):
        route.set("sensor", two)
    integer = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
    with pytest.raises(CallbackSignatureError, match="C result is c_int, not c_double"):
        route.set("act_gain", integer(lambda m, d, i: 0))
    with pytest.raises(CallbackSignatureError, match="null"):
        route.set("control", ctypes.CFUNCTYPE(None)())
    route.detach()


def test_a_class_whose_objects_can_be_called_is_a_hook(router):
    class Controller:
        calls = 0

        def __call__(self, model, data):
            self.calls += 1

    route, controller = router.attach(*hinge()), Controller()
    route.set("control", controller)
    step(route, 3)
    assert controller.calls == 3
    route.detach()
