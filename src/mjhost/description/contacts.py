"""What of a robot touches what: links, their shapes, and neighbours.

Invariants: shapes to be seen are in ``VISUAL_GROUP`` and touch nothing; shapes that collide are in
``COLLISION_GROUP``. Links that a joint connects do not collide, as the engine has it for all but
those whose parent stands still.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Final

import mujoco

from mjhost.description.report import NoteKind, Notes
from mjhost.description.urdf import Prepared

VISUAL_GROUP: Final = 2
COLLISION_GROUP: Final = 3

_PRIMITIVES: Final = frozenset(
    int(getattr(mujoco.mjtGeom, f"mjGEOM_{word}"))
    for word in ("SPHERE", "CAPSULE", "ELLIPSOID", "CYLINDER", "BOX")
)


def sort_geoms(spec: mujoco.MjSpec, prepared: Prepared, notes: Notes) -> None:
    """Groups what is seen and what collides; a link without the latter lends its primitives."""
    for body in spec.bodies:
        seen = [geom for geom in body.geoms if is_visual(geom)]
        for geom in body.geoms:
            geom.group = VISUAL_GROUP if is_visual(geom) else COLLISION_GROUP
        if body.name in prepared.weighed_by_shape:
            for geom in seen:
                geom.mass = 0
        if body.name in prepared.visual_only:
            _lend(body, seen, notes)


def _lend(body: mujoco.MjsBody, seen: list[mujoco.MjsGeom], notes: Notes) -> None:
    lent = [geom for geom in seen if int(geom.type) in _PRIMITIVES]
    for geom in lent:
        body.add_geom(
            type=geom.type,
            size=geom.size,
            pos=geom.pos,
            quat=geom.quat,
            group=COLLISION_GROUP,
            density=0,
        )
    if lent:
        text = f"has nothing that collides: {len(lent)} visual primitive(s) do"
        notes.add(NoteKind.DEFAULTED, f"link {body.name}", text)
    elif seen:
        text = "has only meshes to be seen: nothing of it collides"
        notes.add(NoteKind.DEFAULTED, f"link {body.name}", text, "give it <collision>")


def weigh_shells(spec: mujoco.MjSpec) -> None:
    """Meshes that are only seen need no volume: many are open, or flat."""
    solid = {geom.meshname for body in spec.bodies for geom in body.geoms if not is_visual(geom)}
    for mesh in spec.meshes:
        if mesh.name not in solid:
            mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL


def is_visual(geom: mujoco.MjsGeom) -> bool:
    """Whether a geom touches nothing."""
    return int(geom.contype) == 0 and int(geom.conaffinity) == 0


def part_neighbours(spec: mujoco.MjSpec, prepared: Prepared, notes: Notes) -> None:
    """Excludes contacts between a base that stands still and what its joints carry.

    The engine leaves out contacts of parent and child, but not if the parent is fixed to the world.
    """
    solid = {b.name for b in spec.bodies if not all(is_visual(geom) for geom in b.geoms)}
    base = _rigid(prepared, prepared.root)
    pairs = [
        (still, carried)
        for parent, child, moves in prepared.tree
        if moves and parent in base
        for still, carried in product(sorted(base & solid), sorted(_rigid(prepared, child) & solid))
    ]
    for one, other in pairs:
        spec.add_exclude(bodyname1=one, bodyname2=other)
    if pairs:
        text = f"does not collide with what its joints carry: {_listed(c for _, c in pairs)}"
        notes.add(NoteKind.CONVERTED, f"base {prepared.root}", text)


def _rigid(prepared: Prepared, link: str) -> set[str]:
    """The links that are one with this, below it."""
    found, at = {link}, [link]
    while at:
        parent = at.pop()
        below = {c for p, c, moves in prepared.tree if p == parent and not moves}
        found |= below
        at += below
    return found


def _listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))
