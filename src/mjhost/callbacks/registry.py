"""The callbacks of one env: several per kind, in order, exchangeable while it runs.

Owns: what was added, in which order, and the one composed hook per kind that the route gets.
Invariants: everything is checked when it is added, not when it is called. The plugins' own hook
runs first, then callbacks in the order of their ``add``; ``replace`` keeps the place. Without a
route, before the first load, additions wait for one.
Threads: any; changes take this object's lock and then the router's, and wait for neither a step nor
a hook. What an env passes as ``changed`` decides when they take effect, at the next step boundary.
Failure: an ``add`` or ``replace`` that raises changed nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

from mjhost.callbacks.hook import GuardedHook, Hook, both_forms, hook_of
from mjhost.callbacks.kinds import CallbackKind, Result, kind_named
from mjhost.callbacks.route import Route
from mjhost.callbacks.router import Router, router
from mjhost.callbacks.thunks import Closure, as_drop
from mjhost.errors import CallbackTakenError, InvalidArgumentError


class CallbackToken:
    """One added callback; made by ``Callbacks.add``."""

    __slots__ = ("_hook", "_kind", "_owner")

    def __init__(self, owner: Callbacks, kind: CallbackKind, hook: Hook) -> None:
        self._owner = owner
        self._kind = kind
        self._hook = hook

    def __repr__(self) -> str:
        state = "" if self.active else ", removed"
        return f"<CallbackToken {self.kind}: {self._hook}{state}>"

    @property
    def kind(self) -> str:
        """Name of the kind."""
        return self._kind.name

    @property
    def fn(self) -> Any:
        """The callback as it was given."""
        return self._hook.given

    @property
    def active(self) -> bool:
        """Whether it was not removed yet."""
        return self._owner.holds(self)

    def remove(self) -> None:
        """Takes the callback out, from the next step boundary on; a second call does nothing."""
        self._owner.remove(self)

    def replace(self, fn: Any) -> None:
        """Puts ``fn`` in its place, from the next step boundary on.

        Raises:
            CallbackSignatureError: ``fn`` is no callback of this kind.
            InvalidArgumentError: the token was removed.
        """
        self._owner.replace(self, fn)


class Callbacks:
    """``env.callbacks``: the engine callbacks that a user added to one env."""

    def __init__(
        self,
        changed: Callable[[], None] | None = None,
        *,
        guard: AbstractContextManager[object] | None = None,
        over: Router | None = None,
    ) -> None:
        """Makes an empty registry.

        Args:
            changed: called after each change, with no lock held; it has ``settle`` called at the
                next step boundary. ``None``: changes take effect at once.
            guard: held around a callback that the engine calls outside of the env's own steps, when
                a user runs a forward himself; may be entered again by the thread that holds it.
            over: the router; by default that of the process.
        """
        self._lock = threading.RLock()
        self._changed = changed or self.settle
        self._guard = guard
        self._router = over or router
        self._route: Route | None = None
        self._plugins: dict[str, Hook] = {}
        self._around: dict[str, Callable[[Closure], Closure]] = {}
        self._tokens: dict[str, tuple[CallbackToken, ...]] = {}
        self._stale: set[str] = set()

    # -- for users ---------------------------------------------------------------------------

    def add(self, kind: str, fn: Any) -> CallbackToken:
        """Adds a callback, from the next step boundary on.

        Contract: any thread, at any time: before a model is loaded, while the simulation runs, and
        from inside of hooks. ``control``, ``passive`` and ``sensor`` callbacks all run, in order;
        of contact filters any non-zero drops the pair; ``act_dyn``, ``act_gain``, ``act_bias`` and
        ``time`` have one owner.

        Args:
            kind: ``control``, ``passive``, ``sensor``, ``contactfilter``, ``act_dyn``,
                ``act_gain``, ``act_bias`` or ``time``.
            fn: called as ``fn(model, data)``; ``sensor`` with the stage, ``contactfilter`` with two
                geom ids and ``act_*`` with the actuator's id after these; ``time`` with nothing. Or
                a compiled pointer: a ctypes function pointer or a Numba ``cfunc``.

        Raises:
            UnknownNameError: no such kind.
            CallbackSignatureError: ``fn`` cannot be called as this kind is.
            CallbackTakenError: the kind has an owner already.
            ForeignCallbackError: another library's Python callback is installed there and the extra
                ``fast`` is not.
        """
        what = kind_named(kind)
        hook = hook_of(what, fn)
        self._router.probe(kind)
        with self._lock:
            there = self._tokens.get(kind, ())
            if what.sole and there:
                raise CallbackTakenError(
                    f"{hook} cannot be added as {kind} callback: an env has one, and that is "
                    f"{there[0]._hook}; remove it first, or use its token's replace()"
                )
            token = CallbackToken(self, what, hook)
            self._tokens[kind] = (*there, token)
            self._stale.add(kind)
        self._changed()
        return token

    def __len__(self) -> int:
        return sum(len(tokens) for tokens in self._tokens.values())

    @property
    def kinds(self) -> frozenset[str]:
        """Names of the kinds with at least one callback, the plugins' hooks included."""
        with self._lock:
            added = {kind for kind, tokens in self._tokens.items() if tokens}
            return frozenset(self._plugins) | added

    # -- for tokens --------------------------------------------------------------------------

    def holds(self, token: CallbackToken) -> bool:
        """Whether ``token`` was not removed."""
        return token in self._tokens.get(token.kind, ())

    def remove(self, token: CallbackToken) -> None:
        """See ``CallbackToken.remove``."""
        with self._lock:
            if not self.holds(token):
                return
            left = tuple(other for other in self._tokens[token.kind] if other is not token)
            self._tokens[token.kind] = left
            self._stale.add(token.kind)
        self._changed()

    def replace(self, token: CallbackToken, fn: Any) -> None:
        """See ``CallbackToken.replace``."""
        hook = hook_of(token._kind, fn)
        with self._lock:
            if not self.holds(token):
                raise InvalidArgumentError(
                    f"the {token.kind} callback {token._hook} cannot be replaced: it was removed; "
                    "add the new one instead"
                )
            token._hook = hook
            self._stale.add(token.kind)
        self._changed()

    # -- for the env -------------------------------------------------------------------------

    def plug(self, kind: str, fn: Closure | None) -> None:
        """Sets or removes the plugins' hook of ``kind``, which runs before all callbacks."""
        what = kind_named(kind)
        with self._lock:
            if fn is None:
                self._plugins.pop(kind, None)
            else:
                self._plugins[kind] = hook_of(what, fn)
            self._stale.add(kind)
        self._changed()

    def surround(self, kinds: Iterable[str], around: Callable[[Closure], Closure] | None) -> None:
        """Makes ``around`` of each composed hook what is called, at the next ``settle``.

        It holds for the bound route only; kinds that nobody hooks stay without a hook.
        """
        with self._lock:
            for kind in kinds:
                before = self._around.pop(kind, None)
                if around is not None:
                    self._around[kind] = around
                if before is not around:
                    self._stale.add(kind)

    def bind(self, route: Route) -> None:
        """Hooks everything onto ``route``, in the place of the route before.

        Raises:
            ForeignCallbackError: a kind cannot be installed; nothing is hooked on ``route``.
        """
        with self._lock:
            before, self._route = self._route, route
            try:
                for kind in self.kinds:
                    route.set(kind, self._composed(kind))
            except BaseException:
                for kind in route.hooked:
                    route.set(kind, None)
                self._route = before
                raise
            self._stale.clear()

    def hook_onto(self, route: Route) -> None:
        """Hooks everything onto another route as well, as it is now; for private copies."""
        with self._lock:
            for kind in self.kinds:
                route.set(kind, self._in_order(kind))

    def unbind(self) -> None:
        """Forgets the route; what was added waits for the next one."""
        with self._lock:
            self._route = None
            self._stale.clear()

    @property
    def stale(self) -> bool:
        """Whether changes wait for ``settle``."""
        return bool(self._stale)

    def settle(self) -> None:
        """Makes all changes take effect: one store each."""
        with self._lock:
            if self._route is None:
                self._stale.clear()
                return
            while self._stale:
                kind = next(iter(self._stale))
                self._route.set(kind, self._composed(kind))
                self._stale.discard(kind)

    def _composed(self, kind: str) -> Any:
        made, around = self._in_order(kind), self._around.get(kind)
        if made is None or around is None:
            return made
        inside, outside = both_forms(hook_of(kind_named(kind), made).call)
        return GuardedHook(around(inside), around(outside))

    def _in_order(self, kind: str) -> Any:
        plugin = self._plugins.get(kind)
        hooks = [plugin] if plugin is not None else []
        hooks += [token._hook for token in self._tokens.get(kind, ())]
        if not hooks:
            return None
        what = kind_named(kind)
        if len(hooks) == 1 and (hooks[0].pointer or self._guard is None or not what.arguments):
            return hooks[0].given
        if self._guard is None:
            return in_order(what, tuple(hook.call for hook in hooks))
        forms = [both_forms(hook.call) for hook in hooks]
        inside = in_order(what, tuple(form[0] for form in forms))
        outside = in_order(what, tuple(form[1] for form in forms))
        return GuardedHook(inside, _holding(self._guard, outside))


def _holding(guard: AbstractContextManager[object], fn: Closure) -> Closure:
    def call(*arguments: Any) -> Any:
        with guard:
            return fn(*arguments)

    return call


def in_order(kind: CallbackKind, calls: tuple[Closure, ...]) -> Closure:
    """Several hooks as one."""
    if len(calls) == 1:
        return calls[0]
    if kind.result is Result.DROP:
        return _any_drops(kind, calls)
    if len(kind.arguments) > 2:

        def in_order_at(model: Any, data: Any, stage: int) -> None:
            for call in calls:
                call(model, data, stage)

        return in_order_at

    def in_order(model: Any, data: Any) -> None:
        for call in calls:
            call(model, data)

    return in_order


def _any_drops(kind: CallbackKind, calls: tuple[Closure, ...]) -> Closure:
    """The first filter that drops a pair decides; the others are not asked."""

    def any_drops(model: Any, data: Any, geom1: int, geom2: int) -> bool:
        return any(as_drop(call(model, data, geom1, geom2), kind, call) for call in calls)

    return any_drops
