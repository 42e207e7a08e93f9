"""Checkpoint files of the commands: what ``--restore`` reads and the end of a run writes."""

from __future__ import annotations

from pathlib import Path

import msgspec

from mjhost.checkpoint import Checkpoint
from mjhost.cli import output
from mjhost.env import MujocoEnv


class CheckpointRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What was kept.

    Attributes:
        file: where.
        model: label of the model.
        steps: engine steps since its load.
        sim_time: s sim.
        exact: whether it holds everything, as far as can be known.
        inexact_because: who has state that is not in it.
    """

    file: str
    model: str
    steps: int
    sim_time: float
    exact: bool
    inexact_because: tuple[str, ...]


def restore_from(env: MujocoEnv, file: Path | None) -> None:
    """Restores what ``--restore`` names, if it names something."""
    if file is not None:
        env.restore(Checkpoint.load(file))


def keep(env: MujocoEnv, file: Path) -> CheckpointRecord:
    """Takes a checkpoint and keeps it in a file; who makes it inexact is told."""
    taken = env.checkpoint()
    for reason in taken.inexact_because:
        output.note(f"warning: the checkpoint is inexact: {reason}")
    taken.save(file)
    return CheckpointRecord(
        file=str(file),
        model=taken.model.label,
        steps=taken.counters.steps,
        sim_time=taken.time,
        exact=taken.exact,
        inexact_because=taken.inexact_because,
    )
