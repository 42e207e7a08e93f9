"""What a new model begins with: state carried from the old one, and initial joint states.

Owns: ``Start``, made outside the lock and applied in the swap; the initial states in force.
Invariants: everything that can be wrong is found when a ``Start`` is made, before anything is torn
down. A joint never touches its neighbour's coordinates.
Threads: made by the loading thread; applied under the physics lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from mjhost.errors import InvalidArgumentError
from mjhost.state import initial
from mjhost.state.carry import CarryPlan, CarryReport
from mjhost.state.names import ObjectKind
from mjhost.state.wrenches import loaded

if TYPE_CHECKING:
    from mjhost.env.hosted import HostedModel
    from mjhost.state.initial import OnError
    from mjhost.state.joints import JointPlan

InitialState = Mapping[str, Any]


class Initial:
    """The initial joint states that are in force.

    Attributes:
        states: by joint, as for ``MujocoEnv(initial_state=)``.
        on_error: what becomes of one that cannot be.
    """

    __slots__ = ("on_error", "states")

    def __init__(self, states: InitialState | None, on_error: OnError = "raise") -> None:
        self.states: dict[str, Any] = {} if states is None else dict(states)
        self.on_error: OnError = on_error

    def plan(self, hosted: HostedModel) -> JointPlan:
        """What puts the joints of ``hosted`` where they are to start."""
        return initial.plan(hosted.model, self.states, on_error=self.on_error, names=hosted.names)


def checked_initial(states: InitialState | None) -> Initial:
    """Initial states as they are given to an env that has no model yet."""
    if states is not None and not isinstance(states, Mapping):
        raise InvalidArgumentError(
            f"initial_state maps joint names to numbers, got {type(states).__name__}"
        )
    return Initial(states)


def given_initial(states: InitialState | None, on_error: OnError) -> Initial | None:
    """Initial states as they are given with a load or reset; ``None`` for those in force."""
    if states is None:
        return None
    initial = checked_initial(states)
    initial.on_error = on_error
    return initial


class Start:
    """How a candidate begins.

    Attributes:
        keeps_state: whether state, time and counters go on.
        problems: initial states that were left out, with the reason.
        standing: the initial states that are in force from then on.
    """

    __slots__ = ("_carry", "_plan", "keeps_state", "problems", "standing")

    def __init__(
        self, candidate: HostedModel, old: HostedModel | None, standing: Initial, *, given: bool
    ) -> None:
        """Finds out what is to be done.

        Args:
            candidate: the new pair.
            old: the pair whose state is kept, or ``None``.
            standing: the initial states.
            given: whether they were given with this very load: then they win over what is carried.
        """
        self._carry = None if old is None else CarryPlan(old.model, candidate.model)
        self.keeps_state = old is not None
        self.standing = standing
        if self._carry is None or given:
            self._plan = standing.plan(candidate)
            self.problems = self._plan.problems
        else:
            self._plan_beside(candidate, self._carry)

    def _plan_beside(self, candidate: HostedModel, carry: CarryPlan) -> None:
        """What was in force before applies to joints that are new, and ends with its joint."""
        states, on_error = self.standing.states, self.standing.on_error
        possible = Initial(states, "warn").plan(candidate)
        self.problems = possible.problems
        if possible.problems:
            self.standing = Initial({name: states[name] for name in possible.names}, on_error)
        fresh = {name: states[name] for name in possible.names if name not in carry.joints}
        self._plan = Initial(fresh).plan(candidate)

    def apply(self, candidate: HostedModel, old: HostedModel | None) -> CarryReport | None:
        """Writes the state the candidate begins with; derived quantities are the caller's."""
        report = None
        if self._carry is not None and old is not None:
            self._carry.apply((old.model, old.data), (candidate.model, candidate.data))
            candidate.steps = old.steps
            report = self._carried_wrenches(candidate, old)
        self._plan.apply(candidate.data)
        return report

    def _carried_wrenches(self, candidate: HostedModel, old: HostedModel) -> CarryReport:
        assert self._carry is not None, "asked for only then"
        report = self._carry.report
        saved = old.wrenches.save(old.steps)
        if not saved:
            return report
        bodies = dict(candidate.names.selected(ObjectKind.BODY, None))
        candidate.wrenches, missing = loaded(saved, bodies, candidate.steps)
        dropped = (*report.dropped, *(f"wrench on {name}" for name in missing))
        carried = (*report.carried, *(f"wrench on {w.label}" for w in candidate.wrenches))
        return msgspec.structs.replace(report, dropped=dropped, carried=carried)
