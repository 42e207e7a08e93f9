"""The engine's functions as records: what each parameter is, and what must hold for it.

Owns: ``table``, which the Python path and the compiled path both generate their calls from. C types
come from ``mujoco.introspect``, conditions from ``described``.
Invariants: every array of a function in the table has a length, from the C signature or described.
Threads: records are immutable.
Failure: ``UnsupportedEngineError`` for a description that cannot be read; tests read them all.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal

from mujoco.introspect import ast_nodes, functions

from mjhost import layout
from mjhost.engine.views.described import DESCRIBED, NULLABLE
from mjhost.errors import UnsupportedEngineError

ParameterKind = Literal["model", "data", "scalar", "array", "text"]

# Object types that have a frame in the world, and the size member of mjModel that counts them.
PLACED: Final[Mapping[int, str]] = MappingProxyType(
    {
        layout.constants()[f"mjOBJ_{name}"]: size
        for name, size in (
            ("BODY", "nbody"),
            ("XBODY", "nbody"),
            ("GEOM", "ngeom"),
            ("SITE", "nsite"),
            ("CAMERA", "ncam"),
        )
    }
)


@dataclass(frozen=True, slots=True)
class Reference:
    """A value inside an expression: a parameter, or a member of what a parameter points to.

    Attributes:
        parameter: index of the parameter.
        path: members to follow, such as ``("nv",)``; empty for the parameter itself.
    """

    parameter: int
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Term:
    """``factor`` times the product of ``references``."""

    factor: int
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True)
class Expression:
    """The largest of some sums of terms.

    Attributes:
        text: as it is written in C, for messages.
        sums: at least one.
    """

    text: str
    sums: tuple[tuple[Term, ...], ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a function.

    Attributes:
        name: as in C.
        kind: ``"model"`` and ``"data"`` are structs; ``"text"`` is a C string.
        ctype: of the scalar, or of an element of the array; ``c_char_p`` and ``c_void_p`` else.
        const: the function does not write into the array.
        nullable: ``None`` is admitted.
        length: elements that the array must have; ``None`` if it is no array.
        lowest: the scalar is not below it.
        limit: the scalar is below it.
        placed_by: index of the parameter that says what type of object this id is of, which has to
            be one of ``PLACED``.
        absent: nothing but ``None`` is admitted.
    """

    name: str
    kind: ParameterKind
    ctype: Any
    const: bool = True
    nullable: bool = False
    length: Expression | None = None
    lowest: int | None = None
    limit: Expression | None = None
    placed_by: int | None = None
    absent: bool = False


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """A function of the engine that an extension may call.

    Attributes:
        name: the C symbol.
        parameters: in C's order.
        result: ctypes type of the result; ``None`` for void; ``c_char_p`` for a text that belongs
            to the engine.
        declaration: the C declaration.
        doc: what the engine says about it.
    """

    name: str
    parameters: tuple[Parameter, ...]
    result: Any
    declaration: str
    doc: str


@functools.cache
def table() -> Mapping[str, FunctionSpec]:
    """All functions that an extension may call, by name."""
    library = layout.library()
    return MappingProxyType(
        {
            name: _spec(functions.FUNCTIONS[name], conditions)
            for name, conditions in _described().items()
            if name in functions.FUNCTIONS and hasattr(library, name)
        }
    )


def _described() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    entries: list[str] = []
    for line in DESCRIBED.splitlines():
        words = line.split()
        if line[:1].strip():  # else it goes on from the line before
            entries = found[words[0]] = []
            words = words[1:]
        entries += words
    return found


def _spec(node: Any, conditions: list[str]) -> FunctionSpec:
    names = [parameter.name for parameter in node.parameters]
    wanted = {}
    for condition in conditions:
        name, sign, value = _split(node.name, condition)
        wanted[name, sign] = value
    if not {name for name, _ in wanted} <= {*names}:
        raise UnsupportedEngineError(f"{node.name} has the parameters {names}, not {[*wanted]}")
    used = {word for (_, sign), text in wanted.items() if sign == "[" for word in _words(text)}
    parameters = tuple(
        _parameter(node.name, parameter, names, wanted, is_length=parameter.name in used)
        for parameter in node.parameters
    )
    result = _result(node)
    return FunctionSpec(node.name, parameters, result, str(node), node.doc)


def _split(function: str, condition: str) -> tuple[str, str, str]:
    found = re.fullmatch(r"(\w+)([\[@=])(.+?)\]?", condition)
    if found is None:
        raise UnsupportedEngineError(f"{function} has an unreadable description, {condition!r}")
    return found[1], found[2], found[3]


def _words(text: str) -> list[str]:
    return re.findall(r"[A-Za-z_][\w.]*", text)


def _parameter(
    function: str,
    node: Any,
    names: list[str],
    wanted: dict[tuple[str, str], str],
    *,
    is_length: bool,
) -> Parameter:
    name, kind, ctype = node.name, *_kind(function, node)
    inner = getattr(node.type, "inner_type", None)
    nullable = node.nullable or getattr(node.type, "nullable", False)
    nullable = nullable or (function, name) in NULLABLE or (name, "=") in wanted
    lowest, limit, placed_by = (0 if is_length else None), None, None
    if (name, "@") in wanted:
        lowest, limit, placed_by = _range(wanted[name, "@"], names)
    return Parameter(
        name=name,
        kind=kind,
        ctype=ctype,
        const=inner is None or inner.is_const,
        nullable=nullable,
        length=_length(function, node, names, wanted) if kind == "array" else None,
        lowest=lowest,
        limit=limit,
        placed_by=placed_by,
        absent=(name, "=") in wanted,
    )


def _kind(function: str, node: Any) -> tuple[ParameterKind, Any]:
    if isinstance(node.type, ast_nodes.ValueType):
        return "scalar", layout._named_ctype(node.type.name)
    name = node.type.inner_type.name
    if name in {"mjModel", "mjData"}:
        return ("model" if name == "mjModel" else "data"), ctypes.c_void_p
    if name == "char":
        return "text", ctypes.c_char_p
    if name in layout._SCALARS:
        return "array", layout._SCALARS[name]
    raise UnsupportedEngineError(f"{function} takes {node}, which no view gives")


def _result(node: Any) -> Any:
    if isinstance(node.return_type, ast_nodes.PointerType):
        if node.return_type.inner_type.name != "char":
            raise UnsupportedEngineError(f"{node.name} returns {node.return_type}")
        return ctypes.c_char_p
    name = node.return_type.name
    return None if name == "void" else layout._named_ctype(name)


def _length(
    function: str, node: Any, names: list[str], wanted: dict[tuple[str, str], str]
) -> Expression | None:
    if (node.name, "[") in wanted:
        return _expression(wanted[node.name, "["], names)
    if (node.name, "=") in wanted:
        return None
    if isinstance(node.type, ast_nodes.ArrayType):
        (extent,) = node.type.extents
        return _expression(str(extent), names)
    raise UnsupportedEngineError(f"nothing is known about the length of {node.name} of {function}")


def _range(text: str, names: list[str]) -> tuple[int | None, Expression | None, int | None]:
    if text in names and text.endswith("type"):
        return 0, None, names.index(text)
    low, dots, high = text.rpartition("..")
    limit = _expression(high, names) if high else None
    return (int(low) if dots else 0), limit, None


def _expression(text: str, names: list[str]) -> Expression:
    sums = tuple(_sum(part, names) for part in text.split("|"))
    return Expression(text.replace("|", " or "), sums)


def _sum(text: str, names: list[str]) -> tuple[Term, ...]:
    signed = re.findall(r"([+-]?)([^+-]+)", text)
    return tuple(_term(-1 if sign == "-" else 1, product, names) for sign, product in signed)


def _term(factor: int, product: str, names: list[str]) -> Term:
    references = []
    for word in product.split("*"):
        owner, *path = word.split(".")
        if word.isdigit():
            factor *= int(word)
        elif owner in names:
            references.append(Reference(names.index(owner), tuple(path)))
        else:
            factor *= layout.constants()[word]
    return Term(factor, tuple(references))
