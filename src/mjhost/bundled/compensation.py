"""Gravity and Coriolis forces of the present state.

After a step those in ``mjData`` are of the step's start, and after a restore they are of its end:
what is told to a drive must not depend on which. This computes them anew, on data of its own.

Owns: one private ``MjData`` per model.
Threads: under the physics lock, outside the engine's own calls.
Not a goal: contacts, springs, damping, friction.
"""

from __future__ import annotations

import mujoco
import numpy as np

from mjhost.state.kinematics import PresentKinematics
from mjhost.state.records import Array


class Compensation:
    """Computes what holds a model against gravity, and in its motion.

    Args:
        model: the model.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        self._model = model
        self._present = PresentKinematics(model)
        self._lifted = np.flatnonzero(model.body_gravcomp)
        self._forces = np.zeros(model.nv)

    def of(self, data: mujoco.MjData) -> Array:
        """Generalised forces, shape ``(nv,)``, N·m or N; used again by the next call.

        What the engine itself compensates (``gravcomp``) is left to it.
        """
        model, now = self._model, self._present.of(data)
        mujoco.mj_rne(model, now, False, self._forces)
        for body in self._lifted:
            weight = model.body_mass[body] * model.body_gravcomp[body]
            mujoco.mj_applyFT(
                model,
                now,
                weight * model.opt.gravity,
                np.zeros(3),
                now.xipos[body],
                int(body),
                self._forces,
            )
        return self._forces
