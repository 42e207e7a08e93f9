"""Any sequence of operations against a plain model of an env and a plain engine loop.

The model is arithmetic: counters, a fold of patches, a grid of due steps. What the engine should
have done is done a second time on a pair of its own, and compared bit for bit.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import mujoco
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mjhost import (
    EnvClosedError,
    FaultError,
    ModelLoadError,
    MujocoEnv,
    NotLoadedError,
    OptionsRejected,
    PhaseError,
    UnknownNameError,
)
from mjhost.env.events import FaultRaised, StepLimitReached
from mjhost.env.records import StepReason
from tests.env.models import BALL, PENDULUM, state_of

KEYFRAMES = {PENDULUM: ("up", "side"), BALL: ()}
BAD_MODELS = ("<mujoco", "<mujoco><worldbody><geom type='sphere'/></worldbody></mujoco>")
INTEGRATORS = {"Euler": 0, "RK4": 1, "implicitfast": 3}

TIMESTEPS = st.sampled_from((0.001, 0.002, 0.004))
PATCHES = st.fixed_dictionaries(
    {},
    optional={
        "timestep": TIMESTEPS,
        "gravity": st.sampled_from(((0.0, 0.0, -9.81), (0.0, 0.0, -1.0), (1.0, 0.0, 0.0))),
        "density": st.sampled_from((0.0, 1.5)),
        "iterations": st.integers(1, 100),
        "integrator": st.sampled_from(sorted(INTEGRATORS)),
    },
)
MISTAKES = st.sampled_from(
    ({"timestep": -1}, {"cone": 7}, {"nonsense": 1}, {"wind": 3}, {"iterations": True})
)
FIELDS = ("timestep", "gravity", "density", "iterations", "integrator")
MODELS = st.sampled_from((PENDULUM, BALL))
COUNTS = st.sampled_from((1, 1, 2, 7, 50, 300))


class Broken(Exception):
    """What a task of the test raises."""


class Twin:
    """The same simulation by hand, and what its options should be."""

    def __init__(self, xml):
        self.xml = xml
        self.model = mujoco.MjModel.from_xml_string(xml)
        self.data = mujoco.MjData(self.model)
        mujoco.mj_forward(self.model, self.data)
        self.own = {
            "timestep": 0.002,
            "gravity": (0.0, 0.0, -9.81),
            "density": 0.0,
            "iterations": 100,
            "integrator": "Euler",
        }
        self.live = dict(self.own)
        self.edited = set()
        self.steps = 0

    def apply(self, patch):
        self.live.update(patch)
        self.edited.update(patch)
        self._write()

    def _write(self):
        for name, value in self.live.items():
            setattr(self.model.opt, name, INTEGRATORS.get(value, value))

    def undo_edits(self):
        changed = self.live != self.own
        self.live = dict(self.own)
        self.edited.clear()
        self._write()
        return changed

    def step(self, n):
        if n:
            mujoco.mj_step(self.model, self.data, n)
        self.steps += n

    def reset(self, keyframe):
        if keyframe is None:
            mujoco.mj_resetData(self.model, self.data)
        else:
            key = self.model.key(keyframe).id
            mujoco.mj_resetDataKeyframe(self.model, self.data, key)
        self.refresh()
        self.steps = 0

    def refresh(self):
        mujoco.mj_forward(self.model, self.data)


class Grid:
    """Which of the steps since the anchor belong to a task."""

    def __init__(self, rate):
        self.rate = rate
        self.calls = 0

    def due(self, first, last, dt):
        """Due steps k with first < k <= last, counted from the anchor."""
        per_call = 1 / (Fraction(str(self.rate)) * Fraction(str(dt)))
        count = int(last / per_call) + 1
        steps = {ceil(n * per_call - Fraction(1, 10**9)) for n in range(1, count + 1)}
        return sorted(k for k in steps if first < k <= last)


class EnvMachine(RuleBasedStateMachine):
    @initialize()
    def start(self):
        self.env = MujocoEnv(realtime=None)
        self.events = self.env.events.subscribe()
        self.twin = None
        self.generation = self.epoch = self.loads = self.total = 0
        self.session = 0.0
        self.shown_session = 0.0
        self.anchor = 0
        self.pending = {}
        self.failed_load = False
        self.fault = False
        self.tasks = []

    def teardown(self):
        if hasattr(self, "env"):
            self.env.close()

    loaded = precondition(lambda self: self.twin is not None)
    steady = precondition(lambda self: self.twin is not None and not self.fault)

    # -- load and reload -------------------------------------------------------------------------

    @rule(xml=MODELS)
    def load(self, xml):
        report = self.env.load(xml)
        self.took_model(xml, {} if self.twin else self.pending)
        assert report.generation.value == self.generation

    @rule(bad=st.sampled_from(BAD_MODELS), again=st.booleans())
    def load_or_reload_what_cannot_be(self, bad, again):
        with pytest.raises(NotLoadedError if again and not self.twin else ModelLoadError):
            (self.env.reload if again else self.env.load)(bad)
        self.failed_load |= bool(self.twin) or not again

    @loaded
    @rule(xml=MODELS | st.none(), keep=st.booleans())
    def reload(self, xml, keep):
        twin = self.twin
        kept = {name: twin.live[name] for name in twin.edited} if keep else {}
        report = self.env.reload(xml, options="keep" if keep else "model")
        assert set(report.kept_options) == set(kept)
        self.took_model(xml or twin.xml, kept)

    def took_model(self, xml, patch):
        self.twin = Twin(xml)
        self.generation += 1
        self.loads += 1
        self.failed_load = self.fault = False
        self.anchor = 0
        if patch:
            self.twin.apply(patch)
            self.epoch += 1

    @rule(patch=PATCHES)
    def set_startup_options(self, patch):
        if self.twin is None:
            self.env.set_pending_runtime_options(patch)
            self.pending = patch
        else:
            with pytest.raises(PhaseError):
                self.env.set_pending_runtime_options(patch)

    # -- reset -----------------------------------------------------------------------------------

    @loaded
    @rule(number=st.integers(-1, 1), model=st.booleans())
    def reset(self, number, model):
        names = KEYFRAMES[self.twin.xml]
        keyframe = names[number] if number >= 0 and names else None
        self.env.reset(keyframe, model=model)
        if model and self.twin.undo_edits():
            self.epoch += 1
        self.twin.reset(keyframe)
        self.anchor = 0
        self.fault = False

    @loaded
    @rule(model=st.booleans())
    def reset_to_what_does_not_exist(self, model):
        with pytest.raises(UnknownNameError):
            self.env.reset("nowhere", model=model)

    # -- time ------------------------------------------------------------------------------------

    @steady
    @rule(n=COUNTS)
    def step(self, n):
        assert self.env.step(n).completed == n
        self.went(n)

    @steady
    @rule(n=COUNTS)
    def step_async(self, n):
        assert self.env.step_async(n).result(30).completed == n
        self.went(n)

    @steady
    @rule(n=COUNTS)
    def advance(self, n):
        assert self.env.advance(n * self.twin.live["timestep"]).completed == n
        self.went(n)

    @steady
    @rule(ahead=COUNTS, n=COUNTS)
    def step_into_a_limit(self, ahead, n):
        self.env.stop_at(steps=self.twin.steps + ahead)
        result = self.env.step(n)
        assert result.completed == min(n, ahead)
        assert result.reason is (StepReason.LIMIT if n >= ahead else StepReason.COMPLETED)
        self.went(result.completed)
        if n < ahead:
            assert self.env.step(ahead).completed == ahead - n
            self.went(ahead - n)

    @steady
    @rule(ahead=COUNTS)
    def run_into_a_limit(self, ahead):
        self.env.stop_at(steps=self.twin.steps + ahead)
        self.run_until(StepLimitReached)
        self.went(ahead)

    @steady
    @rule()
    def run_for_a_moment(self):
        self.env.resume()
        assert not self.env.info.paused
        self.env.pause()
        self.went(self.env.info.step_count - self.twin.steps)

    def went(self, n):
        twin, dt = self.twin, self.twin.live["timestep"]
        for grid, _token in self.tasks:
            start = twin.steps - self.anchor
            grid.calls += len(grid.due(start, start + n, dt))
        twin.step(n)
        self.total += n
        self.session += n * dt

    def run_until(self, kind):
        self.events.drain()
        self.env.resume()
        while not isinstance(self.events.get(30), kind):
            continue

    # -- options ---------------------------------------------------------------------------------

    @loaded
    @rule(patch=PATCHES)
    def apply(self, patch):
        twin = self.twin
        changed = {name for name, value in patch.items() if twin.live[name] != value}
        result = self.env.apply_runtime_options(patch)
        assert set(result.changed) == changed
        if "timestep" in changed:
            self.anchor = twin.steps
        twin.apply(patch)
        self.epoch += bool(patch)

    @loaded
    @rule(patch=PATCHES, mistake=MISTAKES, raises=st.booleans())
    def apply_what_cannot_be(self, patch, mistake, raises):
        if raises:
            with pytest.raises(OptionsRejected):
                self.env.apply_runtime_options(patch | mistake)
        else:
            assert not self.env.apply_runtime_options(patch | mistake, raise_on_error=False).ok

    # -- tasks and faults ------------------------------------------------------------------------

    @precondition(lambda self: len(self.tasks) < 4)
    @rule(rate=st.sampled_from((500, 250, 100, 30, 7.5)))
    def add_task(self, rate):
        self.tasks.append((Grid(rate), self.env.every(rate, lambda _m, _d: None)))

    @precondition(lambda self: self.tasks)
    @rule(data=st.data())
    def remove_task(self, data):
        grid, token = self.tasks.pop(data.draw(st.integers(0, len(self.tasks) - 1)))
        token.remove()
        assert token.calls == grid.calls

    @steady
    @rule(rate=st.sampled_from((100, 30)), running=st.booleans())
    def step_into_a_task_that_raises(self, rate, running):
        def broken(_model, _data):
            raise Broken

        token = self.env.every(rate, broken)
        start = self.twin.steps - self.anchor
        far = start + ceil(2 / (rate * self.twin.live["timestep"]))
        good = Grid(rate).due(start, far, self.twin.live["timestep"])[0] - start - 1
        if running:
            self.run_until(FaultRaised)
            assert self.env.fault.step == self.twin.steps + good + 1
            assert self.env.fault.error_type.endswith("Broken")
            self.fault = True
        else:
            with pytest.raises(Broken) as caught:
                self.env.step(far)
            assert f"completed={good}" in caught.value.__notes__
        token.remove()
        self.went(good)
        self.twin.refresh()

    @precondition(lambda self: self.fault)
    @rule()
    def a_fault_refuses_stepping_until_it_is_cleared(self):
        for ask in (self.env.step, self.env.resume, lambda: self.env.advance(1)):
            with pytest.raises(FaultError):
                ask()
        self.env.clear_fault()
        self.fault = False

    # -- what must hold --------------------------------------------------------------------------

    @rule()
    def close_and_begin_anew(self):
        self.env.close()
        for ask in (self.env.step, self.env.reload, self.env.pause, lambda: self.env.info):
            with pytest.raises(EnvClosedError):
                ask()
        self.env.close()
        self.start()

    @precondition(lambda self: self.twin is None)
    @rule()
    def without_a_model_nothing_steps(self):
        for ask in (self.env.step, self.env.resume, self.env.reset, lambda: self.env.data):
            with pytest.raises(NotLoadedError):
                ask()

    @invariant()
    def counters_are_those_of_the_model(self):
        info, twin = self.env.info, self.twin
        assert info.phase.name == ("OPERATIONAL" if twin else "NO_MODEL")
        assert info.paused
        assert info.pending_steps == 0
        assert (info.load_count, info.total_steps) == (self.loads, self.total)
        assert info.generations.model.value == self.generation
        assert info.generations.options.value == self.epoch
        assert info.step_count == (twin.steps if twin else 0)
        assert (info.fault is not None) == self.fault
        assert (info.load_error is not None) == self.failed_load
        for grid, token in self.tasks:
            assert token.calls == grid.calls

    @invariant()
    def session_time_goes_on_as_simulated(self):
        shown = self.env.info.session_time
        assert shown >= self.shown_session
        assert shown == pytest.approx(self.session, abs=1e-6)
        self.shown_session = shown

    @invariant()
    def options_are_the_fold_of_what_was_accepted(self):
        if self.twin is not None:
            live = self.env.runtime_options
            assert {name: getattr(live, name) for name in FIELDS} == self.twin.live

    @invariant()
    def the_state_is_that_of_a_plain_loop(self):
        if self.twin is not None:
            twin = self.twin
            assert state_of(self.env.model, self.env.data) == state_of(twin.model, twin.data)


@pytest.mark.slow
class TestAnySequence(EnvMachine.TestCase):
    settings = settings(deadline=None, max_examples=25, stateful_step_count=25)


@pytest.mark.slow
@pytest.mark.soak
class TestAnyLongSequence(EnvMachine.TestCase):
    settings = settings(deadline=None, max_examples=400, stateful_step_count=60)
