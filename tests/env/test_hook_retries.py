"""A step that was undone and is taken again: what its hooks are told, and that rates stay exact."""

from __future__ import annotations

import mujoco
import pytest

from mjhost import DivergenceError, MujocoEnv
from mjhost.callbacks import call_context
from tests.env.models import EXPLOSIVE
from tests.env.plugs import (
    DT,
    EULER,
    PLUGIN_HOOKS,
    RK4,
    SITES,
    Boom,
    Fuse,
    at_site,
    plugin,
    rated,
)

# -- retry ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("site", SITES)
def test_call_context_says_that_a_step_is_taken_again(site):
    fuse, seen = Fuse(), []

    def watch(_model, _data):
        seen.append(call_context().retry)

    watcher = plugin("Watch", pre_step=watch, control=watch, post_step=watch)
    with at_site(site, fuse) as env:
        env.reload_plugins([watcher, *env_plugins(env)])
        env.step(2)
        assert seen == 6 * [False]
        fuse.armed = True
        with pytest.raises(Boom):
            env.step()
        fuse.armed = False
        seen.clear()
        env.step()
        assert seen == 3 * [True]
        seen.clear()
        env.step(2)
        assert seen == 6 * [False]


def env_plugins(env):
    return env._plugging._factory._source


def test_a_step_is_no_repetition_after_a_reset():
    fuse, seen = Fuse(), []
    made = plugin(pre_step=lambda _m, _d: seen.append(call_context().retry), post_step=fuse)
    with MujocoEnv(EULER, plugins=[made]) as env:
        fuse.armed = True
        with pytest.raises(Boom):
            env.step()
        fuse.armed = False
        env.reset()
        env.step()
    assert seen == [False, False]


def test_a_diverging_step_is_a_repetition_when_it_is_taken_again():
    seen, push = [], [1e25]

    def pre_step(_model, data):
        seen.append(call_context().retry)
        data.qfrc_applied[0] = push[0]

    with MujocoEnv(EXPLOSIVE, plugins=[plugin(pre_step=pre_step)]) as env:
        with pytest.raises(DivergenceError):
            env.step(20)
        env.clear_fault()
        push[0] = 0.0
        seen.clear()
        env.step(2)
    assert seen == [True, False]


@pytest.mark.parametrize("single", [True, False])
def test_call_context_is_exact_in_every_hook_of_a_step(single):
    seen = {}

    def note(name):
        return lambda *_: seen.setdefault(name, []).append(call_context())

    hooks = {hook: note(hook) for hook in PLUGIN_HOOKS}
    rated = {hook: note(f"rated {hook}") for hook in ("pre_step", "post_step")}
    plugins = [plugin("A", **hooks), plugin("R", rate_hz=1 / DT, **rated)]
    with MujocoEnv(RK4, plugins=plugins) as env:
        env.every(1 / DT, note("task"))
        env.step()
        seen.clear()
        if single:
            env.step()
        else:
            env.step(1, timeout=20)
    for name in (
        "pre_step",
        "last_stage",
        "post_step",
        "rated pre_step",
        "rated post_step",
        "task",
    ):
        (context,) = seen[name]
        assert (context.entry, context.hook, context.retry) == ("step", None, False), name
    for name in ("control", "passive"):
        assert [c.substep for c in seen[name]] == [1, 2, 3, 4]
        assert {(c.entry, c.hook, c.substeps, c.repeat) for c in seen[name]} == {
            ("step", name, 4, 0)
        }


def test_a_forward_made_in_a_hook_is_not_counted_as_part_of_the_step():
    seen = []

    def look_ahead(model, data):
        mujoco.mj_forward(model, data)

    def control(_model, _data):
        context = call_context()
        seen.append((context.entry, context.substep, context.repeat))

    with MujocoEnv(EULER, plugins=[plugin(pre_step=look_ahead, control=control)]) as env:
        env.step()
        env.step(2)
    assert seen == 3 * [("unknown", None, 0), ("step", 1, 0)]


# -- rates, after a failure -----------------------------------------------------------------------


@pytest.mark.parametrize("site", ["control", "post_step"])
def test_rates_stay_exact_after_a_step_that_was_undone(site):
    log, fuse = [], Fuse()
    with at_site(site, fuse) as env:
        env.every(100, lambda _m, d: log.append(round(d.time / DT)))
        for _ in range(5):
            env.step(3)
            fuse.armed = True
            with pytest.raises(Boom):
                env.step(3)
            fuse.armed = False
            env.step(4)
        assert log == [5, 10, 15, 20, 25, 30, 35]


def test_a_pre_step_at_a_rate_belongs_to_one_step_however_often_that_is_undone():
    log, fuse = [], Fuse()
    with MujocoEnv(EULER, plugins=[rated(log, 250)]) as env:
        env.every(250, fuse)
        env.step(1)
        for _ in range(3):  # undone by the task, after the call of post_step
            fuse.armed = True
            with pytest.raises(Boom):
                env.step()
            fuse.armed = False
        env.step(2)
    assert log == [("post", 2)] * 4 + [("pre", 2)]


def test_a_pre_step_at_a_rate_is_repeated_with_its_step():
    log, fuse = [], Fuse()
    with MujocoEnv(EULER, plugins=[rated(log, 250), plugin("F", last_stage=fuse)]) as env:
        env.every(500, lambda *_: None)
        env.step(2)
        fuse.armed = True
        with pytest.raises(Boom):
            env.step()
        fuse.armed = False
        env.step()
    assert log == [("post", 2), ("pre", 2), ("pre", 2)]


def test_a_task_that_undoes_the_step_brings_back_the_pre_step_it_began_with():
    log, fuse = [], Fuse()
    with MujocoEnv(EULER, plugins=[rated(log, 250)]) as env:
        env.every(500, fuse)
        env.step(2)
        fuse.armed = True
        with pytest.raises(Boom):
            env.step()
        fuse.armed = False
        env.step()
    assert log == [("post", 2), ("pre", 2), ("pre", 2)]


def test_a_pre_step_at_a_rate_is_repeated_after_a_divergence():
    log, push = [], [1e25]

    def pre_step(_model, data):
        log.append(round(data.time / 0.01))
        data.qfrc_applied[0] = push[0]

    with MujocoEnv(EXPLOSIVE, plugins=[plugin(rate_hz=20, pre_step=pre_step)]) as env:
        with pytest.raises(DivergenceError):
            env.step(20)
        env.clear_fault()
        push[0] = 0.0
        env.step(7)
    assert log == [5, 5, 10]
