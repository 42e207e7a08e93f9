"""The part of ``MujocoEnv`` that looks ahead: linearization and rollouts.

Invariants: as for ``MujocoEnv``; a face has no state of its own.
Threads: every method may be called from any thread, unless it says otherwise.
"""

from __future__ import annotations

import copy

from numpy.typing import ArrayLike

from mjhost.env import analysis
from mjhost.env.analysis import Linearization, Rollout
from mjhost.env.face_reading import ReadingFace
from mjhost.env.phases import Operation
from mjhost.env.plugging import Plugging


class AnalysisFace(ReadingFace):
    """What may come of the present state."""

    _plugging: Plugging

    def linearize(self, *, eps: float = 1e-6, centered: bool = True) -> Linearization:
        """Transition matrices of one step around the present state and control.

        Hooks fire, many times; the simulation is afterwards as it was.

        Args:
            eps: size of the perturbations, in the units of what is perturbed.
            centered: use central differences: twice the steps, one order better.

        Raises:
            InvalidArgumentError: ``eps`` cannot be right.
            mujoco.FatalError: the integrator has no finite differences (RK4).
        """
        core = self._core
        core.admit(Operation.LINEARIZE)
        with core.lock.holding(Operation.LINEARIZE):
            core.admit_locked(Operation.LINEARIZE)
            hosted = self._hosted("linearize")
            return analysis.linearize(
                self._plugging, self._stepper, hosted, eps, centered=bool(centered)
            )

    def rollout(self, control: ArrayLike, *, initial_state: ArrayLike | None = None) -> Rollout:
        """Steps copies of the simulation with given controls, in this thread.

        Callbacks and the engine hooks of plugins fire for the copies, and may overwrite the
        control. The simulation itself goes on undisturbed.

        Args:
            control: ``(nstep, nu)``, or ``(nbatch, nstep, nu)`` for several runs, one after the
                other.
            initial_state: ``(nstate,)`` or ``(nbatch, nstate)`` as in ``Rollout.state``; by default
                the present state.

        Raises:
            DivergenceError: a step diverged; ``completed`` counts the good ones of its run.
            InvalidArgumentError: a wrong shape, or a number that is not finite.
        """
        core = self._core
        core.admit(Operation.ROLLOUT)
        with core.lock.holding(Operation.ROLLOUT):
            core.admit_locked(Operation.ROLLOUT)
            hosted = self._hosted("rollout")
            data = copy.copy(hosted.data)
        return analysis.rollout(self._plugging, hosted.model, data, control, initial_state)
