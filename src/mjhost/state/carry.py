"""State carried from one model to another, by name.

Owns: which numbers of an old state belong to which of a new one.
Invariants: things are the same if they are known by the same (``mjhost.state.inventory``) and have
the same type and widths. Nothing is carried by index alone. Between models with the same things the
whole state is carried, to the last bit.
Threads: a plan is made from models that may be live elsewhere, and is immutable; applying it needs
both simulations to stand still.
Failure: none of its own: what cannot be carried is listed, and starts as a new model does.
"""

from __future__ import annotations

from typing import Final

import msgspec
import mujoco
import numpy as np
import numpy.typing as npt

from mjhost.state.inventory import Thing, things

_INTEGRATION: Final = int(mujoco.mjtState.mjSTATE_INTEGRATION)
_BEYOND_STATE: Final = int(mujoco.mjtEnableBit.mjENBL_SLEEP) | int(mujoco.mjtEnableBit.mjENBL_IPC)


class CarryReport(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the state in a reload that keeps it; things by kind and name.

    Attributes:
        carried: what went on as it was.
        new: what was not there before and begins at its defaults.
        dropped: what is not there any more.
        restarted: what has another type, width or mechanism (a motor that became a position servo)
            than before and begins at its defaults.
        exact: whether what was carried is all that the engine knows of it: not with ``sleep`` or
            ``ipc``, where it keeps more than can be carried.
    """

    carried: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()
    exact: bool = True


class CarryPlan:
    """How the state of one model goes into another.

    Attributes:
        report: what will have become of it.
        joints: names of the joints that are carried, of those that have one.
    """

    __slots__ = ("_copies", "_whole", "joints", "report")

    def __init__(self, old: mujoco.MjModel, new: mujoco.MjModel) -> None:
        before, after = things(old), things(new)
        same = [key for key in after if key in before and before[key].shape == after[key].shape]
        self._whole = (
            list(before) == list(after)
            and len(same) == len(after)
            and mujoco.mj_stateSize(old, _INTEGRATION) == mujoco.mj_stateSize(new, _INTEGRATION)
        )
        self._copies = _copies([(before[key], after[key]) for key in same])
        self.joints = frozenset(key[1] for key in same if key[0] == "joint" and len(key) == 2)
        carried = set(same)
        restarted = [key for key in after if key in before and key not in carried]
        self.report = CarryReport(
            carried=tuple(after[key].label for key in same),
            new=tuple(after[key].label for key in after if key not in before),
            dropped=tuple(before[key].label for key in before if key not in after),
            restarted=tuple(after[key].label for key in restarted),
            exact=not (old.opt.enableflags | new.opt.enableflags) & _BEYOND_STATE,
        )

    def apply(
        self, old: tuple[mujoco.MjModel, mujoco.MjData], new: tuple[mujoco.MjModel, mujoco.MjData]
    ) -> None:
        """Copies what is carried; quantities that derive from it are the caller's."""
        (old_model, source), (new_model, target) = old, new
        if self._whole:
            state = np.empty(mujoco.mj_stateSize(old_model, _INTEGRATION))
            mujoco.mj_getState(old_model, source, state, _INTEGRATION)
            mujoco.mj_setState(new_model, target, state, _INTEGRATION)
            return
        target.time = source.time
        for array, (there, here) in self._copies.items():
            getattr(target, array)[here] = getattr(source, array)[there]
        if source.userdata.size == target.userdata.size:
            target.userdata[:] = source.userdata


def _copies(
    pairs: list[tuple[Thing, Thing]],
) -> dict[str, tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]]:
    """Per array the rows to read and the rows to write."""
    rows: dict[str, tuple[list[int], list[int]]] = {}
    for before, after in pairs:
        for there, here in zip(before.parts, after.parts, strict=True):
            reads, writes = rows.setdefault(here.array, ([], []))
            reads += range(there.start, there.start + there.size)
            writes += range(here.start, here.start + here.size)
    return {
        array: (np.array(reads, np.intp), np.array(writes, np.intp))
        for array, (reads, writes) in rows.items()
    }
