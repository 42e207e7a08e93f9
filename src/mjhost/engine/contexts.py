"""Who called the engine on this thread, which decides how an error can leave it.

Owns: the reading of the thread's log handler, which is where the caller waits for engine errors,
and the pin that keeps the Python state of the engine's own threads.
Invariants: nothing is guessed: a handler of unknown origin counts as none, since an engine error
that nobody waits for ends the process.
Threads: about the calling thread.
"""

from __future__ import annotations

import ctypes
import enum
import threading
from functools import cache
from pathlib import Path
from typing import Final

import mujoco

from mjhost.engine.abi.symbols import engine

_BINDING: Final = Path(mujoco.__file__).parent


class Context(enum.Enum):
    """Who waits for an engine error of this thread."""

    BINDING = "a function of the mujoco package: it raises what is set as Python's error"
    ENGINE = "the engine itself, compiling or running a batch: it makes its own error of a text"
    NOBODY = "nobody: an engine error would end the process"


class _SymbolInfo(ctypes.Structure):
    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def current() -> Context:
    """The context of the engine call that this thread is in."""
    return current_with_module()[0]


def current_with_module() -> tuple[Context, str]:
    """The same, and the file name of whose handler it is."""
    exchange = engine().set_thread_log_handler
    handler = exchange(0)
    exchange(handler)
    return _context_of(handler)


@cache
def _context_of(handler: int) -> tuple[Context, str]:
    info = _SymbolInfo()
    look_up = ctypes.CDLL(None).dladdr
    if not handler or not look_up(ctypes.c_void_p(handler), ctypes.byref(info)):
        return Context.NOBODY, ""
    file = Path((info.file or b"").decode())
    if file.name.startswith("libmujoco"):
        return Context.ENGINE, file.name
    is_binding = _BINDING in file.parents and file.name.startswith("_")
    return (Context.BINDING if is_binding else Context.NOBODY), file.name


# -- pinning -------------------------------------------------------------------------------------


class _Pin(threading.local):
    """Reading ``pinned`` pins the calling thread, if it is not yet.

    A thread that Python did not start has no Python state: every entry would make one and throw it
    away, which costs ten times the entry. The pin keeps it, beyond the end of the thread: who pulls
    it then would have to wait for the GIL, and pools join their threads while they hold it.
    """

    pinned = True

    def __init__(self) -> None:
        ctypes.pythonapi.PyGILState_Ensure()


here: Final = _Pin()
