"""The functions that the engine enters for a plugin name: made once, never freed.

Owns: one Python function per slot and name, which looks up what is behind the name at each call;
here those of steps and of the life of data, in ``compile_thunks`` the others.
Invariants: no exception leaves a thunk, and each returns something that the engine can use: nothing
done, 0, or far away. While a failure of some data is pending, nothing of these data is run; in a
call of the engine that can raise, the pending failure is raised instead. ``plugin_state`` is zero
before anybody's ``reset`` runs, whatever that does.
Threads: any thread of the engine; those that Python did not start keep their Python state.
Failure: an interrupt at the first instruction of a thunk is caught like any other
(``entrances``).

A thunk of a step is on the path of every evaluation: one dictionary look-up, one comparison, the
call. ``out`` is where a machine-code frame finds what to raise; 0 if there is no frame.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any, Final

from mjhost.engine import (
    compile_thunks,
    contexts,
    failures,
    frames,
    instances,
    lives,
    outcomes,
    replays,
)
from mjhost.engine.abi.symbols import engine
from mjhost.engine.contexts import Context, here
from mjhost.engine.entrances import guarded
from mjhost.engine.failures import pending
from mjhost.engine.lives import Lives
from mjhost.engine.outcomes import Site
from mjhost.engine.views import view_class

_RAISED: Final = 1

Thunk = Callable[..., Any]


# -- steps ---------------------------------------------------------------------------------------


def _compute(owner: Lives) -> Thunk:
    calls, bind = owner.hot["compute"], outcomes.binder(owner, "compute")

    def compute(model: int, data: int, instance: int, capability: int, out: int = 0) -> None:
        try:
            here.pinned  # noqa: B018 - pins on the first entry
            function, model_view, data_view, born = calls.get(data + instance) or bind(
                model, data, instance, out
            )
            if model != born:
                function, model_view, data_view, born = bind(model, data, instance, out)
            function(model_view, data_view, instance, capability)
        except BaseException as error:  # noqa: BLE001 - nothing may leave
            outcomes.fail(Site(owner, "compute"), error, data, instance, out)

    return compute


def _step_method(owner: Lives, method: str) -> Thunk:
    calls, bind = owner.hot[method], outcomes.binder(owner, method)

    def step(model: int, data: int, instance: int, out: int = 0) -> None:
        try:
            here.pinned  # noqa: B018 - pins on the first entry
            function, model_view, data_view, born = calls.get(data + instance) or bind(
                model, data, instance, out
            )
            if model != born:
                function, model_view, data_view, born = bind(model, data, instance, out)
            function(model_view, data_view, instance)
        except BaseException as error:  # noqa: BLE001 - nothing may leave
            outcomes.fail(Site(owner, method), error, data, instance, out)

    return step


def _advance(owner: Lives) -> Thunk:
    return _step_method(owner, "advance")


def _act_dot(owner: Lives) -> Thunk:
    return _step_method(owner, "actuator_act_dot")


def _visualize(owner: Lives) -> Thunk:
    def visualize(  # noqa: PLR0917 - the engine's arguments
        model: int, data: int, option: int, scene: int, instance: int, out: int = 0, _: int = 0
    ) -> None:
        try:
            if pending and data in pending:
                outcomes.skip(data, out)
                return
            record = owner.record(model, data, instance)
            shown = _view("mjvOption", option), _view("mjvScene", scene)
            record.obj.visualize(record.model, record.data, *shown, instance)
        except BaseException as error:  # noqa: BLE001 - nothing may leave
            outcomes.fail(Site(owner, "visualize"), error, data, instance, out)

    return visualize


_view_class: Final = functools.cache(view_class)


def _view(struct: str, address: int) -> Any:
    return _view_class(struct).from_address(address)


# -- lives ---------------------------------------------------------------------------------------


def _init(owner: Lives) -> Thunk:
    def init(model: int, data: int, instance: int, out: int = 0, _: int = 0) -> int:
        try:
            here.pinned  # noqa: B018 - pins on the first entry
            lives.forget_stale(data, instance)
            owner.begin(model, data, instance)
            return 0
        except BaseException as error:  # noqa: BLE001 - nothing may leave
            return _init_failed(Site(owner, "init"), error, (model, data, instance), out)

    return init


@guarded
def _init_failed(site: Site, error: BaseException, where: tuple[int, int, int], out: int) -> int:
    """Refuses the data, or parks the failure where a refusal would end the process."""
    try:
        model, data, instance = where
        made = site.told(error, instance, instances.label_of(model, instance))
        context = contexts.current()
        if context is Context.NOBODY:
            failures.park(made, data)
            return 0
        if context is Context.ENGINE and out:
            # Of an `init` that refuses, the compiler says its own sentence, and ours twice. The
            # next call for these data is `reset`, when they are complete and can be given up.
            site.owner.refuse(model, data, instance, made)
            return 0
        for later in lives.end_all(data):
            failures.park(later)
        if context is Context.ENGINE:
            failures.carried(made)
            engine().warn(str(made))
        if out:
            frames.refuse(out, failures.surface(made) if context is Context.BINDING else None)
        elif context is Context.BINDING:
            engine().warn(str(made))
            failures.park(made)
    except BaseException as worse:  # noqa: BLE001 - an interrupt, most likely
        failures.park(site.told(worse, where[2], ""))
        if out:
            frames.refuse(out, None)
    return -1


def _destroy(owner: Lives) -> Thunk:
    def destroy(data: int, instance: int, out: int = 0, _: int = 0) -> None:  # noqa: ARG001
        try:
            if pending:
                failures.drop(data)
            _end(Site(owner, "destroy"), data, instance)
        except BaseException as error:  # noqa: BLE001 - nothing may leave
            made = Site(owner, "destroy").told(error, instance, f"instance {instance}")
            failures.park(made)

    return destroy


def _end(site: Site, data: int, instance: int) -> None:
    record = site.owner.known(data, instance)
    try:
        site.owner.end(data, instance)
    except BaseException as error:
        raise site.told(error, instance, record.label if record else "") from error


def _copy(owner: Lives) -> Thunk:
    def copy(target: int, model: int, source: int, instance: int, out: int = 0, _: int = 0) -> None:
        try:
            here.pinned  # noqa: B018 - pins on the first entry
            if pending and target in pending:
                outcomes.skip(target, out)
                return
            _copy_memo(owner, target, model, source, instance)
        except BaseException as error:  # noqa: BLE001 - nothing may leave
            outcomes.fail(Site(owner, "copy"), error, target, instance, out)

    return copy


def _copy_memo(owner: Lives, target: int, model: int, source: int, instance: int) -> None:
    new = owner.record(model, target, instance)
    methods = new.declaration.methods
    if "copy" in methods:
        old = owner.record(model, source, instance)
        memo = methods["copy"](old.obj, new.model, new.data, old.data, instance)
        if memo is not None or "init" not in methods:
            new.replace_memo(lambda: memo)
    elif "init" in methods:
        new.replace_memo(new.call_init)
    owner.packed_again(new)
    new.is_new = False


def _reset(owner: Lives) -> Thunk:
    def reset(
        model: int,
        state: int,
        plugin_data: int,  # noqa: ARG001 - whose it is tells the address of the state
        instance: int,
        out: int = 0,
        _: int = 0,
    ) -> None:
        try:
            if not state:  # the collision of SDFs resets what it draws, and knows no data
                return
            if owner.refused and _refused(owner, state, instance, out):
                return
            instances.clear_state(model, state, instance)
            record = owner.by_state(state, instance)
            if record is None:  # data without a record get one when they are used
                return
            record = owner.record(model, record.data._address, instance)
            method = record.declaration.methods.get("reset")
            if method is not None:
                method(record.obj, record.model, record.data, instance)
            record.is_new = False
        except BaseException as error:  # noqa: BLE001 - nothing may leave
            found = owner.by_state(state, instance)
            data = found.data._address if found is not None else 0
            outcomes.fail(Site(owner, "reset"), error, data, instance, out)

    return reset


def _refused(owner: Lives, state: int, instance: int, out: int) -> bool:
    """Gives data up whose ``init`` has failed; whether it had."""
    data, error = owner.refused.pop((state, instance), (0, None))
    if error is None:
        return False
    if not frames.abort(out, error, data, data):
        failures.park(error, data)
    return True


# -- making --------------------------------------------------------------------------------------

THUNKS: Final[dict[str, Callable[[Lives], Thunk]]] = {
    "init": _init,
    "destroy": _destroy,
    "copy": _copy,
    "reset": _reset,
    "compute": _compute,
    "advance": _advance,
    "visualize": _visualize,
    "actuator_act_dot": _act_dot,
    **compile_thunks.THUNKS,
}
"""Slot of the engine → what makes its function for a name."""


def make(owner: Lives) -> dict[str, Thunk]:
    """The functions of a name, by slot."""
    made = {slot: guarded(thunk(owner)) for slot, thunk in THUNKS.items()}
    failures.thunk_codes.update(function.__code__ for function in made.values())
    return made


def retrying(owner: Lives, method: str, thunk: Thunk, data_at: int) -> Thunk:
    """What a frame enters after the compiled method did not do it.

    Args:
        owner: of the name.
        method: its name.
        thunk: the function for the same slot.
        data_at: index of the data among its arguments; the instance comes next.
    """
    calls = owner.hot[method]

    def replay(given: list[int], out: int, data: int, instance: int) -> None:
        record = owner.known(data, instance)
        with replays.without_trace(data, record and getattr(record.obj, "memo", None)):
            thunk(*given, out)
        if not ctypes.c_uint64.from_address(out).value and data not in pending:
            raise replays.unlike("method")

    def retry(*arguments: int) -> None:
        try:
            *given, out, status = arguments
            data, instance = given[data_at : data_at + 2]
            calls.pop(data + instance, None)  # the next one shows compiled code its record again
            if status == _RAISED:
                replay(given, out, data, instance)
            else:
                thunk(*given, out)
        except BaseException as error:  # noqa: BLE001 - nothing may leave
            data, instance = arguments[data_at : data_at + 2]
            outcomes.fail(Site(owner, method), error, data, instance, arguments[-2])

    failures.thunk_codes.add(guarded(retry).__code__)
    return retry
