"""Ctrl-C while hooked steps run on the main thread: it surfaces, and the run stays what it was."""

from __future__ import annotations

import os
import subprocess
import sys

import mujoco
import pytest

from mjhost import MujocoEnv
from mjhost.locking import OrderedLock, held_lower_scopes
from tests.env.plugs import EULER, drive, neutral, plugin, state

SCRIPT = """
import os, signal, sys, threading, time
import mujoco
from mjhost import MujocoEnv
from tests.env.plugs import EULER, RK4, drive, neutral, plugin, state

way, rounds = sys.argv[1], int(sys.argv[2])
xml = RK4 if way == "RK4" else EULER
nothing = lambda *_: None

def host():
    hooks = {name: nothing for name in ("pre_step", "passive", "last_stage", "post_step")}
    env = MujocoEnv(xml, plugins=[plugin("Drive", control=drive), plugin("Probe", **hooks)])
    for kind in ("sensor", "contactfilter", "act_dyn") + (("time",) if way == "clock" else ()):
        env.callbacks.add(kind, neutral(kind, nothing))
    return env

env, surfaced = host(), 0
ask, asked = os.pipe()  # whose write is one call: an interrupt leaves nothing half done

def send():
    for _ in range(rounds):
        os.read(ask, 1)
        os.kill(os.getpid(), signal.SIGINT)

def once():
    os.write(asked, b"x")
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        env.step(20) if way == "step(n)" else env.step()

sender = threading.Thread(target=send)
sender.start()
before = sys.unraisablehook
for _ in range(rounds):
    try:
        once()
    except KeyboardInterrupt:
        surfaced += 1
sender.join()
assert sys.unraisablehook is before, sys.unraisablehook
assert env.plugin_diagnostics.total == 0
calls = env.plugin_statistics[0].hooks["control"].calls
env.step()
assert env.plugin_statistics[0].hooks["control"].calls > calls, "the hooks are silent"
with env.events.subscribe(), env.plugins[0].access():
    pass
env.forward()
steps, found = env.info.step_count, state(env)
with host() as twin:
    twin.step(steps)
    twin.forward()
    assert state(twin) == found, steps
env.close()
print(surfaced)
"""


def surfaced(way, rounds):
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, way, str(rounds)],
        capture_output=True,
        text=True,
        timeout=150,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return int(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["step()", "step(n)", "RK4", "clock"])
def test_every_one_of_hundreds_of_interrupts_surfaces_and_leaves_the_run_as_it_was(way):
    assert surfaced(way, 300) == 300


class InterruptAt:
    """``with`` it, an interrupt comes when the k-th function that ``counts`` is entered."""

    def __init__(self, counts, k=1):
        self.left = k
        self._counts = counts

    def __enter__(self):
        self._before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_):
        sys.settrace(self._before)

    def _trace(self, frame, event, _argument):
        if event == "call" and self._counts(frame.f_code):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


def is_ours(code):
    return f"{os.sep}mjhost{os.sep}" in code.co_filename


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 3])
def test_an_interrupt_at_any_function_on_the_way_leaves_state_locks_and_hooks_in_order(steps):
    hooks = dict.fromkeys(("pre_step", "passive", "last_stage", "post_step"), lambda _m, _d: None)
    plugins = [plugin("Drive", control=drive), plugin("Probe", **hooks)]
    with MujocoEnv(EULER, plugins=plugins) as twin:
        states = [(twin.step(), state(twin))[1] for _ in range(600)]
    with MujocoEnv(EULER, plugins=plugins) as env:
        env.callbacks.add("sensor", neutral("sensor", lambda *_: None))
        env.step(2)
        env.step()
        before, points = sys.unraisablehook, 0
        while True:
            points += 1
            with InterruptAt(is_ours, points) as interrupt:
                try:
                    env.step(steps)
                except KeyboardInterrupt:
                    surfaced = True
                else:
                    surfaced = False
            if interrupt.left > 0:
                break
            assert surfaced, points
            assert sys.unraisablehook is before
            assert held_lower_scopes == {}
            assert (env._core.lock.owner, env._plugging.host.lock.owner) == (None, None)
            assert state(env) == states[env.info.step_count - 1], points
        assert points > 10
        calls = env.plugin_statistics[0].hooks["control"].calls
        env.step()
        assert env.plugin_statistics[0].hooks["control"].calls == calls + 1


def test_an_interrupt_on_the_way_out_of_a_nested_dispatch_leaves_the_host_lock_in_order():
    def look_ahead(model, data):
        mujoco.mj_forward(model, data)

    hooks = {"pre_step": look_ahead, "control": lambda _m, _d: None}
    with MujocoEnv(EULER, plugins=[plugin(**hooks)]) as env:
        env.step()
        leaving = OrderedLock.__exit__.__code__
        with pytest.raises(KeyboardInterrupt), InterruptAt(lambda code: code is leaving):
            env.step()
        env.reload_plugins()
        assert env.step(3).completed == 3
        assert env.info.step_count == 4
