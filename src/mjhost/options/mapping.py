"""Reading and writing the ``mjOption`` of a live model.

Owns: the only access to ``mjOption`` for the run-time options.
Invariants: a read copies the whole struct, and a write replaces it, in one operation that keeps
the GIL, so a snapshot never mixes old and new. A write starts from the live bytes: members and bits
that the table does not know survive. Nothing is cached: reading always reads the model.
Threads: any Python threads may read and write at once. The *engine* reads its options without the
GIL: never write while another thread steps the model.
Failure: a refused write leaves the struct byte-identical.
"""

from __future__ import annotations

from typing import Any

import mujoco

from mjhost.errors import InvalidArgumentError
from mjhost.options import layout
from mjhost.options.convert import shown
from mjhost.options.records import RuntimeOptionsError, RuntimeOptionsSnapshot
from mjhost.options.table import DESCRIPTORS
from mjhost.options.validate import validate_runtime_options


class OptionBlock:
    """The options of one model, with the address looked up once.

    Keeps ``option``, and through it the model, alive.
    """

    __slots__ = ("_option", "_view")

    def __init__(self, option: Any) -> None:
        if not isinstance(option, mujoco.MjOption):
            hint = "; pass model.opt" if isinstance(option, mujoco.MjModel) else ""
            raise InvalidArgumentError(f"needs a mujoco.MjOption, got {shown(option)}{hint}")
        self._option = option
        self._view = layout.window(option)

    def read(self) -> RuntimeOptionsSnapshot:
        """All fields as they are now; runnable or not."""
        return layout.decode(self.raw())

    def write(self, snapshot: RuntimeOptionsSnapshot) -> None:
        """Replace all fields.

        Raises:
            OptionsRejected: the engine could not run them; the struct is untouched.
            InvalidArgumentError: not a snapshot; the struct is untouched.
        """
        validate_runtime_options(snapshot, touched=())
        # Buffer assignment keeps the GIL; ctypes.memmove releases it and was seen to tear.
        self._view[:] = layout.encode(snapshot, self.raw())

    def raw(self) -> bytes:
        """A copy of the whole struct."""
        return bytes(self._view)

    def restore(self, raw: bytes) -> None:
        """Put back what ``raw()`` gave, unchecked.

        Raises:
            InvalidArgumentError: not a copy of this engine's struct; the struct is untouched.
        """
        if not isinstance(raw, (bytes, bytearray)) or len(raw) != layout.SIZE:
            raise InvalidArgumentError(
                f"restoring options needs the {layout.SIZE} bytes of raw(), got {shown(raw)}"
            )
        self._view[:] = raw


def read_runtime_options(option: Any) -> RuntimeOptionsSnapshot:
    """All fields of a live ``mjOption``, copied in one operation.

    Args:
        option: ``model.opt`` or any other ``mujoco.MjOption``.

    Raises:
        InvalidArgumentError: ``option`` is something else.
    """
    return OptionBlock(option).read()


def write_runtime_options(snapshot: RuntimeOptionsSnapshot, option: Any) -> None:
    """Replace all fields of a live ``mjOption`` in one operation.

    Contract: not while another thread steps the model. Only runnable rules are checked: domain
    rules concern changes, not values that a model brought along.

    Raises:
        OptionsRejected: the engine could not run them; ``option`` is byte-identical.
        InvalidArgumentError: a wrong type; ``option`` is byte-identical.
    """
    OptionBlock(option).write(snapshot)


def check_runnable(option: Any) -> list[RuntimeOptionsError]:
    """What keeps the engine from surviving the options of a model as it arrives; empty if nothing.

    Raises:
        InvalidArgumentError: ``option`` is no ``mujoco.MjOption``.
    """
    snapshot = read_runtime_options(option)
    return list(validate_runtime_options(snapshot, touched=(), raise_on_error=False).errors)


def default_snapshot() -> RuntimeOptionsSnapshot:
    """The options of a model that sets none."""
    values: dict[str, Any] = {field.name: field.default for field in DESCRIPTORS}
    return RuntimeOptionsSnapshot(**values)
