"""Forces and torques on bodies, as commands ask for them.

Owns: the wrenches of a generation, in the axes of any frame. How they get into ``xfrc_applied`` and
out again, and when they end, is the business of ``mjhost.state.wrenches``.
Invariants: each body has one: a new command replaces it.
Failure: a command about a body, frame or number that cannot be is refused; nothing changed.
Not a goal: forces that are a function of the state; that is a plugin with ``passive``.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from mjhost.bundled.frames import Frame, frame, known_frame, stream_word
from mjhost.errors import InvalidArgumentError
from mjhost.plugins import Plugin
from mjhost.state import wrenches
from mjhost.state.names import Names, ObjectKind
from mjhost.state.numbers import number, vector
from mjhost.state.poses import cross
from mjhost.state.records import Array
from mjhost.streams import Outlet
from mjhost.streams.records import WORLD, WrenchCommand, WrenchReading


class _FramedWrench(wrenches.Wrench, kw_only=True, eq=False):
    """A wrench whose force and torque are along the axes of any frame.

    Attributes:
        axes: the frame.
    """

    axes: Frame

    @property
    def needs_poses(self) -> bool:
        """Always: ``spatial`` looks at the frame."""
        return True

    def spatial(self, model: Any, data: Any) -> Array:
        """Force and torque about the centre of mass along the world's axes, shape (6,)."""
        _, turn = self.axes.pose(data)
        force, torque = turn @ self.force, turn @ self.torque
        assert self.point is not None, "a command always has one"
        arm = data.xmat[self.body].reshape(3, 3) @ (self.point - model.body_ipos[self.body])
        return np.concatenate((force, torque + cross(arm, force)))


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
        self._acting = wrenches.Wrenches()
        self._axes: dict[str, str] = {}  # names of frames by body
        self._outlets: dict[str, Outlet[WrenchReading]] = {}
        for body in ids:
            name = f"wrench/{stream_word(body)}"
            self._outlets[body] = self.streams.declare(name, WrenchReading)
            self.streams.accept(name, WrenchCommand, self._taker(body))

    def _taker(self, body: str) -> Any:
        def take(model: Any, data: Any, command: WrenchCommand) -> None:
            del data
            duration = command.duration
            if duration is not None and number(duration, f"duration on {body!r}") < 0.0:
                raise InvalidArgumentError(
                    f"duration on {body!r} must be at least 0 s, got {duration}"
                )
            wanted = msgspec.structs.asdict(command)
            axes = frame(self._names, wanted.pop("frame"))
            self._apply(body, axes, wanted, self._steps(body), float(model.opt.timestep))

        return take

    def _steps(self, body: str) -> int:
        return self._outlets[body].now().step

    def _apply(self, body: str, axes: Frame, wanted: Any, start: int, dt: float) -> None:
        wrench = _FramedWrench(
            body=self._ids[body],
            label=body,
            name="",
            force=vector(wanted["force"], 3, f"force on {body!r}"),
            torque=vector(wanted["torque"], 3, f"torque on {body!r}"),
            point=vector(wanted["point"], 3, f"point of {body!r}"),
            frame="body",
            start=start,
            duration=wanted["duration"],
            dt=dt,
            axes=axes,
        )
        self._acting.apply(wrench)
        self._axes[body] = axes.name

    def pre_step(self, model: Any, data: Any) -> None:
        """Add what acts to what others apply."""
        if not self._acting:
            self.skip_timing()
            return
        steps = self._steps(next(iter(self._ids)))
        if not self._acting.expire(steps, float(model.opt.timestep)):
            return
        self._acting.add(model, data)
        for wrench in self._acting:
            outlet = self._outlets[wrench.label]
            if outlet.wanted:
                spatial = wrench.spatial(model, data)
                outlet.publish(WrenchReading(force=spatial[:3], torque=spatial[3:]))

    def last_stage(self, model: Any, data: Any) -> None:
        """Give the rows back to others, with what they added meanwhile."""
        del model
        self._acting.take_out(data)

    def reset(self) -> None:
        """End all of them."""
        self._acting.forget()
        self._acting.clear()

    def save_state(self) -> dict[str, Any]:
        """What acts, and for how long."""
        if not self._acting:
            return {}
        saved = self._acting.save(self._steps(next(iter(self._ids))))
        return {each["body"]: {**each, "axes": self._axes[each["body"]]} for each in saved}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on with it, as far as bodies and frames are there."""
        self.reset()
        for body, saved in state.items():
            axes = known_frame(self._names, saved["axes"])
            if body in self._ids and axes is not None:
                start = self._steps(body) - int(saved["elapsed"])
                self._apply(body, axes, saved, start, float(saved["dt"]))
