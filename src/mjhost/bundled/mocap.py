"""Mocap bodies that are told where to be, and go there at a bounded speed.

Owns: the targets of a generation.
Invariants: a body without a target stays where others put it. A target is reached exactly, and then
forgotten.
Failure: a command about a pose that cannot be, or an unknown frame, is refused; nothing changed.
Not a goal: bodies that are welded to a mocap body; the engine moves them.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np

from mjhost.bundled.frames import frame, quaternion_of, stream_word
from mjhost.bundled.undone import StepMemory
from mjhost.errors import PluginLoadError
from mjhost.plugins import Plugin
from mjhost.state.mocap import mocap_names, row
from mjhost.state.names import Names
from mjhost.state.numbers import vector
from mjhost.state.poses import conjugate, position, product, quaternion
from mjhost.state.records import Array
from mjhost.streams import Outlet
from mjhost.streams.records import PoseCommand, PoseReading

_Positive = Annotated[float, msgspec.Meta(gt=0.0)]


class _Target(NamedTuple):
    position: Array
    orientation: Array


class Mocap(Plugin):
    """Takes ``PoseCommand`` on ``mocap/<body>`` and publishes ``PoseReading`` on the same name.

    One of each for every mocap body, or for those in the configuration. A pose in a frame other
    than the world is one in the frame as the last step left it, and does not follow it.
    """

    class Config(msgspec.Struct, frozen=True, kw_only=True):
        """What can be chosen.

        Attributes:
            bodies: names of mocap bodies; empty: all.
            max_speed: how fast a body may go to its target, m/s.
            max_turn: how fast it may turn there, rad/s.
        """

        bodies: tuple[str, ...] = ()
        max_speed: _Positive = math.inf
        max_turn: _Positive = math.inf

    def load(self, model: Any, data: Any) -> None:
        """Look the bodies up, once per model."""
        del data
        self._names = Names(model)
        all_rows = mocap_names(model, self._names)
        if not all_rows:
            raise PluginLoadError("there is no mocap body in the model, so there is nothing to set")
        chosen = self.config.bodies
        self._rows = {n: row(model, self._names, n) for n in chosen} if chosen else all_rows
        self._speeds = self.config.max_speed, self.config.max_turn
        self._targets: dict[str, _Target] = {}
        self._memory: StepMemory[dict[str, _Target]] = StepMemory()
        self._outlets: dict[str, Outlet[PoseReading]] = {}
        for body in self._rows:
            name = f"mocap/{stream_word(body)}"
            self._outlets[body] = self.streams.declare(name, PoseReading)
            self.streams.accept(name, PoseCommand, self._taker(body))

    def _taker(self, body: str) -> Any:
        def take(model: Any, data: Any, command: PoseCommand) -> None:
            del model
            place = position(command.position, f"position of {body!r}")
            turn = quaternion(command.orientation, f"orientation of {body!r}")
            origin, matrix = frame(self._names, command.frame).pose(data)
            self._targets = dict(self._memory.recall(data) or self._targets)
            self._memory.forget()
            target = _Target(origin + matrix @ place, product(quaternion_of(matrix), turn))
            if math.isinf(self.config.max_speed) and math.isinf(self.config.max_turn):
                self._targets.pop(body, None)
                self._put(data, body, *target)  # now, so that it is there also while paused
            else:
                self._targets[body] = target

        return take

    def pre_step(self, model: Any, data: Any) -> None:
        """Take the bodies one step nearer to their targets."""
        self._targets = dict(self._memory.recall(data) or self._targets)
        if not self._targets:
            self.skip_timing()
        self._memory.keep(data, dict(self._targets))
        way, angle = (most * model.opt.timestep for most in self._speeds)
        for body, target in self._targets.items():
            place, turn = data.mocap_pos[self._rows[body]], data.mocap_quat[self._rows[body]]
            self._put(
                data,
                body,
                _nearer(place, target.position, way),
                _turned(turn, target.orientation, angle),
            )

    def _put(self, data: Any, body: str, place: Array, turn: Array) -> None:
        data.mocap_pos[self._rows[body]] = place
        data.mocap_quat[self._rows[body]] = turn

    def post_step(self, model: Any, data: Any) -> None:
        """Forget the targets that are reached, and publish where the bodies are."""
        del model
        for body, target in tuple(self._targets.items()):
            index = self._rows[body]
            if np.array_equal(data.mocap_pos[index], target.position) and np.array_equal(
                data.mocap_quat[index], target.orientation
            ):
                del self._targets[body]
        for body, outlet in self._outlets.items():
            if outlet.wanted:
                index = self._rows[body]
                outlet.publish(
                    PoseReading(
                        child=body,
                        position=data.mocap_pos[index].copy(),
                        orientation=data.mocap_quat[index].copy(),
                    )
                )

    def reset(self) -> None:
        """Forget the targets: the bodies are where the reset put them."""
        self._memory.forget()
        self._targets.clear()

    def save_state(self) -> dict[str, Any]:
        """The targets that are not reached yet."""
        return {body: np.concatenate(target) for body, target in self._targets.items()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on to them, as far as the bodies are there."""
        self._memory.forget()
        kept = {body: vector(state[body], 7, f"target of {body!r}") for body in state}
        self._targets = {
            body: _Target(pose[:3], pose[3:]) for body, pose in kept.items() if body in self._rows
        }


def _nearer(start: Array, goal: Array, most: float) -> Array:
    """A point at most ``most`` from ``start`` towards ``goal``."""
    way = goal - start
    length = float(np.linalg.norm(way))
    return goal if length <= most else start + way * (most / length)


def _turned(start: Array, goal: Array, most: float) -> Array:
    """An orientation at most ``most`` rad from ``start`` towards ``goal``, the short way."""
    difference = product(goal, conjugate(start))
    if difference[0] < 0.0:
        difference = -difference
    sine = float(np.linalg.norm(difference[1:]))
    angle = 2.0 * math.atan2(sine, float(difference[0]))
    if angle <= most:
        return goal
    half = 0.5 * most
    part = np.concatenate(([math.cos(half)], difference[1:] * (math.sin(half) / sine)))
    turn: Array = product(part, start)
    turn /= np.linalg.norm(turn)
    return turn
