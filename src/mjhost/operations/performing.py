"""An operation done for a client.

Invariants: first the word, then the token, then the request, then the env: who may not ask learns
nothing about the request. What raises has changed nothing, as the docstring of the env's member
says.
Threads: any; an operation waits as the env's member does.
Failure: ``UnknownNameError``, ``NotAuthorizedError``, ``RequestError``, or what the env raises;
``error_record`` makes what a client is told of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mjhost.env import MujocoEnv
from mjhost.errors import UnknownNameError, did_you_mean
from mjhost.operations.fields import Request, Response
from mjhost.operations.requests import request_of, shown, shown_text
from mjhost.operations.spec import OperationSpec, Site
from mjhost.operations.store import CheckpointStore
from mjhost.operations.table import OPERATIONS


def perform(
    env: MujocoEnv,
    name: str,
    request: Mapping[str, Any] | Request | None = None,
    *,
    token: str | None = None,
    checkpoints: CheckpointStore | None = None,
) -> Response:
    """Does one operation for a client and returns its answer.

    Args:
        env: the env that is asked.
        name: which operation of the table.
        request: its fields: a mapping of plain values, or a record of its request type.
        token: the evaluation token, if the client gave one.
        checkpoints: the directory in which clients may keep checkpoints; ``None``: nowhere.

    Raises:
        UnknownNameError: there is no such operation, or no such thing in the model.
        NotAuthorizedError: it changes something and the token is not the one.
        RequestError: the request cannot be understood; ``.problems`` lists how.
        NotOfferedError: it is about checkpoints, and there is nowhere to keep them.
        MjhostError: what the env refused, as its own documentation says.
    """
    spec = operation(name)
    env.authorize(spec.name, token)
    return spec.perform(Site(env, checkpoints), request_of(spec.request, request, spec.name))


def operation(name: str) -> OperationSpec:
    """The operation of that name.

    Raises:
        UnknownNameError: there is none.
    """
    spec = OPERATIONS.get(name) if isinstance(name, str) else None
    if spec is None:
        near = did_you_mean(shown_text(str(name)), OPERATIONS)
        raise UnknownNameError(f"no operation is named {shown(name)}; {near}")
    return spec
