"""Streams of an env: stamps, commands, generations, ends."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from mjhost import MujocoEnv
from mjhost.env.events import PluginFailed
from mjhost.errors import (
    EnvClosedError,
    InvalidArgumentError,
    NotAuthorizedError,
    NotLoadedError,
    ReentrancyError,
    StaleGenerationError,
    UnknownNameError,
)
from mjhost.plugins import Plugin
from mjhost.streams.records import GroupCommand, ScalarReading, StopCommand
from tests.env.plugs import DT, EULER, Boom, plugin

LIMIT_S = 20.0


class Source(Plugin):
    """Publishes in every phase, and takes numbers for qvel."""

    stateless = True

    def load(self, model, data):
        self.outlets = {
            phase: self.streams.declare(f"source/{phase}", ScalarReading)
            for phase in ("pre_step", "control", "last_stage", "post_step")
        }
        self.streams.accept("source/go", GroupCommand, self.go)

    def go(self, model, data, command):
        data.qvel[:] = command.values[: model.nv]
        if len(command.values) < model.nv:
            raise InvalidArgumentError(f"needs {model.nv} numbers, got {len(command.values)}")
        if not np.isfinite(data.qvel).all():
            raise Boom("not finite")
        return float(data.time)

    def _tell(self, phase, data):
        self.outlets[phase].publish(ScalarReading(value=data.time))

    def pre_step(self, model, data):
        self._tell("pre_step", data)

    def control(self, model, data):
        self._tell("control", data)

    def last_stage(self, model, data):
        self._tell("last_stage", data)

    def post_step(self, model, data):
        self._tell("post_step", data)


def go(*values):
    return GroupCommand(values=values)


@pytest.fixture
def env():
    with MujocoEnv(EULER, plugins=[Source]) as made:
        yield made


def stamps(samples, stream=None):
    return [s.stamp for s in samples.drain() if stream in (None, s.stream)]


def test_each_hook_stamps_the_moment_it_is_in(env):
    with env.streams.subscribe() as samples:
        env.step(2)
    found = [(s.stream.split("/")[1], round(s.stamp.sim_time / DT), s.stamp.step) for s in samples]
    assert not found  # closed: what was not fetched is gone
    with env.streams.subscribe() as samples:
        env.step(1)
        found = [
            (s.stream.split("/")[1], round(s.stamp.sim_time / DT), s.stamp.step)
            for s in samples.drain()
        ]
    assert found == [
        ("pre_step", 2, 2),
        ("control", 2, 2),
        ("last_stage", 3, 3),
        ("post_step", 3, 3),
    ]


def test_a_hook_with_a_rate_stamps_the_step_that_is_done():
    class Rated(Source):
        rate_hz = 250.0

    with MujocoEnv(EULER, plugins=[Rated]) as env, env.streams.subscribe() as samples:
        env.step(4)
        found = [s.stamp.step for s in samples.drain() if s.stream == "source/post_step"]
    assert found == [2, 4]


def test_stamps_never_go_back_over_resets_reloads_and_undone_steps(env):
    failing = [False]

    def fail(*_):
        if failing[0]:
            raise Boom

    env.reload_plugins([Source, plugin("Late", post_step=fail)])
    with env.streams.subscribe(maxsize=1_000) as samples:
        env.step(3)
        env.reset()
        env.step(3)
        env.reload()
        env.step(3)
        failing[0] = True
        with pytest.raises(Boom):
            env.step()
        failing[0] = False
        env.clear_fault()
        env.step(3)
        times = [stamp.session_time for stamp in stamps(samples)]
    assert times == sorted(times)
    assert times[-1] == pytest.approx(12 * DT)


def test_a_subscription_outlives_reloads_and_tells_the_generations(env):
    with env.streams.subscribe("source/post_step") as samples:
        env.step()
        env.reload()
        env.step()
        env.reload_plugins()
        env.step()
        generations = [stamp.model_generation for stamp in stamps(samples)]
    assert generations == [generations[0], generations[0] + 1, generations[0] + 1]


def test_the_outlets_of_an_old_generation_are_stale(env):
    with env.plugins[0].access() as source:
        outlet = source.outlets["pre_step"]
    env.reload()
    with pytest.raises(StaleGenerationError):
        outlet.publish(ScalarReading(value=1.0))
    assert len(env.streams.streams()) == 5


def test_a_plugin_that_fails_to_load_leaves_no_stream():
    class Failing(Source):
        def load(self, model, data):
            super().load(model, data)
            raise Boom

    with MujocoEnv(EULER, plugins=[Failing]) as env:
        assert env.streams.streams() == ()
        env.reload_plugins([Source])
        assert len(env.streams.streams()) == 5


def test_two_plugins_of_one_stream_name_the_second_fails_and_says_why():
    with MujocoEnv(EULER, plugins=[Source, Source(), plugin("Other")]) as env:
        report = env.plugin_load_report
        assert len(report.ready) == 2
        assert "is taken by plugin" in report.failures[0].error
        env.step()


def test_only_hooks_and_tasks_have_a_present_moment(env):
    with env.plugins[0].access() as source:
        outlet = source.outlets["pre_step"]
    with env.access():  # holds the boundary, as a task does
        stamp = outlet.now()
    with env.streams.subscribe("source/pre_step") as samples:
        with pytest.raises(InvalidArgumentError, match="only hooks and tasks"):
            outlet.publish(ScalarReading(value=1.0))
        outlet.publish(ScalarReading(value=2.0), stamp)
        assert samples.get(timeout=0).stamp == stamp


def test_a_plugin_has_no_streams_before_it_is_loaded():
    class Early(Plugin):
        def __init__(self):
            super().__init__()
            self.streams.declare("early", ScalarReading)

    with MujocoEnv(EULER, plugins=[plugin("Fine")]) as env:
        report = env.reload_plugins([Early])
        assert "streams" in report.failures[0].error


def test_declaring_streams_is_no_state_that_a_checkpoint_would_miss():
    def load(self, model, data):
        self.streams.declare("out", ScalarReading)

    quiet = type("Quiet", (Plugin,), {"load": load, "__module__": __name__})
    with MujocoEnv(EULER, plugins=[quiet]) as env:
        assert env.checkpoint().exact


# -- commands ------------------------------------------------------------------------------------


def test_a_command_is_taken_between_steps_and_answered(env):
    env.step(5)
    assert env.send("source/go", go(1.0, 2.0)) == env.data.time
    assert list(env.data.qvel) == [1.0, 2.0]


def test_a_command_is_taken_while_the_simulation_runs(env):
    env.realtime = None
    env.resume()
    for _ in range(50):
        env.send("source/go", go(0.0, 0.0))
    env.pause()
    assert env.info.step_count > 0


def test_a_refused_command_changes_nothing_and_is_no_failure_of_the_plugin(env):
    before = env.data.qvel.copy()
    with pytest.raises(InvalidArgumentError, match="needs 2 numbers, got 1"):
        env.send("source/go", go(7.0))
    assert (env.data.qvel == before).all()
    assert env.plugin_diagnostics.total == 0


def test_a_handler_that_raises_is_a_failure_of_the_plugin_and_changes_nothing(env):
    before = env.data.qvel.copy()
    with env.events.subscribe() as events:
        with pytest.raises(Boom, match="not finite"):
            env.send("source/go", go(float("nan"), 0.0))
        told = [event for event in events.drain() if isinstance(event, PluginFailed)]
    assert [(event.plugin, event.hook) for event in told] == [("Source", "command")]
    assert (env.data.qvel == before).all()
    assert env.plugin_diagnostics.total == 1
    assert env.fault is None
    env.step()


def test_unknown_inlets_are_refused_with_what_there_is(env):
    with pytest.raises(UnknownNameError, match="'source/gone'; did you mean 'source/go'"):
        env.send("source/gone", go())
    with pytest.raises(InvalidArgumentError, match="takes GroupCommand, got StopCommand"):
        env.send("source/go", StopCommand())


def test_from_a_hook_a_command_cannot_be_sent(env):
    raised = []

    def send(*_):
        try:
            env.send("source/go", go(0.0, 0.0))
        except ReentrancyError as error:
            raised.append(error)

    env.every(1 / DT, send)
    env.step(2)
    assert len(raised) == 2


def test_a_handler_cannot_step_the_env(env):
    hub = env.streams
    hub.accept("mine", StopCommand, lambda *_: env.step())
    with pytest.raises(ReentrancyError):
        env.send("mine", StopCommand())


def test_without_a_model_there_is_nobody_to_send_to():
    with MujocoEnv() as env:
        with pytest.raises(NotLoadedError):
            env.send("a", StopCommand())
        env.streams.declare("a", ScalarReading)
        assert [info.name for info in env.streams.streams()] == ["a"]


def test_sending_needs_the_evaluation_token():
    with MujocoEnv(EULER, eval_token="secret") as env:
        with pytest.raises(NotAuthorizedError):
            env.authorize("send", None)
        env.authorize("send", "secret")


# -- ends ----------------------------------------------------------------------------------------


def test_closing_the_env_ends_who_waits_for_a_sample(env):
    samples, ended = env.streams.subscribe(), []

    def wait():
        try:
            samples.get()
        except EnvClosedError:
            ended.append(True)

    waiting = threading.Thread(target=wait)
    waiting.start()
    env.close()
    waiting.join(LIMIT_S)
    assert ended == [True]
    with pytest.raises(EnvClosedError):
        env.send("source/go", go())


def test_a_listener_that_sleeps_holds_nobody_up(env):
    with env.streams.subscribe(maxsize=8) as samples:
        env.step(500)
        assert samples.lost == 4 * 500 - 8
        assert len(samples.drain()) == 8
