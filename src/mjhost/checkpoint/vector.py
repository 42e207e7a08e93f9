"""The engine's state vector, by the names of its components.

Owns: which components the integration state of the installed engine has, where each lies in the
vector of one model, and what a sound vector looks like.
Invariants: a component is known by its name only. The engine's numbers differ between versions:
what means the whole state in 3.15 means all but the plastic springs in 4.0.
Threads: layouts are immutable.
Failure: a refused vector was written nowhere.
"""

from __future__ import annotations

import functools
from typing import Any, Final, NamedTuple

import mujoco
import numpy as np
import numpy.typing as npt

from mjhost.errors import CheckpointError, UnknownNameError, did_you_mean

Vector = npt.NDArray[np.float64]

INTEGRATION: Final = int(mujoco.mjtState.mjSTATE_INTEGRATION)

# The engine keeps what it likes in these: times of minus infinity in a history nobody has filled.
_FREE: Final = frozenset({"history", "userdata", "plugin"})
_PREFIX: Final = "mjSTATE_"


class Component(NamedTuple):
    """One part of the state vector.

    Attributes:
        name: the engine's name of it, lower case: ``qpos``, ``warmstart``, ``eq_active``, ….
        start: index of its first number in the vector.
        size: how many numbers it has.
    """

    name: str
    start: int
    size: int

    @property
    def span(self) -> slice:
        """Where it lies in the vector."""
        return slice(self.start, self.start + self.size)


@functools.cache
def kinds() -> tuple[tuple[str, int], ...]:
    """Name and bit of every component of the integration state, in the order of the vector."""
    single = {
        name.removeprefix(_PREFIX).lower(): int(kind)
        for name, kind in mujoco.mjtState.__members__.items()
        if int(kind).bit_count() == 1 and int(kind) & INTEGRATION
    }
    return tuple(sorted(single.items(), key=lambda item: item[1]))


class StateLayout:
    """Where the components lie in the state vector of one model.

    Attributes:
        components: all of them, in the order of the vector; empty ones too.
        size: length of the vector.
    """

    __slots__ = ("_active", "_sound", "components", "size")

    def __init__(self, components: tuple[Component, ...]) -> None:
        self.components = components
        self.size = sum(component.size for component in components)
        self._active = self.component("eq_active").span
        self._sound: Vector | None = None  # the one that was checked last, if nobody can change it

    @classmethod
    def of(cls, model: mujoco.MjModel) -> StateLayout:
        """The layout for ``model`` in the installed engine."""
        start, components = 0, []
        for name, bit in kinds():
            size = mujoco.mj_stateSize(model, bit)
            components.append(Component(name, start, size))
            start += size
        return cls(tuple(components))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StateLayout) and self.components == other.components

    def __hash__(self) -> int:
        return hash(self.components)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{part.name} {part.size}" for part in self.components if part.size)
        return f"<StateLayout {sizes}>"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the components."""
        return tuple(component.name for component in self.components)

    def component(self, name: str) -> Component:
        """The component of that name.

        Raises:
            UnknownNameError: there is none.
        """
        for component in self.components:
            if component.name == name:
                return component
        raise UnknownNameError(
            f"no state component is named {name!r}; {did_you_mean(str(name), self.names)}"
        )

    def read(self, model: mujoco.MjModel, data: mujoco.MjData) -> Vector:
        """A copy of the state, shape ``(size,)``."""
        vector = np.empty(self.size)
        mujoco.mj_getState(model, data, vector, INTEGRATION)
        vector.flags.writeable = False
        return vector

    def is_checked(self, given: Any) -> bool:
        """Whether ``given`` is the sound vector that was read or checked last."""
        return given is self._sound and given is not None

    def checked(self, given: Any) -> Vector:
        """``given`` as a sound vector of this layout.

        Raises:
            CheckpointError: it has another size or type, or a number that no state has; which one
                is named.
        """
        if self.is_checked(given):
            sound: Vector = given
            return sound
        vector = self._sized(given)
        if not np.isfinite(vector).all():
            self._refuse_unsound(vector)
        active = vector[self._active]
        if active.size and not np.isin(active, (0.0, 1.0)).all():
            wrong = np.flatnonzero((active != 0.0) & (active != 1.0))
            raise CheckpointError(
                f"eq_active[{wrong[0]}] of the state must be 0 or 1, got {active[wrong[0]]:g}"
            )
        self._sound = vector if vector.base is None and not vector.flags.writeable else None
        return vector

    def _sized(self, given: Any) -> Vector:
        vector = given if type(given) is np.ndarray else np.asarray(given)
        if vector.dtype != np.float64 or vector.ndim != 1:
            raise CheckpointError(
                f"a state is a vector of float64, got {vector.dtype} of shape {vector.shape}"
            )
        if vector.size != self.size:
            parts = ", ".join(f"{part.name} {part.size}" for part in self.components if part.size)
            raise CheckpointError(
                f"the state of this model has {self.size} numbers ({parts}), got {vector.size}"
            )
        return vector

    def _refuse_unsound(self, vector: Vector) -> None:
        for component in self.components:
            values = vector[component.span]
            wrong = np.flatnonzero(~np.isfinite(values))
            if wrong.size and component.name not in _FREE:
                raise CheckpointError(
                    f"{component.name}[{wrong[0]}] of the state must be finite, got "
                    f"{values[wrong[0]]}"
                )

    def adapted(self, vector: Vector, other: StateLayout, fill: Vector) -> Vector:
        """``vector`` of ``other``'s layout in this one; what ``other`` lacks is of ``fill``.

        For a checkpoint of another engine version, whose state has fewer or more components.

        Raises:
            CheckpointError: a component has another size.
        """
        adapted = fill.copy()
        theirs = {component.name: component for component in other.components}
        for component in self.components:
            their = theirs.get(component.name)
            if their is None:
                continue
            if their.size != component.size:
                raise CheckpointError(
                    f"{component.name} has {their.size} numbers in the checkpoint and "
                    f"{component.size} in the model"
                )
            adapted[component.span] = vector[their.span]
        return adapted
