"""Checkpoints: everything a simulation needs to go on to the same bits.

Owns: what a checkpoint consists of, how it is read from and written to a model and its data, the
file it is kept in, and what tells two of them apart.
Not a goal: when one may be taken or restored, plugins, counters of a host; ``mjhost.env`` knows.
"""

from mjhost.checkpoint.comparison import Difference, compare
from mjhost.checkpoint.models import compare_models
from mjhost.checkpoint.record import Checkpoint, Counters, PluginState
from mjhost.checkpoint.vector import Component, StateLayout

__all__ = [
    "Checkpoint",
    "Component",
    "Counters",
    "Difference",
    "PluginState",
    "StateLayout",
    "compare",
    "compare_models",
]
