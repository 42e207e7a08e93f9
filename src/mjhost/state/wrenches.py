"""Forces and torques that a host applies to bodies for a while.

Owns: the wrenches of one model, and how they get into ``xfrc_applied`` for a step and out again.
Invariants: a wrench is known by its body and its name: the same name replaces, other names add.
What users write to ``xfrc_applied`` is theirs: it acts as well, and is there unchanged after the
step. A wrench with a duration acts in exactly the steps that begin before its end: what is kept is
its time, so that a change of the timestep, or several, do not round it.
Threads: under the physics lock.
Not a goal: when a step is; ``mjhost.env`` calls ``add`` before and ``take_out`` after the engine,
``lift`` and ``lay`` around what users run in between.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
import mujoco
import numpy as np

from mjhost.errors import InvalidArgumentError
from mjhost.state.numbers import vector
from mjhost.state.records import Array, WrenchState, frozen_copy

MOST: Final = 4096
"""Most wrenches at a time; one more is refused."""

_LONGEST: Final = 1e100  # s sim
_NEAR: Final = 1e-9  # of a timestep: a boundary this close before the end has reached it


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
        start: the step after which ``duration`` begins.
        duration: s sim; None: it lasts.
        dt: timestep since ``start``, s sim.
        until: the step after which it has ended; None: it lasts.
        constant: force and torque in one, shape (6,), if they depend on no pose.
    """

    body: int
    label: str
    name: str
    force: Array
    torque: Array
    point: Array | None
    frame: str
    start: int
    duration: float | None
    dt: float
    until: int | None = None
    constant: Array | None = None

    def __post_init__(self) -> None:
        """Computes what depends on nothing that changes in a step."""
        if not self.needs_poses:
            self.constant = np.concatenate((self.force, self.torque))
        if self.duration is not None:
            self.until = self.start + math.ceil(self.duration / self.dt - _NEAR)

    def go_on(self, steps: int, dt: float) -> None:
        """What is left of it after ``steps`` takes steps of another length from there on."""
        if self.duration is not None:
            self.duration -= (steps - self.start) * self.dt
            self.start, self.dt = steps, dt
            self.__post_init__()

    @property
    def needs_poses(self) -> bool:
        """Whether what it exerts depends on how the body is turned."""
        return self.frame == "body" or self.point is not None

    def spatial(self, model: mujoco.MjModel, data: mujoco.MjData) -> Array:
        """Force and torque about the centre of mass along the world's axes, shape (6,)."""
        if self.constant is not None:
            return self.constant
        force, torque = self.force, self.torque
        turn = data.xmat[self.body].reshape(3, 3)
        if self.frame == "body":
            force, torque = turn @ force, turn @ torque
        if self.point is not None:
            torque = torque + _moment(turn @ (self.point - model.body_ipos[self.body]), force)
        return np.concatenate((force, torque))


def _moment(arm: Array, force: Array) -> Array:
    """Their vector product; in a step, where arrays of three are dear."""
    (a, b, c), (x, y, z) = arm.tolist(), force.tolist()
    return np.array((b * z - c * y, c * x - a * z, a * y - b * x))


class Wrenches:
    """The wrenches of one model."""

    __slots__ = ("_entries", "_rows", "_sums")

    def __init__(self) -> None:
        self._entries: dict[tuple[int, str], Wrench] = {}
        self._sums: dict[int, Array] = {}  # by body, what acts in the present step
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
            if wrench.until is not None and steps >= wrench.until:
                del self._entries[key]
            elif wrench.dt != dt:
                wrench.go_on(steps, dt)
        return bool(self._entries)

    def add(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Puts the sum of the wrenches on top of what users have applied.

        The poses in ``data`` are those of the present state.
        """
        self.forget()
        for wrench in self:
            before = self._sums.get(wrench.body)
            spatial = wrench.spatial(model, data)
            self._sums[wrench.body] = spatial if before is None else before + spatial
        self.lay(data)

    def take_out(self, data: mujoco.MjData) -> None:
        """Gives the rows back to their users for good."""
        self.lift(data)
        self._sums.clear()

    def forget(self) -> None:
        """The state before ``add`` has come back: there is nothing to take out."""
        self._sums.clear()
        self._rows.clear()

    def lay(self, data: mujoco.MjData) -> None:
        """Puts what ``lift`` took away on top of what users have applied by now."""
        for body, spatial in self._sums.items():
            row = data.xfrc_applied[body]
            users = row.copy()
            row += spatial
            self._rows.append((body, users, row.tobytes()))

    def lift(self, data: mujoco.MjData) -> bool:
        """Gives the rows back to their users; whether any were ours.

        What somebody added to one since then, such as a callback of the engine, is kept.
        """
        any_ours = bool(self._rows)
        for body, users, ours in self._rows:
            row = data.xfrc_applied[body]
            if row.tobytes() == ours:
                row[:] = users
            elif row.any():  # else the engine has reset itself: nobody applies anything any more
                row -= np.frombuffer(ours) - users
        self._rows.clear()
        return any_ours

    @property
    def need_poses(self) -> bool:
        """Whether ``add`` looks at poses."""
        return any(wrench.constant is None for wrench in self._entries.values())

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
                "duration": wrench.duration,
                "elapsed": steps - wrench.start,  # steps of dt
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
        wrenches.apply(_loaded(entry, label, bodies[label], steps))
    return wrenches, tuple(dict.fromkeys(missing))


def _loaded(entry: dict[str, Any], label: str, body: int, steps: int) -> Wrench:
    point, duration = entry["point"], entry["duration"]
    return Wrench(
        body=body,
        label=label,
        name=str(entry["name"]),
        force=vector(entry["force"], 3, f"force on {label!r}"),
        torque=vector(entry["torque"], 3, f"torque on {label!r}"),
        point=None if point is None else vector(point, 3, f"point of {label!r}"),
        frame="body" if entry["frame"] == "body" else "world",
        start=steps - int(entry["elapsed"]),
        duration=None if duration is None else _time(duration, f"duration on {label!r}"),
        dt=_time(entry["dt"], f"timestep of the wrench on {label!r}"),
    )


def _time(given: Any, what: str) -> float:
    seconds = float(given)
    if not 1.0 / _LONGEST < seconds < _LONGEST:  # so that counting steps cannot overflow
        raise InvalidArgumentError(f"{what} must be above 0 s and finite, got {seconds!r}")
    return seconds


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
