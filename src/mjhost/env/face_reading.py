"""The part of ``MujocoEnv`` that is for looking: info, events, faults, model and data.

Invariants: as for ``MujocoEnv``; a face has no state of its own.
Threads: every method may be called from any thread, unless it says otherwise.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

import mujoco

from mjhost.env.core import EnvCore
from mjhost.env.events import EventHub
from mjhost.env.hosted import HostedModel
from mjhost.env.phases import Operation, Phase
from mjhost.env.records import EnvInfo, Fault, Generations
from mjhost.env.stepping import Stepper
from mjhost.errors import NotLoadedError, StaleGenerationError
from mjhost.generation import ModelGeneration

logger = logging.getLogger("mjhost")

_SLOW_SCOPE_S = 0.1


class ReadingFace:
    """What there is to look at."""

    _core: EnvCore
    _stepper: Stepper

    @property
    def info(self) -> EnvInfo:
        """Everything worth knowing, as of one step boundary; waits for it at most a slice."""
        core = self._core
        core.admit(Operation.INFO)
        with core.boundary(Operation.INFO):
            return core.info_locked()

    @property
    def phase(self) -> Phase:
        """Lifecycle phase; readable in every phase."""
        return self._core.machine.phase

    @property
    def generations(self) -> Generations:
        """The four counters."""
        self._core.admit(Operation.INFO)
        return self._core.generations()

    @property
    def events(self) -> EventHub:
        """Where to subscribe to what happens."""
        return self._core.hub

    @property
    def fault(self) -> Fault | None:
        """What stopped the simulation, or ``None``."""
        self._core.admit(Operation.INFO)
        return self._core.fault

    def clear_fault(self) -> None:
        """Forgets the fault; the state stays that before the step that failed.

        Callbacks that somebody wrote over are installed again, in front of his.

        Raises:
            ForeignCallbackError: his cannot be kept beside ours; the fault stays.
        """
        core = self._core
        core.admit(Operation.CLEAR_FAULT)
        with core.lock.holding(Operation.CLEAR_FAULT):
            core.plugging.reclaim()
            core.fault = None
            self._stepper.grant_single_step()

    @property
    def model(self) -> mujoco.MjModel:
        """The live model, until the next reload. While running, use it inside ``access()``."""
        return self._hosted("model").model

    @property
    def data(self) -> mujoco.MjData:
        """The live data, until the next reload. While running, use it inside ``access()``."""
        return self._hosted("data").data

    @contextmanager
    def access(
        self, generation: ModelGeneration | None = None
    ) -> Iterator[tuple[mujoco.MjModel, mujoco.MjData]]:
        """Holds the simulation at a step boundary and gives model and data, to read or to write.

        No env operation that needs the lock is possible inside. A scope that holds up a running
        simulation for longer than 0.1 s is logged.

        Args:
            generation: the model generation the caller believes to be current.

        Raises:
            StaleGenerationError: another model has been loaded since.
        """
        core = self._core
        core.admit(Operation.SCOPED_ACCESS)
        with core.lock.holding(Operation.SCOPED_ACCESS):
            hosted = self._hosted("access")
            if generation is not None and generation != hosted.generation:
                raise StaleGenerationError(
                    f"access asked for {generation!r}, which has been replaced; the current one is "
                    f"{hosted.generation!r}: look at env.generations again"
                )
            started = time.monotonic()
            core.scope_open = True
            try:
                yield hosted.model, hosted.data
            finally:
                core.scope_open = False
                _report_slow_scope(time.monotonic() - started, held_up=core.running)

    def _hosted(self, asked: str) -> HostedModel:
        core = self._core
        core.admit(Operation.READ_STATE)
        hosted = core.hosted
        if hosted is None:
            raise NotLoadedError(f"{asked} needs a model and none is loaded; call load(source)")
        return hosted

    # -- access control ----------------------------------------------------------------------

    @property
    def eval_mode(self) -> bool:
        """Whether mutating operations of transports need the evaluation token."""
        return self._core.access_control.eval_mode

    def authorize(self, operation: str, token: str | None = None) -> None:
        """The check that every transport makes before it runs ``operation`` for a client.

        Raises:
            NotAuthorizedError: the operation changes something and the token is not the one.
            UnknownNameError: there is no such operation.
        """
        self._core.access_control.authorize(operation, token)


def _report_slow_scope(seconds: float, *, held_up: bool) -> None:
    if held_up and seconds > _SLOW_SCOPE_S:
        logger.warning("an access() scope held up the running simulation for %.3f s", seconds)
