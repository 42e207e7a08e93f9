"""What the engine keeps for the life of the process: unique names, and thunks that stay."""

from __future__ import annotations

import ctypes
import itertools

import pytest

from mjhost.engine.abi import structs
from mjhost.engine.abi.symbols import engine

_NUMBERS = itertools.count()
_KEPT = []


@pytest.fixture
def fresh_name():
    """A name that nobody has registered: letters and digits."""
    return f"mjhostabi{next(_NUMBERS)}"


@pytest.fixture
def filled():
    """Makes a struct whose functions, given by name, live as long as the process."""

    def make(kind, functions, **values):
        struct = kind(**values)
        for slot, function in functions.items():
            thunk = structs.thunk(slot, function)
            _KEPT.append(thunk)
            setattr(struct, slot, structs.address_of(thunk))
        return struct

    return make


@pytest.fixture
def clash():
    """A plugin that has the name of another one, and is not it."""
    _slot, pid = engine().get_plugin("mujoco.pid")
    other = structs.Plugin()
    ctypes.memmove(ctypes.byref(other), ctypes.byref(pid), ctypes.sizeof(other))
    other.compute = other.init
    return other
