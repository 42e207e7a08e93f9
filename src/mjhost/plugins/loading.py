"""The passes of one load: factory, load, state, statistics, activate.

Owns: ``Entry`` (one adapter in its generation), ``ActiveSet`` (what dispatch sees), the report, and
the order of the passes.
Invariants: every pass goes through all entries before the next one begins; a failure marks its
entry and stops no other. Only an entry without a failure becomes ready (a failing ``statistics``
alone does not count against it).
Threads: runs under the plugin-host lock.
Failure: an interrupt (``KeyboardInterrupt``) leaves the entries collected so far to the caller, who
closes them; everything else a plugin raises is a ``PluginLoadFailure``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from mjhost.errors import PluginLoadError, UnknownNameError, did_you_mean
from mjhost.generation import ModelGeneration, PluginGeneration
from mjhost.plugins.adapter import PluginAdapter
from mjhost.plugins.diagnostics import PluginLoadFailure, load_failure
from mjhost.plugins.hooks import (
    HOOKS,
    RATED_PHASES,
    STEP_PHASES,
    BoundHook,
    HookSite,
    Report,
    calling,
)
from mjhost.plugins.statistics import PluginStatistics
from mjhost.streams import PluginStreams

AdapterFactory = Callable[[], Iterable[PluginAdapter]]


class PluginLoadReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a load did.

    Attributes:
        model_generation: the model the set was loaded against.
        plugin_generation: the generation of the set.
        ready: names of the adapters that receive callbacks, in order.
        failures: what went wrong, in the order it was found.
        carried: names whose state was carried over from the generation before.
        not_carried: names that had state to carry but did not get it, and why.
        load_s: duration of the critical section (s wall).
    """

    model_generation: ModelGeneration
    plugin_generation: PluginGeneration
    ready: tuple[str, ...]
    failures: tuple[PluginLoadFailure, ...]
    carried: tuple[str, ...] = ()
    not_carried: dict[str, str] = {}
    load_s: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return not self.failures


class RateTask(NamedTuple):
    """A ``pre_step`` or ``post_step`` that runs at a rate instead of with every step.

    Attributes:
        site: plugin and hook.
        rate_hz: rate in simulation time (Hz).
        call: takes ``(model, data)``; raises ``StaleGenerationError`` once another set is active.
    """

    site: HookSite
    rate_hz: float
    call: Callable[[Any, Any], Any]


class Entry:
    """One adapter in its generation."""

    __slots__ = ("adapter", "bound", "failure", "name", "rate_hz", "ready", "streams", "type")

    def __init__(self, adapter: PluginAdapter, name: str, type_: str) -> None:
        self.adapter = adapter
        self.name = name
        self.type = type_
        self.ready = False
        self.failure: PluginLoadFailure | None = None
        self.rate_hz: float | None = None
        self.bound: dict[str, BoundHook] = {}
        self.streams: PluginStreams | None = None

    def load(self, model: Any, data: Any, streams: PluginStreams) -> None:
        """Load the adapter, which may have ``streams`` of its own from here on."""
        self.streams = streams
        self.adapter.connect(streams)
        self.adapter.load(model, data)

    def end_streams(self) -> None:
        """Nothing is published or taken by it any more; twice is once."""
        if self.streams is not None:
            self.streams.close()

    def activate(self, report: Report) -> None:
        """Activate the adapter and bind its hooks."""
        self.adapter.activate()
        self.rate_hz = self.adapter.rate_hz
        for phase in HOOKS:
            bound = self.adapter.bind(phase, self.site(phase), report)
            if bound is not None:
                self.bound[phase] = bound

    def site(self, phase: str) -> HookSite:
        """This adapter in ``phase``."""
        return HookSite(self.name, self.type, phase)


class PhaseCalls:
    """The hooks of one phase in the order of the adapters."""

    __slots__ = ("bound", "calls", "dispatcher")

    def __init__(self, phase: str, bound: list[BoundHook]) -> None:
        self.bound = bound
        self.calls = [hook.call for hook in bound]
        # One hook needs no loop around it: its own frame is the dispatcher.
        if len(bound) == 1:
            self.dispatcher = self.calls[0]
        else:
            self.dispatcher = (_step_loop if phase in STEP_PHASES else _loop)(self.calls)

    def retire(self, successor: Callable[..., Any]) -> None:
        """Make the dispatcher, wherever it is still held, lead to ``successor``."""
        if len(self.bound) == 1:
            self.bound[0].retire(successor)
        else:
            self.calls[:] = [successor]


class ActiveSet:
    """A generation that receives callbacks.

    Attributes:
        phases: what to call, for every phase of ``HOOKS``.
        rated: the tasks of ``rate_hz``, each with its bound hook.
    """

    __slots__ = ("model_generation", "phases", "plugin_generation", "rated")

    def __init__(
        self,
        entries: list[Entry],
        model_generation: ModelGeneration,
        plugin_generation: PluginGeneration,
    ) -> None:
        self.model_generation = model_generation
        self.plugin_generation = plugin_generation
        ready = [entry for entry in entries if entry.ready]
        self.rated = [
            (
                RateTask(entry.site(phase), entry.rate_hz, entry.bound[phase].call),
                entry.bound[phase],
            )
            for phase in RATED_PHASES
            for entry in ready
            if entry.rate_hz is not None and phase in entry.bound
        ]
        self.phases = {phase: PhaseCalls(phase, _unrated(ready, phase)) for phase in HOOKS}


class Failures:
    """Calls plugin code and turns what it raises into records."""

    def __init__(self) -> None:
        self.found: list[PluginLoadFailure] = []

    def attempt(self, entry: Entry, phase: str, function: Callable[..., Any], *args: Any) -> Any:
        """Call ``function``; on failure mark the entry (unless in ``statistics``) and go on."""
        site = entry.site(phase)
        try:
            return calling(site, function, *args)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - SystemExit in a plugin must not end the host
            failure = self.add(site, error)
            if phase != "statistics" and entry.failure is None:
                entry.failure = failure
            return None

    def add(self, site: HookSite, error: BaseException) -> PluginLoadFailure:
        """Record one failure."""
        failure = load_failure(site, error)
        self.found.append(failure)
        return failure


def collect(factory: AdapterFactory, entries: list[Entry], failures: Failures) -> None:
    """Ask ``factory`` for adapters and enter them into ``entries``, in order.

    A factory that raises has failed as a whole: what it gave before is closed and entered nowhere.
    """
    site = HookSite("<factory>", type(factory).__qualname__, "factory")
    try:
        calling(site, _enter_all, factory, entries, failures)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - see Failures.attempt
        given = entries[:]
        entries.clear()
        failures.found.clear()
        failures.add(site, error)
        close_all(given, failures.add)


def load_all(
    model: Any,
    data: Any,
    entries: list[Entry],
    failures: Failures,
    streams_of: Callable[[Entry], PluginStreams],
) -> None:
    """The load pass."""
    for entry in entries:
        if entry.failure is None:
            failures.attempt(entry, "load", entry.load, model, data, streams_of(entry))


def activate_all(entries: list[Entry], failures: Failures, report: Report) -> None:
    """The statistics pass, then the activation pass; ``report`` is for the hooks from then on."""
    for entry in entries:
        failures.attempt(entry, "statistics", entry.adapter.statistics)
    for entry in entries:
        if entry.failure is None:
            failures.attempt(entry, "activate", entry.activate, report)
            entry.ready = entry.failure is None
    for entry in entries:
        if not entry.ready:
            entry.end_streams()


class SavedPlugin(NamedTuple):
    """One plugin in a checkpoint.

    Attributes:
        name: its name.
        type: where it came from.
        state: what ``save_state`` returned, None if ``saved`` is False.
        saved: whether it carries state.
        exact: whether that, or nothing, is all it knows of the past.
    """

    name: str
    type: str
    state: Any
    saved: bool
    exact: bool


def snapshot(entries: Iterable[Entry], report: Report) -> tuple[SavedPlugin, ...]:
    """What every ready entry keeps; what ``save_state`` raises is reported and goes on."""
    found = []
    for entry in entries:
        if not entry.ready:
            continue
        saved = entry.adapter.carries_state
        state = _reported(entry, "save_state", entry.adapter.save_state, report) if saved else None
        exact = saved or not entry.adapter.keeps_state
        found.append(SavedPlugin(entry.name, entry.type, state, saved, exact))
    return tuple(found)


def _reported(
    entry: Entry, phase: str, function: Callable[..., Any], report: Report, *args: Any
) -> Any:
    site = entry.site(phase)
    try:
        return calling(site, function, *args)
    except BaseException as error:
        report(site, error)
        raise


def put_back(entries: Iterable[Entry], saved: Iterable[SavedPlugin], report: Report) -> None:
    """Gives each entry the state of its namesake, in the order of the entries.

    What ``load_state`` raises is reported and goes on to the caller, the rest untouched.
    """
    states = {(plugin.name, plugin.type): plugin for plugin in saved}
    for entry in entries:
        plugin = states.get((entry.name, entry.type))
        if plugin is None or not plugin.saved or not entry.ready:
            continue
        _reported(entry, "load_state", entry.adapter.load_state, report, plugin.state)


def save_states(
    entries: Iterable[Entry], not_carried: dict[str, str]
) -> dict[tuple[str, str], Any]:
    """Ask the ready entries that carry state for it."""
    states = {}
    failures = Failures()
    for entry in entries:
        if entry.ready and entry.adapter.carries_state:
            before = len(failures.found)
            state = failures.attempt(entry, "save_state", entry.adapter.save_state)
            if len(failures.found) > before:
                not_carried[entry.name] = f"save_state raised {failures.found[-1].error}"
            else:
                states[entry.name, entry.type] = state
    return states


def load_states(
    entries: Iterable[Entry],
    states: Mapping[tuple[str, str], Any],
    failures: Failures,
    not_carried: dict[str, str],
) -> tuple[str, ...]:
    """Give each loaded entry the state of its namesake; a raising ``load_state`` is a failure."""
    carried = []
    left = dict(states)
    for entry in entries:
        key = (entry.name, entry.type)
        if key not in left:
            continue
        state = left.pop(key)
        if entry.failure is not None:
            not_carried[entry.name] = "the new plugin failed to load"
        elif not entry.adapter.carries_state:
            not_carried[entry.name] = "the new plugin has no save_state and load_state"
        else:
            failures.attempt(entry, "load_state", entry.adapter.load_state, state)
            if entry.failure is None:
                carried.append(entry.name)
            else:
                not_carried[entry.name] = f"load_state raised {entry.failure.error}"
    for name, type_ in left:
        not_carried[name] = f"no plugin of this name and type ({type_}) is in the new set"
    return tuple(carried)


def close_all(entries: list[Entry], report: Callable[[HookSite, BaseException], object]) -> None:
    """Close in reverse order; failures are reported, an interrupt is raised when all are closed."""
    interrupt: KeyboardInterrupt | None = None
    while entries:
        entry = entries.pop()
        entry.ready = False
        try:
            calling(entry.site("close"), entry.adapter.close)
        except KeyboardInterrupt as error:
            interrupt = error
        except BaseException as error:  # noqa: BLE001 - see Failures.attempt
            report(entry.site("close"), error)
        finally:
            entry.end_streams()
    if interrupt is not None:
        raise interrupt


def find_entry(entries: list[Entry], name: str, type_: str | None) -> Entry:
    """The one entry of this name, and type if given.

    Raises:
        UnknownNameError: there is none, or more than one.
    """
    named = [entry for entry in entries if entry.name == name]
    found = [entry for entry in named if type_ is None or entry.type == type_]
    if len(found) == 1:
        return found[0]
    if found:
        raise UnknownNameError(f"{len(found)} plugins are named {name!r}; give each its own name")
    if named:
        types = ", ".join(repr(entry.type) for entry in named)
        raise UnknownNameError(f"plugin {name!r} must have type {type_!r}, it has {types}")
    known = did_you_mean(name, [entry.name for entry in entries])
    raise UnknownNameError(f"no plugin {name!r}; {known}")


def require_ready(entry: Entry) -> Entry:
    """Give ``entry`` back if it receives callbacks.

    Raises:
        PluginLoadError: it does not.
    """
    if entry.ready:
        return entry
    why = f": {entry.failure.error}" if entry.failure else ""
    raise PluginLoadError(f"plugin {entry.name!r} ({entry.type}) is not ready{why}")


def fallback_statistics(entry: Entry) -> PluginStatistics:
    """What is known of an adapter whose own statistics fail."""
    return PluginStatistics(name=entry.name, type=entry.type)


def _enter_all(factory: AdapterFactory, entries: list[Entry], failures: Failures) -> None:
    for index, item in enumerate(factory()):
        site = HookSite(f"<item {index}>", type(item).__qualname__, "factory")
        try:
            _enter(item, site, entries)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - name and type are plugin code
            failure = failures.add(site, error)
            if entries and entries[-1].adapter is item and entries[-1].name == site.name:
                entries[-1].failure = failure


def _enter(item: Any, site: HookSite, entries: list[Entry]) -> None:
    if not isinstance(item, PluginAdapter):
        raise PluginLoadError(
            f"{site.name} of the factory must be a PluginAdapter, got {type(item).__qualname__}"
        )
    if item._mjhost_used:
        raise PluginLoadError(
            f"{site.name} of the factory was used before; every generation needs a fresh adapter"
        )
    item._mjhost_used = True
    entry = Entry(item, site.name, site.type)
    entries.append(entry)  # from here on it is closed with its generation, nameless or not
    name, type_ = item.name, item.type
    if not isinstance(name, str) or not isinstance(type_, str) or not name:
        raise PluginLoadError(f"name and type must be text, got {name!r} and {type_!r}")
    entry.name, entry.type = name, type_


def _unrated(ready: list[Entry], phase: str) -> list[BoundHook]:
    skip_rated = phase in RATED_PHASES
    return [
        entry.bound[phase]
        for entry in ready
        if phase in entry.bound and not (skip_rated and entry.rate_hz is not None)
    ]


def _step_loop(calls: list[Callable[..., Any]]) -> Callable[[Any, Any], None]:
    def dispatch(model: Any, data: Any) -> None:
        for call in calls:
            call(model, data)

    return dispatch


def _loop(calls: list[Callable[..., Any]]) -> Callable[..., None]:
    def dispatch(*args: Any) -> None:
        for call in calls:
            call(*args)

    return dispatch
