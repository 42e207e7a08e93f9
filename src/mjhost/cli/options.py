"""The command ``mjhost options``: the table of run-time options, and patches tried on a model.

Not a goal: a running host. Nothing is stepped here; a patch is checked and forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import typer

from mjhost.cli import output
from mjhost.cli.arguments import (
    DebugFlag,
    JsonFlag,
    OptionalModelArgument,
    OptionFlag,
    model_path,
    option_inputs,
)
from mjhost.cli.exits import ExitStatus
from mjhost.cli.problems import options_hint
from mjhost.env import MujocoEnv
from mjhost.options import (
    OptionDescriptor,
    OptionsResult,
    OptionValue,
    RuntimeOptionInput,
    RuntimeOptionsError,
    RuntimeOptionsSnapshot,
    changed_fields,
    default_snapshot,
    descriptors,
    prepare_runtime_options,
)


class OptionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One field of the table, as ``--json`` prints it; the last two only for a model."""

    name: str
    kind: str
    default: Any
    allowed: str
    unit: str
    help: str
    aliases: tuple[str, ...]
    choices: tuple[str, ...]
    xml: str
    doc: str
    value: Any = msgspec.UNSET
    changed: bool | msgspec.UnsetType = msgspec.UNSET


class PatchReport(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a patch that was tried.

    Attributes:
        model: what it was tried on; ``None`` for the engine's defaults.
        accepted: whether there is no error.
        errors, warnings: every problem, and what is accepted but unusual.
        changed: old and new value of every field that would differ; empty if not accepted.
    """

    model: str | None
    accepted: bool
    errors: tuple[RuntimeOptionsError, ...]
    warnings: tuple[RuntimeOptionsError, ...]
    changed: dict[str, dict[str, Any]]


def options(
    model: OptionalModelArgument = None,
    *,
    option: OptionFlag = None,
    json: JsonFlag = False,
    _debug: DebugFlag = False,
) -> None:
    """List the run-time options, show those of a model, or try changes on it.

    Without MODEL: every field with type, default, range and help. With MODEL: its values; a star
    marks those that differ from the default. With --option: whether the change would be accepted,
    and what it would do, without running anything; status 1 if not.

    * `mjhost options`
    * `mjhost options humanoid`
    * `mjhost options humanoid --option solver=CG --option iterations=30`
    """
    inputs = option_inputs(option)
    snapshot = _options_of(model) if model is not None else None
    if inputs:
        _try(model, snapshot or default_snapshot(), inputs, json=json)
    elif json:
        output.say_json([_row(field, snapshot) for field in descriptors()])
    elif snapshot is None:
        _say_fields(descriptors())
    else:
        _say_values(descriptors(), snapshot)


def _options_of(model: str) -> RuntimeOptionsSnapshot:
    with MujocoEnv(model_path(model)) as env:
        return env.runtime_options


# -- the table ---------------------------------------------------------------------------------


def _row(field: OptionDescriptor, snapshot: RuntimeOptionsSnapshot | None) -> OptionRow:
    row = OptionRow(
        name=field.name,
        kind=field.kind,
        default=plain(field.default),
        allowed=field.allowed(),
        unit=field.unit,
        help=field.help,
        aliases=field.aliases,
        choices=field.choices,
        xml=field.xml,
        doc=field.doc,
    )
    if snapshot is None:
        return row
    value = getattr(snapshot, field.name)
    return msgspec.structs.replace(row, value=plain(value), changed=value != field.default)


def _say_fields(fields: Iterable[OptionDescriptor]) -> None:
    rows = [
        (field.name, field.kind, shown(field.default), f"{field.help} [{field.allowed()}]")
        for field in fields
    ]
    output.say_table(("FIELD", "TYPE", "DEFAULT", "HELP"), rows)


def _say_values(fields: Iterable[OptionDescriptor], snapshot: RuntimeOptionsSnapshot) -> None:
    rows = []
    for field in fields:
        value = getattr(snapshot, field.name)
        mark = "*" if value != field.default else ""
        rows.append((field.name, mark, shown(value), shown(field.default), field.help))
    output.say_table(("FIELD", "", "VALUE", "DEFAULT", "HELP"), rows)


# -- a patch -----------------------------------------------------------------------------------


def _try(
    model: str | None,
    snapshot: RuntimeOptionsSnapshot,
    inputs: list[RuntimeOptionInput],
    *,
    json: bool,
) -> None:
    result = prepare_runtime_options(snapshot, inputs, raise_on_error=False)
    report = _report(model, snapshot, result)
    if json:
        output.say_json(report)
    else:
        _say_report(report)
    if not report.accepted:
        raise typer.Exit(ExitStatus.FAILED)


def _report(
    model: str | None, before: RuntimeOptionsSnapshot, result: OptionsResult
) -> PatchReport:
    after = result.snapshot if result.ok else None
    changes = changed_fields(before, after) if after is not None else {}
    return PatchReport(
        model=model,
        accepted=result.ok,
        errors=result.errors,
        warnings=result.warnings,
        changed={
            name: {"old": plain(old), "new": plain(new)} for name, (old, new) in changes.items()
        },
    )


def _say_report(report: PatchReport) -> None:
    where = report.model or "the engine's defaults"
    if report.accepted:
        output.say(f"accepted by {where}: {len(report.changed)} changed")
    else:
        output.say(f"rejected by {where}, nothing would change:")
    for name, change in report.changed.items():
        output.say(f"  {name}: {shown(change['old'])} -> {shown(change['new'])}")
    for error in report.errors:
        output.say(f"  {error}{options_hint([error])}")
    for warning in report.warnings:
        output.say(f"  warning: {warning}")


# -- values ------------------------------------------------------------------------------------


def plain(value: OptionValue) -> Any:
    """A value as JSON holds it."""
    return sorted(value) if isinstance(value, frozenset) else value


def shown(value: Any) -> str:
    """A value as it can be typed after ``--option name=``."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (tuple, list, frozenset)):
        return ",".join(shown(part) for part in plain(value)) or "none"  # type: ignore[arg-type]
    return f"{value:.15g}" if isinstance(value, float) else str(value)
