"""Forces and torques that a host applies to bodies for a while.

Owns: the wrenches of one model, and how they get into ``xfrc_applied`` for a step and out again.
Invariants: a wrench is known by its body and its name: the same name replaces, other names add.
What users write to ``xfrc_applied`` is theirs: it acts as well, and is there unchanged after the
step. A wrench with a duration acts in exactly the steps that begin before its end.
Threads: under the physics lock.
Not a goal: when a step is; ``mjhost.env`` calls ``add`` before and ``take_out`` after the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
import mujoco
import numpy as np

from mjhost.errors import InvalidArgumentError
from mjhost.state.numbers import vector
from mjhost.state.poses import cross, rotated
from mjhost.state.records import Array, WrenchState, frozen_copy

MOST: Final = 4096
"""Most wrenches at a time; one more is refused."""


class Wrench(msgspec.Struct, eq=False):
    """One wrench.

    Attributes:
        body: index of the body.
        label: its name.
        name: of the wrench among those of the body.
        force: shape (3,), N.
        torque: shape (3,), N·m.
        point: where the force acts, in the body's frame, shape (3,), m; None: the centre of mass.
        frame: along whose axes force and torque are: ``"world"`` or ``"body"``.
        until: the step before which it ends; None: it lasts.
        dt: timestep that ``until`` was computed with, s sim.
    """

    body: int
    label: str
    name: str
    force: Array
    torque: Array
    point: Array | None
    frame: str
    until: int | None
    dt: float

    @property
    def needs_poses(self) -> bool:
        """Whether what it exerts depends on how the body is turned."""
        return self.frame == "body" or self.point is not None

    def spatial(self, model: mujoco.MjModel, data: mujoco.MjData) -> Array:
        """Force and torque about the centre of mass along the world's axes, shape (6,)."""
        force, torque = self.force, self.torque
        quat = np.array(data.xquat[self.body])
        if self.frame == "body":
            force, torque = rotated(force, quat), rotated(torque, quat)
        if self.point is not None:
            arm = rotated(self.point - model.body_ipos[self.body], quat)
            torque = torque + cross(arm, force)
        return np.concatenate((force, torque))


class Wrenches:
    """The wrenches of one model."""

    __slots__ = ("_entries", "_rows")

    def __init__(self) -> None:
        self._entries: dict[tuple[int, str], Wrench] = {}
        # What users had in the rows that are ours for this step, and what we made of them.
        self._rows: list[tuple[int, Array, bytes]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Wrench]:
        return iter(self._entries.values())

    def apply(self, wrench: Wrench) -> None:
        """Adds a wrench, in place of the one of its body and name."""
        key = (wrench.body, wrench.name)
        if key not in self._entries and len(self._entries) >= MOST:
            raise InvalidArgumentError(
                f"{MOST} wrenches are applied, which is the most; clear_wrench() ends some"
            )
        self._entries[key] = wrench

    def clear(self, body: int | None = None, name: str | None = None) -> int:
        """Ends those of a body, or of a name; how many there were."""
        ended = [
            key
            for key in self._entries
            if (body is None or key[0] == body) and (name is None or key[1] == name)
        ]
        for key in ended:
            del self._entries[key]
        return len(ended)

    def of(self, body: int, steps: int) -> list[Wrench]:
        """Those of a body that act in the next step."""
        return [w for w in self if w.body == body and (w.until is None or steps < w.until)]

    def expire(self, steps: int, dt: float) -> bool:
        """Ends what does not act in the step after ``steps``; whether any is left."""
        for key, wrench in tuple(self._entries.items()):
            if wrench.until is None:
                continue
            if wrench.dt != dt:  # the same time, in other steps
                left = (wrench.until - steps) * wrench.dt
                wrench.until, wrench.dt = steps + max(0, round(left / dt)), dt
            if steps >= wrench.until:
                del self._entries[key]
        return bool(self._entries)

    def add(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Puts the sum of the wrenches on top of what users have applied.

        The poses in ``data`` are those of the present state.
        """
        sums: dict[int, Array] = {}
        for wrench in self:
            before = sums.get(wrench.body)
            spatial = wrench.spatial(model, data)
            sums[wrench.body] = spatial if before is None else before + spatial
        self._rows.clear()
        for body, spatial in sums.items():
            users = np.array(data.xfrc_applied[body])
            data.xfrc_applied[body] = users + spatial
            self._rows.append((body, users, data.xfrc_applied[body].tobytes()))

    def take_out(self, data: mujoco.MjData) -> None:
        """Gives the rows back to their users; what a hook wrote in the step is kept."""
        for body, users, ours in self._rows:
            row = data.xfrc_applied[body]
            if row.tobytes() == ours:
                row[:] = users
            elif row.any():  # else the engine has reset itself: nobody applies anything any more
                row -= np.frombuffer(ours) - users
        self._rows.clear()

    @property
    def need_poses(self) -> bool:
        """Whether ``add`` looks at poses."""
        return any(wrench.needs_poses for wrench in self)

    # -- keeping -----------------------------------------------------------------------------

    def save(self, steps: int) -> tuple[dict[str, Any], ...]:
        """Everything as plain values, for a checkpoint or another model."""
        return tuple(
            {
                "body": wrench.label,
                "name": wrench.name,
                "force": wrench.force.copy(),
                "torque": wrench.torque.copy(),
                "point": None if wrench.point is None else wrench.point.copy(),
                "frame": wrench.frame,
                "left": None if wrench.until is None else wrench.until - steps,
                "dt": wrench.dt,
            }
            for wrench in self
            if wrench.until is None or wrench.until > steps
        )


def loaded(
    saved: Iterable[dict[str, Any]], bodies: dict[str, int], steps: int
) -> tuple[Wrenches, tuple[str, ...]]:
    """Wrenches of what ``save`` gave, and the names of the bodies that are not there."""
    wrenches, missing = Wrenches(), []
    for entry in saved:
        label = str(entry["body"])
        if label not in bodies:
            missing.append(label)
            continue
        left, point = entry["left"], entry["point"]
        wrenches.apply(
            Wrench(
                body=bodies[label],
                label=label,
                name=str(entry["name"]),
                force=vector(entry["force"], 3, f"force on {label!r}"),
                torque=vector(entry["torque"], 3, f"torque on {label!r}"),
                point=None if point is None else vector(point, 3, f"point of {label!r}"),
                frame="body" if entry["frame"] == "body" else "world",
                until=None if left is None else steps + int(left),
                dt=float(entry["dt"]),
            )
        )
    return wrenches, tuple(dict.fromkeys(missing))


def wrench_state(
    acting: Iterable[Wrench], model: mujoco.MjModel, data: mujoco.MjData, label: str
) -> WrenchState:
    """What is applied to the body ``label`` in the next step, with the poses in ``data``."""
    total, names = np.zeros(6), []
    for wrench in acting:
        total = total + wrench.spatial(model, data)
        names.append(wrench.name)
    return WrenchState(
        name=label,
        force=frozen_copy(total[:3]),
        torque=frozen_copy(total[3:]),
        parts=tuple(names),
    )
