"""Elements of a URDF, checked before the engine reads them.

Owns: what the engine takes without a word (no numbers, negative friction), or refuses without
naming it.
Invariants: looking changes nothing. What is in a link or joint and is not read is in the report.
Failure: ``ModelLoadError`` naming link or joint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final
from xml.etree.ElementTree import Element

from mjhost.description.documents import number, numbers
from mjhost.description.report import NoteKind, Notes
from mjhost.errors import ModelLoadError, did_you_mean

_SIZES: Final = {
    "box": (("size", 3),),
    "sphere": (("radius", 1),),
    "cylinder": (("radius", 1), ("length", 1)),
    "capsule": (("radius", 1), ("length", 1)),
}
_IN_ROBOT: Final = frozenset(
    {"link", "joint", "material", "mujoco", "transmission", "ros2_control"}
)
_IN_LINK: Final = frozenset({"inertial", "visual", "collision"})
_IN_JOINT: Final = frozenset({"origin", "parent", "child", "axis", "limit", "dynamics", "mimic"})


def check(links: Mapping[str, Element], joints: Mapping[str, Element]) -> None:
    """Refuses what is no shape, no place, no axis and no friction.

    Raises:
        ModelLoadError: one of them is none.
    """
    for name, link in links.items():
        for element in link:
            if element.tag in _IN_LINK:
                _check_origin(element, f"a {element.tag} of link {name!r}")
            if element.tag in ("visual", "collision"):
                _check_geometry(element, f"a {element.tag} of link {name!r}")
    for name, joint in joints.items():
        _check_joint(name, joint)


def _check_origin(element: Element, what: str) -> None:
    origin = element.find("origin")
    if origin is not None:
        for attribute in ("xyz", "rpy"):
            numbers(origin, attribute, "0 0 0", 3, f"the origin of {what}")


def _check_geometry(element: Element, what: str) -> None:
    geometry = element.find("geometry")
    if geometry is None or not len(geometry):
        raise ModelLoadError(f"{what} has no geometry")
    shape = geometry[0]
    if shape.tag == "mesh":
        return
    if shape.tag not in _SIZES:
        known = did_you_mean(shape.tag, ["mesh", *_SIZES])
        raise ModelLoadError(f"{what} is a <{shape.tag}>, which is no shape; {known}")
    for attribute, count in _SIZES[shape.tag]:
        values = numbers(shape, attribute, "", count, f"the {shape.tag} of {what}")
        if min(values) <= 0:
            text = shape.get(attribute)
            raise ModelLoadError(
                f"{attribute} of the {shape.tag} of {what} must be positive, got {text!r}"
            )


def _check_joint(name: str, joint: Element) -> None:
    what = f"joint {name!r}"
    _check_origin(joint, what)
    axis = joint.find("axis")
    if axis is not None and joint.get("type") not in ("fixed", "floating"):
        direction = numbers(axis, "xyz", "1 0 0", 3, f"the axis of {what}")
        if sum(part * part for part in direction) < _SHORTEST:
            raise ModelLoadError(f"the axis of {what} has no direction: {axis.get('xyz')!r}")
    dynamics = joint.find("dynamics")
    if dynamics is not None:
        for attribute in ("damping", "friction"):
            value = number(dynamics, attribute, 0.0, f"the dynamics of {what}")
            if value < 0:
                raise ModelLoadError(f"{attribute} of {what} must not be negative, got {value:g}")


_SHORTEST: Final = 1e-16  # length² of an axis


def note_unread(robot: Element, notes: Notes) -> None:
    """Tells what in a description means nothing to a simulation, or is not read."""
    for tag, count in Counter(e.tag for e in robot if e.tag not in _IN_ROBOT).items():
        notes.add(NoteKind.DROPPED, f"<{tag}>", f"{count} element(s) that are not read")
    for owner, read in (("link", _IN_LINK), ("joint", _IN_JOINT)):
        inner = Counter(e.tag for o in robot.findall(owner) for e in o if e.tag not in read)
        for tag, count in inner.items():
            text = f"{count} element(s) in a {owner} that are not read"
            notes.add(NoteKind.DROPPED, f"<{tag}>", text)
    for texture in robot.iter("texture"):
        file = texture.get("filename", "")
        notes.add(NoteKind.DROPPED, f"texture {file}", "textures are not read, colours are")
