"""Joint states that a simulation starts from.

Owns: nothing; a plan belongs to whoever made it.
Invariants: everything is checked against the model when the plan is made; applying cannot fail and
touches no joint that was not named.
Failure: one error that lists every problem, or with ``on_error="warn"`` a plan without the joints
that have one, whose ``problems`` says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import mujoco

from mjhost.errors import InvalidArgumentError
from mjhost.state.joints import JointPlan, plan_joint_states
from mjhost.state.names import Names

OnError = Literal["raise", "warn"]


def plan(
    model: mujoco.MjModel,
    states: Mapping[str, Any],
    *,
    on_error: OnError = "raise",
    names: Names | None = None,
) -> JointPlan:
    """What puts the joints of ``states`` where they are to start.

    Args:
        model: the model, which need not be live.
        states: by joint its numbers (free 7: xyz and wxyz, ball 4: wxyz, others 1), or a mapping
            with ``qpos`` and ``qvel`` (free 6, ball 3, others 1).
        on_error: ``"raise"``, or ``"warn"`` to leave out what has a problem; the plan lists it.
        names: the model's names, if somebody has them.

    Raises:
        UnknownNameError, InvalidArgumentError: something is wrong; the message lists everything.
    """
    if on_error not in ("raise", "warn"):
        raise InvalidArgumentError(f"on_error must be 'raise' or 'warn', got {on_error!r}")
    return plan_joint_states(model, names or Names(model), states, skip=on_error == "warn")
