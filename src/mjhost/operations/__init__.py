"""The table of operations: what clients can ask of a host, for every transport alike.

A transport translates its messages to ``perform(env, name, request, token=…)``, and what comes back
or is raised to its own. Names, sentences, records, units and frames are stated here once: schemas,
messages, help texts and ``docs/operations.md`` are generated from ``OPERATIONS``.

Invariants: handlers call ``MujocoEnv`` and nothing below it.
Threads: any; an operation waits as the env's member does.
Not a goal: messages, sockets, clocks, the order of quaternions on a wire.
"""

from mjhost.operations.failures import ErrorRecord, error_record
from mjhost.operations.fields import Facts, Request, Response
from mjhost.operations.performing import operation, perform
from mjhost.operations.requests import RequestProblem
from mjhost.operations.spec import OperationSpec
from mjhost.operations.store import CheckpointStore
from mjhost.operations.table import NOT_OFFERED, OPERATIONS

__all__ = [
    "NOT_OFFERED",
    "OPERATIONS",
    "CheckpointStore",
    "ErrorRecord",
    "Facts",
    "OperationSpec",
    "Request",
    "RequestProblem",
    "Response",
    "error_record",
    "operation",
    "perform",
]
