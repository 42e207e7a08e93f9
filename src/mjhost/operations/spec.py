"""One operation as every transport sees it, and how a function becomes one.

Owns: ``OperationSpec``, ``Site`` and ``described``.
Invariants: the name is a word of ``mjhost.env.vocabulary``, from which follows whether it changes
the simulation; the sentence is the docstring's first, the records are those in the signature.
Threads: immutable values, safe anywhere.
Failure: a function that cannot be an operation is an ``InvalidArgumentError`` at import.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_type_hints

from mjhost.env import MujocoEnv
from mjhost.env.phases import Operation
from mjhost.env.vocabulary import operation_of
from mjhost.errors import InvalidArgumentError
from mjhost.operations.fields import Nothing, Request, Response
from mjhost.operations.store import CheckpointStore


@dataclass(frozen=True, slots=True)
class Site:
    """What a transport serves.

    Attributes:
        env: the env that is asked.
        checkpoints: where clients may keep checkpoints; ``None``: nowhere.
    """

    env: MujocoEnv
    checkpoints: CheckpointStore | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationSpec:
    """One row of the table of operations.

    Attributes:
        name: how a client asks for it.
        group: under which heading it is listed.
        summary: one sentence.
        details: more, in Markdown; may be empty.
        asks: the operation of the env that it is, which decides when it is admitted.
        members: the members of ``MujocoEnv`` that it offers.
        request: the record it takes.
        response: the record it gives.
        perform: what does it, for a request that was checked and a client that was admitted.
    """

    name: str
    group: str
    summary: str
    details: str
    asks: Operation
    members: tuple[str, ...]
    request: type[Request]
    response: type[Response]
    perform: Callable[[Site, Any], Response]

    @property
    def mutating(self) -> bool:
        """Whether it changes the simulation, so that the evaluation mode guards it."""
        return self.asks.mutating


def described(
    group: str, function: Callable[..., Response], members: tuple[str, ...] | None = None
) -> OperationSpec:
    """The operation that ``function(site)`` or ``function(site, request)`` is, by its name.

    Args:
        group: under which heading it is listed.
        function: has annotations, and a docstring that begins with one sentence.
        members: the members of ``MujocoEnv`` it offers, by default the one of its name.
    """
    name = function.__name__
    request, response = _records_of(function)
    summary, _, details = (inspect.getdoc(function) or "").partition("\n\n")
    return OperationSpec(
        name=name,
        group=group,
        summary=" ".join(summary.split()),
        details=details.strip(),
        asks=operation_of(name),
        members=(name,) if members is None else members,
        request=request,
        response=response,
        perform=function if request is not Nothing else _without_request(function),
    )


def _records_of(function: Callable[..., Response]) -> tuple[type[Request], type[Response]]:
    hints = get_type_hints(function)
    request, response = hints.get("request", Nothing), hints.get("return")
    takes = isinstance(request, type) and issubclass(request, Request)
    if not takes or not isinstance(response, type) or not issubclass(response, Response):
        raise InvalidArgumentError(
            f"the operation {function.__name__} must take a Request and return a Response, its "
            f"signature is {inspect.signature(function)}"
        )
    return request, response


def _without_request(function: Callable[[Site], Response]) -> Callable[[Site, Request], Response]:
    return lambda site, _request: function(site)
