"""Callbacks through the router against the same callbacks installed with ``mujoco.set_mjcb_*``.

A Python controller as an env runs it, less the env: routed, timed, parked, and with the state of
before the step kept for a roll-back. An empty Python function: the way in against the binding's own
trampoline. A compiled function: what the machine-code frame costs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import mujoco
from _harness import Figure, Plain, Sample, Settings, main, paired, rate_ratio, timed

from mjhost.callbacks import IDLE, Route, router

BENCHMARK = "bench_callbacks_router"
PYTHON = {"humanoid": 0.95, "pendulum": 0.85}
COMPILED = 1 / 1.05


def controller(model, data):
    data.ctrl[:] = -0.1 * data.qvel[: model.nu]


def nothing(model, data):
    pass


def run(settings: Settings) -> list[Figure]:
    figures = []
    for name, path, steps in settings.subjects():
        figures += compare(name, path, steps, settings.rounds)
    return figures


def compare(name: str, path: Path, steps: int, rounds: int) -> list[Figure]:
    plain = Plain(path)
    route = router.attach(plain.model, mujoco.MjData(plain.model))

    def figure(measure: str, ours, theirs, low: float | None) -> Figure:
        pairs = paired(ours, theirs, rounds)
        return rate_ratio(pairs, "cpu", benchmark=BENCHMARK, measure=measure, model=name, low=low)

    def routed(fn, loop=hosted_loop) -> Callable[[], Sample]:
        def sample() -> Sample:
            mujoco.mj_resetData(route.model, route.data)
            route.set("control", fn)
            result = timed(lambda: loop(route, steps), steps)
            route.set("control", None)
            return result

        return sample

    def installed(fn) -> Callable[[], Sample]:
        def sample() -> Sample:
            mujoco.set_mjcb_control(fn)
            result = plain.loop(steps)
            mujoco.set_mjcb_control(None)
            return result

        return sample

    figures = [
        figure(
            "Python control, statistics, park, state kept / set_mjcb_control",
            routed(measured(controller)),
            installed(controller),
            PYTHON.get(name),
        ),
        figure(
            "empty function, routed / set_mjcb_control",
            routed(nothing, bare_loop),
            installed(nothing),
            None,
        ),
    ]
    compiled = compiled_control()
    if compiled is not None:
        figures.append(
            figure(
                "compiled control, routed / bare pointer",
                routed(compiled, bare_loop),
                installed(compiled),
                COMPILED,
            )
        )
    route.detach()
    return figures


def measured(fn):
    """The timing that a plugin's hook gets."""
    samples, ema, longest = 0, 0.0, 0.0

    def call(model, data):
        nonlocal samples, ema, longest
        started = perf_counter()
        fn(model, data)
        spent = perf_counter() - started
        if spent > longest:  # noqa: PLR1730 - a call costs more
            longest = spent
        ema += 0.002 * (spent - ema)
        samples += 1

    return call


def hosted_loop(route: Route, steps: int) -> None:
    """The parts of an env's step that callbacks need, inlined as an env does."""
    step, model, data, parked = mujoco.mj_step, route.model, route.data, route.parked
    view, kept = state_block(data)
    for _ in range(steps):
        kept[:] = view
        route.turn = 0
        step(model, data)
        route.turn = IDLE
        if parked:
            raise route.take()


def bare_loop(route: Route, steps: int) -> None:
    step, model, data = mujoco.mj_step, route.model, route.data
    for _ in range(steps):
        step(model, data)


def state_block(data: mujoco.MjData) -> tuple[memoryview, memoryview]:
    """The positions and velocities as one block, and room for a copy of it."""
    low = data.qpos.ctypes.data
    high = data.qvel.ctypes.data + data.qvel.nbytes
    block = (ctypes.c_char * (high - low)).from_address(low)
    return memoryview(block).cast("B"), memoryview(bytearray(high - low))


def compiled_control():
    """The same kind of controller as machine code, or ``None`` without the extra ``fast``."""
    try:
        import numba
    except ImportError:
        return None

    @numba.cfunc("void(voidptr, voidptr)")
    def control(model, data):
        pass

    return control.ctypes


if __name__ == "__main__":
    main(run)
