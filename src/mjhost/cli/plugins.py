"""The command ``mjhost plugins``: loads plugins, tries them, and shows what came of it.

Invariants: whatever plugins do, the report is printed; it shows every failure there was.
Failure: a failed plugin is status 1; a plugin list that cannot be read at all is one line.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Final

import typer

from mjhost.cli import output
from mjhost.cli.arguments import (
    DebugFlag,
    EngineFlag,
    JsonFlag,
    OptionalModelArgument,
    PluginsFlag,
    TraceFlag,
    model_path,
)
from mjhost.cli.exits import ExitStatus
from mjhost.cli.hosting import hosted
from mjhost.cli.plugin_report import PluginsReport, found_failures, report_lines
from mjhost.cli.plugin_watch import PluginWatch
from mjhost.cli.terminal import Keyboard
from mjhost.cli.watching import Watch
from mjhost.demo import PLUGIN_FILE
from mjhost.env import MujocoEnv
from mjhost.env.events import EventSubscription, FaultRaised, StepLimitReached
from mjhost.plugins import PluginLoadReport

TRIAL_STEPS: Final = 100  # half of them by hand, half in the physics thread
_TRIAL_LIMIT_S: Final = 10.0  # wall, for each half


def plugins(
    model: OptionalModelArgument = None,
    *,
    plugins: PluginsFlag = None,
    engine: EngineFlag = False,
    trace: TraceFlag = None,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Keep running and show the table live; reload what changes. Needs a terminal.",
        ),
    ] = False,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Load plugins against a model, try them for 100 steps, and show each with its failures.

    Without --plugins: those of the demo. Without MODEL: the model of the demo. Status 1 if a plugin
    failed, wherever: import, configuration, load, statistics, activation, a hook, close. With
    --debug the tracebacks are shown. With --watch, q or Ctrl-C ends it.

    * `mjhost plugins`
    * `mjhost plugins robot.xml --plugins controller.py:Impedance --debug`
    * `mjhost plugins robot.xml --plugins plugins.yaml --watch`
    * `mjhost plugins --engine --plugins my_pid.py --trace robot.xml`
    """
    if engine or trace is not None:
        _show_engine(plugins or [], model, trace, engine=engine, watch=watch, json=json)
        return
    path = model_path(model or "demo")
    wanted = plugins or [str(PLUGIN_FILE)]
    if watch:
        _watch(Watch(path), wanted, path, json=json, debug=debug)
        return
    with hosted(path, wanted, realtime=None) as (env, loaded):
        report = examine(env, loaded)
    if json:
        output.say_json(report)
    else:
        for line in report_lines(report, output.table_width(), debug=debug):
            output.say(line)
    if report.failures or report.trial_failure is not None:
        output.note("error: not everything worked; see above")
        raise typer.Exit(ExitStatus.FAILED)


def _show_engine(
    plugins: list[str],
    model: str | None,
    trace: str | None,
    *,
    engine: bool,
    watch: bool,
    json: bool,
) -> None:
    if not engine:
        raise typer.BadParameter("needs --engine", param_hint="'--trace'")
    if watch:
        raise typer.BadParameter("and --watch exclude each other", param_hint="'--engine'")
    if model is not None:
        raise typer.BadParameter(
            f"takes no MODEL, got {model!r}; did you mean --trace {model}?", param_hint="'--engine'"
        )
    from mjhost.cli.engine_plugins import (
        show,
    )  # the engine layer costs time that others do not need

    show(plugins, trace, json=json)


def _watch(files: Watch, wanted: list[str], path: Path, *, json: bool, debug: bool) -> None:
    keyboard = Keyboard.of_stdin()
    if json or keyboard is None:
        problem = "and --json exclude each other" if json else "needs a terminal"
        raise typer.BadParameter(problem, param_hint="'--watch'")
    with hosted(path, wanted) as (env, loaded):
        PluginWatch(env, loaded, files, keyboard, debug=debug).run()


def examine(env: MujocoEnv, loaded: PluginLoadReport) -> PluginsReport:
    """Tries the plugins of ``env``, then closes them; what came of it."""
    failure = _try(env)
    info, statistics, book = env.info, env.plugin_statistics, env.plugin_diagnostics
    env.reload_plugins([])  # closes them: what they raise there is in the next book
    return PluginsReport(
        model=info.source or "",
        engine=info.engine,
        steps=info.step_count,
        trial_failure=failure,
        plugins=statistics,
        failures=found_failures(loaded, book, env.plugin_diagnostics),
    )


def _try(env: MujocoEnv) -> str | None:
    """Has every hook called that a run calls; the error that ended it early, if one did."""
    try:
        env.reset()
        env.step(TRIAL_STEPS // 2, timeout=_TRIAL_LIMIT_S)
        with env.events.subscribe() as events:
            _run(env, events)
    except Exception as error:  # noqa: BLE001 - whatever a plugin raises is the finding
        return output.one_line(output.told(error))
    return None if env.fault is None else output.one_line(env.fault.message)


def _run(env: MujocoEnv, events: EventSubscription) -> None:
    env.stop_at(steps=TRIAL_STEPS)
    try:
        env.resume()
        deadline = time.monotonic() + _TRIAL_LIMIT_S
        while (left := deadline - time.monotonic()) > 0:
            try:
                event = events.get(left)
            except TimeoutError:
                return
            if isinstance(event, (StepLimitReached, FaultRaised)):
                return
    finally:
        env.pause()
