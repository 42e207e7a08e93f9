from __future__ import annotations

import gc
import weakref

import pytest

from mjhost.errors import PluginLoadError, ReentrancyError, StaleGenerationError
from mjhost.generation import ModelGeneration, PluginGeneration
from mjhost.plugins import Plugin, PluginFactory, PluginHost
from tests.plugins.probes import Boom, Generations, ProbeAdapter, host_of


@pytest.fixture
def log():
    return []


def of(log, *names, **failing):
    """A factory of probes; ``failing`` maps a name to what fails there."""
    return lambda: [ProbeAdapter(name, log, fail=failing.get(name, ())) for name in names]


def test_each_pass_goes_through_all_adapters_in_configuration_order(model, data, log):
    Generations(of(log, "a", "b"), model, data).load()
    assert log == [
        ("a", "load"),
        ("b", "load"),
        ("a", "statistics"),
        ("b", "statistics"),
        ("a", "activate"),
        ("b", "activate"),
    ]


def test_old_set_is_closed_in_reverse_before_the_factory_is_asked(model, data, log):
    def factory():
        log.append("factory")
        return [ProbeAdapter("a", log), ProbeAdapter("b", log)]

    generations = Generations(factory, model, data)
    generations.load()
    log.clear()
    generations.load()
    assert log[:3] == [("b", "close"), ("a", "close"), "factory"]


def test_a_load_with_nothing_loaded_before_works(model, data, log):
    report = Generations(of(log, "a"), model, data).load()
    assert report.ok
    assert report.ready == ("a",)
    assert report.load_s > 0.0


@pytest.mark.parametrize("phase", ["load", "activate"])
def test_a_failure_stops_no_other_adapter_and_is_never_ready(model, data, log, phase):
    generations = Generations(of(log, "a", "b", "c", b={phase}), model, data)
    report = generations.load()
    assert report.ready == ("a", "c")
    (failure,) = report.failures
    assert (failure.name, failure.type, failure.phase) == ("b", "tests:Probe", phase)
    assert failure.error == f"Boom: {phase} of b"
    assert "in _did" in failure.traceback
    log.clear()
    generations.dispatch("control")
    assert log == [("a", "control"), ("c", "control")]


def test_an_adapter_whose_load_failed_is_not_activated(model, data, log):
    Generations(of(log, "a", a={"load"}), model, data).load()
    assert ("a", "activate") not in log


def test_failing_statistics_alone_do_not_prevent_activation(model, data, log):
    generations = Generations(of(log, "a", a={"statistics"}), model, data)
    report = generations.load()
    assert [failure.phase for failure in report.failures] == ["statistics"]
    assert report.ready == ("a",)
    generations.dispatch("control")
    assert log[-1] == ("a", "control")


def test_a_failed_adapter_stays_visible_in_statistics(model, data, log):
    generations = Generations(of(log, "a", "b", a={"load", "statistics"}), model, data)
    generations.load()
    a, b = generations.host.statistics()
    assert (a.name, a.type, a.state) == ("a", "tests:Probe", "failed")
    assert a.error == "Boom: load of a"
    assert (b.name, b.state, b.error) == ("b", "ready", "")


def test_a_failed_adapter_is_closed_with_its_generation(model, data, log):
    generations = Generations(of(log, "a", a={"load"}), model, data)
    generations.load()
    generations.host.quiesce_and_destroy()
    assert log[-1] == ("a", "close")


def test_a_factory_that_fails_leaves_an_active_empty_generation(model, data):
    def factory():
        raise Boom("no parts")

    generations = Generations(factory, model, data)
    report = generations.load()
    (failure,) = report.failures
    assert (failure.name, failure.phase, failure.error) == (
        "<factory>",
        "factory",
        "Boom: no parts",
    )
    assert generations.host.generation_active
    assert generations.host.statistics() == ()
    generations.dispatch("control")


def test_a_factory_that_fails_half_way_has_what_it_made_closed(model, data, log):
    def factory():
        yield ProbeAdapter("a", log)
        raise Boom

    report = Generations(factory, model, data).load()
    assert report.ready == ()
    assert [failure.name for failure in report.failures] == ["<factory>"]
    assert log == [("a", "close")]


def test_an_item_that_is_no_adapter_is_one_failure_and_stops_no_other(model, data, log):
    report = Generations(lambda: [42, ProbeAdapter("a", log), None], model, data).load()
    assert [(f.name, f.phase) for f in report.failures] == [
        ("<item 0>", "factory"),
        ("<item 2>", "factory"),
    ]
    assert report.ready == ("a",)


def test_an_adapter_without_a_name_fails_and_is_closed(model, data, log):
    class Nameless(ProbeAdapter):
        @property
        def name(self):
            raise Boom("who am I")

    generations = Generations(lambda: [Nameless("x", log), ProbeAdapter("a", log)], model, data)
    report = generations.load()
    assert report.ready == ("a",)
    assert [f.error for f in report.failures] == ["Boom: who am I"]
    assert [s.name for s in generations.host.statistics()] == ["<item 0>", "a"]
    generations.host.quiesce_and_destroy()
    assert ("x", "load") not in log
    assert log[-1] == ("x", "close")


def test_adapters_are_never_used_twice(model, data, log):
    adapter = ProbeAdapter("a", log)
    generations = Generations(lambda: [adapter], model, data)
    assert generations.load().ok
    report = generations.load()
    assert report.ready == ()
    assert "fresh adapter" in report.failures[0].error


@pytest.mark.parametrize("phase", ["load", "activate", "statistics"])
def test_sys_exit_in_a_plugin_is_a_failure_of_that_plugin(model, data, log, phase):
    bad = lambda: [ProbeAdapter("a", log, fail={phase}, error=SystemExit), ProbeAdapter("b", log)]
    report = Generations(bad, model, data).load()
    assert [(f.name, f.phase) for f in report.failures] == [("a", phase)]
    assert "b" in report.ready


@pytest.mark.parametrize("phase", ["load", "activate", "statistics"])
def test_an_interrupt_during_load_leaves_an_empty_inactive_host(model, data, log, phase):
    broken = [phase]

    def factory():
        fail = {broken.pop()} if broken else ()
        return [ProbeAdapter("a", log), ProbeAdapter("b", log, fail=fail, error=KeyboardInterrupt)]

    generations = Generations(factory, model, data)
    with pytest.raises(KeyboardInterrupt):
        generations.load()
    host = generations.host
    assert not host.generation_active
    assert host.statistics() == ()
    assert log[-2:] == [("b", "close"), ("a", "close")]
    assert not host.lock.held_by_me()
    assert generations.load().ready == ("a", "b")


def test_an_interrupt_during_close_closes_the_others_first(model, data, log):
    factory = lambda: [
        ProbeAdapter("a", log),
        ProbeAdapter("b", log, fail={"close"}, error=KeyboardInterrupt),
    ]
    generations = Generations(factory, model, data)
    generations.load()
    with pytest.raises(KeyboardInterrupt):
        generations.host.quiesce_and_destroy()
    assert log[-2:] == [("b", "close"), ("a", "close")]
    assert not generations.host.generation_active


def test_a_failing_close_is_recorded_and_stops_no_other(model, data, log):
    generations = Generations(of(log, "a", "b", b={"close"}), model, data)
    generations.load()
    generations.host.quiesce_and_destroy()
    assert log[-1] == ("a", "close")
    assert [f.error for f in generations.host.diagnostics().of("close").first] == [
        "Boom: close of b"
    ]


def test_quiesce_twice_closes_once(model, data, log):
    generations = Generations(of(log, "a"), model, data)
    generations.load()
    generations.host.quiesce_and_destroy()
    generations.host.quiesce_and_destroy()
    assert log.count(("a", "close")) == 1


def test_the_generation_is_inactive_until_the_last_adapter_was_activated(model, data):
    seen = []

    class Looker(ProbeAdapter):
        def _did(self, what):
            seen.append((what, host.generation_active))
            if what in {"load", "activate", "close"}:
                host.dispatch_control(None, None, model_generation=ModelGeneration(7))

    host = PluginHost(lambda: [Looker()])
    host.load_generation(model, data, ModelGeneration(7), PluginGeneration(1))
    host.quiesce_and_destroy()
    assert seen == [
        ("load", False),
        ("statistics", False),
        ("activate", False),
        ("close", False),
    ]
    assert not host.generation_active


@pytest.mark.parametrize(("model_value", "plugin_value"), [(5, 9), (4, 10), (5, 8)])
def test_a_generation_that_is_not_newer_is_refused_and_changes_nothing(
    model, data, log, model_value, plugin_value
):
    host = PluginHost(of(log, "a"))
    host.load_generation(model, data, ModelGeneration(5), PluginGeneration(9))
    log.clear()
    with pytest.raises(StaleGenerationError, match="above 9"):
        host.load_generation(
            model, data, ModelGeneration(model_value), PluginGeneration(plugin_value)
        )
    assert log == []
    assert host.plugin_generation == PluginGeneration(9)


def test_generations_of_the_wrong_type_are_a_type_error(model, data, log):
    with pytest.raises(TypeError, match="ModelGeneration"):
        PluginHost(of(log)).load_generation(model, data, PluginGeneration(1), PluginGeneration(1))


@pytest.mark.parametrize("call", ["load", "quiesce_and_destroy"])
@pytest.mark.parametrize("inside", ["control", "load", "close"])
def test_no_load_or_quiesce_from_inside_a_hook_of_the_same_thread(model, data, call, inside):
    caught = []

    class Reenters(ProbeAdapter):
        def _did(self, what):
            if what != inside:
                return
            with pytest.raises(ReentrancyError, match="plugin .probe. .*, hook"):
                (generations.load if call == "load" else generations.host.quiesce_and_destroy)()
            caught.append(what)

    generations = Generations(lambda: [Reenters()], model, data)
    generations.load()
    generations.host.dispatch_control(model, data)
    generations.host.quiesce_and_destroy()
    assert caught == [inside]


def test_a_step_scope_refuses_quiesce_of_its_own_thread(model, data, log):
    generations = Generations(of(log, "a"), model, data)
    generations.load()
    with generations.host.step_scope(), pytest.raises(ReentrancyError):
        generations.host.quiesce_and_destroy()
    assert generations.host.generation_active


def test_a_load_may_bring_another_factory(model, data, log):
    generations = Generations(of(log, "a"), model, data)
    generations.load()
    assert generations.load(factory=of(log, "z")).ready == ("z",)
    assert generations.load().ready == ("z",)


def test_the_factory_is_called_once_per_generation(model, data):
    calls = []
    generations = Generations(lambda: calls.append(1) or [], model, data)
    generations.load()
    generations.load()
    assert len(calls) == 2


class Counter(Plugin):
    count = 0

    def post_step(self, model, data):
        self.count += 1

    def save_state(self):
        return {"count": self.count}

    def load_state(self, state):
        self.count = state["count"]


class Forgets(Plugin):
    def post_step(self, model, data):
        pass


def count_of(generations, name="Counter"):
    with generations.host.acquire_scoped_access() as access:
        return access.backend_object(name).count


def test_state_is_carried_by_name_and_type_where_both_sides_have_it(model, data):
    generations = host_of(model, data, Counter, Forgets)
    for _ in range(3):
        generations.dispatch("post_step")
    report = generations.load(new_model=False, carry_state=True)
    assert report.carried == ("Counter",)
    assert report.not_carried == {}
    assert count_of(generations) == 3


def test_state_is_not_carried_unless_asked(model, data):
    generations = host_of(model, data, Counter)
    generations.dispatch("post_step")
    assert generations.load().carried == ()
    assert count_of(generations) == 0


def test_state_without_a_successor_is_reported(model, data):
    generations = host_of(model, data, Counter)
    report = generations.load(factory=PluginFactory(Forgets), carry_state=True)
    assert "no plugin of this name" in report.not_carried["Counter"]


def test_a_successor_of_the_same_name_and_type_that_takes_no_state_is_reported(model, data):
    first = PluginFactory({"type": Counter, "name": "x"})
    generations = Generations(first, model, data)
    generations.load()

    class Other(ProbeAdapter):
        @property
        def type(self):
            return first.names and f"{__name__}:Counter"

    report = generations.load(factory=lambda: [Other("x")], carry_state=True)
    assert "no save_state" in report.not_carried["x"]


def test_a_failing_save_state_is_reported_and_the_load_goes_on(model, data):
    class Locked(Counter):
        def save_state(self):
            raise Boom("no key")

    generations = host_of(model, data, Locked)
    report = generations.load(carry_state=True)
    assert report.ready == ("Locked",)
    assert report.not_carried == {"Locked": "save_state raised Boom: no key"}


def test_a_failing_load_state_is_a_failure_of_that_plugin(model, data):
    class Picky(Counter):
        def load_state(self, state):
            raise Boom("wrong shape")

    generations = host_of(model, data, Picky, Counter)
    report = generations.load(carry_state=True)
    assert [(f.name, f.phase) for f in report.failures] == [("Picky", "load_state")]
    assert report.carried == ("Counter",)
    assert report.ready == ("Counter",)


def test_a_failed_load_keeps_nothing_of_the_plugin_alive(model, data):
    class Dies(Plugin):
        def load(self, model, data):
            refs.append(weakref.ref(self))
            raise Boom("in load")

    refs = []
    generations = Generations(PluginFactory(Dies), model, data)
    generations.load()
    generations.host.quiesce_and_destroy()
    gc.collect()
    assert [ref() for ref in refs] == [None]
    assert generations.host.load_report.failures[0].error == "Boom: in load"


@pytest.mark.parametrize(
    ("hook", "told"),
    [
        ("def control(self, data): ...", r"control of plugin 'Bad' must accept \(model, data\)"),
        ("async def control(self, model, data): ...", "coroutine"),
        ("def reset(self, model): ...", r"must accept \(\)"),
        ("control = 3", "must be a method, got int"),
    ],
)
def test_a_hook_that_could_only_fail_is_found_at_load(model, data, hook, told):
    space = {"Plugin": Plugin}
    exec(f"class Bad(Plugin):\n    {hook}", space)
    report = Generations(PluginFactory(space["Bad"]), model, data).load()
    with pytest.raises(AssertionError, match=told):
        raise AssertionError(report.failures[0].error)


def test_the_load_error_type_is_public():
    assert issubclass(PluginLoadError, RuntimeError)
