"""Callbacks of other libraries: what they are, how they are called and named.

Invariants: what was found is described once, at the moment it is found. The exported pointer
decides whether there is a callback at all, the binding's getter only what it is: after
``mj_resetCallbacks`` the getter still reports functions that nobody calls any more.
"""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mjhost.callbacks.kinds import CallbackKind
from mjhost.callbacks.symbols import address_of, code_at, is_binding_code, python_object

FunctionPointer: Any = ctypes.CFUNCTYPE(None).__mro__[1]
"""Base class of every ctypes function pointer."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """A callback that somebody else installed.

    Attributes:
        kind: which one.
        address: value of the exported pointer, put back when the router goes.
        target: the Python function or ctypes pointer, kept alive; ``None`` for a bare C pointer.
        is_python: whether the engine reaches it through the binding's own trampoline, which turns
            an exception into a long jump that must not cross a Python frame.
    """

    kind: CallbackKind
    address: int
    target: Any
    is_python: bool

    def __str__(self) -> str:
        if self.is_python:
            return f"the Python function {describe(self.target)}"
        if self.target is not None:
            return f"the ctypes pointer {self.target!r}"
        return f"the C function {code_at(self.address)}"

    def as_callable(self) -> Callable[..., Any]:
        """What runs after an env's own hooks, with the arguments of a Python callback."""
        if self.is_python:
            return self.target  # type: ignore[no-any-return]
        return as_python(self.kind, self.address)


def find(kind: CallbackKind, address: int) -> Foreign | None:
    """The foreign callback behind the exported pointer's value ``address``, if it is one."""
    if not address:
        return None
    target = python_object(kind)
    if isinstance(target, FunctionPointer):
        same = address_of(target) == address
        return Foreign(kind, address, target if same else None, is_python=False)
    if not is_binding_code(address):
        return Foreign(kind, address, None, is_python=False)
    if target is None:
        return None  # the built-in clock
    return Foreign(kind, address, target, is_python=True)


def as_python(kind: CallbackKind, address: int) -> Callable[..., Any]:
    """A C function of ``kind`` as a Python callable with that kind's arguments.

    It is called through ctypes from a Python frame: a C function that leaves by ``mju_error``
    (a long jump) must not be called like this.
    """
    pointer = kind.prototype(address)
    if not kind.arguments:
        return pointer  # type: ignore[no-any-return]

    def call(model: Any, data: Any, *more: int) -> Any:
        return pointer(model._address, data._address, *more)

    call.__qualname__ = code_at(address)
    return call


def describe(fn: Any) -> str:
    """A callable's name and where it was written."""
    inner = inspect.unwrap(fn) if callable(fn) else fn
    inner = getattr(inner, "__func__", inner)
    name = getattr(inner, "__qualname__", None) or repr(fn)
    code = getattr(inner, "__code__", None)
    if code is None:
        return str(name)
    return f"{name} ({Path(code.co_filename).name}:{code.co_firstlineno})"
