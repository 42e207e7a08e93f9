"""What the machine code of a method depends on, as one hash: the key of the disk cache.

Owns: finding everything that Numba reads when it compiles a method: the code of the method and of
every function that it reaches, defaults, closures, globals, class attributes, the record of
``self``.
Invariants: what cannot be followed to its last value makes no key, so that nothing is cached: a
cache that is missed costs a second, one that is wrong costs a wrong number.
"""

from __future__ import annotations

import builtins
import dis
import enum
import hashlib
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, Final

import numpy as np

from mjhost.engine.compiled.pipeline import is_engine_enum
from mjhost.engine.compiled.selves import SelfType, raw_member
from mjhost.engine.views.functions import mj, spec_of

# Packages whose contents follow from versions that are part of the key.
_VERSIONED: Final = frozenset({"builtins", "cmath", "math", "mujoco", "numba", "numpy"})
_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))
_NAMES: Final = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})


class UnknownDependencyError(Exception):
    """Something that a method uses, whose content cannot be told."""


def fingerprint(function: Callable[..., Any], kind: SelfType) -> str | None:
    """A hash of what the machine code of ``function`` follows from; ``None`` if that is unknown.

    Args:
        function: a method.
        kind: the type of its ``self``.
    """
    walk, layout = _Walk(kind), kind.layout
    try:
        walk.function(function)
        for cell in layout.cells.values():
            walk.add(f"cell {cell.path} {cell.kind} {cell.offset} {cell.dtype} {cell.ndim}")
            walk.value(cell.enum)
    except UnknownDependencyError:
        return None
    walk.add(f"static {layout.is_static} digest {layout.digest}")
    return walk.digest()


class _Walk:
    """One way through everything that a method reaches."""

    def __init__(self, kind: SelfType) -> None:
        self._kind = kind
        self._hash = hashlib.sha256()
        self._seen: dict[int, int] = {}

    def digest(self) -> str:
        return self._hash.hexdigest()

    def add(self, text: str) -> None:
        self._hash.update(f"{len(text)}:{text}\n".encode())

    def function(self, function: Any) -> None:
        if id(function) in self._seen:
            self.add(f"function {self._seen[id(function)]}")
            return
        self._seen[id(function)] = len(self._seen)
        self.add(f"function {function.__qualname__}")
        for part in (
            function.__defaults__,
            function.__kwdefaults__ and tuple(sorted(function.__kwdefaults__.items())),
        ):
            self.value(part)
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            self.add(f"cell {name}")
            self.value(cell.cell_contents)
        for code in _codes(function.__code__):
            self._code(code, function.__globals__)

    def _code(self, code: CodeType, names: dict[str, Any]) -> None:
        self.add(repr((code.co_code, code.co_names, code.co_varnames, code.co_freevars)))
        self.add(repr(code.co_exceptiontable))
        for constant in code.co_consts:
            if not isinstance(constant, CodeType):
                self.value(constant)
        for name in sorted(_globals_of(code)):
            self.add(f"global {name}")
            self.value(names.get(name, getattr(builtins, name, None)))
        for name in code.co_names:
            member = raw_member(self._kind, name)
            if member is not None:
                self.add(f"member {name}")
                self._member(member)

    def _member(self, member: Any) -> None:
        if isinstance(member, property):
            self.function(member.fget)
        elif isinstance(member, staticmethod):
            self.function(member.__func__)
        elif isinstance(member, FunctionType):
            self.function(member)
        elif type(member).__name__ not in _DESCRIPTORS:
            self.value(member)

    def value(self, value: Any) -> None:
        """Adds one value, whatever it is."""
        if isinstance(value, enum.Enum):
            self.add(f"{type(value).__qualname__}.{value.name}")
            self.value(value.value)
        elif isinstance(value, _PLAIN):
            self.add(f"{type(value).__name__} {value!r}")
        elif isinstance(value, tuple | frozenset):
            members = value if isinstance(value, tuple) else sorted(value, key=repr)
            self.add(f"{type(value).__name__} of {len(members)}")
            for member in members:
                self.value(member)
        elif isinstance(value, np.ndarray | np.generic):
            array = np.asarray(value)
            self.add(f"array {array.dtype.str} {array.shape} {array.strides}")
            self._hash.update(array.tobytes())
        else:
            self._object(value)

    def _object(self, value: Any) -> None:
        named = _versioned_name(value)
        if named:
            self.add(named)
        elif is_engine_enum(type(value)):
            self.add(f"{type(value).__name__} {int(value)}")
        elif hasattr(value, "py_func"):
            self.add(repr(sorted(value.targetoptions.items(), key=str)))
            self.function(value.py_func)
        elif isinstance(value, FunctionType):
            self.function(value)
        elif isinstance(value, type) and issubclass(value, enum.Enum):
            self.add(f"enum {value.__qualname__} {value.__mro__}")
            for member in value:
                self.value(member)
        else:
            raise UnknownDependencyError(repr(value))


# What inspect finds for names of self that are attributes, not constants.
_DESCRIPTORS: Final = frozenset({"Marker", "member_descriptor", "getset_descriptor"})


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _globals_of(code: CodeType) -> set[str]:
    return {
        str(instruction.argval)
        for instruction in dis.get_instructions(code)
        if instruction.opname in _NAMES
    }


def _versioned_name(value: Any) -> str:
    """The name of something that is what it is in the installed version of its package."""
    spec = spec_of(value) if isinstance(value, FunctionType) else None
    if spec is not None:
        return f"mj {spec.name}"
    if value is mj:
        return "module mj"
    if isinstance(value, ModuleType):
        name = value.__name__
    elif isinstance(value, np.ufunc):
        name = f"numpy.{value.__name__}"
    elif isinstance(value, type | FunctionType | BuiltinFunctionType):
        name = f"{value.__module__}.{value.__qualname__}"
    else:
        return ""
    return f"{type(value).__name__} {name}" if name.partition(".")[0] in _VERSIONED else ""
