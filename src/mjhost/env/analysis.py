"""Looking ahead from the present state: linearization and rollouts, with the hooks of the env.

Owns: private copies of the data for the time of a call.
Invariants: the live data are left in the state they were in. Callbacks and the ``control`` and
``passive`` hooks of plugins fire as they would in a step; ``pre_step`` and ``post_step`` belong to
the host's own steps and do not.
Threads: ``linearize`` holds the physics lock; a rollout holds it only while it copies the data, and
takes the plugin-host lock call by call.
Failure: what a hook raised, or ``DivergenceError``; nothing changed.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import msgspec
import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mjhost.callbacks import Entry, Route, router
from mjhost.env.engine_log import WarningCounters
from mjhost.env.extensions import raise_failure
from mjhost.env.hooks import raise_parked
from mjhost.env.stepping import adopt_this_thread
from mjhost.errors import DivergenceError, InvalidArgumentError

if TYPE_CHECKING:
    from mjhost.env.hosted import HostedModel
    from mjhost.env.plugging import Plugging
    from mjhost.env.stepping import Stepper

Floats = NDArray[np.float64]

STATE = int(mujoco.mjtState.mjSTATE_FULLPHYSICS)
"""What a row of ``Rollout.state`` holds, in the order of ``mujoco.mj_getState``."""


class Linearization(msgspec.Struct, frozen=True):
    """Discrete-time transition matrices around the present state and control.

    With ``x = (dq, qvel, act)`` and sensors ``s``: ``x' = A x + B u``, ``s = C x + D u``.

    Attributes:
        A: ``(2*nv+na, 2*nv+na)``.
        B: ``(2*nv+na, nu)``.
        C: ``(nsensordata, 2*nv+na)``.
        D: ``(nsensordata, nu)``.
    """

    A: Floats
    B: Floats
    C: Floats
    D: Floats


class Rollout(msgspec.Struct, frozen=True):
    """Where a sequence of controls leads.

    Attributes:
        state: ``(nstep, nstate)``, or ``(nbatch, nstep, nstate)``: time, qpos, qvel, act, … after
            each step, as ``mj_getState`` with ``mjSTATE_FULLPHYSICS`` gives it.
        sensordata: ``(nstep, nsensordata)`` or ``(nbatch, nstep, nsensordata)``, of each step.
    """

    state: Floats
    sensordata: Floats


def linearize(
    plugging: Plugging, stepper: Stepper, hosted: HostedModel, eps: float, *, centered: bool
) -> Linearization:
    """Finite differences of one step; the caller holds the physics lock."""
    if isinstance(eps, bool) or not isinstance(eps, (int, float)) or not 1e-12 <= eps <= 1.0:
        raise InvalidArgumentError(f"eps must lie between 1e-12 and 1, got {eps!r}")
    model = hosted.model
    nx, nu, ns = 2 * model.nv + model.na, model.nu, model.nsensordata
    found = Linearization(
        np.zeros((nx, nx)), np.zeros((nx, nu)), np.zeros((ns, nx)), np.zeros((ns, nu))
    )

    def differences(model: mujoco.MjModel, data: mujoco.MjData) -> None:
        mujoco.mjd_transitionFD(model, data, eps, centered, found.A, found.B, found.C, found.D)

    adopt_this_thread()
    try:
        plugging.call_engine(hosted, Entry.FINITE_DIFFERENCE, differences)  # undoes what raises
    finally:
        hosted.state.restore()
    stepper.refresh(hosted)
    return found


def rollout(
    plugging: Plugging,
    model: mujoco.MjModel,
    data: mujoco.MjData,
    control: ArrayLike,
    initial_state: ArrayLike | None,
) -> Rollout:
    """Steps private copies of ``data``, which the caller made and gives away."""
    controls, starts, batched = _checked(model, control, initial_state)
    adopt_this_thread()
    runs = [
        _run(plugging, model, copy.copy(data), start, sequence)
        for start, sequence in zip(starts, controls, strict=True)
    ]
    state = np.stack([run.state for run in runs])
    sensordata = np.stack([run.sensordata for run in runs])
    return Rollout(state, sensordata) if batched else Rollout(state[0], sensordata[0])


def _run(
    plugging: Plugging,
    model: mujoco.MjModel,
    data: mujoco.MjData,
    start: Floats | None,
    control: Floats,
) -> Rollout:
    if start is not None:
        mujoco.mj_setState(model, data, np.ascontiguousarray(start), STATE)
    nstep = len(control)
    states = np.empty((nstep, mujoco.mj_stateSize(model, STATE)))
    sensors = np.empty((nstep, model.nsensordata))
    warnings = WarningCounters(data)
    route = router.attach(model, data)
    try:
        plugging.callbacks.hook_onto(route)
        with route.entered(Entry.ROLLOUT):
            for step in range(nstep):
                data.ctrl[:] = control[step]
                _step(route, warnings, step)
                mujoco.mj_getState(model, data, states[step], STATE)
                sensors[step] = data.sensordata
    finally:
        route.detach()
    return Rollout(states, sensors)


def _step(route: Route, warnings: WarningCounters, step: int) -> None:
    warnings.clear()
    mujoco.mj_step(route.model, route.data)
    raise_parked(route)
    raise_failure(route.data)
    if warnings.diverged():
        what = ", ".join(sorted(warnings.counts()))
        raise DivergenceError(
            f"the rollout diverged in its step {step + 1} ({what}); the env is as it was",
            completed=step,
        )


def _checked(
    model: mujoco.MjModel, control: Any, initial_state: Any
) -> tuple[Floats, list[Floats | None], bool]:
    controls = _array("control", control)
    batched = controls.ndim == 3
    if not batched:
        controls = controls[None]
    if controls.ndim != 3 or controls.shape[2] != model.nu or controls.shape[1] < 1:
        raise InvalidArgumentError(
            f"control must be of shape (nstep, nu) or (nbatch, nstep, nu) with nu = {model.nu}, "
            f"got {np.shape(control)}"
        )
    nbatch, size = len(controls), mujoco.mj_stateSize(model, STATE)
    if initial_state is None:
        return controls, [None] * nbatch, batched
    states = _array("initial_state", initial_state)
    states = states[None] if states.ndim == 1 else states
    if states.shape != (nbatch, size):
        raise InvalidArgumentError(
            f"initial_state must be of shape ({size},) or ({nbatch}, {size}), got "
            f"{np.shape(initial_state)}"
        )
    return controls, list(states), batched


def _array(name: str, value: Any) -> Floats:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{name} must be an array of numbers: {error}") from None
    if not np.isfinite(array).all():
        raise InvalidArgumentError(f"{name} must be finite everywhere")
    return array
