"""A model and its data for the time the env owns them.

Owns: the pair itself, its pristine copy, and the cells and blocks through which the stepping code
reaches into the engine's memory without a Python object in between.
Invariants: a ``HostedModel`` never changes its model or data; a reload makes a new one. Every cell
points into memory that the pair keeps alive.
Threads: made by the loading thread, outside the lock; afterwards touched only under the physics
lock, except for reads of the counters.
Not a goal: stepping, phases, locks.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import mujoco

from mjhost.env.engine_log import WarningCounters
from mjhost.env.extensions import has_extensions
from mjhost.env.loading import CompiledModel, ModelSource
from mjhost.env.rollback import StateBlock
from mjhost.generation import ModelGeneration
from mjhost.layout import copy_model_into, double_cell
from mjhost.options.mapping import OptionBlock
from mjhost.state.kinematics import PresentKinematics
from mjhost.state.names import Names
from mjhost.state.records import Array
from mjhost.state.wrenches import Wrenches

if TYPE_CHECKING:
    from mjhost.env.checkpoints import Archive


class HostedModel:
    """One model generation: the live pair and what is known about it.

    Attributes:
        extended: whether the engine enters Python, or what was compiled of it, by itself.
        names: from names of objects to indices; made when first asked for.
        kinematics: poses and velocities of the present state, on data of its own.
        views: live arrays of accessors, by what they show; here, so that an accessor that outlives
            the model does not keep its memory.
        archive: what checkpoints need to know of the model; made when first asked for.
        wrenches: forces and torques that the env applies.
        steps: engine steps since the last load or reset; written by the stepping thread only.
        repeats: number of the step that was undone last, and may be taken again; 0 without one.
        edited_options: names of the option fields changed by a transaction since the load.
    """

    __slots__ = (
        "archive",
        "compiled",
        "data",
        "dt_cell",
        "edited_options",
        "extended",
        "generation",
        "kinematics",
        "model",
        "names",
        "option_block",
        "pristine",
        "repeats",
        "state",
        "steps",
        "views",
        "warnings",
        "wrenches",
    )

    def __init__(self, compiled: CompiledModel, generation: ModelGeneration) -> None:
        self.compiled = compiled
        self.generation = generation
        self.model: mujoco.MjModel = compiled.model
        self.data: mujoco.MjData = compiled.data
        self.pristine: mujoco.MjModel = copy.copy(compiled.model)
        self.names = Names(self.model)
        self.kinematics = PresentKinematics(self.model)
        self.views: dict[str, Array] = {}
        self.option_block = OptionBlock(self.model.opt)
        self.dt_cell = double_cell(self.model.opt, "mjOption", "timestep")
        self.warnings = WarningCounters(self.data)
        self.state = StateBlock.for_options(self.model, self.data)
        self.extended = has_extensions(self.model)
        self.archive: Archive | None = None
        self.wrenches = Wrenches()
        self.steps = 0
        self.repeats = 0
        self.edited_options: set[str] = set()

    def again(self, generation: ModelGeneration) -> HostedModel:
        """The same pair as a new ownership epoch, state and counters untouched."""
        twin = copy.copy(self)
        twin.generation = generation
        return twin

    @property
    def source(self) -> ModelSource:
        """Where the model came from and can be compiled from again."""
        return self.compiled.source

    @property
    def dt(self) -> float:
        """Time step the engine will use for the next step, s sim."""
        value: float = self.dt_cell.value
        return value

    def options_changed(self) -> None:
        """Chooses the roll-back anew: ``ipc`` and ``sleep`` need a full copy of the data."""
        self.state = StateBlock.for_options(self.model, self.data)

    def restore_model(self) -> None:
        """Puts every model field back to what the compiler made, in place."""
        copy_model_into(self.model, self.pristine)
        self.edited_options.clear()
        self.options_changed()
