"""Plausibility of an imported robot: what loads and is most likely wrong all the same.

Invariants: looking changes nothing; the only data it runs are its own. Each note has the numbers,
and what to do.
Not a goal: refusing. A description that cannot be is refused where it is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

import mujoco
import numpy as np

from mjhost.description.report import NoteKind, Notes
from mjhost.description.urdf import Joint, Limit

_WIDEST: Final = 25.0  # m, bounding radius; a link of a robot is smaller
_NARROWEST: Final = 1e-5  # m
_HEAVIEST: Final = 1e5  # kg
_DEEPEST: Final = 1e-3  # m, that a start contact may go into
_TURNS: Final = 8 * math.pi  # rad; a bound beyond is most likely in degrees
_SPREAD: Final = (0.02, 3.0)  # radius of gyration, in sizes of the link's shapes
_SHOWN: Final = 6


def check_joints(joints: Iterable[Joint], notes: Notes) -> None:
    """Bounds that are missing, empty, or in another unit."""
    for joint in joints:
        limit = joint.limit
        subject = f"joint {joint.name}"
        if limit is None or joint.type not in ("revolute", "prismatic"):
            if joint.type in ("revolute", "prismatic"):
                text = "has no limit, which its type asks for: it moves without bounds"
                notes.add(NoteKind.DEFAULTED, subject, text, "give it a <limit>")
            continue
        _check_strength(limit, subject, notes)
        if not (math.isfinite(limit.lower) and math.isfinite(limit.upper)):
            text = f"is bounded from {limit.lower:g} to {limit.upper:g}: it moves without bounds"
            notes.add(NoteKind.DEFAULTED, subject, text, "give it numbers")
        elif limit.lower == limit.upper:
            text = f"is bounded to the one position {limit.lower:g}: it moves without bounds"
            notes.add(NoteKind.SUSPICIOUS, subject, text, "give it a <limit>, or make it fixed")
        widest = max(abs(limit.lower), abs(limit.upper))
        if joint.type == "revolute" and _TURNS < widest < math.inf:
            text = (
                f"turns from {limit.lower:g} to {limit.upper:g} rad, {widest / math.tau:.3g} turns"
            )
            notes.add(NoteKind.SUSPICIOUS, subject, text, "bounds are in rad, not in degrees")


def _check_strength(limit: Limit, subject: str, notes: Notes) -> None:
    for what, value in (("effort", limit.effort), ("velocity", limit.velocity)):
        if value < 0:
            text = f"has the {what} limit {value:g}, taken for none"
            notes.add(NoteKind.SUSPICIOUS, subject, text, "it must be positive")


def check_model(model: mujoco.MjModel, notes: Notes) -> None:
    """Sizes, masses, inertias, and shapes that begin inside of each other."""
    for body in range(1, model.nbody):
        _check_body(model, body, notes)
    if model.nbody > 1 and not model.body_subtreemass[0] > 0:
        notes.add(
            NoteKind.SUSPICIOUS, "mass", "all of it together weighs nothing", "see <inertial>"
        )
    check_start(model, notes)


def _check_body(model: mujoco.MjModel, body: int, notes: Notes) -> None:
    subject = f"link {model.body(body).name}"
    first, count = int(model.body_geomadr[body]), int(model.body_geomnum[body])
    geoms = slice(first, first + count) if count else slice(0, 0)
    radii = model.geom_rbound[geoms]
    for radius in radii[(radii > _WIDEST) | ((radii > 0) & (radii < _NARROWEST))]:
        text = f"has a shape that is {2 * radius:.3g} m across"
        notes.add(NoteKind.SUSPICIOUS, subject, text, _UNITS)
    mass = float(model.body_mass[body])
    if mass > _HEAVIEST:
        notes.add(NoteKind.SUSPICIOUS, subject, f"weighs {mass:.3g} kg", "masses are in kg")
    solid = model.geom_contype[geoms] | model.geom_conaffinity[geoms]
    doubted = any(note.subject == subject for note in notes.found if note.kind == "suspicious")
    if mass > 0 and solid.any() and not doubted:
        reach = np.linalg.norm(model.geom_pos[geoms] - model.body_ipos[body], axis=1) + radii
        _check_spread(model, body, float(reach[solid > 0].max()), notes)


_UNITS: Final = 'lengths are in m; one in mm needs scale="0.001 0.001 0.001"'


def _check_spread(model: mujoco.MjModel, body: int, size: float, notes: Notes) -> None:
    """Whether an inertia could be that of a body of this size."""
    mass, most = float(model.body_mass[body]), float(model.body_inertia[body].max())
    spread = math.sqrt(most / mass)
    least, widest = (factor * size for factor in _SPREAD)
    if mass > 1e-3 and not least < spread < widest:
        text = (
            f"has {mass:.3g} kg and {most:.3g} kg·m², as if {2 * spread:.3g} m across; its shapes "
            f"are within {size:.3g} m"
        )
        hint = "inertias are in kg·m², about the centre of mass"
        notes.add(NoteKind.SUSPICIOUS, f"link {model.body(body).name}", text, hint)


def check_start(model: mujoco.MjModel, notes: Notes, *, prefixes: Iterable[str] = ()) -> None:
    """Shapes that begin inside of each other are pushed apart, at times with great force.

    Args:
        model: of the robot, or of several.
        notes: takes pairs that overlap.
        prefixes: of the robots if there are several: pairs of the same one are left out.
    """
    own = [prefix for prefix in prefixes if prefix]
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    deepest: dict[tuple[str, str], float] = {}
    for contact in data.contact[: data.ncon]:
        pair = _names(model, int(contact.geom1), int(contact.geom2))
        same = any(all(name.startswith(prefix) for name in pair) for prefix in own)
        if contact.dist < -_DEEPEST and not same:
            deepest[pair] = min(deepest.get(pair, 0.0), float(contact.dist))
    for (one, other), depth in sorted(deepest.items(), key=lambda item: item[1])[:_SHOWN]:
        text = f"begins {-depth * 1e3:.3g} mm inside of {other}"
        hint = "exclude the pair (an SRDF's disable_collisions), or start elsewhere"
        notes.add(NoteKind.SUSPICIOUS, f"link {one}", text, hint)
    if len(deepest) > _SHOWN:
        more = f"{len(deepest) - _SHOWN} more pairs of links begin inside of each other"
        notes.add(NoteKind.SUSPICIOUS, "start", more)


def _names(model: mujoco.MjModel, *geoms: int) -> tuple[str, str]:
    one, other = sorted(model.body(int(model.geom_bodyid[geom])).name for geom in geoms)
    return (other, one) if one == "world" else (one, other)
