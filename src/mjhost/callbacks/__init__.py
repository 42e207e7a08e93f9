"""MuJoCo's process-wide callbacks, routed to the data they belong to."""

from __future__ import annotations

from mjhost.callbacks.context import CallContext, call_context
from mjhost.callbacks.hook import GuardedHook
from mjhost.callbacks.interrupts import (
    InterruptsSurface,
    interrupts_surface,
    is_trap_set,
    remove_left_trap,
)
from mjhost.callbacks.kinds import KINDS, CallbackKind, Result
from mjhost.callbacks.registry import Callbacks, CallbackToken
from mjhost.callbacks.route import IDLE, Entry, Route
from mjhost.callbacks.router import Router, router

__all__ = [
    "IDLE",
    "KINDS",
    "CallContext",
    "CallbackKind",
    "CallbackToken",
    "Callbacks",
    "Entry",
    "GuardedHook",
    "InterruptsSurface",
    "Result",
    "Route",
    "Router",
    "call_context",
    "interrupts_surface",
    "is_trap_set",
    "remove_left_trap",
    "router",
]
