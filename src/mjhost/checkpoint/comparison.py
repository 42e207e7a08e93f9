"""What differs between two checkpoints, or two models, by name.

Owns: ``compare`` and ``Difference``.
Invariants: numbers are compared bit for bit; a difference says where the first one is, how many
there are, and how large the largest is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from mjhost.checkpoint import trees
from mjhost.checkpoint.record import Checkpoint


class Difference(msgspec.Struct, frozen=True):
    """One thing in which two checkpoints differ.

    Attributes:
        part: ``model``, ``state``, ``option``, ``edit``, ``counter``, ``plugin`` or ``wrenches``.
        name: of the component, option, array or plugin.
        text: how they differ, for people.
        largest: greatest difference of two numbers in it, NaN where none can be told.
    """

    part: str
    name: str
    text: str
    largest: float = math.nan

    def __str__(self) -> str:
        return f"{self.part} {self.name}: {self.text}" if self.name else f"{self.part}: {self.text}"


def compare(one: Checkpoint, other: Checkpoint) -> list[Difference]:
    """What ``other`` has otherwise than ``one``; empty if they are the same to the last bit."""
    found = [Difference("model", "", text) for text in other.model.differences(one.model)]
    if one.engine != other.engine:
        found.append(Difference("model", "engine", f"{one.engine} and {other.engine}"))
    found += _states(one, other)
    found += _options(one, other)
    found += _arrays("edit", one.edits, other.edits)
    found += _counters(one, other)
    found += _plugins(one, other)
    if _form(one.wrenches) != _form(other.wrenches):
        found.append(Difference("wrenches", "", "other forces and torques"))
    return found


def _states(one: Checkpoint, other: Checkpoint) -> Iterator[Difference]:
    yield from _arrays("state", _named_parts(one), _named_parts(other))


def _named_parts(checkpoint: Checkpoint) -> dict[str, npt.NDArray[Any]]:
    """The state by the names of things; components as a whole where something has no name."""
    parts: dict[str, npt.NDArray[Any]] = {}
    left = {part.name: np.ones(part.size, bool) for part in checkpoint.layout.components}
    for name, slot in checkpoint.model.slots.items():
        parts[name] = checkpoint.named(name)
        left[slot.component][slot.start : slot.start + slot.size] = False
    for component, unnamed in left.items():
        if unnamed.any():
            parts[component] = checkpoint.component(component)[unnamed]
    return parts


def _arrays(
    part: str, one: Mapping[str, npt.NDArray[Any]], other: Mapping[str, npt.NDArray[Any]]
) -> Iterator[Difference]:
    for name in dict.fromkeys((*one, *other)):
        if name not in other:
            yield Difference(part, name, "only in the first")
        elif name not in one:
            yield Difference(part, name, "only in the second")
        else:
            difference = array_difference(part, name, one[name], other[name])
            if difference is not None:
                yield difference


def array_difference(
    part: str, name: str, ours: npt.NDArray[Any], theirs: npt.NDArray[Any]
) -> Difference | None:
    """How two arrays of one name differ, or ``None``."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return Difference(part, name, f"shape {ours.shape} and {theirs.shape}")
    if ours.tobytes() == theirs.tobytes():
        return None
    flat, its = ours.ravel(), theirs.ravel()
    same = (flat == its) & (np.signbit(flat) == np.signbit(its)) if _signed(flat) else flat == its
    where = np.flatnonzero(~(same | (flat != flat) & (its != its)))  # noqa: PLR0124 - NaN
    if not where.size:
        return Difference(part, name, "other bits of numbers that are none")
    first = int(where[0])
    index = ", ".join(str(i) for i in np.unravel_index(first, ours.shape))
    text = f"[{index}] is {flat[first]!s} and {its[first]!s}"
    if where.size > 1:
        text += f"; {where.size} of {flat.size} differ"
    largest = math.nan
    if flat.dtype.kind in "fiu":
        with np.errstate(invalid="ignore", over="ignore"):
            largest = float(np.max(np.abs(flat[where].astype(float) - its[where].astype(float))))
        text += f", by {largest:.3g} at most" if where.size > 1 else f", by {largest:.3g}"
    return Difference(part, name, text, largest)


def _signed(array: npt.NDArray[Any]) -> bool:
    return array.dtype.kind == "f"


def _options(one: Checkpoint, other: Checkpoint) -> Iterator[Difference]:
    ours, theirs = option_values(one), option_values(other)
    for name in dict.fromkeys((*ours, *theirs)):
        here, there = ours.get(name, "unknown"), theirs.get(name, "unknown")
        if here != there:
            yield Difference("option", name, f"{here} and {there}")


def option_values(checkpoint: Checkpoint) -> Mapping[str, Any]:
    """The options by name, as they can be shown."""
    return checkpoint.option_values or checkpoint.options.as_dict()


def _counters(one: Checkpoint, other: Checkpoint) -> Iterator[Difference]:
    for name in one.counters.__struct_fields__:
        here, there = getattr(one.counters, name), getattr(other.counters, name)
        if here != there:
            yield Difference("counter", name, f"{here} and {there}")


def _plugins(one: Checkpoint, other: Checkpoint) -> Iterator[Difference]:
    ours = {plugin.name: plugin for plugin in one.plugins}
    theirs = {plugin.name: plugin for plugin in other.plugins}
    for name in dict.fromkeys((*ours, *theirs)):
        if name not in theirs:
            yield Difference("plugin", name, "only in the first")
        elif name not in ours:
            yield Difference("plugin", name, "only in the second")
        elif ours[name].type != theirs[name].type:
            yield Difference("plugin", name, f"{ours[name].type} and {theirs[name].type}")
        elif _form(ours[name].state) != _form(theirs[name].state):
            yield Difference("plugin", name, "another state")


def _form(value: Any) -> Any:
    """A state as something that can be compared bit for bit."""
    arrays: list[np.ndarray[Any, Any]] = []
    form = trees.packed(value, arrays)
    return repr(form), [(array.dtype.str, array.shape, array.tobytes()) for array in arrays]
