"""Callbacks that are attached to a model and its data."""

from __future__ import annotations

import ctypes
import importlib.util

import mujoco
import numpy as np
import pytest
from mujoco import rollout

from mjhost import MujocoEnv, engine
from mjhost.callbacks import router
from mjhost.engine import failures
from mjhost.errors import (
    CallbackSignatureError,
    CallbackTakenError,
    EnginePluginError,
    InvalidArgumentError,
    UnknownNameError,
)
from tests.engine.callbacks.scenes import XML, pair, run_without_frames

HAS_FAST = importlib.util.find_spec("numba") is not None
needs_fast = pytest.mark.skipif(not HAS_FAST, reason="the extra fast is not installed")
BOTH = [False, pytest.param(True, marks=[needs_fast, pytest.mark.slow])]


@engine.callback("control")
def push(model, data):
    data.ctrl[0] = data.time + 1


def _bad(model, data):
    data.ctrl[7] = 1.0


@pytest.mark.parametrize("compiled", BOTH)
def test_attached_callback_is_called_and_a_detached_one_is_not(compiled):
    model, data = pair()
    called = engine.callback("control", compiled=compiled)(push)
    with called.attach(model, data) as attachment:
        assert attachment.active
        mujoco.mj_step(model, data)
        assert data.ctrl[0] == 1
    data.ctrl[0] = 5
    mujoco.mj_step(model, data)
    assert data.ctrl[0] == 5
    assert (attachment.active, called.attachments, router.installed) == (False, (), ())


@pytest.mark.parametrize("compiled", BOTH)
@pytest.mark.parametrize(
    ("kind", "function", "read", "value"),
    [
        ("passive", lambda model, data: _set(data.qfrc_passive), "qfrc_passive", 3.0),
        ("sensor", lambda model, data, stage: _set(data.sensordata), "sensordata", 3.0),
        ("act_dyn", lambda model, data, id: 3.0, "act_dot", 3.0),
        ("act_bias", lambda model, data, id: 3.0, "actuator_force", 5.0),
        ("act_gain", lambda model, data, id: 2.0, "actuator_force", 4.0),
        ("contactfilter", lambda model, data, geom1, geom2: True, "ncon", 0),
    ],
)
def test_every_kind_is_called_with_what_it_takes_and_its_result_counts(
    kind, function, read, value, compiled
):
    model, data = pair()
    data.act[:] = 2
    with engine.callback(kind, compiled=compiled)(function).attach(model, data):
        mujoco.mj_forward(model, data)
        found = getattr(data, read)
        assert (found if read == "ncon" else found[-1]) == value


def _set(array):
    array[-1] = 3.0


def test_views_are_not_what_an_attached_callback_gets():
    model, data = pair()
    given = []
    see = engine.callback("control")(lambda model, data: given.append((model, data)))
    with see.attach(model, data):
        mujoco.mj_step(model, data)
    assert given[0][0] is model
    assert given[0][1] is data


def test_several_callbacks_of_a_kind_run_in_the_order_of_attaching():
    model, data = pair()
    order = []
    first = engine.callback("control")(lambda model, data: order.append(1))
    second = engine.callback("control")(lambda model, data: order.append(2))
    with second.attach(model, data), first.attach(model, data):
        mujoco.mj_step(model, data)
    assert order == [2, 1]


@needs_fast
def test_compiled_and_python_callbacks_of_a_kind_run_together():
    model, data = pair()
    double = engine.callback("control")(_double)
    fast = engine.callback("control", compiled=True)(push.function)
    with fast.attach(model, data), double.attach(model, data):
        mujoco.mj_step(model, data)
    assert data.ctrl[0] == 2


def _double(model, data):
    data.ctrl[0] *= 2


def test_another_data_of_the_model_is_left_alone():
    model, data = pair()
    other = mujoco.MjData(model)
    with push.attach(model, data):
        mujoco.mj_step(model, other)
    assert other.ctrl[0] == 0


def test_a_kind_with_one_owner_has_one_and_the_pair_goes_on_with_it():
    model, data = pair()
    gain = engine.callback("act_gain")(lambda model, data, id: 2.0)
    with gain.attach(model, data):
        with pytest.raises(CallbackTakenError, match="one act_gain callback per data"):
            gain.attach(model, data)
        assert len(gain.attachments) == 1


def test_data_of_an_env_are_refused_and_the_env_is_what_to_attach_to():
    with MujocoEnv(mujoco.MjModel.from_xml_string(XML.format(integrator="Euler"))) as env:
        with env.access() as (model, data), pytest.raises(InvalidArgumentError, match="env owns"):
            push.attach(model, data)
        attachment = push.attach(env)
        env.step()
        assert env.data.ctrl[0] == 1
        attachment.detach()
        assert len(env.callbacks) == 0


@needs_fast
def test_compiled_callback_of_an_env_that_raises_undoes_its_step():
    with MujocoEnv(mujoco.MjModel.from_xml_string(XML.format(integrator="Euler"))) as env:
        with engine.callback("control", compiled=True)(_bad).attach(env):
            with pytest.raises(IndexError):
                env.step()
            assert env.data.time == 0
        env.clear_fault()
        env.step()
        assert env.info.step_count == 1


@pytest.mark.parametrize("compiled", BOTH)
@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicitfast"])
@needs_fast
def test_what_a_callback_raises_ends_the_step_it_is_in(integrator, compiled):
    model, data = pair(integrator)
    with engine.callback("control", compiled=compiled)(_bad).attach(model, data):
        for _ in range(3):
            with pytest.raises(EnginePluginError, match="control callback _bad") as caught:
                mujoco.mj_step(model, data)
            assert isinstance(caught.value.__cause__, IndexError)
            assert (caught.value.method, caught.value.instance) == ("control", None)
            assert (data.time, data.pstack) == (0, 0)
    mujoco.mj_step(model, data)
    assert data.time > 0


@needs_fast
def test_a_wrong_result_is_told_with_the_signature():
    model, data = pair()
    wrong = engine.callback("act_gain")(lambda model, data, id: "much")
    with wrong.attach(model, data), pytest.raises(EnginePluginError, match="must return a number"):
        mujoco.mj_step(model, data)


@needs_fast
def test_a_failure_among_several_names_the_callback_that_raised():
    model, data = pair()
    bad = engine.callback("control")(_bad)
    expected = pytest.raises(EnginePluginError, match="callback _bad")
    with push.attach(model, data), bad.attach(model, data), expected:
        mujoco.mj_step(model, data)


@needs_fast
def test_an_interrupt_in_a_callback_surfaces_as_itself():
    model, data = pair()

    def interrupted(model, data):
        raise KeyboardInterrupt

    attached = engine.callback("control")(interrupted).attach(model, data)
    with attached, pytest.raises(KeyboardInterrupt):
        mujoco.mj_step(model, data)


@pytest.mark.slow
def test_failure_where_nothing_can_be_raised_is_kept_for_whoever_asks(tmp_path):
    told = run_without_frames(
        """
        import mujoco
        from mjhost import engine
        from tests.engine.callbacks.scenes import pair
        model, data = pair()
        calls = []
        @engine.callback("control")
        def bad(model, data):
            calls.append(1)
            raise ValueError("boom")
        attachment = bad.attach(model, data)
        mujoco.mj_step(model, data)
        mujoco.mj_step(model, data)
        try: engine.check(data)
        except engine.EnginePluginError as error: print(len(calls), error.__cause__)
        mujoco.mj_step(model, data)
        try: attachment.detach()
        except engine.EnginePluginError as error: print(len(calls), error.__cause__)
        engine.check()
        print(attachment.active)
        """,
        tmp_path,
    )
    assert told.splitlines() == ["1 boom", "2 boom", "False"]


def test_rollout_calls_it_for_the_data_it_is_attached_to():
    model, data = pair()
    other = mujoco.MjData(model)
    calls = []
    see = engine.callback("control")(lambda model, data: calls.append(data))
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.empty((2, mujoco.mj_stateSize(model, full)))
    mujoco.mj_getState(model, data, state[0], full)
    state[1] = state[0]
    with see.attach(model, data):
        rollout.rollout(model, other, state, nstep=3)
        assert calls == []
        rollout.rollout(model, data, state, nstep=3)
    assert calls == [data] * 6


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ((lambda: None, "kontrol"), UnknownNameError, "control"),
        ((lambda model: None, "control"), CallbackSignatureError, "(model, data)"),
        ((3, "control"), CallbackSignatureError, "cannot be called"),
    ],
)
def test_what_cannot_be_a_callback_is_refused_at_once(arguments, error, said):
    function, kind = arguments
    with pytest.raises(error) as caught:
        engine.callback(kind)(function)
    assert said in str(caught.value)


@needs_fast
def test_what_numba_cannot_compile_is_refused_with_file_and_line():
    def dictionary(model, data):
        print(data)

    with pytest.raises(engine.NotCompilableError, match=r"test_attaching\.py:\d+"):
        engine.callback("control", compiled=True)(dictionary)


@pytest.mark.parametrize("target", [None, 3])
def test_what_is_neither_env_nor_pair_is_refused(target):
    with pytest.raises(InvalidArgumentError, match="an MjModel and an MjData"):
        push.attach(target)


def test_a_clock_cannot_be_attached_to_data():
    model, data = pair()
    with pytest.raises(InvalidArgumentError, match="callback_scope"):
        engine.callback("time")(lambda: 1.0).attach(model, data)


def test_a_bare_pointer_that_was_there_is_put_back_and_called_after():
    kind = router.ports["control"].kind
    cell = router.ports["control"].cell
    order = []
    bare = kind.prototype(lambda model, data: order.append("bare"))
    cell.value = ctypes.cast(bare, ctypes.c_void_p).value
    before = cell.value
    try:
        model, data = pair()
        order.clear()
        mine = engine.callback("control")(lambda model, data: order.append("mine"))
        with mine.attach(model, data):
            mujoco.mj_step(model, data)
        assert order == ["mine", "bare"]
        assert cell.value == before
    finally:
        cell.value = None


def test_nothing_pends_when_everything_was_told():
    assert not failures.pending
