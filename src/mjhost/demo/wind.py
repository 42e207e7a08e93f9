"""A wind that blows on everything that lies around loose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import mujoco
import numpy as np

from mjhost import Plugin, PluginLoadError

_AIR = 1.2  # kg/m³


class Wind(Plugin):
    """Drags free bodies along: ½ · density · area · |v| · v, with v the air's velocity over theirs.

    The area is that of the body's bounding spheres. The gusts are a function of simulation time, so
    that the same run brings the same wind.
    """

    stateless: ClassVar[bool] = True

    @dataclass
    class Config:
        """What can be chosen.

        Attributes:
            speed: mean speed of the air, m/s.
            direction: where it blows to, world frame; its length does not matter.
            gusts: how much of the speed comes and goes, 0 to 1.
            period: of the gusts, s sim.
        """

        speed: float = 4.0
        direction: tuple[float, float, float] = (1.0, 0.0, 0.0)
        gusts: float = 0.5
        period: float = 5.0

        def __post_init__(self) -> None:
            """Refuse a direction that is none."""
            if not np.any(self.direction) or self.period <= 0:
                raise ValueError("direction must not be zero, period must be > 0")

    def load(self, model: Any, data: Any) -> None:
        """Find the free bodies and their areas."""
        del data
        joints = np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE)
        if not len(joints):
            raise PluginLoadError("wind needs bodies with a free joint, this model has none")
        self.dofs = model.jnt_dofadr[joints][:, None] + np.arange(3)
        self.area = np.array([_area(model, body) for body in model.jnt_bodyid[joints]])
        self.toward = np.asarray(self.config.direction) / np.linalg.norm(self.config.direction)

    def passive(self, model: Any, data: Any) -> None:
        """Add the drag to the passive forces."""
        del model
        air = self.speed(data.time) * self.toward
        over = air - data.qvel[self.dofs]
        size = np.linalg.norm(over, axis=1)
        data.qfrc_passive[self.dofs] += 0.5 * _AIR * (self.area * size)[:, None] * over

    def speed(self, time: float) -> float:
        """Speed of the air at a simulation time, m/s."""
        wave = np.sin(2 * np.pi * time / self.config.period)
        return float(self.config.speed * (1 + self.config.gusts * wave))


def _area(model: Any, body: int) -> float:
    first, count = model.body_geomadr[body], model.body_geomnum[body]
    return float(np.pi * np.sum(model.geom_rbound[first : first + count] ** 2))
