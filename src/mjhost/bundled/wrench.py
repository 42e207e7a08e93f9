"""Forces and torques on bodies, as commands ask for them.

Owns: the wrenches of a generation.
Invariants: what others write to ``xfrc_applied`` acts as well, and is there unchanged after the
step. A wrench acts in exactly the steps that begin before its end. Each body has one: a new command
replaces it.
Failure: a command about a body, frame or number that cannot be is refused; nothing changed.
Not a goal: forces that are a function of the state; that is a plugin with ``passive``.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np

from mjhost.bundled.frames import Frame, frame, stream_word
from mjhost.errors import InvalidArgumentError
from mjhost.plugins import Plugin
from mjhost.state.names import Names, ObjectKind
from mjhost.state.numbers import number, vector
from mjhost.state.poses import cross
from mjhost.state.records import Array
from mjhost.streams import Outlet
from mjhost.streams.records import WORLD, WrenchCommand, WrenchReading

_NEAR = 1e-9  # of a timestep: a boundary this close before the end has reached it


class _Wrench(msgspec.Struct, frozen=True, kw_only=True):
    """A wrench that acts.

    Attributes:
        force: N, along the axes of ``frame``.
        torque: N·m, along the axes of ``frame``.
        point: where the force acts, m, from the origin of the body along its axes.
        frame: name of the frame.
        until: ``data.time`` from which on it acts no more, s sim; infinite: it lasts.
    """

    force: Array
    torque: Array
    point: Array
    frame: str
    until: float


class Wrench(Plugin):
    """Takes ``WrenchCommand`` on ``wrench/<body>``; publishes what acts there.

    What acts is published along the world's axes, about the body's centre of mass.

    One of each for every body but the world, or for those in the configuration. Frames are where
    the last step left them.
    """

    class Config(msgspec.Struct, frozen=True, kw_only=True):
        """What can be chosen.

        Attributes:
            bodies: names of bodies; empty: all but the world.
        """

        bodies: tuple[str, ...] = ()

    def load(self, model: Any, data: Any) -> None:
        """Look the bodies up, once per model."""
        del data
        self._names = Names(model)
        ids = self._names.selected(ObjectKind.BODY, self.config.bodies or None)
        if ids.pop(WORLD, None) is not None and self.config.bodies:
            raise InvalidArgumentError("nothing can push the world; name other bodies")
        self._ids = ids
        self._wrenches: dict[str, _Wrench] = {}
        self._frames: dict[str, Frame] = {}
        self._added: list[tuple[int, Array, Array]] = []  # body, what was there, what is now
        self._outlets: dict[str, Outlet[WrenchReading]] = {}
        for body in ids:
            name = f"wrench/{stream_word(body)}"
            self._outlets[body] = self.streams.declare(name, WrenchReading)
            self.streams.accept(name, WrenchCommand, self._taker(body))

    def _taker(self, body: str) -> Any:
        def take(model: Any, data: Any, command: WrenchCommand) -> None:
            del model
            self._apply(body, _checked(command, body, float(data.time)))

        return take

    def _apply(self, body: str, wrench: _Wrench) -> None:
        found = frame(self._names, wrench.frame)
        self._frames[body] = found
        self._wrenches[body] = wrench

    def pre_step(self, model: Any, data: Any) -> None:
        """Add what acts to what others apply."""
        self._added.clear()  # of a step that was undone
        if not self._wrenches:
            self.skip_timing()
            return
        now = data.time + _NEAR * model.opt.timestep
        for body, wrench in tuple(self._wrenches.items()):
            if now < wrench.until:
                self._add(model, data, body, wrench)
            else:
                del self._wrenches[body]

    def _add(self, model: Any, data: Any, body: str, wrench: _Wrench) -> None:
        index = self._ids[body]
        _, axes = self._frames[body].pose(data)
        turn = data.xmat[index].reshape(3, 3)
        force, torque = axes @ wrench.force, axes @ wrench.torque
        arm = turn @ (wrench.point - model.body_ipos[index])
        spatial = np.concatenate((force, torque + cross(arm, force)))
        row = data.xfrc_applied[index]
        users = row.copy()
        row += spatial
        self._added.append((index, users, row.copy()))
        outlet = self._outlets[body]
        if outlet.wanted:
            outlet.publish(WrenchReading(force=force, torque=spatial[3:]))

    def last_stage(self, model: Any, data: Any) -> None:
        """Give the rows back to others, with what they added meanwhile."""
        del model
        for index, users, ours in self._added:
            row = data.xfrc_applied[index]
            if np.array_equal(row, ours):
                row[:] = users
            elif row.any():  # else the engine has reset itself
                row -= ours - users
        self._added.clear()

    def reset(self) -> None:
        """End all of them."""
        self._wrenches.clear()
        self._added.clear()

    def save_state(self) -> dict[str, Any]:
        """What acts, and until when."""
        return {body: msgspec.structs.asdict(wrench) for body, wrench in self._wrenches.items()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on with it, as far as bodies and frames are there."""
        self._wrenches.clear()
        for body, saved in state.items():
            if body in self._ids and self._has_frame(saved["frame"]):
                self._apply(body, _Wrench(**saved))

    def _has_frame(self, name: str) -> bool:
        kinds = (ObjectKind.BODY, ObjectKind.SITE, ObjectKind.CAMERA, ObjectKind.GEOM)
        return name == WORLD or any(name in self._names.ids(kind) for kind in kinds)


def _checked(command: WrenchCommand, body: str, now: float) -> _Wrench:
    until = math.inf
    if command.duration is not None:
        seconds = number(command.duration, f"duration on {body!r}")
        if seconds < 0.0:
            raise InvalidArgumentError(f"duration on {body!r} must be at least 0 s, got {seconds}")
        until = now + seconds
    return _Wrench(
        force=vector(command.force, 3, f"force on {body!r}"),
        torque=vector(command.torque, 3, f"torque on {body!r}"),
        point=vector(command.point, 3, f"point of {body!r}"),
        frame=command.frame,
        until=until,
    )
