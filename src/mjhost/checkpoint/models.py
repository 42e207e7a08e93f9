"""What differs between two models, object by object.

Owns: ``compare_models``.
Invariants: things are the same if they have the same name; what has none is compared by its place,
if both models have as many. Indices and addresses are no properties: they follow from the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import mujoco
import numpy as np
import numpy.typing as npt
from mujoco.introspect import ast_nodes, structs

from mjhost.checkpoint.comparison import Difference, array_difference
from mjhost.checkpoint.identity import ModelIdentity, name_at
from mjhost.options import changed_fields
from mjhost.options.mapping import read_runtime_options

_OBJECTS: Final = {
    # prefix of the arrays: kind, start of the names
    "body": ("body", "name_bodyadr"),
    "jnt": ("joint", "name_jntadr"),
    "geom": ("geom", "name_geomadr"),
    "site": ("site", "name_siteadr"),
    "cam": ("camera", "name_camadr"),
    "light": ("light", "name_lightadr"),
    "mesh": ("mesh", "name_meshadr"),
    "mat": ("material", "name_matadr"),
    "eq": ("equality", "name_eqadr"),
    "tendon": ("tendon", "name_tendonadr"),
    "actuator": ("actuator", "name_actuatoradr"),
    "sensor": ("sensor", "name_sensoradr"),
    "key": ("keyframe", "name_keyadr"),
}
_INDEX: Final = ("adr", "id", "num", "_dataid", "_weldid", "_treeid", "_bvhadr")


def compare_models(one: mujoco.MjModel, other: mujoco.MjModel) -> list[Difference]:
    """What ``other`` has otherwise than ``one``."""
    identities = [ModelIdentity.of(model, "", "") for model in (one, other)]
    found = [
        Difference("model", "", text) for text in identities[1].object_differences(identities[0])
    ]
    here, there = read_runtime_options(one.opt), read_runtime_options(other.opt)
    for name in changed_fields(here, there):
        text = f"{getattr(here, name)} and {getattr(there, name)}"
        found.append(Difference("option", name, text))
    for prefix, (kind, starts) in _OBJECTS.items():
        found += _properties(one, other, prefix, kind, starts)
    return found


def _properties(
    one: mujoco.MjModel, other: mujoco.MjModel, prefix: str, kind: str, starts: str
) -> Iterator[Difference]:
    ours, theirs = _rows(one, starts), _rows(other, starts)
    same_count = len(getattr(one, starts)) == len(getattr(other, starts))
    common = [name for name in ours if name in theirs and (name[0] != "#" or same_count)]
    for field in _fields(prefix):
        here, there = getattr(one, field, ()), getattr(other, field, ())
        if not (_is_per_object(here, one, starts) and _is_per_object(there, other, starts)):
            continue
        for name in common:
            label = f"{name}.{field.removeprefix(prefix + '_')}"
            difference = _difference(kind, label, here[ours[name]], there[theirs[name]])
            if difference is not None:
                yield difference


def _difference(kind: str, label: str, here: Any, there: Any) -> Difference | None:
    ours, theirs = np.atleast_1d(here), np.atleast_1d(there)
    return array_difference(kind, label, ours, theirs)


def _rows(model: mujoco.MjModel, starts: str) -> dict[str, int]:
    """Index of each object by its name; one without is ``#`` and its index."""
    table, rows = bytes(model.names), {}
    for index, start in enumerate(getattr(model, starts)):
        rows[name_at(table, int(start)) or f"#{index}"] = index
    return rows


def _fields(prefix: str) -> list[str]:
    return [
        field.name
        for field in structs.STRUCTS["mjModel"].fields
        if isinstance(getattr(field, "type", None), ast_nodes.PointerType)
        and field.name.startswith(f"{prefix}_")
        and not field.name.endswith(_INDEX)
    ]


def _is_per_object(array: Any, model: mujoco.MjModel, starts: str) -> bool:
    rows: npt.NDArray[Any] = getattr(model, starts)
    return isinstance(array, np.ndarray) and array.ndim > 0 and len(array) == len(rows)
