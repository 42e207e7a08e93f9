"""The choice between Python and machine code for the engine plugins that come along.

Owns: ``bundled``, with which they are declared, and ``use``, which switches all of them.
Invariants: Python until somebody asks: what a program computes never depends on which packages are
installed. The numbers of both are the same to the bit; a switch changes the speed only.
Threads: any; models and data that exist follow. Contract: no data that use them are being stepped.
Failure: without Numba ``use(compiled=True)`` raises ``ImportError`` and nothing has changed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from mjhost.engine import registry
from mjhost.engine.declaration import declare

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Indices = NDArray[np.int32]
    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]
else:  # what the fields of a memo are called where they are compiled
    Indices = "int32[:]"
    Vector = "float64[:]"
    Matrix = "float64[:, :]"

ClassT = TypeVar("ClassT", bound=type)


class _Bundled(NamedTuple):
    """What a declaration is made of, to make it again."""

    cls: type
    capabilities: tuple[str, ...]
    stage: str | None


class _Choice:
    """The present choice and whom it concerns."""

    compiled = False
    plugins: Final[dict[str, _Bundled]] = {}


def bundled(name: str, *capabilities: str, stage: str | None = None) -> Callable[[ClassT], ClassT]:
    """``engine.plugin``, in the way that ``use`` has chosen."""
    frame = sys._getframe(1)

    def decorate(cls: ClassT) -> ClassT:
        _register(name, _Bundled(cls, capabilities, stage), _Choice.compiled, frame)
        _Choice.plugins[name] = _Bundled(cls, capabilities, stage)
        return cls

    return decorate


def use(*, compiled: bool) -> None:
    """Runs the bundled engine plugins as machine code, or as Python.

    Those that are imported later follow. Compiling takes about a second for each.

    Raises:
        ImportError: the extra ``fast`` is not installed.
    """
    if compiled == _Choice.compiled:
        return
    done: list[str] = []
    try:
        for name, plugin in _Choice.plugins.items():
            _register(name, plugin, compiled)
            done.append(name)
    except BaseException:
        for name in done:
            _register(name, _Choice.plugins[name], _Choice.compiled)
        raise
    _Choice.compiled = compiled


def is_compiled() -> bool:
    """What ``use`` has chosen."""
    return _Choice.compiled


def _register(
    name: str,
    plugin: _Bundled,
    compiled: bool,  # noqa: FBT001
    frame: FrameType | None = None,
) -> None:
    registry.register_plugin(
        declare(
            name,
            plugin.cls,
            plugin.capabilities,
            stage=plugin.stage,
            compiled=compiled,
            frame=frame,
        )
    )
