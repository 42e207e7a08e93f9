"""Equality constraints by name; how the engine packs their numbers stays in here.

Invariants: a constraint is switched in the state (``eq_active``), its numbers are the model's.
Failure: ``InvalidArgumentError`` that names the constraint and its type; nothing changed.

A weld keeps a point of body 2, the anchor, and its orientation fixed in body 1. A connect keeps a
point of body 1 and one of body 2 together. Joint and tendon couplings are polynomials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import mujoco
import numpy as np

from mjhost.errors import InvalidArgumentError
from mjhost.state.names import Names, ObjectKind
from mjhost.state.numbers import flag, number, vector
from mjhost.state.poses import conjugate, position, product, quaternion, rotated, rotated_back
from mjhost.state.records import Array, EqualityState, frozen_copy

_OBJECTS: Final = {
    int(mujoco.mjtObj.mjOBJ_BODY): ObjectKind.BODY,
    int(mujoco.mjtObj.mjOBJ_SITE): ObjectKind.SITE,
    int(mujoco.mjtObj.mjOBJ_JOINT): ObjectKind.JOINT,
    int(mujoco.mjtObj.mjOBJ_TENDON): ObjectKind.TENDON,
    int(mujoco.mjtObj.mjOBJ_FLEX): ObjectKind.FLEX,
}
_SITE: Final = int(mujoco.mjtObj.mjOBJ_SITE)
# What can be set of which type, besides active, solref and solimp.
_PARTS: Final[dict[str, tuple[str, ...]]] = {
    "weld": ("anchor", "pos", "quat", "torquescale", "hold"),
    "connect": ("anchor", "anchor2", "hold"),
    "joint": ("polycoef",),
    "tendon": ("polycoef",),
}


def word(model: mujoco.MjModel, equality: int) -> str:
    """MuJoCo's word for the type of a constraint."""
    kind = mujoco.mjtEq(int(model.eq_type[equality]))
    return str(kind.name).removeprefix("mjEQ_").lower()


def equality_state(
    model: mujoco.MjModel, data: mujoco.MjData, names: Names, equality: int, name: str
) -> EqualityState:
    """What a constraint is and whether it acts."""
    kind = word(model, equality)
    numbers = model.eq_data[equality]
    of_bodies = kind in ("weld", "connect") and model.eq_objtype[equality] != _SITE
    weld, connect = of_bodies and kind == "weld", of_bodies and kind == "connect"
    return EqualityState(
        name=name,
        type=kind,
        active=bool(data.eq_active[equality]),
        objects=tuple(_objects(model, names, equality)),
        anchor=frozen_copy(numbers[:3]) if of_bodies else None,
        anchor2=frozen_copy(numbers[3:6]) if connect else None,
        pos=frozen_copy(_relative_pos(numbers)) if weld else None,
        quat=frozen_copy(numbers[6:10]) if weld else None,
        torquescale=float(numbers[10]) if kind == "weld" else None,
        polycoef=frozen_copy(numbers[:5]) if kind in ("joint", "tendon") else None,
        solref=frozen_copy(model.eq_solref[equality]),
        solimp=frozen_copy(model.eq_solimp[equality]),
    )


def _objects(model: mujoco.MjModel, names: Names, equality: int) -> list[str]:
    kind = _OBJECTS.get(int(model.eq_objtype[equality]))
    ids = (int(model.eq_obj1id[equality]), int(model.eq_obj2id[equality]))
    return [names.name(kind, index) for index in ids if kind is not None and index >= 0]


def _relative_pos(numbers: Any) -> Array:
    """Position of body 2 in body 1 that a weld asks for: of its frame, not of its anchor."""
    pos: Array = numbers[3:6] - rotated(np.array(numbers[:3]), np.array(numbers[6:10]))
    return pos


def plan_equality(
    model: mujoco.MjModel, data: mujoco.MjData, names: Names, name: str, change: dict[str, Any]
) -> Callable[[], bool]:
    """What changes the constraint ``name``, and says whether its numbers changed.

    Args:
        model: the model.
        data: its data, with poses of the present state.
        names: the model's names.
        name: the constraint.
        change: what was given, by the names of ``set_equality``.
    """
    equality = names.id(ObjectKind.EQUALITY, name)
    kind = word(model, equality)
    _check_parts(kind, name, change, by_sites=model.eq_objtype[equality] == _SITE)
    of = f"of {kind} {name!r}"
    numbers = np.array(model.eq_data[equality])
    if kind in ("weld", "connect"):
        plan = _plan_weld if kind == "weld" else _plan_connect
        plan(_present(model, data, equality), numbers, change, of)
    elif "polycoef" in change:
        numbers[:5] = vector(change["polycoef"], 5, f"polycoef {of}")
    solref, solimp = _solver(model, equality, change, of)
    active = flag(change["active"], f"active {of}") if "active" in change else None

    def write() -> bool:
        before = _bytes(model, equality)
        model.eq_data[equality] = numbers
        model.eq_solref[equality], model.eq_solimp[equality] = solref, solimp
        if active is not None:
            data.eq_active[equality] = active
        return _bytes(model, equality) != before

    return write


@contextmanager
def kept_numbers(model: mujoco.MjModel) -> Iterator[None]:
    """Around ``mj_setConst``, which moves the second point of every connect to where it began."""
    before = np.array(model.eq_data)
    yield
    model.eq_data[...] = before


def _bytes(model: mujoco.MjModel, equality: int) -> bytes:
    fields = (model.eq_data, model.eq_solref, model.eq_solimp)
    return b"".join(field[equality].tobytes() for field in fields)


def _check_parts(kind: str, name: str, change: dict[str, Any], *, by_sites: bool) -> None:
    if not change:
        raise InvalidArgumentError(
            f"equality {name!r} was to be set, and nothing was given; give active, or its numbers"
        )
    possible = _PARTS.get(kind, ())
    if by_sites:
        possible = tuple(part for part in possible if part == "torquescale")
    wrong = [part for part in change if part not in (*possible, "active", "solref", "solimp")]
    if wrong:
        where = " between sites" if by_sites else ""
        raise InvalidArgumentError(
            f"{kind} {name!r}{where} has no {', '.join(wrong)}; it has active, "
            f"{', '.join((*possible, 'solref', 'solimp'))}"
        )


def _plan_weld(
    present: tuple[Array, Array], numbers: Array, change: dict[str, Any], of: str
) -> None:
    pos, quat = _relative_pos(numbers), np.array(numbers[6:10])
    if change.get("hold") is not None and flag(change["hold"], f"hold {of}"):
        pos, quat = present
    if change.get("anchor") is not None:
        numbers[:3] = position(change["anchor"], f"anchor {of}")
    if change.get("pos") is not None:
        pos = position(change["pos"], f"pos {of}")
    if change.get("quat") is not None:
        quat = quaternion(change["quat"], f"quat {of}")
    numbers[6:10] = quat
    numbers[3:6] = pos + rotated(np.array(numbers[:3]), quat)
    if change.get("torquescale") is not None:
        numbers[10] = number(change["torquescale"], f"torquescale {of}")


def _plan_connect(
    present: tuple[Array, Array], numbers: Array, change: dict[str, Any], of: str
) -> None:
    hold = change.get("hold") is not None and flag(change["hold"], f"hold {of}")
    if change.get("anchor") is not None:
        numbers[:3] = position(change["anchor"], f"anchor {of}")
        hold = hold or change.get("anchor2") is None
    if change.get("anchor2") is not None:
        numbers[3:6] = position(change["anchor2"], f"anchor2 {of}")
    elif hold:
        pos, quat = present
        numbers[3:6] = rotated_back(np.array(numbers[:3]) - pos, quat)


def _present(model: mujoco.MjModel, data: mujoco.MjData, equality: int) -> tuple[Array, Array]:
    """Pose of body 2 in body 1, in the poses of ``data``."""
    one, two = int(model.eq_obj1id[equality]), int(model.eq_obj2id[equality])
    quat = product(conjugate(np.array(data.xquat[one])), np.array(data.xquat[two]))
    pos = rotated_back(data.xpos[two] - data.xpos[one], np.array(data.xquat[one]))
    return pos, quat / np.linalg.norm(quat)


def _solver(
    model: mujoco.MjModel, equality: int, change: dict[str, Any], of: str
) -> tuple[Array, Array]:
    solref, solimp = np.array(model.eq_solref[equality]), np.array(model.eq_solimp[equality])
    if change.get("solref") is not None:
        solref[:] = vector(change["solref"], 2, f"solref {of}")
        if (solref[0] > 0) != (solref[1] > 0):
            raise InvalidArgumentError(
                f"solref {of} must be two positive numbers (time constant, damping ratio) or two "
                f"that are not (stiffness, damping), got {solref.tolist()}"
            )
    if change.get("solimp") is not None:
        solimp[:] = vector(change["solimp"], solimp.size, f"solimp {of}")
    return solref, solimp
