"""Plugins of an env against plain loops with the same function under ``mujoco.set_mjcb_control``.

The env's side has all that a plugin gets: statistics, roll-back, generations, routing. Only one
side's callback is in the engine at a time: the env lives for its round only; its making, and the
same steps once before, are outside of the timed region. With several threads the wall clock counts,
from when all have started to when all have ended; there both sides fight for the same interpreter
lock. What stays of memory is the least of the last 200 rounds: the threads of compiler and physics
make it swing.
"""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path

import mujoco
from _harness import Figure, Plain, Sample, Settings, collector_off, main, paired, rate_ratio, timed
from bench_callbacks_router import compiled_control
from bench_reload import resident_bytes

from mjhost import MujocoEnv
from mjhost.plugins import Plugin

BENCHMARK = "bench_plugins"
PYTHON = {"humanoid": 0.95, "pendulum": 0.85}
INERT = 0.99
THREADED = 0.95
COMPILED = 1 / 1.05
THREADS = 8
RELOADS, LAST = 1000, 200


def controller(model, data):
    data.ctrl[:] = -0.1 * data.qvel[: model.nu]


class Controller(Plugin):
    """The same function as a plugin."""

    def control(self, model, data):
        data.ctrl[:] = -0.1 * data.qvel[: model.nu]


class Inert(Plugin):
    """Overrides no hook of a step."""

    def reset(self):
        pass


class Passive(Plugin):
    """A second plugin with another hook, for the reloads."""

    def passive(self, model, data):
        pass


class Rated(Plugin):
    """A third one, with a rate."""

    rate_hz = 100

    def post_step(self, model, data):
        pass


def run(settings: Settings) -> list[Figure]:
    figures = []
    for name, path, steps in settings.subjects():
        figures += one_env(name, path, steps, settings.rounds)
        figures.append(several_envs(name, path, steps // 4, settings.rounds))
    return figures + left_behind(settings)


# -- one env -------------------------------------------------------------------------------------


def one_env(name: str, path: Path, steps: int, rounds: int) -> list[Figure]:
    plain = Plain(path)

    def figure(measure: str, ours, theirs, low: float | None) -> Figure:
        pairs = paired(ours, theirs, rounds)
        return rate_ratio(pairs, "cpu", benchmark=BENCHMARK, measure=measure, model=name, low=low)

    def hosted(*plugins, loop=whole, callback=None) -> Callable[[], Sample]:
        def sample() -> Sample:
            with MujocoEnv(path, plugins=plugins, realtime=None) as env:
                if callback is not None:
                    env.callbacks.add("control", callback)
                loop(env, steps)  # the peer's memory was touched in the rounds before, too
                env.reset()
                return timed(lambda: loop(env, steps), steps)

        return sample

    def installed(fn) -> Callable[[], Sample]:
        def sample() -> Sample:
            mujoco.set_mjcb_control(fn)
            try:
                return plain.loop(steps)
            finally:
                mujoco.set_mjcb_control(None)

        return sample

    target = PYTHON.get(name)
    figures = [
        figure(
            "control plugin, step(n) / set_mjcb_control",
            hosted(Controller),
            installed(controller),
            target,
        ),
        figure(
            "control plugin, step() in a loop / set_mjcb_control",
            hosted(Controller, loop=single),
            installed(controller),
            None,
        ),
        figure("plugins without hooks / no plugins", hosted(Inert, Inert), hosted(), INERT),
        figure(
            "plugins without hooks / no plugins, step() in a loop",
            hosted(Inert, Inert, loop=single),
            hosted(loop=single),
            INERT,
        ),
    ]
    compiled = compiled_control()
    if compiled is not None:
        figures.append(
            figure(
                "compiled callback of an env, step(n) / bare pointer",
                hosted(callback=compiled),
                installed(compiled),
                None,
            )
        )
    return figures


def whole(env: MujocoEnv, steps: int) -> None:
    env.step(steps)


def single(env: MujocoEnv, steps: int) -> None:
    step = env.step
    for _ in range(steps):
        step()


# -- several envs in as many threads -------------------------------------------------------------


def several_envs(name: str, path: Path, steps: int, rounds: int) -> Figure:
    plains = [Plain(path) for _ in range(THREADS)]
    table = {plain.data: controller for plain in plains}

    def ours() -> Sample:
        envs = [MujocoEnv(path, plugins=[Controller], realtime=None) for _ in range(THREADS)]
        try:
            for env in envs:
                env.step(steps)
                env.reset()
            return together([lambda env=env: env.step(steps) for env in envs], steps)
        finally:
            for env in envs:
                env.close()

    def theirs() -> Sample:
        for plain in plains:
            mujoco.mj_resetData(plain.model, plain.data)
        mujoco.set_mjcb_control(lambda model, data: table[data](model, data))
        try:
            return together([lambda plain=plain: plain._loop(steps) for plain in plains], steps)
        finally:
            mujoco.set_mjcb_control(None)

    pairs = paired(ours, theirs, rounds)
    return rate_ratio(
        pairs,
        "wall",
        benchmark=BENCHMARK,
        measure=f"{THREADS} envs in {THREADS} threads / {THREADS} loops with one set_mjcb_control",
        model=name,
        low=THREADED,
    )


def together(jobs: list[Callable[[], object]], steps: int) -> Sample:
    """All jobs at once, each in a thread of its own."""
    start = threading.Barrier(len(jobs) + 1)

    def wait_and(job: Callable[[], object]) -> None:
        start.wait()
        job()

    threads = [threading.Thread(target=wait_and, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    with collector_off():
        start.wait()
        wall, cpu = time.perf_counter(), time.process_time()
        for thread in threads:
            thread.join()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Sample(steps * len(jobs), wall, cpu)


# -- what reloads leave behind -------------------------------------------------------------------


def left_behind(settings: Settings) -> list[Figure]:
    path, name = settings.humanoid, settings.humanoid.stem
    warm_up, reloads = (60, 60) if settings.quick else (500, RELOADS)
    with MujocoEnv(path, plugins=[Controller, Passive, Rated], realtime=None, running=True) as env:
        before, _ = reload_both(env, warm_up)
        after, old = reload_both(env, reloads)
        gc.collect()
        alive = sum(reference() is not None for reference in old)
    label = f"{reloads} reloads and {reloads} plugin reloads with 3 plugins: "
    return [
        count(name, label + "growth of the resident set", (after - before) / 1e6, "MB", 5.0),
        count(name, label + "old models, data and plugins alive", alive, "", 0.0),
    ]


def reload_both(env: MujocoEnv, reloads: int) -> tuple[float, list[weakref.ref]]:
    """Resident bytes towards the end, and references to everything that was replaced."""
    sizes, old = [], []
    for _ in range(reloads):
        old += [weakref.ref(env.model), weakref.ref(env.data), *plugins_of(env)]
        env.reload()
        old += plugins_of(env)
        env.reload_plugins()
        sizes.append(resident_bytes())
    return min(sizes[-LAST:]), old


def count(name: str, measure: str, value: float, unit: str, high: float) -> Figure:
    return Figure(BENCHMARK, measure, name, value, value, value, unit, "-", "-", 1, high=high)


def plugins_of(env: MujocoEnv) -> list[weakref.ref]:
    found = []
    for handle in env.plugins:
        with env._plugging.host.acquire_scoped_access(handle.plugin_generation) as access:
            found.append(weakref.ref(access.backend_object(handle.name)))
    return found


if __name__ == "__main__":
    main(run)
