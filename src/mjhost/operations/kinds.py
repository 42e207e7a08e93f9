"""The types of fields as trees: what is inside of them, in words, and what can be chosen.

Threads: pure functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, get_args, get_origin

from msgspec import inspect as kinds

_WORDS: Final[dict[type, str]] = {
    kinds.BoolType: "bool",
    kinds.NoneType: "null",
    kinds.AnyType: "any",
    kinds.StrType: "text",
}


def inside(kind: kinds.Type) -> tuple[kinds.Type, ...]:
    """The types that a type is made of, one level down."""
    match kind:
        case kinds.Metadata():
            return (kind.type,)
        case kinds.UnionType():
            return kind.types
        case kinds.TupleType():
            return kind.item_types
        case kinds.VarTupleType() | kinds.ListType():
            return (kind.item_type,)
        case kinds.DictType():
            return (kind.key_type, kind.value_type)
    return ()


def type_words(annotation: Any) -> str:
    """What a field with this annotation holds: ``number or null``, ``list of 3 numbers``."""
    return _words(kinds.type_info(annotation))


def _words(kind: kinds.Type) -> str:
    match kind:
        case kinds.Metadata():
            return _words(kind.type)
        case kinds.IntType() | kinds.FloatType():
            return _number(kind)
        case kinds.EnumType():
            return _one_of([member.value for member in kind.cls])
        case kinds.LiteralType():
            return _one_of(list(kind.values))
        case kinds.StructType():
            return kind.cls.__name__
        case kinds.UnionType():
            # Integers are numbers: saying both would only ask what the difference is.
            return " or ".join(dict.fromkeys(map(_words, kind.types)))
        case kinds.TupleType():
            return f"list of {len(kind.item_types)}: {_words(kind.item_types[0])}"
        case kinds.VarTupleType() | kinds.ListType():
            return f"list of {_bracketed(kind.item_type)}"
        case kinds.DictType():
            return f"map of names to {_bracketed(kind.value_type)}"
    return _WORDS.get(type(kind), type(kind).__name__)


def _bracketed(kind: kinds.Type) -> str:
    words = _words(kind)
    return f"({words})" if " " in words else words


def _number(kind: kinds.IntType | kinds.FloatType) -> str:
    word = "integer" if isinstance(kind, kinds.IntType) else "number"
    return f"{word} >= {kind.ge:g}" if kind.ge is not None else word


def _one_of(values: list[Any]) -> str:
    return " or ".join(f'"{value}"' for value in values)


def item_of(annotation: Any) -> Any:
    """The annotation of the values of a map; ``None`` for another type."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return get_args(annotation)[1] if get_origin(annotation) is dict else None


def choices_of(annotation: Any) -> tuple[str, ...]:
    """The words that a field with this annotation takes; empty if it takes other things."""
    return tuple(_choices(kinds.type_info(annotation)))


def _choices(kind: kinds.Type) -> Iterator[str]:
    if isinstance(kind, kinds.EnumType):
        yield from (str(member.value) for member in kind.cls)
    elif isinstance(kind, kinds.LiteralType):
        yield from map(str, kind.values)
    elif isinstance(kind, (kinds.Metadata, kinds.UnionType)):
        for inner in inside(kind):
            yield from _choices(inner)
