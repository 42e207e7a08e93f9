"""Forks, the end of the process, and a process without the extra ``fast``."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref

import pytest

from mjhost.callbacks import Router, native
from mjhost.callbacks.port import Port
from tests.callbacks.scenes import Counter, hinge, step, symbols

COMMON = """
import os, sys, threading
import mujoco
from mjhost.callbacks import Router, router

XML = '''<mujoco><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody></mujoco>'''
model = mujoco.MjModel.from_xml_string(XML)
data = mujoco.MjData(model)
calls = []
route = router.attach(model, data)
route.set("control", lambda model, data: calls.append(1))
route.set("time", lambda: 0.0)
"""

FORK = """
inside, done = threading.Event(), threading.Event()

def other():
    with route.stepping(), router.lock:  # held by a thread that the child does not have
        inside.set()
        done.wait(60)

thread = threading.Thread(target=other)
thread.start()
inside.wait(60)
child = os.fork()
if child == 0:
    assert not router.hosting and not router.ports["time"].hooks
    mujoco.mj_step(model, data, 3)
    assert len(calls) == 3
    route.detach()
    assert router.installed == ()
    os._exit(7)
_, status = os.waitpid(child, 0)
done.set()
thread.join(60)
mujoco.mj_step(model, data, 2)
assert len(calls) == 2
route.detach()
print(os.waitstatus_to_exitcode(status))
"""

END = """
mujoco.mj_step(model, data, 3)
print(len(calls))
sys.exit(5)
"""

NO_LLVM = """
import sys
sys.modules["llvmlite"] = sys.modules["numba"] = None
"""


def run(script, status=0):
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path))
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.mark.slow
def test_a_forked_child_is_not_held_up_by_threads_that_it_does_not_have():
    assert run(COMMON + FORK) == "7"


@pytest.mark.slow
@pytest.mark.parametrize("prelude", ["", NO_LLVM], ids=["frames", "thunks"])
def test_a_process_may_end_with_everything_installed(prelude):
    assert run(prelude + COMMON + END, status=5) == "3"


@pytest.mark.slow
def test_without_llvmlite_the_router_works_and_says_what_it_lacks():
    script = """
mujoco.mj_step(model, data, 3)
assert not router.ports["control"].jumps
def theirs(model, data): pass
mujoco.set_mjcb_passive(theirs)
try:
    route.set("passive", theirs)
except Exception as error:
    print(type(error).__name__, "mjhost[fast]" in str(error))
"""
    assert run(NO_LLVM + COMMON + script) == "ForeignCallbackError True"


@pytest.mark.slow
def test_importing_the_package_imports_no_optional_dependency():
    script = "import sys, mjhost.callbacks; print({'llvmlite', 'numba'} & set(sys.modules))"
    assert run(script) == "set()"


@pytest.mark.parametrize("available", [True, False])
def test_frames_are_used_if_the_extra_is_there(monkeypatch, available):
    monkeypatch.setattr(native, "available", lambda: available)
    router = Router()
    route = router.attach(*hinge())
    before = symbols()
    counter = Counter()
    route.set("control", counter.hook("control"))
    assert router.ports["control"].jumps is available
    step(route)
    assert counter.calls["control"] == 1
    route.detach()
    assert symbols() == before


def test_preparing_compiles_the_frames_and_installs_nothing():
    router, before = Router(fast=True), symbols()
    router.prepare()
    assert router._frames is not None
    assert symbols() == before


def test_doorways_are_used_again_and_do_not_grow_with_reloads(fast_router, monkeypatch):
    made = []
    lend = Port.lend

    def counted(port):
        doorway = lend(port)
        made.append(doorway.address)
        return doorway

    monkeypatch.setattr(Port, "lend", counted)
    for _ in range(30):
        route = fast_router.attach(*hinge())
        route.set("control", lambda model, data: None)
        route.set("control", lambda model, data: None)
        route.detach()
    assert len(made) == 30
    assert len(set(made)) == 1


def test_a_removed_hook_is_let_go_of_while_its_pair_lives_on(router):
    route = router.attach(*hinge())

    def hook(model, data):
        return None

    route.set("control", hook)
    step(route)
    route.set("control", None)
    gone = weakref.ref(hook)
    del hook
    gc.collect()
    assert gone() is None
    route.detach()
