"""Members of the engine's structs: where each lies, of what type it is, and how long.

Owns: the tables that views and compiled code are generated from. Offsets come from
``mjhost.layout``, lengths from ``mujoco.introspect``: nothing here belongs to one version.
Invariants: a name is the one that MuJoCo's Python shows (``vis.global_``). Every member of a struct
is in its table; one that cannot be shown as a value or an array is ``"opaque"``.
Threads: tables are immutable.
Failure: ``UnsupportedEngineError`` for a struct or a length that is not described.
"""

from __future__ import annotations

import ctypes
import functools
import keyword
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal

import mujoco
from mujoco.introspect import ast_nodes, structs

from mjhost import layout
from mjhost.errors import UnsupportedEngineError

Kind = Literal["scalar", "array", "pointer", "struct", "opaque"]


@dataclass(frozen=True, slots=True)
class Extent:
    """Length of one dimension: ``factor``, times the value of the size member if there is one.

    Attributes:
        factor: a positive number.
        size: name of the member that holds the size, such as ``"nv"``; ``None`` if it is constant.
        owner: the struct that has this member.
    """

    factor: int
    size: str | None = None
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """One member of a struct.

    Attributes:
        name: as in MuJoCo's Python.
        offset: from the start of the struct, bytes.
        kind: ``"scalar"``; ``"array"`` inside the struct; ``"pointer"`` to an array of known shape;
            ``"struct"`` inside the struct; ``"opaque"``: a pointer to who knows what.
        ctype: of the scalar or of one element; the structure class for structs and arrays of them;
            ``c_void_p`` for an opaque pointer.
        extents: the shape, outermost first; empty unless an array.
        struct: what ``fields`` takes for the table of the struct or of one element; ``None`` for
            numbers.
    """

    name: str
    offset: int
    kind: Kind
    ctype: Any
    extents: tuple[Extent, ...] = ()
    struct: str | None = None


# Lengths that introspect leaves out.
_EXTENTS: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("mjvScene", "geoms"): ("maxgeom",),
    ("mjvScene", "geomorder"): ("maxgeom",),
}


@functools.cache
def fields(struct: str) -> Mapping[str, Field]:
    """The members of a struct in the order of the struct.

    Args:
        struct: such as ``"mjData"``; a nested struct without a name of its own is reached through
            its member: ``"mjVisual.global_"``.

    Raises:
        UnsupportedEngineError: the installed engine does not describe such a struct.
    """
    node, mirror = _resolve(struct)
    ctypes_of = dict(mirror._fields_)
    found = [
        _field(struct, declaration, getattr(mirror, declaration.name), ctypes_of[declaration.name])
        for declaration in node.fields
        if isinstance(declaration, ast_nodes.StructFieldDecl)
    ]
    return MappingProxyType({field.name: field for field in found})


def mirror(struct: str) -> type[ctypes.Structure]:
    """The ctypes class of a struct; names as for ``fields``."""
    found: type[ctypes.Structure] = _resolve(struct)[1]
    return found


def _resolve(struct: str) -> tuple[Any, Any]:
    outer, _, inner = struct.rpartition(".")
    if not outer:
        found = layout.structure(struct)
        return structs.STRUCTS[struct], found
    node, mirror = _resolve(outer)
    for declaration in node.fields:
        if _python_name(declaration.name) == inner:
            return declaration.type, dict(mirror._fields_)[declaration.name]
    raise UnsupportedEngineError(f"{outer} of MuJoCo {mujoco.__version__} has no member {inner!r}")


def _python_name(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name


def _field(struct: str, declaration: Any, descriptor: Any, ctype: Any) -> Field:
    name = _python_name(declaration.name)
    kind, element, extents = _shape(struct, declaration, ctype)
    inner = None
    if isinstance(element, type) and issubclass(element, ctypes.Structure):
        anonymous = isinstance(declaration.type, ast_nodes.AnonymousStructDecl)
        inner = f"{struct}.{name}" if anonymous else element.__name__
    return Field(name, descriptor.offset, kind, element, extents, inner)


def _shape(struct: str, declaration: Any, ctype: Any) -> tuple[Kind, Any, tuple[Extent, ...]]:
    node = declaration.type
    if isinstance(node, ast_nodes.PointerType):
        lengths = declaration.array_extent or _EXTENTS.get((struct, declaration.name))
        if lengths is None or not isinstance(node.inner_type, ast_nodes.ValueType):
            return "opaque", ctypes.c_void_p, ()
        return "pointer", layout._ctype(node.inner_type), _extents(struct, lengths)
    if isinstance(node, ast_nodes.ArrayType):
        return "array", _element(ctype), _extents(struct, node.extents)
    if issubclass(ctype, ctypes.Structure):
        return "struct", ctype, ()
    # A union, or a function pointer inside the struct.
    return ("opaque" if issubclass(ctype, ctypes.Union) else "scalar"), ctype, ()


def _element(ctype: Any) -> Any:
    while issubclass(ctype, ctypes.Array):
        ctype = ctype._type_
    return ctype


# -- lengths -------------------------------------------------------------------------------------


def _extents(struct: str, lengths: Iterable[str | int]) -> tuple[Extent, ...]:
    return tuple(_extent(struct, length) for length in lengths)


def _extent(struct: str, length: str | int) -> Extent:
    """Reads ``3``, ``"mjNREF"``, ``"nv"`` or a product of such, ``"nmocap*3"``."""
    factor, sizes = 1, []
    for part in str(length).split("*"):
        value = int(part) if part.isdigit() else layout.constants().get(part)
        if value is None:
            sizes.append(part)
        else:
            factor *= value
    if len(sizes) > 1:
        raise UnsupportedEngineError(f"{struct} has an array of length {length}, of two sizes")
    if not sizes:
        return Extent(factor)
    return Extent(factor, sizes[0], _owner(struct, sizes[0]))


def _owner(struct: str, size: str) -> str:
    if struct in {"mjModel", "mjData"}:
        return size_owner(size)
    if size in _scalars(struct):
        return struct
    raise UnsupportedEngineError(f"{struct} has no member {size!r} that could be a length")


def size_owner(name: str) -> Literal["mjModel", "mjData"]:
    """Which of the two structs has the size member ``name``.

    The model comes first: ``nplugin`` is in both, and a view of a model has no data. What the model
    does not have (``ncon``, ``nefc``, ``nisland``, …) changes from step to step.

    Raises:
        UnsupportedEngineError: neither has it.
    """
    if name in _scalars("mjModel"):
        return "mjModel"
    if name in _scalars("mjData"):
        return "mjData"
    raise UnsupportedEngineError(f"neither mjModel nor mjData has a member {name!r}")


@functools.cache
def _scalars(struct: str) -> frozenset[str]:
    return frozenset(
        declaration.name
        for declaration in structs.STRUCTS[struct].fields
        if isinstance(getattr(declaration, "type", None), ast_nodes.ValueType)
    )


# What the engine's allocator and threads keep in mjData.
_ALLOCATOR: Final = frozenset({"narena", "nbuffer", "parena", "pbase", "pstack"})
_BOOKKEEPING: Final = _ALLOCATOR | {"nplugin", "signature", "threadlock", "threadpool"}


@functools.cache
def read_only(struct: str) -> frozenset[str]:
    """Scalars that an extension must not assign: lengths of arrays, and the engine's bookkeeping.

    MuJoCo's Python lets those of ``mjData`` be written; a wrong one is an access outside of memory.
    """
    scalars = {name for name, field in fields(struct).items() if field.kind == "scalar"}
    if struct == "mjModel":
        members = fields(struct)
        return frozenset(
            name for name in scalars if members[name].ctype in {ctypes.c_int64, ctypes.c_uint64}
        )
    lengths = {
        extent.size
        for field in fields(struct).values()
        for extent in field.extents
        if extent.owner == struct
    }
    return frozenset(scalars & (lengths | (_BOOKKEEPING if struct == "mjData" else frozenset())))


# -- the arena -----------------------------------------------------------------------------------

_NOTHING: Final = "<mujoco><worldbody/></mujoco>"


@functools.cache
def arena_fields() -> frozenset[str]:
    """Pointers of ``mjData`` into its arena: moved at every step, NULL while unused.

    The engine is asked: they point outside the buffer of a live ``mjData``. The first call compiles
    an empty model, so it must not come from inside an engine callback.
    """
    from mjhost.callbacks import router

    with router.compile_guard():
        data = mujoco.MjData(mujoco.MjModel.from_xml_string(_NOTHING))
    start = layout.address_of(data, "mjData")
    raw: Any = mirror("mjData").from_address(start)
    return frozenset(
        field.name
        for field in fields("mjData").values()
        if field.kind == "pointer"
        and not 0 <= _pointer(start + field.offset) - raw.buffer <= raw.nbuffer
    )


def _pointer(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value
