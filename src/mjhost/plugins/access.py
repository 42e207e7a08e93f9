"""Scoped access to the objects behind adapters: pinned to generations, gone after the scope.

Owns: ``ScopedPluginAccess``, ``PluginHandle`` and the proxy that a handle lends.
Invariants: a scope holds the plugin-host lock for its whole life, so neither a step nor a reload
can happen in it. What a scope lent raises ``ScopeClosedError`` after it, and keeps nothing alive.
Threads: a scope belongs to the thread that opened it; handles are safe anywhere.
Failure: acquiring raises before anything is held.
Not a goal: protecting against an author who stores an attribute's value outside the scope. Bound
methods of the plugin are covered, other objects reached through it are not.
"""

from __future__ import annotations

import logging
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, final

from mjhost.errors import LockOrderError, PluginLoadError, ScopeClosedError
from mjhost.generation import ModelGeneration, PluginGeneration
from mjhost.plugins.statistics import PluginStatistics

if TYPE_CHECKING:
    from mjhost.plugins.host import PluginHost

ACCESS_SCOPE: Final = "plugin access scope"
"""What the host lock is held for while a scope is open."""

LONG_SCOPE_S: Final = 0.1
"""A scope that holds up stepping for longer than this (s wall) is reported."""

_log = logging.getLogger("mjhost.plugins")

T = TypeVar("T")


@final
class ScopedPluginAccess:
    """A scope in which the adapter set stays as it is. Made by ``acquire_scoped_access``.

    The host lock is held from construction until ``close`` or the end of the ``with`` block,
    whatever comes first.

    Attributes:
        model_generation: the generation it is pinned to.
        plugin_generation: the generation it is pinned to.
    """

    __slots__ = ("_host", "_proxies", "_started", "model_generation", "plugin_generation")

    def __init__(
        self,
        host: PluginHost,
        model_generation: ModelGeneration,
        plugin_generation: PluginGeneration,
    ) -> None:
        self._host: PluginHost | None = host  # None once the scope is over
        self._started = perf_counter()
        self._proxies: list[PluginProxy] = []
        self.model_generation = model_generation
        self.plugin_generation = plugin_generation

    def backend_object(self, name: str, type: str | None = None, cls: type[T] | None = None) -> T:
        """The object behind a ready adapter; valid inside the scope only.

        Args:
            name: the adapter's name.
            type: the adapter's type; None if any.
            cls: the class it must be an instance of; None if any.

        Raises:
            ScopeClosedError: the scope is over.
            UnknownNameError: no adapter of that name and type.
            PluginLoadError: it is not ready, or has no backend object.
            TypeError: the object is not a ``cls``.
        """
        entry = self._open_host()._ready_entry(name, type)
        backend = entry.adapter.backend_object()
        if backend is None:
            raise PluginLoadError(f"plugin {name!r} ({entry.type}) has no backend object")
        if cls is not None and not isinstance(backend, cls):
            raise TypeError(
                f"backend object of plugin {name!r} must be a {cls.__qualname__}, "
                f"got {backend.__class__.__qualname__}"
            )
        return backend  # type: ignore[return-value]

    def proxy(self, name: str, type: str | None = None) -> Any:
        """The backend object behind a proxy that raises ``ScopeClosedError`` after the scope."""
        proxy = PluginProxy(name, self.backend_object(name, type, object))
        self._proxies.append(proxy)
        return proxy

    @property
    def closed(self) -> bool:
        """Whether the scope is over."""
        return self._host is None

    def close(self) -> None:
        """End the scope; again is fine.

        Raises:
            LockOrderError: called by a thread that did not open it; the scope goes on.
        """
        host = self._host
        if host is None:
            return
        if not host.lock.held_by_me():
            raise LockOrderError("an access scope is closed by the thread that opened it only")
        self._host = None
        for proxy in self._proxies:
            object.__setattr__(proxy, "_target", None)
        host._scope_ended(perf_counter() - self._started)

    def _open_host(self) -> PluginHost:
        if self._host is None:
            raise ScopeClosedError(
                f"access to plugin generation {self.plugin_generation.value} was used after its "
                "scope; acquire a new one"
            )
        return self._host

    def __enter__(self) -> Self:
        self._open_host()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # A scope that is dropped open would stop the simulation for good.
        host = getattr(self, "_host", None)
        if host is not None and host.lock.held_by_me():
            self.close()
            warnings.warn("a plugin access scope was never closed", ResourceWarning, stacklevel=2)


@final
class PluginProxy:
    """Stands for a plugin inside one scope; every use after it raises ``ScopeClosedError``."""

    __slots__ = ("_name", "_target")

    _name: str
    _target: Any

    def __init__(self, name: str, target: Any) -> None:
        object.__setattr__(self, "_name", name)
        object.__setattr__(self, "_target", target)

    def __getattribute__(self, attribute: str) -> Any:
        target = _target_of(self)
        value = getattr(target, attribute)
        if value is target:
            return self
        if isinstance(value, types.MethodType) and value.__self__ is target:
            return _scoped_method(self, attribute)
        return value

    def __setattr__(self, attribute: str, value: Any) -> None:
        setattr(_target_of(self), attribute, value)

    def __delattr__(self, attribute: str) -> None:
        delattr(_target_of(self), attribute)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: D102 - a magic method
        return _target_of(self)(*args, **kwargs)

    def __getitem__(self, key: Any) -> Any:
        return _target_of(self)[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        _target_of(self)[key] = value

    def __delitem__(self, key: Any) -> None:
        del _target_of(self)[key]

    def __len__(self) -> int:
        return len(_target_of(self))

    def __iter__(self) -> Iterator[Any]:
        return iter(_target_of(self))

    def __contains__(self, item: Any) -> bool:
        return item in _target_of(self)

    def __bool__(self) -> bool:
        return bool(_target_of(self))

    def __dir__(self) -> list[str]:
        return dir(_target_of(self))

    def __repr__(self) -> str:
        if object.__getattribute__(self, "_target") is None:
            return (
                f"<proxy of plugin {object.__getattribute__(self, '_name')!r}, its scope is over>"
            )
        return f"<proxy of {_target_of(self)!r}>"


@final
class PluginHandle:
    """A plugin of one generation, to be kept anywhere and opened when needed.

    Attributes:
        name: the plugin's name.
        type: the plugin's type.
        model_generation: the generation it belongs to.
        plugin_generation: the generation it belongs to.
    """

    __slots__ = ("_admit", "_host", "model_generation", "name", "plugin_generation", "type")

    def __init__(
        self,
        host: PluginHost,
        site: tuple[str, str],
        generations: tuple[ModelGeneration, PluginGeneration],
        admit: Callable[[str], object] | None,
    ) -> None:
        self._host = host
        self._admit = admit
        self.name, self.type = site
        self.model_generation, self.plugin_generation = generations

    @contextmanager
    def access(self) -> Iterator[Any]:
        """Lend the plugin: ``with handle.access() as plugin: …``.

        Holds up stepping and reload while the block runs; no env operation is possible in it.

        Yields:
            A proxy of the plugin that raises ``ScopeClosedError`` after the block.

        Raises:
            StaleGenerationError: the generation was replaced.
            NotLoadedError: nothing is active.
            PluginLoadError: the plugin is not ready.
        """
        with self._acquire("scoped_access") as scope:
            yield scope.proxy(self.name, self.type)

    def statistics(self) -> PluginStatistics:
        """The plugin's statistics now; raises like ``access``, but failed ones have them too."""
        with self._acquire("read_state"):
            return self._host._statistics_of(self.name, self.type)

    def _acquire(self, operation: str) -> ScopedPluginAccess:
        if self._admit is not None:
            self._admit(operation)
        return self._host.acquire_scoped_access(self.plugin_generation, self.model_generation)

    def __repr__(self) -> str:
        return (
            f"<PluginHandle {self.name!r} ({self.type}), plugin generation "
            f"{self.plugin_generation.value}>"
        )


def report_long_scope(held_s: float) -> None:
    """Log a scope that held up stepping."""
    _log.warning(
        "a plugin access scope held up stepping for %.3f s wall, more than %.1f s",
        held_s,
        LONG_SCOPE_S,
    )


def _target_of(proxy: PluginProxy) -> Any:
    target = object.__getattribute__(proxy, "_target")
    if target is None:
        name = object.__getattribute__(proxy, "_name")
        raise ScopeClosedError(
            f"plugin {name!r} was used after the access scope that lent it; "
            "open a new one with handle.access()"
        )
    return target


def _scoped_method(proxy: PluginProxy, method: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        target = _target_of(proxy)
        result = getattr(target, method)(*args, **kwargs)
        return proxy if result is target else result

    return call
