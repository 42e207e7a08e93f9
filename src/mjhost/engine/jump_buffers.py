"""Where the binding of MuJoCo before 4.0 remembers who waits for an engine error.

A function of the ``mujoco`` package notes in a buffer of its thread where to go on after an error.
Before 4.0 there is one buffer per module, and a call from inside a callback overwrites it: the next
error jumps into a frame that is gone, and the process dies. The frames of ``frames`` save the
buffers before a method runs and put them back after it, so that methods may call what they like.

Owns: where the buffers are, which is found out by trying, and the code that saves them.
Invariants: a buffer was found only if it is where experiments with two functions at two depths of
the stack agree, and leads into the code of its module. Who else called the binding in between, a
foreign callback, is noticed by the frame it leads to, which is then not an outer one.
Threads: buffers are of the calling thread.
Failure: where they are not found (another platform), nothing is aborted: failures are recorded.
Not a goal: 4.0, which keeps the buffers on the stack.
"""

from __future__ import annotations

import copy
import ctypes
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import mujoco
import numpy as np

from mjhost.callbacks import router
from mjhost.callbacks.native import immortal

_WORDS: Final = 9  # eight registers, and whether a signal mask was kept
_STACK, _CODE = 6, 7  # which of them are the stack pointer and the place in the code
_MASK64: Final = (1 << 64) - 1
_ROTATION: Final = 0x11
_AT_RANDOM: Final = 25
_PT_LOAD, _PT_TLS = 1, 7
_EXECUTABLE: Final = 1


class Module(NamedTuple):
    """One module of the binding, as loaded.

    Attributes:
        name: ``_functions``, ``_structs``.
        tls_module: the loader's number of its thread-local memory.
        tls_size: bytes of that memory.
        code: range of its machine code.
    """

    name: str
    tls_module: int
    tls_size: int
    code: range


class Buffer(NamedTuple):
    """One buffer.

    Attributes:
        module: whose it is.
        index: what the loader's ``__tls_get_addr`` takes, kept for ever.
    """

    module: Module
    index: Any


def is_needed() -> bool:
    """Whether frames save the buffers."""
    return mujoco.mj_version() < 4_000_000 and bool(buffers())


def intact(handler_module: str, saved: int) -> bool:
    """Whether an engine error would reach who waits for it.

    Args:
        handler_module: name of the binding's module that waits.
        saved: where the frame of the call has saved the buffers.
    """
    if mujoco.mj_version() >= 4_000_000:
        return True
    if not saved or not buffers():
        return False
    for place, buffer in enumerate(buffers()):
        if handler_module.split(".", maxsplit=1)[0] == buffer.module.name:
            words = (ctypes.c_uint64 * _WORDS).from_address(saved + 8 * _WORDS * place)
            return _leads_out(buffer, words, saved)
    return True  # a module that nothing inside of a step calls


def _leads_out(buffer: Buffer, words: Any, here: int) -> bool:
    """Whether a buffer leads to a frame further out, which is inside a call of its module."""
    stack = _demangled(words[_STACK])
    if stack <= here:
        return False
    return ctypes.c_uint64.from_address(stack - 8).value in buffer.module.code


# -- code ----------------------------------------------------------------------------------------


def place() -> str:
    """The type of what a frame saves, for its stack."""
    return f"[{_WORDS * len(buffers())} x i64]"


def save() -> str:
    """Code that saves the buffers at ``%saved``."""
    return _moving("%saved{0}", "%buffer{0}", "keep")


def restore() -> str:
    """Code that puts the buffers back."""
    return _moving("%buffer{0}", "%saved{0}", "back")


def _moving(target: str, source: str, name: str) -> str:
    lines = []
    for number, buffer in enumerate(buffers()):
        if name == "keep":
            lines += [
                f"%finder{number} = inttoptr i64 {_finder_address()} to ptr",
                f"%index{number} = inttoptr i64 {ctypes.addressof(buffer.index)} to ptr",
                f"%buffer{number} = call ptr %finder{number}(ptr %index{number})",
                f"%saved{number} = getelementptr i64, ptr %saved, i64 {_WORDS * number}",
            ]
        lines += [
            f"%{name}{number} = load [{_WORDS} x i64], ptr {source.format(number)}",
            f"store [{_WORDS} x i64] %{name}{number}, ptr {target.format(number)}",
        ]
    return "\n  ".join(lines)


def _finder_address() -> int:
    return ctypes.cast(_finder(), ctypes.c_void_p).value or 0


@cache
def _finder() -> Any:
    found = ctypes.CDLL(None)["__tls_get_addr"]
    found.restype, found.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
    return found


# -- finding -------------------------------------------------------------------------------------


@cache
def buffers() -> tuple[Buffer, ...]:
    """The buffers of the binding's modules; empty if not all of them were found."""
    try:
        modules = _modules()
        found = [_find(modules[name], *trials) for name, trials in _trials().items()]
    except (AttributeError, KeyError, OSError, ValueError):
        return ()
    return tuple(found)


def _trials() -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """Two functions of each module."""
    vector = np.ones(4)
    with router.compile_guard():
        model = mujoco.MjModel.from_xml_string("<mujoco/>")
    data = mujoco.MjData(model)
    return {
        "_functions": (
            lambda: mujoco.mju_normalize3(vector[:3]),
            lambda: mujoco.mju_normalize4(vector),
        ),
        "_structs": (lambda: mujoco.MjData(model), lambda: copy.copy(data)),
    }


def _find(module: Module, one: Callable[[], Any], other: Callable[[], Any]) -> Buffer:
    """Finds a buffer by what changes with the depth of the stack, and with the function."""
    start = _Index(module.tls_module, 0)
    shallow = _after(one, start, module)
    deep = _after(lambda: [*map(lambda _: one(), (0,))], start, module)  # noqa: C417 - a C frame more
    elsewhere = _after(other, start, module)
    moved, changed = shallow != deep, shallow != elsewhere
    for word in range(len(shallow) - _WORDS):
        outside = np.delete(moved, slice(word, word + _WORDS - 1))
        right = moved[word + _STACK] and changed[word + _CODE] and not moved[word + _CODE]
        codes = (_demangled(int(found[word + _CODE])) for found in (shallow, deep, elsewhere))
        if right and not outside.any() and all(code in module.code for code in codes):
            return Buffer(module, immortal(_Index(module.tls_module, 8 * word)))
    raise ValueError(f"{module.name} keeps no buffer where it can be found")


def _after(call: Callable[[], Any], index: Any, module: Module) -> Any:
    """The thread-local memory of a module after a call."""
    call()
    address = _finder()(ctypes.byref(index))
    return np.frombuffer(ctypes.string_at(address, module.tls_size // 8 * 8), np.uint64)


class _Index(ctypes.Structure):
    _fields_ = (("module", ctypes.c_uint64), ("offset", ctypes.c_uint64))


class _Segment(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("offset", ctypes.c_uint64),
        ("start", ctypes.c_uint64),
        ("physical", ctypes.c_uint64),
        ("file_size", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("align", ctypes.c_uint64),
    )


class _Object(ctypes.Structure):
    _fields_ = (
        ("base", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("segments", ctypes.POINTER(_Segment)),
        ("count", ctypes.c_uint16),
        ("adds", ctypes.c_uint64),
        ("subs", ctypes.c_uint64),
        ("tls_module", ctypes.c_size_t),
        ("tls_data", ctypes.c_void_p),
    )


def _modules() -> dict[str, Module]:
    """The loaded modules of the binding by name."""
    found: dict[str, Module] = {}
    folder = Path(mujoco.__file__).parent

    def look(info: Any, _size: int, _data: int | None) -> int:
        path = Path((info[0].name or b"").decode())
        if folder in path.parents:
            module = _module(path.name.split(".")[0], info[0])
            found[module.name] = module
        return 0

    prototype = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.POINTER(_Object), ctypes.c_size_t, ctypes.c_void_p
    )
    ctypes.CDLL(None).dl_iterate_phdr(prototype(look), None)
    return found


def _module(name: str, loaded: Any) -> Module:
    segments = [loaded.segments[index] for index in range(loaded.count)]
    sizes = [segment.size for segment in segments if segment.type == _PT_TLS]
    (code,) = (s for s in segments if s.type == _PT_LOAD and s.flags & _EXECUTABLE)
    start = loaded.base + code.start
    return Module(name, loaded.tls_module, sum(sizes), range(start, start + code.size))


def _demangled(word: int) -> int:
    """A pointer as it was before the C library hid it."""
    turned = (word >> _ROTATION | word << (64 - _ROTATION)) & _MASK64
    return turned ^ _guard()


@cache
def _guard() -> int:
    """What the C library hides pointers with: the second word of the kernel's random bytes."""
    for kind, value in struct.iter_unpack("QQ", Path("/proc/self/auxv").read_bytes()):
        if kind == _AT_RANDOM:
            return ctypes.c_uint64.from_address(value + 8).value
    raise OSError("the kernel gave no random bytes")
