"""The physics thread, unbound, against a loop of ``mj_step`` in the calling thread.

Wall time, from ``resume()`` to the step-limit event: what a thread spends waiting counts. A second
line gives the CPU time of the stepping thread alone, for information: it is steadier on a busy
machine and shows what the loop costs, not what it waits for.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

from _harness import Figure, Plain, Sample, Settings, collector_off, main, paired, rate_ratio

from mjhost import MujocoEnv
from mjhost.env.events import StepLimitReached

BENCHMARK = "bench_physics_thread"
TARGET = {"humanoid": 0.97, "pendulum": 0.85}
LIMIT_S = 120.0


def run(settings: Settings) -> list[Figure]:
    figures = []
    for name, path, steps in settings.subjects():
        figures += compare(name, path, steps * 3, settings.rounds)
    return figures


def compare(name: str, path: Path, steps: int, rounds: int) -> list[Figure]:
    plain = Plain(path)
    with MujocoEnv(path, realtime=None) as env:
        warm(env)
        clock = time.pthread_getcpuclockid(physics_thread().ident)
        pairs = paired(lambda: unbound(env, steps, clock), lambda: plain.loop(steps), rounds)
    measure = "physics thread, unbound / loop of mj_step"
    return [
        rate_ratio(
            pairs, "wall", benchmark=BENCHMARK, measure=measure, model=name, low=TARGET.get(name)
        ),
        rate_ratio(pairs, "cpu", benchmark=BENCHMARK, measure=measure, model=name),
    ]


def warm(env: MujocoEnv) -> None:
    env.resume()
    env.pause()


def physics_thread() -> threading.Thread:
    (thread,) = [t for t in threading.enumerate() if t.name == "mjhost-physics"]
    return thread


def unbound(env: MujocoEnv, steps: int, clock: int) -> Sample:
    env.reset()
    env.stop_at(steps=steps)
    with env.events.subscribe() as events, collector_off():
        cpu, wall = time.clock_gettime(clock), time.perf_counter()
        env.resume()
        while not isinstance(events.get(LIMIT_S), StepLimitReached):
            pass
        wall, cpu = time.perf_counter() - wall, time.clock_gettime(clock) - cpu
    env.pause()
    return Sample(steps, wall, cpu)


if __name__ == "__main__":
    main(run)
