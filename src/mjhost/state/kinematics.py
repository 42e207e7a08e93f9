"""Where everything is in the present state, without touching the live data.

After a step the poses and velocities in ``mjData`` are those of the step's start: the engine
computes them first and integrates last. This computes them for the present state, on data of its
own.

Owns: one private ``MjData`` per model, made when it is first needed.
Invariants: the live data are only read.
Threads: under the physics lock, outside the engine's own calls: on 3.15 an engine function called
from inside one may cost the process.
Failure: what ``MjData`` raises; nothing was changed.
Not a goal: forces, contacts, sensors.
"""

from __future__ import annotations

from typing import Final

import mujoco

_SLEEP: Final = int(mujoco.mjtEnableBit.mjENBL_SLEEP)


class PresentKinematics:
    """Poses and velocities of the present state of one model's data."""

    __slots__ = ("_model", "_private")

    def __init__(self, model: mujoco.MjModel) -> None:
        self._model = model
        self._private: mujoco.MjData | None = None

    def of(self, data: mujoco.MjData) -> mujoco.MjData:
        """Private data with the poses and velocities of the present state of ``data``.

        They are valid until this is called again. Only what ``mj_kinematics``, ``mj_comPos`` and
        ``mj_comVel`` compute is right in it.
        """
        model = self._model
        private = self._private
        if private is None:
            private = self._private = mujoco.MjData(model)
        if model.opt.enableflags & _SLEEP:
            # What sleeps is left out of the kinematics, and stays where it was put to sleep.
            mujoco.mj_copyData(private, model, data)
        else:
            private.qpos[:] = data.qpos
            private.qvel[:] = data.qvel
            private.mocap_pos[:] = data.mocap_pos
            private.mocap_quat[:] = data.mocap_quat
        mujoco.mj_kinematics(model, private)
        mujoco.mj_comPos(model, private)
        mujoco.mj_comVel(model, private)
        return private
