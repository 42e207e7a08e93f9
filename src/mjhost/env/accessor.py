"""What all objects of the hosted model that users keep have in common.

Owns: the address of one named object in one model generation, and nothing else: a kept accessor
keeps neither the env nor the model alive.
Invariants: what is read is of one step boundary, and a copy. A single number is a ``float``,
several are an array of shape (n,) that cannot be written to.
Threads: any. While a step is in flight reading waits for its end; otherwise it is a copy without
taking the lock, see ``Accessor._number``.
Failure: ``StaleGenerationError`` once the model has been replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from mjhost.env.hosted import HostedModel
from mjhost.env.phases import Operation
from mjhost.env.state_access import StateAccess
from mjhost.generation import ModelGeneration
from mjhost.state.names import ObjectKind
from mjhost.state.records import Array, frozen_copy

T = TypeVar("T")

_SMALL = 256  # numbers; numpy copies no more than these without ever letting go of the GIL


class Accessor:
    """One object of the model, as of one model generation."""

    __slots__ = ("_access", "_baton", "_core", "_generation", "_id", "_machine", "_name")

    kind: ClassVar[ObjectKind]

    def __init__(self, access: StateAccess, hosted: HostedModel, index: int, name: str) -> None:
        self._access = access
        self._core = access.core
        self._machine = access.core.machine
        self._baton = access.core.lock.baton
        self._generation = hosted.generation
        self._id = index
        self._name = name

    @property
    def name(self) -> str:
        """Its name; ``#`` and its index if the model gives it none."""
        return self._name

    @property
    def id(self) -> int:
        """Its index in the model."""
        return self._id

    @property
    def generation(self) -> ModelGeneration:
        """The model generation it belongs to."""
        return self._generation

    def __repr__(self) -> str:
        return f"<{self.kind} {self._name!r} of {self._generation!r}>"

    # -- for subclasses ----------------------------------------------------------------------

    def _keep(self, hosted: HostedModel, member: str, array: Any, place: Any) -> str:
        """Keeps a live view under a key, for ``_number`` and ``_array``."""
        key = f"{member}[{place}]"
        hosted.views[key] = array[place]
        return key

    def _number(self, key: str) -> float:
        """A copy of the one number behind ``key``.

        The short way takes no lock. Whoever steps or writes holds the lock, that is the baton, and
        the interpreter changes threads only after calls, at function entry and at backward jumps:
        between the look at the baton and the copy there is none of these.
        """
        hosted = self._core.hosted
        if (
            hosted is not None
            and hosted.generation is self._generation
            and self._machine.operational
            and self._baton
        ):
            return hosted.views[key].item()
        return self._read(lambda current: current.views[key].item())

    def _array(self, key: str) -> Array:
        """A copy of the numbers behind ``key``; the same short way."""
        hosted = self._core.hosted
        if (
            hosted is not None
            and hosted.generation is self._generation
            and self._machine.operational
            and (view := hosted.views[key]).size <= _SMALL
            and self._baton
        ):
            copy = view.copy()
            copy.setflags(False)  # type: ignore[call-arg]  # by name it costs as much as the copy
            return copy
        return self._read(lambda current: frozen_copy(current.views[key]))

    def _read(self, look: Callable[[HostedModel], T]) -> T:
        return self._access.read(look, self._generation)

    def _set_state(self, plan: Callable[[HostedModel], Callable[[], None]]) -> None:
        self._access.mutate(Operation.SET_STATE, plan, generation=self._generation)
