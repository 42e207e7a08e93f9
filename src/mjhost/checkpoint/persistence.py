"""Checkpoints to and from the bytes of a file.

Owns: what of a checkpoint goes where in a file.
Invariants: what was read is checked as far as it can be without the model: types, sizes, sound
numbers. Nothing in a file is ever run.
Failure: ``CheckpointError`` naming the file.
"""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import Any

import msgspec
import mujoco
import numpy as np

from mjhost.checkpoint import files, trees
from mjhost.checkpoint.edits import ModelEdits, unsafe
from mjhost.checkpoint.identity import ModelIdentity
from mjhost.checkpoint.record import Checkpoint, Counters, PluginState
from mjhost.checkpoint.vector import Component, StateLayout
from mjhost.errors import CheckpointError
from mjhost.options import layout as option_layout

_MOST_NUMBERS = 1 << 28  # of a state


class _Plugin(msgspec.Struct, frozen=True):
    name: str
    type: str
    state: Any
    saved: bool
    exact: bool


class _Content(msgspec.Struct, frozen=True):
    """What stands in the header. The state is array 0; then the edits, then those of plugins."""

    mjhost: str
    engine: str
    model: ModelIdentity
    components: tuple[tuple[str, int], ...]
    options: dict[str, Any]
    option_bytes: bytes
    edited_options: tuple[str, ...]
    edits: tuple[str, ...]
    counters: Counters
    plugins: tuple[_Plugin, ...]
    wrenches: Any


def write(checkpoint: Checkpoint, path: str | os.PathLike[str]) -> None:
    """Writes ``checkpoint`` to a file, wholly or not at all."""
    files.write(path, to_bytes(checkpoint))


def read(path: str | os.PathLike[str]) -> Checkpoint:
    """Reads a checkpoint from a file."""
    image = files.read(path)
    try:
        return from_bytes(image)
    except CheckpointError as error:
        raise CheckpointError(f"{os.fspath(path)} is no usable checkpoint: {error}") from error


def to_bytes(checkpoint: Checkpoint) -> bytes:
    """The bytes of a file.

    Raises:
        CheckpointError: it has what could not be read again: numbers that no sound state has, or
            edits of arrays that no file may bring.
    """
    arrays: list[np.ndarray[Any, Any]] = [
        checkpoint.layout.checked(checkpoint.state),
        *checkpoint.edits.values(),
    ]
    _check_edits(checkpoint.edits)
    content = _Content(
        mjhost=checkpoint.mjhost,
        engine=checkpoint.engine,
        model=checkpoint.model,
        components=tuple((part.name, part.size) for part in checkpoint.layout.components),
        options=dict(checkpoint.option_values or checkpoint.options.as_dict(checkpoint.engine)),
        option_bytes=checkpoint.option_bytes,
        edited_options=checkpoint.edited_options,
        edits=tuple(checkpoint.edits),
        counters=checkpoint.counters,
        plugins=tuple(_packed(plugin, arrays) for plugin in checkpoint.plugins),
        wrenches=trees.packed(checkpoint.wrenches, arrays),
    )
    return files.encode(content, arrays)


def _packed(plugin: PluginState, arrays: list[np.ndarray[Any, Any]]) -> _Plugin:
    state = trees.packed(plugin.state, arrays)
    return _Plugin(plugin.name, plugin.type, state, plugin.saved, plugin.exact)


def from_bytes(image: bytes) -> Checkpoint:
    """The checkpoint in the bytes of a file.

    Raises:
        CheckpointError: there is none.
    """
    content, arrays = files.decode(image, _Content)
    layout = _layout(content.components)
    if len(arrays) < 1 + len(content.edits):
        raise CheckpointError("arrays of it are missing")
    _check_slots(content.model, layout)
    state = layout.checked(arrays[0])
    edits = dict(zip(content.edits, arrays[1:], strict=False))
    _check_edits(edits)
    for array in (state, *edits.values()):
        array.flags.writeable = False
    foreign = content.engine != mujoco.mj_versionString()
    return Checkpoint(
        model=content.model,
        layout=layout,
        state=state,
        option_bytes=b"" if foreign else _option_bytes(content.option_bytes),
        option_values=content.options if foreign else None,
        edited_options=content.edited_options,
        edits=MappingProxyType(edits),
        counters=_counters(content.counters),
        plugins=tuple(_unpacked(plugin, arrays) for plugin in content.plugins),
        wrenches=trees.unpacked(content.wrenches, arrays),
        mjhost=content.mjhost,
    )


def _check_edits(edits: ModelEdits) -> None:
    for name, array in edits.items():
        problem = unsafe(name, array)
        if problem is not None:
            raise CheckpointError(f"its edit of {name} can be in no file: {problem}")


def _layout(sizes: tuple[tuple[str, int], ...]) -> StateLayout:
    start, components = 0, []
    for name, size in sizes:
        if not 0 <= size <= _MOST_NUMBERS:
            raise CheckpointError(f"a component of {size} numbers is not possible")
        components.append(Component(name, start, size))
        start += size
    names = [component.name for component in components]
    missing = {"time", "qpos", "qvel", "eq_active"} - set(names)
    if missing or len(set(names)) != len(names):
        raise CheckpointError(f"its state has no {', '.join(sorted(missing)) or 'single names'}")
    if start > _MOST_NUMBERS or dict(sizes)["time"] != 1:
        raise CheckpointError(f"a state of {start} numbers is not possible")
    return StateLayout(tuple(components))


def _check_slots(model: ModelIdentity, layout: StateLayout) -> None:
    sizes = {component.name: component.size for component in layout.components}
    for name, slot in model.slots.items():
        if not 0 <= slot.start <= slot.start + slot.size <= sizes.get(slot.component, -1):
            raise CheckpointError(f"its place of {name!r} lies outside the state")


def _option_bytes(raw: bytes) -> bytes:
    if len(raw) != option_layout.SIZE:
        raise CheckpointError(f"its options have {len(raw)} bytes, not {option_layout.SIZE}")
    return raw


def _counters(counters: Counters) -> Counters:
    sound = 0 <= counters.anchor_step <= counters.steps < 1 << 53
    if not sound or not np.isfinite([counters.anchor_time, counters.session_time]).all():
        raise CheckpointError(f"its counters are not possible: {counters}")
    return counters


def _unpacked(plugin: _Plugin, arrays: list[np.ndarray[Any, Any]]) -> PluginState:
    state = trees.unpacked(plugin.state, arrays)
    return PluginState(plugin.name, plugin.type, state, plugin.saved, plugin.exact)
