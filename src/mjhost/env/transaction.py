"""Options as transactions on the live model.

Owns: the admission check, and the order parse, merge, validate, write.
Invariants: the four happen under the physics lock, at a step boundary; the first that fails ends
the transaction before a byte of ``model.opt`` changed. A patch formed against a model is never
applied to another one.
Threads: any; waits for the physics lock.
Failure: ``LoadingWindowError`` or ``OptionsRejected`` (or a result that lists the problems); the
options are as they were.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from mjhost.env.events import OptionChange, OptionsChanged
from mjhost.env.phases import Operation
from mjhost.errors import LoadingWindowError, NotLoadedError, OptionsRejected, PhaseError
from mjhost.options import (
    OptionsResult,
    PatchInputs,
    RuntimeOptionsPatch,
    RuntimeOptionsSnapshot,
    default_snapshot,
    prepare_runtime_options,
)

if TYPE_CHECKING:
    from mjhost.env.core import EnvCore
    from mjhost.env.hosted import HostedModel
    from mjhost.env.stepping import Stepper


class OptionsTransaction:
    """Reads and writes the options of the live model."""

    def __init__(self, core: EnvCore, stepper: Stepper) -> None:
        self._core = core
        self._stepper = stepper

    def read(self) -> RuntimeOptionsSnapshot:
        """The options the next step will use."""
        core = self._core
        core.admit(Operation.OPTIONS_READ)
        hosted = core.hosted
        if hosted is None:
            raise NotLoadedError("runtime_options needs a model and none is loaded; call load()")
        return hosted.option_block.read()

    def apply(self, patch: PatchInputs, *, raise_on_error: bool) -> OptionsResult:
        """Applies ``patch`` to the live options, all or nothing."""
        core = self._core
        # The epoch first, then the phase: the other way round, a load that begins and ends between
        # the two reads would go unnoticed.
        epoch = core.admission_epoch
        core.admit(Operation.OPTIONS_WRITE)
        with core.lock.holding(Operation.OPTIONS_WRITE):
            core.admit_locked(Operation.OPTIONS_WRITE)
            if core.admission_epoch != epoch:
                raise LoadingWindowError(
                    "the options patch was formed before a reload that has happened since, and is "
                    "not applied to the new model; read the options again and repeat it"
                )
            hosted = core.hosted
            assert hosted is not None, "admitted without a model"
            return self.apply_locked(hosted, patch, raise_on_error=raise_on_error)

    def apply_locked(
        self, hosted: HostedModel, patch: PatchInputs, *, raise_on_error: bool
    ) -> OptionsResult:
        """The transaction itself, for a caller that holds the lock and was admitted."""
        old = hosted.option_block.read()
        result = prepare_runtime_options(old, patch, raise_on_error=raise_on_error)
        named = result.patch.names() if result.patch is not None else ()
        if not result.ok or result.snapshot is None:
            return msgspec.structs.replace(result, snapshot=old, changed=())
        if not named:
            return result
        self._write(hosted, result.snapshot, named)
        self.advance_epoch(hosted, old, result.snapshot, result.changed)
        return msgspec.structs.replace(result, epoch=self._core.options_epoch)

    def _write(
        self, hosted: HostedModel, new: RuntimeOptionsSnapshot, named: tuple[str, ...]
    ) -> None:
        core = self._core
        hosted.option_block.write(new)
        hosted.edited_options.update(named)
        hosted.options_changed()
        if hosted.dt != core.schedule.dt:
            self._stepper.anchor(hosted)
        self._stepper.forget_pace()
        core.attention = True
        core.plugging.rebundle()
        core.single_step = None  # it is bound to the roll-back of the old options
        self._stepper.grant_single_step()

    def advance_epoch(
        self,
        hosted: HostedModel,
        old: RuntimeOptionsSnapshot,
        new: RuntimeOptionsSnapshot,
        changed: Iterable[str],
    ) -> None:
        """Counts one applied transaction and tells what it changed."""
        core = self._core
        core.options_epoch = core.options_epoch.next()
        changes = tuple(
            OptionChange(field, getattr(old, field), getattr(new, field)) for field in changed
        )
        core.hub.publish(
            OptionsChanged,
            self._stepper.stamp(hosted),
            changes=changes,
            epoch=core.options_epoch.value,
        )

    def set_pending(self, patch: PatchInputs) -> None:
        """Keeps ``patch`` for the first load; checked at once against the defaults."""
        core = self._core
        core.admit(Operation.SET_PENDING_OPTIONS)
        if core.load_count:
            raise PhaseError(
                "startup options are accepted only before the first model is loaded; use "
                "apply_runtime_options() on a live model"
            )
        core.pending_options = prepare_runtime_options(default_snapshot(), patch).patch

    # -- inside a load -----------------------------------------------------------------------

    def apply_pending_locked(self, hosted: HostedModel) -> tuple[tuple[str, ...], str | None]:
        """Applies startup options to the first model; returns names applied and the problem."""
        patch, self._core.pending_options = self._core.pending_options, None
        if patch is None:
            return (), None
        result = self.apply_locked(hosted, patch, raise_on_error=False)
        if result.ok:
            return patch.names(), None
        return (), f"startup options were not applied: {OptionsRejected(result.errors)}"

    def keep_locked(
        self, hosted: HostedModel, patch: RuntimeOptionsPatch
    ) -> tuple[tuple[str, ...], str | None]:
        """Applies what of ``patch`` is valid on the new model; returns names and the problem."""
        result = self.apply_locked(hosted, patch, raise_on_error=False)
        if result.ok:
            return patch.names(), None
        problem = f"options not kept: {OptionsRejected(result.errors)}"
        bad = {error.field for error in result.errors}
        good: dict[str, Any] = {name: v for name, v in patch.items() if name not in bad}
        rest = RuntimeOptionsPatch(**good)
        again = self.apply_locked(hosted, rest, raise_on_error=False)
        return (rest.names() if again.ok else ()), problem


def edited_patch(hosted: HostedModel) -> RuntimeOptionsPatch:
    """The live values of the fields that transactions changed since the load."""
    live = hosted.option_block.read()
    edited: dict[str, Any] = {name: getattr(live, name) for name in hosted.edited_options}
    return RuntimeOptionsPatch(**edited)
