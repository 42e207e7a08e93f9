"""The engine's memory: its library, and where the members of its structs lie.

Owns: struct layouts derived from ``mujoco.introspect``, and the few raw accesses that go around the
bindings because an attribute look-up there costs as much as a short step.
Invariants: a layout is compared with what the bindings report for the very object it is used on,
before the first byte is read or written through it.
Threads: layouts are immutable. A view or cell is as safe as the object it points into, and valid as
long as that object lives: the caller keeps it.
Failure: ``UnsupportedEngineError`` if description and bindings disagree; nothing was touched.
Not a goal: being a second binding.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import mujoco
import numpy as np
from mujoco.introspect import ast_nodes, enums, structs

from mjhost.errors import InvalidArgumentError, UnsupportedEngineError

_SCALARS: Final[dict[str, Any]] = {
    "char": ctypes.c_char,
    "double": ctypes.c_double,
    "float": ctypes.c_float,
    "int": ctypes.c_int,
    "mjtBool": ctypes.c_bool,
    "mjtByte": ctypes.c_ubyte,
    "mjtNum": ctypes.c_double,
    "mjtSize": ctypes.c_int64,
    "size_t": ctypes.c_size_t,
    "uint64_t": ctypes.c_uint64,
    "uintptr_t": ctypes.c_size_t,
    "unsigned char": ctypes.c_ubyte,
    "unsigned int": ctypes.c_uint,
}


@functools.cache
def library() -> ctypes.PyDLL:
    """The engine that the bindings loaded; calls keep the GIL.

    Contract: only for calls that are short and cannot end in an engine error, which outside the
    bindings ends the process.
    """
    folder = Path(mujoco.__file__).parent
    found = sorted(path for ending in ("so*", "*dylib", "dll") for path in _named(folder, ending))
    if len(found) != 1:
        raise UnsupportedEngineError(
            f"expected one MuJoCo library in {folder}, found {[p.name for p in found]}; "
            "reinstall mujoco from one wheel"
        )
    return ctypes.PyDLL(str(found[0]))


def _named(folder: Path, ending: str) -> Iterable[Path]:
    stem = "mujoco" if ending == "dll" else "libmujoco"
    return folder.glob(f"{stem}.{ending}")


# -- layouts -------------------------------------------------------------------------------------


@functools.cache
def structure(name: str) -> type[ctypes.Structure]:
    """The ctypes mirror of one engine struct, such as ``"mjData"``.

    Raises:
        UnsupportedEngineError: ``mujoco.introspect`` does not describe it.
    """
    if name not in structs.STRUCTS:
        raise UnsupportedEngineError(f"mujoco.introspect does not describe a struct {name!r}")
    members = [
        (getattr(field, "name", f"_anonymous_{index}"), _ctype(getattr(field, "type", field)))
        for index, field in enumerate(structs.STRUCTS[name].fields)
    ]
    return type(name, (ctypes.Structure,), {"_fields_": members})


def _ctype(node: Any) -> Any:
    if isinstance(node, ast_nodes.PointerType):
        return ctypes.c_void_p
    if isinstance(node, ast_nodes.ArrayType):
        extents: Iterable[int] = node.extents
        return functools.reduce(lambda t, n: t * int(n), reversed([*extents]), _inner(node))
    if isinstance(node, ast_nodes.AnonymousUnionDecl):
        return type("union", (ctypes.Union,), {"_fields_": _members(node)})
    if isinstance(node, ast_nodes.AnonymousStructDecl):
        return type("struct", (ctypes.Structure,), {"_fields_": _members(node)})
    return _named_ctype(node.name.removeprefix("struct "))


def _inner(node: Any) -> Any:
    return _ctype(node.inner_type)


def _members(node: Any) -> list[tuple[str, Any]]:
    return [(field.name, _ctype(field.type)) for field in node.fields]


def _named_ctype(name: str) -> Any:
    if name in _SCALARS:
        return _SCALARS[name]
    if name in enums.ENUMS:
        return ctypes.c_int
    for key, struct in structs.STRUCTS.items():
        if name in {key, struct.declname, struct.declname.removeprefix("struct ")}:
            return structure(key)
    raise UnsupportedEngineError(
        f"mujoco.introspect names a type that mjhost does not know: {name}"
    )


def size_of(struct: str) -> int:
    """Size of a struct, bytes."""
    return ctypes.sizeof(structure(struct))


def offset_of(struct: str, member: str) -> int:
    """Offset of a member from the start of its struct, bytes.

    Raises:
        UnsupportedEngineError: the installed engine has no such member.
    """
    return _member(struct, member)[0]


def _member(struct: str, member: str) -> tuple[int, int]:
    descriptor = getattr(structure(struct), member, None)
    if descriptor is None:
        raise UnsupportedEngineError(
            f"{struct} of MuJoCo {mujoco.__version__} has no member {member!r}"
        )
    return descriptor.offset, descriptor.size


@functools.cache
def constants() -> dict[str, int]:
    """Every numeric constant of the engine's headers by name, such as ``mjNREF``."""
    known = {
        name: int(value) for enum in enums.ENUMS.values() for name, value in enum.values.items()
    }
    public = {name: getattr(mujoco, name) for name in dir(mujoco) if name.startswith("mjN")}
    return known | {name: value for name, value in public.items() if isinstance(value, int)}


# -- live objects --------------------------------------------------------------------------------


def address_of(owner: Any, struct: str) -> int:
    """Address of the struct behind a binding object, proven to be it.

    Raises:
        UnsupportedEngineError: the layout is not the one that the bindings use.
    """
    name, array = _probe(owner, struct)
    offset, size = _member(struct, name)
    address = getattr(owner, "_address", None)
    if address is None:
        address = array.ctypes.data - offset
    inline = size == array.nbytes and array.ctypes.data == address + offset
    pointed = ctypes.c_size_t.from_address(address + offset).value == array.ctypes.data
    if not inline and not pointed:
        raise UnsupportedEngineError(
            f"the layout of {struct} in MuJoCo {mujoco.__version__} is not the one that "
            f"mujoco.introspect describes, {name} is not at offset {offset}; reinstall mujoco "
            "from one wheel"
        )
    return int(address)


# A member per struct that the bindings hand out as an array that is never empty. For mjData and
# mjModel it is a late one: everything before it has to be right for it to be.
_PROBES: Final = {"mjOption": "gravity", "mjData": "energy", "mjModel": "body_parentid"}


def _probe(owner: Any, struct: str) -> tuple[str, np.ndarray[Any, Any]]:
    name = _PROBES.get(struct)
    if name is None:
        raise InvalidArgumentError(f"no live object is known for {struct}, only {[*_PROBES]}")
    return name, getattr(owner, name)


def double_cell(owner: Any, struct: str, member: str) -> ctypes.c_double:
    """A ``c_double`` over one member; reading ``.value`` costs a fraction of the attribute."""
    cell = ctypes.c_double.from_address(address_of(owner, struct) + offset_of(struct, member))
    value = getattr(owner, member)
    if cell.value != value and value == value:  # noqa: PLR0124 - NaN reads right, if as NaN
        raise UnsupportedEngineError(
            f"{struct}.{member} reads {cell.value!r} in memory and {value!r} through the bindings"
        )
    return cell


def int_cell(owner: Any, struct: str, member: str) -> ctypes.c_int:
    """A cell over an ``int`` member."""
    return ctypes.c_int.from_address(address_of(owner, struct) + offset_of(struct, member))


def size_cell(owner: Any, struct: str, member: str) -> ctypes.c_size_t:
    """A cell over a member of the width of a pointer."""
    return ctypes.c_size_t.from_address(address_of(owner, struct) + offset_of(struct, member))


def inline_view(owner: Any, struct: str, member: str) -> memoryview:
    """The bytes of an inline member, writable."""
    offset, size = _member(struct, member)
    return bytes_at(address_of(owner, struct) + offset, size)


def bytes_at(address: int, size: int) -> memoryview:
    """Writable bytes of foreign memory. Nothing keeps that memory alive but the caller."""
    return memoryview((ctypes.c_char * size).from_address(address)).cast("B")


def copy_model_into(target: mujoco.MjModel, source: mujoco.MjModel) -> None:
    """Copies every field of ``source`` into ``target``, whose arrays stay where they are.

    Raises:
        InvalidArgumentError: the models are not of the same sizes; nothing was copied.
    """
    # mj_copyModel answers a mismatch with an engine error, which here would end the process.
    if _sizes(target) != _sizes(source):
        raise InvalidArgumentError(
            "a model can be copied only over one of the same sizes, got "
            f"{_differing(target, source)}"
        )
    copy = library().mj_copyModel
    copy.argtypes, copy.restype = (ctypes.c_void_p, ctypes.c_void_p), ctypes.c_void_p
    copy(address_of(target, "mjModel"), address_of(source, "mjModel"))


@functools.cache
def model_sizes() -> tuple[str, ...]:
    """Names of the size members of ``mjModel``, in the order of the struct."""
    return tuple(
        field.name
        for field in structs.STRUCTS["mjModel"].fields
        if getattr(field.type, "name", None) == "mjtSize"
    )


def _sizes(model: mujoco.MjModel) -> dict[str, int]:
    mirror: Any = structure("mjModel").from_address(address_of(model, "mjModel"))
    return {name: getattr(mirror, name) for name in model_sizes()}


def _differing(target: mujoco.MjModel, source: mujoco.MjModel) -> str:
    ours, theirs = _sizes(target), _sizes(source)
    return ", ".join(
        f"{name} {ours[name]} and {theirs[name]}" for name in ours if ours[name] != theirs[name]
    )
