"""Callbacks for everything within a block."""

from __future__ import annotations

import ctypes
import importlib.util
import threading

import mujoco
import numpy as np
import pytest

from mjhost import MujocoEnv, engine
from mjhost.callbacks import router
from mjhost.errors import CallbackTakenError, EnginePluginError, InvalidArgumentError
from tests.engine.callbacks.scenes import XML, pair, run, run_without_frames

HAS_FAST = importlib.util.find_spec("numba") is not None
needs_fast = pytest.mark.skipif(not HAS_FAST, reason="the extra fast is not installed")


def _one(model, data):
    data.ctrl[0] = 1


def _bad(model, data):
    data.ctrl[7] = 1


def test_scope_is_called_for_every_data_inside_and_for_none_afterwards():
    model, data = pair()
    other_model, other = pair("RK4")
    with engine.callback_scope(control=_one):
        mujoco.mj_step(model, data)
        mujoco.mj_step(other_model, other)
    assert (data.ctrl[0], other.ctrl[0]) == (1, 1)
    data.ctrl[0] = 5
    mujoco.mj_step(model, data)
    assert data.ctrl[0] == 5
    assert router.installed == ()


def test_views_show_the_model_and_data_that_are_stepped():
    model, data = pair()
    seen = []

    def look(model, data):
        seen.append((model._address, data._address, model.nq, data.qpos[2], data.time))

    with engine.callback_scope(control=look):
        for _ in range(3):
            mujoco.mj_step(model, data)
    assert [entry[:3] for entry in seen] == [(model._address, data._address, model.nq)] * 3
    assert [entry[4] for entry in seen] == pytest.approx([0, 0.002, 0.004])


def test_views_follow_another_model_at_the_same_addresses():
    sizes = []

    def look(model, data):
        sizes.append((model.nq, len(data.qpos), len(data.ctrl)))

    expected = []
    with engine.callback_scope(passive=look):
        for joints in (1, 3, 2, 5, 1):
            bodies = '<body><joint/><geom size=".1"/></body>' * joints
            model = mujoco.MjModel.from_xml_string(
                f"<mujoco><worldbody>{bodies}</worldbody></mujoco>"
            )
            data = mujoco.MjData(model)
            sizes.clear()
            mujoco.mj_step(model, data)
            expected.append(sizes == [(joints, joints, 0)])
            del model, data
    assert all(expected)


@pytest.mark.parametrize("kind", ["control", "passive"])
def test_pointer_and_python_object_of_before_are_back_after_an_exception(kind):
    port = router.ports[kind]
    bare = port.kind.prototype(lambda model, data: None)
    port.cell.value = ctypes.cast(bare, ctypes.c_void_p).value
    before = port.cell.value
    try:
        with pytest.raises(ZeroDivisionError), engine.callback_scope(**{kind: _one}):
            assert port.cell.value != before
            raise ZeroDivisionError
        assert port.cell.value == before
    finally:
        port.cell.value = None


def test_bare_pointer_rests_while_a_scope_is_open():
    port = router.ports["control"]
    called = []
    bare = port.kind.prototype(lambda model, data: called.append(1))
    model, data = pair()
    port.cell.value = ctypes.cast(bare, ctypes.c_void_p).value
    try:
        with engine.callback_scope(control=_one):
            mujoco.mj_step(model, data)
        assert called == []
        mujoco.mj_step(model, data)
        assert called == [1]
    finally:
        port.cell.value = None


@needs_fast
def test_python_function_of_before_is_back_afterwards():
    def theirs(model, data):
        data.ctrl[0] = 7

    model, data = pair()
    mujoco.set_mjcb_control(theirs)
    try:
        with engine.callback_scope(control=_one):
            mujoco.mj_step(model, data)
            assert data.ctrl[0] == 1
        assert mujoco.get_mjcb_control() is theirs
        mujoco.mj_step(model, data)
        assert data.ctrl[0] == 7
    finally:
        mujoco.set_mjcb_control(None)


def test_inner_scope_answers_and_the_outer_one_again_after_it():
    model, data = pair()

    def two(model, data):
        data.ctrl[0] = 2

    with engine.callback_scope(control=_one):
        with engine.callback_scope(control=two):
            mujoco.mj_step(model, data)
            assert data.ctrl[0] == 2
        mujoco.mj_step(model, data)
        assert data.ctrl[0] == 1


def test_scope_of_another_thread_is_refused_while_one_holds_the_kind():
    outcomes = []

    def other_thread():
        try:
            with engine.callback_scope(passive=_one, control=_one):
                outcomes.append("entered")
        except CallbackTakenError as error:
            outcomes.append(str(error))

    def in_thread():
        thread = threading.Thread(target=other_thread, name="second")
        thread.start()
        thread.join(timeout=20)
        return outcomes[-1]

    with engine.callback_scope(control=_one):
        said = in_thread()
        assert router.installed == ("control",)  # what was asked for is held as a whole or not
    assert "'second'" in said
    assert "'MainThread' holds it" in said
    assert in_thread() == "entered"


def test_steps_of_other_threads_are_under_the_scope():
    model, data = pair()
    with engine.callback_scope(control=_one):
        thread = threading.Thread(target=mujoco.mj_step, args=(model, data))
        thread.start()
        thread.join(timeout=20)
    assert data.ctrl[0] == 1


def test_data_with_a_callback_of_their_own_keep_it():
    model, data = pair()

    def nine(model, data):
        data.ctrl[0] = 9

    with engine.callback_scope(control=_one), engine.callback("control")(nine).attach(model, data):
        mujoco.mj_step(model, data)
    assert data.ctrl[0] == 9


def test_compilers_private_data_do_not_reach_a_scope_when_an_env_loads():
    called = set()

    def see(model, data):
        called.add(data._address)

    spec = mujoco.MjSpec.from_string(XML.format(integrator="Euler"))
    with engine.callback_scope(control=see), MujocoEnv(spec) as env, env.access() as (_, data):
        assert called <= {data._address}


@needs_fast
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_what_a_scope_raises_ends_the_step_and_the_scope_goes_on(compiled):
    model, data = pair("RK4")
    bad = engine.callback("control", compiled=compiled)(_bad)
    with engine.callback_scope(control=bad):
        for _ in range(3):
            with pytest.raises(EnginePluginError, match="control callback _bad"):
                mujoco.mj_step(model, data)
            assert (data.time, data.pstack) == (0, 0)


@needs_fast
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_what_a_scope_raises_in_a_compiler_is_the_compilers_error(compiled):
    bad = engine.callback("control", compiled=compiled)(_bad)
    with engine.callback_scope(control=bad), pytest.raises(ValueError, match="callback _bad"):
        pair()


@needs_fast
@pytest.mark.slow
def test_compiled_and_python_callbacks_compute_the_same_bits():
    def damp(model, data):
        for dof in range(model.nv):
            data.qfrc_passive[dof] -= 0.3 * data.qvel[dof] * abs(data.qvel[dof])

    def final(callback):
        model, data = pair("implicitfast")
        data.qvel[:] = np.arange(model.nv)
        with engine.callback_scope(passive=callback):
            for _ in range(20):
                mujoco.mj_step(model, data)
        return data.qpos.tobytes()

    assert final(damp) == final(engine.callback("passive", compiled=True)(damp))


def test_clock_and_filter_of_a_scope_are_asked():
    model, data = pair()
    asked = []

    def clock():
        asked.append(1)
        return 2.0

    with engine.callback_scope(time=clock, contactfilter=lambda m, d, g1, g2: 1):
        mujoco.mj_step(model, data)
    assert asked
    assert data.ncon == 0


def test_scope_may_be_entered_again_but_not_while_open():
    scope = engine.callback_scope(control=_one)
    for _ in range(2):
        with scope, pytest.raises(InvalidArgumentError, match="open already"):
            scope.__enter__()


def test_scope_without_callbacks_is_refused():
    with pytest.raises(InvalidArgumentError, match="at least one"):
        engine.callback_scope()


@pytest.mark.slow
def test_scope_without_the_extra_keeps_the_failure_until_its_end(tmp_path):
    told = run_without_frames(
        """
        import mujoco
        from mjhost import engine
        from mjhost.callbacks import router
        from tests.engine.callbacks.scenes import pair
        model, data = pair()
        def one(model, data): data.ctrl[0] = 1
        with engine.callback_scope(control=one): mujoco.mj_step(model, data)
        print(data.ctrl[0])
        calls = []
        def bad(model, data):
            calls.append(1)
            raise ValueError("boom")
        try:
            with engine.callback_scope(control=bad) as scope:
                mujoco.mj_step(model, data)
                mujoco.mj_step(model, data)
        except engine.EnginePluginError as error: print(len(calls), error.__cause__)
        print(router.installed)
        """,
        tmp_path,
    )
    assert told.splitlines() == ["1.0", "1 boom", "()"]


@pytest.mark.slow
@needs_fast
def test_batch_runs_under_a_scope_and_isolates_what_fails(tmp_path):
    if mujoco.mj_version() < 4_000_000:
        pytest.skip("MuJoCo 3 has no batch")
    told = run(
        """
        import mujoco
        from mujoco import batch
        from mjhost import engine
        from tests.engine.callbacks.scenes import pair
        model, data = pair()
        def one(model, data): data.qfrc_passive[6] += 1
        def bad(model, data):
            if data.qpos[0] > 1: raise ValueError("boom")
        many = batch.Batch(model, nsim=4, nthread=2)
        qpos, qvel = many.bind("qpos"), many.bind("qvel")
        for fast in (False, True):
            with engine.callback_scope(passive=engine.callback("passive", compiled=fast)(one)):
                many.step()
        print((qvel[:, 6] > 0).all())
        qpos[2, 0] = 2
        for fast in (False, True):
            try:
                with engine.callback_scope(passive=engine.callback("passive", compiled=fast)(bad)):
                    many.step()
            except mujoco.batch.SimulationError as error:
                print(error.ids.tolist(), "boom" in str(error))
        """,
        tmp_path,
    )
    assert told.splitlines() == ["True", "[2] True", "[2] True"]
