"""The model and the data of an engine call, seen from their addresses.

Owns: which memory the arrays of a model or a data lie in.
Invariants: ``model`` of a data view is the model view it was made with. A view is wrong as soon as
another struct lives at its address, or the engine rebuilt this one in place.
Threads: as the structs themselves. Importing this compiles an empty model, once
(``abi.fields.arena_fields``): not for the first time from inside an engine callback.
Not a goal: proving that an address is one; ``mjhost.layout.address_of`` does for binding objects.
"""

from __future__ import annotations

import ctypes
from typing import Any

from mjhost.engine.abi.fields import arena_fields
from mjhost.engine.views.view import View, complete, layout_of


class ModelView(View):
    """``mjModel`` at an address, with the members of ``mujoco.MjModel``.

    Numbers and arrays are read and written where they are; sizes cannot be assigned. There are no
    look-ups by name but ``mj.mj_name2id``.

    Attributes:
        _address: as of ``mujoco.MjModel``.
    """

    _fields_ = layout_of("mjModel")
    _address: int
    _buffer: Any
    _start: int

    @property
    def _model(self) -> ModelView:
        return self

    def _memory(self, pointer: int, size: int) -> tuple[Any, int]:  # noqa: ARG002 - all is in it
        return self._buffer, self._start


class DataView(View):
    """``mjData`` at an address, with the members of ``mujoco.MjData``.

    What contacts and constraints the engine found lies in an arena that is filled anew at every
    step: an array taken from there (``contact``, ``efc_force``, …) is good until the next collision
    or reset, so ask the view each time.

    Attributes:
        model: the view of its model.
        _address: as of ``mujoco.MjData``.
    """

    _fields_ = layout_of("mjData")
    model: ModelView
    _model: ModelView
    _address: int
    _buffer: Any
    _start: int
    _end: int
    _arena: Any
    _arena_start: int

    def _memory(self, pointer: int, size: int) -> tuple[Any, int]:  # noqa: ARG002 - all is in them
        if self._start <= pointer <= self._end:
            return self._buffer, self._start
        return self._arena, self._arena_start


complete(ModelView, "mjModel")
complete(DataView, "mjData", moving=arena_fields())


def model_view(address: int) -> ModelView:
    """The model at ``address``; nothing keeps it there but the caller."""
    view = ModelView.from_address(address)
    view.__dict__.update(_address=address, **_buffer_of(view))
    return view


def data_view(address: int, model: ModelView) -> DataView:
    """The data at ``address``, which belongs to ``model``; nothing keeps it but the caller."""
    view = DataView.from_address(address)
    view.__dict__.update(_address=address, model=model, _model=model, **_buffer_of(view))
    arena = (ctypes.c_char * view.narena).from_address(view.arena)
    view.__dict__.update(_end=view._start + view.nbuffer, _arena=arena, _arena_start=view.arena)
    return view


def _buffer_of(view: Any) -> dict[str, Any]:
    buffer = (ctypes.c_char * view.nbuffer).from_address(view.buffer)
    return {"_buffer": buffer, "_start": view.buffer}
