"""A checkpoint as a value.

Owns: ``Checkpoint`` and the records that it consists of.
Invariants: it shares no memory with the simulation it was taken of, and never changes: arrays that
it hands out are copies, or read-only.
Threads: plain values.
Not a goal: taking and restoring; see ``MujocoEnv.checkpoint`` and ``MujocoEnv.restore``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import mujoco
import numpy as np

from mjhost.checkpoint.edits import NONE, ModelEdits
from mjhost.checkpoint.identity import ModelIdentity, Slot
from mjhost.checkpoint.vector import StateLayout, Vector
from mjhost.errors import (
    CheckpointError,
    InvalidArgumentError,
    UnknownNameError,
    did_you_mean,
)
from mjhost.options import (
    RuntimeOptionsSnapshot,
    default_snapshot,
    descriptors,
    prepare_runtime_options,
)
from mjhost.options.layout import decode, encode


class PluginState(msgspec.Struct, frozen=True, eq=False):
    """What a checkpoint knows of one plugin.

    Attributes:
        name: its name in the env.
        type: where it came from: ``module:Class`` or a path.
        state: what ``save_state`` returned, copied; ``None`` if it has none.
        saved: whether it has a ``save_state`` and a ``load_state``.
        exact: whether nothing of it is missing here: it has both, or no state at all.
    """

    name: str
    type: str
    state: Any
    saved: bool
    exact: bool


class Counters(msgspec.Struct, frozen=True):
    """Where a simulation is in its steps.

    Attributes:
        steps: engine steps since the last load or reset.
        anchor_step: step that rates and limits are counted from.
        anchor_time: simulation time of that step, s sim.
        session_time: simulated time since the env was made, s sim.
        options_epoch: how many options transactions the env had applied.
        due: names of the calls with a rate that belong to the next step: ``pre_step`` of plugins.
    """

    steps: int
    anchor_step: int
    anchor_time: float
    session_time: float
    options_epoch: int
    due: tuple[str, ...] = ()


class Checkpoint(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Everything a simulation needs to go on to the same bits.

    ``env.checkpoint()`` takes one, ``env.restore(checkpoint)`` goes back to it; ``save`` and
    ``load`` keep it in a file.

    Attributes:
        model: the model it belongs to, as it was compiled.
        layout: the components of ``state``.
        state: the engine's integration state, shape ``(layout.size,)``, read-only.
        option_bytes: the live options as the engine keeps them.
        option_values: the live options by name, if another engine version wrote the file: then
            ``option_bytes`` means nothing here, and is empty.
        edited_options: names of the options that were changed since the load.
        edits: arrays of the model that were changed since the load, by field name.
        counters: where the simulation was.
        plugins: one record per plugin.
        wrenches: what was applied to bodies and lasts, as plain values.
        mjhost: version that took it.
        data: a copy of the whole ``MjData``, for models with ``ipc`` or ``sleep``, whose state is
            more than the state vector; else ``None``. Such a checkpoint cannot be saved.
    """

    model: ModelIdentity
    layout: StateLayout
    state: Vector
    option_bytes: bytes
    option_values: Mapping[str, Any] | None = None
    edited_options: tuple[str, ...] = ()
    edits: ModelEdits = NONE
    counters: Counters
    plugins: tuple[PluginState, ...] = ()
    wrenches: Any = None
    mjhost: str = ""
    data: mujoco.MjData | None = None

    def __repr__(self) -> str:
        exact = "" if self.exact else ", inexact"
        return (
            f"<Checkpoint of {self.model.label}, step {self.counters.steps}, "
            f"{self.time:.9g} s{exact}>"
        )

    @property
    def time(self) -> float:
        """Simulation time, s sim."""
        return float(self.state[self.layout.component("time").start])

    @property
    def options(self) -> RuntimeOptionsSnapshot:
        """The live options; what this engine does not know of another's is left out.

        Raises:
            OptionsRejected: the engine could not run them.
        """
        if self.option_values is None:
            return decode(self.option_bytes)
        known = {field.name for field in descriptors()}
        values = {name: v for name, v in self.option_values.items() if name in known}
        snapshot = prepare_runtime_options(default_snapshot(), values).snapshot
        assert snapshot is not None, "problems are raised"
        return snapshot

    @property
    def engine(self) -> str:
        """Version of MuJoCo that it was taken with."""
        return self.model.engine

    @property
    def exact(self) -> bool:
        """Whether restoring it goes on to the same bits, as far as can be known."""
        return not self.inexact_because

    @property
    def inexact_because(self) -> tuple[str, ...]:
        """Who has state that is not in here, one sentence each; empty if nobody."""
        return tuple(
            f"plugin {plugin.name!r} ({plugin.type}) holds state and has neither save_state and "
            "load_state nor stateless = True"
            for plugin in self.plugins
            if not plugin.exact
        )

    def component(self, name: str) -> Vector:
        """A copy of one component of the state, by the engine's name: ``qpos``, ``act``, ….

        Raises:
            UnknownNameError: there is no such component.
        """
        return self.state[self.layout.component(name).span].copy()

    def with_components(self, values: Mapping[str, Iterable[float]]) -> Checkpoint:
        """The same checkpoint with other numbers in some components of the state.

        Args:
            values: all numbers of each component, by its name.

        Raises:
            UnknownNameError: there is no such component.
            InvalidArgumentError: another number of numbers.
            CheckpointError: the result is no sound state, or this one has a copy of the data.
        """
        if self.data is not None:
            raise CheckpointError(_WHOLE.format(asked="changing numbers of this checkpoint"))
        changed = self.state.copy()
        for name, given in values.items():
            component = self.layout.component(name)
            numbers = np.asarray(given, np.float64)
            if numbers.shape != (component.size,):
                raise InvalidArgumentError(
                    f"{name} has {component.size} numbers, got {numbers.size} of shape "
                    f"{numbers.shape}"
                )
            changed[component.span] = numbers
        self.layout.checked(changed)
        changed.flags.writeable = False
        return msgspec.structs.replace(self, state=changed)

    @property
    def names(self) -> tuple[str, ...]:
        """What ``named`` and ``with_named`` know: ``joint.knee.qpos``, ``actuator.m.ctrl``, …."""
        return tuple(self.model.slots)

    def named(self, name: str) -> Vector:
        """A copy of the numbers of one thing, such as ``joint.knee.qpos``.

        Raises:
            UnknownNameError: there is no such thing.
        """
        slot = self._slot(name)
        return self.component(slot.component)[slot.start : slot.start + slot.size]

    def with_named(self, values: Mapping[str, Any]) -> Checkpoint:
        """The same checkpoint with other numbers for some things.

        Args:
            values: per name one number, or as many as it has.

        Raises:
            UnknownNameError: there is no such thing.
            InvalidArgumentError: another number of numbers, or none.
            CheckpointError: the result is no sound state, or this one has a copy of the data.
        """
        components: dict[str, Vector] = {}
        for name, given in values.items():
            slot = self._slot(name)
            numbers = _numbers(name, given, slot.size)
            component = components.setdefault(slot.component, self.component(slot.component))
            component[slot.start : slot.start + slot.size] = numbers
        return self.with_components(components)

    def with_options(self, options: RuntimeOptionsSnapshot, edited: Iterable[str]) -> Checkpoint:
        """The same checkpoint with other options.

        Args:
            options: all of them.
            edited: names of those that count as changed since the load.

        Raises:
            CheckpointError: it was written by another engine version, which keeps them otherwise.
        """
        if self.option_values is not None:
            raise CheckpointError(
                f"options can be changed only with MuJoCo {self.engine}, which took the checkpoint"
            )
        raw = bytes(encode(options, self.option_bytes))
        return msgspec.structs.replace(self, option_bytes=raw, edited_options=tuple(edited))

    def _slot(self, name: str) -> Slot:
        slot = self.model.slots.get(name)
        if slot is None:
            raise UnknownNameError(
                f"the checkpoint knows nothing by the name {name!r}; "
                f"{did_you_mean(str(name), self.names)}"
            )
        return slot

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it to a file, wholly or not at all; a file that is there is replaced.

        Raises:
            CheckpointError: it has a copy of the data, which no file can hold.
            OSError: the file cannot be written; an older one is as it was.
        """
        if self.data is not None:
            raise CheckpointError(_WHOLE.format(asked="saving this checkpoint to a file"))
        from mjhost.checkpoint import persistence

        persistence.write(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Checkpoint:
        """Reads one from a file.

        Raises:
            CheckpointError: it is none, is damaged, or of a format that this version does not know.
            OSError: it cannot be read.
        """
        from mjhost.checkpoint import persistence

        return persistence.read(path)


def _numbers(name: str, given: Any, size: int) -> Vector:
    try:
        numbers = np.atleast_1d(np.asarray(given, np.float64))
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"{name} needs {size} numbers, got {given!r}") from None
    if numbers.shape != (size,):
        raise InvalidArgumentError(f"{name} has {size} numbers, got {numbers.size}")
    if name.endswith(("quat", ".qpos")) and size in (4, 7) and not numbers[-4:].any():
        raise InvalidArgumentError(f"the quaternion of {name} must not be zero")
    return numbers


_WHOLE = (
    "{asked} is not possible: with ipc or sleep the engine has state outside its state vector, and "
    "only a copy of the data in this process is exact; switch these options off, or keep the "
    "checkpoint in memory"
)
