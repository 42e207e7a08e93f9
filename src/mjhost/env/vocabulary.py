"""The words by which something can be asked of an env, and the operation that each stands for.

Owns: ``WORDS``. Whether a word changes the simulation, and when it is admitted, follows from its
operation and is stated nowhere else.
Invariants: every operation is a word for itself; other words are members of ``MujocoEnv`` that ask
for an operation under a name of their own. Whoever guards requests of clients knows all of them.
Threads: immutable, safe anywhere.
Not a goal: what a word takes and gives; that is the table in ``mjhost.operations``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from mjhost.env.phases import Operation
from mjhost.errors import UnknownNameError, did_you_mean

_OTHER_WORDS: Final[dict[Operation, tuple[str, ...]]] = {
    Operation.INFO: (
        "measured_realtime",
        "checkpoints",
        "plugin_statistics",
        "plugin_diagnostics",
        "plugin_load_report",
        "runtime_option_table",
    ),
    Operation.READ_STATE: (
        "names",
        "body_states",
        "joint_states",
        "ctrl",
        "mocap_states",
        "sensors",
        "geom_properties",
        "body_inertial",
        "equality_state",
        "wrench",
    ),
    Operation.SET_STATE: (
        "set_body_state",
        "set_joint_states",
        "set_mocap",
        "sync_mocap",
        "set_geom_properties",
        "set_body_inertial",
        "set_equality",
    ),
    Operation.APPLY_WRENCH: ("clear_wrench",),
    Operation.CHECKPOINT: ("delete_checkpoint",),
    Operation.OPTIONS_READ: ("runtime_options", "gravity"),
    Operation.OPTIONS_WRITE: ("apply_runtime_options", "set_gravity"),
    Operation.SET_PENDING_OPTIONS: ("set_pending_runtime_options",),
}

WORDS: Final[Mapping[str, Operation]] = MappingProxyType(
    {operation.value: operation for operation in Operation}
    | {word: operation for operation, words in _OTHER_WORDS.items() for word in words}
)
"""What can be asked for, and the row of the admission table that decides about it."""


def operation_of(word: str) -> Operation:
    """The operation that ``word`` asks for.

    Raises:
        UnknownNameError: nothing is asked for by that word; the message lists the near ones.
    """
    operation = WORDS.get(word) if isinstance(word, str) else None
    if operation is None:
        raise UnknownNameError(
            f"no operation is named {_shown(word)}; {did_you_mean(str(word)[:_SHOWN], WORDS)}"
        )
    return operation


_SHOWN: Final = 80  # characters of a word that is none


def _shown(word: object) -> str:
    text = repr(word)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
