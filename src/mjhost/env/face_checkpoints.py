"""The part of ``MujocoEnv`` that stops and resumes exactly.

Invariants: as for ``MujocoEnv``; a face has no state of its own.
Threads: every method may be called from any thread, unless it says otherwise.
"""

from __future__ import annotations

from mjhost.checkpoint import Checkpoint
from mjhost.env.checkpoints import Checkpoints
from mjhost.env.face_reading import ReadingFace


class CheckpointFace(ReadingFace):
    """Checkpoints."""

    _checkpoints: Checkpoints

    def checkpoint(self) -> Checkpoint:
        """Everything the simulation needs to go on from this step boundary to the same bits.

        State, options, edits of the model, counters, the phases of rates, and what plugins return
        from ``save_state``. A plugin with attributes of its own that has none, and does not say
        ``stateless = True``, makes the checkpoint inexact; ``inexact_because`` says so. What a
        callback of ``env.callbacks`` or a task of ``every`` remembers cannot be seen.

        Raises:
            CheckpointError: a plugin's state is more than plain values.
            Exception: whatever a ``save_state`` raised.
            LoadingWindowError: a model is being loaded.
        """
        return self._checkpoints.take()

    def restore(self, checkpoint: Checkpoint, *, allow_version: bool = False) -> None:
        """Goes on from ``checkpoint``, in this env or any other that has loaded the same model.

        Pending manual steps are cancelled, a fault is cleared, whether it runs stays as it is.
        ``session_time`` never goes back: it goes on from the checkpoint's if that lies ahead.
        Derived quantities are computed anew; no hook fires.

        Args:
            checkpoint: from ``checkpoint()``, or read from a file by ``Checkpoint.load``.
            allow_version: take one of another MuJoCo version: the same objects are enough then, and
                what follows is not the same to the bit.

        Raises:
            CheckpointError: it is of another model or version, a plugin whose state it has is
                missing, or its numbers cannot be right. Nothing changed.
            Exception: whatever a ``load_state`` raised; everything is as it was.
            LoadingWindowError: a model is being loaded.
        """
        self._checkpoints.restore(checkpoint, allow_version=allow_version)
