"""A watch over the energy of a simulation."""

from __future__ import annotations

import logging
from typing import Any

import mujoco

from mjhost import Plugin, PluginLoadError

logger = logging.getLogger(__name__)

_ENERGY = int(mujoco.mjtEnableBit.mjENBL_ENERGY)


class EnergyMonitor(Plugin):
    """Follows how far the total energy drifts from where it began, and tells it at every pause.

    Without motors, friction and contacts the drift is the integrator's error; with them, as in the
    demo, it is what the motors and the wind have put in and friction has taken.

    Attributes:
        start: total energy at the first look, J; None before it.
        drift: energy gained since then, J.
        largest: the drift farthest from zero, J.
    """

    rate_hz = 20.0
    start: float | None = None
    drift = 0.0
    largest = 0.0

    def load(self, model: Any, data: Any) -> None:
        """Make sure that there is something to watch."""
        del data
        if not model.opt.enableflags & _ENERGY:
            raise PluginLoadError(
                "EnergyMonitor needs a model that computes its energy; "
                'put <option><flag energy="enable"/></option> into it'
            )

    def post_step(self, model: Any, data: Any) -> None:
        """Look, 20 times per simulated second."""
        if not model.opt.enableflags & _ENERGY:  # switched off since
            self.skip_timing()
            return
        total = float(data.energy.sum())
        if self.start is None:
            self.start = total
        self.drift = total - self.start
        self.largest = max(self.largest, self.drift, key=abs)

    def on_pause(self) -> None:
        """Tell."""
        if self.start is not None:
            logger.info(
                "energy drifted by %+.3f J from %.3f J, at most by %+.3f J",
                self.drift,
                self.start,
                self.largest,
            )

    def reset(self) -> None:
        """Begin anew."""
        self.start, self.drift, self.largest = None, 0.0, 0.0

    def save_state(self) -> dict[str, Any]:
        """Hand the book over to the next generation."""
        return {"start": self.start, "drift": self.drift, "largest": self.largest}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on with the book of the generation before."""
        self.start, self.drift, self.largest = state["start"], state["drift"], state["largest"]
