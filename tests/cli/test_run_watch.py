"""``--watch``: what is edited while a simulation runs, and what that must not cost."""

from __future__ import annotations

import io
import itertools
import json
import signal

import mujoco
import numpy as np
import pytest

from mjhost import models
from mjhost.cli.session import Plan, Session
from mjhost.cli.terminal import StatusLine
from mjhost.cli.watching import Watch
from mjhost.engine import registry
from mjhost.engine.sources import bring_in
from mjhost.env import MujocoEnv
from mjhost.generation import ModelGeneration, PluginGeneration
from tests.cli.models import write
from tests.cli.process import LIMIT_S, Background, Terminal

pytestmark = pytest.mark.slow

# Both write the same controls; the second knows how often it was loaded.
SOURCE = """
import math
from mjhost import Plugin

class Push(Plugin):
    generation = 1

    def pre_step(self, model, data):
        data.ctrl[:] = 0.2 * math.sin(3 * data.time)

    def save_state(self):
        return {"generation": self.generation}

    def load_state(self, state):
        self.generation = state["generation"] + 1
"""
BALL = """
<mujoco>
  <worldbody><body name="ball"><freejoint/><geom size=".1" mass="1"/></body></worldbody>
</mujoco>
"""
PART = '<mujocoinclude><default><geom rgba="1 0 0 1"/></default></mujocoinclude>'
NUMBERS = itertools.count()
STATE = mujoco.mjtState.mjSTATE_INTEGRATION


class Editor:
    """Somebody at the keyboard who edits, looks whether it took effect, and presses q."""

    def __init__(self, *acts) -> None:
        self.acts = list(acts)  # each does something and returns how to see that it took effect
        self.took_effect = lambda: True
        self.busy = lambda: False
        self.turns = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def read(self, timeout_s: float) -> str:
        self.turns += 1
        assert self.turns * timeout_s < LIMIT_S, "the edit took no effect"
        signal.sigtimedwait([], timeout_s)
        if self.busy() or not self.took_effect():
            return ""
        if not self.acts:
            return "q"
        self.took_effect = self.acts.pop(0)()
        return ""


def _host(env, path, capsys, *acts, extensions=(), keep_state=True):
    """Runs a watched session to the end of the acts; what was told."""
    watch = Watch(path, extensions=extensions)
    editor = Editor(*acts)
    session = Session(
        env, Plan(keep_state=keep_state), StatusLine(io.StringIO(), live=False), editor, watch
    )
    editor.busy = lambda: session._reloads.busy  # until then its outcome was not told
    session.run()
    return capsys.readouterr().err


def _state(model, data):
    state = np.empty(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, state, STATE)
    return state.tobytes()


def test_edited_plugin_swaps_its_generation_and_no_bit_of_state_is_lost(tmp_path, capsys):
    path, source = models.path("pendulum"), write(tmp_path, SOURCE, "push.py")
    with MujocoEnv(path, plugins=[str(source)]) as env:

        def edit():
            source.write_text(SOURCE + "\n# another line\n")
            return lambda: env.generations.plugins == PluginGeneration(2)

        def break_it():
            source.write_text(SOURCE + "class (")
            steps = env.info.step_count
            return lambda: env.info.step_count > steps + 80  # longer than the watch looks apart

        told = _host(env, path, capsys, edit, break_it)
        steps, ended = env.info.step_count, _state(env.model, env.data)
        assert env.generations.model == ModelGeneration(1)
        assert env.generations.plugins == PluginGeneration(2)
        (handle,) = env.plugins
        with handle.access() as plugin:
            assert plugin.generation == 2
    assert "reloaded plugins (Push), generation 2; state carried for Push" in told
    assert told.count("reload failed, the old plugins go on") == 1
    with MujocoEnv(path, plugins=[str(write(tmp_path, SOURCE, "push.py"))]) as undisturbed:
        undisturbed.step(steps)
        assert _state(undisturbed.model, undisturbed.data) == ended


EXTENSION = """
from mjhost import engine

@engine.plugin("{name}", capabilities=("passive",))
class Count:
    state_size = 1

    def compute(self, model, data, instance, capability):
        data.qfrc_passive[0] -= {stiffness} * data.qpos[0]

    def advance(self, model, data, instance):
        self.state[0] += 1.0
"""
HINGE = """
<mujoco>
  <extension><plugin plugin="{name}"><instance name="i"/></plugin></extension>
  <worldbody><body><joint axis="0 1 0"/><geom size=".1" pos=".3 0 0"/>
    <plugin plugin="{name}" instance="i"/></body></worldbody>
</mujoco>
"""


def test_edited_extension_runs_from_a_step_boundary_on_and_its_state_stays(tmp_path, capsys):
    name = f"test.watched-{next(NUMBERS)}"
    source = write(tmp_path, EXTENSION.format(name=name, stiffness=1.0), f"{name}.py")
    path = write(tmp_path, HINGE.format(name=name))
    (brought,) = bring_in(str(source))
    entry = registry.plugin(name)
    generation = entry.generation
    with MujocoEnv(path) as env:

        def edit():
            source.write_text(EXTENSION.format(name=name, stiffness=7.0))
            return lambda: entry.generation == generation + 1

        def break_it():
            source.write_text(EXTENSION.format(name=name, stiffness="(") + "class (")
            steps = env.info.step_count
            return lambda: env.info.step_count > steps + 500  # longer than the watch looks apart

        told = _host(env, path, capsys, edit, break_it, extensions=[brought])
        assert env.generations.model == ModelGeneration(1)
        assert env.data.plugin_state.tolist() == [env.info.step_count]
        env.forward()
        assert env.data.qfrc_passive[0] == -7.0 * env.data.qpos[0]
    assert f"reloaded the extensions of {name}.py" in told
    assert told.count("reload failed, the old extensions go on") == 1


def test_plugin_that_was_broken_from_the_start_is_loaded_once_it_is_good(tmp_path, capsys):
    path, source = models.path("pendulum"), write(tmp_path, "class Push(", "push.py")
    with MujocoEnv(path, plugins=[str(source)]) as env:

        def repair():
            source.write_text(SOURCE)
            return lambda: env.plugin_statistics[0].state == "ready"

        assert "reloaded plugins (Push)" in _host(env, path, capsys, repair)


def test_model_and_its_includes_are_watched_and_a_broken_edit_changes_nothing(tmp_path, capsys):
    include = '<include file="part.xml"/>'
    path = write(tmp_path, BALL.replace("<worldbody>", f"{include}<worldbody>"))
    part = write(tmp_path, PART, "part.xml")
    with MujocoEnv(path) as env:
        env.apply_runtime_options({"iterations": 7})

        def break_it():
            path.write_text(BALL[:40])
            return lambda: env.info.load_error is not None

        def repair():
            assert env.generations.model == ModelGeneration(1)
            path.write_text(BALL.replace("<worldbody>", f"{include}<worldbody>"))
            return lambda: env.generations.model == ModelGeneration(2)

        def repaint():
            new = write(tmp_path, PART.replace("1 0 0 1", "0 1 0 1"), "part.new")
            new.replace(part)
            return lambda: env.generations.model == ModelGeneration(3)

        told = _host(env, path, capsys, break_it, repair, repaint)
        assert env.model.geom_rgba[0].tolist() == [0, 1, 0, 1]
        assert env.runtime_options.iterations == 7
    assert told.count("reload failed, the old model goes on") == 1
    assert told.count("stepping stood still") == 2


CRATE = '<body name="crate" pos="5 0 0"><freejoint name="crate"/><geom size=".1" mass="1"/></body>'


@pytest.mark.parametrize("keep_state", [True, False])
def test_an_edited_model_goes_on_where_the_old_one_was(tmp_path, capsys, keep_state):
    path = write(tmp_path, BALL)
    with MujocoEnv(path) as env:
        env.set_body_state("ball", pos=(0, 0, 100))

        def edit():
            path.write_text(BALL.replace("<worldbody>", f"<worldbody>{CRATE}"))
            return lambda: env.generations.model == ModelGeneration(2)

        told = _host(env, path, capsys, edit, keep_state=keep_state)
        height = env.body_state("ball").pos[2]
    assert ("new: body crate, joint crate" in told) == keep_state
    assert (height > 50) == keep_state


def test_model_and_plugin_saved_together_are_both_reloaded(tmp_path, capsys):
    path, source = write(tmp_path, BALL), write(tmp_path, SOURCE, "push.py")
    with MujocoEnv(path, plugins=[str(source)]) as env:

        def edit():
            path.write_text(BALL.replace('mass="1"', 'mass="2.5"'))
            source.write_text(SOURCE + "class Other: ...\n")
            return lambda: env.generations.model == ModelGeneration(2)

        _host(env, path, capsys, edit)
        assert env.model.body_mass[1] == 2.5
        assert env.generations.plugins == PluginGeneration(3)


def test_process_reloads_what_is_edited_and_ends_with_its_record(tmp_path):
    source = write(tmp_path, SOURCE, "push.py")
    words = ("run", "pendulum", "--plugins", str(source), "--watch", "--json")
    with Background(*words) as background:
        background.wait_for("hosting")
        source.write_text(SOURCE + "\n")
        background.wait_for("reloaded plugins (Push), generation 2")
        background.process.send_signal(signal.SIGINT)
        status, out, _ = background.finish()
    record = json.loads(out)
    assert (status, record["faults"], record["steps"] > 0) == (0, 0, True)
    assert record["plugins"] == [
        {"name": "Push", "type": f"{source}:Push", "state": "ready", "failures": []}
    ]


def test_fault_of_a_plugin_is_repaired_by_an_edit_and_a_key(tmp_path):
    source = write(tmp_path, SOURCE, "push.py")
    with Terminal("run", "pendulum", "--plugins", str(source), "--watch") as terminal:
        terminal.wait_for("running")
        source.write_text(SOURCE.replace("math.sin", "math.no_such"))
        terminal.wait_for("has no attribute 'no_such'")
        terminal.wait_for("fault")
        source.write_text(SOURCE)
        terminal.wait_for("the fault is still set")
        terminal.press("c ")
        terminal.wait_for("running")
        terminal.press("q")
        status, screen = terminal.finish()
    assert status == 0, screen
    assert "1 fault" in screen
