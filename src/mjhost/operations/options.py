"""Operations about run-time options; their fields are made from the table of ``mjhost.options``."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import msgspec

from mjhost.operations.fields import Done, Name, Real, Request, Response, about
from mjhost.operations.responses import response_of
from mjhost.operations.spec import Site, described
from mjhost.options import OptionDescriptor, descriptors
from mjhost.options.table import Kind

_TYPES: Final[dict[Kind, Any]] = {
    Kind.FLOAT: Real,
    Kind.INT: int,
    Kind.BOOL: bool,
    Kind.ENUM: str,
    Kind.ARRAY: tuple[Real, ...],
    Kind.GROUPS: tuple[int, ...],
}
# Directions are those of the world; the other arrays are parameters of the solver.
_FRAMES: Final = {"gravity": "world", "wind": "world", "magnetic": "world"}

OptionInput: TypeAlias = (
    bool
    | int
    | float
    | Annotated[str, msgspec.Meta(max_length=1000)]
    | Annotated[list[float], msgspec.Meta(max_length=100)]
)
"""A value of an option as a client gives it."""


def _annotation(field: OptionDescriptor) -> Any:
    number = field.kind in {Kind.FLOAT, Kind.INT, Kind.ARRAY, Kind.GROUPS}
    unit = (field.unit or "1") if number else ""
    shape = f"({field.size},)" if field.kind is Kind.ARRAY else ""
    frame = _FRAMES.get(field.name, "")
    text = field.help.rstrip(".")
    note = about(text, unit, frame=frame, shape=shape)
    return Annotated[_TYPES[field.kind], note]


OptionValues: Final[Any] = msgspec.defstruct(
    "OptionValues",
    [(field.name, _annotation(field)) for field in descriptors()],
    bases=(Response,),
    frozen=True,
    kw_only=True,
    module=__name__,
    namespace={"__doc__": "Every run-time option of the installed engine."},
)
"""The record of all options, with a field for each row of the table."""


class OptionsAnswer(Response, frozen=True, kw_only=True):
    """The run-time options."""

    options: Annotated[OptionValues, about("the values that the next step uses")]


class OptionsPatch(Request, frozen=True, kw_only=True):
    """Changes to some options; the others stay."""

    patch: Annotated[
        dict[Name, OptionInput],
        about("new values by name or alias; units are those of runtime_option_table", "as named"),
    ]


class OptionWarning(Response, frozen=True, kw_only=True):
    """Something that was accepted and is worth a second look."""

    field: Annotated[str, about("name of the option")]
    message: Annotated[str, about("what is unusual")]
    allowed: Annotated[str, about("what is usual, in words; may be empty")]
    given: Annotated[str, about("what was given, shortened")]


class Applied(Response, frozen=True, kw_only=True):
    """What a transaction did."""

    epoch: Annotated[int | None, about("number of the transaction; null if there was none", "1")]
    changed: Annotated[tuple[str, ...], about("names of the options whose value differs now")]
    warnings: Annotated[tuple[OptionWarning, ...], about("accepted, worth a second look")]


class OptionRow(Response, frozen=True, kw_only=True):
    """One option and what it takes."""

    name: Annotated[str, about("its name")]
    kind: Annotated[str, about("float, int, bool, enum, array or groups")]
    help: Annotated[str, about("one sentence")]
    unit: Annotated[str, about("SI unit, empty for a pure number")]
    allowed: Annotated[str, about("the sensible values, in words")]
    aliases: Annotated[tuple[str, ...], about("other names that are accepted")]
    choices: Annotated[tuple[str, ...], about("the names of an enum")]
    default: Annotated[
        bool | int | str | Real | tuple[Real, ...], about("value of a fresh model", "as named")
    ]


class OptionTable(Response, frozen=True, kw_only=True):
    """Every option of the installed engine."""

    table: Annotated[tuple[OptionRow, ...], about("one row per option")]


def runtime_options(site: Site) -> OptionsAnswer:
    """Tells the options that the next step uses, read from the live model."""
    options = response_of(OptionValues, site.env.runtime_options)
    return OptionsAnswer(options=options)


def apply_runtime_options(site: Site, request: OptionsPatch) -> Applied:
    """Changes options at a step boundary, all of them or none."""
    return response_of(Applied, site.env.apply_runtime_options(request.patch))


def set_pending_runtime_options(site: Site, request: OptionsPatch) -> Done:
    """Keeps options for the first load; a second call replaces the first."""
    site.env.set_pending_runtime_options(request.patch)
    return Done()


def runtime_option_table(_site: Site) -> OptionTable:
    """Lists every option with type, unit, range, default and help."""
    rows = tuple(response_of(OptionRow, field, allowed=field.allowed()) for field in descriptors())
    return OptionTable(table=rows)


_GROUP: Final = "Run-time options"

SPECS: Final = (
    described(_GROUP, runtime_options),
    described(_GROUP, apply_runtime_options),
    described(_GROUP, set_pending_runtime_options),
    described(_GROUP, runtime_option_table, ()),
)
