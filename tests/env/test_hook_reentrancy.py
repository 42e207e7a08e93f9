"""Hooks that call the env back: what steps, writes or waits is refused, the rest works."""

from __future__ import annotations

import mujoco
import pytest

from mjhost import LockOrderError, MujocoEnv, ReentrancyError
from mjhost.env.phases import Operation
from tests.env.models import PENDULUM
from tests.env.plugs import (
    CALLBACKS,
    DT,
    EULER,
    RK4,
    SITES,
    at_site,
    neutral,
    own_forward,
    plugin,
    run_until,
    state,
    undisturbed,
)


def set_realtime(env):
    env.realtime = 2.0


def enter(scope):
    with scope:
        pass


OPERATIONS = {
    "step": lambda env: env.step(),
    "step, several": lambda env: env.step(2),
    "step_async": lambda env: env.step_async(),
    "cancel_steps": lambda env: env.cancel_steps(),
    "advance": lambda env: env.advance(1.0),
    "pause": lambda env: env.pause(),
    "resume": lambda env: env.resume(),
    "stop_at": lambda env: env.stop_at(steps=10_000),
    "set_realtime": set_realtime,
    "every": lambda env: env.every(10, lambda _m, _d: None),
    "reset": lambda env: env.reset(),
    "load": lambda env: env.load(PENDULUM),
    "reload": lambda env: env.reload(),
    "reload_plugins": lambda env: env.reload_plugins([]),
    "options_write": lambda env: env.apply_runtime_options({"density": 1.0}),
    "set_pending_options": lambda env: env.set_pending_runtime_options({"density": 1.0}),
    "clear_fault": lambda env: env.clear_fault(),
    "scoped_access": lambda env: enter(env.access()),
    "scoped_access of a plugin": lambda env: enter(env.plugins[0].access()),
    "forward": lambda env: env.forward(),
    "inverse": lambda env: env.inverse(),
    "linearize": lambda env: env.linearize(),
    "rollout": lambda env: env.rollout([[0.0] * env.model.nu]),
    "close": lambda env: env.close(),
}

WAITING_FOR_NOTHING = {
    *("step_async", "cancel_steps", "set_realtime", "set_pending_options"),
    "scoped_access of a plugin",
}

READING = {
    "info": lambda env: env.info.step_count,
    "phase": lambda env: env.phase,
    "fault": lambda env: env.fault,
    "generations": lambda env: env.generations,
    "model": lambda env: env.model.nv,
    "data": lambda env: env.data.time,
    "options": lambda env: env.runtime_options,
    "realtime": lambda env: (env.realtime, env.measured_realtime),
    "plugins": lambda env: [handle.name for handle in env.plugins],
    "plugin records": lambda env: (env.plugin_statistics, env.plugin_diagnostics),
    "events": lambda env: env.events.subscribe().close(),
    "callbacks": lambda env: env.callbacks.kinds,
    "call_soon": lambda env: env.call_soon(lambda: None),
    "request_pause": lambda env: env.request_pause(),
}


class Caller:
    """Asks an env for everything, once, and keeps what came of it."""

    def __init__(self, operations):
        self.operations = operations
        self.env = None
        self.outcomes = {}

    def __call__(self, *_):
        if self.env is not None and not self.outcomes:
            self.outcomes = dict.fromkeys(self.operations)
            for name, operation in self.operations.items():
                self.outcomes[name] = outcome(operation, self.env)


def outcome(operation, env):
    try:
        operation(env)
    except BaseException as error:
        return error
    return None


def label_of(operation):
    name = operation.split(",")[0].removesuffix(" of a plugin")
    return Operation(name).label if name in set(Operation) else name


def unexpected(outcomes, kind, names=""):
    """Outcomes that are no ``kind`` or do not name the operation (and ``names``)."""
    return {
        operation: found
        for operation, found in outcomes.items()
        if not isinstance(found, kind)
        or label_of(operation) not in str(found)
        or names not in str(found)
    }


@pytest.mark.parametrize("way", ["step()", "step(n)", "running"])
@pytest.mark.parametrize("site", SITES)
def test_what_steps_writes_or_waits_is_refused_in_every_hook(site, way):
    caller = Caller(OPERATIONS)
    with at_site(site, caller) as env:
        env.step(2)
        caller.env = env
        if way == "running":
            run_until(env, 10)
        elif way == "step(n)":
            env.step(8)
        else:
            for _ in range(8):
                env.step()
        culprit = "a callback" if site in CALLBACKS else "Probe" if site != "task" else "probe task"
        assert unexpected(caller.outcomes, ReentrancyError, culprit) == {}
        if site != "callback act_gain":
            assert state(env) == undisturbed(10)
        assert env.fault is None
        assert env.plugin_diagnostics.total == 0
        assert env.generations.plugins.value == 1


@pytest.mark.parametrize("site", SITES)
def test_reading_is_possible_in_every_hook(site):
    caller = Caller(READING)
    with at_site(site, caller) as env:
        env.step(2)
        caller.env = env
        env.step(2)
        assert caller.outcomes == dict.fromkeys(READING)


LIFE = ("load", "activate", "close", "reset", "on_pause", "on_resume", "save_state", "load_state")


@pytest.mark.parametrize("hook", LIFE)
def test_what_steps_writes_or_waits_is_refused_in_the_hooks_of_a_plugins_life(hook):
    caller = Caller({k: v for k, v in OPERATIONS.items() if not k.endswith("of a plugin")})
    hooks = {"save_state": dict, "load_state": lambda _state: None, hook: caller}
    if hook == "save_state":
        hooks[hook] = lambda: (caller(), {})[1]
    with MujocoEnv(EULER, realtime=None) as env:
        env.reload_plugins([plugin("Probe", **hooks)])
        caller.env = env
        env.reload_plugins()
        env.reset()
        env.resume()
        env.pause()
        env.reload_plugins([])
        assert unexpected(caller.outcomes, ReentrancyError, "Probe") == {}
        assert env.step(3).completed == 3
        assert env.phase == "operational"


HOOKS_OF_A_FORWARD = (
    "control",
    "passive",
    *(site for site in CALLBACKS if site != "callback time"),  # that has no data to belong to
)


@pytest.mark.parametrize("scoped", [True, False], ids=["in access()", "outside"])
@pytest.mark.parametrize("site", HOOKS_OF_A_FORWARD)
def test_what_steps_writes_or_waits_is_refused_in_a_users_own_forward(site, scoped):
    caller = Caller(OPERATIONS)
    with at_site(site, caller) as env:
        env.step(2)
        before = state(env)
        caller.env = env
        if scoped:
            own_forward(env)
        else:
            mujoco.mj_forward(env.model, env.data)
        assert unexpected(caller.outcomes, ReentrancyError) == {}
        assert env.info.step_count == 2
        assert len(before) == len(state(env))
        assert env.step(3).completed == 3


def test_several_callbacks_of_a_kind_are_refused_alike_in_a_users_own_forward():
    callers = [Caller(OPERATIONS) for _ in range(3)]
    hooked = plugin("Probe", control=callers[0])
    with MujocoEnv(EULER, plugins=[hooked]) as env:
        for caller in callers[1:]:
            env.callbacks.add("control", neutral("control", caller))
        env.step()
        for caller in callers:
            caller.env = env
        mujoco.mj_forward(env.model, env.data)
        for caller in callers:
            assert unexpected(caller.outcomes, ReentrancyError) == {}


@pytest.mark.parametrize("operation", ["forward", "inverse", "linearize", "rollout"])
@pytest.mark.parametrize("site", ["passive", "callback passive"])
def test_what_steps_writes_or_waits_is_refused_in_the_engine_calls_of_the_env(site, operation):
    caller = Caller(OPERATIONS)
    with at_site(site, caller) as env:
        env.step(2)
        caller.env = env
        OPERATIONS[operation](env)
        assert unexpected(caller.outcomes, ReentrancyError) == {}
        assert env.info.step_count == 2
        assert env.step(3).completed == 3


@pytest.mark.parametrize("site", ["control", "task", "callback sensor"])
def test_stepping_another_env_from_a_hook_is_refused_or_done_but_never_hangs(site):
    """A task holds no lower lock and may; whoever is inside dispatch holds the plugin-host lock."""
    found = []

    def step_other(*_):
        found.append(outcome(lambda env: env.step(2), other))

    with MujocoEnv(RK4) as other, at_site(site, step_other) as env:
        env.step()
        env.step()
        assert len(found) >= 2
        if site == "task":
            assert found == [None, None]
            assert other.info.step_count == 4
        else:
            assert {type(each) for each in found} == {LockOrderError}
            assert other.info.step_count == 0
        assert other.step(2).completed == 2


def test_inside_the_access_scope_of_a_plugin_every_operation_is_refused_at_once():
    with MujocoEnv(EULER, plugins=[plugin("Probe", control=lambda _m, _d: None)]) as env:
        env.step()
        (handle,) = env.plugins
        waiting = set(OPERATIONS) - WAITING_FOR_NOTHING
        with handle.access():
            outcomes = {name: outcome(OPERATIONS[name], env) for name in waiting}
        assert {n: e for n, e in outcomes.items() if not isinstance(e, LockOrderError)} == {}
        assert env.step(2).completed == 2


def test_a_refused_call_that_is_not_caught_undoes_the_step_and_names_the_call():
    with MujocoEnv(EULER, plugins=[plugin("Probe", control=lambda _m, _d: env.reset())]) as env:
        with pytest.raises(ReentrancyError, match=r"reset was called from inside a step.*Probe"):
            env.step()
        assert env.info.step_count == 0
        assert env.plugin_diagnostics.of("control").count == 1


def test_callbacks_may_be_added_replaced_and_removed_in_hooks_from_the_next_boundary_on():
    log, tokens = [], []

    def control(_model, data):
        step = round(data.time / DT)
        log.append(("plugin", step))
        if step == 2:
            tokens.append(env.callbacks.add("control", lambda _m, _d: log.append(("old", step))))
        if step == 4:
            tokens[0].replace(lambda _m, _d: log.append(("new", step)))
        if step == 6:
            tokens[0].remove()

    with MujocoEnv(EULER, plugins=[plugin(control=control)]) as env:
        env.step(9)
    assert log == [
        *[("plugin", 0), ("plugin", 1), ("plugin", 2)],
        *[("plugin", 3), ("old", 2), ("plugin", 4), ("old", 2)],
        *[("plugin", 5), ("new", 4), ("plugin", 6), ("new", 4)],
        *[("plugin", 7), ("plugin", 8)],
    ]
