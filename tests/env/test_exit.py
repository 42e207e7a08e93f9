"""How processes end that host a simulation and forget to close it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

HEAD = """
import os, signal, sys, threading, time
import mjhost
XML = '''<mujoco><worldbody><body><joint axis="0 1 0"/><geom size=".05" pos=".3 0 0" mass="1"/>
</body></worldbody></mujoco>'''
"""
LIMIT_S = 20


def run(code, **kwargs):
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", HEAD + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        **kwargs,
    )
    return done, time.monotonic() - started


@pytest.mark.slow
@pytest.mark.parametrize("realtime", ["1.0", "None"])
@pytest.mark.parametrize(
    ("ending", "status", "stderr"),
    [
        ("print('done')", 0, ""),
        ("print('done'); sys.exit(3)", 3, ""),
        ("print('done'); raise ValueError('mine')", 1, "ValueError: mine"),
    ],
)
def test_a_process_that_forgets_to_close_ends_as_it_would_have(realtime, ending, status, stderr):
    done, _ = run(f"env = mjhost.MujocoEnv(XML, realtime={realtime}, running=True)\n{ending}")
    assert done.returncode == status
    assert done.stdout == "done\n"
    assert done.stderr == "" if not stderr else done.stderr.strip().endswith(stderr)


@pytest.mark.slow
def test_an_env_made_in_another_thread_does_not_hold_up_the_exit():
    done, _ = run(
        """
        envs = []
        t = threading.Thread(target=lambda: envs.append(mjhost.MujocoEnv(XML, running=True)))
        t.start(); t.join()
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_in_a_forked_child_the_env_is_closed_and_the_parent_goes_on():
    done, _ = run(
        """
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        env = mjhost.MujocoEnv(XML, realtime=None, running=True)
        pid = os.fork()
        if pid == 0:
            refused = 0
            for ask in (env.step, env.pause, lambda: env.info, env.reset, env.reload):
                try:
                    ask()
                except mjhost.EnvClosedError:
                    refused += 1
            env.close()
            os._exit(refused)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert status == 5, status
        before = env.info.step_count
        env.pause()
        env.step(10)
        print("parent steps", env.info.step_count > before)
        """
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "parent steps True\n")


@pytest.mark.slow
def test_every_interrupt_of_manual_steps_surfaces_and_leaves_a_state_that_goes_on():
    done, _ = run(
        """
        env = mjhost.MujocoEnv(XML)
        surfaced = 0
        me = os.getpid()
        def fire():
            os.kill(me, signal.SIGINT)
        for k in range(150):
            timer = threading.Timer(0.0005 + 0.00001 * k, fire)
            try:
                timer.start()
                while True:
                    env.step() if k % 2 else env.step(200)
            except KeyboardInterrupt:
                surfaced += 1
            timer.join()
        import mujoco
        model = mujoco.MjModel.from_xml_string(XML)
        data = mujoco.MjData(model)
        for _ in range(env.info.step_count):
            mujoco.mj_step(model, data)
        print(surfaced, data.qpos.tobytes() == env.data.qpos.tobytes(), data.time == env.data.time)
        """
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "150 True True\n")


@pytest.mark.slow
def test_interrupt_and_termination_end_a_running_host():
    code = (
        HEAD + "env = mjhost.MujocoEnv(XML, running=True)\nprint('up', flush=True)\ntime.sleep(60)"
    )
    for number, status in ((signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, -signal.SIGTERM)):
        child = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert child.stdout.readline() == "up\n"
        os.kill(child.pid, number)
        child.communicate(timeout=LIMIT_S)
        assert child.returncode == status
