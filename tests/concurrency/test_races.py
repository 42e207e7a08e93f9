"""Many threads on one env: what each gets, and that nobody sees half of anything."""

from __future__ import annotations

import random
import subprocess
import sys
import textwrap
import threading
import time

import mujoco
import pytest

from mjhost import EnvClosedError, LoadingWindowError, MujocoEnv
from mjhost.env.events import OptionsChanged, Reloaded
from mjhost.options import descriptors, read_runtime_options
from tests.concurrency.support import Crew, any_window, together
from tests.env.models import BALL, PENDULUM, plain_loop, state_of

FIELDS = [field.name for field in descriptors()]

# Two models that differ, with options in which every correlated number is the same.
CORRELATED = tuple(
    f"""
    <mujoco>
      <option gravity="1 1 1" wind="1 1 1" density="1" viscosity="0"/>
      <worldbody><body><joint axis="0 1 0"/>{"<geom size='.05' pos='.3 0 0'/>" * extra}</body>
      </worldbody>
    </mujoco>
    """
    for extra in (1, 2)
)


def correlated(number):
    return {"gravity": (number,) * 3, "wind": (number,) * 3, "density": number}


def is_mixed(options):
    return len({*options.gravity, *options.wind, options.density}) != 1


@pytest.mark.slow
def test_a_patch_lands_on_the_model_it_was_formed_for_or_is_refused():
    with MujocoEnv(CORRELATED[0], realtime=None, running=True) as env:
        outcomes = attack(env, patches=10, reloads=12)
        applied = [o for o in outcomes if o[0] == "applied"]
        assert len(applied) >= 8 * 10
        with env.events.subscribe() as events:
            env.apply_runtime_options(correlated(7))
            assert len(events.drain()) == 1
        assert len(applied) + 1 == env.generations.options.value
        assert len({epoch for _, epoch, _, _ in applied}) == len(applied)


def attack(env, patches, reloads):
    """8 threads patch, one reloads, one looks, and the physics thread steps.

    Each of the eight goes on until the reloads are over, and until ``patches`` were accepted.
    """
    outcomes, crew, readers = [], Crew(), Crew()
    stop, reloaded, landed = threading.Event(), threading.Event(), threading.Event()
    records = env.events.subscribe(100_000)

    def patch(seed):
        chance, accepted = random.Random(seed), 0
        while accepted < patches or not reloaded.is_set():
            before = env.generations.model
            try:
                result = env.apply_runtime_options(correlated(chance.randint(1, 9)))
            except LoadingWindowError:
                outcomes.append(("refused", None, before, env.generations.model))
                assert env.info.load_error is None  # waits its turn, and looks again
            else:
                outcomes.append(("applied", result.epoch.value, before, env.generations.model))
                assert not is_mixed(result.snapshot)
                accepted += 1
                landed.set()

    def reload():
        try:
            for k in range(reloads):
                env.reload(CORRELATED[(k + 1) % 2])
                landed.clear()
                assert landed.wait(20)  # and the others are on their way
        finally:
            reloaded.set()

    def look():
        while not stop.is_set():
            try:
                assert not is_mixed(env.runtime_options)
            except LoadingWindowError:
                continue

    readers.start(look)
    crew.start(*(lambda seed=seed: patch(seed) for seed in range(8)), reload)
    try:
        crew.join()
    finally:
        stop.set()
        readers.join()
    env.pause()
    events = records.drain()
    assert records.lost == 0
    records.close()
    check_generations(outcomes, events)
    check_fold(events, env.runtime_options)
    return outcomes


def check_generations(outcomes, events):
    """The generation a patch was applied to is one its author could have known."""
    applied_to = {e.epoch: e.model_generation for e in events if isinstance(e, OptionsChanged)}
    for kind, epoch, before, after in outcomes:
        if kind == "applied":
            assert before.value <= applied_to[epoch] <= after.value
        else:
            assert before <= after
    # Ordered by the stream, a generation never takes a patch after its successor was told.
    generations = [e.model_generation for e in events if isinstance(e, OptionsChanged | Reloaded)]
    assert generations == sorted(generations)


def check_fold(events, live):
    """The live options are the model's own and the accepted patches on top, in order."""
    model = mujoco.MjModel.from_xml_string(CORRELATED[0])
    start = read_runtime_options(model.opt)
    folded = {name: getattr(start, name) for name in FIELDS}
    for event in events:
        if isinstance(event, Reloaded):
            folded = {name: getattr(start, name) for name in FIELDS}
        elif isinstance(event, OptionsChanged):
            for change in event.changes:
                assert folded[change.field] == change.old
                folded[change.field] = change.new
    assert folded == {name: getattr(live, name) for name in FIELDS}


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [4, pytest.param(80, marks=pytest.mark.soak)])
def test_nothing_deadlocks_and_every_env_ends_closed(seeds):
    for seed in range(seeds):
        env = MujocoEnv(PENDULUM, realtime=None)
        threads = set(threading.enumerate())

        def meddle(number, env=env, seed=seed):
            chance = random.Random(1000 * seed + number)
            for _ in range(150):
                try:
                    chance.choice(MEDDLING)(env)
                except EnvClosedError:
                    assert env.phase.name in ("CLOSING", "CLOSED")
                    return
                except RuntimeError as error:  # refused: running, loading, paused, queue full
                    assert type(error).__module__ == "mjhost.errors"
            if number == 0:
                env.close()

        together(*(lambda number=number: meddle(number) for number in range(8)))
        assert env.phase.name == "CLOSED"
        assert [t for t in threading.enumerate() if t not in threads and not t.daemon] == []


def scoped(env):
    with env.access() as (model, data):
        assert data.qpos.size == model.nq


MEDDLING = (
    lambda env: env.step(random.randint(1, 50)),
    lambda env: env.step(),
    lambda env: env.step_async(20),
    lambda env: env.step_async(20).result(30),
    lambda env: env.advance(0.01),
    lambda env: env.pause(),
    lambda env: env.resume(),
    lambda env: env.request_pause(),
    lambda env: env.reset(),
    lambda env: env.reload(BALL),
    lambda env: env.reload(PENDULUM, options="keep"),
    lambda env: env.cancel_steps(),
    lambda env: env.clear_fault(),
    lambda env: env.info,
    lambda env: env.apply_runtime_options({"timestep": 0.001}),
    lambda env: env.every(100, lambda _m, _d: None).remove(),
    lambda env: env.call_soon(lambda: env.info),
    lambda env: env.call_soon(env.reset),
    scoped,
)


@pytest.mark.slow
def test_no_step_is_in_flight_once_pause_has_returned():
    with MujocoEnv(PENDULUM, realtime=None) as env:
        state = {"inside": False, "calls": 0}
        quiet = threading.Event()

        def task(_model, _data):
            state["inside"] = True
            quiet.wait(0.0002)
            state["calls"] += 1
            state["inside"] = False

        token = env.every(500, task)
        for k in range(40):
            env.resume()
            quiet.wait(0.001 * (k % 5))
            env.pause()
            assert not state["inside"]
            calls, time_at_pause = state["calls"], env.data.time
            quiet.wait(0.002)
            assert (state["calls"], env.data.time) == (calls, time_at_pause)
            assert calls == env.info.step_count
        token.remove()


@pytest.mark.slow
def test_looking_from_four_threads_changes_no_bit():
    with MujocoEnv(BALL) as env:
        stop, crew = threading.Event(), Crew()

        def look():
            while not stop.is_set():
                info = env.info
                assert abs(info.sim_time - 0.002 * info.step_count) < 1e-9
                assert env.runtime_options.timestep == 0.002
                scoped(env)

        crew.start(*[look] * 4)
        try:
            for k in range(40):
                env.step(1 + 97 * (k % 3))
        finally:
            stop.set()
            crew.join()
        assert state_of(env.model, env.data) == plain_loop(BALL, env.info.step_count)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["manual", "thread"])
def test_two_envs_in_two_threads_do_not_disturb_each_other(how):
    def simulate(xml, timestep):
        with MujocoEnv(xml, realtime=None, options={"timestep": timestep}) as env:
            for _ in range(20):
                if how == "manual":
                    assert env.step(150).completed == 150
                else:
                    run_to(env, env.info.step_count + 150)
            assert env.model.opt.timestep == timestep
            text = xml.replace('timestep="0.002"', f'timestep="{timestep}"')
            assert state_of(env.model, env.data) == plain_loop(text, 3000)

    together(lambda: simulate(PENDULUM, 0.001), lambda: simulate(BALL, 0.004))


def run_to(env, steps):
    with env.events.subscribe() as events:
        env.stop_at(steps=steps)
        env.resume()
        while type(events.get(30)).__name__ != "StepLimitReached":
            continue


@pytest.mark.slow
def test_who_waits_for_a_running_simulation_waits_about_a_slice():
    with MujocoEnv(PENDULUM, realtime=None, running=True, time_slice_s=0.01) as env:

        def window():
            waits = []
            for k in range(60):
                start = time.perf_counter()
                env.apply_runtime_options({"density": k})
                waits.append(time.perf_counter() - start)
            worst = max(waits)
            return [] if worst < 0.05 else [f"{worst:.3f} s"]

        any_window(window)
        assert env.info.step_count > 0


@pytest.mark.slow
def test_an_access_scope_holds_the_simulation_and_lets_it_go():
    with MujocoEnv(PENDULUM, realtime=None, running=True) as env:
        last = -1.0
        for _ in range(40):
            with env.access() as (model, data):
                entered = data.time
                assert entered > last
                data.ctrl[0] = entered
                mujoco.mj_forward(model, data)
                assert data.time == entered
                assert data.ctrl[0] == entered
                last = entered
            while env.info.sim_time == last:
                continue


@pytest.mark.slow
def test_children_forked_while_another_thread_steps_are_closed_and_end():
    code = """
        import faulthandler, os, threading, warnings
        import mjhost
        warnings.simplefilter("ignore", DeprecationWarning)
        XML = '''<mujoco><worldbody><body><joint axis="0 1 0"/>
        <geom size=".05" pos=".3 0 0" mass="1"/></body></worldbody></mujoco>'''
        env = mjhost.MujocoEnv(XML)
        stop = threading.Event()
        def work():
            while not stop.is_set():
                env.step(7)
                env.step_async(7).result()
                env.apply_runtime_options({"density": 0})
                env.reload()
        thread = threading.Thread(target=work)
        thread.start()
        for k in range(20):
            pid = os.fork()
            if pid == 0:
                faulthandler.dump_traceback_later(20, exit=True)
                refused = 0
                calls = (env.step, env.pause, env.resume, env.reset, env.reload,
                         env.cancel_steps, lambda: env.step_async(1), lambda: env.info,
                         lambda: env.runtime_options, lambda: env.events.subscribe())
                for ask in calls:
                    try:
                        ask()
                    except mjhost.EnvClosedError:
                        refused += 1
                env.close()
                with mjhost.MujocoEnv(XML) as own:
                    own.step(5)
                os._exit(0 if refused == len(calls) else 1)
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            assert status == 0, (k, status)
        stop.set()
        thread.join()
        env.step(3)
        env.close()
        print("done")
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "done\n")
