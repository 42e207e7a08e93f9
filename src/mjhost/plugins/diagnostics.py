"""Failures of plugins: bounded, counted, free of references.

Owns: the failure records and ``Diagnostics``, the host's book of them.
Invariants: per phase the first 50 and the last 50 are kept and every one is counted. A record is
text: it keeps no exception, frame, plugin, model or data alive.
Threads: written and read under the plugin-host lock; the snapshot is frozen.
Failure: describing an exception never raises, whatever its ``__str__`` does.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from mjhost.plugins.hooks import HookSite

KEPT: Final = 50
"""How many failures of a phase are kept from the start, and how many from the end."""

_TEXT_LIMIT: Final = 20_000  # characters of a traceback
_LINE_LIMIT: Final = 2_000  # characters of an error's own text


class PluginFailure(msgspec.Struct, frozen=True):
    """One failure of one plugin.

    Attributes:
        name: the plugin's name.
        type: the plugin's type.
        phase: where: ``load``, ``control``, ``close``, …
        error: the exception's class and text.
        traceback: as Python prints it.
    """

    name: str
    type: str
    phase: str
    error: str
    traceback: str


class PluginLoadFailure(PluginFailure, frozen=True):
    """A failure while a generation was loaded: ``factory``, ``load``, ``statistics``, ``activate``
    or ``load_state``. The whole factory's is named ``<factory>``.
    """  # noqa: D205


class PhaseDiagnostics(msgspec.Struct, frozen=True):
    """The failures of one phase.

    Attributes:
        count: how many there were.
        first: the first ones, oldest first.
        last: the newest ones that are not in ``first``, oldest first.
    """

    count: int
    first: tuple[PluginFailure, ...]
    last: tuple[PluginFailure, ...]

    @property
    def dropped(self) -> int:
        """How many were counted but not kept."""
        return self.count - len(self.first) - len(self.last)


class PluginDiagnostics(msgspec.Struct, frozen=True):
    """All failures since the newest load began.

    Attributes:
        phases: by phase; only phases in which something failed.
        long_scopes: access scopes that held up stepping for longer than 0.1 s wall.
        longest_scope_s: the longest of them (s wall), 0 without one.
    """

    phases: Mapping[str, PhaseDiagnostics]
    long_scopes: int = 0
    longest_scope_s: float = 0.0

    def of(self, phase: str) -> PhaseDiagnostics:
        """The failures of ``phase``; an empty record when there are none."""
        return self.phases.get(phase, PhaseDiagnostics(0, (), ()))

    @property
    def total(self) -> int:
        """How many failures there were in all phases."""
        return sum(phase.count for phase in self.phases.values())

    def __iter__(self) -> Iterator[PluginFailure]:
        for phase in self.phases.values():
            yield from phase.first
            yield from phase.last


class _Phase:
    __slots__ = ("count", "first", "last")

    def __init__(self) -> None:
        self.count = 0
        self.first: list[PluginFailure] = []
        self.last: deque[PluginFailure] = deque(maxlen=KEPT)

    def add(self, failure: PluginFailure) -> None:
        self.count += 1
        (self.first if len(self.first) < KEPT else self.last).append(failure)

    def snapshot(self) -> PhaseDiagnostics:
        return PhaseDiagnostics(self.count, tuple(self.first), tuple(self.last))


class Diagnostics:
    """The book that a host writes."""

    __slots__ = ("_long_scopes", "_longest_scope_s", "_phases")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything; a load does this first of all."""
        self._phases: dict[str, _Phase] = {}
        self._long_scopes = 0
        self._longest_scope_s = 0.0

    def record(self, site: HookSite, error: BaseException) -> PluginFailure:
        """Enter one failure."""
        failure = PluginFailure(site.name, site.type, site.phase, *describe(error))
        self._phases.setdefault(site.phase, _Phase()).add(failure)
        return failure

    def record_long_scope(self, held_s: float) -> None:
        """Enter one access scope that held the lock for too long."""
        self._long_scopes += 1
        self._longest_scope_s = max(self._longest_scope_s, held_s)

    def snapshot(self) -> PluginDiagnostics:
        """What is in the book now."""
        phases = {name: phase.snapshot() for name, phase in self._phases.items()}
        return PluginDiagnostics(MappingProxyType(phases), self._long_scopes, self._longest_scope_s)


def describe(error: BaseException) -> tuple[str, str]:
    """The text of ``error`` and its traceback, both bounded; never raises an ``Exception``."""
    try:
        told = traceback.TracebackException.from_exception(error)
        line = f"{type(error).__name__}: {told}".removesuffix(": ")
        return _cut(line, _LINE_LIMIT), _cut("".join(told.format()), _TEXT_LIMIT)
    except Exception:  # noqa: BLE001 - a hostile __str__ must not hide that something failed
        return f"{type(error).__name__} (its text cannot be made)", ""


def load_failure(site: HookSite, error: BaseException) -> PluginLoadFailure:
    """The record of a failure during a load."""
    return PluginLoadFailure(site.name, site.type, site.phase, *describe(error))


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"
