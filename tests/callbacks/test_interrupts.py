"""Interrupts that arrive on the way into a callback."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import mujoco
import pytest

from mjhost.callbacks import interrupts_surface
from mjhost.callbacks.thunks import thunk_for
from tests.callbacks.scenes import hinge, step

SCRIPT = """
import os, signal, sys, threading
import mujoco
from mjhost.callbacks import Router, interrupts_surface

XML = '''<mujoco><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody></mujoco>'''
trap, fast, wanted = sys.argv[1] == "trap", sys.argv[2] == "frames", int(sys.argv[3])
model = mujoco.MjModel.from_xml_string(XML)
data = mujoco.MjData(model)
route = Router(fast=fast).attach(model, data)
route.set("control", lambda model, data: None)
route.set("passive", lambda model, data: None)
route.set("time", lambda: 0.0)
ready, sent, surfaced = threading.Semaphore(0), 0, 0
lost = []
sys.unraisablehook = lambda unraisable: lost.append(unraisable.exc_value)
before = sys.unraisablehook

def send():
    global sent
    for _ in range(wanted):
        ready.acquire(timeout=60)
        os.kill(os.getpid(), signal.SIGINT)
        sent += 1

def once():
    # As an env does: the trap and the thread's mark around many engine steps.
    if not trap:
        with route.stepping():
            run()
        return
    with interrupts_surface(route), route.stepping():
        run()

def run():
    asked = sent
    ready.release()
    for _ in range(200_000):
        mujoco.mj_step(model, data, 10)
        if route.parked:
            raise route.take()
        if sent > asked and lost:
            lost.clear()
            return

thread = threading.Thread(target=send)
thread.start()
for _ in range(wanted):
    try:
        once()
    except KeyboardInterrupt:
        surfaced += 1
thread.join(60)
assert sys.unraisablehook is before
route.detach()
print(surfaced)
"""


def surfaced(*arguments):
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("make", ["frames", "thunks"])
def test_every_one_of_hundreds_of_interrupts_surfaces(make):
    assert surfaced("trap", make, "300") == 300


@pytest.mark.slow
def test_without_the_trap_interrupts_are_lost():
    """Or else the trap is superfluous and the test above proves nothing."""
    assert surfaced("bare", "thunks", "100") < 100


def test_the_previous_hook_is_put_back(router):
    route, before = router.attach(*hinge()), sys.unraisablehook
    with interrupts_surface(route):
        assert sys.unraisablehook is not before
        with interrupts_surface(route):
            pass
        assert sys.unraisablehook is not before
    assert sys.unraisablehook is before
    with pytest.raises(ValueError, match="inside"), interrupts_surface(route):
        raise ValueError("inside")
    assert sys.unraisablehook is before
    route.detach()


def test_what_no_thunk_raised_goes_to_the_previous_hook(router, monkeypatch):
    route, seen = router.attach(*hinge()), []
    monkeypatch.setattr(sys, "unraisablehook", seen.append)

    class Loud:
        def __del__(self):
            raise ValueError("from a finalizer")

    with interrupts_surface(route):
        Loud().__class__  # noqa: B018
    assert [str(each.exc_value) for each in seen] == ["from a finalizer"]
    assert not route.parked
    seen.clear()
    route.detach()


def test_a_hook_that_came_later_stays(router, monkeypatch):
    route = router.attach(*hinge())
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    later = SimpleNamespace
    with interrupts_surface(route):
        sys.unraisablehook = later
    assert sys.unraisablehook is later
    route.detach()


def test_an_interrupt_in_another_pairs_thunk_is_parked_there(router):
    """Two threads step; the report of one thunk must not stop the other's pair."""
    mine, other = router.attach(*hinge()), router.attach(*hinge())
    error = KeyboardInterrupt()
    thunk = thunk_for(router.ports["control"].kind, {}, router.routes, _raise(error))
    try:
        thunk(0, other.data_address)
    except KeyboardInterrupt as caught:
        report = SimpleNamespace(exc_value=caught, exc_traceback=caught.__traceback__.tb_next)
    with interrupts_surface(mine):
        sys.unraisablehook(report)
    assert not mine.parked
    assert other.take() is error
    mine.detach()
    other.detach()


def _raise(error):
    def stranger(*_):
        raise error

    return stranger


def test_an_interrupt_raised_by_a_hook_surfaces_as_it_is(router):
    route = router.attach(*hinge())
    error = KeyboardInterrupt()

    def hook(model, data):
        raise error

    route.set("control", hook)
    with interrupts_surface(route), pytest.raises(KeyboardInterrupt) as caught:
        step(route)
    assert caught.value is error
    mujoco.mj_forward(route.model, route.data)
    assert route.take() is error
    route.detach()
