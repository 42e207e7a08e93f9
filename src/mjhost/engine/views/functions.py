"""The engine's functions as Python functions, which refuse whatever the engine would end on.

Owns: one function object per name for the life of the process, so that compiled code can be given
for the very object that Python calls. They are asked for as members of ``mj``.
Invariants: C names, C signatures, sizes included. A function holds the GIL, allocates nothing that
lasts, and is not one that steps, resets or frees.
Threads: as the structs they are called on.
Failure: ``TypeError``, ``InvalidArgumentError``, before the engine is called. What the engine finds
out itself, such as a full stack, still ends the process, as it does under ``mujoco`` for a part of
these functions.
Not a goal: convenience; ``mujoco`` has it. Inside an extension on MuJoCo 3 a function of ``mujoco``
must not be called: an error of the step would abort the process.
"""

from __future__ import annotations

import ctypes
import inspect
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

import mujoco

from mjhost import layout
from mjhost.engine.views import mj
from mjhost.engine.views.checks import SPECIAL, Check, Converter, checks, converter
from mjhost.engine.views.described import REFUSED
from mjhost.engine.views.signatures import FunctionSpec, Parameter, table
from mjhost.errors import did_you_mean

__all__ = ["SPECIAL", "FunctionSpec", "Parameter", "function", "mj", "spec_of", "table"]

Function = Callable[..., Any]

_making: Final = threading.Lock()
_made: Final[dict[str, Function]] = {}
_specs: Final[dict[Function, FunctionSpec]] = {}


def function(name: str) -> Function:
    """The function of that name, the same object each time.

    Raises:
        AttributeError: there is none, or it must not be called from inside an extension; the
            message says why, or what exists.
    """
    with _making:
        if name not in _made:
            spec = table().get(name)
            if spec is None:
                raise AttributeError(_missing(name, table()), name=name, obj=mj)
            made = _made[name] = _function(spec)
            _specs[made] = spec
        return _made[name]


def spec_of(made: Function) -> FunctionSpec | None:
    """The record of one of these functions; ``None`` for any other object."""
    return _specs.get(made)


def _missing(name: str, known: Mapping[str, FunctionSpec]) -> str:
    if not hasattr(layout.library(), name) or not name.startswith(("mj_", "mju_")):
        return f"mj has no function {name!r}; {did_you_mean(name, known)}"
    for reason, beginnings in REFUSED.items():
        if name.startswith(tuple(beginnings.split())):
            return f"{name} is not available inside an engine extension because {reason}"
    return (
        f"{name} of MuJoCo {mujoco.__version__} is not available inside an engine extension "
        "because mjhost does not know what its arguments need"
    )


def _function(spec: FunctionSpec) -> Function:
    call = _caller(
        spec,
        [converter(spec.name, parameter) for parameter in spec.parameters],
        checks(spec),
        _symbol(spec),
    )
    call.__name__ = call.__qualname__ = spec.name
    call.__module__ = mj.__name__
    call.__doc__ = f"{spec.doc}\n\n    {spec.declaration}"
    kind = inspect.Parameter.POSITIONAL_ONLY
    vars(call)["__signature__"] = inspect.Signature(
        [inspect.Parameter(parameter.name, kind) for parameter in spec.parameters]
    )
    return call


def _symbol(spec: FunctionSpec) -> Function:
    """The C function, with a prototype of its own: others set theirs on the library's."""
    prototype = ctypes.PYFUNCTYPE(spec.result, *map(_passed_as, spec.parameters))
    return prototype((spec.name, layout.library()))


def _passed_as(parameter: Parameter) -> Any:
    return parameter.ctype if parameter.kind in {"scalar", "text"} else ctypes.c_void_p


def _caller(
    spec: FunctionSpec, converters: list[Converter], between: list[Check], symbol: Function
) -> Function:
    count = len(converters)
    text = spec.result is ctypes.c_char_p

    def call(*arguments: Any) -> Any:
        if len(arguments) != count:
            raise TypeError(f"{spec.declaration} takes {count} arguments, got {len(arguments)}")
        values = [convert(value) for convert, value in zip(converters, arguments, strict=True)]
        for check in between:
            check(arguments)
        found = symbol(*values)
        return found.decode() if text and found is not None else found

    return call
