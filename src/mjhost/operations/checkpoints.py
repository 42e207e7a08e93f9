"""Operations that stop and resume exactly, with files in the one directory the host was given.

Invariants: a client gives names, never paths; see ``mjhost.operations.store``.
"""

from __future__ import annotations

from typing import Annotated, Final

from mjhost.checkpoint import Checkpoint
from mjhost.errors import NotOfferedError
from mjhost.operations.fields import Done, Name, Real, Request, Response, about
from mjhost.operations.responses import response_of
from mjhost.operations.spec import Site, described
from mjhost.operations.store import CheckpointStore

_NAME: Final = "letters, digits, dots, hyphens, underscores; not a path"


class TakeCheckpoint(Request, frozen=True, kw_only=True):
    """Under which name to keep it."""

    name: Annotated[Name, about(f"name of the checkpoint: {_NAME}")]
    replace: Annotated[bool, about("whether one of that name is replaced")] = False


class CheckpointAnswer(Response, frozen=True, kw_only=True):
    """What was kept, or gone back to."""

    name: Annotated[str, about("name of the checkpoint")]
    sim_time: Annotated[Real, about("simulation time in it", "s sim")]
    step_count: Annotated[int, about("steps since the load or reset before it", "1")]
    engine: Annotated[str, about("version of MuJoCo it was taken with")]
    exact: Annotated[bool, about("whether it leads on to the same bits, as far as can be known")]
    inexact_because: Annotated[tuple[str, ...], about("who has state that is not in it")]


class RestoreCheckpoint(Request, frozen=True, kw_only=True):
    """Where to go on from."""

    name: Annotated[Name, about("name of the checkpoint")]
    allow_version: Annotated[
        bool, about("take one of another MuJoCo version, which is not the same to the bit")
    ] = False


class DeleteCheckpoint(Request, frozen=True, kw_only=True):
    """What to remove."""

    name: Annotated[Name, about("name of the checkpoint")]


class CheckpointList(Response, frozen=True, kw_only=True):
    """The checkpoints that are kept."""

    checkpoints: Annotated[dict[str, int], about("size of the file by name", "byte")]


def checkpoint(site: Site, request: TakeCheckpoint) -> CheckpointAnswer:
    """Keeps everything the simulation needs to go on from here to the same bits.

    It is kept in a file of a directory that the host was started with.
    """
    taken = _store(site).save(request.name, site.env.checkpoint, replace=request.replace)
    return _answer(request.name, taken)


def restore(site: Site, request: RestoreCheckpoint) -> CheckpointAnswer:
    """Goes on from a checkpoint of the same model; pending steps are cancelled, a fault cleared.

    Whether the simulation runs stays as it is.
    """
    found = _store(site).load(request.name)
    site.env.restore(found, allow_version=request.allow_version)
    return _answer(request.name, found)


def checkpoints(site: Site) -> CheckpointList:
    """Lists the checkpoints that are kept."""
    return response_of(CheckpointList, checkpoints=_store(site).files())


def delete_checkpoint(site: Site, request: DeleteCheckpoint) -> Done:
    """Removes the file of a checkpoint."""
    _store(site).delete(request.name)
    return Done()


def _store(site: Site) -> CheckpointStore:
    if site.checkpoints is None:
        raise NotOfferedError(
            "checkpoints of clients are kept in a directory that the host is started with, and "
            "this one was given none"
        )
    return site.checkpoints


def _answer(name: str, found: Checkpoint) -> CheckpointAnswer:
    return response_of(
        CheckpointAnswer,
        found,
        name=name,
        sim_time=found.time,
        step_count=found.counters.steps,
    )


_GROUP: Final = "Checkpoints"

SPECS: Final = (
    described(_GROUP, checkpoint),
    described(_GROUP, restore),
    described(_GROUP, checkpoints, ()),
    described(_GROUP, delete_checkpoint, ()),
)
