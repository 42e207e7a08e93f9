"""Structural edits of a live simulation.

Owns: ``Edit``, a scope in which a copy of the model's spec may be changed.
Invariants: nothing of it reaches the simulation before the scope ends well; then it is a reload
that keeps the state. An exception inside, or a spec that does not compile, changes nothing.
Threads: the thread that entered it. Stepping goes on meanwhile.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

import mujoco

from mjhost.env.phases import Operation
from mjhost.errors import InvalidArgumentError, ModelLoadError

if TYPE_CHECKING:
    from mjhost.env.core import EnvCore
    from mjhost.env.hosted import HostedModel
    from mjhost.env.lifecycle import Lifecycle
    from mjhost.env.records import ReloadReport


class Edit:
    """``with env.edit() as spec:``; see ``MujocoEnv.edit``.

    Attributes:
        report: of the reload that took the edit over; ``None`` before, and if there was none.
    """

    def __init__(self, core: EnvCore, lifecycle: Lifecycle) -> None:
        self._core = core
        self._lifecycle = lifecycle
        self._hosted: HostedModel | None = None
        self._spec: mujoco.MjSpec | None = None
        self.report: ReloadReport | None = None

    def __enter__(self) -> mujoco.MjSpec:
        if self._spec is not None or self.report is not None:
            raise InvalidArgumentError("an edit is used once; call env.edit() again")
        core = self._core
        core.admit(Operation.EDIT)
        core.refuse_holding(Operation.EDIT)
        hosted = core.hosted
        assert hosted is not None, "admitted without a model"
        spec = hosted.compiled.spec
        if spec is None:
            raise ModelLoadError(
                f"{hosted.source.label} cannot be edited: a compiled model (MJB, MjModel) has no "
                "spec; load its MJCF or MjSpec"
            )
        self._hosted, self._spec = hosted, spec.copy()
        return self._spec

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        hosted, spec = self._hosted, self._spec
        self._hosted = self._spec = None
        if error is not None or hosted is None or spec is None:
            return
        self.report = self._lifecycle.take_over(hosted.source.edited(spec), hosted)
