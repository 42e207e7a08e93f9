"""``call_context``: exact, or unknown."""

from __future__ import annotations

import threading

import mujoco
import pytest

from mjhost.callbacks import KINDS, CallContext, Entry, call_context
from tests.callbacks.scenes import hinge, rich, step

SUBSTEPS = {"Euler": 1, "RK4": 4, "implicit": 1, "implicitfast": 1, "discrete": 1}


def asking(seen, kind):
    value = KINDS[kind].neutral

    def hook0():
        seen.append(call_context())
        return 0.0

    def hook2(model, data):
        seen.append(call_context())

    def hook3(model, data, index):
        seen.append(call_context())
        return value

    def hook4(model, data, geom1, geom2):
        seen.append(call_context())
        return 0

    return {0: hook0, 2: hook2, 3: hook3, 4: hook4}[len(KINDS[kind].arguments)]


def asked(route, *kinds):
    seen = {}
    for kind in kinds:
        seen[kind] = []
        route.set(kind, asking(seen[kind], kind))
    return seen


@pytest.mark.parametrize("integrator", SUBSTEPS)
@pytest.mark.parametrize("kind", ["control", "passive"])
def test_substeps_are_counted_whatever_the_integrator(router, integrator, kind):
    route, count = router.attach(*hinge(integrator)), SUBSTEPS[integrator]
    seen = asked(route, kind)[kind]
    step(route, 2)
    once = [CallContext(Entry.STEP, kind, k, count) for k in range(1, count + 1)]
    assert seen == once + once
    route.detach()


def test_rk4_control_runs_at_the_times_of_its_stages(router):
    route, times = router.attach(*hinge("RK4")), []
    route.set("control", lambda model, data: times.append((call_context().substep, data.time)))
    step(route)
    h = route.model.opt.timestep
    assert times == [(1, 0.0), (2, h / 2), (3, h / 2), (4, h)]
    route.detach()


def test_changing_the_integrator_between_steps_keeps_the_count_right(router):
    route = router.attach(*hinge("RK4"))
    seen = asked(route, "control")["control"]
    step(route)
    route.model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
    step(route, 3)
    route.model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    step(route)
    assert [(c.substep, c.substeps) for c in seen] == [
        *((k, 4) for k in (1, 2, 3, 4)),
        *((1, 1) for _ in range(3)),
        *((k, 4) for k in (1, 2, 3, 4)),
    ]
    route.detach()


def test_a_step_that_was_given_up_does_not_shift_the_next_one(router):
    route, substeps = router.attach(*hinge("RK4")), []

    def hook(model, data):
        substeps.append(call_context().substep)
        if len(substeps) == 2:
            raise ValueError("in the second evaluation")

    route.set("control", hook)
    with pytest.raises(ValueError, match="second"):
        step(route)
    step(route)
    assert substeps == [1, 2, 1, 2, 3, 4]
    route.detach()


@pytest.mark.parametrize("kind", ["act_dyn", "act_gain", "act_bias"])
def test_a_pass_over_all_actuators_is_one_substep(router, kind):
    route = router.attach(*rich("RK4"))
    seen = asked(route, kind)[kind]
    step(route, 2)
    assert [c.substep for c in seen] == [1, 1, 2, 2, 3, 3, 4, 4] * 2
    route.detach()


def test_rk4_evaluates_sensors_in_its_first_substep(router):
    route = router.attach(*rich("RK4"))
    seen = asked(route, "sensor")["sensor"]
    step(route)
    assert seen == [CallContext(Entry.STEP, "sensor", 1, 4)] * 3
    route.detach()


@pytest.mark.parametrize("neighbour", ["control", "passive"])
def test_a_contact_filter_counts_by_its_neighbours(router, neighbour):
    route = router.attach(*rich("RK4"))
    seen = asked(route, "contactfilter", neighbour)["contactfilter"]
    step(route)
    assert [c.substep for c in seen] == [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]
    route.detach()


def test_a_contact_filter_alone_under_rk4_does_not_guess(router):
    route = router.attach(*rich("RK4"))
    seen = asked(route, "contactfilter")["contactfilter"]
    step(route)
    assert {(c.entry, c.substep, c.substeps) for c in seen} == {(Entry.STEP, None, 4)}
    route.detach()


def test_a_disabled_neighbour_is_not_counted_by(router):
    route = router.attach(*rich("RK4"))
    flags = mujoco.mjtDisableBit
    seen = asked(route, "contactfilter", "passive")["contactfilter"]
    route.model.opt.disableflags = int(flags.mjDSBL_SPRING | flags.mjDSBL_DAMPER)
    step(route)
    assert {c.substep for c in seen} == {None}
    seen.clear()
    asked(route, "control")
    step(route)
    assert [c.substep for c in seen][::3] == [1, 2, 3, 4]
    route.detach()


IPC = """
<mujoco>
  <option integrator="discrete" solver="CG"><flag ipc="enable"/></option>
  <worldbody>
    <flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2" mass="1">
      <edge equality="true"/>
    </flexcomp>
  </worldbody>
  <sensor><user dim="1" needstage="vel"/><user dim="1" needstage="acc"/></sensor>
</mujoco>
"""


def test_the_second_sensor_pass_of_ipc_is_a_repeat(router):
    model = mujoco.MjModel.from_xml_string(IPC)
    route = router.attach(model, mujoco.MjData(model))
    seen = []
    route.set("sensor", lambda model, data, stage: seen.append((stage, call_context().repeat)))
    step(route, 2)
    assert seen == [(2, 0), (3, 0), (3, 1)] * 2
    route.detach()


ENTRIES = [entry for entry in Entry if entry not in {Entry.STEP, Entry.UNKNOWN}]


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_announced_entry_is_what_hooks_see(router, kind, entry):
    route = router.attach(*rich("RK4"))
    seen = asked(route, kind)[kind]
    with route.entered(entry):
        mujoco.mj_step(route.model, route.data)
    assert set(seen) == {CallContext(entry, kind, 1, 1)}
    route.detach()


def test_a_forward_that_a_user_makes_is_unknown(router):
    route = router.attach(*rich())
    seen = asked(route, "control", "passive", "sensor", "act_gain", "contactfilter")
    step(route)
    for each in seen.values():
        each.clear()
    mujoco.mj_forward(route.model, route.data)
    for kind, each in seen.items():
        assert set(each) == {CallContext(Entry.UNKNOWN, kind)}
    route.detach()


def test_entries_nest_and_end(router):
    route = router.attach(*hinge())
    seen = asked(route, "control")["control"]
    with route.entered("inverse"):
        with route.entered(Entry.FINITE_DIFFERENCE, retry=True):
            mujoco.mj_forward(route.model, route.data)
        mujoco.mj_forward(route.model, route.data)
    mujoco.mj_forward(route.model, route.data)
    assert [(c.entry, c.retry) for c in seen] == [
        ("finite_difference", True),
        ("inverse", False),
        ("unknown", False),
    ]
    route.detach()


def test_a_retried_step_says_so(router):
    route = router.attach(*hinge())
    seen = asked(route, "control")["control"]
    with route.entered("step", retry=True):
        mujoco.mj_step(route.model, route.data)
    step(route)
    assert [c.retry for c in seen] == [True, False]
    route.detach()


def test_the_inlined_form_is_the_same_as_entered(router):
    from mjhost.callbacks import IDLE

    route = router.attach(*hinge("RK4"))
    seen = asked(route, "control")["control"]
    for _ in range(2):
        route.turn = 0
        mujoco.mj_step(route.model, route.data)
        route.turn = IDLE
    mujoco.mj_forward(route.model, route.data)
    inlined = list(seen)
    seen.clear()
    step(route, 2)
    mujoco.mj_forward(route.model, route.data)
    assert seen == inlined
    assert seen[-1].entry == Entry.UNKNOWN
    route.detach()


def test_a_deep_call_finds_its_hook(router):
    route, seen = router.attach(*hinge()), []

    def deep(levels):
        if levels:
            deep(levels - 1)
        else:
            seen.append(call_context())

    route.set("control", lambda model, data: deep(20))
    step(route)
    assert seen == [CallContext(Entry.STEP, "control", 1, 1)]
    route.detach()


def test_the_innermost_callback_answers(router):
    outer, inner = router.attach(*hinge("RK4")), router.attach(*hinge())
    seen = asked(inner, "passive")["passive"]
    outer.set("control", lambda model, data: step(inner))
    step(outer)
    assert seen == [CallContext(Entry.STEP, "passive", 1, 1)] * 4
    outer.detach()
    inner.detach()


def test_outside_of_everything_it_is_unknown():
    assert call_context() == CallContext(Entry.UNKNOWN)


def test_between_callbacks_the_announced_step_answers(shared):
    route = shared.attach(*hinge())
    with route.entered("step", retry=True):
        assert call_context() == CallContext(Entry.STEP, retry=True)
        other = []
        thread = threading.Thread(target=lambda: other.append(call_context()))
        thread.start()
        thread.join(10)
    assert other == [CallContext(Entry.UNKNOWN)]
    assert call_context() == CallContext(Entry.UNKNOWN)
    route.detach()


def test_the_clock_under_rk4_does_not_guess(router):
    route = router.attach(*hinge("RK4"))
    seen = asked(route, "time")["time"]
    step(route)
    assert {(c.substep, c.substeps) for c in seen} == {(None, 4)}
    route.detach()


def test_a_context_is_a_plain_value():
    context = CallContext(Entry.STEP, "control", 1, 4)
    assert hash(context) == hash(CallContext("step", "control", 1, 4))
