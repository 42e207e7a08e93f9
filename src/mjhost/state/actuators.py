"""The controls of actuators, by actuator.

Invariants: one control that the engine would call bad switches *all* actuators off for a step, so
none is ever written. Controls of several actuators are written in one store.
Failure: ``UnknownNameError`` or ``InvalidArgumentError`` that names every actuator with a problem;
the previous controls stay.
Not a goal: ranges. A control outside ``ctrlrange`` is written as it is; the engine clamps what it
uses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import mujoco
import numpy as np

from mjhost.errors import InvalidArgumentError, MjhostError, UnknownNameError
from mjhost.state.joints import combined
from mjhost.state.names import Names, ObjectKind
from mjhost.state.numbers import vector
from mjhost.state.records import Array, frozen_copy


def inputs(model: mujoco.MjModel, actuator: int) -> slice:
    """Where in ``ctrl`` the controls of an actuator are; most have one."""
    first = int(model.actuator_ctrladr[actuator])
    return slice(first, first + int(model.actuator_ctrlnum[actuator]))


def outputs(model: mujoco.MjModel, actuator: int) -> slice:
    """Where in ``actuator_force`` the forces of an actuator are; most have one."""
    first = int(model.actuator_outadr[actuator])
    return slice(first, first + int(model.actuator_outnum[actuator]))


def activations(model: mujoco.MjModel, actuator: int) -> slice:
    """Where in ``act`` the activations of an actuator are; many have none."""
    first = max(int(model.actuator_actadr[actuator]), 0)
    return slice(first, first + max(int(model.actuator_actnum[actuator]), 0))


def controls(model: mujoco.MjModel, data: mujoco.MjData, names: Names) -> dict[str, Array]:
    """The controls of all actuators."""
    return {
        name: frozen_copy(data.ctrl[inputs(model, actuator)])
        for name, actuator in names.ids(ObjectKind.ACTUATOR).items()
    }


def plan_controls(
    model: mujoco.MjModel, data: mujoco.MjData, names: Names, wanted: Mapping[str, Any]
) -> Callable[[], None]:
    """What writes the controls of ``wanted``: by actuator a number, or one per input."""
    if not isinstance(wanted, Mapping):
        raise InvalidArgumentError(
            "controls must be a mapping of actuators to numbers, got "
            f"{type(wanted).__name__}; write {{'actuator': 0.5}}"
        )
    errors: list[MjhostError] = []
    at: list[int] = []
    values: list[float] = []
    for name, given in wanted.items():
        try:
            place = inputs(model, names.id(ObjectKind.ACTUATOR, name))
            checked = vector(given, place.stop - place.start, f"ctrl of actuator {name!r}")
        except (InvalidArgumentError, UnknownNameError) as error:
            errors.append(error)
            continue
        at.extend(range(place.start, place.stop))
        values.extend(checked.tolist())
    if errors:
        raise combined(errors)
    index, numbers = np.array(at, dtype=np.intp), np.array(values, dtype=np.float64)

    def write() -> None:
        data.ctrl[index] = numbers

    return write


def ranges(model: mujoco.MjModel, place: slice) -> Array:
    """Least and greatest control that the engine uses, per input, shape (n, 2); ±inf without."""
    limited = model.actuator_ctrllimited[place].astype(bool)[:, np.newaxis]
    return frozen_copy(np.where(limited, model.actuator_ctrlrange[place], (-np.inf, np.inf)))
