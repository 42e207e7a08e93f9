"""The live table of ``mjhost plugins --watch``.

Owns: the screen, between start and end of ``run``.
Invariants: the simulation runs in real time; a reload of plugins clears a fault and goes on, since
the edit may be the cure.
Threads: the main thread; reloads have their own.
Failure: what fails stays on the screen until it is repaired.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from typing import Final

from mjhost.cli.plugin_report import PluginsReport, found_failures, report_lines, wrapped
from mjhost.cli.reloads import Reloads
from mjhost.cli.terminal import Keyboard
from mjhost.cli.watching import Watch
from mjhost.env import MujocoEnv
from mjhost.env.phases import Phase
from mjhost.env.records import Fault
from mjhost.generation import PluginGeneration
from mjhost.plugins import PluginLoadReport

_TURN_S: Final = 0.25
_NEWS: Final = 5  # lines about reloads that are kept
_HOME_AND_CLEAR: Final = "\x1b[H\x1b[2J"
_OTHER_SCREEN: Final = "\x1b[?1049h"
_FIRST_SCREEN: Final = "\x1b[?1049l"


class PluginWatch:
    """One look after the other at the plugins of an env."""

    def __init__(
        self,
        env: MujocoEnv,
        loaded: PluginLoadReport,
        files: Watch,
        keyboard: Keyboard,
        *,
        debug: bool,
    ) -> None:
        self._env = env
        self._loaded = loaded
        self._files = files
        self._keyboard = keyboard
        self._debug = debug
        self._before = self._present()  # as of the begin of the newest reload
        self._reloads = Reloads(env)
        self._news: deque[str] = deque(maxlen=_NEWS)

    def run(self) -> None:
        """Shows the table until ``q`` or Ctrl-C."""
        self._files.follow(self._env.plugin_files)
        with self._keyboard:
            _draw(_OTHER_SCREEN)
            try:
                self._resume()
                while "q" not in self._turn():
                    pass
            except KeyboardInterrupt:
                pass
            finally:
                _draw(_FIRST_SCREEN)
                self._reloads.abandon()

    def _turn(self) -> str:
        if self._reloads.tell(self._tell):
            self._loaded = self._env.plugin_load_report or self._loaded
            self._files.follow(self._env.plugin_files)
            self._go_on()
        if not self._reloads.busy:
            self._before = self._present()
            self._reloads.begin_for(self._files.changes())
        _draw(_HOME_AND_CLEAR + "\n".join(self._lines()) + "\n")
        return self._keyboard.read(_TURN_S)

    def _present(self) -> tuple[PluginGeneration, Fault | None]:
        return self._env.generations.plugins, self._env.fault

    def _go_on(self) -> None:
        """After a reload that brought new plugins, unless it is they who have raised since."""
        (generation, fault), (old_generation, old_fault) = self._present(), self._before
        if generation != old_generation and (fault is None or fault is old_fault):
            self._resume()

    def _tell(self, line: str) -> None:
        self._news.append(f"{time.strftime('%H:%M:%S')} {line}")

    def _resume(self) -> None:
        try:
            self._env.clear_fault()
            self._env.resume()
        except Exception as error:  # noqa: BLE001 - of a plugin's on_resume: shown with the others
            self._tell(f"error: {error}")

    def _lines(self) -> list[str]:
        env, (columns, rows) = self._env, os.get_terminal_size(sys.stdout.fileno())
        info = env.info
        report = PluginsReport(
            model=info.source or "",
            engine=info.engine,
            steps=info.step_count,
            trial_failure=info.fault.message if info.fault is not None else None,
            plugins=env.plugin_statistics,
            failures=found_failures(self._loaded, env.plugin_diagnostics),
        )
        lines = report_lines(report, columns, debug=self._debug)
        lines += ["loading"] if info.phase is Phase.LOADING else []
        lines += (part for line in self._news for part in wrapped(line, columns))
        return [line[: columns - 1] for line in lines[: rows - 2]] + ["q ends it"]


def _draw(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
