"""Which model a state belongs to.

Owns: the identity of a compiled model, and what tells two models apart, by name.
Invariants: the identity is that of the model as it was compiled. What was edited since does not
change it; a checkpoint carries that separately.
Threads: plain values.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import mujoco
import numpy as np
import numpy.typing as npt
from mujoco.introspect import ast_nodes, structs

from mjhost.layout import library, model_sizes

T = TypeVar("T")

_SHOWN: Final = 8  # differences that a refusal lists

# Slots of engine plugins, whose names are among the objects, and paths of files.
_PASSING: Final = frozenset({"plugin", "paths", "npaths"})


class Slot(NamedTuple):
    """Where a thing with a name has numbers in the state.

    Attributes:
        component: of the state vector.
        start: index of its first number in the component.
        size: how many it has.
    """

    component: str
    start: int
    size: int


class ModelIdentity(msgspec.Struct, frozen=True):
    """A compiled model, as far as a checkpoint has to know it.

    Attributes:
        label: what its host called it: a path, or a description.
        content_hash: SHA-256 of its MJB bytes, hexadecimal; another engine version gives another.
        engine: version of MuJoCo that compiled it.
        sizes: the size members of ``mjModel`` that are not 0, by name.
        objects: per kind of object one ``(name, type)`` each, in the order of their indices.
        slots: where things have their numbers, by names such as ``joint.knee.qpos``.
        digests: per array of ``mjModel`` the start of the SHA-256 of its bytes, hexadecimal.
    """

    label: str
    content_hash: str
    engine: str
    sizes: dict[str, int]
    objects: dict[str, tuple[tuple[str, str], ...]]
    slots: dict[str, Slot]
    digests: dict[str, str]

    @classmethod
    def of(cls, model: mujoco.MjModel, label: str, content_hash: str) -> ModelIdentity:
        """The identity of ``model``, which nobody has edited."""
        return cls(
            label=label,
            content_hash=content_hash,
            engine=mujoco.mj_versionString(),
            sizes={name: size for name in model_sizes() if (size := int(getattr(model, name, 0)))},
            objects={kind: tuple(found) for kind, found in _objects(model) if found},
            slots=dict(_slots(model)),
            digests=dict(_digests(model)),
        )

    def is_same(self, other: ModelIdentity) -> bool:
        """Whether the state of one means the same in the other, bit for bit.

        Where files of meshes lie, and in which order this process registered engine plugins, is
        part of ``content_hash`` and no part of this.
        """
        return self.content_hash == other.content_hash or (
            self.objects == other.objects and self._content == other._content
        )

    @property
    def _content(self) -> tuple[dict[str, int], dict[str, str]]:
        return _lasting(self.sizes), _lasting(self.digests)

    def is_like(self, other: ModelIdentity) -> bool:
        """Whether both have the same objects, whatever the values of their properties."""
        return self.objects == other.objects

    def object_differences(self, other: ModelIdentity) -> list[str]:
        """Which objects ``self`` has otherwise than ``other``."""
        return list(_object_differences(self, other))

    def differences(self, other: ModelIdentity) -> list[str]:
        """What ``self`` has otherwise than ``other``, most telling first."""
        found = self.object_differences(other)
        (sizes, digests), (its_sizes, its_digests) = self._content, other._content
        if not found:
            found = [
                f"{name} is {sizes.get(name, 0)}, not {its_sizes.get(name, 0)}"
                for name in dict.fromkeys((*sizes, *its_sizes))
                if sizes.get(name, 0) != its_sizes.get(name, 0)
            ]
        arrays = [
            name
            for name in dict.fromkeys((*digests, *its_digests))
            if digests.get(name) != its_digests.get(name)
        ]
        if arrays and not found:
            found.append(f"the same objects with other values in {_list(arrays)}")
        return found


def _lasting(values: dict[str, T]) -> dict[str, T]:
    """What does not depend on the process or the place in which the model was compiled."""
    return {
        name: value
        for name, value in values.items()
        if name not in _PASSING and not name.endswith("_pathadr")
    }


def told(differences: list[str]) -> str:
    """The first differences as text."""
    return _list(differences, "; ") if differences else "no difference that has a name"


def _list(words: list[str], comma: str = ", ") -> str:
    more = len(words) - _SHOWN
    return comma.join(words[:_SHOWN]) + (f"{comma}and {more} more" if more > 0 else "")


def _object_differences(one: ModelIdentity, other: ModelIdentity) -> Iterator[str]:
    for kind in dict.fromkeys((*one.objects, *other.objects)):
        ours, theirs = one.objects.get(kind, ()), other.objects.get(kind, ())
        if ours == theirs:
            continue
        here, there = dict(ours), dict(theirs)
        told_of = False
        for name in dict.fromkeys((*here, *there)):
            line = _object_difference(kind, name, here.get(name), there.get(name))
            if line:
                told_of = True
                yield line
        if not told_of:
            order = "in another order" if len(ours) == len(theirs) else f"{len(ours)}"
            yield f"{kind}s {order}, not {len(theirs)}" if order[0] != "i" else f"{kind}s {order}"


def _object_difference(kind: str, name: str, here: str | None, there: str | None) -> str | None:
    if here == there:
        return None
    shown = repr(name) if name else "without a name"
    if there is None:
        return f"{kind} {shown} is new"
    if here is None:
        return f"{kind} {shown} is missing"
    return f"{kind} {shown} is {here}, not {there}"


# -- what a model consists of ----------------------------------------------------------------------

_KINDS: Final[dict[str, tuple[str, str, str, str]]] = {
    # kind: number, start of its names, array of its types, prefix of their names
    "body": ("nbody", "name_bodyadr", "", ""),
    "joint": ("njnt", "name_jntadr", "jnt_type", "mjtJoint"),
    "geom": ("ngeom", "name_geomadr", "geom_type", "mjtGeom"),
    "actuator": ("nu", "name_actuatoradr", "actuator_trntype", "mjtTrn"),
    "sensor": ("nsensor", "name_sensoradr", "sensor_type", "mjtSensor"),
    "equality": ("neq", "name_eqadr", "eq_type", "mjtEq"),
    "tendon": ("ntendon", "name_tendonadr", "", ""),
    "site": ("nsite", "name_siteadr", "", ""),
    "flex": ("nflex", "name_flexadr", "", ""),
    "keyframe": ("nkey", "name_keyadr", "", ""),
}


def _objects(model: mujoco.MjModel) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    table = bytes(model.names)
    for kind, (number, starts, types, enum) in _KINDS.items():
        # An actuator of several inputs makes ``nu`` larger than the number of actuators.
        addresses = getattr(model, starts)
        count = min(int(getattr(model, number)), len(addresses))
        names = [name_at(table, int(addresses[index])) for index in range(count)]
        words = [""] * count
        if types:
            words = [_word(enum, int(value)) for value in getattr(model, types)[:count]]
        yield kind, list(zip(names, words, strict=True))
    yield "engine plugin", list(_engine_plugins(model, table))


def name_at(table: bytes, start: int) -> str:
    """The name that begins at ``start`` of a model's table of names."""
    return table[start : table.index(b"\0", start)].decode("utf-8", "backslashreplace")


def _word(enum: str, value: int) -> str:
    return str(getattr(mujoco, enum)(value).name).split("_", 1)[-1].lower()


def _engine_plugins(model: mujoco.MjModel, table: bytes) -> Iterator[tuple[str, str]]:
    at_slot = library().mjp_getPluginAtSlot
    at_slot.argtypes, at_slot.restype = (ctypes.c_int,), ctypes.c_void_p
    for index in range(model.nplugin):
        address = at_slot(int(model.plugin[index]))
        # The name is the first member of the engine's record.
        kind = ctypes.c_char_p.from_address(address).value if address else None
        shape = f"{(kind or b'unknown').decode()} with {int(model.plugin_statenum[index])} states"
        yield name_at(table, int(model.name_pluginadr[index])), shape


_QPOS: Final = {"free": 7, "ball": 4}
_QVEL: Final = {"free": 6, "ball": 3}


def _slots(model: mujoco.MjModel) -> Iterator[tuple[str, Slot]]:
    """Where every named thing has its numbers."""
    table = bytes(model.names)

    def named(starts: npt.NDArray[Any], kind: str) -> Iterator[tuple[int, str]]:
        for index, start in enumerate(starts):
            name = name_at(table, int(start))
            if name:
                yield index, f"{kind}.{name}"

    for joint, name in named(model.name_jntadr, "joint"):
        word = _word("mjtJoint", int(model.jnt_type[joint]))
        qpos, qvel = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
        yield f"{name}.qpos", Slot("qpos", qpos, _QPOS.get(word, 1))
        yield f"{name}.qvel", Slot("qvel", qvel, _QVEL.get(word, 1))
    for actuator, name in named(model.name_actuatoradr, "actuator"):
        yield f"{name}.ctrl", Slot("ctrl", *_inputs(model, actuator))
        if model.actuator_actnum[actuator] > 0:
            start, size = int(model.actuator_actadr[actuator]), int(model.actuator_actnum[actuator])
            yield f"{name}.act", Slot("act", start, size)
    for body, name in named(model.name_bodyadr, "body"):
        yield f"{name}.xfrc_applied", Slot("xfrc_applied", 6 * body, 6)
        mocap = int(model.body_mocapid[body])
        if mocap >= 0:
            yield f"{name}.mocap_pos", Slot("mocap_pos", 3 * mocap, 3)
            yield f"{name}.mocap_quat", Slot("mocap_quat", 4 * mocap, 4)
    for equality, name in named(model.name_eqadr, "equality"):
        yield f"{name}.active", Slot("eq_active", equality, 1)


def _inputs(model: mujoco.MjModel, actuator: int) -> tuple[int, int]:
    """Index of an actuator's first control and their number; 3.15 knows one each."""
    starts, numbers = (getattr(model, f"actuator_ctrl{part}", None) for part in ("adr", "num"))
    if starts is None or numbers is None:
        return actuator, 1
    return int(starts[actuator]), int(numbers[actuator])


def _digests(model: mujoco.MjModel) -> Iterator[tuple[str, str]]:
    for field in structs.STRUCTS["mjModel"].fields:
        if not isinstance(getattr(field, "type", None), ast_nodes.PointerType):
            continue
        array = getattr(model, field.name, None)
        content = array if isinstance(array, bytes) else None
        if isinstance(array, np.ndarray) and array.size:
            content = np.ascontiguousarray(array).tobytes()
        if content:
            yield field.name, hashlib.sha256(content).hexdigest()[:16]
    opt = hashlib.sha256(repr(_options(model)).encode())
    yield "opt", opt.hexdigest()[:16]


def _options(model: mujoco.MjModel) -> list[str]:
    names = (name for name in dir(model.opt) if not name.startswith("_"))
    return [f"{name}={getattr(model.opt, name)!r}" for name in names]
