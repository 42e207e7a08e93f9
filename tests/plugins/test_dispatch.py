from __future__ import annotations

import mujoco
import pytest

from mjhost.errors import StaleGenerationError
from mjhost.generation import ModelGeneration, PluginGeneration
from mjhost.plugins import STEP_PHASES, Plugin, PluginFactory, PluginHost, active_hook
from tests.plugins.probes import Boom, Everything, Generations, ProbeAdapter, host_of


@pytest.fixture
def log():
    return []


def call_everything(host, model, data, generation):
    scene = mujoco.MjvScene(model, 10)
    host.dispatch_pre_step(model, data, model_generation=generation)
    host.dispatch_control(model, data, model_generation=generation)
    host.dispatch_passive(model, data, model_generation=generation)
    host.dispatch_last_stage(model, data, model_generation=generation)
    host.dispatch_post_step(model, data, model_generation=generation)
    host.dispatch_render(model, data, scene, model_generation=generation)
    host.notify_geometry_changed(model, data, 3, model_generation=generation)
    host.reset(model_generation=generation)
    host.notify_pause(model_generation=generation)
    host.notify_resume(model_generation=generation)


ALL = [
    "pre_step",
    "control",
    "passive",
    "last_stage",
    "post_step",
    "render",
    ("geometry", 3),
    "reset",
    "pause",
    "resume",
]


def test_nothing_loaded_is_silence_for_every_dispatch(model, data):
    host = PluginHost(list)
    call_everything(host, model, data, ModelGeneration(3))
    assert host.statistics() == ()
    assert host.last_failure is None


def test_after_quiesce_every_dispatch_is_silent(model, data, log):
    generations = host_of(model, data, Everything(log))
    generations.host.quiesce_and_destroy()
    call_everything(generations.host, model, data, ModelGeneration(99))
    assert log == []


def test_every_dispatch_reaches_its_hook(model, data, log):
    generations = host_of(model, data, Everything(log))
    call_everything(generations.host, model, data, generations.model_generation)
    assert log == ALL


def test_every_dispatch_reaches_a_hand_made_adapter(model, data, log):
    generations = Generations(lambda: [ProbeAdapter("a", log)], model, data)
    generations.load()
    log.clear()
    call_everything(generations.host, model, data, generations.model_generation)
    assert log == [("a", what) for what in ALL]


@pytest.mark.parametrize("index", range(len(ALL)))
def test_a_stale_dispatch_raises_and_calls_nobody(model, data, log, index):
    generations = host_of(model, data, Everything(log))
    host, stale = generations.host, ModelGeneration(0)
    scene = mujoco.MjvScene(model, 10)
    calls = [
        lambda: host.dispatch_pre_step(model, data, model_generation=stale),
        lambda: host.dispatch_control(model, data, model_generation=stale),
        lambda: host.dispatch_passive(model, data, model_generation=stale),
        lambda: host.dispatch_last_stage(model, data, model_generation=stale),
        lambda: host.dispatch_post_step(model, data, model_generation=stale),
        lambda: host.dispatch_render(model, data, scene, model_generation=stale),
        lambda: host.notify_geometry_changed(model, data, 0, model_generation=stale),
        lambda: host.reset(model_generation=stale),
        lambda: host.notify_pause(model_generation=stale),
        lambda: host.notify_resume(model_generation=stale),
    ]
    with pytest.raises(StaleGenerationError, match="generation 0, but model generation 1"):
        calls[index]()
    assert log == []
    assert host.diagnostics().total == 0


def test_another_kind_of_generation_is_a_type_error_not_a_mismatch(model, data, log):
    generations = host_of(model, data, Everything(log))
    with pytest.raises(TypeError):
        generations.host.dispatch_control(model, data, model_generation=PluginGeneration(1))


def test_adapters_are_called_in_order(model, data, log):
    names = ["c", "a", "b"]
    generations = Generations(lambda: [ProbeAdapter(n, log) for n in names], model, data)
    generations.load()
    log.clear()
    generations.dispatch("control")
    assert log == [(name, "control") for name in names]


def test_an_exception_is_recorded_noted_and_goes_on_and_later_adapters_are_not_called(
    model, data, log
):
    generations = Generations(
        lambda: [ProbeAdapter("a", log, fail={"control"}), ProbeAdapter("b", log)], model, data
    )
    generations.load()
    log.clear()
    with pytest.raises(Boom) as caught:
        generations.dispatch("control")
    assert log == [("a", "control")]
    assert caught.value.__notes__ == ["raised in plugin 'a' (tests:Probe), hook control"]
    (failure,) = generations.host.diagnostics()
    assert (failure.name, failure.phase, failure.error) == ("a", "control", "Boom: control of a")
    assert "Traceback" in failure.traceback
    assert generations.host.last_failure == failure


def test_the_same_exception_object_raised_again_is_counted_again_and_noted_once(model, data):
    error = Boom("always the same")

    class Lazy(Plugin):
        def control(self, model, data):
            raise error

    generations = host_of(model, data, Lazy)
    for _ in range(3):
        with pytest.raises(Boom):
            generations.dispatch("control")
    assert generations.host.diagnostics().of("control").count == 3
    assert len(error.__notes__) == 1


def test_reset_reaches_every_adapter_and_the_first_error_is_raised(model, data, log):
    def factory():
        return [
            ProbeAdapter("a", log, fail={"reset"}),
            ProbeAdapter("b", log, fail={"reset"}),
            ProbeAdapter("c", log),
        ]

    generations = Generations(factory, model, data)
    generations.load()
    log.clear()
    with pytest.raises(Boom, match="reset of a"):
        generations.dispatch("reset")
    assert log == [("a", "reset"), ("b", "reset"), ("c", "reset")]
    assert [f.name for f in generations.host.diagnostics().of("reset").first] == ["a", "b"]


def test_an_interrupt_in_reset_wins_but_every_adapter_gets_its_reset(model, data, log):
    def factory():
        return [
            ProbeAdapter("a", log, fail={"reset"}),
            ProbeAdapter("b", log, fail={"reset"}, error=KeyboardInterrupt),
            ProbeAdapter("c", log),
        ]

    generations = Generations(factory, model, data)
    generations.load()
    log.clear()
    with pytest.raises(KeyboardInterrupt):
        generations.dispatch("reset")
    assert [name for name, _ in log] == ["a", "b", "c"]


@pytest.mark.parametrize("phase", [*STEP_PHASES, "reset"])
def test_an_interrupt_in_a_hook_goes_on_and_is_nobodys_failure(model, data, log, phase):
    armed = [True]

    class Interrupted(Everything):
        pass

    def interrupt(self, *args):
        if armed:
            armed.pop()
            raise KeyboardInterrupt
        self.log.append(phase)

    setattr(Interrupted, phase, interrupt)
    generations = host_of(model, data, Interrupted(log))
    with pytest.raises(KeyboardInterrupt) as caught:
        generations.dispatch(phase)
    host = generations.host
    assert not hasattr(caught.value, "__notes__")
    assert host.diagnostics().total == 0
    assert host.last_failure is None
    assert not host.lock.held_by_me()
    generations.dispatch(phase)
    assert log == [phase]


def test_the_last_failure_is_taken_once(model, data):
    class Fails(Plugin):
        def control(self, model, data):
            raise Boom

    generations = host_of(model, data, Fails)
    with pytest.raises(Boom):
        generations.dispatch("control")
    assert generations.host.take_last_failure().name == "Fails"
    assert generations.host.take_last_failure() is None


# Dispatchers.


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_dispatcher_calls_the_ready_hooks(model, data, log, count):
    generations = host_of(model, data, *[Everything(log) for _ in range(count)])
    host = generations.host
    for phase in STEP_PHASES:
        call = host.dispatcher(phase, generations.model_generation)
        with host.step_scope():
            call(model, data)
    assert log == [phase for phase in STEP_PHASES for _ in range(count)]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_retired_dispatcher_is_silent_then_stale_and_never_reaches_the_old_set(
    model, data, log, count
):
    generations = host_of(model, data, *[Everything(log) for _ in range(count)])
    host = generations.host
    call = host.dispatcher("control", generations.model_generation)
    host.quiesce_and_destroy()
    call(model, data)
    generations.load()
    with pytest.raises(StaleGenerationError):
        call(model, data)
    assert log == []
    assert host.diagnostics().total == 0


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_dispatcher_follows_a_reload_of_plugins_alone(model, data, log, count):
    generations = host_of(model, data, *[Everything(log) for _ in range(count)])
    call = generations.host.dispatcher("control", generations.model_generation)
    generations.load(new_model=False, factory=PluginFactory(Everything(log)))
    call(model, data)
    assert log == ["control"]


def test_a_dispatcher_for_a_stale_generation_is_refused_at_once(model, data, log):
    generations = host_of(model, data, Everything(log))
    with pytest.raises(StaleGenerationError):
        generations.host.dispatcher("control", ModelGeneration(0))


def test_a_dispatcher_asked_for_before_the_first_load_works_after_it(model, data, log):
    generations = Generations(PluginFactory(Everything(log)), model, data)
    call = generations.host.dispatcher("control", ModelGeneration(1))
    call(model, data)
    assert log == []
    generations.load()
    call(model, data)
    assert log == ["control"]


def test_a_dispatcher_reports_failures_like_a_dispatch(model, data, log):
    class Fails(Plugin):
        def passive(self, model, data):
            raise Boom

    generations = host_of(model, data, Fails, Everything(log))
    call = generations.host.dispatcher("passive", generations.model_generation)
    for _ in range(3):
        with pytest.raises(Boom):
            call(model, data)
    assert log == []
    assert generations.host.diagnostics().of("passive").count == 3


def test_phases_nobody_overrides_are_not_active(model, data):
    class OnlyControl(Plugin):
        def control(self, model, data): ...

    generations = host_of(model, data, OnlyControl, Plugin)
    assert generations.host.active_phases() == {"control"}
    generations.host.quiesce_and_destroy()
    assert generations.host.active_phases() == frozenset()


def test_hooks_of_failed_plugins_do_not_make_a_phase_active(model, data):
    class Fails(Plugin):
        def control(self, model, data): ...

        def load(self, model, data):
            raise Boom

    generations = Generations(PluginFactory(Fails), model, data)
    generations.load()
    assert generations.host.active_phases() == frozenset()


def test_a_hook_set_on_the_instance_in_load_counts_as_overridden(model, data):
    calls = []

    class Late(Plugin):
        def load(self, model, data):
            self.control = lambda model, data: calls.append(data)

    generations = host_of(model, data, Late)
    assert generations.host.active_phases() == {"control"}
    generations.dispatch("control")
    assert calls == [data]


# Rates.


def test_rate_hz_turns_pre_and_post_step_into_tasks_and_leaves_the_rest(model, data, log):
    class Slow(Everything):
        rate_hz = 100

    generations = host_of(model, data, Slow(log))
    host = generations.host
    assert not host.active_phases() & {"pre_step", "post_step"}
    tasks = host.rate_tasks()
    assert [(t.site.phase, t.site.name, t.rate_hz) for t in tasks] == [
        ("pre_step", "Slow", 100.0),
        ("post_step", "Slow", 100.0),
    ]
    for phase in STEP_PHASES:
        generations.dispatch(phase)
    assert log == ["control", "passive", "last_stage"]
    for task in tasks:
        task.call(model, data)
    assert log[3:] == ["pre_step", "post_step"]
    (record,) = host.statistics()
    assert record.rate_hz == 100.0
    assert record.hooks["pre_step"].calls == 1


def test_a_rate_task_ends_with_its_generation(model, data, log):
    class Slow(Everything):
        rate_hz = 100

    generations = host_of(model, data, Slow(log))
    host, (task, _) = generations.host, generations.host.rate_tasks()
    host.quiesce_and_destroy()
    task.call(model, data)
    generations.load(new_model=False)
    with pytest.raises(StaleGenerationError, match="rate task of plugin 'Slow'"):
        task.call(model, data)
    assert log == []
    assert host.rate_tasks()[0] is not task


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf"), True, "fast"])
def test_a_rate_that_cannot_be_fails_the_load_and_is_named(model, data, log, rate):
    class Odd(Everything):
        rate_hz = rate

    report = Generations(PluginFactory(Odd(log)), model, data).load()
    assert "rate_hz must be a finite number > 0" in report.failures[0].error


def test_a_rate_without_a_hook_it_applies_to_fails_the_load(model, data):
    class Useless(Plugin):
        rate_hz = 10.0

        def control(self, model, data): ...

    report = Generations(PluginFactory(Useless), model, data).load()
    assert "overrides neither" in report.failures[0].error


# The engine.


def test_inside_the_engine_control_and_passive_run_as_often_as_the_integrator_asks(rk4_model, log):
    data = mujoco.MjData(rk4_model)
    generations = host_of(rk4_model, data, Everything(log))
    host, generation = generations.host, generations.model_generation
    try:
        mujoco.set_mjcb_control(host.dispatcher("control", generation))
        mujoco.set_mjcb_passive(host.dispatcher("passive", generation))
        with host.step_scope():
            mujoco.mj_step(rk4_model, data)
    finally:
        mujoco.set_mjcb_control(None)
        mujoco.set_mjcb_passive(None)
    assert log == ["passive", "control"] * 4


def test_a_forward_during_a_load_reaches_no_hook_though_the_callback_is_installed(model, data, log):
    class Forwards(Everything):
        def load(self, model, data):
            mujoco.mj_forward(model, data)

    generations = Generations(PluginFactory(Forwards(log)), model, data)
    host = generations.host
    mujoco.set_mjcb_control(
        lambda m, d: host.dispatch_control(m, d, model_generation=generations.model_generation)
    )
    try:
        assert generations.load().ok
        assert log == []
        mujoco.mj_forward(model, data)
        assert log == ["control"]
    finally:
        mujoco.set_mjcb_control(None)


def test_a_hook_writes_the_live_data(model, data):
    class Push(Plugin):
        def control(self, model, data):
            data.ctrl[0] = 0.5

    generations = host_of(model, data, Push)
    generations.dispatch("control")
    assert data.ctrl[0] == 0.5


# Who is active.


def test_the_active_hook_is_known_inside_a_hook_and_only_there(model, data):
    seen = []

    class Asks(Plugin):
        def load(self, model, data):
            seen.append(active_hook())

        def control(self, model, data):
            seen.append(active_hook())

        def reset(self):
            seen.append(active_hook())

        def close(self):
            seen.append(active_hook())

    generations = host_of(model, data, Asks)
    try:
        mujoco.set_mjcb_control(
            generations.host.dispatcher("control", generations.model_generation)
        )
        mujoco.mj_forward(model, data)
    finally:
        mujoco.set_mjcb_control(None)
    generations.dispatch("reset")
    generations.host.quiesce_and_destroy()
    assert [(s.name, s.phase) for s in seen] == [
        ("Asks", phase) for phase in ("load", "control", "reset", "close")
    ]
    assert active_hook() is None


def test_the_active_hook_of_a_hand_made_adapter_is_known(model, data):
    seen = []

    class Asks(ProbeAdapter):
        def passive(self, model, data):
            seen.append(str(active_hook()))

    generations = Generations(lambda: [Asks("x")], model, data)
    generations.load()
    generations.dispatch("passive")
    assert seen == ["plugin 'x' (tests:Probe), hook passive"]
