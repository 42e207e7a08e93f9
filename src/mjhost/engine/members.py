"""What stands in the body of a plugin class: methods of the table, helpers, constants.

Owns: the sorting and its checks: required methods, methods that would never be called, signatures,
names of the C interface, mutable class attributes.
Threads: pure functions.
Failure: ``EngineDeclarationError`` with what to write instead.
"""

from __future__ import annotations

import inspect
import random
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any, Final, NamedTuple

import numpy as np

from mjhost.engine import sdf_defaults
from mjhost.engine.methods import FOREIGN_NAMES, METHODS, Method
from mjhost.errors import EngineDeclarationError

_MUTABLE: Final = (
    list,
    dict,
    set,
    bytearray,
    deque,
    random.Random,
    np.random.Generator,
    np.random.RandomState,
)
_RESERVED: Final = {
    "__init__": "one object is made per data and instance; what it keeps is made by init(self, "
    "model, data, instance), which returns the memo",
    "__new__": "objects are made per data and instance",
    "__slots__": "objects get attributes of the engine beside those of the class",
    "__setattr__": "objects are read-only once they are made",
    "__getattribute__": "attributes are read in every step",
}


class Members(NamedTuple):
    """The body of a class, sorted; see ``Declaration``."""

    methods: dict[str, Callable[..., Any]]
    helpers: dict[str, Callable[..., Any]]
    constants: dict[str, Any]


def members(cls: type, specs: Iterable[str], capabilities: tuple[str, ...]) -> Members:
    """Sorts the body of ``cls``.

    Args:
        cls: the class.
        specs: names of its attributes.
        capabilities: what it declares to be.

    Raises:
        EngineDeclarationError: something in it cannot be right.
    """
    body = {
        name: value for base in reversed(cls.__mro__[:-1]) for name, value in vars(base).items()
    }
    _check_reserved(body)
    _check_foreign_names(body)
    methods = _methods(body)
    rest = {name: value for name, value in body.items() if _is_own(name, value, specs)}
    helpers: dict[str, Callable[..., Any]] = {
        n: v for n, v in rest.items() if isinstance(v, FunctionType) and n not in methods
    }
    constants = {n: v for n, v in rest.items() if not _is_code(v) and n not in methods}
    for name, value in constants.items():
        _check_constant(name, value)
    _check_use(methods, constants, capabilities)
    if "sdf" in capabilities:
        methods = sdf_defaults.filled_in(methods)
    return Members(methods, helpers, constants)


def _is_own(name: str, value: Any, specs: Iterable[str]) -> bool:
    return (
        name not in specs
        and not (name.startswith("__") and name.endswith("__"))
        and (value is not None or name not in METHODS)
    )


def _is_code(value: Any) -> bool:
    return isinstance(value, FunctionType | staticmethod | classmethod | property | type) or (
        hasattr(value, "__get__") and callable(value)
    )


def _check_reserved(body: Mapping[str, Any]) -> None:
    for name, reason in _RESERVED.items():
        if name in body:
            raise EngineDeclarationError(f"the class cannot define {name}: {reason}")


def _check_foreign_names(body: Mapping[str, Any]) -> None:
    for name, ours in FOREIGN_NAMES.items():
        if name in body and not ours:
            raise EngineDeclarationError(
                f"there is no {name} to write: it follows from the annotated attributes of the "
                "class, and the SDF methods read them from self"
            )
        if name in body and callable(body[name]):
            raise EngineDeclarationError(
                f"the method {name!r} is called {ours} here: {METHODS[ours].signature}"
            )


# -- methods -------------------------------------------------------------------------------------


def _methods(body: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    found = {}
    for name, method in METHODS.items():
        value = body.get(name)
        if value is None or (method.may_be_constant and _is_size(value)):
            continue
        found[name] = _checked(method, value)
    return found


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _checked(method: Method, value: Any) -> Callable[..., Any]:
    """``value`` as the plain function of ``method``."""
    or_constant = f", or a whole number: {method.name} = 1" if method.may_be_constant else ""
    if not isinstance(value, FunctionType):
        raise EngineDeclarationError(
            f"{method.name} must be a plain method, {method.signature}{or_constant}; it is "
            f"{type(value).__name__} {value!r}"
        )
    code = value.__code__
    if inspect.iscoroutinefunction(value) or inspect.isgeneratorfunction(value):
        raise EngineDeclarationError(
            f"{method.name} must be a plain method, {method.signature}: the engine waits for "
            f"neither coroutines nor generators (line {code.co_firstlineno})"
        )
    try:
        inspect.signature(value).bind(*("self", *method.arguments))
    except TypeError as error:
        raise EngineDeclarationError(
            f"{method.name}{inspect.signature(value)} on line {code.co_firstlineno} cannot be "
            f"called by the engine ({error}); write {method.signature}"
        ) from None
    return value


def _check_use(
    methods: Mapping[str, Any], constants: Mapping[str, Any], capabilities: tuple[str, ...]
) -> None:
    for method in METHODS.values():
        exists = method.name in methods or method.name in constants
        needed = [c for c in capabilities if c in method.required_by]
        if needed and not exists:
            or_constant = f", or {method.name} = 1" if method.may_be_constant else ""
            raise EngineDeclarationError(
                f"a plugin that is {needed[0]} must define {method.signature}{or_constant}"
            )
        if exists and not method.used_by.intersection(capabilities):
            raise EngineDeclarationError(
                f"{method.name} would never be called: it is for "
                f"{' and '.join(sorted(method.used_by))}, the capabilities are "
                f"{', '.join(capabilities)}"
            )
        if method.may_be_constant and constants.get(method.name, 0) < 0:
            raise EngineDeclarationError(
                f"{method.name} must be at least 0, got {constants[method.name]}"
            )


# -- constants -----------------------------------------------------------------------------------


def _check_constant(name: str, value: Any) -> None:
    problem = _changeable(value)
    if problem:
        raise EngineDeclarationError(
            f"the class attribute {name!r} is {problem}, shared by every data and every thread; "
            "constants are read-only (a tuple, a frozenset, an array with flags.writeable = "
            "False), what belongs to one data is made by init (self.memo), and what must survive "
            "a checkpoint belongs into plugin_state (state_size, self.state)"
        )


def _changeable(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return "a writable array" if value.flags.writeable else ""
    if isinstance(value, _MUTABLE):
        return f"a {type(value).__name__}"
    if isinstance(value, tuple):
        return next(filter(None, map(_changeable, value)), "")
    return ""
