"""The command tree, and one command run to its exit status.

Invariants: whatever goes wrong is one line on stderr that begins with ``mjhost: error:``, and an
exit status out of ``ExitStatus``; the traceback comes with ``--debug`` only.
Threads: the main thread.
"""

from __future__ import annotations

import platform
import traceback
from collections.abc import Sequence
from typing import Annotated

import mujoco
import typer

from mjhost import __version__
from mjhost.cli import output
from mjhost.cli.arguments import DebugFlag
from mjhost.cli.check import check
from mjhost.cli.checkpoint import checkpoint
from mjhost.cli.convert import convert
from mjhost.cli.demo import demo
from mjhost.cli.diff import diff
from mjhost.cli.doctor import doctor
from mjhost.cli.exits import HELP, ExitStatus
from mjhost.cli.operations import operations
from mjhost.cli.options import options
from mjhost.cli.plugins import plugins
from mjhost.cli.problems import message_of, status_of
from mjhost.cli.run import run
from mjhost.cli.state import set_state, state

app = typer.Typer(
    name="mjhost",
    help="Host a MuJoCo simulation: run it, pause, reset and reload it, look into it.",
    epilog=HELP,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
_COMMANDS = (
    run, demo, plugins, check, convert, checkpoint, state, diff, options, operations, doctor,
)  # fmt: skip
for _command in _COMMANDS:
    app.command(epilog=HELP)(_command)
app.command("set", epilog=HELP)(set_state)


def _show_version(wanted: bool) -> None:
    if wanted:
        output.say(
            f"mjhost {__version__}, MuJoCo {mujoco.mj_versionString()}, "
            f"Python {platform.python_version()}"
        )
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the versions and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
    _debug: DebugFlag = False,
) -> None:
    if context.invoked_subcommand is None:
        output.say(context.get_help())


def invoke(words: Sequence[str]) -> int:
    """Runs one command; its exit status."""
    try:
        result = app(args=list(words), prog_name="mjhost", standalone_mode=False)
        return result if isinstance(result, int) else ExitStatus.OK
    except (KeyboardInterrupt, typer.Abort):
        return ExitStatus.INTERRUPTED
    except SystemExit as leaving:
        # Help texts are printed by the parser, to which a reader that went away is a failure.
        if isinstance(leaving.__context__, BrokenPipeError):
            return ExitStatus.OK
        raise
    except Exception as error:  # noqa: BLE001 - the last frame of the process: nobody else can tell
        return _report(error, debug="--debug" in words)
    finally:
        output.flush()


def _report(error: Exception, *, debug: bool) -> ExitStatus:
    if debug:
        traceback.print_exception(error)
    output.note(f"error: {message_of(error)}")
    return status_of(error)
