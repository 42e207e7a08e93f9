"""Machine code in front of callbacks, so that one that raises ends the engine call it is in.

Owns: per callback kind a frame like those of engine plugins (see ``frames``), which tries compiled
code if there is some, else enters Python, and raises the engine's error when Python has left one.
Invariants: as of ``frames``. The engine reaches a frame directly or by a jump of the router's; who
calls one through ctypes must not let it raise, which no one here does.
Threads: any.
Failure: ``build`` raises ``ImportError`` without llvmlite; afterwards nothing can fail.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

from mjhost.callbacks import CallbackKind, Result
from mjhost.callbacks.foreign import describe
from mjhost.callbacks.native import immortal
from mjhost.engine import failures, frames, jump_buffers
from mjhost.engine.abi.structs import Address, address_of
from mjhost.errors import EnginePluginError

available: Final = frames.available

_TYPES: Final = {Result.NOTHING: "void", Result.NUMBER: "double", Result.DROP: "i32"}
_DONE: Final = {
    Result.NOTHING: "ret void",
    Result.NUMBER: "%value = load double, ptr %result\n  ret double %value",
    Result.DROP: "%value = load double, ptr %result\n  %drop = fptosi double %value to i32\n"
    "  ret i32 %drop",
}

Thunk = Callable[..., None]
"""Takes what the engine gives, then the places of the result and of the error, then the status of
compiled code: 1 if that raised."""


def build(kind: CallbackKind, thunk: Thunk, compiled: int = 0) -> int:
    """Compiles one frame; its address, for ever.

    Args:
        kind: what it is called as.
        thunk: what it enters; raises nothing.
        compiled: address of compiled code that is tried first, or 0.

    Raises:
        ImportError: llvmlite is not installed.
    """
    closure = immortal(_prototype(kind)(thunk))
    cell = immortal(ctypes.c_uint64(compiled)) if compiled else None
    name = f"callback_{kind.name}"
    source = _source(kind, name, address_of(closure), ctypes.addressof(cell) if cell else 0)
    return frames._compile(f"{frames._common()}\n{source}", (name,))[name]


def _prototype(kind: CallbackKind) -> Any:
    arguments = [Address for _ in kind.arguments[:2]]
    numbers = [ctypes.c_int for _ in kind.arguments[2:]]
    return ctypes.CFUNCTYPE(None, *arguments, *numbers, Address, Address, ctypes.c_int)


def _source(kind: CallbackKind, name: str, thunk: int, cell: int) -> str:
    types = ["i64" for _ in kind.arguments[:2]] + ["i32" for _ in kind.arguments[2:]]
    given = [f"{of} %a{index}" for index, of in enumerate(types)]
    guarded = jump_buffers.is_needed()
    return frames._FRAME.format(
        type=_TYPES[kind.result],
        slot=name,
        parameters=", ".join(given),
        far=repr(float(kind.neutral or 0.0)),
        compiled=_try(given, cell) if cell else "br label %python",
        statuses="[ 0, %entry ]" + (", [ 0, %look ], [ %tried, %run ]" if cell else ""),
        counter=ctypes.addressof(frames._counter),
        thunk=thunk,
        call=f"call void %thunk({', '.join([*given, 'ptr %result', 'ptr %out', 'i32 %status'])})",
        done=_DONE[kind.result],
        failed="br label %done",
        saved=jump_buffers.place() if guarded else "[0 x i64]",
        save=jump_buffers.save() if guarded else "",
        restore=jump_buffers.restore() if guarded else "",
    )


def _try(given: list[str], cell: int) -> str:
    """Compiled code first, unless something is pending for these data."""
    look = (
        frames._LOOK.format(data=1, mark_offset=failures._MARK_OFFSET, mark=failures.MARK)
        if given
        else "%quiet = icmp eq i32 0, 0\n  br i1 %quiet, label %run, label %python"
    )
    return frames._TRY.format(cell=cell, look=look, arguments=", ".join([*given, "ptr %result"]))


# -- failures ------------------------------------------------------------------------------------


def failure(kind: CallbackKind, function: Any, error: BaseException) -> EnginePluginError:
    """``error``, raised by a callback, as what is raised of it."""
    if isinstance(error, EnginePluginError):
        return error
    name = describe(function)
    text, kind_of = failures.text_of(error), type(error).__name__
    text = f"{kind_of}: {text}" if text else kind_of
    made = EnginePluginError(
        f"{kind.name} callback {name}: {text}", plugin=name, instance=None, method=kind.name
    )
    made.__cause__ = error
    return made
