"""Machine code on disk, so that a plugin is compiled once and not by every process.

Owns: a directory per environment under the user's cache directory, one file per compiled method.
Invariants: the environment (engine version and layout, versions of Python, Numba, llvmlite and
NumPy, mjhost's own source, the processor) is part of the directory's name, of every key and of
every file, and is compared before anything of a file is used: code with the offsets of another
engine is never run. The content of a file is raw object code; `mjhost.diskcache` sees to the rest.
Failure: none is visible: what cannot be read, or is not intact, is compiled again; what cannot be
written is not cached.
"""

from __future__ import annotations

import functools
import hashlib
import platform
from pathlib import Path
from typing import Any, Final

import llvmlite
import llvmlite.binding as llvm
import numpy as np

import mjhost.engine
from mjhost import diskcache, layout
from mjhost.engine.compiled import functions
from mjhost.engine.compiled.face import FLAGS, cpu_target, nb
from mjhost.engine.compiled.views import layout_digest
from mjhost.engine.views.signatures import table

_MAGIC: Final = "mjhost machine code 1"
_MOST_FILES: Final = 512  # per environment; the oldest go
_MOST_ENVIRONMENTS: Final = 4  # per engine

_engines: Final[list[Any]] = []  # code of theirs may run as long as the process


@functools.cache
def environment() -> str:
    """Everything that machine code depends on beside the source of the method."""
    parts = [
        layout_digest(),
        platform.python_version(),
        nb.__version__,
        llvmlite.__version__,
        np.__version__,
        repr(cpu_target.target_context.codegen().magic_tuple()),
        repr(sorted(FLAGS.items())),
        repr(nb.config.OPT),
        _own_source(),
    ]
    return "; ".join(parts)


def _own_source() -> str:
    """A hash of the modules that decide what code is made."""
    found = hashlib.sha256(Path(layout.__file__).read_bytes())
    root = Path(mjhost.engine.__file__).parent
    for folder in ("abi", "compiled", "views"):
        for file in sorted((root / folder).glob("*.py")):
            found.update(file.name.encode() + file.read_bytes())
    return found.hexdigest()[:16]


def key_of(fingerprint: str, method: str) -> str:
    """The name of the code of one method."""
    text = f"{environment()}\n{method}\n{fingerprint}"
    return hashlib.sha256(text.encode()).hexdigest()


def symbol_of(key: str) -> str:
    """What the code of a key is called in its file."""
    return f"mjhost_{key[:32]}"


# -- where ---------------------------------------------------------------------------------------


def directory() -> Path | None:
    """Where files of this environment are; ``None`` if there is no place of the user's own."""
    root = diskcache.user_folder()
    if root is None:
        return None
    digest = hashlib.sha256(environment().encode()).hexdigest()[:16]
    return root / "compiled" / f"mujoco-{layout_digest()}" / digest


# -- reading -------------------------------------------------------------------------------------


def load(key: str) -> int:
    """The address of a method that was compiled before; 0 if there is none.

    Args:
        key: from ``key_of``.
    """
    found = _read(key)
    if found is None:
        return 0
    code, called = found
    if not all(map(_is_linked, called)):
        return 0
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    address: int = engine.get_function_address(symbol_of(key))
    return address


def _read(key: str) -> tuple[bytes, list[str]] | None:
    """The code of a key and what it calls, if the file is whole and of this environment."""
    found = diskcache.read(directory(), key, _head())
    if found is None:
        return None
    head, code = found
    return code, [str(name) for name in head.get("calls", ())]


def _head() -> dict[str, Any]:
    return {"magic": _MAGIC, "environment": environment()}


def _is_linked(name: str) -> bool:
    """Whether the linker knows a name; it ends the process over one that it does not know."""
    _prepare_runtime()
    if name in table():
        functions.link(name)
    return bool(llvm.address_of_symbol(name))


@functools.cache
def _prepare_runtime() -> None:
    """Makes Numba's memory and helper functions known, as its first compilation does."""
    nb.core.runtime.rtsys.initialize(cpu_target.target_context)


@functools.cache
def _target_machine() -> Any:
    return cpu_target.target_context.codegen()._tm


# -- writing -------------------------------------------------------------------------------------


def store(key: str, library: Any, symbol: str) -> None:
    """Keeps the code of a method.

    Args:
        key: from ``key_of``.
        library: Numba's, with everything linked.
        symbol: the function in it that is the method.
    """
    folder = directory()
    if folder is None or library.has_dynamic_globals:
        return
    code, called = _object_code(library, symbol, symbol_of(key))
    is_new = not folder.is_dir()
    if diskcache.write(folder, key, {**_head(), "calls": sorted(called)}, code):
        diskcache.thin_out(folder, most=_MOST_FILES)
    if is_new:
        diskcache.thin_out(folder.parent, most=_MOST_ENVIRONMENTS)


def _object_code(library: Any, symbol: str, shown_as: str) -> tuple[bytes, list[str]]:
    """An object file that defines one function and shows nothing else; what it calls.

    Names of Numba are unique in one process only; the linker would mix up two that are the same.
    """
    module = llvm.parse_bitcode(library._final_module.as_bitcode())
    things = (*module.functions, *module.global_variables)
    called = [thing.name for thing in things if thing.is_declaration]
    for thing in things:
        if not thing.is_declaration and thing.name != symbol:
            thing.linkage = "internal"
    module.get_function(symbol).name = shown_as
    code: bytes = _target_machine().emit_object(module)
    return code, [name for name in called if not name.startswith("llvm.")]
