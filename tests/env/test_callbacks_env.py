"""``env.callbacks``, callbacks of other libraries, and pointers that somebody overwrites."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import mujoco
import pytest

from mjhost import FaultError, FaultKind, MujocoEnv
from mjhost.callbacks import native
from mjhost.callbacks.kinds import KINDS as TABLE
from mjhost.callbacks.symbols import address_of, exported_pointer
from mjhost.errors import CallbackSignatureError, CallbackTakenError, ForeignCallbackError
from tests.env.models import BALL
from tests.env.plugs import EULER, KINDS, RK4, Boom, neutral, plugin, run_into_fault, run_until

SHAPES = {kind: len(TABLE[kind].arguments) for kind in KINDS}
needs_frames = pytest.mark.skipif(
    not native.available(), reason="without the extra fast the router refuses, see the last tests"
)


def symbols():
    return {name: exported_pointer(kind).value for name, kind in TABLE.items()}


@pytest.fixture
def foreign():
    """Installs callbacks as another library would, and takes them out again."""
    installed = []

    def install(kind, fn):
        getattr(mujoco, f"set_mjcb_{kind}")(fn)
        installed.append(kind)

    yield install
    for kind in installed:
        getattr(mujoco, f"set_mjcb_{kind}")(None)


# -- adding, replacing, removing -----------------------------------------------------------------


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_callback_of_each_kind_is_called_in_every_step_until_it_is_removed(kind, single):
    calls = []

    def step(env, n):
        if single:
            for _ in range(n):
                env.step()
        else:
            env.step(n)

    before = symbols()
    with MujocoEnv(EULER) as env:
        token = env.callbacks.add(kind, neutral(kind, lambda *a: calls.append(len(a))))
        step(env, 3)
        assert set(calls) == {SHAPES[kind]}
        assert len(calls) % 3 == 0
        per_step = len(calls) // 3
        token.replace(neutral(kind, lambda *_: calls.append(-1)))
        step(env, 2)
        assert calls.count(-1) == 2 * per_step
        token.remove()
        calls.clear()
        step(env, 2)
        assert calls == []
        assert symbols() == before


def test_callbacks_wait_for_a_model_and_go_on_over_reloads():
    calls = []
    with MujocoEnv() as env:
        env.callbacks.add("control", lambda m, _d: calls.append(m.nv))
        env.load(EULER)
        env.step(2)
        env.reload(BALL)
        env.step(2)
        env.reload(RK4)
        env.step()
        env.reload_plugins([plugin(pre_step=lambda _m, _d: calls.append("pre"))])
        env.step()
    assert calls == [2, 2, 6, 6, 2, 2, 2, 2, "pre", 2, 2, 2, 2]


def test_one_owner_kinds_and_wrong_callbacks_are_refused_when_they_are_added():
    with MujocoEnv(EULER) as env:
        env.callbacks.add("act_gain", lambda _m, _d, _i: 1.0)
        with pytest.raises(CallbackTakenError):
            env.callbacks.add("act_gain", lambda _m, _d, _i: 2.0)
        with pytest.raises(CallbackSignatureError, match="model, data, stage"):
            env.callbacks.add("sensor", lambda _m, _d: None)
        assert env.step(2).completed == 2


def test_a_wrong_result_undoes_the_step_and_names_the_callback():
    def gain(_model, _data, _index):
        return "much"

    with MujocoEnv(EULER) as env:
        env.callbacks.add("act_gain", gain)
        with pytest.raises(TypeError, match=r"act_gain.*gain.*number"):
            env.step()
        assert env.info.step_count == 0


# -- several envs --------------------------------------------------------------------------------


def test_closing_an_env_leaves_the_hooks_of_the_others():
    calls = {"a": 0, "b": 0}

    def counting(name):
        def control(_model, _data):
            calls[name] += 1

        return plugin(name, control=control)

    before = symbols()
    a = MujocoEnv(EULER, plugins=[counting("a")])
    with MujocoEnv(EULER, plugins=[counting("b")]) as b:
        a.step(2)
        b.step(3)
        a.close()
        b.step()
        b.step(2)
        assert calls == {"a": 2, "b": 6}
    assert symbols() == before


def test_data_that_no_env_owns_see_no_hook():
    calls = []
    model = mujoco.MjModel.from_xml_string(EULER)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 10)
    expected = data.qpos.tolist()
    hooks = {"control": lambda _m, d: calls.append(d), "passive": lambda _m, d: calls.append(d)}
    with MujocoEnv(model, plugins=[plugin(**hooks)]) as env:
        own = mujoco.MjData(model)
        mujoco.mj_step(model, own, 10)
        assert own.qpos.tolist() == expected
        assert calls == []
        again = mujoco.MjModel.from_xml_string(EULER)  # the compiler steps data of its own
        assert (again.nq, calls) == (model.nq, [])
        copied = mujoco.MjData(env.model)
        mujoco.mj_copyData(copied, env.model, env.data)
        mujoco.mj_step(env.model, copied)
        assert calls == []
        env.step()
        assert {id(d) for d in calls} == {id(env.data)}


# -- callbacks that were there before ------------------------------------------------------------


@needs_frames
@pytest.mark.parametrize("kind", KINDS)
def test_a_python_callback_that_was_there_is_kept_and_put_back(kind, foreign):
    theirs, ours = [], []
    model = mujoco.MjModel.from_xml_string(EULER)
    own = mujoco.MjData(model)
    foreign(kind, neutral(kind, lambda *_: theirs.append(1)))
    before = symbols(), getattr(mujoco, f"get_mjcb_{kind}")()
    with MujocoEnv(model) as env:
        env.callbacks.add(kind, neutral(kind, lambda *_: ours.append(1)))
        env.step(2)
        assert ours
        theirs.clear()
        mujoco.mj_step(model, own)
        assert theirs, "unowned data have lost their callback"
        ours.clear()
        theirs.clear()
        env.step()
        # After the env's own, but for kinds with one answer.
        assert bool(theirs) == (not TABLE[kind].sole)
        assert ours
    assert (symbols(), getattr(mujoco, f"get_mjcb_{kind}")()) == before
    theirs.clear()
    mujoco.mj_step(model, own)
    assert theirs


@needs_frames
def test_what_a_foreign_callback_raises_for_an_env_is_treated_like_a_hook(foreign):
    armed = []

    def theirs(_model, _data):
        if armed:
            raise Boom("foreign")

    model = mujoco.MjModel.from_xml_string(EULER)
    foreign("control", theirs)
    with MujocoEnv(model, plugins=[plugin(control=lambda _m, _d: None)]) as env:
        env.step(3)
        armed.append(1)
        with pytest.raises(Boom, match="foreign"):
            env.step(2)
        assert env.info.step_count == 3
        assert env.plugin_diagnostics.total == 0
        armed.clear()
        env.step(2)


@needs_frames
def test_models_are_loaded_and_reloaded_while_a_foreign_callback_is_there(foreign):
    foreign("passive", lambda _m, _d: None)
    with MujocoEnv(EULER, plugins=[plugin(passive=lambda _m, _d: None)]) as env:
        env.step()
        env.reload(RK4)
        env.step()
        env.reload(EULER)
        assert env.info.load_count == 3
        assert env.info.total_steps == 2


def test_a_c_callback_that_was_there_is_kept_and_put_back():
    calls = []
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_size_t, ctypes.c_size_t)
    pointer = prototype(lambda _m, _d: calls.append(1))
    cell = exported_pointer(TABLE["control"])
    cell.value = address_of(pointer)
    try:
        model = mujoco.MjModel.from_xml_string(EULER)
        own = mujoco.MjData(model)
        with MujocoEnv(model, plugins=[plugin(control=lambda _m, _d: calls.append(2))]) as env:
            calls.clear()
            env.step(2)
            assert calls == [2, 1, 2, 1]
            calls.clear()
            mujoco.mj_step(model, own)
            assert calls == [1]
        assert cell.value == address_of(pointer)
    finally:
        cell.value = None


# -- pointers that somebody overwrites -----------------------------------------------------------


def our_hook(kind):
    """What an env hooks for ``kind``, as callbacks and, where there is one, as a plugin."""
    return neutral(kind, lambda *_: None)


@needs_frames
@pytest.mark.parametrize("also", [None, "control", "passive"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["step()", "step(n)", "running"])
def test_an_overwritten_pointer_is_noticed_named_and_taken_back(kind, also, way, foreign):
    calls = []

    def interloper(*_):
        return 0.0 if TABLE[kind].result.name == "NUMBER" else 0

    shape = {0: lambda: interloper(), 2: lambda m, d: None, 3: lambda m, d, i: interloper()}
    with MujocoEnv(EULER, realtime=None) as env:
        env.callbacks.add(kind, neutral(kind, lambda *_: calls.append(1)))
        if also not in {None, kind}:
            env.callbacks.add(also, our_hook(also))
        env.step(3)
        taker = shape.get(SHAPES[kind], lambda m, d, one, two: 0)
        foreign(kind, taker)
        if way == "running":
            fault = run_into_fault(env)
            assert fault.kind is FaultKind.CALLBACK
            assert f"mjcb_{kind}" in fault.message
            with pytest.raises(FaultError):
                env.step()
        else:
            with pytest.raises(ForeignCallbackError, match=rf"mjcb_{kind} was taken.*clear_fault"):
                env.step() if way == "step()" else env.step(5)
        assert env.info.step_count == 3
        env.clear_fault()
        calls.clear()
        if way == "running":
            run_until(env, 5)
        else:
            env.step(2)
        assert calls
        assert env.info.step_count == 5
        foreign(kind, None)  # while ours is in front of it: that is another taking
        with pytest.raises(ForeignCallbackError, match="null|clock"):
            env.step()
        env.reset()
        env.step()


@needs_frames
def test_a_taken_pointer_of_a_kind_that_an_env_does_not_hook_is_not_its_affair(foreign):
    control, passive = plugin(control=lambda _m, _d: None), plugin(passive=lambda _m, _d: None)
    with MujocoEnv(EULER, plugins=[control]) as a, MujocoEnv(EULER, plugins=[passive]) as b:
        a.step()
        b.step()
        foreign("passive", lambda _m, _d: None)
        a.step(2)
        with pytest.raises(ForeignCallbackError):
            b.step()
        b.clear_fault()
        b.step(2)
        a.step(2)


def test_the_engines_own_reset_of_callbacks_is_noticed():
    with MujocoEnv(EULER, plugins=[plugin(control=lambda _m, _d: None)]) as env:
        clock = exported_pointer(TABLE["time"])
        value = clock.value
        mujoco.mj_resetCallbacks()
        clock.value = value  # it takes the built-in clock away, too
        with pytest.raises(ForeignCallbackError, match="null"):
            env.step()
        env.clear_fault()
        env.step(2)


# -- without the extra ---------------------------------------------------------------------------

WITHOUT_FRAMES = """
import sys
sys.modules["llvmlite"] = sys.modules["numba"] = None
import importlib.util
genuine = importlib.util.find_spec
importlib.util.find_spec = lambda name, *a: None if name == "llvmlite" else genuine(name, *a)
import mujoco
from mjhost import MujocoEnv
from mjhost.errors import ForeignCallbackError
from tests.env.plugs import EULER, plugin, state, drive, undisturbed

hooked = plugin("Hooked", control=drive)
model = mujoco.MjModel.from_xml_string(EULER)
def theirs(model, data):
    pass
"""


def run(script):
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path))
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", WITHOUT_FRAMES + script],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.slow
def test_without_frames_a_foreign_python_function_is_refused_with_the_ways_out():
    script = """
mujoco.set_mjcb_control(theirs)
for make in (
    lambda: MujocoEnv(model, plugins=[hooked]),
    lambda: MujocoEnv(model).callbacks.add("control", theirs),
):
    try:
        make()
    except ForeignCallbackError as error:
        told = str(error)
        print("theirs" in told, "set_mjcb_control(None)" in told, "env.callbacks.add" in told,
              "mjhost[fast]" in told)
print(mujoco.get_mjcb_control() is theirs)
mujoco.set_mjcb_control(None)
with MujocoEnv(model, plugins=[hooked]) as env:
    env.step(20)
    print(state(env) == undisturbed(20))
"""
    assert run(script) == ["True"] * 10


@pytest.mark.slow
def test_without_frames_plugins_that_meet_a_foreign_function_change_nothing():
    script = """
log = []
quiet = plugin("Quiet", pre_step=lambda m, d: log.append(1))
with MujocoEnv(model, plugins=[quiet]) as env:
    env.step(3)
    mujoco.set_mjcb_control(theirs)
    before = state(env)
    try:
        env.reload_plugins([hooked])
    except ForeignCallbackError:
        print("refused")
    print(state(env) == before)
    log.clear()
    print(env.step(2).completed, len(log), [p.name for p in env.plugins])
    mujoco.set_mjcb_control(None)
    env.reload_plugins([hooked])
    env.step(2)
    print(env.plugin_statistics[0].hooks["control"].calls)
"""
    assert run(script) == ["refused", "True", "2", "2", "['Quiet']", "2"]


@pytest.mark.slow
def test_without_frames_a_reload_that_meets_a_foreign_function_keeps_the_old_model():
    script = """
with MujocoEnv(model, plugins=[plugin("Quiet", pre_step=lambda m, d: None)]) as env:
    env.step(3)
    mujoco.set_mjcb_control(theirs)
    env.reload()  # no hook of ours needs control
    print(env.info.load_count)
    mujoco.set_mjcb_control(None)
    env.reload_plugins([hooked])
    env.step(20)
    expected = undisturbed(20)
    mujoco.set_mjcb_control(theirs)  # over our pointer
    try:
        env.step()
    except ForeignCallbackError:
        print("noticed", env.info.step_count, state(env) == expected)
    try:
        env.clear_fault()
    except ForeignCallbackError:
        print("kept")
    mujoco.set_mjcb_control(None)
    env.clear_fault()
    print(env.step(2).completed, env.plugin_statistics[0].hooks["control"].calls)
"""
    assert run(script) == ["2", "noticed", "20", "True", "kept", "2", "22"]
