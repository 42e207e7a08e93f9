"""SRDF: which links never touch, and poses that have names."""

from __future__ import annotations

from typing import NamedTuple

from mjhost.description.documents import parsed
from mjhost.description.report import NoteKind, Notes
from mjhost.errors import ModelLoadError


class Semantics(NamedTuple):
    """What an SRDF says.

    Attributes:
        apart: pairs of links whose collisions do not count.
        poses: joint positions by the name of the pose; rad or m.
    """

    apart: tuple[tuple[str, str], ...]
    poses: dict[str, dict[str, tuple[float, ...]]]


def read(text: str | bytes, label: str, notes: Notes) -> Semantics:
    """The semantics in a document.

    Raises:
        ModelLoadError: it is none, or a number in it is none.
    """
    root = parsed(text, label, "robot")
    apart = []
    for element in root.findall("disable_collisions"):
        one, other = element.get("link1"), element.get("link2")
        if not one or not other:
            raise ModelLoadError(f"{label} has disable_collisions without two links")
        apart.append((one, other))
    poses: dict[str, dict[str, tuple[float, ...]]] = {}
    for state in root.findall("group_state"):
        name, group = state.get("name", ""), state.get("group", "")
        if not name:
            raise ModelLoadError(f"{label} has a group_state without a name")
        key = name if name not in poses else f"{group}.{name}"
        poses[key] = {
            joint.get("name", ""): _values(joint.get("value", ""), key, label)
            for joint in state.findall("joint")
        }
    for tag in ("virtual_joint", "end_effector", "group"):
        count = len(root.findall(tag))
        if count:
            notes.add(NoteKind.DROPPED, f"<{tag}>", f"{count} element(s) that mean nothing here")
    return Semantics(tuple(apart), poses)


def _values(text: str, pose: str, label: str) -> tuple[float, ...]:
    try:
        return tuple(float(word) for word in text.split())
    except ValueError:
        raise ModelLoadError(f"pose {pose!r} of {label} has no numbers: {text!r}") from None
