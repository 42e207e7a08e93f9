"""Engine callbacks of plain MuJoCo: functions that are hooked onto a model and its data.

Owns: ``callback``, the handles it makes, and the pairs of model and data they are attached to. All
of it goes through the router of ``mjhost.callbacks``, beside the envs of the process.
Invariants: a pair is routed as long as something is attached to it, and kept alive by that. Several
callbacks of one kind run in the order in which they were attached; ``act_*`` have one. What was in
the engine before is put back when the last one goes.
Threads: attaching and detaching from any thread, not while the pair is being stepped. Callbacks run
where their data are stepped.
Failure: what a callback raises ends the engine call that it is in, as an ``EnginePluginError``
(extra ``fast``); where it cannot, the rest of the step runs without callbacks of these data, and
``check`` or the end of the attachment raises it.
Not a goal: rolling back. An env does: ``attach(env)`` is ``env.callbacks.add``.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import weakref
from collections.abc import Callable
from threading import get_ident
from types import TracebackType
from typing import Any, Final, Self

import mujoco

from mjhost.callbacks import CallbackKind, Result, Route, router
from mjhost.callbacks.foreign import describe
from mjhost.callbacks.hook import Hook, hook_of
from mjhost.callbacks.kinds import KINDS, kind_named
from mjhost.callbacks.registry import in_order
from mjhost.callbacks.thunks import keep
from mjhost.engine import callback_frames, failures, frames, replays
from mjhost.engine.abi.verify import verify
from mjhost.engine.callback_scopes import CallbackScope, callback_scope
from mjhost.engine.contexts import here
from mjhost.engine.entrances import guarded
from mjhost.engine.failures import pending
from mjhost.errors import (
    CallbackSignatureError,
    CallbackTakenError,
    EngineDeclarationError,
    EnginePluginError,
    InvalidArgumentError,
)

__all__ = ["Attachment", "CallbackScope", "EngineCallback", "callback", "callback_scope"]

_RAISED: Final = 1
_Function = Callable[..., Any]


def callback(kind: str, *, compiled: bool = False) -> Callable[[_Function], EngineCallback]:
    """Function decorator: an engine callback, to be attached to a model and its data.

    ::

        @engine.callback("control")
        def push(model, data):
            data.ctrl[0] = -data.qpos[0]

        with push.attach(model, data):
            mujoco.mj_step(model, data)

    Args:
        kind: ``control``, ``passive``, ``sensor``, ``contactfilter``, ``act_dyn``, ``act_gain``,
            ``act_bias`` or ``time``; the function takes and returns what ``env.callbacks.add``
            says.
        compiled: compile the function with Numba (extra ``fast``): it then runs without the GIL.
            Global and enclosing names are constants of it.

    Raises:
        UnknownNameError: no such kind.
        CallbackSignatureError: the function cannot be called as this kind is.
        NotCompilableError: it is to be compiled, and cannot be; with file and line.
    """
    what = kind_named(kind)

    def decorate(function: _Function) -> EngineCallback:
        if isinstance(function, EngineCallback):
            function = function.function
        return EngineCallback(what, function, compiled=compiled)

    return decorate


class EngineCallback:
    """One callback, attached to any number of models and data; called, it is the function.

    Attributes:
        kind: name of its kind.
        function: as it was written.
        compiled: whether machine code of it runs.
    """

    def __init__(self, kind: CallbackKind, function: _Function, *, compiled: bool = False) -> None:
        hook_of(kind, function)
        self.kind = kind.name
        self.function = function
        self.compiled = bool(compiled)
        self._kind = kind
        self._entry = _machine_code(kind, function) if compiled else 0
        self._frame = 0
        self._attachments: list[Attachment] = []
        functools.update_wrapper(self, function)

    def __repr__(self) -> str:
        how = ", compiled" if self.compiled else ""
        return f"<EngineCallback {self.kind}: {describe(self.function)}{how}>"

    def __call__(self, *arguments: Any) -> Any:
        """Calls the function."""
        return self.function(*arguments)

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """Where it is attached at present."""
        return tuple(self._attachments)

    def attach(self, target: Any, data: mujoco.MjData | None = None) -> Attachment:
        """Has the engine call it for some data, until the attachment is detached or left.

        Args:
            target: an env, and nothing else; or an ``MjModel``.
            data: the data that are stepped with this model.

        Raises:
            InvalidArgumentError: neither of the two, or an env owns the data.
            CallbackTakenError: the kind has one owner, and these data have it.
            ForeignCallbackError: another library's Python callback is installed there and the extra
                ``fast`` is not.
        """
        registry = getattr(target, "callbacks", None)
        if registry is not None and data is None:
            token = registry.add(self.kind, self)
            attachment = Attachment(self, token.remove)
        else:
            attachment = self._attach_pair(target, data)
        self._attachments.append(attachment)
        return attachment

    def detach(self) -> None:
        """Detaches it from everything; raises the first failure that nobody has asked for."""
        raised = None
        for attachment in self.attachments:
            try:
                attachment.detach()
            except EnginePluginError as error:
                raised = raised or error
        if raised is not None:
            raise raised

    def _attach_pair(self, model: Any, data: Any) -> Attachment:
        if not isinstance(model, mujoco.MjModel) or not isinstance(data, mujoco.MjData):
            raise InvalidArgumentError(
                f"{self!r} is attached to an env, or to an MjModel and an MjData; got "
                f"{type(model).__name__} and {type(data).__name__}"
            )
        if not self._kind.arguments:
            raise InvalidArgumentError(
                f"a {self.kind} callback belongs to no data; attach it to an env, or use "
                f"engine.callback_scope({self.kind}=...)"
            )
        return _pair_of(model, data).add(self)

    # -- for the router --------------------------------------------------------------------------

    def hook_for(self, kind: CallbackKind) -> Hook:
        """What a route hooks; see ``hook_of``."""
        if kind is not self._kind:
            raise CallbackSignatureError(f"{self!r} cannot be a {kind.name} callback")
        return Hook(self, self.function, self.pointer())

    def pointer(self) -> int:
        """Address of the frame in front of its machine code; 0 if it has none."""
        if self._entry and not self._frame:
            self._frame = callback_frames.build(self._kind, _thunk_of(self._kind), self._entry)
        return self._frame

    def mixed(self) -> _Function:
        """The function to call from Python among others: machine code, if there is some."""
        if not self._entry:
            return self.function
        return _through_machine_code(self._kind, self._entry, self.function)


def _machine_code(kind: CallbackKind, function: _Function) -> int:
    what = f"{kind.name} callback {describe(function)}"
    if not inspect.isfunction(function) and not hasattr(function, "py_func"):
        raise EngineDeclarationError(f"compiled=True of {what}: it has to be a plain function")
    verify()
    try:
        from mjhost.engine.compiled.callbacks import compile_callback
    except ImportError as error:
        raise EngineDeclarationError(
            f"compiled=True of {what} needs Numba: pip install 'mjhost[fast]' ({error})"
        ) from error
    return compile_callback(kind.name, function, what)


def _through_machine_code(kind: CallbackKind, entry: int, function: _Function) -> _Function:
    types = [*kind.prototype._argtypes_, ctypes.POINTER(ctypes.c_double)]
    run = ctypes.CFUNCTYPE(ctypes.c_int, *types)(entry)
    drops, returns = kind.result is Result.DROP, kind.result is not Result.NOTHING

    def call(model: Any, data: Any, *more: int) -> Any:
        place = ctypes.c_double()
        if run(model._address, data._address, *more, ctypes.byref(place)) == _RAISED:
            with replays.without_trace(data._address):
                function(model, data, *more)
            raise replays.unlike("callback")
        if not returns:
            return None
        return int(place.value) if drops else place.value

    return call


class Attachment:
    """One callback where it is attached; leaving it as a context manager detaches it."""

    def __init__(self, owner: EngineCallback, remove: Callable[[], None]) -> None:
        self._owner = owner
        self._remove = remove

    def __repr__(self) -> str:
        return f"<Attachment of {self._owner!r}{'' if self.active else ', detached'}>"

    @property
    def active(self) -> bool:
        """Whether it was not detached yet."""
        return self in self._owner._attachments

    @property
    def callback(self) -> EngineCallback:
        """What is attached."""
        return self._owner

    def detach(self) -> None:
        """Takes the callback out; a second call does nothing.

        Raises:
            EnginePluginError: a callback of these data failed, nothing else is attached to them,
                and nobody has asked for it. It is detached all the same.
        """
        if self.active:
            self._owner._attachments.remove(self)
            self._remove()

    def __enter__(self) -> Self:
        """Does nothing: it is attached already."""
        return self

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        try:
            self.detach()
        except EnginePluginError as failure:
            if error is None:
                raise
            error.add_note(f"before that: {failure}")


# -- pairs ---------------------------------------------------------------------------------------


class _Parked(list[BaseException]):
    """What a route keeps of failures: nothing, they go where ``check`` finds them."""

    def __init__(self, pair: _Pair) -> None:
        super().__init__()
        self._pair = pair
        self._address = pair.route.data_address

    def __bool__(self) -> bool:
        return len(self) > 0 or self._address in pending

    def append(self, error: BaseException) -> None:
        failures.park(self._pair.failure(error), self._address)


class _Pair:
    """The callbacks attached to one model and data."""

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        self.route: Route = router.attach(model, data)
        # Data without an engine plugin have nobody else who forgets them: a failure that is taken
        # later would be unmarked in memory that is somebody else's by then.
        weakref.finalize(data, failures.drop, data._address).atexit = False
        self.route.parked = _Parked(self)
        self._attached: dict[str, tuple[EngineCallback, ...]] = {}

    def add(self, one: EngineCallback) -> Attachment:
        with router.lock:
            try:
                there = self._attached.get(one.kind, ())
                if there and KINDS[one.kind].sole:
                    raise CallbackTakenError(
                        f"{one!r} cannot be attached: there is one {one.kind} callback per data, "
                        f"and that is {there[0]!r}; detach it first"
                    )
                self._set(one.kind, (*there, one))
            except BaseException:
                self._end_if_empty()
                raise
        return Attachment(one, lambda: self._remove(one))

    def _remove(self, one: EngineCallback) -> None:
        with router.lock:
            left = list(self._attached.get(one.kind, ()))
            left.remove(one)
            self._set(one.kind, tuple(left))
            failure = self._end_if_empty()
        if failure is not None:
            raise failures.surface(failure)

    def _set(self, kind: str, callbacks: tuple[EngineCallback, ...]) -> None:
        self.route.set(kind, _Composed(callbacks) if callbacks else None)
        if callbacks:
            self._attached[kind] = callbacks
        else:
            self._attached.pop(kind, None)

    def _end_if_empty(self) -> EnginePluginError | None:
        if self._attached:
            return None
        _pairs.pop(self.route.data_address, None)
        self.route.detach()
        return failures.take(self.route.data_address)

    def failure(self, error: BaseException) -> EnginePluginError:
        """``error`` as the failure of the callback that raised it."""
        kind = self.route.parked_kind or "control"
        return callback_frames.failure(KINDS[kind], self._culprit(kind, error), error)

    def _culprit(self, kind: str, error: BaseException) -> _Function:
        functions = [one.function for one in self._attached.get(kind, ())]
        codes = {getattr(function, "__code__", None): function for function in functions}
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code in codes:
                return codes[trace.tb_frame.f_code]
            trace = trace.tb_next
        return functions[0] if functions else callback


class _Composed:
    """The callbacks of one kind of a pair, as one hook."""

    def __init__(self, callbacks: tuple[EngineCallback, ...]) -> None:
        self._callbacks = callbacks

    def hook_for(self, kind: CallbackKind) -> Hook:
        if len(self._callbacks) == 1:
            (one,) = self._callbacks
            return Hook(one, one.function, one.pointer() or _frame_of(kind))
        calls = tuple(one.mixed() for one in self._callbacks)
        return Hook(self._callbacks[0], in_order(kind, calls), _frame_of(kind))


_pairs: Final[dict[int, _Pair]] = {}


def _pair_of(model: mujoco.MjModel, data: mujoco.MjData) -> _Pair:
    address = data._address
    with router.lock:
        pair = _pairs.get(address)
        if pair is None:
            if address in router.routes:
                raise InvalidArgumentError(
                    "a callback cannot be attached to data that an env owns; attach it to the env"
                )
            pair = _pairs[address] = _Pair(model, data)
        elif pair.route.model is not model:
            raise InvalidArgumentError(
                "callbacks are attached to these data with another model; detach them first"
            )
        return pair


def attached(model: mujoco.MjModel) -> tuple[EngineCallback, ...]:
    """The callbacks that are attached to data of a model."""
    with router.lock:
        pairs = [pair for pair in _pairs.values() if pair.route.model is model]
        return tuple(one for pair in pairs for found in pair._attached.values() for one in found)


# -- what the engine enters ----------------------------------------------------------------------


@functools.cache
def _frame_of(kind: CallbackKind) -> int:
    """The frame in front of callbacks that run in Python; 0 without the extra."""
    return callback_frames.build(kind, _thunk_of(kind)) if callback_frames.available() else 0


@functools.cache
def _thunk_of(kind: CallbackKind) -> callback_frames.Thunk:
    hooks = router.ports[kind.name].hooks
    size = len(kind.arguments)
    returns = kind.result is not Result.NOTHING

    def thunk(*given: int) -> None:
        try:
            here.pinned  # noqa: B018 - pins on the first entry
            key = given[1] if size else get_ident()
            call = hooks.get(key)
            if call is None:
                return  # detached meanwhile
            if given[-1] == _RAISED:
                with replays.without_trace(key if size else 0):
                    call(*given[2:size])
                if key in pending:
                    return
                raise replays.unlike("callback")
            value = call(*given[2:size])
            if returns:
                ctypes.c_double.from_address(given[-3]).value = value
        except BaseException as error:  # noqa: BLE001 - nothing may leave
            _fail(kind, given[1] if size else get_ident(), error, given[-2])

    return guarded(thunk)


def _fail(kind: CallbackKind, key: int, error: BaseException, out: int) -> None:
    """Has the engine call raise the failure if it can, else parks it."""
    routes = router.routes if kind.arguments else router.hosting
    route = routes.get(key)
    if route is None:
        failures.park(callback_frames.failure(kind, callback, error))
        return
    parked = route.parked
    if isinstance(parked, _Parked):
        route.parked_kind = kind.name
        error = parked._pair.failure(error)
        if frames.abort(out, error, key, 0):
            return
    keep(route, error, kind)
