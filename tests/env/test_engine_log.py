from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import mujoco
import pytest

import mjhost
from mjhost.env import engine_log
from mjhost.env.engine_log import WarningCounters
from mjhost.errors import PhaseError

LOG = "MUJOCO_LOG.TXT"
BALL = "<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>"

# Two functions that make the engine warn: one belongs to mjhost, one to somebody else.
PRELUDE = f"""
import ctypes, pathlib, sys, threading
import mujoco
from mjhost.env import engine_log

model = mujoco.MjModel.from_xml_string({BALL!r})
LOG = pathlib.Path("{LOG}")
WARN = '''
def warn():
    data = mujoco.MjData(model)
    data.qpos[0] = float("nan")
    mujoco.mj_step(model, data)
    assert data.warning[mujoco.mjtWarning.mjWARN_BADQPOS].number == 1
'''
ours = {{"__name__": "mjhost.env.probe", "mujoco": mujoco, "model": model}}
theirs = {{"__name__": "mjhostile", "mujoco": mujoco, "model": model}}
exec(WARN, ours); exec(WARN, theirs)
ours, theirs = ours["warn"], theirs["warn"]

def heard(call):
    'Whether the engine wrote to its file.'
    LOG.unlink(missing_ok=True)
    call()
    return LOG.exists()

def in_thread(call):
    found = []
    thread = threading.Thread(target=lambda: found.append(heard(call)))
    thread.start(); thread.join()
    return found[0]
"""


def run(body: str, where: Path) -> subprocess.CompletedProcess[str]:
    script = PRELUDE + body
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=where,
        env=os.environ | {"PYTHONPATH": str(Path(mjhost.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.slow
def test_our_own_diverging_steps_write_and_print_nothing(tmp_path):
    done = run("engine_log.acquire()\nfor _ in range(20): ours()\n", tmp_path)
    assert (done.stdout, done.stderr) == ("", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_everybody_elses_steps_are_heard_as_before(tmp_path):
    body = """
engine_log.acquire()
assert heard(theirs)
assert in_thread(theirs)
assert not heard(ours)
assert in_thread(ours), "a thread that was not adopted is not ours to silence"
engine_log.release()
assert heard(theirs) and heard(ours)
LOG.unlink()
"""
    done = run(body, tmp_path)
    assert done.stderr.count("WARNING: Nan, Inf or huge value in QPOS") == 5


@pytest.mark.slow
def test_a_warning_hook_of_others_hears_others_and_not_us(tmp_path):
    body = """
engine_log.acquire()
heard_by_hook = []
mujoco.set_mju_user_warning(heard_by_hook.append)
ours(); assert heard_by_hook == []
theirs(); assert len(heard_by_hook) == 1
mujoco.set_mju_user_warning(None)
"""
    assert run(body, tmp_path).stderr == ""


@pytest.mark.slow
def test_a_thread_handler_found_before_hears_others_and_comes_back(tmp_path):
    body = """
from mjhost.layout import library
seen = []
handler = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(seen.append)
address = ctypes.cast(handler, ctypes.c_void_p).value
place = library()._mjPRIVATE_setTlsLogHandler
place(address)
engine_log.acquire()
theirs(); assert len(seen) == 1
ours(); assert len(seen) == 1
engine_log.release()
assert place(None) == address
"""
    assert run(body, tmp_path).stderr == ""


@pytest.mark.slow
def test_the_handler_survives_what_engine_calls_do_to_it(tmp_path):
    body = """
engine_log.acquire()
mujoco.MjSpec.from_string("<mujoco/>").compile()
try:
    mujoco.MjModel.from_xml_string("<mujoco><worldbody><geom type='box'/></worldbody></mujoco>")
except ValueError:
    pass
broken = mujoco.MjModel.from_xml_string("<mujoco/>")
broken.opt.enableflags = int(mujoco.mjtEnableBit.mjENBL_IPC)
try:
    mujoco.mj_step(broken, mujoco.MjData(broken))
except mujoco.FatalError:
    pass
else:
    raise SystemExit("no engine error")
assert not heard(ours)
"""
    assert run(body, tmp_path).stderr == ""


@pytest.mark.slow
def test_the_engine_may_speak_to_many_threads_at_once(tmp_path):
    body = """
engine_log.acquire()
def work():
    engine_log.adopt()
    for _ in range(300):
        ours()
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not LOG.exists()
"""
    assert run(body, tmp_path).stderr == ""


def warn_as(name: str):
    scope = {"__name__": name, "mujoco": mujoco, "model": mujoco.MjModel.from_xml_string(BALL)}
    exec(
        "def warn():\n"
        "    data = mujoco.MjData(model)\n"
        "    data.qpos[0] = float('nan')\n"
        "    mujoco.mj_step(model, data)\n",
        scope,
    )
    return scope["warn"]


def test_captured_hands_over_what_our_calls_made_the_engine_say():
    warn = warn_as("mjhost.probe")
    with engine_log.captured() as messages:
        warn()
    (message,) = messages
    assert message.startswith("Nan, Inf or huge value in QPOS at DOF 0")


def test_captured_leaves_an_unadopted_thread_unadopted():
    def work():
        with engine_log.captured():
            states.append(threading.get_ident() in engine_log.adopted)
        states.append(threading.get_ident() in engine_log.adopted)

    states = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert states == [True, False]


def test_captured_scopes_nest():
    warn = warn_as("mjhost.probe")
    with engine_log.captured() as outer:
        with engine_log.captured() as inner:
            warn()
        warn()
    assert len(inner) == len(outer) == 1


def test_what_steps_say_is_drained_once():
    warn = warn_as("mjhost.probe")
    engine_log.acquire()
    try:
        engine_log.drain()
        warn()
        warn()
        assert len(engine_log.drain()) == 2
        assert engine_log.drain() == ()
    finally:
        engine_log.release()


@pytest.mark.slow
def test_what_nobody_drains_is_bounded():
    warn = warn_as("mjhost.probe")
    engine_log.acquire()
    try:
        for _ in range(300):
            warn()
        assert len(engine_log.drain()) == 256
    finally:
        engine_log.release()


def test_a_thread_that_ended_is_forgotten():
    def work():
        engine_log.adopt()
        idents.append(threading.get_ident())
        assert idents[0] in engine_log.adopted

    idents = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert idents[0] not in engine_log.adopted


def test_releasing_more_often_than_acquired_is_refused():
    users = engine_log._users
    for _ in range(users):
        engine_log.release()
    try:
        with pytest.raises(PhaseError, match="more often"):
            engine_log.release()
    finally:
        for _ in range(users):
            engine_log.acquire()


@pytest.fixture
def pair():
    model = mujoco.MjModel.from_xml_string(BALL)
    return model, mujoco.MjData(model)


def test_counters_say_what_the_data_say(pair):
    _, data = pair
    counters = WarningCounters(data)
    for kind in range(int(mujoco.mjtWarning.mjNWARNING)):
        data.warning[kind].number = kind + 1
        data.warning[kind].lastinfo = 7
    expected = {
        name.removeprefix("mjWARN_"): int(kind) + 1
        for name, kind in mujoco.mjtWarning.__members__.items()
        if name != "mjNWARNING"
    }
    assert counters.counts() == expected
    assert counters.any()
    counters.clear()
    assert [data.warning[kind].number for kind in range(7)] == [0] * 7
    assert (counters.any(), counters.counts(), counters.diverged()) == (False, {}, False)


@pytest.mark.parametrize("kind", ["BADQPOS", "BADQVEL", "BADQACC"])
def test_a_bad_state_counts_as_divergence(pair, kind):
    _, data = pair
    data.warning[getattr(mujoco.mjtWarning, f"mjWARN_{kind}")].number = 1
    assert WarningCounters(data).diverged()


def test_a_bad_control_is_a_warning_and_no_divergence():
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><joint name='j'/><geom size='.1'/></body></worldbody>"
        "<actuator><motor joint='j'/></actuator></mujoco>"
    )
    data = mujoco.MjData(model)
    counters = WarningCounters(data)
    data.ctrl[0] = float("nan")
    step = {"__name__": "mjhost.probe", "mujoco": mujoco, "model": model, "data": data}
    with engine_log.captured():
        exec("mujoco.mj_step(model, data)", step)
    assert counters.counts() == {"BADCTRL": 1}
    assert not counters.diverged()
    assert "CTRL" in counters.texts()["BADCTRL"]


def test_counters_keep_their_data_alive():
    model = mujoco.MjModel.from_xml_string(BALL)
    counters = WarningCounters(mujoco.MjData(model))
    assert counters.counts() == {}
