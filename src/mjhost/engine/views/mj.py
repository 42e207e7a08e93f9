"""MuJoCo's functions for code that the engine calls: ``mj.mj_jacBody(m, d, jacp, jacr, body)``.

Names, parameters and sizes are those of C; structs are views or ``mujoco.MjModel`` and
``mujoco.MjData``. What steps, resets, allocates or frees is missing, with the reason in the error.
A module, so that compiled code may use it as a global like any other.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    from mjhost.engine.views.functions import function

    found = globals()[name] = function(name)
    return found


def __dir__() -> list[str]:
    from mjhost.engine.views.functions import table

    return sorted(table())
