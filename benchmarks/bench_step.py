"""``env.step(n)`` and a user's loop of ``env.step(1)`` against a loop of ``mj_step``.

CPU time of the calling thread. For information, a third line compares ``env.step(n)`` with the
engine's own multi-step, ``mj_step(model, data, n)``, and a fourth the peer's loop with a second one
of its kind: what differs from 1 there is the noise of the machine and of the method.
"""

from __future__ import annotations

from pathlib import Path

from _harness import Figure, Plain, Sample, Settings, main, paired, rate_ratio, timed

from mjhost import MujocoEnv

BENCHMARK = "bench_step"
WHOLE = {"humanoid": 1.0, "pendulum": 1.0}
SINGLE = {"humanoid": 0.88, "pendulum": 0.5}


def run(settings: Settings) -> list[Figure]:
    figures = []
    for name, path, steps in settings.subjects():
        figures += compare(name, path, steps, settings.rounds)
    return figures


def compare(name: str, path: Path, steps: int, rounds: int) -> list[Figure]:
    plain, twin = Plain(path), Plain(path)
    with MujocoEnv(path, realtime=None) as env:

        def whole() -> Sample:
            env.reset()
            return timed(lambda: env.step(steps), steps)

        def single() -> Sample:
            env.reset()
            return timed(lambda: user_loop(env, steps), steps)

        def peer() -> Sample:
            return plain.loop(steps)

        def engine() -> Sample:
            return plain.multi_step(steps)

        def line(measure: str, ours, theirs, low: float | None) -> Figure:
            pairs = paired(ours, theirs, rounds)
            return rate_ratio(
                pairs, "cpu", benchmark=BENCHMARK, measure=measure, model=name, low=low
            )

        return [
            line("step(n) / loop of mj_step", whole, peer, WHOLE.get(name)),
            line("step(1) in a loop / loop of mj_step", single, peer, SINGLE.get(name)),
            line("step(n) / mj_step(m, d, n)", whole, engine, None),
            line("loop of mj_step / the same: the noise", lambda: twin.loop(steps), peer, None),
        ]


def user_loop(env: MujocoEnv, steps: int) -> None:
    step = env.step
    for _ in range(steps):
        step(1)


if __name__ == "__main__":
    main(run)
