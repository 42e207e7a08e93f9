"""Trajectories of joints: checked whole, sampled at any time.

Between two points a joint follows a line if only positions are given, a cubic with velocities, a
quintic with accelerations too.

Owns: ``Trajectory``.
Invariants: immutable; a time before the start gives the first point, one after the end the last one
at rest.
Failure: ``InvalidArgumentError`` or ``UnknownNameError`` that names point and joint.
Not a goal: limits, which a controller knows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from mjhost.errors import InvalidArgumentError, UnknownNameError, did_you_mean
from mjhost.state.numbers import number, vector
from mjhost.state.records import Array
from mjhost.streams.records import TrajectoryCommand, TrajectoryPoint

MOST_POINTS: Final = 100_000
"""Most points of a trajectory."""


class Target(NamedTuple):
    """Where joints are to be.

    Attributes:
        position: rad or m, shape ``(n,)``.
        velocity: rad/s or m/s, shape ``(n,)``.
        effort: N·m or N to be added, shape ``(n,)``.
    """

    position: Array
    velocity: Array
    effort: Array


class Trajectory:
    """A way of some joints.

    Attributes:
        joints: their names.
        end: time of the last point, s since the start.
        path_tolerance: by joint, shape ``(n,)``, infinite for none.
        goal_tolerance: by joint, shape ``(n,)``, infinite for none.
        goal_time: how much longer it may take, s sim.
    """

    def __init__(self, saved: Mapping[str, Any]) -> None:
        """Takes what ``save`` gave; ``planned`` makes one of a command."""
        self.joints: tuple[str, ...] = tuple(saved["joints"])
        self._saved = dict(saved)
        self._times: list[float] = list(saved["times"])
        self._position: Array = saved["positions"]
        self._velocity: Array | None = saved["velocities"]
        self._acceleration: Array | None = saved["accelerations"]
        self._effort: Array = saved["efforts"]
        self.end = self._times[-1]
        self.path_tolerance: Array = saved["path_tolerance"]
        self.goal_tolerance: Array = saved["goal_tolerance"]
        self.goal_time: float = saved["goal_time"]

    def save(self) -> dict[str, Any]:
        """Everything as plain values and arrays."""
        return self._saved

    def sample(self, time: float) -> Target:
        """Where the joints are to be at ``time``, s since the start."""
        still = np.zeros(len(self.joints))
        if time >= self.end:
            return Target(self._position[-1], still, self._effort[-1])
        after = bisect_right(self._times, time)
        if after == 0:
            return Target(self._position[0], still, self._effort[0])
        before = after - 1
        span = self._times[after] - self._times[before]
        position, velocity = self._between(before, after, time - self._times[before], span)
        return Target(position, velocity, self._effort[after])

    def _between(self, i: int, j: int, t: float, span: float) -> tuple[Array, Array]:
        p, q, way = self._position[i], self._position[j], self._position[j] - self._position[i]
        if self._velocity is None:
            return p + way * (t / span), way / span
        v, w = self._velocity[i] * span, self._velocity[j] * span
        s = t / span
        if self._acceleration is None:
            a, b, c = v, 3 * way - 2 * v - w, v + w - 2 * way
            position = p + s * (a + s * (b + s * c))
            return position, (a + s * (2 * b + 3 * s * c)) / span
        e, f = self._acceleration[i] * span**2, self._acceleration[j] * span**2
        d = q - p - v - e / 2
        g, h = w - v - e, f - e
        a3, a4, a5 = 10 * d - 4 * g + h / 2, -15 * d + 7 * g - h, 6 * d - 3 * g + h / 2
        position = p + s * (v + s * (e / 2 + s * (a3 + s * (a4 + s * a5))))
        rate = v + s * (e + s * (3 * a3 + s * (4 * a4 + 5 * s * a5)))
        return position, rate / span


def planned(command: TrajectoryCommand, now: Mapping[str, tuple[float, float]]) -> Trajectory:
    """The trajectory of a command, from where its joints are to be now.

    Args:
        command: what is asked for.
        now: desired position and velocity by joint, of all joints that there are.
    """
    joints = _joints(command.joints, now)
    points = _points(command.points)
    positions = _table(points, "positions", joints)
    if positions is None:
        raise InvalidArgumentError("every point of a trajectory needs positions")
    velocities = _table(points, "velocities", joints)
    accelerations = _table(points, "accelerations", joints)
    if accelerations is not None and velocities is None:
        raise InvalidArgumentError("points with accelerations need velocities too")
    efforts = _table(points, "efforts", joints)
    times = [point.time for point in points]
    start = np.array([now[joint] for joint in joints])
    if times[0] > 0.0:  # the way to the first point begins where the joints are to be now
        times = [0.0, *times]
        positions = np.vstack([start[:, 0], positions])
        velocities = None if velocities is None else np.vstack([start[:, 1], velocities])
        accelerations = (
            None if accelerations is None else np.vstack([0 * start.T[:1], accelerations])
        )
        efforts = None if efforts is None else np.vstack([efforts[:1], efforts])
    return Trajectory(
        {
            "joints": list(joints),
            "times": times,
            "positions": positions,
            "velocities": velocities,
            "accelerations": accelerations,
            "efforts": np.zeros_like(positions) if efforts is None else efforts,
            "path_tolerance": _tolerances(command.path_tolerance, joints, "path_tolerance"),
            "goal_tolerance": _tolerances(command.goal_tolerance, joints, "goal_tolerance"),
            "goal_time": _not_negative(command.goal_time, "goal_time"),
        }
    )


def _joints(given: Any, known: Mapping[str, Any]) -> tuple[str, ...]:
    joints = tuple(given)
    for joint in joints:
        if joint not in known:
            raise UnknownNameError(
                f"no joint {joint!r} is controlled; {did_you_mean(str(joint), known)}"
            )
    if not joints or len({*joints}) < len(joints):
        raise InvalidArgumentError(f"a trajectory needs joints, each once, got {joints}")
    return joints


def _points(given: Any) -> tuple[TrajectoryPoint, ...]:
    points = tuple(given)
    if not 1 <= len(points) <= MOST_POINTS:
        raise InvalidArgumentError(
            f"a trajectory has from 1 to {MOST_POINTS} points, got {len(points)}"
        )
    last = -1.0
    for index, point in enumerate(points):
        time = _not_negative(point.time, f"time of point {index}")
        if time <= last:
            raise InvalidArgumentError(
                f"times of points must grow, got {time} s in point {index} after {last} s"
            )
        last = time
    return points


def _table(points: tuple[TrajectoryPoint, ...], field: str, joints: tuple[str, ...]) -> Any:
    """What all points have in a field, shape (points, joints), or None if none has any."""
    given = [getattr(point, field) for point in points]
    if not any(len(values) for values in given):
        return None
    return np.array([vector(v, len(joints), f"{field} of point {i}") for i, v in enumerate(given)])


def _tolerances(given: Mapping[str, float], joints: tuple[str, ...], what: str) -> Array:
    for joint in given:
        if joint not in joints:
            raise UnknownNameError(
                f"{what} names {joint!r}, which is no joint of it; {did_you_mean(joint, joints)}"
            )
    checked = {
        joint: _not_negative(value, f"{what} of {joint!r}") for joint, value in given.items()
    }
    # 0 is none, as in the ROS interfaces.
    return np.array([checked.get(joint) or np.inf for joint in joints])


def _not_negative(value: Any, what: str) -> float:
    checked = number(value, what)
    if checked < 0.0:
        raise InvalidArgumentError(f"{what} must be at least 0, got {checked}")
    return checked
