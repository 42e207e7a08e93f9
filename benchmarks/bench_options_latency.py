"""``apply_runtime_options`` from another thread while physics runs unbound.

Wall time of each call, at random moments. The target is for the 99th percentile: one time slice
(10 ms) and 2 ms. The spread is that of the rounds' own 99th percentiles.
"""

from __future__ import annotations

import random
import statistics
import time

from _harness import Figure, Settings, collector_off, main, quartiles

from mjhost import MujocoEnv

BENCHMARK = "bench_options_latency"
SLICE_S = 0.01
TARGET_MS = 1e3 * SLICE_S + 2
CALLS = 100
QUICK_CALLS = 30
LONGEST_PAUSE_S = 0.02


def run(settings: Settings) -> list[Figure]:
    calls = QUICK_CALLS if settings.quick else CALLS
    figures = []
    for name, path, _ in settings.subjects():
        with MujocoEnv(path, realtime=None, running=True, time_slice_s=SLICE_S) as env:
            latencies(env, calls)  # warm-up
            figures.append(figure(name, [latencies(env, calls) for _ in range(settings.rounds)]))
    return figures


def latencies(env: MujocoEnv, calls: int) -> list[float]:
    """Milliseconds per call; every call changes something."""
    draw = random.Random(3)
    taken = []
    with collector_off():
        for index in range(calls):
            time.sleep(draw.uniform(0, LONGEST_PAUSE_S))
            start = time.perf_counter()
            env.apply_runtime_options({"gravity": [0.0, 0.0, -9.81 + 0.01 * (index % 2)]})
            taken.append(1e3 * (time.perf_counter() - start))
    return taken


def percentile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def figure(name: str, rounds: list[list[float]]) -> Figure:
    calls = [value for taken in rounds for value in taken]
    q1, _, q3 = quartiles([percentile(taken, 99) for taken in rounds])
    return Figure(
        BENCHMARK,
        "options patch while unbound, 99th percentile",
        name,
        percentile(calls, 99),
        q1,
        q3,
        "ms",
        f"median {percentile(calls, 50):.2f} ms, worst {max(calls):.2f} ms of {len(calls)}",
        "-",
        len(rounds),
        high=TARGET_MS,
    )


if __name__ == "__main__":
    main(run)
