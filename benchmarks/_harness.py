"""What the benchmarks share: interleaved rounds, medians with their spread, one table.

Owns: ``Sample`` (one timed region), ``Figure`` (one line of the table), the command line.
Invariants: both sides of a pair are run alternately, who goes first changes every round, and both
start from the same state of the same model; a ratio is the median of the rounds' ratios, not the
ratio of medians; the garbage collector is off inside a timed region; warm-up rounds do not count.
Failure: a target that is missed is printed as missed; it is no error.
Not a goal: absolute speed. The rates depend on the machine, only the ratios are compared.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import mujoco

from mjhost import models

ROUNDS = 21
QUICK_ROUNDS = 5


@dataclass(frozen=True)
class Sample:
    """One timed region: so many units of work in so much time of each clock."""

    work: float
    wall_s: float
    cpu_s: float

    def rate(self, clock: str) -> float:
        """Units of work per second of ``"wall"`` or ``"cpu"``."""
        return self.work / (self.wall_s if clock == "wall" else self.cpu_s)


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    Attributes:
        value, q1, q3: median and quartiles over the rounds.
        ours, peer: what was measured on both sides, in words.
        low, high: the target; ``None`` is open. Without either the line is for information.
    """

    benchmark: str
    measure: str
    model: str
    value: float
    q1: float
    q3: float
    unit: str
    ours: str
    peer: str
    rounds: int
    low: float | None = None
    high: float | None = None

    @property
    def verdict(self) -> str:
        if self.low is None and self.high is None:
            return ""
        low, high = (
            self.low is None or self.value >= self.low,
            self.high is None or (self.value <= self.high),
        )
        return "met" if low and high else "MISSED"

    @property
    def target(self) -> str:
        if self.low is not None and self.high is not None:
            middle = (self.low + self.high) / 2
            return f"{middle:.3f} ± {self.high - middle:.3f}"
        if self.low is not None:
            return f"≥ {self.low:g}"
        return "-" if self.high is None else f"≤ {self.high:g}"


# -- timing --------------------------------------------------------------------------------------


@contextmanager
def collector_off() -> Iterator[None]:
    """No garbage collection in here; one before it."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def timed(run: Callable[[], object], work: float) -> Sample:
    """Runs ``run`` once; the CPU time is that of this thread."""
    with collector_off():
        cpu, wall = time.thread_time(), time.perf_counter()
        run()
        wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
    return Sample(work, wall, cpu)


def paired(
    ours: Callable[[], Sample],
    peer: Callable[[], Sample],
    rounds: int,
    *,
    warm_up: int = 1,
    folded: bool = True,
) -> list[tuple[Sample, Sample]]:
    """Both sides in every round, the first one changing.

    A folded round runs A B B A and adds up, which cancels a drift of the machine's speed.
    """
    pairs = []
    for index in range(-warm_up, rounds):
        first, second = (ours, peer) if index % 2 else (peer, ours)
        order = (first, second, second, first) if folded else (first, second)
        samples = [(side, side()) for side in order]
        if index >= 0:
            mine = sum_up(sample for side, sample in samples if side is ours)
            pairs.append((mine, sum_up(sample for side, sample in samples if side is peer)))
    return pairs


def sum_up(samples: Iterable[Sample]) -> Sample:
    """One sample of all the work in all the time."""
    work, wall, cpu = zip(*((s.work, s.wall_s, s.cpu_s) for s in samples), strict=True)
    return Sample(sum(work), sum(wall), sum(cpu))


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Lower quartile, median, upper quartile."""
    q1, middle, q3 = statistics.quantiles(values, n=4, method="inclusive")
    return q1, middle, q3


def rate_ratio(
    pairs: Sequence[tuple[Sample, Sample]],
    clock: str,
    *,
    benchmark: str,
    measure: str,
    model: str,
    low: float | None = None,
) -> Figure:
    """Our rate over the peer's, as a line of the table; higher is better."""
    q1, middle, q3 = quartiles([mine.rate(clock) / other.rate(clock) for mine, other in pairs])
    mine_rate = statistics.median(mine.rate(clock) for mine, _ in pairs)
    peer_rate = statistics.median(other.rate(clock) for _, other in pairs)
    return Figure(
        benchmark,
        measure,
        model,
        middle,
        q1,
        q3,
        f"x ({clock})",
        f"{mine_rate:,.0f} steps/s",
        f"{peer_rate:,.0f} steps/s",
        len(pairs),
        low=low,
    )


# -- models --------------------------------------------------------------------------------------


def time_ratio(
    pairs: Sequence[tuple[Sample, Sample]],
    *,
    benchmark: str,
    measure: str,
    model: str,
    high: float | None = None,
) -> Figure:
    """CPU time per piece of work, ours over the peer's; lower is better."""

    def per(sample: Sample) -> float:
        return sample.cpu_s / sample.work

    q1, middle, q3 = quartiles([per(mine) / per(other) for mine, other in pairs])
    ours, theirs = (statistics.median(per(pair[i]) for pair in pairs) for i in (0, 1))
    times = [f"{1e6 * t:,.3g} us" for t in (ours, theirs)]
    return Figure(
        benchmark, measure, model, middle, q1, q3, "x (time)", *times, len(pairs), high=high
    )


class Plain:
    """The peer: a model and data of its own, compiled by the engine, and a loop."""

    def __init__(self, path: Path) -> None:
        self.model = mujoco.MjModel.from_xml_path(str(path))
        self.data = mujoco.MjData(self.model)

    def loop(self, steps: int) -> Sample:
        """A Python loop of ``mj_step`` from the initial state."""
        mujoco.mj_resetData(self.model, self.data)
        return timed(lambda: self._loop(steps), steps)

    def multi_step(self, steps: int) -> Sample:
        """The engine's own multi-step from the initial state."""
        mujoco.mj_resetData(self.model, self.data)
        return timed(lambda: mujoco.mj_step(self.model, self.data, steps), steps)

    def _loop(self, steps: int) -> None:
        step, model, data = mujoco.mj_step, self.model, self.data
        for _ in range(steps):
            step(model, data)


# -- command line --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """What the command line asks for."""

    quick: bool
    as_json: bool
    humanoid: Path

    @property
    def rounds(self) -> int:
        return QUICK_ROUNDS if self.quick else ROUNDS

    def subjects(self) -> Iterator[tuple[str, Path, int]]:
        """Name, file and steps per round of the two models that the targets speak of."""
        share = 0.3 if self.quick else 1.0
        yield self.humanoid.stem, self.humanoid, round(1_000 * share)
        yield "pendulum", models.path("pendulum"), round(20_000 * share)


def parser(description: str | None) -> argparse.ArgumentParser:
    """The flags that every benchmark takes."""
    flags = argparse.ArgumentParser(description=description)
    flags.add_argument("--quick", action="store_true", help="few short rounds: does it run at all")
    flags.add_argument("--json", action="store_true", help="print records instead of a table")
    flags.add_argument(
        "--humanoid",
        type=Path,
        default=models.path("humanoid"),
        help="another model in the humanoid's place (default: the bundled one)",
    )
    return flags


def main(run: Callable[[Settings], list[Figure]]) -> None:
    """A benchmark's command line: runs it and prints what it found."""
    arguments = parser(sys.modules["__main__"].__doc__).parse_args()
    settings = Settings(arguments.quick, arguments.json, arguments.humanoid)
    figures = run(settings)
    if settings.as_json:
        print(json.dumps([dataclasses.asdict(figure) for figure in figures]))
    else:
        print(machine())
        print(table(figures))


def machine() -> str:
    """Engine, interpreter, processor and how busy it is."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"MuJoCo {mujoco.mj_versionString()}, Python {platform.python_version()}, "
        f"{_processor()} x {os.cpu_count()}, load {load}"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


HEADER = ("measure", "model", "median", "quartiles", "target", "", "mjhost", "peer", "benchmark")


def rows(figures: Sequence[Figure]) -> list[tuple[str, ...]]:
    """The table's cells."""
    return [
        (
            figure.measure,
            figure.model,
            f"{figure.value:.3f} {figure.unit}",
            f"{figure.q1:.3f} .. {figure.q3:.3f}",
            figure.target,
            figure.verdict,
            figure.ours,
            figure.peer,
            f"{figure.benchmark}, {figure.rounds} rounds",
        )
        for figure in figures
    ]


def table(figures: Sequence[Figure]) -> str:
    """The figures as aligned text that is also Markdown."""
    cells = [HEADER, *rows(figures)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(HEADER))]
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)
