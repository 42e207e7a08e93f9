"""``mjhost plugins --engine``: what is registered with the engine, and the way into a model.

Invariants: nothing is loaded or declared but what ``--plugins`` names and what ``--trace`` needs.
Failure: what cannot be imported or loaded is a ``PluginLoadError``; a library of a directory that
is skipped is a row of the report, and no failure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import typer

from mjhost.cli import output
from mjhost.cli.arguments import model_path
from mjhost.cli.exits import ExitStatus
from mjhost.engine.backends import ExtensionSupport, support
from mjhost.engine.report import EngineReport, PluginRecord, registered
from mjhost.engine.sources import bring_in
from mjhost.engine.trace import InstanceTrace, trace
from mjhost.env import MujocoEnv

_HEADER: Final = ("SLOT", "NAME", "CAPABILITIES", "STAGE", "RUNS", "ATTRIBUTES", "ORIGIN")


@dataclass(frozen=True, slots=True)
class ModelTrace:
    """The engine plugins of one model.

    Attributes:
        model: its source.
        instances: the way to each plugin instance.
        support: where its plugins and callbacks run.
    """

    model: str
    instances: tuple[InstanceTrace, ...]
    support: tuple[ExtensionSupport, ...]


@dataclass(frozen=True, slots=True)
class EnginePluginsReport:
    """What ``mjhost plugins --engine`` found.

    Attributes:
        registered: everything that is registered, after the model was loaded.
        trace: of the model, if there was one.
    """

    registered: EngineReport
    trace: ModelTrace | None


def show(plugins: Iterable[str], model: str | None, *, json: bool) -> None:
    """Imports what is named, traces the model, and prints the report."""
    for text in plugins:
        bring_in(text)
    traced = None if model is None else _trace(model)
    report = EnginePluginsReport(registered(), traced)
    if json:
        output.say_json(report)
    else:
        _say(report)
    if traced is not None and any(instance.failure for instance in traced.instances):
        output.note("error: an engine plugin of the model fails; see above")
        raise typer.Exit(ExitStatus.FAILED)


def _trace(model: str) -> ModelTrace:
    path = model_path(model)
    with MujocoEnv(path) as env, env.access() as (compiled, _):
        return ModelTrace(env.info.source or str(path), trace(compiled), support(compiled))


# -- the report ----------------------------------------------------------------------------------


def _say(report: EnginePluginsReport) -> None:
    output.say(f"MuJoCo {report.registered.engine}, engine plugins:")
    output.say_table(_HEADER, [_row(record) for record in report.registered.plugins])
    rows = [(found.kind, found.name, found.origin) for found in report.registered.resources]
    output.say_table(("KIND", "NAME", "ORIGIN"), rows)
    for library in report.registered.libraries:
        output.say(f"library {library}")
    if report.trace is not None:
        _say_trace(report.trace)


def _row(record: PluginRecord) -> tuple[str, ...]:
    attributes = " ".join(map(str, record.attributes)) or "-"
    return (
        str(record.slot),
        record.name,
        ", ".join(record.capabilities),
        record.stage or "-",
        _how(record),
        attributes,
        record.origin,
    )


def _how(record: PluginRecord) -> str:
    if record.source != "mjhost":
        return "native"
    return "compiled" if record.compiled else "Python"


def _say_trace(traced: ModelTrace) -> None:
    if not traced.instances:
        output.say(f"{traced.model} has no engine plugin")
    for instance in traced.instances:
        output.say_table(*_way(traced.model, instance))
    for entry in traced.support:
        output.say_table(
            (f"{entry.kind} {entry.name}", "RUNS"),
            [(backend, str(answer)) for backend, answer in entry.answers.items()],
        )


def _way(model: str, found: InstanceTrace) -> tuple[tuple[str, str], list[tuple[str, str]]]:
    config = " ".join(f"{key}={value!r}" for key, value in found.config.items())
    name = f"{found.instance} {found.name!r}" if found.name else str(found.instance)
    elements = [f"{kind} {', '.join(names)}" for kind, names in found.elements.items()]
    calls = ", ".join(map(str, found.calls)) or "-"
    basis = found.calls[0].basis if found.calls else ""
    rows = [
        ("declaration", f"{found.plugin}, {found.origin}"),
        ("slot", f"{found.slot} ({', '.join(found.capabilities)})"),
        ("instance", f"{name}, state {found.state_size}{', ' if config else ''}{config}"),
        ("elements", "; ".join(elements) or "none"),
        ("calls per step", f"{calls} ({basis})" if basis else calls),
    ]
    if found.failure is not None:
        rows.append(("failed", output.one_line(found.failure)))
    return ("TRACE", model), rows
