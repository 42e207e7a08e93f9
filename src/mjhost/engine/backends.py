"""Where the extensions of a model run, and why not.

Owns: ``support`` and its records.
Invariants: an answer is about the installed packages and what is registered now; a reason stands
with every no, and with a yes where something has to be known.
Threads: any.
Failure: none of its own.
Not a goal: MJX and Warp themselves: whether they take the rest of the model, they say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import mujoco
import numpy as np

from mjhost.callbacks import router
from mjhost.callbacks.kinds import KINDS
from mjhost.engine import callback_scopes, callbacks, frames, registry
from mjhost.engine.abi.structs import text
from mjhost.engine.abi.symbols import engine
from mjhost.engine.methods import CAPABILITIES

STEP: Final = "mj_step"
BACKENDS: Final = (STEP, "rollout", "batch", "mjx", "warp")
_WITH_BATCH: Final = 4_000_000


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether something runs in one backend.

    Attributes:
        runs: whether it does.
        reason: why not, or what to know.
    """

    runs: bool
    reason: str = ""

    def __str__(self) -> str:
        word = "yes" if self.runs else "no"
        return f"{word}: {self.reason}" if self.reason else word


@dataclass(frozen=True, slots=True)
class ExtensionSupport:
    """One extension of a model.

    Attributes:
        kind: ``plugin`` or ``callback``.
        name: of the engine plugin, or the callback kind and what it is.
        answers: backend → answer, in the order of ``BACKENDS``.
    """

    kind: str
    name: str
    answers: dict[str, Answer]

    def __str__(self) -> str:
        told = "; ".join(f"{backend} {answer}" for backend, answer in self.answers.items())
        return f"{self.kind} {self.name}: {told}"


def support(model: mujoco.MjModel) -> tuple[ExtensionSupport, ...]:
    """Where each engine plugin and callback of a model runs.

    Callbacks are those that are attached to data of the model or hold the process
    (``engine.callback``, ``engine.callback_scope``), other libraries' that are installed, and the
    kinds that the model cannot do without: actuators and sensors of type ``user``.
    """
    return (*_plugins(model), *_callbacks(model))


def refusals(model: mujoco.MjModel, backend: str) -> tuple[str, ...]:
    """Why a model cannot be run in a backend: a sentence per extension; empty if it can."""
    return tuple(
        f"{entry.kind} {entry.name}: {entry.answers[backend].reason}"
        for entry in support(model)
        if not entry.answers[backend].runs
    )


# -- plugins -------------------------------------------------------------------------------------


def _plugins(model: mujoco.MjModel) -> Iterator[ExtensionSupport]:
    own = registry.plugins()
    for slot in np.unique(model.plugin):
        plugin = engine().plugin_at(int(slot))
        if plugin is None:
            reason = f"no engine plugin is registered in slot {slot}"
            answers = dict.fromkeys(BACKENDS, Answer(runs=False, reason=reason))
            yield ExtensionSupport("plugin", f"in slot {slot}", answers)
            continue
        name = text(plugin.name)
        yield ExtensionSupport("plugin", name, _of_plugin(plugin.capabilityflags, own.get(name)))


def _of_plugin(flags: int, entry: registry.Registered | None) -> dict[str, Answer]:
    is_sdf = flags == CAPABILITIES["sdf"]
    if entry is None:
        here = {
            STEP: Answer(runs=True),
            "rollout": Answer(runs=True),
            "batch": _batch("what it keeps outside of plugin_state needs persistent=True"),
        }
    else:
        here = _of_own(compiled=entry.declaration.compiled)
    return {**here, "mjx": Answer(runs=False, reason=_MJX), "warp": _warp(is_sdf=is_sdf)}


_MJX: Final = "MJX runs no engine plugin; write it in JAX, between its steps"


def _warp(*, is_sdf: bool) -> Answer:
    if is_sdf:
        return Answer(
            runs=False, reason="Warp has SDFs of its own only: write the distance as a wp.func"
        )
    return Answer(runs=False, reason="Warp runs no engine plugin; use its Model.callback")


_GIL: Final = "in Python, one thread at a time; compiled=True uses all"


def _of_own(*, compiled: bool) -> dict[str, Answer]:
    in_threads = "" if compiled else _GIL
    rollout = in_threads
    if not frames.available():
        rollout = "; ".join(filter(None, (in_threads, "ask engine.check() afterwards")))
    return {
        STEP: Answer(runs=True),
        "rollout": Answer(runs=True, reason=rollout),
        "batch": _batch(
            "; ".join(filter(None, (in_threads, "what memo keeps needs persistent=True")))
        ),
    }


def _batch(reason: str) -> Answer:
    if mujoco.mj_version() < _WITH_BATCH:
        return Answer(
            runs=False, reason=f"MuJoCo {mujoco.__version__} has no batch; 4.0 has, or use rollout"
        )
    return Answer(runs=True, reason=reason)


# -- callbacks -----------------------------------------------------------------------------------


def _callbacks(model: mujoco.MjModel) -> Iterator[ExtensionSupport]:
    present = set()
    for one in callbacks.attached(model):
        present.add(one.kind)
        yield _callback(f"{one.kind}, attached: {one!r}", _attached(compiled=one.compiled))
    for kind, hook in callback_scopes.held_kinds().items():
        present.add(kind)
        yield _callback(f"{kind}, in a scope: {hook}", _process_wide())
    for name, port in router.ports.items():
        if port.foreign is not None and name not in present:
            present.add(name)
            yield _callback(f"{name}, of another library: {port.foreign}", _foreign(port.foreign))
    for kind, users in _needed(model).items():
        if kind not in present:
            yield _callback(f"{kind}, needed by {users}", _absent(kind))


def _callback(name: str, here: dict[str, Answer]) -> ExtensionSupport:
    mjx = Answer(runs=False, reason="MJX calls nothing back; write it in JAX, between its steps")
    warp = Answer(runs=False, reason="Warp has callbacks of its own, Model.callback, with kernels")
    return ExtensionSupport("callback", name, {**here, "mjx": mjx, "warp": warp})


def _attached(*, compiled: bool) -> dict[str, Answer]:
    reason = "" if compiled else _GIL
    rollout = "; ".join(filter(None, ("for data that it is attached to", reason)))
    return {
        STEP: Answer(runs=True),
        "rollout": Answer(runs=True, reason=rollout),
        "batch": Answer(
            runs=False, reason="a batch makes data of its own; use engine.callback_scope"
        ),
    }


def _process_wide() -> dict[str, Answer]:
    return {
        STEP: Answer(runs=True),
        "rollout": Answer(runs=True, reason=_GIL),
        "batch": _batch(_GIL),
    }


def _foreign(found: object) -> dict[str, Answer]:
    if not getattr(found, "is_python", False):
        return {STEP: Answer(runs=True), "rollout": Answer(runs=True), "batch": _batch("")}
    refused = "a batch refuses Python functions that are set as callbacks; use callback_scope"
    return {
        STEP: Answer(runs=True),
        "rollout": Answer(runs=True, reason="one thread; an exception in another ends the process"),
        "batch": Answer(runs=False, reason=refused),
    }


def _absent(kind: str) -> dict[str, Answer]:
    neutral = KINDS[kind].neutral
    outcome = "the sensors stay 0" if neutral is None else f"the engine takes {neutral:g}"
    reason = f"nothing is attached or installed, {outcome}"
    return dict.fromkeys(BACKENDS[:3], Answer(runs=False, reason=reason))


_USER: Final = {
    "act_dyn": ("actuator_dyntype", int(mujoco.mjtDyn.mjDYN_USER), "dyntype"),
    "act_gain": ("actuator_gaintype", int(mujoco.mjtGain.mjGAIN_USER), "gaintype"),
    "act_bias": ("actuator_biastype", int(mujoco.mjtBias.mjBIAS_USER), "biastype"),
    "sensor": ("sensor_type", int(mujoco.mjtSensor.mjSENS_USER), "type"),
}


def _needed(model: mujoco.MjModel) -> dict[str, str]:
    """Callback kinds that elements of type ``user`` ask for, and which those are."""
    found = {}
    for kind, (member, value, attribute) in _USER.items():
        ids = np.flatnonzero(getattr(model, member) == value)
        if len(ids):
            element = "sensor" if kind == "sensor" else "actuator"
            accessor = getattr(model, element)
            names = [accessor(int(index)).name or str(index) for index in ids]
            found[kind] = f"{element} {', '.join(names)} ({attribute} user)"
    return found
