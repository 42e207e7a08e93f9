"""Checkpoints in memory: taking one against a step, restoring one against the engine's own way.

Ratios of CPU time, ours over the peer's; lower is better. The engine's own way is ``mj_setState``
of the same state and ``mj_forward``, on data of its own.
"""

from __future__ import annotations

from collections.abc import Callable

import mujoco
from _harness import Figure, Plain, Sample, Settings, main, paired, time_ratio, timed

from mjhost import MujocoEnv

BENCHMARK = "bench_checkpoint"
TIMES = 1_000
QUICK_TIMES = 200
SETTLE_STEPS = 150


def run(settings: Settings) -> list[Figure]:
    times = QUICK_TIMES if settings.quick else TIMES
    figures = []
    for name, path, _ in settings.subjects():
        with MujocoEnv(path) as env:
            env.step(SETTLE_STEPS)
            figures += compare(name, env, Plain(path), settings, times)
    return figures


def compare(
    name: str, env: MujocoEnv, plain: Plain, settings: Settings, times: int
) -> list[Figure]:
    checkpoint = env.checkpoint()
    spec = mujoco.mjtState.mjSTATE_INTEGRATION

    def step() -> None:
        mujoco.mj_step(plain.model, plain.data)

    def back() -> None:
        mujoco.mj_setState(plain.model, plain.data, checkpoint.state, spec)
        mujoco.mj_forward(plain.model, plain.data)

    def restore() -> None:
        env.restore(checkpoint)

    back()
    figures = []
    for measure, ours, peer, high in (
        ("checkpoint() / mj_step", env.checkpoint, step, 1.2),
        ("restore() / mj_setState + mj_forward", restore, back, 1.5),
    ):
        pairs = paired(side(ours, times), side(peer, times), settings.rounds)
        target = high if name == settings.humanoid.stem else None
        figures.append(
            time_ratio(pairs, benchmark=BENCHMARK, measure=measure, model=name, high=target)
        )
    return figures


def side(call: Callable[[], object], times: int) -> Callable[[], Sample]:
    def repeat() -> None:
        for _ in range(times):
            call()

    return lambda: timed(repeat, times)


if __name__ == "__main__":
    main(run)
