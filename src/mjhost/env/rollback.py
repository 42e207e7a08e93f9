"""The way back to the state before a step.

Owns: one saved state per ``StateBlock`` and the choice of how it is taken:

* ``block``: the arrays of ``mjSTATE_INTEGRATION`` lie side by side at the start of the data's
  buffer, so one copy of that stretch is a copy of the state. Some 50 ns.
* ``vector``: ``mj_getState``, should an engine lay them out otherwise.
* ``copy``: ``mj_copyData``, because with ``ipc`` or ``sleep`` there is state in no state vector.

Invariants: save, any number of steps, restore: what follows is bit for bit what would have followed
the save, the engine's own reset in between included. That every array of the state lies in the
block, and that there is no other, is checked against ``mj_getState`` when a block is made.
Threads: under the physics lock.
Failure: none of its own. A block is made with the state of that moment saved.
Not a goal: memory that plugins keep outside the engine's state, and derived quantities (except
with ``copy``): the caller runs one forward.
"""

from __future__ import annotations

import abc
import copy
from typing import Any, ClassVar, Final

import mujoco
import numpy as np

from mjhost.errors import InvalidArgumentError
from mjhost.layout import bytes_at, double_cell, int_cell, size_cell

_INTEGRATION: Final = int(mujoco.mjtState.mjSTATE_INTEGRATION)
_BEYOND_STATE: Final = int(mujoco.mjtEnableBit.mjENBL_SLEEP) | int(mujoco.mjtEnableBit.mjENBL_IPC)
# Names of state components that are not the names of their arrays.
_ARRAYS: Final = {"warmstart": "qacc_warmstart", "plugin": "plugin_state"}


class StateBlock(abc.ABC):
    """The saved state of one ``MjData``; see the module for the strategies.

    Attributes:
        strategy: how it is taken.
        time_cell: ``data.time`` as a ``c_double``.
        saved_time: ``data.time`` of the kept state, s sim.
    """

    strategy: ClassVar[str]

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        self.model = model
        self.data = data
        self.time_cell = double_cell(data, "mjData", "time")
        self._flags = int_cell(model.opt, "mjOption", "enableflags")
        self._stack = size_cell(data, "mjData", "pstack"), size_cell(data, "mjData", "pbase")
        self.saved_time: float = self.time_cell.value
        self.save()

    @staticmethod
    def for_options(model: mujoco.MjModel, data: mujoco.MjData) -> StateBlock:
        """The cheapest block that is exact with the options as they are now.

        Choose again when ``ipc`` or ``sleep`` may have changed.
        """
        if model.opt.enableflags & _BEYOND_STATE:
            return CopyBlock(model, data)
        if state_extent(model, data) is None:
            return VectorBlock(model, data)
        return MemoryBlock(model, data)

    @property
    def suits_options(self) -> bool:
        """Whether the block is exact with the options as they are now."""
        return not self._flags.value & _BEYOND_STATE

    @abc.abstractmethod
    def save(self) -> None:
        """Keeps the present state, in place of the one kept before."""

    @abc.abstractmethod
    def _restore(self) -> None: ...

    def restore(self) -> None:
        """Puts the kept state back; may be repeated.

        Frames on the engine's stack that an exception left there are given back.
        """
        for cell in self._stack:
            cell.value = 0
        self._restore()


class MemoryBlock(StateBlock):
    """One stretch of memory from the first to the last state array.

    Attributes:
        src: the live stretch.
        dst: where it is kept.
    """

    strategy = "block"

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        extent = state_extent(model, data)
        if extent is None:
            raise InvalidArgumentError("the state of this data is not one stretch of memory")
        self.src = bytes_at(extent.start, len(extent))
        self.dst = memoryview(bytearray(len(extent)))
        super().__init__(model, data)

    def save(self) -> None:
        """See ``StateBlock.save``."""
        self.dst[:] = self.src
        self.saved_time = self.time_cell.value

    def _restore(self) -> None:
        self.src[:] = self.dst
        self.time_cell.value = self.saved_time


class VectorBlock(StateBlock):
    """The engine's own state vector."""

    strategy = "vector"

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        self._vector = np.empty(mujoco.mj_stateSize(model, _INTEGRATION))
        super().__init__(model, data)

    def save(self) -> None:
        """See ``StateBlock.save``."""
        mujoco.mj_getState(self.model, self.data, self._vector, _INTEGRATION)
        self.saved_time = self.time_cell.value

    def _restore(self) -> None:
        mujoco.mj_setState(self.model, self.data, self._vector, _INTEGRATION)


class CopyBlock(StateBlock):
    """A second ``MjData``; exact always, and a hundred times dearer."""

    strategy = "copy"

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        self._kept: mujoco.MjData = copy.copy(data)
        super().__init__(model, data)

    @property
    def suits_options(self) -> bool:
        """Always."""
        return True

    def save(self) -> None:
        """See ``StateBlock.save``."""
        mujoco.mj_copyData(self._kept, self.model, self.data)
        self.saved_time = self.time_cell.value

    def _restore(self) -> None:
        mujoco.mj_copyData(self.data, self.model, self._kept)


# -- where the state lies ------------------------------------------------------------------------


def state_extent(model: mujoco.MjModel, data: mujoco.MjData) -> range | None:
    """Addresses from the first to the last state array, if they are what the state consists of."""
    arrays = _state_arrays(data)
    if arrays is None or not _is_the_state(model, data, arrays):
        return None
    filled = [array for array in arrays if array.size]
    if not all(array.flags.c_contiguous for array in filled):
        return None
    low = min((array.ctypes.data for array in filled), default=data.qpos.ctypes.data)
    high = max((array.ctypes.data + array.nbytes for array in filled), default=low)
    buffer = size_cell(data, "mjData", "buffer").value
    inside = buffer <= low and high <= buffer + size_cell(data, "mjData", "nbuffer").value
    return range(low, high) if inside or not filled else None


def _state_arrays(data: mujoco.MjData) -> list[np.ndarray[Any, Any]] | None:
    names = [
        name.removeprefix("mjSTATE_").lower()
        for name, kind in mujoco.mjtState.__members__.items()
        if name.startswith("mjSTATE_") and int(kind).bit_count() == 1 and kind & _INTEGRATION
    ]
    names.remove("time")
    arrays = [_ARRAYS.get(name, name) for name in names]
    return (
        [getattr(data, name) for name in arrays] if all(hasattr(data, a) for a in arrays) else None
    )


def _is_the_state(
    model: mujoco.MjModel, data: mujoco.MjData, arrays: list[np.ndarray[Any, Any]]
) -> bool:
    """Whether the engine's state vector is time and these arrays, and nothing else."""
    vector = np.empty(mujoco.mj_stateSize(model, _INTEGRATION))
    mujoco.mj_getState(model, data, vector, _INTEGRATION)
    parts = [np.asarray([data.time]), *(array.ravel().astype(np.float64) for array in arrays)]
    return np.concatenate(parts).tobytes() == vector.tobytes()
