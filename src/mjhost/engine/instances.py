"""The objects behind ``self``: one per data and instance, with memo and own parts.

Owns: the classes those objects are of, how one is made from a model's configuration, and the record
that keeps it together with the views that its methods get.
Invariants: a record is made by ``init`` and gone with ``destroy``; an address alone is never
trusted, since most new data live where old ones died: ``init`` replaces whatever is there. ``self``
is frozen once its ``init`` is done. Views and parts point into the data: they are taken from
``self`` when the record goes.
Threads: a record is used by the thread that steps its data.
Failure: what the class raises comes out; a record is complete or does not exist.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from mjhost.engine.abi.symbols import engine
from mjhost.engine.declaration import SLICES, Declaration
from mjhost.engine.views import data_view, model_view
from mjhost.layout import offset_of

_NO_FLOATS: Final = np.empty(0)
_OPEN: Final = "_mjhost_open"  # in the dictionary of a self that is being made
_PLUGIN_DATA: Final = offset_of("mjData", "plugin_data")
_PLUGIN_STATE: Final = offset_of("mjData", "plugin_state")
_STATE_SIZES: Final = offset_of("mjModel", "plugin_statenum")


class Frozen:
    """Base of the classes of ``self``: nothing is assigned after ``init``."""

    def __setattr__(self, name: str, value: Any) -> None:
        if _OPEN in self.__dict__:
            self.__dict__[name] = value
            return
        raise AttributeError(
            f"self.{name} cannot be assigned: what must survive belongs into plugin_state "
            "(state_size, self.state) or act, scratch into what init returns (self.memo)",
            name=name,
            obj=self,
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"self.{name} cannot be deleted", name=name, obj=self)


def class_of_self(declaration: Declaration) -> type:
    """The class of the objects that methods of ``declaration`` get as ``self``."""
    body = {
        "__module__": declaration.cls.__module__,
        "__qualname__": declaration.cls.__qualname__,
        "memo": None,
        **{name: method for name, method in declaration.methods.items() if name.startswith("sdf_")},
    }
    return type(declaration.cls.__name__, (Frozen, declaration.cls), body)


def object_of(declaration: Declaration, cls: type, text_of: Callable[[str], str | None]) -> Any:
    """A ``self`` with attributes only.

    Args:
        declaration: of the class.
        cls: made by ``class_of_self``.
        text_of: the model's text for an attribute; ``None`` or empty for the default.

    Raises:
        ValueError: texts that are no values; the message lists all of them.
    """
    self: Any = object.__new__(cls)
    problems = []
    for name, spec in declaration.attributes.items():
        try:
            self.__dict__[name] = spec.parse(text_of(name) or "")
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise ValueError("; ".join(problems))
    return self


class Record:
    """Everything about one instance of one data.

    Attributes:
        declaration: the implementation it was made by.
        obj: the ``self`` of its methods.
        model: view of the model the data were made from.
        data: view of the data.
        instance: index in the model.
        is_new: whether the engine call that makes the data has not come back yet.
        state_address: of its part of ``plugin_state``; the engine resets by it.
        packed: what the compiled path reads; ``None`` on the Python path.
    """

    __slots__ = (
        "data",
        "declaration",
        "instance",
        "is_new",
        "label",
        "model",
        "obj",
        "packed",
        "state_address",
    )

    def __init__(
        self, declaration: Declaration, cls: type, model: int, data: int, instance: int
    ) -> None:
        self.declaration = declaration
        self.instance = instance
        self.is_new = True
        self.packed: Any = None
        self.label = label_of(model, instance)
        self.model = model_view(model)
        self.data = data_view(data, self.model)
        config = engine().plugin_config
        self.obj = object_of(declaration, cls, lambda name: config(model, instance, name))
        self.obj.__dict__.update(_parts(self.model, self.data, instance), **{_OPEN: True})
        self.state_address = state_address(self.model, data, instance)
        # The engine copies this when data are pickled, so that it must never mean anything else.
        set_plugin_data(data, instance, 0)

    def make_memo(self) -> None:
        """Calls ``init`` of the class and keeps what it returns."""
        self.obj.__dict__["memo"] = self.call_init()

    def call_init(self) -> Any:
        """What ``init`` of the class returns; ``None`` if it has none."""
        init = self.declaration.methods.get("init")
        return None if init is None else init(self.obj, self.model, self.data, self.instance)

    def replace_memo(self, make: Callable[[], Any]) -> None:
        """Frees the memo and keeps what ``make`` returns."""
        self.free_memo()
        self.obj.__dict__["memo"] = make()

    def freeze(self) -> None:
        """From now on nothing can be assigned to ``self``."""
        self.obj.__dict__.pop(_OPEN, None)

    def free_memo(self) -> None:
        """Calls ``destroy`` of the class and lets go of the memo."""
        destroy = self.declaration.methods.get("destroy")
        try:
            if destroy is not None:
                destroy(self.obj, self.data, self.instance)
        finally:
            self.obj.__dict__["memo"] = None

    def retire(self) -> None:
        """Takes everything from ``self`` that points into the data."""
        for name in SLICES:
            self.obj.__dict__.pop(name, None)
        self.packed = None

    def views_with(self, model: int) -> tuple[Any, Any]:
        """Views for a call with another model than that of birth, which may not live as long."""
        seen = model_view(model)
        return seen, data_view(self.data._address, seen)


def label_of(model: int, instance: int) -> str:
    """How messages call an instance: its name in the model and its index."""
    view = model_view(model)
    start, names = int(view.name_pluginadr[instance]), view.names
    name = names[start : names.find(b"\0", start)].decode("utf-8", "replace")
    return f"instance {name!r} ({instance})" if name else f"instance {instance}"


def state_range(model: Any, instance: int) -> tuple[int, int]:
    """Start and size of an instance's part of ``plugin_state``."""
    return int(model.plugin_stateadr[instance]), int(model.plugin_statenum[instance])


def state_address(model: Any, data: int, instance: int) -> int:
    """Where an instance's part of ``plugin_state`` begins."""
    return _word(data + _PLUGIN_STATE) + 8 * state_range(model, instance)[0]


def set_plugin_data(data: int, instance: int, value: int) -> None:
    """Writes ``plugin_data[instance]``."""
    ctypes.c_size_t.from_address(_word(data + _PLUGIN_DATA) + 8 * instance).value = value


def clear_state(model: int, state: int, instance: int) -> None:
    """Zeroes an instance's part of ``plugin_state``, which begins at ``state``."""
    sizes = _word(model + _STATE_SIZES)
    ctypes.memset(state, 0, 8 * ctypes.c_int.from_address(sizes + 4 * instance).value)


def _word(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value


# -- parts ---------------------------------------------------------------------------------------


def _parts(model: Any, data: Any, instance: int) -> Mapping[str, Any]:
    """What ``self`` has besides attributes, see ``declaration.SLICES``."""
    start, size = state_range(model, instance)
    parts = {"state": data.plugin_state[start : start + size]}
    parts.update(_actuator_parts(model, data, instance))
    parts.update(_sensor_parts(model, data, instance))
    parts["bodies"] = _owned(model.body_plugin, instance)
    parts["geoms"] = _owned(model.geom_plugin, instance)
    return parts


def _owned(owners: Any, instance: int) -> Any:
    return _constant(np.flatnonzero(owners == instance))


def _constant(values: Any) -> Any:
    array = np.ascontiguousarray(values, dtype=np.int32)
    array.flags.writeable = False
    return array


def _actuator_parts(model: Any, data: Any, instance: int) -> Mapping[str, Any]:
    own = _owned(model.actuator_plugin, instance)
    # The plugin's own activations come first, that of a dyntype after them.
    sizes = model.actuator_actnum[own] - (model.actuator_dyntype[own] != 0)
    starts = np.where(sizes > 0, model.actuator_actadr[own], -1)
    return {
        "actuators": own,
        "ctrladr": _constant(model.actuator_ctrladr[own]),
        "outadr": _constant(model.actuator_outadr[own]),
        "actadr": _constant(starts),
        "act": _joined(data.act, starts, sizes),
        "act_dot": _joined(data.act_dot, starts, sizes),
    }


def _sensor_parts(model: Any, data: Any, instance: int) -> Mapping[str, Any]:
    own = _owned(model.sensor_plugin, instance)
    starts, sizes = model.sensor_adr[own], model.sensor_dim[own]
    return {
        "sensors": own,
        "sensoradr": _constant(starts),
        "sensordata": _joined(data.sensordata, starts, sizes),
    }


def _joined(values: Any, starts: Any, sizes: Any) -> Any:
    """The parts of ``values`` as one view; empty if they do not follow one another."""
    held = sizes > 0
    starts, sizes = starts[held], sizes[held]
    if not len(starts) or np.any(starts[1:] != starts[:-1] + sizes[:-1]):
        return _NO_FLOATS
    return values[starts[0] : starts[-1] + sizes[-1]]
