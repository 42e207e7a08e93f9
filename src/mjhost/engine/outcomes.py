"""What becomes of an exception in a thunk, and of calls for data that have failed.

Owns: the way of a failure: into the engine call that it happened in, if somebody waits for an error
there, else to ``failures``; and what stands for a method of data with a pending failure.
Invariants: nothing is raised here: what goes wrong on the way becomes the failure.
Threads: that of the thunk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from mjhost.engine import failures, frames
from mjhost.engine.entrances import guarded
from mjhost.engine.failures import pending
from mjhost.engine.lives import Call, Lives
from mjhost.errors import EnginePluginError

FAR: Final = 1e3
"""What an SDF that failed says: far away, no contact."""

Binder = Callable[[int, int, int, int], Call]


def _silent(*_: Any) -> None:
    """Stands for a method of data with a pending failure."""


_SILENT: Final[dict[str, Callable[..., Any]]] = {
    "sdf_distance": lambda *_: FAR,
    "sdf_gradient": lambda *_: (0.0, 0.0, 0.0),
}


def binder(owner: Lives, method: str) -> Binder:
    """What gives a thunk the call of a method when none is ready, or not for this model.

    Its arguments are the addresses of model (0 where the engine does not tell) and data, the
    instance, and ``out``.
    """
    silent = _SILENT.get(method, _silent)

    def bind(model: int, data: int, instance: int, out: int) -> Call:
        if data in pending:
            skip(data, out)
            return silent, None, None, model
        return owner.call(method, model, data, instance)

    return bind


class Site(NamedTuple):
    """A method of a plugin name, as what failed."""

    owner: Lives
    method: str

    def told(self, error: BaseException, instance: int | None, label: str) -> EnginePluginError:
        """``error`` as what is raised of it; what is of that kind already stays what it is."""
        if isinstance(error, EnginePluginError):
            return error
        name = self.owner.declaration.name
        return failures.failure(name, instance, label, self.method, error)


@guarded
def fail(site: Site, error: BaseException, data: int, instance: int, out: int) -> None:
    """Has the engine call raise the failure if it can, else parks it."""
    try:
        record = site.owner.known(data, instance) if data else None
        made = site.told(error, instance, record.label if record else f"instance {instance}")
        is_new = record is not None and record.is_new and site.method in {"reset", "copy"}
        if out and data and frames.abort(out, made, data, data if is_new else 0):
            return
        if record is not None:
            record.is_new = False  # the engine goes on and hands the data over
        failures.park(made, data)
    except BaseException as worse:  # noqa: BLE001 - an interrupt, most likely
        failures.park(site.told(worse, instance, ""), data)


@guarded
def skip(data: int, out: int) -> None:
    """Does nothing for data with a pending failure, or has this call raise it."""
    try:
        error = failures.pending.get(data)
        if error is not None and out and frames.abort(out, error, data, 0):
            failures.take(data)
    except BaseException as worse:  # noqa: BLE001 - an interrupt, most likely; the failure stays
        failures.park(failures.failure("", None, "", "on the way into a method", worse))
