"""The models that come with mjhost, found by name.

Owns: ``demo`` (an arm with a gripper at a table full of loose things), ``humanoid`` (the heavy
model of the benchmarks) and ``pendulum`` (their light one). All are made of primitives and need no
other file.
Invariants: every name that ``names()`` lists compiles on every supported engine and raises no
warning in its first ten seconds without control.
Threads: constants, safe anywhere.
Failure: an unknown name is an ``UnknownNameError``; nothing is opened here.
Not a goal: running from inside a zip archive; the engine opens real files.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Final

from mjhost.errors import UnknownNameError, did_you_mean

_FILES: Final = {
    "demo": "demo/arm.xml",
    "humanoid": "humanoid.xml",
    "pendulum": "pendulum.xml",
}


def names() -> tuple[str, ...]:
    """The names of the bundled models, sorted."""
    return tuple(sorted(_FILES))


def path(name: str) -> Path:
    """The MJCF file of the bundled model ``name``.

    Raises:
        UnknownNameError: there is no such model; the message lists the near names.
    """
    try:
        relative = _FILES[name]
    except KeyError:
        raise UnknownNameError(
            f"no bundled model is called {name!r}; {did_you_mean(name, _FILES)}"
        ) from None
    return Path(str(files(__name__).joinpath(relative)))
