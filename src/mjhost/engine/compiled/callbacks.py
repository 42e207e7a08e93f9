"""Callbacks as machine code: one C function per callback, called by the frame in front of it.

Owns: their calling convention: what the engine gives, then a place for the result; the status is
``entries.DONE`` or ``entries.RAISED``.
Invariants: as of ``entries``: no Python object, no GIL, no exception leaves. Names of the function
that are global or enclosed are constants from now on.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any, Final

from mjhost.engine.compiled.entries import DONE, RAISED
from mjhost.engine.compiled.face import FLAGS, errors, global_compiler_lock, nb, types
from mjhost.engine.compiled.pipeline import dispatcher
from mjhost.engine.compiled.problems import not_compilable
from mjhost.engine.compiled.views import data_at, model_at
from mjhost.errors import EngineDeclarationError, NotCompilableError

_IMMORTAL: Final[list[Any]] = []
_SERIAL: Final = itertools.count()
_PLACE: Final = types.CPointer(types.float64)
_POINTER, _INT = types.voidptr, types.int32


def _pair(function: Any) -> Callable[..., int]:
    def entry(model, data, result):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, ARG001
        try:
            function(model_at(model), data_at(model, data))
        except Exception:  # noqa: BLE001 - Numba has no other; it is replayed for its own
            return RAISED
        return DONE

    return entry


def _sensor(function: Any) -> Callable[..., int]:
    def entry(model, data, stage, result):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, ARG001
        try:
            function(model_at(model), data_at(model, data), nb.int64(stage))
        except Exception:  # noqa: BLE001 - as above
            return RAISED
        return DONE

    return entry


def _number(function: Any) -> Callable[..., int]:
    def entry(model, data, index, result):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        try:
            result[0] = float(function(model_at(model), data_at(model, data), nb.int64(index)))
        except Exception:  # noqa: BLE001 - as above
            return RAISED
        return DONE

    return entry


def _filter(function: Any) -> Callable[..., int]:
    def entry(model, data, geom1, geom2, result):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        try:
            drop = function(model_at(model), data_at(model, data), nb.int64(geom1), nb.int64(geom2))
            result[0] = 1.0 if drop != 0 else 0.0
        except Exception:  # noqa: BLE001 - as above
            return RAISED
        return DONE

    return entry


def _time(function: Any) -> Callable[..., int]:
    def entry(result):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        try:
            result[0] = float(function())
        except Exception:  # noqa: BLE001 - as above
            return RAISED
        return DONE

    return entry


_CONVENTIONS: Final[dict[str, tuple[Callable[[Any], Callable[..., int]], Any]]] = {
    "control": (_pair, _INT(_POINTER, _POINTER, _PLACE)),
    "passive": (_pair, _INT(_POINTER, _POINTER, _PLACE)),
    "sensor": (_sensor, _INT(_POINTER, _POINTER, _INT, _PLACE)),
    "contactfilter": (_filter, _INT(_POINTER, _POINTER, _INT, _INT, _PLACE)),
    "act_dyn": (_number, _INT(_POINTER, _POINTER, _INT, _PLACE)),
    "act_gain": (_number, _INT(_POINTER, _POINTER, _INT, _PLACE)),
    "act_bias": (_number, _INT(_POINTER, _POINTER, _INT, _PLACE)),
    "time": (_time, _INT(_PLACE)),
}


def compile_callback(kind: str, function: Callable[..., Any], what: str) -> int:
    """Compiles a callback; the address of its machine code, for ever.

    Args:
        kind: name of the callback kind.
        function: what the user wrote.
        what: how messages call it.

    Raises:
        EngineDeclarationError: Numba is told not to compile anything.
        NotCompilableError: with file and line; nothing is left of it.
    """
    if nb.config.DISABLE_JIT:
        raise EngineDeclarationError(
            f"compiled=True of {what}: NUMBA_DISABLE_JIT is set, so that Numba compiles nothing; "
            "unset it, or leave compiled=True out"
        )
    make, signature = _CONVENTIONS[kind]
    try:
        with global_compiler_lock, warnings.catch_warnings():
            warnings.simplefilter("ignore", errors.NumbaWarning)
            entry = make(dispatcher(function))
            entry.__name__ = entry.__qualname__ = f"mjhost_callback_{kind}_{next(_SERIAL)}"
            made = nb.cfunc(signature, **FLAGS)(entry)
    except NotCompilableError:
        raise
    except Exception as error:
        raise not_compilable(error, function, what) from error
    _IMMORTAL.append(made)
    address: int = made.address
    return address
