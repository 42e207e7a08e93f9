# ruff: noqa: ARG002, ARG005 - signatures are the engine's
"""Engine plugins in Python and compiled, against the engine's own C++ plugin and its trampoline.

Steps: one controller instance on every joint with a motor, against ``mujoco.pid`` with the same
gains. Both end at the same numbers, which is checked. Entries: the address that the engine calls,
called by a loop in machine code without the interpreter's lock, against the trampoline that
``mujoco.set_mjcb_control`` installs. Roll-outs: what a second thread gains, as a share of what it
gains with the C++ plugin, in rounds where that was at least ``ALMOST_TWO``.
"""

from __future__ import annotations

import ctypes
import statistics
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
from _harness import (
    Figure,
    Sample,
    Settings,
    main,
    paired,
    quartiles,
    rate_ratio,
    timed,
)
from bench_reload import resident_bytes
from mujoco import rollout

from mjhost import engine, layout
from mjhost.engine import registry
from mjhost.engine.builtin import choice
from mjhost.engine.builtin import pid as _pid  # noqa: F401 - registers mjhost.pid
from mjhost.engine.builtin import sdf as _sdf  # noqa: F401 - and mjhost.sdf.*

BENCHMARK = "bench_engine_extensions"
COMPILED = 1 / 1.05
WHOLE_ARRAYS = 1 / 1.75
PYTHON_ENTRY, COMPILED_ENTRY = 1.1, 0.02
SDF = 4.0
SHARE, ALMOST_TWO, ROLLOUT_ROUNDS = 0.95, 1.5, 30
LIVES = 10_000
GAINS = {"kp": 20, "ki": 2, "kd": 0.5}


@engine.plugin("bench.whole_arrays", capabilities=("actuator",))
class WholeArrays:
    """A PID in the form that is fast in Python; the instance has every actuator."""

    kp: float = 0.0
    ki: float = 0.0
    kd: float = 0.0

    def actuator_act_dot(self, model, data, instance):
        data.act_dot[:] = data.ctrl - data.actuator_length

    def compute(self, model, data, instance, capability):
        error = data.ctrl - data.actuator_length
        integral = data.act + error * model.opt.timestep
        data.actuator_force[:] = (
            self.kp * error - self.kd * data.actuator_velocity + self.ki * integral
        )


class Nothing:
    """What an entry costs."""

    def compute(self, model, data, instance, capability):
        pass


for _compiled, _suffix in ((False, "python"), (True, "compiled")):
    engine.plugin(f"bench.nothing.{_suffix}", ("passive",), compiled=_compiled)(Nothing)


def run(settings: Settings) -> list[Figure]:
    choice.use(compiled=True)
    figures = []
    for name, path, steps in settings.subjects():
        figures += stepping(name, path, steps, settings.rounds)
    figures += entries(settings)
    figures += static_distances(settings)
    figures += two_threads(settings)
    figures += [growth(settings, which) for which in ("mjhost.pid", "bench.whole_arrays")]
    return figures


# -- steps ---------------------------------------------------------------------------------------


def controlled(path: Path, plugin: str) -> mujoco.MjModel:
    """The model of a file with its motors replaced by one instance of a plugin."""
    tree = ET.fromstring(path.read_text())
    (actuators,) = tree.findall("actuator")
    joints = [motor.get("joint") for motor in actuators]
    tree.remove(actuators)
    for unfit in tree.findall("keyframe"):
        tree.remove(unfit)
    extension = ET.SubElement(ET.SubElement(tree, "extension"), "plugin", plugin=plugin)
    instance = ET.SubElement(extension, "instance", name="controller")
    for key, value in GAINS.items():
        ET.SubElement(instance, "config", key=key, value=str(value))
    actuators = ET.SubElement(tree, "actuator")
    for joint in joints:
        ET.SubElement(
            actuators, "plugin", plugin=plugin, instance="controller", joint=joint, actdim="1"
        )
    return mujoco.MjModel.from_xml_string(ET.tostring(tree, encoding="unicode"))


class Side:
    """One plugin under the engine's own multi-step."""

    def __init__(self, path: Path, plugin: str, steps: int) -> None:
        self.model = controlled(path, plugin)
        self.data = mujoco.MjData(self.model)
        self._steps = steps

    def sample(self) -> Sample:
        mujoco.mj_resetData(self.model, self.data)
        self.data.ctrl[:] = 0.1
        return timed(lambda: mujoco.mj_step(self.model, self.data, self._steps), self._steps)


def stepping(name: str, path: Path, steps: int, rounds: int) -> list[Figure]:
    native = Side(path, "mujoco.pid", steps)
    targets = {"mjhost.pid": COMPILED, "bench.whole_arrays": None}
    if name == "humanoid":
        targets["bench.whole_arrays"] = WHOLE_ARRAYS
    words = {"mjhost.pid": "mjhost.pid, compiled", "bench.whole_arrays": "Python, whole arrays"}
    figures = []
    for plugin, low in targets.items():
        side = Side(path, plugin, steps)
        pairs = paired(side.sample, native.sample, rounds)
        assert np.allclose(side.data.qpos, native.data.qpos), f"{plugin} went elsewhere"
        figures.append(
            rate_ratio(
                pairs,
                "cpu",
                benchmark=BENCHMARK,
                measure=f"{words[plugin]} / mujoco.pid (C++)",
                model=name,
                low=low,
            )
        )
    return figures


# -- entries -------------------------------------------------------------------------------------

PASSIVE = """
<mujoco>
  <extension><plugin plugin="{name}"><instance name="it"/></plugin></extension>
  <worldbody><body><plugin instance="it"/><joint/><geom size="0.1"/></body></worldbody>
</mujoco>
"""


def entries(settings: Settings) -> list[Figure]:
    """Cost of a call into nothing, over that of MuJoCo's own trampoline."""
    return [
        _entry(settings, "python", PYTHON_ENTRY),
        _entry(settings, "compiled", COMPILED_ENTRY),
    ]


def _entry(settings: Settings, suffix: str, high: float) -> Figure:
    name = f"bench.nothing.{suffix}"
    model = mujoco.MjModel.from_xml_string(PASSIVE.format(name=name))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    calls = 20_000 if settings.quick else 100_000
    addresses = layout.address_of(model, "mjModel"), layout.address_of(data, "mjData")
    ours = _loop(int(registry.plugin(name).struct.compute), 2, calls * 10, addresses)
    symbol = ctypes.c_void_p.in_dll(layout.library(), "mjcb_control")

    def theirs() -> Sample:
        mujoco.set_mjcb_control(lambda model, data: None)
        try:
            return _loop(symbol.value, 0, calls, addresses)()
        finally:
            mujoco.set_mjcb_control(None)

    pairs = paired(ours, theirs, settings.rounds)
    ratios = [a.cpu_s / a.work / (b.cpu_s / b.work) for a, b in pairs]
    q1, middle, q3 = quartiles(ratios)
    mine = statistics.median(a.cpu_s / a.work for a, _ in pairs)
    peer = statistics.median(b.cpu_s / b.work for _, b in pairs)
    return Figure(
        BENCHMARK,
        f"entry into a {suffix} plugin / MuJoCo's Python trampoline",
        "-",
        middle,
        q1,
        q3,
        "x (cpu)",
        f"{mine * 1e9:.1f} ns",
        f"{peer * 1e9:.1f} ns",
        len(pairs),
        high=high,
    )


def _loop(address: int, extra: int, calls: int, addresses: tuple[int, int]) -> Callable[[], Sample]:
    """Calls an address from machine code; the interpreter's lock is free meanwhile."""
    run_loop = _looper(extra)
    return lambda: timed(lambda: run_loop(address, *addresses, calls), calls)


_LOOP = """
define void @loop(ptr %f, ptr %model, ptr %data, i64 %count) {{
entry:
  br label %again
again:
  %k = phi i64 [ 0, %entry ], [ %next, %again ]
  call void %f(ptr %model, ptr %data{extra})
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %again, label %end
end:
  ret void
}}
"""
_loopers: dict[int, tuple] = {}


def _looper(extra: int):
    import llvmlite.binding as llvm

    if extra not in _loopers:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        source = _LOOP.format(extra=", i32 0, i32 4" if extra else "")
        machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
        made = llvm.create_mcjit_compiler(llvm.parse_assembly(source), machine)
        made.finalize_object()
        prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)
        _loopers[extra] = made, prototype(made.get_function_address("loop"))
    return _loopers[extra][1]


# -- distances -----------------------------------------------------------------------------------

MESH = """
<mujoco>
  <extension><plugin plugin="{name}"><instance name="it"/></plugin></extension>
  <asset><mesh name="ball"><plugin instance="it"/></mesh></asset>
  <worldbody><geom type="sdf" mesh="ball"><plugin instance="it"/></geom></worldbody>
</mujoco>
"""


def static_distances(settings: Settings) -> list[Figure]:
    """How long a model with an SDF takes to compile; most of what is left is the engine's."""
    gyroid, torus = "mjhost.sdf.gyroid", "mjhost.sdf.torus"
    return [
        _compiling(settings, "gyroid, Python", gyroid, gyroid, low=SDF),
        _compiling(settings, "torus, Python", torus, torus),
        _compiling(settings, "torus, C++", torus, "mujoco.sdf.torus"),
    ]


def _compiling(
    settings: Settings, words: str, ours: str, peer: str, *, low: float | None = None
) -> Figure:
    def compiling(name: str, *, compiled: bool) -> Callable[[], Sample]:
        def sample() -> Sample:
            choice.use(compiled=compiled)
            try:
                return timed(lambda: mujoco.MjModel.from_xml_string(MESH.format(name=name)), 1)
            finally:
                choice.use(compiled=True)

        return sample

    sides = compiling(ours, compiled=True), compiling(peer, compiled=False)
    rounds = 2 if settings.quick else 5
    pairs = paired(*sides, rounds, warm_up=0, folded=False)
    q1, middle, q3 = quartiles([b.cpu_s / a.cpu_s for a, b in pairs])
    return Figure(
        BENCHMARK,
        f"compiling a model with an SDF: time of {words} / compiled",
        "-",
        middle,
        q1,
        q3,
        "x (cpu)",
        f"{statistics.median(a.cpu_s for a, _ in pairs):.2f} s",
        f"{statistics.median(b.cpu_s for _, b in pairs):.2f} s",
        len(pairs),
        low=low,
    )


# -- threads -------------------------------------------------------------------------------------


class Rollouts:
    """The same roll-outs on one thread and on two."""

    def __init__(self, path: Path, plugin: str, steps: int) -> None:
        self.model = controlled(path, plugin)
        self._data = [mujoco.MjData(self.model) for _ in range(2)]
        size = mujoco.mj_stateSize(self.model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        state = np.empty(size)
        mujoco.mj_getState(self.model, self._data[0], state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        self._states = np.tile(state, (16, 1))
        self._control = np.full((16, steps, self.model.nu), 0.1)

    def run(self, threads: int) -> tuple[float, float]:
        """Seconds on the wall, and of the processor."""
        wall, cpu = time.perf_counter(), time.process_time()
        rollout.rollout(self.model, self._data[:threads], self._states, self._control)
        return time.perf_counter() - wall, time.process_time() - cpu


def two_threads(settings: Settings) -> list[Figure]:
    """Share of the native plugin's gain, in rounds that had two processors."""
    steps = 40 if settings.quick else 150
    ours = Rollouts(settings.humanoid, "mjhost.pid", steps)
    native = Rollouts(settings.humanoid, "mujoco.pid", steps)
    for side in (ours, native):
        side.run(2)
    shares, gains, costs = [], [], []
    for _ in range(5 if settings.quick else ROLLOUT_ROUNDS):
        one, first = native.run(1)[0], native.run(2)[0]
        mine, (both, cpu) = ours.run(1)[0], ours.run(2)
        last, peer_cpu = native.run(2)
        costs.append(peer_cpu / cpu)
        if one / max(first, last) >= ALMOST_TWO:
            gains.append((mine / both, 2 * one / (first + last)))
            shares.append(gains[-1][0] / gains[-1][1])
    if len(shares) < 2:
        return [_cpu_cost(costs)]
    q1, middle, q3 = quartiles(shares)
    return [
        Figure(
            BENCHMARK,
            "second thread of a roll-out: compiled gains / C++ gains",
            "humanoid",
            middle,
            q1,
            q3,
            "x (wall)",
            f"x {statistics.median(gain for gain, _ in gains):.2f}",
            f"x {statistics.median(gain for _, gain in gains):.2f}",
            len(shares),
            low=SHARE,
        )
    ]


def _cpu_cost(costs: list[float]) -> Figure:
    q1, middle, q3 = quartiles(costs)
    return Figure(
        BENCHMARK,
        "second thread of a roll-out: not measurable here; CPU time, C++ / compiled",
        "humanoid",
        middle,
        q1,
        q3,
        "x (cpu)",
        "-",
        "-",
        len(costs),
    )


# -- lives ---------------------------------------------------------------------------------------


def growth(settings: Settings, plugin: str) -> Figure:
    """Memory that stays after many data: made, stepped, gone."""
    from mjhost import models

    model = controlled(models.path("pendulum"), plugin)
    lives = LIVES // 10 if settings.quick else LIVES

    def live(count: int) -> None:
        for _ in range(count):
            mujoco.mj_step(model, mujoco.MjData(model))

    live(lives // 10)
    before = resident_bytes()
    live(lives)
    grown = (resident_bytes() - before) / 2**20
    kind = "compiled" if plugin == "mjhost.pid" else "Python"
    return Figure(
        BENCHMARK,
        f"memory after {lives} x make data, step, destroy, {kind}",
        "pendulum",
        grown,
        grown,
        grown,
        "MiB",
        "-",
        "-",
        1,
        high=1.0,
    )


if __name__ == "__main__":
    main(run)
