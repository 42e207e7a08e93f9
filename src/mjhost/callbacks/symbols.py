"""The engine's exported callback pointers, and whose code an address is.

Owns: the one handle on the loaded engine library.
Invariants: only the exported pointers are written, never the binding's setters: the Python object
that ``mujoco.get_mjcb_*`` reports stays what it was. A write is one aligned store, and the engine
loads a pointer once per use (read from the machine code of both supported versions): a thread in
the middle of a step calls the old function or the new one, never null.
Threads: reads and writes are single loads and stores; order between them is the router's business.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import mujoco

from mjhost.callbacks.kinds import CallbackKind
from mjhost.errors import UnsupportedEngineError


class _SymbolInfo(ctypes.Structure):
    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


@cache
def engine_library() -> ctypes.CDLL:
    """The library that the binding has loaded, not a second copy of it."""
    folder = Path(mujoco.__file__).parent
    found = sorted([*folder.glob("libmujoco.so*"), *folder.glob("libmujoco*.dylib")])
    if not found:
        raise UnsupportedEngineError(
            f"no engine library next to {mujoco.__file__}; callbacks need that of a mujoco wheel"
        )
    return ctypes.CDLL(str(found[0]))


def exported_pointer(kind: CallbackKind) -> ctypes.c_void_p:
    """The engine's pointer of ``kind``, as a cell that reads and writes it."""
    return ctypes.c_void_p.in_dll(engine_library(), kind.symbol)


def python_object(kind: CallbackKind) -> Any:
    """What the binding's getter reports; it may be stale after ``mj_resetCallbacks``."""
    return getattr(mujoco, f"get_{kind.symbol}")()


def address_of(pointer: Any) -> int:
    """Where a ctypes function pointer points to."""
    return ctypes.cast(pointer, ctypes.c_void_p).value or 0


def _look_up(address: int) -> _SymbolInfo | None:
    info = _SymbolInfo()
    found = ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), ctypes.byref(info))
    return info if found else None


def is_binding_code(address: int) -> bool:
    """Whether ``address`` lies in the Python binding's own callback module."""
    info = _look_up(address)
    return info is not None and Path((info.file or b"").decode()).name.startswith("_callbacks.")


def code_at(address: int) -> str:
    """Which library and function ``address`` belongs to, as far as the loader knows."""
    info = _look_up(address)
    if info is None or not info.file:
        return f"code at {address:#x}"
    name = Path(info.file.decode()).name
    return f"{info.symbol.decode()} of {name}" if info.symbol else f"code of {name}"
