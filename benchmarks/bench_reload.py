"""Reload: how long stepping is held up, and what a thousand of them leave behind.

The time under the lock and the time outside it are those of the reload's own report, taken while
physics runs unbound. The thousand reloads come after five hundred for warm-up, once while running
and once while paused. Growth is that of the resident set, from the least of the last two hundred
reloads of the warm-up to that of the last two hundred of all: the threads of engine and compiler
make it swing by tens of megabytes. Models and data alive are counted at the end as they are: old
ones that wait for the cyclic collector are memory too. Threads are those of the process.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from pathlib import Path

from _harness import Figure, Settings, main, quartiles

from mjhost import MujocoEnv

BENCHMARK = "bench_reload"
WARM_UP = 500
RELOADS = 1000
LAST = 200


def run(settings: Settings) -> list[Figure]:
    path, name = settings.humanoid, settings.humanoid.stem
    figures = [held_up(path, name, settings.rounds)]
    for running in (True, False):
        figures += left_behind(path, name, running=running, quick=settings.quick)
    return figures


def held_up(path: Path, name: str, rounds: int) -> Figure:
    with MujocoEnv(path, realtime=None, running=True) as env:
        env.reload()
        reports = [env.reload() for _ in range(rounds)]
    outside = [report.compile_s + report.data_s + report.forward_s for report in reports]
    inside = [report.pause_s for report in reports]
    ratios = [held / rest for held, rest in zip(inside, outside, strict=True)]
    q1, middle, q3 = quartiles(ratios)
    return Figure(
        BENCHMARK,
        "reload: time under the lock / compile + data + forward",
        name,
        middle,
        q1,
        q3,
        "x",
        f"{1e3 * quartiles(inside)[1]:.2f} ms held, worst {1e3 * max(inside):.2f} ms",
        f"{1e3 * quartiles(outside)[1]:.2f} ms outside",
        rounds,
        high=0.25,
    )


def left_behind(path: Path, name: str, *, running: bool, quick: bool) -> list[Figure]:
    warm_up, reloads = (20, 60) if quick else (WARM_UP, RELOADS)
    with MujocoEnv(path, realtime=None, running=running) as env:
        before, _ = resident_while_reloading(env, warm_up)
        tasks, threads = native_threads(), threading.active_count()
        after, old = resident_while_reloading(env, reloads)
        more_threads = max(native_threads() - tasks, threading.active_count() - threads)
        alive = sum(reference() is not None for reference in old)
    label = f"{reloads} reloads, {'running' if running else 'paused'}: "
    return [
        count(name, label + "growth of the resident set", (after - before) / 1e6, "MB", 5.0),
        count(name, label + "threads more than before", more_threads, "", 0.0),
        count(name, label + "old models and data alive", alive, "", 0.0),
    ]


def resident_while_reloading(env: MujocoEnv, reloads: int) -> tuple[float, list[weakref.ref]]:
    """Resident bytes towards the end, and references to everything that was replaced."""
    resident, old = [], []
    for _ in range(reloads):
        old += [weakref.ref(env.model), weakref.ref(env.data)]
        env.reload()
        resident.append(resident_bytes())
    return min(resident[-LAST:]), old


def count(name: str, measure: str, value: float, unit: str, high: float) -> Figure:
    return Figure(BENCHMARK, measure, name, value, value, value, unit, "-", "-", 1, high=high)


def resident_bytes() -> int:
    """What the process holds, without what its allocator only keeps for later."""
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def native_threads() -> int:
    return sum(1 for _ in Path("/proc/self/task").iterdir())


if __name__ == "__main__":
    main(run)
