"""Reading and writing the simulation by name, at a step boundary.

Owns: the order admit, lock, admit again, validate, write, refresh; and the way back if one fails.
Invariants: what is to be written is validated as a whole before the first byte; a change that was
formed against a model is never applied to another one. Reading changes nothing.
Threads: any; waits for the physics lock. Inside a step reading sees the present moment, writing
raises ``ReentrancyError``.
Failure: the state is as it was, bit for bit; quantities derived from it are computed anew.
Not a goal: what is valid and how it is written; ``mjhost.state`` knows that.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import mujoco

from mjhost.env.phases import Operation
from mjhost.errors import LoadingWindowError, NotLoadedError, StaleGenerationError
from mjhost.generation import ModelGeneration
from mjhost.layout import copy_model_into

if TYPE_CHECKING:
    from mjhost.env.core import EnvCore
    from mjhost.env.hosted import HostedModel
    from mjhost.env.stepping import Stepper

T = TypeVar("T")


class StateAccess:
    """The one way in which named state is read and written."""

    __slots__ = ("core", "stepper")

    def __init__(self, core: EnvCore, stepper: Stepper) -> None:
        self.core = core
        self.stepper = stepper

    def read(
        self, look: Callable[[HostedModel], T], generation: ModelGeneration | None = None
    ) -> T:
        """What ``look`` returns at a step boundary; inside a step, at the present moment.

        Args:
            look: copies what it returns, and changes nothing.
            generation: the model generation that the caller's names or indices belong to.
        """
        core = self.core
        core.admit(Operation.READ_STATE)
        with core.boundary(Operation.READ_STATE):
            return look(self._hosted(Operation.READ_STATE, generation))

    def read_poses(
        self,
        look: Callable[[HostedModel, mujoco.MjData], T],
        generation: ModelGeneration | None = None,
    ) -> T:
        """What ``look`` makes of the poses and velocities of the present state.

        They are computed beside the live data, whose own are those of the last step's start. Where
        that is impossible it gets the live data: inside a step or a hook, where the engine must
        not be called, and with engine extensions written in Python, which data of its own would
        instantiate a second time.
        """
        live = self.core.is_inside_step() or self.core._is_inside_forward()

        def look_at_poses(hosted: HostedModel) -> T:
            as_is = live or hosted.extended
            return look(hosted, hosted.data if as_is else hosted.kinematics.of(hosted.data))

        return self.read(look_at_poses, generation)

    def mutate(
        self,
        operation: Operation,
        plan: Callable[[HostedModel], Callable[[], T]],
        *,
        generation: ModelGeneration | None = None,
        refresh: bool = True,
        edits_model: bool = False,
        after: Callable[[HostedModel, T], None] | None = None,
    ) -> T:
        """Changes the simulation at a step boundary, wholly or not at all.

        Args:
            operation: what is asked, for admission and messages.
            plan: validates everything, changes nothing and returns what writes it. What is written
                has to be part of the integration state, or be undone by ``plan``'s own means.
            generation: the model generation that the caller's names or indices belong to.
            refresh: recompute what derives from the state; no hook fires. Without, what ``plan``
                returned has to be a single store: there is nothing to undo.
            edits_model: whether the model changes too; it is then put back with the state.
            after: called with the result in the same moment, when all is done; what it raises
                undoes nothing.

        Returns:
            What the function that writes returned.

        Raises:
            LoadingWindowError: a load is in progress, or one ended while this call waited.
            ReentrancyError: called from inside a step.
        """
        core = self.core
        # Before the admission: a load that ends in between shows as another model.
        formed_against = core.hosted
        core.admit(operation)
        with core.lock.holding(operation):
            core.admit_locked(operation)
            hosted = self._hosted(operation, generation)
            if hosted is not formed_against:
                raise LoadingWindowError(
                    f"{operation.label} was asked for before a reload that has happened since, and "
                    "is not applied to the new model; look at it and ask again"
                )
            kept = copy.copy(hosted.model) if edits_model else None
            result = self._write(hosted, plan(hosted), kept, refresh=refresh)
            if after is not None:
                after(hosted, result)
            return result

    def _hosted(self, operation: Operation, generation: ModelGeneration | None) -> HostedModel:
        hosted = self.core.hosted
        if hosted is None:
            raise NotLoadedError(f"{operation.label} needs a model and none is loaded; call load()")
        if generation is not None and generation != hosted.generation:
            raise StaleGenerationError(
                f"{operation.label} was asked for an object of {generation!r}, which has been "
                f"replaced; the current one is {hosted.generation!r}: look it up by name again"
            )
        return hosted

    def _write(
        self,
        hosted: HostedModel,
        write: Callable[[], T],
        kept: mujoco.MjModel | None,
        *,
        refresh: bool,
    ) -> T:
        if not refresh:
            return write()
        hosted.state.save()
        try:
            result = write()
            self.stepper.refresh(hosted)
        except BaseException as error:
            if kept is not None:
                copy_model_into(hosted.model, kept)
            self.stepper.undo_call(hosted, error)
            raise
        return result
