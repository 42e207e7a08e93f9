"""Masses and inertias of links: checked, mended where that was asked, and never made up unsaid.

Invariants: a link without ``<inertial>`` weighs nothing, as URDF means it; the engine would weigh
its shapes, those that are only seen too. Only a part that moves and has no mass anywhere gets one,
and the report says which.
Failure: ``ModelLoadError`` naming the link and the rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element

import numpy as np

from mjhost.description.documents import number
from mjhost.description.report import NoteKind, Notes
from mjhost.errors import ModelLoadError

_AXES: Final = ("ixx", "iyy", "izz")
_PAIRS: Final = ("ixy", "ixz", "iyz")
_ROUNDING: Final = 1e-6  # relative
_LEAST_MASS: Final = 1e-6  # kg
_LEAST_INERTIA: Final = 1e-9  # kg·m²
_NEGLIGIBLE: Final = 1e-5  # kg·m²; that of 10 g in a ball of 5 cm


def check(name: str, link: Element, notes: Notes, *, mends: bool) -> None:
    """Refuses, or mends, what no body can have.

    Args:
        name: of the link.
        link: its element; changed where something is mended.
        notes: takes what is mended.
        mends: mend an inertia instead of refusing it.
    """
    inertial = link.find("inertial")
    if inertial is None:
        return
    mass, inertia = _mass(name, inertial), inertial.find("inertia")
    if mass < 0:
        raise ModelLoadError(f"link {name!r} has a negative mass, {mass:g} kg")
    if inertia is None:
        return
    what = f"the inertia of link {name!r}"
    xx, yy, zz = (number(inertia, axis, 0.0, what) for axis in _AXES)
    xy, xz, yz = (number(inertia, pair, 0.0, what) for pair in _PAIRS)
    moments = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    least, middle, most = map(float, moments)
    possible = most <= (least + middle) * (1 + _ROUNDING) + _ROUNDING * most
    if (least > 0 and possible) or (mass == 0 and not moments.any()):
        return
    told = f"{least:.3g}, {middle:.3g}, {most:.3g}"
    if possible and most > 0 and least >= -_ROUNDING * most:  # thin: the engine wants some
        more = most * 10 * _ROUNDING
        _set_moments(inertia, xx + more, yy + more, zz + more)
        notes.add(NoteKind.SUSPICIOUS, f"link {name}", f"moments {told}: a little is added")
    elif mends or most <= _NEGLIGIBLE:
        _make_equal(inertia, max((xx + yy + zz) / 3, most / 3, _LEAST_INERTIA))
        text = f"no body has its moments {told}; made equal"
        hint = "balanced as asked" if mends else "a placeholder of the description"
        notes.add(NoteKind.SUSPICIOUS, f"link {name}", text, hint)
    else:
        raise ModelLoadError(
            f"{what} breaks A + B >= C: no body has the principal moments {told}; correct it, or "
            "let it be balanced (balance_inertia, --balance-inertia)"
        )


def complete(
    links: dict[str, Element],
    tree: Sequence[tuple[str, str, bool]],
    free: str | None,
    notes: Notes,
) -> frozenset[str]:
    """Says of each link what it weighs; links that shall weigh what their shapes do.

    Args:
        links: their elements; changed.
        tree: parent, child, and whether the joint between them moves.
        free: the root, if it will be free to move.
        notes: takes what is made up.
    """
    moved = {child for _, child, moves in tree if moves} | ({free} if free else set())
    fixed = [(parent, child) for parent, child, moves in tree if not moves]
    weighed: set[str] = set()
    for rigid in _rigid_parts(links, moved, fixed):
        if rigid[0] not in moved or any(_weighs(name, links[name]) for name in rigid):
            continue
        solid = [name for name in rigid if links[name].find("collision") is not None]
        weighed.update(solid)
        for name in solid:
            _remove_inertial(links[name])
            text = "moves and has no mass: given that of its shapes as if of water"
            notes.add(NoteKind.DEFAULTED, f"link {name}", text, _GIVE)
        if not solid:
            _give_least(rigid[0], links[rigid[0]], notes)
    for name, link in links.items():
        if link.find("inertial") is None and name not in weighed:
            _set_inertial(link, 0.0, 0.0)
    return frozenset(weighed)


_GIVE: Final = "give it its mass in the description"


def _rigid_parts(
    links: dict[str, Element], moved: set[str], fixed: Iterable[tuple[str, str]]
) -> list[list[str]]:
    """Links that move as one, the one that the joint moves first."""
    below: dict[str, list[str]] = {}
    children = set()
    for parent, child in fixed:
        below.setdefault(parent, []).append(child)
        children.add(child)
    parts = []
    for name in links:
        if name in children and name not in moved:
            continue
        part = [name]
        for member in part:  # grows while it is gone through
            part += below.get(member, ())
        parts.append(part)
    return parts


def _mass(name: str, inertial: Element) -> float:
    mass = inertial.find("mass")
    return 0.0 if mass is None else number(mass, "value", 0.0, f"the mass of link {name!r}")


def _weighs(name: str, link: Element) -> bool:
    inertial = link.find("inertial")
    return inertial is not None and _mass(name, inertial) > 0


def _give_least(name: str, link: Element, notes: Notes) -> None:
    _remove_inertial(link)
    _set_inertial(link, _LEAST_MASS, _LEAST_INERTIA)
    text = f"has no mass and moves; given {_LEAST_MASS:g} kg, {_LEAST_INERTIA:g} kg·m²"
    notes.add(NoteKind.DEFAULTED, f"link {name}", text, _GIVE)


def _remove_inertial(link: Element) -> None:
    inertial = link.find("inertial")
    if inertial is not None:
        link.remove(inertial)


def _set_inertial(link: Element, mass: float, moment: float) -> None:
    made = ET.SubElement(link, "inertial")
    ET.SubElement(made, "mass", value=repr(mass))
    _make_equal(ET.SubElement(made, "inertia"), moment)


def _make_equal(inertia: Element, moment: float) -> None:
    """What the engine's own balancing does, which does not take negative moments."""
    _set_moments(inertia, moment, moment, moment)
    for pair in _PAIRS:
        inertia.set(pair, "0")


def _set_moments(inertia: Element, xx: float, yy: float, zz: float) -> None:
    for axis, value in zip(_AXES, (xx, yy, zz), strict=True):
        inertia.set(axis, repr(value))
