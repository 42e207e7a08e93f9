"""Engine structs as Python objects, for code that the engine calls with nothing but addresses.

``model_view`` and ``data_view`` give what looks like ``mujoco.MjModel`` and ``mujoco.MjData``; the
engine's functions that take them are in ``mj``. A name brings its module along when it is first
asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mjhost.engine.views.roots import DataView, ModelView, data_view, model_view
    from mjhost.engine.views.view import StructArray, View, view_class

__all__ = [
    "DataView",
    "ModelView",
    "StructArray",
    "View",
    "data_view",
    "model_view",
    "view_class",
]

_HOMES: Final = {
    "roots": ("DataView", "ModelView", "data_view", "model_view"),
    "view": ("StructArray", "View", "view_class"),
}
_HOME_OF: Final = {name: module for module, names in _HOMES.items() for name in names}

# Hidden from type checkers: for them a name that does not exist shall be an error.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        home = _HOME_OF.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        module = importlib.import_module(f"{__name__}.{home}")
        value = globals()[name] = getattr(module, name)
        return value
