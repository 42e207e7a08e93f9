"""What was changed in a live model since it was compiled.

Owns: finding the arrays of ``mjModel`` that differ from those of its pristine copy, and putting
them back into a model of the same sizes.
Invariants: everything that a step depends on is watched: every array but those of meshes, textures,
skins and their search trees, whose contents no host edits; and the statistics of the model. Options
are not: they have their own record. What ``unsafe`` and ``EditWatch.problem`` let pass cannot make
the engine reach beyond an array, whoever made it.
Threads: under the physics lock.
Not a goal: the options of the model, visual settings.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_left
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import mujoco
import numpy as np
import numpy.typing as npt
from mujoco.introspect import ast_nodes, structs

from mjhost.layout import address_of, inline_view, size_cell, structure

ModelEdits = Mapping[str, npt.NDArray[Any]]
"""Edited arrays of a model by the name of the field; ``stat`` as bytes."""

NONE: Final[ModelEdits] = MappingProxyType({})
STATISTICS: Final = "stat"

_UNWATCHED: Final = ("mesh_", "tex_", "skin_", "bvh_", "oct_", "names", "paths", "text_")
_BODY_BOXES: Final = "bvh_aabb"  # of which the part of the bodies comes first, and is watched

# Integers that are values; all others are indices, addresses and sizes. ``None``: any number.
_CONTACT_DIMS: Final = frozenset((1, 3, 4, 6))
_SIMPLE_GEOMS: Final = frozenset(
    int(getattr(mujoco.mjtGeom, f"mjGEOM_{word}"))
    for word in ("PLANE", "SPHERE", "CAPSULE", "ELLIPSOID", "CYLINDER", "BOX")
)
_ALL_GEOMS: Final = _SIMPLE_GEOMS | {
    int(getattr(mujoco.mjtGeom, f"mjGEOM_{word}")) for word in ("HFIELD", "MESH", "SDF")
}
_FRAMES: Final = frozenset(range(len(mujoco.mjtSameFrame.__members__)))
_VALUES: Final[Mapping[str, frozenset[int] | None]] = {
    "geom_type": _ALL_GEOMS,
    **dict.fromkeys(("geom_condim", "flex_condim", "pair_dim"), _CONTACT_DIMS),
    **dict.fromkeys(("body_sameframe", "geom_sameframe", "site_sameframe"), _FRAMES),
    **dict.fromkeys((f"{kind}_contype" for kind in ("body", "geom", "flex")), None),
    **dict.fromkeys((f"{kind}_conaffinity" for kind in ("body", "geom", "flex")), None),
    "geom_priority": None,
    "flex_priority": None,
}

_memcmp = ctypes.PyDLL(None).memcmp  # keeps the GIL: nothing may change under it
_memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_memcmp.restype = ctypes.c_int


class EditWatch:
    """Compares a model with its pristine copy, quickly if nothing was edited.

    Args:
        model: the live one.
        pristine: a copy of it, made when it was compiled and not changed since. Bytes between its
            arrays, which mean nothing, are made equal to those of ``model``.
    """

    __slots__ = ("_address", "_pristine_fields", "_pristine_stat", "_stat", "_stretches", "fields")

    def __init__(self, model: mujoco.MjModel, pristine: mujoco.MjModel) -> None:
        self.fields = _arrays(model)
        self._pristine_fields = _arrays(pristine)
        self._stat = inline_view(model, "mjModel", STATISTICS)
        self._pristine_stat = bytes(inline_view(pristine, "mjModel", STATISTICS))
        base = size_cell(model, "mjModel", "buffer").value
        twin = size_cell(pristine, "mjModel", "buffer").value
        self._address = address_of(model, "mjModel")
        runs = _stretches(self.fields, _other_starts(model, self.fields))
        self._stretches = [(start, start - base + twin, end - start) for start, end in runs]
        for start, its, size in self._stretches:
            _even_gaps(self.fields, start, size, its)

    @property
    def sees_none(self) -> bool:
        """Whether nothing differs now."""
        for ours, theirs, size in self._stretches:
            if _memcmp(ours, theirs, size):
                return False
        return self._stat.tobytes() == self._pristine_stat

    def read(self) -> ModelEdits:
        """Copies of what differs now."""
        if self.sees_none:
            return NONE
        found: dict[str, npt.NDArray[Any]] = {}
        for name, array in self.fields.items():
            if array.tobytes() != self._pristine_fields[name].tobytes():
                found[name] = _frozen(array)
        if self._stat != self._pristine_stat:
            found[STATISTICS] = _frozen(np.frombuffer(self._stat, np.uint8))
        return MappingProxyType(found)

    def write(self, edits: ModelEdits) -> bool:
        """Makes the model pristine but for ``edits``, which fit; whether anything changed."""
        before = self.read()
        if not edits and not before:
            return False
        for name in {*before, *edits} - {STATISTICS}:
            self.fields[name][...] = edits.get(name, self._pristine_fields[name])
        kept = edits.get(STATISTICS)
        self._stat[:] = self._pristine_stat if kept is None else kept.tobytes()
        return True

    def problem(self, edits: ModelEdits) -> str | None:
        """Why ``edits`` do not fit this model, or ``None``."""
        for name, array in edits.items():
            if name == STATISTICS:
                if array.dtype != np.uint8 or array.size != len(self._stat):
                    return "the statistics of the model have another size"
                continue
            own = self.fields.get(name)
            if own is None:
                return f"the model has no array {name!r}"
            if own.dtype != array.dtype or own.shape != array.shape:
                return (
                    f"{name} of the model is {own.dtype} of shape {own.shape}, the edited one "
                    f"{array.dtype} of shape {array.shape}"
                )
            if name == "geom_type" and self._needs_data(array):
                return "geom_type turns a geom into one that needs a mesh or height field"
        return None

    def _needs_data(self, types: npt.NDArray[Any]) -> bool:
        """Whether a geom gets a type that only the compiler can give it."""
        known = (types == self.fields["geom_type"]) | (types == self._pristine_fields["geom_type"])
        return not (known | np.isin(types, tuple(_SIMPLE_GEOMS))).all()


def unsafe(name: str, array: npt.NDArray[Any]) -> str | None:
    """Why an edit must not come from a file: the engine would follow it out of its arrays."""
    if array.dtype.kind in "fb" or name == STATISTICS:
        return None
    if name not in _VALUES:
        return "it is an index or a size, which belongs to the compiler"
    possible = _VALUES[name]
    if possible is not None and not np.isin(array, tuple(possible)).all():
        return f"its values are {', '.join(map(str, sorted(possible)))}"
    return None


def _arrays(model: mujoco.MjModel) -> dict[str, npt.NDArray[Any]]:
    """The watched arrays by name, without empty ones."""
    found = {}
    for field in structs.STRUCTS["mjModel"].fields:
        pointer = isinstance(getattr(field, "type", None), ast_nodes.PointerType)
        if not pointer or field.name.startswith(_UNWATCHED):
            continue
        array = getattr(model, field.name, None)
        if isinstance(array, np.ndarray) and array.size:
            found[field.name] = array
    boxes = model.bvh_aabb[: int(model.body_bvhnum.sum())]
    if boxes.size:
        found[_BODY_BOXES] = boxes
    return found


def _other_starts(model: mujoco.MjModel, fields: Mapping[str, npt.NDArray[Any]]) -> list[int]:
    """Addresses at which what is not watched begins, ascending."""
    mirror: Any = structure("mjModel").from_address(address_of(model, "mjModel"))
    starts = [
        getattr(mirror, field.name)
        for field in structs.STRUCTS["mjModel"].fields
        if isinstance(getattr(field, "type", None), ast_nodes.PointerType)
        and field.name not in (*fields, "buffer", "signature")
    ]
    boxes = fields.get(_BODY_BOXES)
    if boxes is not None:
        starts.append(boxes.ctypes.data + boxes.nbytes)
    return sorted(start for start in starts if start)


def _stretches(fields: Mapping[str, npt.NDArray[Any]], others: list[int]) -> list[tuple[int, int]]:
    """First and end address of runs of watched arrays with no other array in between."""
    spans = sorted((a.ctypes.data, a.ctypes.data + a.nbytes) for a in fields.values())
    runs: list[tuple[int, int]] = []
    for start, end in spans:
        if runs and bisect_left(others, runs[-1][1]) == bisect_left(others, start):
            runs[-1] = runs[-1][0], max(end, runs[-1][1])
        else:
            runs.append((start, end))
    return runs


def _even_gaps(fields: Mapping[str, npt.NDArray[Any]], start: int, size: int, twin: int) -> None:
    """Copies what lies between the arrays of a run into the same place of the twin."""
    at = start
    inside = sorted(
        (a.ctypes.data, a.ctypes.data + a.nbytes)
        for a in fields.values()
        if start <= a.ctypes.data < start + size
    )
    for first, end in inside:
        if first > at:
            ctypes.memmove(twin + at - start, at, first - at)
        at = max(at, end)


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    copied = array.copy()
    copied.flags.writeable = False
    return copied
