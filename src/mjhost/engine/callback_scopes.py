"""Engine callbacks for everything that is stepped within a ``with`` block.

Owns: who holds which callback kind of the process for data that have no callback of their own.
Invariants: a kind is held by the scopes of one thread; the innermost answers. The router is in the
engine as long as a scope is open, and what was there before (a Python function, a ctypes pointer, a
bare C pointer) is put back exactly when the block ends, however it ends.
Threads: held by one thread, called by every thread that steps. A scope of another thread for the
same kind is refused.
Failure: what a callback raises ends the engine call that it is in (extra ``fast``); where it
cannot, the scope's callbacks do nothing any more, and ``check`` or the end of the block raises it.
Not a goal: data that somebody owns. Callbacks attached to them, or to their env, go first.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from mjhost.callbacks import CallbackKind, Result, router
from mjhost.callbacks.hook import Hook, hook_of
from mjhost.callbacks.kinds import kind_named
from mjhost.callbacks.thunks import as_drop, as_number
from mjhost.engine import callback_frames, failures, frames, replays
from mjhost.engine.abi.verify import verify
from mjhost.engine.contexts import here
from mjhost.engine.entrances import guarded
from mjhost.engine.views import DataView, ModelView, data_view, model_view
from mjhost.errors import CallbackTakenError, EnginePluginError, InvalidArgumentError
from mjhost.layout import offset_of

_RAISED: Final = 1


class _Held(NamedTuple):
    """One kind of one scope."""

    scope: CallbackScope
    hook: Hook
    thread: threading.Thread


_holders: Final[dict[str, list[_Held]]] = {}


def callback_scope(
    *,
    control: Any = None,
    passive: Any = None,
    sensor: Any = None,
    contactfilter: Any = None,
    act_dyn: Any = None,
    act_gain: Any = None,
    act_bias: Any = None,
    time: Any = None,
) -> CallbackScope:
    """Engine callbacks for everything in a ``with`` block that has none of its own.

    ::

        with engine.callback_scope(control=controller):
            mujoco.mj_forward(model, data)

    Each is called as its kind is, but ``model`` and ``data`` are views, as engine plugins get them:
    the engine calls for data that no Python object stands for, of a rollout or a compiler. Their
    members are those of ``MjModel`` and ``MjData``; the engine's functions for them are in
    ``engine.mj``. Valid until the callback returns.

    Contract: the kinds are this thread's until the block ends; other threads' steps are under the
    callbacks all the same.

    Raises:
        CallbackSignatureError: something cannot be called as its kind is.
        CallbackTakenError: when entered: another thread holds a kind. Nothing was changed.
        ForeignCallbackError: when entered: a foreign Python callback cannot be kept beside the
            router, without the extra ``fast``. Nothing was changed.
    """
    given = {
        "control": control,
        "passive": passive,
        "sensor": sensor,
        "contactfilter": contactfilter,
        "act_dyn": act_dyn,
        "act_gain": act_gain,
        "act_bias": act_bias,
        "time": time,
    }
    return CallbackScope({kind: fn for kind, fn in given.items() if fn is not None})


class CallbackScope:
    """``with engine.callback_scope(...)``; may be nested, and entered again."""

    def __init__(self, callbacks: dict[str, Any]) -> None:
        if not callbacks:
            raise InvalidArgumentError("a callback scope needs at least one callback, got none")
        self._hooks = {kind: hook_of(kind_named(kind), fn) for kind, fn in callbacks.items()}
        self._open: list[str] = []
        self._failure: EnginePluginError | None = None

    def __repr__(self) -> str:
        hooks = ", ".join(f"{kind}={hook}" for kind, hook in self._hooks.items())
        return f"<CallbackScope {hooks}{'' if self._open else ', closed'}>"

    def __enter__(self) -> Self:
        if self._open:
            raise InvalidArgumentError(f"{self!r} is open already; make another one to nest it")
        verify()
        with router.changing():
            self._refuse_other_threads()
            try:
                for kind in self._hooks:
                    self._take(kind)
            except BaseException:
                self._give_back()
                raise
        return self

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        with router.changing():
            self._give_back()
        try:
            self.check()
        except EnginePluginError as failure:
            if error is None:
                raise
            error.add_note(f"before that: {failure}")

    def check(self) -> None:
        """Raises what a callback of the scope raised and the engine could not pass on.

        Raises:
            EnginePluginError: the first failure; afterwards the callbacks run again.
        """
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failures.surface(failure)

    # -- holding ---------------------------------------------------------------------------------

    def _refuse_other_threads(self) -> None:
        me = threading.current_thread()
        for kind in self._hooks:
            for held in _holders.get(kind, ()):
                if held.thread is not me and held.thread.is_alive():
                    raise CallbackTakenError(
                        f"the {kind} callback cannot be held by thread {me.name!r}: thread "
                        f"{held.thread.name!r} holds it, with {held.hook}; wait for its block to "
                        "end, or attach callbacks to model and data (engine.callback)"
                    )

    def _take(self, kind: str) -> None:
        port = router.ports[kind]
        port.acquire()
        self._open.append(kind)
        held = _Held(self, self._hooks[kind], threading.current_thread())
        _holders.setdefault(kind, []).append(held)
        _stand_in(port.kind)

    def _give_back(self) -> None:
        while self._open:
            kind = self._open.pop()
            port = router.ports[kind]
            stack = _holders[kind]
            stack[:] = [held for held in stack if held.scope is not self]
            _stand_in(port.kind)
            port.release()

    # -- called ----------------------------------------------------------------------------------

    def call(self, kind: CallbackKind, hook: Hook, given: tuple[int, ...]) -> Any:
        """Calls a callback with what the engine gave; its result as the engine's number."""
        if not kind.arguments:
            return as_number(hook.call(), kind, hook.given)
        model, data = _views_of(given[0], given[1])
        value = hook.call(model, data, *given[2:])
        if kind.result is Result.NUMBER:
            return as_number(value, kind, hook.given)
        return as_drop(value, kind, hook.given) if kind.result is Result.DROP else None

    def failed(self, made: EnginePluginError, data: int, out: int) -> None:
        """Has the engine call raise the failure if it can, else keeps it."""
        if not (out and frames.abort(out, made, data, 0)) and self._failure is None:
            self._failure = made

    @property
    def is_pending(self) -> bool:
        """Whether a failure waits for somebody to ask."""
        return self._failure is not None


def held_kinds() -> dict[str, str]:
    """Kind → the callback that a scope holds it with."""
    with router.lock:
        return {kind: str(stack[-1].hook) for kind, stack in _holders.items() if stack}


# -- what the engine enters ----------------------------------------------------------------------


def _stand_in(kind: CallbackKind) -> None:
    """Has the router lead to the innermost scope of a kind, or to what was there before."""
    stack = _holders[kind.name]
    port = router.ports[kind.name]
    if not stack:
        port.stand_in(None)
    elif port.jumps:
        port.stand_in(_plain(kind), _pointer(kind, stack[-1].hook))
    else:
        port.stand_in(_plain(kind))


def _pointer(kind: CallbackKind, hook: Hook) -> int:
    """Machine code to jump to: a compiled callback itself, or a frame that enters Python."""
    entry = getattr(hook.given, "_entry", 0)
    if entry:
        return _compiled_frame(kind, entry)
    return hook.pointer or _frame(kind)


@functools.cache
def _frame(kind: CallbackKind) -> int:
    return callback_frames.build(kind, _thunk(kind))


@functools.cache
def _compiled_frame(kind: CallbackKind, entry: int) -> int:
    return callback_frames.build(kind, _thunk(kind), entry)


@functools.cache
def _plain(kind: CallbackKind) -> Callable[..., Any]:
    """What the router calls from Python."""

    def call(*given: int) -> Any:
        return _answer(kind, given, 0, 0)

    return call


@functools.cache
def _thunk(kind: CallbackKind) -> callback_frames.Thunk:
    """What a frame enters."""
    size = len(kind.arguments)
    returns = kind.result is not Result.NOTHING

    def thunk(*given: int) -> None:
        try:
            value = _answer(kind, given[:size], given[-2], given[-1])
            if returns:
                ctypes.c_double.from_address(given[-3]).value = value
        except BaseException as error:  # noqa: BLE001 - nothing may leave
            _failed(kind, given[:size], error, given[-2])

    return guarded(thunk)


@guarded
def _answer(kind: CallbackKind, given: tuple[int, ...], out: int, status: int) -> Any:
    try:
        here.pinned  # noqa: B018 - pins on the first entry
        held = _holder(kind)
        if held is None or held.scope.is_pending:
            return _neutral(kind)
        if status == _RAISED:
            with replays.without_trace(given[1] if given else 0):
                held.scope.call(kind, held.hook, given)
            raise replays.unlike("callback")
        return held.scope.call(kind, held.hook, given)
    except BaseException as error:  # noqa: BLE001 - nothing may leave
        _failed(kind, given, error, out)
        return _neutral(kind)


def _failed(kind: CallbackKind, given: tuple[int, ...], error: BaseException, out: int) -> None:
    held = _holder(kind)
    if held is not None:
        made = callback_frames.failure(kind, held.hook.given, error)
        held.scope.failed(made, given[1] if given else 0, out)


def _holder(kind: CallbackKind) -> Any:
    stack = _holders.get(kind.name)
    return stack[-1] if stack else None


def _neutral(kind: CallbackKind) -> Any:
    return kind.neutral if kind.arguments else router.ports[kind.name].ask_clock_below()


# -- views ---------------------------------------------------------------------------------------

# Views are dear to make and an address alone is not to be trusted: another model or data may live
# there. Sizes and buffers say where everything is; they are compared each time.

_SIZES: Final = offset_of("mjModel", "opt")  # bytes; they come first
_BUFFER: Final = offset_of("mjModel", "buffer")
_PLACES: Final = tuple(
    offset_of("mjData", name) for name in ("narena", "nbuffer", "buffer", "arena")
)
_MOST_VIEWS: Final = 64


class _Views:
    """The views of a model and data, and what was there when they were made."""

    def __init__(self, model: int, data: int) -> None:
        self.model = model_view(model)
        self.data = data_view(data, self.model)
        # Read only while the engine calls for these addresses: something is alive there.
        self._memory = memoryview((ctypes.c_char * _SIZES).from_address(model)).cast("B")
        places = [model + _BUFFER, *(data + offset for offset in _PLACES)]
        self._cells = [ctypes.c_uint64.from_address(place) for place in places]
        self._content = bytes(self._memory)
        self._values = [cell.value for cell in self._cells]

    @property
    def are_right(self) -> bool:
        """Whether the same sizes and buffers are there."""
        a, b, c, d, e = self._cells
        places = [a.value, b.value, c.value, d.value, e.value]
        return places == self._values and bytes(self._memory) == self._content


_views: Final[dict[tuple[int, int], _Views]] = {}


def _views_of(model: int, data: int) -> tuple[ModelView, DataView]:
    known = _views.get((model, data))
    if known is None or not known.are_right:
        if len(_views) >= _MOST_VIEWS:
            _views.clear()
        known = _views[model, data] = _Views(model, data)
    return known.model, known.data
