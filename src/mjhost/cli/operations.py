"""The command ``mjhost operations``: what a client can ask of a host, and what it takes and gives.

Not a goal: asking a running host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from mjhost.cli import output
from mjhost.cli.arguments import DebugFlag, JsonFlag
from mjhost.operations import OPERATIONS, operation
from mjhost.operations.schema import operation_row

if TYPE_CHECKING:
    from mjhost.operations.schema import FieldRow, OperationRow, RecordRow


def _complete(incomplete: str) -> list[str]:
    return [name for name in OPERATIONS if name.startswith(incomplete)]


OptionalNameArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]",
        help="Name of one operation; without it all of them are listed.",
        autocompletion=_complete,
        show_default=False,
    ),
]


def operations(
    name: OptionalNameArgument = None, *, json: JsonFlag = False, _debug: DebugFlag = False
) -> None:
    """List what clients can ask of a host, or show what one operation takes and gives.

    Every transport offers these operations under these names. A star marks those that change
    something, which an evaluation token guards. With --json: fields and JSON Schema.

    * `mjhost operations`
    * `mjhost operations step`
    """
    if name is not None:
        _show(operation_row(operation(name)), json=json)
    elif json:
        output.say_json([operation_row(spec) for spec in OPERATIONS.values()])
    else:
        rows = [
            (spec.name, "*" if spec.mutating else "", spec.summary) for spec in OPERATIONS.values()
        ]
        output.say_table(("OPERATION", "", "WHAT IT DOES"), rows)


def _show(row: OperationRow, *, json: bool) -> None:
    if json:
        output.say_json(row)
        return
    output.say(f"{row.name}: {row.summary}")
    if row.details:
        output.say(" ".join(row.details.split()))
    output.say("changes the simulation" if row.mutating else "changes nothing")
    _show_record("takes", row.request)
    _show_record("gives", row.response)
    for part in row.parts:
        _show_record(part.name, part)


def _show_record(title: str, record: RecordRow) -> None:
    output.say("")
    if not record.fields:
        output.say(f"{title}: nothing")
        return
    output.say(f"{title}: {record.summary}")
    header = ("FIELD", "TYPE", "UNIT", "FRAME", "DEFAULT", "WHAT IT IS")
    output.say_table(header, [_cells(field) for field in record.fields])


def _cells(field: FieldRow) -> tuple[str, ...]:
    default = "" if field.required else msgspec.json.encode(field.default).decode()
    shape = f" {field.shape}" if field.shape else ""
    return (
        field.name, field.type + shape, field.unit, field.frame, default, field.description,
    )  # fmt: skip
