"""The plugin host: one adapter set at a time, tagged with its generation.

Owns: the adapter set, its generation tag, dispatch, reset and geometry notifications, statistics,
diagnostics.
Invariants: the old set is gone before the new one is asked for. ``generation_active`` is False from
the moment of quiesce until the end of the load pass and is read under the lock that flips it: a
forward during a reload reaches no adapter. Only ready adapters receive callbacks.
Threads: any; everything happens under one reentrant lock (physics → plugin host → render). Quiesce
waits for a dispatch in flight on another thread. The same thread cannot load or quiesce from inside
a dispatch, a step scope or an access scope: ``ReentrancyError``.
Failure: a failing adapter is recorded; during a load it stops no other, during dispatch its
exception goes on to the caller. After an interrupted load the host is empty and inactive.
Not a goal: model, data, stepping, global callbacks, and where adapters come from.

Two ways lead to the hooks. ``dispatch_*`` take the lock, check the generation and call. A stepping
env holds the lock once per step (``step_scope``) and calls what ``dispatcher`` returned: the bound
hooks themselves, with no check left on the way, because quiesce retires every dispatcher it
replaces into the checked path. A dispatcher kept beyond its generation therefore does what
``dispatch_*`` does: nothing while nothing is active, ``StaleGenerationError`` for another model
generation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import msgspec

from mjhost.errors import (
    InvalidArgumentError,
    MjhostError,
    NotLoadedError,
    PluginLoadError,
    ReentrancyError,
    StaleGenerationError,
)
from mjhost.generation import ModelGeneration, PluginGeneration
from mjhost.locking import LockLevel, OrderedLock
from mjhost.plugins.access import (
    ACCESS_SCOPE,
    LONG_SCOPE_S,
    PluginHandle,
    ScopedPluginAccess,
    report_long_scope,
)
from mjhost.plugins.diagnostics import Diagnostics, PluginDiagnostics, PluginFailure
from mjhost.plugins.dispatch import Dispatch, refuse_stale
from mjhost.plugins.hooks import HookSite, active_hook, calling
from mjhost.plugins.loading import (
    ActiveSet,
    AdapterFactory,
    Entry,
    Failures,
    PluginLoadReport,
    SavedPlugin,
    activate_all,
    close_all,
    collect,
    fallback_statistics,
    find_entry,
    load_all,
    load_states,
    put_back,
    require_ready,
    save_states,
    snapshot,
)
from mjhost.plugins.statistics import PluginStatistics
from mjhost.streams import PluginStreams, Stamp, StreamHub


class PluginHost(Dispatch):
    """Loads, calls and destroys one generation of adapters after another.

    Args:
        factory: called once per generation for a fresh set of adapters.
        lock: the plugin-host lock; made if not given.
        streams: where adapters publish and take commands; made if not given, without a clock.
    """

    def __init__(
        self,
        factory: AdapterFactory,
        *,
        lock: OrderedLock | None = None,
        streams: StreamHub | None = None,
    ) -> None:
        super().__init__(lock or OrderedLock("plugin host lock", LockLevel.PLUGIN_HOST))
        self._factory = factory
        self._streams = streams or StreamHub(_no_moment)
        self._entries: list[Entry] = []
        self._newest: tuple[ModelGeneration, PluginGeneration] | None = None
        self._load_report: PluginLoadReport | None = None
        self._diagnostics = Diagnostics()
        self._last_failure: PluginFailure | None = None

    # What is loaded.

    @property
    def generation_active(self) -> bool:
        """Whether a generation receives callbacks; waits for a load or dispatch elsewhere."""
        with self.lock:
            return self._active is not None

    @property
    def model_generation(self) -> ModelGeneration | None:
        """The active set's model generation, None while nothing is active."""
        active = self._active
        return None if active is None else active.model_generation

    @property
    def plugin_generation(self) -> PluginGeneration | None:
        """The active set's own generation, None while nothing is active."""
        active = self._active
        return None if active is None else active.plugin_generation

    @property
    def load_report(self) -> PluginLoadReport | None:
        """The report of the newest finished load, None before the first."""
        return self._load_report

    @property
    def is_empty(self) -> bool:
        """Whether there is no adapter at all."""
        return not self._entries

    # Lifecycle.

    def load_generation(
        self,
        model: Any,
        data: Any,
        model_generation: ModelGeneration,
        plugin_generation: PluginGeneration,
        *,
        factory: AdapterFactory | None = None,
        carry_state: bool = False,
    ) -> PluginLoadReport:
        """Destroy the old set, then load, and activate what loaded, in one critical section.

        Args:
            model: the model to load against.
            data: its data.
            model_generation: the tag that dispatches must carry from now on.
            plugin_generation: the tag of the new set; never used before.
            factory: becomes the host's factory if given.
            carry_state: hand ``save_state`` of the old set to ``load_state`` of the new one, by
                name and type.

        Returns:
            What was loaded and what failed. A failing adapter, or factory, is no exception.

        Raises:
            ReentrancyError: called from inside a dispatch or scope of this thread; nothing changed.
            StaleGenerationError: a generation that is not newer; nothing changed.
        """
        with self._exclusively("load_generation"):
            self._require_newer(model_generation, plugin_generation)
            started = perf_counter()
            not_carried: dict[str, str] = {}
            states = save_states(self._entries, not_carried) if carry_state else {}
            self._diagnostics.clear()
            self._last_failure = None
            self._quiesce_locked()
            self._newest = (model_generation, plugin_generation)
            if factory is not None:
                self._factory = factory
            failures = Failures()
            carried = self._load_locked(model, data, states, failures, not_carried)
            self._load_report = PluginLoadReport(
                model_generation=model_generation,
                plugin_generation=plugin_generation,
                ready=tuple(entry.name for entry in self._entries if entry.ready),
                failures=tuple(failures.found),
                carried=carried,
                not_carried=not_carried,
                load_s=perf_counter() - started,
            )
            return self._load_report

    def quiesce_and_destroy(self) -> None:
        """End the active generation, if any: no callback from now on, every adapter closed.

        Waits for a dispatch in flight on another thread, so no adapter is closed under a callback.

        Raises:
            ReentrancyError: called from inside a dispatch or scope of this thread; nothing changed.
        """
        with self._exclusively("quiesce_and_destroy"):
            self._quiesce_locked()

    def snapshot(self) -> tuple[SavedPlugin, ...]:
        """What the plugins that receive callbacks know, for a checkpoint, in their order.

        Raises:
            Exception: whatever a ``save_state`` raised, with a note that names the plugin.
        """
        with self._exclusively("snapshot"):
            entries = self._entries if self._active is not None else []
            return snapshot(entries, self._record)

    def put_back(self, saved: Iterable[SavedPlugin]) -> None:
        """Hands what ``snapshot`` gave to ``load_state`` of the plugins of that name and type.

        Raises:
            Exception: whatever a ``load_state`` raised, with a note that names the plugin; those
                before it have theirs, those after it do not.
        """
        with self._exclusively("put_back"):
            put_back(self._entries if self._active is not None else [], saved, self._record)

    def reinit_after_fork(self) -> None:
        """Free the lock in a forked child, whoever held it in the parent."""
        self.lock.reinit_after_fork()

    # Reading.

    def statistics(self) -> tuple[PluginStatistics, ...]:
        """One record per adapter, failed ones too, in order. Never raises for a plugin's fault."""
        with self.lock:
            return tuple(self._statistics_locked(entry) for entry in self._entries)

    def diagnostics(self) -> PluginDiagnostics:
        """The failures since the newest load began; they survive quiesce."""
        with self.lock:
            return self._diagnostics.snapshot()

    @property
    def last_failure(self) -> PluginFailure | None:
        """The newest failure outside of loads, None once taken or after a load."""
        return self._last_failure

    def take_last_failure(self) -> PluginFailure | None:
        """``last_failure``, once: whoever makes a fault of an exception asks for the culprit."""
        failure, self._last_failure = self._last_failure, None
        return failure

    # Access.

    def acquire_scoped_access(
        self,
        expected_plugin_generation: PluginGeneration | None = None,
        expected_model_generation: ModelGeneration | None = None,
    ) -> ScopedPluginAccess:
        """Hold the set as it is until the returned scope is closed.

        Raises:
            NotLoadedError: nothing is active.
            StaleGenerationError: an expected generation is not the active one.
            ReentrancyError: called from inside a hook.
            LockOrderError: the thread holds a lower lock.
        """
        inside = active_hook() if self.lock.held_by_me() else None
        if inside is not None:
            raise ReentrancyError(
                f"plugin access was asked for from inside {inside}; leave it first"
            )
        self.lock.acquire(asked=ACCESS_SCOPE)
        try:
            active = self._expected(expected_plugin_generation, expected_model_generation)
            return ScopedPluginAccess(self, active.model_generation, active.plugin_generation)
        except BaseException:
            self.lock.release()
            raise

    def handles(self, admit: Callable[[str], object] | None = None) -> tuple[PluginHandle, ...]:
        """A handle per adapter of the active set, failed ones too.

        Args:
            admit: asked with the operation's name before every use of a handle; raises to refuse.
        """
        with self.lock:
            if self._active is None:
                return ()
            generations = (self._active.model_generation, self._active.plugin_generation)
            return tuple(
                PluginHandle(self, (entry.name, entry.type), generations, admit)
                for entry in self._entries
            )

    # Inside.

    @contextmanager
    def _exclusively(self, asked: str) -> Iterator[None]:
        # Reentry would destroy the set under a hook or scope that is still using it.
        if self.lock.held_by_me():
            inside = active_hook() or "a step scope or access scope"
            raise ReentrancyError(f"{asked} was called from inside {inside}; leave it first")
        self.lock.acquire(asked=asked)
        try:
            yield
        finally:
            self.lock.release()

    def _require_newer(self, model: ModelGeneration, plugin: PluginGeneration) -> None:
        for given, kind in ((model, ModelGeneration), (plugin, PluginGeneration)):
            if not isinstance(given, kind):
                raise TypeError(f"expected a {kind.__name__}, got {type(given).__name__}")
        if self._newest is None:
            return
        if plugin <= self._newest[1] or model < self._newest[0]:
            raise StaleGenerationError(
                f"load_generation needs a plugin generation above {self._newest[1].value} and a "
                f"model generation of at least {self._newest[0].value}, "
                f"got {plugin.value} and {model.value}"
            )

    def _load_locked(
        self,
        model: Any,
        data: Any,
        states: dict[tuple[str, str], Any],
        failures: Failures,
        not_carried: dict[str, str],
    ) -> tuple[str, ...]:
        try:
            collect(self._factory, self._entries, failures)
            load_all(model, data, self._entries, failures, self._streams_of)
            carried = load_states(self._entries, states, failures, not_carried)
            activate_all(self._entries, failures, self._record)
            assert self._newest is not None
            self._active = ActiveSet(self._entries, *self._newest)
        except BaseException:  # an interrupt: nothing half-loaded stays
            self._active = None
            close_all(self._entries, self._record)
            raise
        return carried

    def _streams_of(self, entry: Entry) -> PluginStreams:
        site = entry.site("command")

        def enter(handler: Callable[..., Any], *args: Any) -> Any:
            with self.lock:
                try:
                    return calling(site, handler, *args)
                except MjhostError:  # the command was refused, which is no failure
                    raise
                except BaseException as error:
                    self._record(site, error)
                    raise

        return PluginStreams(self._streams, entry.name, enter)

    def _quiesce_locked(self) -> None:
        active, self._active = self._active, None
        if active is not None:
            self._retire(active)
        close_all(self._entries, self._record)

    def _expected(
        self, plugin: PluginGeneration | None, model: ModelGeneration | None
    ) -> ActiveSet:
        active = self._active
        if active is None:
            raise NotLoadedError("access to plugins was asked for, but no generation is active")
        if plugin is not None and plugin != active.plugin_generation:
            refuse_stale("access", plugin, active.plugin_generation)
        if model is not None and model != active.model_generation:
            refuse_stale("access", model, active.model_generation)
        return active

    def _record(self, site: HookSite, error: BaseException) -> None:
        # An interrupt hits whatever runs; it is not the plugin's failure.
        if isinstance(error, KeyboardInterrupt):
            return
        self._last_failure = self._diagnostics.record(site, error)
        note = f"raised in {site}"
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)

    def _statistics_locked(self, entry: Entry) -> PluginStatistics:
        site = entry.site("statistics")
        record = fallback_statistics(entry)
        try:
            given = calling(site, entry.adapter.statistics)
            record = _require_statistics(given)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - statistics never raise for a plugin's fault
            self._diagnostics.record(site, error)
        state = "failed" if entry.failure else "ready" if entry.ready else "loading"
        told = entry.failure.error if entry.failure else ""
        return msgspec.structs.replace(
            record, name=entry.name, type=entry.type, state=state, error=told
        )

    def _statistics_of(self, name: str, type_: str) -> PluginStatistics:
        return self._statistics_locked(find_entry(self._entries, name, type_))

    def _ready_entry(self, name: str, type_: str | None) -> Entry:
        return require_ready(find_entry(self._entries, name, type_))

    def _scope_ended(self, held_s: float) -> None:
        if held_s > LONG_SCOPE_S:
            self._diagnostics.record_long_scope(held_s)
        self.lock.release()
        if held_s > LONG_SCOPE_S:
            report_long_scope(held_s)


def _no_moment() -> Stamp:
    raise InvalidArgumentError("a plugin host without an env has no time: publish with a stamp")


def _require_statistics(given: Any) -> PluginStatistics:
    if isinstance(given, PluginStatistics):
        return given
    raise PluginLoadError(
        f"statistics must return a PluginStatistics, got {type(given).__qualname__}"
    )
