"""Frames of a model by name, what is mounted in them, and how they are called in streams.

Owns: which objects are frames: bodies, sites, cameras and geoms, in this order of preference.
Failure: ``UnknownNameError`` that names what is near.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import mujoco
import numpy as np

from mjhost.errors import UnknownNameError, did_you_mean
from mjhost.state import poses
from mjhost.state.names import Names, ObjectKind
from mjhost.state.records import Array
from mjhost.streams.records import WORLD

_KINDS: Final = {
    ObjectKind.BODY: ("xpos", "xmat"),
    ObjectKind.SITE: ("site_xpos", "site_xmat"),
    ObjectKind.CAMERA: ("cam_xpos", "cam_xmat"),
    ObjectKind.GEOM: ("geom_xpos", "geom_xmat"),
}


class Frame(NamedTuple):
    """A frame that moves with the model.

    Attributes:
        name: of the object.
        kind: of the object.
        id: of the object.
    """

    name: str
    kind: ObjectKind
    id: int

    def pose(self, data: Any) -> tuple[Array, Array]:
        """Position (m, shape (3,)) and rotation matrix (shape (3, 3)) in the world, copies."""
        place, turn = _KINDS[self.kind]
        matrix = getattr(data, turn)[self.id].reshape(3, 3).copy()
        return getattr(data, place)[self.id].copy(), matrix


class Mount:
    """A pose in a frame, which turns and moves with it.

    Args:
        frame: the frame.
        position: in the frame, m.
        orientation: in the frame, w x y z of any length but 0.

    Attributes:
        frame: as given.
        position: as given, shape ``(3,)``.
        orientation: as a unit quaternion, shape ``(4,)``.
        is_displaced: whether it is another pose than that of the frame.

    Raises:
        InvalidArgumentError: position or orientation is none.
    """

    __slots__ = ("_matrix", "frame", "is_displaced", "orientation", "position")

    def __init__(
        self,
        frame: Frame,
        position: Sequence[float] = (0.0, 0.0, 0.0),
        orientation: Sequence[float] = (1.0, 0.0, 0.0, 0.0),
    ) -> None:
        self.frame = frame
        self.position = poses.position(position, "position")
        self.orientation = poses.quaternion(orientation, "orientation")
        self.is_displaced = bool(self.position.any() or self.orientation[1:].any())
        self._matrix = poses.rotated(np.eye(3), self.orientation[None]).T

    def pose(self, data: Any) -> tuple[Array, Array]:
        """Position (m, shape (3,)) and rotation matrix (shape (3, 3)) in the world, copies."""
        place, turn = self.frame.pose(data)
        if not self.is_displaced:
            return place, turn
        return place + turn @ self.position, turn @ self._matrix


def frame(names: Names, name: str) -> Frame:
    """The frame called ``name``; ``world`` is body 0.

    Raises:
        UnknownNameError: no body, site, camera or geom is called so.
    """
    found = known_frame(names, name)
    if found is not None:
        return found
    raise UnknownNameError(
        f"no body, site, camera or geom is named {name!r}; {did_you_mean(name, frame_names(names))}"
    )


def known_frame(names: Names, name: str) -> Frame | None:
    """The frame called ``name``, if there is one."""
    if name == WORLD:
        return Frame(WORLD, ObjectKind.BODY, 0)
    for kind in _KINDS:
        if name in names.ids(kind):
            return Frame(name, kind, names.ids(kind)[name])
    return None


def frame_names(names: Names) -> list[str]:
    """Names of all frames, in the order of preference."""
    return [known for kind in _KINDS for known in names.of(kind) if not known.startswith("#")]


def stream_word(name: str) -> str:
    """A name of the model as a word in the name of a stream."""
    return re.sub(r"[\s/]+", "_", name) or "_"


def quaternion_of(matrix: Array) -> Array:
    """The unit quaternion w x y z, shape (4,), of a rotation matrix, shape (3, 3)."""
    quat: Array = np.empty(4)
    mujoco.mju_mat2Quat(quat, matrix.reshape(-1))
    return quat
