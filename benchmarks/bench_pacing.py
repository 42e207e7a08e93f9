"""Pacing at factor 1.0: how exact it is and what it costs.

The factor is simulated time over wall time in a window of 10 s, read from outside at step
boundaries; reading is coarse by one step in the window (5 ms of 10 s: 0.0005). The cost is the CPU
time of the whole process in that window against that of a bare loop of the same steps paced with
``time.sleep``; the env is closed while the peer runs, so that neither pays for the other.
"""

from __future__ import annotations

import time
from pathlib import Path

import mujoco
from _harness import Figure, Plain, Sample, Settings, collector_off, main, paired, quartiles

from mjhost import MujocoEnv

BENCHMARK = "bench_pacing"
WINDOW_S = 10.0
QUICK_WINDOW_S = 2.0
SETTLE_S = 0.5


def run(settings: Settings) -> list[Figure]:
    window = QUICK_WINDOW_S if settings.quick else WINDOW_S
    path, name = settings.humanoid, settings.humanoid.stem
    plain = Plain(path)
    rounds = 3 if settings.quick else settings.rounds
    pairs = paired(
        lambda: hosted(path, window), lambda: bare(plain, window), rounds, warm_up=0, folded=False
    )
    return [factor(pairs, name, window), cost(pairs, name, window)]


def hosted(path: Path, window: float) -> Sample:
    with MujocoEnv(path, realtime=1.0, running=True) as env, collector_off():
        time.sleep(SETTLE_S)
        sim, cpu, wall = env.info.sim_time, time.process_time(), time.perf_counter()
        time.sleep(window)
        end, wall, cpu = env.info.sim_time, time.perf_counter() - wall, time.process_time() - cpu
    return Sample(end - sim, wall, cpu)


def bare(plain: Plain, window: float) -> Sample:
    steps = round(window / plain.model.opt.timestep)
    paced(plain, round(SETTLE_S / plain.model.opt.timestep))
    start = plain.data.time
    with collector_off():
        cpu, wall = time.process_time(), time.perf_counter()
        paced(plain, steps)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Sample(plain.data.time - start, wall, cpu)


def paced(plain: Plain, steps: int) -> None:
    """The barest loop that keeps time: step, sleep until the next one is due."""
    model, data, dt = plain.model, plain.data, plain.model.opt.timestep
    due = time.perf_counter()
    for _ in range(steps):
        mujoco.mj_step(model, data)
        due += dt
        ahead = due - time.perf_counter()
        if ahead > 0:
            time.sleep(ahead)


def factor(pairs: list[tuple[Sample, Sample]], name: str, window: float) -> Figure:
    q1, middle, q3 = quartiles([mine.rate("wall") for mine, _ in pairs])
    worst = max((mine.rate("wall") for mine, _ in pairs), key=lambda rate: abs(rate - 1))
    return Figure(
        BENCHMARK,
        f"factor over {window:g} s at target 1.0",
        name,
        middle,
        q1,
        q3,
        "sim s / s",
        f"worst round {worst:.4f}",
        "-",
        len(pairs),
        low=0.998,
        high=1.002,
    )


def cost(pairs: list[tuple[Sample, Sample]], name: str, window: float) -> Figure:
    q1, middle, q3 = quartiles(
        [(mine.cpu_s / mine.work) / (other.cpu_s / other.work) for mine, other in pairs]
    )
    mine_ms = quartiles([1e3 * mine.cpu_s / mine.work for mine, _ in pairs])[1]
    peer_ms = quartiles([1e3 * other.cpu_s / other.work for _, other in pairs])[1]
    return Figure(
        BENCHMARK,
        f"process CPU while paced, {window:g} s / bare sleep-paced loop",
        name,
        middle,
        q1,
        q3,
        "x (cpu)",
        f"{mine_ms:.1f} ms/s",
        f"{peer_ms:.1f} ms/s",
        len(pairs),
        high=1.3,
    )


if __name__ == "__main__":
    main(run)
