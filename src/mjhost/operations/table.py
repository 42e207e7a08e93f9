"""The table of operations: everything that a client can ask of a host.

Owns: ``OPERATIONS``, and the reasons for what is not in it.
Invariants: every public member of ``MujocoEnv`` is offered by an operation or stands in
``NOT_OFFERED``, never in both; names are unique. Transports are generated from it: there is no
second list.
Threads: immutable, safe anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from mjhost.operations import (
    analysis,
    checkpoints,
    lifecycle,
    options,
    plugins,
    properties,
    state,
    stepping,
)
from mjhost.operations.spec import OperationSpec

_GROUPS: Final = (lifecycle, stepping, state, properties, checkpoints, options, plugins, analysis)

OPERATIONS: Final[Mapping[str, OperationSpec]] = MappingProxyType(
    {spec.name: spec for group in _GROUPS for spec in group.SPECS}
)
"""Every operation by its name, in the order of the documentation."""

_PYTHON: Final = "takes or gives live Python objects, which no transport can carry"

_KEPT: Final = "an object to keep beside the env; clients read and set by name"

NOT_OFFERED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "access": _PYTHON,
        "actuator": _KEPT,
        "body": _KEPT,
        "call_soon": _PYTHON,
        "callbacks": _PYTHON,
        "data": _PYTHON,
        "equality": _KEPT,
        "edit": _PYTHON,
        "every": _PYTHON,
        "geom": _KEPT,
        "joint": _KEPT,
        "mocap": _KEPT,
        "model": _PYTHON,
        "sensor": _KEPT,
        "plugins": "handles of live plugins; plugin_statistics lists them",
        "streams": "each transport pushes records in its own way, and translates them",
        "send": "takes any of many records; each transport has its own way in for each",
        "events": "a stream: each transport has its own way of pushing, from env.events",
        "step_async": "a future; a transport answers step when it is done, in its own way",
        "rollout": "whole trajectories in and out; for a program beside the env",
        "authorize": "what every operation asks first",
        "close": "the end of the host is the business of who runs it, who asks authorize('close')",
        "eval_mode": "info of the host, not of the simulation; a refusal says it",
        "fault": "in info",
        "generations": "in info",
        "phase": "in info",
        "plugin_files": "files on the host, for watchers there",
    }
)
"""Public members of ``MujocoEnv`` that no operation offers, each with the reason."""
