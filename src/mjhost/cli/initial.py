"""Initial joint states as they are given on the command line.

Failure: what cannot be read is a usage error that names it. Whether the joints exist is found when
the model is loaded.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer
import yaml

_HINT = "'--initial-state'"
_MOST_BYTES = 1 << 20


def initial_states(given: Iterable[str]) -> dict[str, Any] | None:
    """The states of ``JOINT=VALUE`` pairs and files, later ones on top; ``None`` for none."""
    states: dict[str, Any] = {}
    none = True
    for text in given:
        none = False
        joint, assigned, value = text.rpartition("=")
        states |= {joint: _numbers(text, joint, value)} if assigned else _file(Path(text))
    return None if none else states


def _numbers(pair: str, joint: str, text: str) -> list[float]:
    try:
        if not joint:
            raise ValueError
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(
            f"needs JOINT=NUMBER or numbers parted by commas, got {pair!r}", param_hint=_HINT
        ) from None


def _file(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise typer.BadParameter(
            f"needs JOINT=VALUE or a file, and {str(path)!r} is neither", param_hint=_HINT
        )
    if path.stat().st_size > _MOST_BYTES:
        raise typer.BadParameter(f"{path} is longer than {_MOST_BYTES} bytes", param_hint=_HINT)
    try:
        states = yaml.safe_load(path.read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise typer.BadParameter(f"{path} cannot be read: {error}", param_hint=_HINT) from error
    if not isinstance(states, dict) or not all(isinstance(name, str) for name in states):
        raise typer.BadParameter(
            f"{path} must map joint names to numbers, as in 'knee: 0.3'", param_hint=_HINT
        )
    return states
