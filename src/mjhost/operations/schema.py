"""The table of operations in words and in JSON Schema, for help texts, documents and generators.

Invariants: everything is read from the records themselves; nothing is said here that could differ.
Threads: pure functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect as kinds

from mjhost.operations.fields import Facts, facts_of
from mjhost.operations.kinds import inside, type_words
from mjhost.operations.spec import OperationSpec


class FieldRow(Facts, frozen=True, kw_only=True):
    """One field of a record, in words.

    Attributes:
        name: as in JSON.
        type: what it holds.
        required: whether a request must have it; an answer has every field.
        default: what a request that leaves it out means, as JSON has it.
    """

    name: str
    type: str
    required: bool
    default: Any = None


class RecordRow(msgspec.Struct, frozen=True, kw_only=True):
    """A record that is part of a request or response, in words."""

    name: str
    summary: str
    fields: tuple[FieldRow, ...]


class OperationRow(msgspec.Struct, frozen=True, kw_only=True):
    """One operation, in words and as JSON Schema.

    Attributes:
        name, group, summary, details, mutating: as in ``OperationSpec``.
        request, response: the records it takes and gives.
        parts: the records inside of these.
        request_schema, response_schema: JSON Schema (2020-12); units, frames and shapes are in
            ``x-unit``, ``x-frame`` and ``x-shape``.
    """

    name: str
    group: str
    summary: str
    details: str
    mutating: bool
    request: RecordRow
    response: RecordRow
    parts: tuple[RecordRow, ...]
    request_schema: dict[str, Any]
    response_schema: dict[str, Any]


def operation_row(spec: OperationSpec) -> OperationRow:
    """The operation in words and as JSON Schema."""
    return OperationRow(
        name=spec.name,
        group=spec.group,
        summary=spec.summary,
        details=spec.details,
        mutating=spec.mutating,
        request=record_row(spec.request),
        response=record_row(spec.response),
        parts=tuple(map(record_row, parts_of(spec))),
        request_schema=msgspec.json.schema(spec.request),
        response_schema=msgspec.json.schema(spec.response),
    )


def record_row(record: type[msgspec.Struct]) -> RecordRow:
    """The record in words."""
    summary = (record.__doc__ or "").partition("\n\n")[0]
    return RecordRow(
        name=record.__name__,
        summary=" ".join(summary.split()),
        fields=tuple(map(_field_row, msgspec.structs.fields(record))),
    )


def parts_of(spec: OperationSpec) -> list[type[msgspec.Struct]]:
    """The records inside the request and the response, in the order in which they occur."""
    found: list[type[msgspec.Struct]] = []
    for record in (spec.request, spec.response):
        _collect(record, found)
    return found


def _collect(record: type[msgspec.Struct], found: list[type[msgspec.Struct]]) -> None:
    for field in msgspec.structs.fields(record):
        for part in _structs_in(kinds.type_info(field.type)):
            if part not in found:
                found.append(part)
                _collect(part, found)


def _structs_in(kind: kinds.Type) -> Iterator[type[msgspec.Struct]]:
    if isinstance(kind, kinds.StructType):
        yield kind.cls
    for inner in inside(kind):
        yield from _structs_in(inner)


def _field_row(field: msgspec.structs.FieldInfo) -> FieldRow:
    facts = facts_of(field.type)
    return FieldRow(
        name=field.encode_name,
        type=type_words(field.type),
        required=field.required,
        default=_default(field),
        **msgspec.structs.asdict(facts),
    )


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return msgspec.to_builtins(field.default_factory())
    return None if field.default is msgspec.NODEFAULT else msgspec.to_builtins(field.default)
