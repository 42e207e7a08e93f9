from __future__ import annotations

import itertools
import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mjhost.plugins import Plugin, PluginFactory, hooks
from mjhost.plugins.hooks import HookSite, measured
from mjhost.plugins.statistics import EMA_WEIGHT
from tests.plugins.probes import Boom, Everything, Generations, ProbeAdapter, host_of

SITE = HookSite("p", "t", "control")


class Clock:
    """Answers pairs of start and end, the given durations apart."""

    def __init__(self, durations):
        ends = itertools.chain.from_iterable((10.0 * i, 10.0 * i + d) for i, d in durations)
        self._ends = iter(list(ends))

    def __call__(self):
        return next(self._ends)


def timed(monkeypatch, durations):
    """A measured hook whose calls take exactly the durations."""
    monkeypatch.setattr(hooks, "perf_counter", Clock(enumerate(durations)))
    return measured(lambda model, data: None, SITE, lambda *_: None, [])


def test_the_average_starts_from_the_first_sample_with_weight_0_002(monkeypatch):
    bound = timed(monkeypatch, [0.5, 1.5, 0.25])
    bound.call(None, None)
    assert bound.timing().ema == 0.5
    bound.call(None, None)
    assert bound.timing().ema == pytest.approx(0.5 + 0.002 * 1.0)
    bound.call(None, None)
    timing = bound.timing()
    assert (timing.calls, timing.max, timing.last) == (3, 1.5, 0.25)
    assert EMA_WEIGHT == 0.002


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from([0.0, 0.125, 0.5, 2.0]), min_size=1, max_size=30))
def test_any_sequence_gives_the_recursive_average(durations):
    with pytest.MonkeyPatch.context() as monkeypatch:
        bound = timed(monkeypatch, durations)
        for _ in durations:
            bound.call(None, None)
        timing = bound.timing()
    ema = durations[0]
    for value in durations[1:]:
        ema += 0.002 * (value - ema)
    assert timing.ema == pytest.approx(ema)
    assert (timing.calls, timing.max, timing.last) == (
        len(durations),
        max(durations),
        durations[-1],
    )


def test_nothing_is_measured_before_the_first_call(model, data):
    record = host_of(model, data, Everything([])).host.statistics()[0]
    assert set(record.hooks) == {
        "control",
        "passive",
        "last_stage",
        "pre_step",
        "post_step",
        "render",
        "reset",
        "geometry_changed",
        "on_pause",
        "on_resume",
    }
    for timing in record.hooks.values():
        assert timing.calls == 0
        assert all(math.isnan(value) for value in (timing.ema, timing.max, timing.last))
    assert record.load_time >= 0.0
    assert math.isnan(record.reset_time)


def test_reset_time_is_that_of_the_newest_reset(model, data):
    generations = host_of(model, data, Plugin)
    assert math.isnan(generations.host.statistics()[0].reset_time)
    generations = host_of(model, data, Everything([]))
    generations.dispatch("reset")
    record = generations.host.statistics()[0]
    assert record.reset_time >= 0.0
    assert record.hooks["reset"].calls == 1


def test_hooks_that_are_not_overridden_are_not_in_the_record(model, data):
    assert host_of(model, data, Plugin).host.statistics()[0].hooks == {}


class Lazy(Plugin):
    """Works every other time."""

    count = 0

    def control(self, model, data):
        self.count += 1
        if self.count % 2:
            self.skip_timing()

    def passive(self, model, data): ...


def test_skipped_calls_are_counted_but_not_measured(model, data):
    generations = host_of(model, data, Lazy)
    generations.dispatch("control")
    timing = generations.host.statistics()[0].hooks["control"]
    assert (timing.calls, timing.skipped) == (1, 1)
    assert math.isnan(timing.ema)
    for _ in range(3):
        generations.dispatch("control")
    timing = generations.host.statistics()[0].hooks["control"]
    assert (timing.calls, timing.skipped) == (4, 2)
    assert timing.ema >= 0.0


def test_a_skip_is_of_the_running_call_only(model, data):
    generations = host_of(model, data, Lazy)
    generations.dispatch("control")
    generations.dispatch("passive")
    assert generations.host.statistics()[0].hooks["passive"].skipped == 0


def test_a_skip_outside_of_a_dispatch_has_no_effect(model, data):
    class Early(Plugin):
        def load(self, model, data):
            self.skip_timing()

        def control(self, model, data): ...

    generations = host_of(model, data, Early)
    generations.dispatch("control")
    assert generations.host.statistics()[0].hooks["control"].skipped == 0


def test_a_call_that_skips_and_raises_leaves_no_skip_behind(model, data):
    class Both(Plugin):
        def control(self, model, data):
            self.skip_timing()
            raise Boom

        def passive(self, model, data): ...

    generations = host_of(model, data, Both)
    with pytest.raises(Boom):
        generations.dispatch("control")
    generations.dispatch("passive")
    hooks_ = generations.host.statistics()[0].hooks
    assert (hooks_["control"].raised, hooks_["control"].skipped) == (1, 0)
    assert hooks_["passive"].skipped == 0


def test_the_load_time_of_a_failed_load_is_measured(model, data):
    class Fails(Plugin):
        def load(self, model, data):
            raise Boom

    generations = Generations(PluginFactory(Fails), model, data)
    generations.load()
    record = generations.host.statistics()[0]
    assert record.state == "failed"
    assert record.load_time >= 0.0


@pytest.mark.parametrize("answer", [Boom, None])
def test_statistics_never_raise_and_what_failed_is_recorded(model, data, answer):
    class Broken(ProbeAdapter):
        def statistics(self):
            if answer is not None:
                raise answer("no numbers")
            return answer

    generations = Generations(lambda: [Broken("x"), ProbeAdapter("y")], model, data)
    generations.load()
    x, y = generations.host.statistics()
    assert (x.name, x.type, x.state, x.hooks) == ("x", "tests:Probe", "ready", {})
    assert y.state == "ready"
    assert generations.host.diagnostics().of("statistics").count == 1


def test_the_record_goes_to_json(model, data):
    generations = host_of(model, data, Everything([]))
    generations.dispatch("control")
    told = msgspec.json.decode(msgspec.json.encode(generations.host.statistics()))
    assert told[0]["hooks"]["control"]["calls"] == 1
