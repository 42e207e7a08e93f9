"""When something was, and of which model."""

from __future__ import annotations

from typing import NamedTuple


class Stamp(NamedTuple):
    """A moment of a simulation.

    Attributes:
        session_time: simulated time since the env was made, s sim; never goes back.
        sim_time: ``data.time``, s sim.
        step: steps since the last load or reset, the one whose result it is included.
        model_generation: value of the ``ModelGeneration``.
    """

    session_time: float
    sim_time: float
    step: int
    model_generation: int
