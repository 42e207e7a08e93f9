"""The records of one plugin name, from ``init`` to ``destroy``, across reloads.

Owns: the implementation behind a name, its records by data and instance, and the calls that the
thunks make, ready to be made.
Invariants: a record belongs to the present implementation when it is used: one of an older one is
replaced first. Data that have no record get one when they are first used. The size of an instance's
state is what its model has room for.
Threads: a data is used by one thread at a time; every look-up is a single dictionary operation.
Implementations are exchanged under the registry's lock, between steps.
Failure: what the class raises comes out as ``EnginePluginError``; there is no record then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final

from mjhost.engine import failures
from mjhost.engine.declaration import Declaration
from mjhost.engine.instances import (
    Record,
    class_of_self,
    label_of,
    object_of,
    set_plugin_data,
    state_address,
    state_range,
)
from mjhost.engine.views import model_view
from mjhost.errors import EnginePluginError

# What a thunk calls per step, per method: data address + instance → call. The sum is unique: there
# are fewer instances in a model than bytes in an mjData.
HOT: Final = ("compute", "advance", "actuator_act_dot", "sdf_distance", "sdf_gradient")

_lives_at: Final[defaultdict[int, set[tuple[Lives, int]]]] = defaultdict(set)
"""Data address → every record there, of any plugin."""


Call = tuple[Callable[..., Any], Any, Any, int]
"""A method of a record, views of model and data, and the address of the model they are for."""


class Lives:
    """What happens behind one plugin name.

    Attributes:
        declaration: the present implementation.
        compiled: its machine code, or ``None``.
        hot: per method of ``HOT``, the calls that are ready.
        statics: address of attributes → ``self`` of a mesh that is being compiled.
        boxes: the same → its box.
        unborn: what failed while there was no data yet: the next ``init`` raises it.
        refused: address of a state, and instance → data whose ``init`` failed, with its failure:
            ``reset`` raises it.
    """

    def __init__(self, declaration: Declaration, compiled: Any) -> None:
        self.hot: dict[str, dict[int, Call]] = {method: {} for method in HOT}
        self.unborn: EnginePluginError | None = None
        self._records: dict[int, Record] = {}
        self._by_state: dict[tuple[int, int], Record] = {}
        self.boxes: dict[int, list[float]] = {}
        self.refused: dict[tuple[int, int], tuple[int, EnginePluginError]] = {}
        self.statics: dict[int, Any] = {}
        self.implement(declaration, compiled)

    def implement(self, declaration: Declaration, compiled: Any) -> None:
        """Puts another implementation behind the name; records follow when they are next used."""
        self.declaration = declaration
        self.compiled = compiled
        self.self_class = class_of_self(declaration)
        self.unborn = None
        self.statics.clear()
        for calls in self.hot.values():
            calls.clear()
        for record in tuple(self._records.values()):
            _release(record)

    def __len__(self) -> int:
        return len(self._records)

    # -- lives -----------------------------------------------------------------------------------

    def begin(self, model: int, data: int, instance: int) -> Record:
        """Makes the record of an instance."""
        unborn, self.unborn = self.unborn, None
        if unborn is not None:
            raise unborn
        record = self._made(model, data, instance)
        try:
            record.make_memo()
            record.freeze()
            self._pack(record)
        except BaseException:
            record.retire()
            raise
        self.refused.pop((record.state_address, instance), None)
        self._records[data + instance] = record
        self._by_state[record.state_address, instance] = record
        _lives_at[data].add((self, instance))
        return record

    def refuse(self, model: int, data: int, instance: int, error: EnginePluginError) -> None:
        """Notes that the ``init`` of an instance failed, for the ``reset`` that follows."""
        state = state_address(model_view(model), data, instance)
        self.refused[state, instance] = data, error

    def _made(self, model: int, data: int, instance: int) -> Record:
        try:
            record = Record(self.declaration, self.self_class, model, data, instance)
        except ValueError as error:
            raise self._refused(label_of(model, instance), instance, error) from None
        needed = self.state_size(record.obj, record.model, instance)
        _, room = state_range(record.model, instance)
        if needed != room:
            raise self._refused(
                record.label,
                instance,
                f"it needs {needed} numbers of state, the model was compiled with room for {room}; "
                "compile the model again",
            )
        return record

    def _refused(self, label: str, instance: int, reason: object) -> EnginePluginError:
        return EnginePluginError(
            f"engine plugin {self.declaration.name!r}, {label}: {reason}",
            plugin=self.declaration.name,
            instance=instance,
            method="init",
        )

    def _pack(self, record: Record) -> None:
        if self.compiled is None:
            return
        data, model = record.data._address, record.model._address
        record.packed = self.compiled.pack(
            record.obj, model=model, data=data, instance=record.instance
        )
        set_plugin_data(data, record.instance, record.packed.handle)

    def packed_again(self, record: Record) -> None:
        """Shows compiled code the memo that a record has now."""
        _release(record)
        self._pack(record)

    def end(self, data: int, instance: int) -> None:
        """Frees the memo of an instance and forgets it; does nothing if there is no record."""
        record = self._forget(data, instance)
        if record is None:
            return
        try:
            record.free_memo()
        finally:
            record.retire()

    def drop(self, data: int, instance: int) -> None:
        """Forgets an instance whose data are gone: nothing of the class is called."""
        record = self._forget(data, instance)
        if record is not None:
            record.retire()

    def _forget(self, data: int, instance: int) -> Record | None:
        key = data + instance
        record = self._records.pop(key, None)
        if record is None:
            return None
        for calls in self.hot.values():
            calls.pop(key, None)
        self._by_state.pop((record.state_address, instance), None)
        _release(record)
        found = _lives_at[data]
        found.discard((self, instance))
        if not found:
            del _lives_at[data]
        return record

    # -- use -------------------------------------------------------------------------------------

    def record(self, model: int, data: int, instance: int) -> Record:
        """The record of an instance, of the present implementation, made if there is none.

        Raises:
            LookupError: there is none, and no model to make it from.
        """
        record = self._records.get(data + instance)
        if record is not None and record.declaration is self.declaration:
            return record
        if record is not None:
            model = model or record.model._address
            self.end(data, instance)
        if not model:
            raise LookupError("these data have never been computed with their model")
        record = self.begin(model, data, instance)
        record.is_new = False
        return record

    def known(self, data: int, instance: int) -> Record | None:
        """The record of an instance, if there is one."""
        return self._records.get(data + instance)

    def by_state(self, state: int, instance: int) -> Record | None:
        """The record whose part of ``plugin_state`` begins at an address."""
        return self._by_state.get((state, instance))

    def call(self, method: str, model: int, data: int, instance: int) -> Call:
        """The call of a method of ``HOT``, ready and remembered.

        Args:
            method: its name.
            model: address of the model; 0 where the engine does not tell.
            data: address of the data.
            instance: index of the instance.
        """
        record = self.record(model, data, instance)
        function = getattr(record.obj, method, None) or _nothing
        views = record.model, record.data
        if model and record.model._address != model:
            views = record.views_with(model)
        call = function, *views, views[0]._address
        self.hot[method][data + instance] = call
        self._repack(record)
        return call

    def _repack(self, record: Record) -> None:
        """Shows compiled code the record again: data that were unpickled have another's handle."""
        if record.packed is not None:
            set_plugin_data(record.data._address, record.instance, record.packed.handle)

    # -- before there are data -------------------------------------------------------------------

    def state_size(self, obj: Any, model: Any, instance: int) -> int:
        """Numbers of state that an instance needs."""
        return self._size("state_size", obj, model, instance)

    def sensor_size(self, obj: Any, model: Any, instance: int, sensor: int) -> int:
        """Numbers that one of its sensors puts out."""
        return self._size("sensor_size", obj, model, instance, sensor)

    def _size(self, name: str, obj: Any, *arguments: Any) -> int:
        size = getattr(obj, name, 0)
        size = size(*arguments) if callable(size) else size
        if not hasattr(size, "__index__") or isinstance(size, bool) or int(size) < 0:
            raise ValueError(f"{name} must be a whole number of at least 0, it is {size!r}")
        return int(size)

    def unmade(self, model: int, instance: int, text_of: Callable[[str], str | None]) -> Any:
        """A ``self`` with attributes only, while the model is being compiled."""
        try:
            return object_of(self.declaration, self.self_class, text_of)
        except ValueError as error:
            raise self._refused(label_of(model, instance), instance, error) from None

    def remember_static(self, attributes: int, obj: Any) -> None:
        """Keeps the ``self`` of a mesh that is being compiled, by where its attributes are."""
        if len(self.statics) > _MOST_STATICS:
            self.statics.clear()
            self.boxes.clear()
        self.statics[attributes] = obj


_MOST_STATICS: Final = 256


def _nothing(*_: Any) -> None:
    """Stands for a method that the engine calls and the class does not need."""


def _release(record: Record) -> None:
    packed, record.packed = record.packed, None
    if packed is not None:
        packed.release()


def end_all(data: int) -> list[EnginePluginError]:
    """Ends every record of some data, of any plugin, and returns what their methods raised."""
    raised = []
    for lives, instance in tuple(_lives_at.get(data, ())):
        record = lives.known(data, instance)
        try:
            lives.end(data, instance)
        except BaseException as error:  # noqa: BLE001 - the others are to be ended too
            assert record is not None
            raised.append(
                failures.failure(lives.declaration.name, instance, record.label, "destroy", error)
            )
    return raised


def _silence(data: int) -> None:
    """Makes every call of some data ask again: a failure is pending."""
    for lives, instance in tuple(_lives_at.get(data, ())):
        for calls in lives.hot.values():
            calls.pop(data + instance, None)


failures.when_parked(_silence)


def forget_stale(data: int, instance: int) -> None:
    """Drops what other data have left at an address where the engine is making new ones.

    It makes the instances in order, so that this one and those after it cannot be of the new data.
    """
    for lives, other in tuple(_lives_at.get(data, ())):
        if other >= instance:
            lives.drop(data, other)


def forget(data: int) -> None:
    """Drops the records of data that died without a word; their memory is other data's now."""
    for lives, instance in tuple(_lives_at.get(data, ())):
        lives.drop(data, instance)
    failures.pending.pop(data, None)


def count() -> int:
    """How many records there are, of all plugins."""
    return sum(len(found) for found in _lives_at.values())
