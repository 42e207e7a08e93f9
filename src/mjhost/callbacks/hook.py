"""What may be hooked: a Python callable or a compiled function pointer, checked before it is used.

Failure: ``CallbackSignatureError`` that names the expected signature; nothing was installed.
"""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mjhost.callbacks.foreign import FunctionPointer, as_python, describe
from mjhost.callbacks.kinds import CallbackKind
from mjhost.callbacks.symbols import address_of
from mjhost.errors import CallbackSignatureError


@dataclass(frozen=True, slots=True)
class Hook:
    """A checked hook.

    Attributes:
        given: what the user gave, kept alive.
        call: takes the kind's Python arguments.
        pointer: address of compiled code, or 0.
    """

    given: Any
    call: Callable[..., Any]
    pointer: int = 0

    def __str__(self) -> str:
        return describe(self.given)


class GuardedHook:
    """A hook for a pair, in two forms: one for steps of the host, one for every other call.

    The first may rely on what the host holds during a step; the engine can call at other times too,
    when a user runs a forward of his own. Called as an object it is the second, which is always
    right.

    Attributes:
        inside: takes the kind's arguments; called only between the host's marks of a step.
        outside: takes the kind's arguments; called at any time.
    """

    __slots__ = ("__wrapped__", "inside", "outside")

    def __init__(self, inside: Callable[..., Any], outside: Callable[..., Any]) -> None:
        self.inside = inside
        self.outside = outside
        self.__wrapped__ = inside  # what messages name

    def __call__(self, *arguments: Any) -> Any:
        """Calls the form that is always right."""
        return self.outside(*arguments)


def both_forms(fn: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """What to call inside a step of the host, and what otherwise."""
    return (fn.inside, fn.outside) if isinstance(fn, GuardedHook) else (fn, fn)


def hook_of(kind: CallbackKind, fn: Any) -> Hook:
    """Checks ``fn`` and makes it callable with the arguments of ``kind``.

    Args:
        kind: the kind it is for.
        fn: a Python callable, a ctypes function pointer, or something compiled that has one as its
            ``ctypes`` attribute (a Numba ``cfunc``); or what knows its hook itself, by a method
            ``hook_for(kind)``.
    """
    own = getattr(fn, "hook_for", None)
    if own is not None:
        made: Hook = own(kind)
        return made
    pointer = fn if isinstance(fn, FunctionPointer) else getattr(fn, "ctypes", None)
    if isinstance(pointer, FunctionPointer):
        _check_prototype(kind, pointer)
        address = address_of(pointer)
        return Hook(fn, as_python(kind, address), address)
    _check_callable(kind, fn)
    return Hook(fn, fn)


def _check_callable(kind: CallbackKind, fn: Any) -> None:
    if not callable(fn):
        raise _refused(kind, f"got {fn!r} ({type(fn).__name__}), which cannot be called")
    if inspect.iscoroutinefunction(fn) or inspect.isgeneratorfunction(fn):
        raise _refused(kind, "a coroutine or generator would never run")
    try:
        signature = inspect.signature(fn)
    except ValueError:
        return  # a builtin without a signature
    try:
        signature.bind(*kind.arguments)
    except TypeError as error:
        raise _refused(kind, f"{describe(fn)} takes {signature}: {error}") from None


def _check_prototype(kind: CallbackKind, pointer: Any) -> None:
    if not address_of(pointer):
        raise _refused(kind, "the function pointer is null")
    given = pointer.argtypes
    if given is None:
        return  # an undeclared symbol of a library: its author knows
    expected = kind.prototype._argtypes_
    if [ctypes.sizeof(part) for part in given] != [ctypes.sizeof(part) for part in expected]:
        raise _refused(kind, f"its C arguments are {_names(given)}, not {_names(expected)}")
    if pointer.restype is not kind.prototype._restype_ and kind.prototype._restype_ is not None:
        returned = _names([pointer.restype, kind.prototype._restype_])
        raise _refused(kind, "its C result is {}, not {}".format(*returned))


def _names(types: Any) -> list[str]:
    return [getattr(part, "__name__", "void") for part in types]


def _refused(kind: CallbackKind, problem: str) -> CallbackSignatureError:
    return CallbackSignatureError(
        f"a {kind.name} callback must be a function {kind.signature}, or a compiled pointer "
        f"of that shape; {problem}"
    )
