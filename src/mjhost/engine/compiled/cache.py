"""Machine code on disk, so that a plugin is compiled once and not by every process.

Owns: a directory per environment under the user's cache directory, one file per compiled method.
Invariants: the environment (engine version and layout, versions of Python, Numba, llvmlite and
NumPy, mjhost's own source, the processor) is part of the directory's name, of every key and of
every file, and is compared before anything of a file is used: code with the offsets of another
engine is never run. A file is raw object code behind a line of JSON: nothing is unpickled. A
directory that somebody else could write is not used.
Threads: files are written beside and moved into place; two writers write the same.
Failure: none is visible: what cannot be read, or is not intact, is compiled again; what cannot be
written is not cached.

``MJHOST_CACHE=0`` in the environment turns it off.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Any, Final

import llvmlite
import llvmlite.binding as llvm
import numpy as np

import mjhost.engine
from mjhost import layout
from mjhost.engine.compiled import functions
from mjhost.engine.compiled.face import FLAGS, cpu_target, nb
from mjhost.engine.compiled.views import layout_digest
from mjhost.engine.views.signatures import table

SWITCH: Final = "MJHOST_CACHE"
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
    if os.environ.get(SWITCH) == "0":
        return None
    base = os.environ.get("XDG_CACHE_HOME") or ""
    try:
        root = Path(base) if Path(base).is_absolute() else Path.home() / ".cache"
    except RuntimeError:  # nobody's home
        return None
    digest = hashlib.sha256(environment().encode()).hexdigest()[:16]
    return root / "mjhost" / "compiled" / f"mujoco-{layout_digest()}" / digest


def _is_private(path: Path) -> bool:
    try:
        found = path.stat()
    except OSError:
        return False
    own = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    return own and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


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
    folder = directory()
    if folder is None or not _is_private(folder):
        return None
    try:
        head, _, code = (folder / key).read_bytes().partition(b"\n")
        said = json.loads(head)
    except (OSError, ValueError):
        return None
    wanted = {"magic": _MAGIC, "environment": environment(), "key": key}
    if not isinstance(said, dict) or any(said.get(name) != wanted[name] for name in wanted):
        return None
    if said.get("sha256") != hashlib.sha256(code).hexdigest():
        return None
    return code, [str(name) for name in said.get("calls", ())]


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
    head = {
        "magic": _MAGIC,
        "environment": environment(),
        "key": key,
        "sha256": hashlib.sha256(code).hexdigest(),
        "calls": sorted(called),
    }
    try:
        _make(folder)
        if _is_private(folder):
            _write(folder, key, json.dumps(head).encode() + b"\n" + code)
            _thin_out(folder, _MOST_FILES)
    except OSError:
        return


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


def _make(folder: Path) -> None:
    if not folder.is_dir():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _thin_out(folder.parent, _MOST_ENVIRONMENTS)


def _write(folder: Path, key: str, content: bytes) -> None:
    number, name = tempfile.mkstemp(dir=folder, prefix="new-")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
        Path(name).replace(folder / key)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def _thin_out(folder: Path, most: int) -> None:
    entries = sorted(folder.iterdir(), key=lambda entry: entry.stat().st_mtime)
    for entry in entries[:-most]:
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)
