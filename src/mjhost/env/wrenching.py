"""The moment of a step in which wrenches act.

Owns: how the wrenches of a pair become part of its hooks: on top of what users applied, after all
``pre_step``, and out again before any ``last_stage``. The engine's ``control`` and ``passive``
callbacks, which come in between, see and write what is the users', as all hooks do.
Invariants: while none is applied nothing of this runs. A step that is undone takes its wrenches
with it, as they are part of the state; it is taken again with the same.
Threads: as for hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import mujoco

if TYPE_CHECKING:
    from mjhost.env.hooks import ModelCall
    from mjhost.env.hosted import HostedModel
    from mjhost.state.wrenches import Wrenches

HIDDEN_FROM: Final = ("control", "passive")
"""Callbacks that run between the wrenches' coming and their use, and may write forces."""


def acting(
    hosted: HostedModel, pre: ModelCall | None, last: ModelCall | None, ended: Callable[[], None]
) -> tuple[ModelCall, ModelCall]:
    """``pre_step`` and ``last_stage`` of a pair with wrenches.

    Args:
        hosted: the pair.
        pre: what runs before the step besides, if anything.
        last: what runs after the engine besides, if anything.
        ended: called when no wrench is left, so that the hooks are bundled without them.
    """
    wrenches = hosted.wrenches

    def add(model: mujoco.MjModel, data: mujoco.MjData) -> None:
        if pre is not None:
            pre(model, data)
        if not wrenches.expire(hosted.steps, hosted.dt):
            ended()
        _put_on(hosted)

    def take_out(model: mujoco.MjModel, data: mujoco.MjData) -> None:
        wrenches.take_out(data)
        if last is not None:
            last(model, data)

    return add, take_out


def hidden(wrenches: Wrenches) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """What makes a callback see ``xfrc_applied`` without the wrenches, which act all the same."""

    def around(call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def without_wrenches(model: Any, data: Any) -> None:
            lifted = wrenches.lift(data)
            call(model, data)  # what raises undoes the step, and the wrenches with it
            if lifted:
                wrenches.lay(data)

        return without_wrenches

    return around


def _put_on(hosted: HostedModel) -> None:
    if hosted.wrenches.need_poses:  # those in the data are of the last step's start
        mujoco.mj_kinematics(hosted.model, hosted.data)
    hosted.wrenches.add(hosted.model, hosted.data)


@contextmanager
def wrenched(hosted: HostedModel) -> Iterator[None]:
    """Around a call of the engine that is no step: it sees what the next step would see."""
    if not hosted.wrenches or not hosted.wrenches.expire(hosted.steps, hosted.dt):
        yield
        return
    _put_on(hosted)
    yield
    hosted.wrenches.take_out(hosted.data)
