"""A joint-space impedance controller: every motor a spring and damper around a moving reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import mujoco
import numpy as np

from mjhost import Plugin, PluginLoadError

# Phases of the joints' swings, from the base outwards (rad): the arm waves instead of nodding.
_LAG = 0.7


class JointImpedance(Plugin):
    """Holds an arm in its start pose with chosen stiffness, and lets it sway around that.

    The torque of a joint is gravity and Coriolis (``qfrc_bias``), plus ``stiffness`` times the way
    to the reference, plus ``damping`` times the difference in velocity. Weaker motors get both in
    proportion to their torque limits. Position actuators on tendons are taken for grippers, which
    open and close.
    """

    stateless: ClassVar[bool] = True

    @dataclass
    class Config:
        """What can be chosen.

        Attributes:
            stiffness: of the strongest joint, N·m/rad.
            damping: of the strongest joint, N·m·s/rad.
            sway: amplitude of the reference, rad; 0 holds still.
            period: of the sway, s sim.
        """

        stiffness: float = 120.0
        damping: float = 24.0
        sway: float = 0.25
        period: float = 6.0

        def __post_init__(self) -> None:
            """Refuse what would pump energy into the arm."""
            if min(self.stiffness, self.damping, self.sway) < 0 or self.period <= 0:
                raise ValueError("stiffness, damping and sway must be >= 0, period > 0")

    def load(self, model: Any, data: Any) -> None:
        """Look the motors and their joints up, once per model."""
        del data
        transmission = model.actuator_trntype
        self.motors = np.flatnonzero(transmission == mujoco.mjtTrn.mjTRN_JOINT)
        self.grippers = np.flatnonzero(transmission == mujoco.mjtTrn.mjTRN_TENDON)
        joints = model.actuator_trnid[self.motors, 0]
        if not len(joints) or not np.all(model.jnt_type[joints] == mujoco.mjtJoint.mjJNT_HINGE):
            raise PluginLoadError(
                "JointImpedance needs motors on hinge joints, this model has none"
            )
        self.qpos, self.dofs = model.jnt_qposadr[joints], model.jnt_dofadr[joints]
        self.home = model.qpos0[self.qpos].copy()
        self.low, self.high = model.actuator_ctrlrange[self.motors].T.copy()
        self.share = self.high / self.high.max()
        self.opening = model.actuator_ctrlrange[self.grippers, 1].copy()

    def control(self, model: Any, data: Any) -> None:
        """Write the torques; a function of the state alone, however often it is called."""
        del model
        pulse = 2 * np.pi / self.config.period
        phase = pulse * data.time - _LAG * np.arange(len(self.motors))
        start = min(data.time, 1.0)  # the sway begins gently
        way = self.home + start * self.config.sway * np.sin(phase) - data.qpos[self.qpos]
        speed = start * self.config.sway * pulse * np.cos(phase) - data.qvel[self.dofs]
        torque = self.share * (self.config.stiffness * way + self.config.damping * speed)
        torque += data.qfrc_bias[self.dofs]
        data.ctrl[self.motors] = np.clip(torque, self.low, self.high)
        data.ctrl[self.grippers] = self.opening * (0.5 + 0.5 * np.cos(pulse * data.time))
