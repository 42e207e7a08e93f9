"""The arguments that several commands share, and what they mean.

Invariants: importing this imports no engine; the flags of ``doctor`` are here too.
Failure: a value that cannot be understood is a usage error that names it; a model that does not
exist is an ``UnknownNameError`` that lists the near names.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mjhost import models
from mjhost.errors import UnknownNameError, did_you_mean

if TYPE_CHECKING:
    from mjhost.options import RuntimeOptionInput


def complete_model(incomplete: str) -> list[str]:
    """The bundled models that begin so; for paths the shell completes by itself."""
    return [name for name in models.names() if name.startswith(incomplete)]


def complete_option(incomplete: str) -> list[str]:
    """Option names, and after ``name=`` the values of one that has a list of them."""
    from mjhost.options import descriptors

    name, assigned, _ = incomplete.partition("=")
    fields = {field.name: field for field in descriptors()}
    if not assigned:
        return [f"{known}=" for known in fields if known.startswith(name)]
    choices = fields[name].choices if name in fields else ()
    pairs = (f"{name}={choice}" for choice in choices)
    return [pair for pair in pairs if pair.startswith(incomplete)]


def complete_plugin(incomplete: str) -> list[str]:
    """The installed plugins that begin so; for paths the shell completes by itself."""
    from mjhost.plugins.imports import ENTRY_POINT_GROUP

    points = importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)
    return sorted(point.name for point in points if point.name.startswith(incomplete))


_MODEL_HELP = (
    "Path of a model (MJCF, MJB, URDF, …), or the name of a bundled one: "
    f"{', '.join(models.names())}."
)

ModelArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", help=_MODEL_HELP, autocompletion=complete_model, show_default=False
    ),
]
OptionalModelArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[MODEL]", help=_MODEL_HELP, autocompletion=complete_model, show_default=False
    ),
]
OptionFlag = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        "-o",
        metavar="NAME=VALUE",
        help="Set a run-time option; may be given several times. All of them or none take effect.",
        autocompletion=complete_option,
        show_default=False,
    ),
]
PluginsFlag = Annotated[
    list[str] | None,
    typer.Option(
        "--plugins",
        "-p",
        metavar="WHAT",
        help="Load plugins: a .yaml or .toml list, module:Class, path.py:Class, path.py, or the "
        "name of an installed one; may be given several times.",
        autocompletion=complete_plugin,
        show_default=False,
    ),
]
ExtensionFlag = Annotated[
    list[str] | None,
    typer.Option(
        "--extension",
        "-x",
        metavar="WHAT",
        help="Bring in engine extensions before the model is read: a path.py or module that "
        "declares some, a native plugin library, or a directory of these; may be given several "
        "times.",
        show_default=False,
    ),
]
EngineFlag = Annotated[
    bool,
    typer.Option(
        "--engine",
        help="Show what is registered with the engine instead; --plugins then names modules, .py "
        "files, native libraries or directories of them.",
    ),
]
TraceFlag = Annotated[
    str | None,
    typer.Option(
        "--trace",
        metavar="MODEL",
        help="With --engine: follow each engine plugin of a model from its declaration to its "
        "calls per step.",
        autocompletion=complete_model,
        show_default=False,
    ),
]
JsonFlag = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout, and nothing else there.")
]
# Looked for in the raw arguments by main, so that it works for errors of parsing too.
DebugFlag = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error as well.")]


def model_path(text: str) -> Path:
    """The file that MODEL means: one of that path, else the bundled model of that name.

    Raises:
        typer.BadParameter: no word at all.
        UnknownNameError: a bare word that is neither.
    """
    if not text.strip():
        raise typer.BadParameter(
            f"must be a path or the name of a bundled model, got {text!r}", param_hint="'MODEL'"
        )
    given = Path(text)
    if given.is_file():
        return given
    if text in models.names():
        return models.path(text)
    if not given.exists() and not given.suffix and given.name == text:
        raise UnknownNameError(
            f"no file and no bundled model is called {text!r}; {did_you_mean(text, models.names())}"
        )
    return given


def option_inputs(pairs: Iterable[str] | None) -> list[RuntimeOptionInput]:
    """The requested changes of ``--option NAME=VALUE``, unread.

    Raises:
        typer.BadParameter: pairs without a name or without ``=``; the message lists all of them.
    """
    from mjhost.options import RuntimeOptionInput

    given = list(pairs or ())
    bad = [pair for pair in given if not pair.partition("=")[0].strip() or "=" not in pair]
    if bad:
        raise typer.BadParameter(
            f"needs NAME=VALUE, got {', '.join(map(repr, bad))}", param_hint="'--option'"
        )
    parts = (pair.partition("=") for pair in given)
    return [RuntimeOptionInput(name.strip(), value.strip()) for name, _, value in parts]
