"""The entry point: the command tree, and what an error looks like from outside.

Invariants: whatever goes wrong is one line on stderr that begins with ``mjhost: error:``, and an
exit status out of ``ExitStatus``; the traceback comes with ``--debug`` only.
Threads: the main thread; signal handlers are installed by ``run`` for its time only.
"""

from __future__ import annotations

import platform
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any, Final

import mujoco
import typer

from mjhost import __version__
from mjhost.cli import output
from mjhost.cli.arguments import DebugFlag
from mjhost.cli.check import check
from mjhost.cli.doctor import doctor
from mjhost.cli.exits import HELP, ExitStatus
from mjhost.cli.options import options
from mjhost.cli.run import run
from mjhost.errors import InvalidArgumentError, MjhostError, OptionsRejected

# click's base class of errors; typer has a copy of its own of click, or not, by version.
_CLICK_ERROR: Final = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="mjhost",
    help="Host a MuJoCo simulation: run it, look at it, change its options while it runs.",
    epilog=HELP,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (run, check, options, doctor):
    app.command(epilog=HELP)(_command)


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Args:
        arguments: the words after ``mjhost``; by default those of the process.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        result = app(args=words, prog_name="mjhost", standalone_mode=False)
        return result if isinstance(result, int) else ExitStatus.OK
    except (KeyboardInterrupt, typer.Abort):
        return ExitStatus.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last frame of the process: nobody else can tell
        return _report(error, debug="--debug" in words)
    finally:
        output.flush()


def _report(error: Exception, *, debug: bool) -> ExitStatus:
    if debug:
        traceback.print_exception(error)
    output.note(f"error: {_message(error)}")
    return _status(error)


def _message(error: Exception) -> str:
    if isinstance(error, _CLICK_ERROR):
        return _usage_message(error)
    if isinstance(error, OptionsRejected):
        return f"options rejected, nothing changed: {error}"
    if isinstance(error, (MjhostError, OSError)):
        return str(error)
    return f"{type(error).__name__}: {error} (--debug shows where)"


def _usage_message(error: Any) -> str:
    text: str = error.format_message()
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "mjhost"
    return f"{text[:1].lower()}{text[1:].rstrip('.')} (see {command} --help)"


def _status(error: Exception) -> ExitStatus:
    # What options a model takes depends on the model: being refused is an answer, not a misuse.
    wrong_words = isinstance(error, InvalidArgumentError) and not isinstance(error, OptionsRejected)
    usage = wrong_words or isinstance(error, _CLICK_ERROR)
    return ExitStatus.USAGE if usage else ExitStatus.FAILED
