"""What in a model has a state of its own, and by what it is known.

Owns: keys that mean the same thing in two models, and where its numbers are in ``mjData``.
Invariants: what has a name is known by kind and name. What has none is known by where it is: a body
by its parent, a joint by its body, an actuator, equality or sensor by what it is about; and then by
its place among as many nameless ones as there are. If their number differs, which of them is which
is anybody's guess: then they are strangers. Nothing is known by its index.
Threads: reads names, addresses and types of a model, which never change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import mujoco
import numpy as np

from mjhost.state.joints import TYPES

Key: TypeAlias = tuple[Any, ...]
_Where: TypeAlias = tuple[Key, str]  # what something nameless belongs to: its key and its label

_OBJECTS: Final = {
    int(getattr(mujoco.mjtObj, f"mjOBJ_{word.upper()}")): (word, f"name_{short}adr")
    for word, short in (("site", "site"), ("tendon", "tendon"), ("geom", "geom"), ("flex", "flex"))
}
_BODY: Final = (int(mujoco.mjtObj.mjOBJ_BODY), int(mujoco.mjtObj.mjOBJ_XBODY))
_JOINT: Final = int(mujoco.mjtObj.mjOBJ_JOINT)
_SITE: Final = int(mujoco.mjtObj.mjOBJ_SITE)
_TENDON: Final = int(mujoco.mjtObj.mjOBJ_TENDON)
_TARGETS: Final = {  # of an actuator, by mjtTrn
    int(mujoco.mjtTrn.mjTRN_JOINT): _JOINT,
    int(mujoco.mjtTrn.mjTRN_JOINTINPARENT): _JOINT,
    int(mujoco.mjtTrn.mjTRN_SLIDERCRANK): _SITE,
    int(mujoco.mjtTrn.mjTRN_TENDON): _TENDON,
    int(mujoco.mjtTrn.mjTRN_SITE): _SITE,
    int(mujoco.mjtTrn.mjTRN_BODY): _BODY[0],
}
_CONSTRAINED: Final = {  # by mjtEq, where eq_objtype does not say it
    int(mujoco.mjtEq.mjEQ_JOINT): _JOINT,
    int(mujoco.mjtEq.mjEQ_TENDON): _TENDON,
}
_STRETCHES: Final = (  # array, its size, where things say that their part of it begins
    ("history", "nhistory", ("actuator_historyadr", "sensor_historyadr")),
    ("plastic", "nplastic", ("jnt_plasticadr", "tendon_plasticadr", "flex_plasticadr")),
)


class Part(NamedTuple):
    """Numbers of one thing in one array of ``mjData``.

    Attributes:
        array: name of the array.
        start: its first row.
        size: how many rows.
    """

    array: str
    start: int
    size: int


class Thing(NamedTuple):
    """Something with a state of its own.

    Attributes:
        label: kind and name, for people.
        shape: what has to be the same for the state to mean the same.
        parts: where its numbers are.
    """

    label: str
    shape: Key
    parts: tuple[Part, ...]


def things(model: mujoco.MjModel) -> dict[Key, Thing]:
    """Everything with a state, by what it is known by, in the model's order."""
    return dict(_Inventory(model).all())


class _Inventory:
    def __init__(self, model: mujoco.MjModel) -> None:
        self._model = model
        self._table = bytes(model.names)
        self._ends = {array: _ends(model, size, starts) for array, size, starts in _STRETCHES}
        self._bodies = self._known_bodies()
        bodies = [self._bodies[int(body)] for body in model.jnt_bodyid]
        self._joints = _known("joint", self._names("name_jntadr"), bodies)

    def all(self) -> Iterator[tuple[Key, Thing]]:
        yield from self._of_bodies()
        yield from self._of_joints()
        yield from self._of_actuators()
        yield from self._of_equalities()
        yield from self._of_sensors()
        yield from self._of_plugins()
        for kind, starts in (("tendon", "tendon_plasticadr"), ("flex", "flex_plasticadr")):
            yield from self._of_plastic(kind, starts)

    # -- what they are known by --------------------------------------------------------------

    def _names(self, starts: str) -> list[str]:
        return [self._name(int(start)) for start in getattr(self._model, starts)]

    def _name(self, start: int) -> str:
        return self._table[start : self._table.index(b"\0", start)].decode("utf-8", "replace")

    def _known_bodies(self) -> list[_Where]:
        names, parents = self._names("name_bodyadr"), self._model.body_parentid.tolist()
        total = Counter(p for name, p in zip(names, parents, strict=True) if not name)
        seen: Counter[int] = Counter()
        found: list[_Where] = []
        for name, parent in zip(names, parents, strict=True):
            if name or not found:
                found.append((("body", name), f"body {name}"))
                continue
            key, label = found[parent]
            place = seen[parent]
            seen[parent] += 1
            found.append((("body", key, place, total[parent]), f"body {place} of {label}"))
        return found

    def _object(self, kind: int, index: int) -> _Where:
        """What something is known by that others are about."""
        if index < 0:
            return ("nothing",), "nothing"
        if kind in _BODY:
            return self._bodies[index]
        if kind == _JOINT:
            return self._joints[index]
        word, starts = _OBJECTS.get(kind, ("object", ""))
        name = self._name(int(getattr(self._model, starts)[index])) if starts else ""
        return (word, name or None), f"{word} {name or '(nameless)'}"

    # -- things ------------------------------------------------------------------------------

    def _of_bodies(self) -> Iterator[tuple[Key, Thing]]:
        mocap = self._model.body_mocapid.tolist()
        for body, (key, label) in enumerate(self._bodies[1:], 1):
            parts = [Part("xfrc_applied", body, 1)]
            if mocap[body] >= 0:
                parts += [Part(array, mocap[body], 1) for array in ("mocap_pos", "mocap_quat")]
            yield key, Thing(label, (len(parts),), tuple(parts))

    def _of_joints(self) -> Iterator[tuple[Key, Thing]]:
        model = self._model
        starts = zip(model.jnt_type, model.jnt_qposadr, model.jnt_dofadr, strict=True)
        for joint, (kind, qpos, dof) in enumerate(starts):
            key, label = self._joints[joint]
            of = TYPES[int(kind)]
            parts = [Part("qpos", int(qpos), of.nq)]
            parts += [
                Part(array, int(dof), of.nv) for array in ("qvel", "qacc_warmstart", "qfrc_applied")
            ]
            parts += self._stretch("plastic", "jnt_plasticadr", joint)
            yield key, Thing(label, (of.word, _sizes(parts)), tuple(parts))

    def _of_actuators(self) -> Iterator[tuple[Key, Thing]]:
        names = self._names("name_actuatoradr")
        known = _known("actuator", names, [self._target(i) for i in range(len(names))])
        for actuator, (key, label) in enumerate(known):
            parts = [self._inputs(actuator)]
            act, count = (int(getattr(self._model, f"actuator_act{w}")[actuator]) for w in _PLACE)
            if count > 0:
                parts.append(Part("act", act, count))
            parts += self._stretch("history", "actuator_historyadr", actuator)
            yield key, Thing(label, (self._mechanism(actuator), _sizes(parts)), tuple(parts))

    def _target(self, actuator: int) -> _Where:
        kind = int(np.ravel(self._model.actuator_trntype[actuator])[0])
        index = int(np.ravel(self._model.actuator_trnid[actuator])[0])
        return self._object(_TARGETS.get(kind, -1), index)

    def _mechanism(self, actuator: int) -> bytes:
        """What a control of it means: a torque, a position, a velocity, ..."""
        fields = ("trntype", "dyntype", "gaintype", "biastype")
        return b"".join(getattr(self._model, f"actuator_{f}")[actuator].tobytes() for f in fields)

    def _inputs(self, actuator: int) -> Part:
        """Its controls; before MuJoCo 4 there is one each."""
        starts, counts = (getattr(self._model, f"actuator_ctrl{w}", None) for w in _PLACE)
        if starts is None or counts is None:
            return Part("ctrl", actuator, 1)
        return Part("ctrl", int(starts[actuator]), int(counts[actuator]))

    def _of_equalities(self) -> Iterator[tuple[Key, Thing]]:
        names, kinds = self._names("name_eqadr"), self._model.eq_type.tolist()
        known = _known("equality", names, [self._constrained(i) for i in range(len(names))])
        for equality, (key, label) in enumerate(known):
            yield key, Thing(label, (kinds[equality],), (Part("eq_active", equality, 1),))

    def _constrained(self, equality: int) -> _Where:
        model = self._model
        kind = int(model.eq_type[equality])
        about = _CONSTRAINED.get(kind, int(model.eq_objtype[equality]))
        ends = [
            self._object(about, int(ids[equality])) for ids in (model.eq_obj1id, model.eq_obj2id)
        ]
        label = " and ".join(label for _, label in ends)
        return (kind, *(key for key, _ in ends)), label

    def _of_sensors(self) -> Iterator[tuple[Key, Thing]]:
        model = self._model
        about = [
            self._object(int(kind), int(index))
            for kind, index in zip(model.sensor_objtype, model.sensor_objid, strict=True)
        ]
        known = _known("sensor", self._names("name_sensoradr"), about)
        for sensor, (key, label) in enumerate(known):
            parts = self._stretch("history", "sensor_historyadr", sensor)
            if parts:
                shape = (int(model.sensor_type[sensor]), int(model.sensor_dim[sensor]))
                yield key, Thing(label, (*shape, _sizes(parts)), tuple(parts))

    def _of_plugins(self) -> Iterator[tuple[Key, Thing]]:
        model = self._model
        kinds: list[_Where] = [(("slot", slot), "its kind") for slot in model.plugin.tolist()]
        known = _known("engine plugin", self._names("name_pluginadr"), kinds)
        counts, starts = model.plugin_statenum.tolist(), model.plugin_stateadr.tolist()
        for plugin, (key, label) in enumerate(known):
            if counts[plugin]:
                part = Part("plugin_state", starts[plugin], counts[plugin])
                yield key, Thing(label, (int(model.plugin[plugin]), part.size), (part,))

    def _of_plastic(self, kind: str, starts: str) -> Iterator[tuple[Key, Thing]]:
        names = self._names(f"name_{kind}adr")
        everywhere: _Where = (("model",), "the model")
        known = _known(kind, names, [everywhere] * len(names))
        for index, (key, label) in enumerate(known):
            parts = self._stretch("plastic", starts, index)
            if parts:
                yield key, Thing(label, (_sizes(parts),), tuple(parts))

    def _stretch(self, array: str, starts: str, index: int) -> list[Part]:
        addresses, ends = getattr(self._model, starts, None), self._ends[array]
        if addresses is None or not ends or int(addresses[index]) < 0:
            return []
        start = int(addresses[index])
        return [Part(array, start, ends[start] - start)]


_PLACE: Final = ("adr", "num")


def _sizes(parts: Iterable[Part]) -> Key:
    return tuple((part.array, part.size) for part in parts)


def _known(kind: str, names: Sequence[str], where: Sequence[_Where]) -> list[_Where]:
    """Key and label of each thing of a kind."""
    total = Counter(key for name, (key, _) in zip(names, where, strict=True) if not name)
    seen: Counter[Key] = Counter()
    found: list[_Where] = []
    for name, (key, label) in zip(names, where, strict=True):
        if name:
            found.append(((kind, name), f"{kind} {name}"))
            continue
        place = seen[key]
        seen[key] += 1
        found.append(((kind, key, place, total[key]), f"{kind} {place} of {label}"))
    return found


def _ends(model: mujoco.MjModel, size: str, starts: tuple[str, ...]) -> dict[int, int]:
    """Where each stretch of an array ends, by where it begins: before the next one."""
    total = int(getattr(model, size, 0))
    found = [getattr(model, name, None) for name in starts]
    begins = sorted({int(a) for adr in found if adr is not None for a in adr if int(a) >= 0})
    return dict(zip(begins, [*begins[1:], total], strict=True)) if total else {}
