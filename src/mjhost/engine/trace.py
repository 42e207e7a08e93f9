"""The way of a model's engine plugins: declaration → slot → instance → elements → calls per step.

Owns: ``trace`` and its records, and the rule by which the engine calls native plugins.
Invariants: nothing of the caller's changes: what is measured is measured on data of its own, which
are stepped twice from the model's initial state, with no callback reached from this thread.
Threads: any; the model must not be changed meanwhile.
Failure: an extension that raises in the measured step is part of the trace.
Not a goal: time; that is a profiler's.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import mujoco
import numpy as np

from mjhost.callbacks import router
from mjhost.engine import failures, registry, report
from mjhost.engine.abi.structs import Plugin
from mjhost.engine.abi.symbols import engine
from mjhost.engine.abi.verify import verify
from mjhost.engine.lives import HOT, Lives
from mjhost.engine.methods import CAPABILITIES, capability_names

_RK4: Final = int(mujoco.mjtIntegrator.mjINT_RK4)
_STAGES_OF_RK4: Final = 4
_SPRING, _DAMPER, _ACTUATION, _SENSOR = (
    int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{name}"))
    for name in ("SPRING", "DAMPER", "ACTUATION", "SENSOR")
)
_IPC: Final = int(getattr(mujoco.mjtEnableBit, "mjENBL_IPC", 0))


@dataclass(frozen=True, slots=True)
class CallRecord:
    """How often a method is called in a step.

    Attributes:
        method: its name; for ``compute`` with the capability, ``compute (sensor)``.
        count: calls; ``None`` where it depends on contacts.
        basis: ``measured``, or ``rule`` for what is native.
    """

    method: str
    count: int | None
    basis: str

    def __str__(self) -> str:
        return f"{self.method} {'per contact search' if self.count is None else self.count}"


@dataclass(frozen=True, slots=True)
class InstanceTrace:
    """One plugin instance of a model.

    Attributes:
        instance: index in the model.
        name: of the instance; empty if it has none.
        plugin: name of the engine plugin.
        slot: its number.
        capabilities: what it can be.
        stage: when its sensors are computed; ``None`` for what is no sensor.
        source: see ``report.PluginRecord``.
        origin: where it was declared, or its library.
        config: texts of the model, by key; those it leaves out are left out.
        state_size: numbers of ``plugin_state``.
        elements: kind → names, or numbers where there is no name.
        calls: what the engine calls in a step.
        failure: what went wrong in the measured step, or ``None``.
    """

    instance: int
    name: str
    plugin: str
    slot: int
    capabilities: tuple[str, ...]
    stage: str | None
    source: str
    origin: str
    config: dict[str, str]
    state_size: int
    elements: dict[str, tuple[str, ...]]
    calls: tuple[CallRecord, ...]
    failure: str | None = None


def trace(model: mujoco.MjModel) -> tuple[InstanceTrace, ...]:
    """How each plugin instance of a model came there, and what the engine calls of it."""
    verify()
    records = {record.slot: record for record in report.registered().plugins}
    measured, failure = _measured(model)
    return tuple(
        _instance(model, instance, records, measured.get(instance), failure)
        for instance in range(model.nplugin)
    )


def _instance(
    model: mujoco.MjModel,
    instance: int,
    records: dict[int, report.PluginRecord],
    measured: Counter[str] | None,
    failure: str | None,
) -> InstanceTrace:
    slot = int(model.plugin[instance])
    record, plugin = records[slot], engine().plugin_at(slot)
    assert plugin is not None
    if measured is None:
        calls = tuple(CallRecord(m, count, "rule") for m, count in expected(model, plugin).items())
    else:
        calls = tuple(CallRecord(m, count, "measured") for m, count in measured.items())
    return InstanceTrace(
        instance=instance,
        name=_name_at(model, int(model.name_pluginadr[instance])),
        plugin=record.name,
        slot=slot,
        capabilities=record.capabilities,
        stage=record.stage,
        source=record.source,
        origin=record.origin,
        config=_config(model, instance, plugin),
        state_size=int(model.plugin_statenum[instance]),
        elements=_elements(model, instance),
        calls=() if failure and measured is not None else calls,
        failure=failure if measured is not None else None,
    )


def _name_at(model: mujoco.MjModel, start: int) -> str:
    names = bytes(model.names)
    return names[start : names.index(b"\0", start)].decode("utf-8", "replace")


def _config(model: mujoco.MjModel, instance: int, plugin: Plugin) -> dict[str, str]:
    found = {
        key: engine().plugin_config(model._address, instance, key) for key in plugin.attribute_names
    }
    return {key: value for key, value in found.items() if value}


def _elements(model: mujoco.MjModel, instance: int) -> dict[str, tuple[str, ...]]:
    found = {}
    for kind in ("actuator", "sensor", "body", "geom"):
        ids = np.flatnonzero(getattr(model, f"{kind}_plugin") == instance)
        if len(ids):
            accessor = getattr(model, kind)
            found[kind] = tuple(accessor(int(index)).name or str(index) for index in ids)
    return found


# -- by rule -------------------------------------------------------------------------------------


def expected(model: mujoco.MjModel, plugin: Plugin) -> dict[str, int | None]:
    """What the engine calls of a plugin in one ``mj_step`` of a model, by its options."""
    capabilities = capability_names(plugin.capabilityflags)
    disabled = int(model.opt.disableflags)
    stages = _STAGES_OF_RK4 if model.opt.integrator == _RK4 else 1
    counts: dict[str, int | None] = {}
    if "actuator" in capabilities:
        count = 0 if disabled & _ACTUATION else stages
        if plugin.actuator_act_dot:
            counts["actuator_act_dot"] = count
        counts["compute (actuator)"] = count
    if "sensor" in capabilities:
        counts["compute (sensor)"] = 0 if disabled & _SENSOR else _passes(model, plugin)
    if "passive" in capabilities:
        is_off = disabled & _SPRING and disabled & _DAMPER
        counts["compute (passive)"] = 0 if is_off else stages
    if "sdf" in capabilities:
        counts |= {"compute (sdf)": None, "sdf_distance": None, "sdf_gradient": None}
    if plugin.advance:
        counts["advance"] = 1
    return counts


def _passes(model: mujoco.MjModel, plugin: Plugin) -> int:
    """Sensors of accelerations are computed again after IPC, which is for flexes."""
    has_ipc = model.opt.enableflags & _IPC and model.nflex
    return 2 if has_ipc and report.stage_of(plugin) == "acc" else 1


# -- by measuring --------------------------------------------------------------------------------


def _measured(model: mujoco.MjModel) -> tuple[dict[int, Counter[str]], str | None]:
    """Calls of one step by instance, for what mjhost registered; and what went wrong."""
    own = {entry.slot: entry for entry in registry.plugins().values()}
    instances = {i: own[int(s)] for i, s in enumerate(model.plugin) if int(s) in own}
    if not instances:
        return {}, None
    counts = {instance: Counter[str]() for instance in instances}
    try:
        with router.compile_guard():
            _step_and_count(model, instances, counts)
    except Exception as error:  # noqa: BLE001 - whatever an extension raises is the finding
        return counts, str(error)
    return counts, None


def _step_and_count(
    model: mujoco.MjModel,
    instances: dict[int, registry.Registered],
    counts: dict[int, Counter[str]],
) -> None:
    data = mujoco.MjData(model)
    try:
        mujoco.mj_step(model, data)
        failures.check(data)
        for instance, entry in instances.items():
            _count_calls(model, data, instance, entry.lives, counts[instance])
        # Machine code is left out while this is set, and the functions that count are reached.
        _set_mark(data, failures.MARK)
        mujoco.mj_step(model, data)
    finally:
        _set_mark(data, 0)
        failures.check(data)


def _set_mark(data: mujoco.MjData, value: int) -> None:
    ctypes.c_int.from_address(data._address + failures._MARK_OFFSET).value = value


def _count_calls(
    model: mujoco.MjModel, data: mujoco.MjData, instance: int, lives: Lives, counts: Counter[str]
) -> None:
    """Puts a counting function in front of each method that the engine calls in a step."""
    for method in HOT:
        if method not in lives.declaration.methods:
            continue
        for name in _names_of(method, lives):
            counts[name] = 0
        key = data._address + instance
        call = lives.call(method, model._address, data._address, instance)
        lives.hot[method][key] = _counting(call[0], method, counts), *call[1:]


def _names_of(method: str, lives: Lives) -> Iterator[str]:
    if method != "compute":
        yield method
        return
    for capability in lives.declaration.capabilities:
        yield f"compute ({capability})"


_CAPABILITY_OF: Final = {bit: name for name, bit in CAPABILITIES.items()}


def _counting(function: Any, method: str, counts: Counter[str]) -> Callable[..., Any]:
    def counted(*arguments: Any) -> Any:
        name = f"compute ({_CAPABILITY_OF[arguments[3]]})" if method == "compute" else method
        counts[name] += 1
        return function(*arguments)

    return counted
