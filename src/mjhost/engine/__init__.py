"""MuJoCo's own extension points in Python: engine plugins, callbacks, resources, codecs.

Usable with plain ``mujoco`` and under ``MujocoEnv``. Everything here is re-exported; the modules
below say what they own.

Invariants: importing this imports neither NumPy-heavy layers nor Numba; a name brings its module
along when it is first asked for. Nothing is registered with the engine before its memory layout was
compared with what mjhost knows about it (``abi.verify``).
Threads: declarations may come from any thread; each mechanism says where its methods run.
Failure: whatever a method raises is an ``EnginePluginError`` of the call that ran it, or of the
next ``check``; a declaration that cannot be right raises before anything is registered.
Not a goal: MJX and Warp, which run no CPU extension; ``support`` tells.
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mjhost.engine.attributes import attribute
    from mjhost.engine.backends import support
    from mjhost.engine.callbacks import callback, callback_scope
    from mjhost.engine.codecs import decoder, encoder
    from mjhost.engine.declaration import plugin
    from mjhost.engine.failures import check
    from mjhost.engine.libraries import load_library
    from mjhost.engine.providers import resource_provider
    from mjhost.engine.views.functions import mj
    from mjhost.errors import (
        EngineDeclarationError,
        EngineNameTakenError,
        EnginePluginError,
        NotCompilableError,
    )

__all__ = [
    "EngineDeclarationError",
    "EngineNameTakenError",
    "EnginePluginError",
    "NotCompilableError",
    "attribute",
    "callback",
    "callback_scope",
    "check",
    "decoder",
    "encoder",
    "load_library",
    "mj",
    "plugin",
    "resource_provider",
    "support",
]

# The same as above, for the interpreter; a test compares.
_HOMES: Final = {
    "mjhost.engine.attributes": ("attribute",),
    "mjhost.engine.callbacks": ("callback", "callback_scope"),
    "mjhost.engine.codecs": ("decoder", "encoder"),
    "mjhost.engine.declaration": ("plugin",),
    "mjhost.engine.failures": ("check",),
    "mjhost.engine.libraries": ("load_library",),
    "mjhost.engine.providers": ("resource_provider",),
    "mjhost.engine.backends": ("support",),
    "mjhost.engine.views.functions": ("mj",),
    "mjhost.errors": (
        "EngineDeclarationError",
        "EngineNameTakenError",
        "EnginePluginError",
        "NotCompilableError",
    ),
}
_HOME_OF: Final = {name: module for module, names in _HOMES.items() for name in names}

# Hidden from type checkers: for them a name that does not exist shall be an error.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        home = _HOME_OF.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        value = globals()[name] = getattr(importlib.import_module(home), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
