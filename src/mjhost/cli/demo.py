"""The command ``mjhost demo``: ``run`` with the bundled model and its three plugins."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from mjhost.cli.run import run
from mjhost.demo import PLUGIN_FILE


def _flags_of(command: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Gives a function the flags of ``command``, and none of its arguments, for typer to read."""
    signature = inspect.signature(command, eval_str=True)
    flags = [p for p in signature.parameters.values() if p.kind is inspect.Parameter.KEYWORD_ONLY]

    def dress(function: Callable[..., Any]) -> Callable[..., Any]:
        function.__signature__ = signature.replace(parameters=flags)  # type: ignore[attr-defined]
        function.__annotations__ = {flag.name: flag.annotation for flag in flags}
        return function

    return dress


@_flags_of(run)
def demo(**flags: Any) -> None:
    """Host the bundled arm with three plugins: an impedance controller, wind, an energy monitor.

    Takes every flag of `run`; --plugins adds to the three. Their sources, which `docs/plugins.md`
    explains, may be edited while it runs with --watch.

    * `mjhost demo`
    * `mjhost demo --watch`
    * `mjhost demo --seconds 10 --realtime 0 --json`
    """
    flags["plugins"] = [str(PLUGIN_FILE), *(flags["plugins"] or [])]
    run("demo", **flags)
