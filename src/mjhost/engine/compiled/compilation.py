"""A declared class, compiled."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from mjhost.engine.compiled import cache
from mjhost.engine.compiled.entries import COMPILED, compiled_entry
from mjhost.engine.compiled.face import errors, global_compiler_lock, nb
from mjhost.engine.compiled.fingerprints import fingerprint
from mjhost.engine.compiled.problems import not_compilable
from mjhost.engine.compiled.records import Packed, RecordLayout, StaticLayout
from mjhost.engine.compiled.selves import SelfType
from mjhost.errors import EngineDeclarationError, NotCompilableError

# Machine code that the engine may call as long as the process lives.
_IMMORTAL: Final[list[Any]] = []
_addresses: Final[dict[str, int]] = {}
_SERIAL: Final = itertools.count()


class CompiledMethods:
    """The entries of one declaration, and the records they need.

    Attributes:
        entries: machine code by method; for ever.
    """

    def __init__(self, layout: RecordLayout, entries: Mapping[str, int]) -> None:
        self._layout = layout
        self.entries = MappingProxyType(dict(entries))

    def pack(self, self_object: Any, *, model: int, data: int, instance: int) -> Packed:
        """The record of one ``self``: put its handle into ``plugin_data``, keep it with the data.

        Args:
            self_object: has the attributes, parts and memo that compiled code reads.
            model: address of the model.
            data: address of the data that this is for.
            instance: index of the plugin instance.

        Raises:
            TypeError: a value is not what was declared; the message names it.
        """
        return Packed(self._layout, self_object, model=model, data=data, instance=instance)


def compile_methods(declaration: Any) -> CompiledMethods:
    """Compiles the methods of a declaration that run in steps or while a model compiles.

    Raises:
        EngineDeclarationError: Numba is told not to compile anything.
        NotCompilableError: with file and line; nothing is left of it.
    """
    if nb.config.DISABLE_JIT:
        raise EngineDeclarationError(
            f"compiled=True of engine plugin {declaration.name!r}: NUMBA_DISABLE_JIT is set, "
            "so that Numba compiles nothing; unset it, or leave compiled=True out"
        )
    layout = RecordLayout(declaration.attributes, declaration.memo_type)
    kind = SelfType(declaration.cls, layout, declaration.methods)
    static = SelfType(declaration.cls, StaticLayout(declaration.attributes), declaration.methods)
    entries = {}
    for name in COMPILED:
        if name in declaration.methods:
            own = static if name == "sdf_static_distance" else kind
            entries[name] = _address(declaration, name, own)
    return CompiledMethods(layout, entries)


def _address(declaration: Any, name: str, kind: SelfType) -> int:
    """The machine code of one method: from this process, from the disk, or new."""
    print_ = fingerprint(declaration.methods[name], kind)
    if print_ is None:
        symbol = f"mjhost_{name}_{next(_SERIAL)}"
        return int(_compiled(declaration, name, kind, symbol).address)
    key = cache.key_of(print_, name)
    if key not in _addresses:
        _addresses[key] = cache.load(key) or _compiled_and_kept(declaration, name, kind, key)
    return _addresses[key]


def _compiled_and_kept(declaration: Any, name: str, kind: SelfType, key: str) -> int:
    made = _compiled(declaration, name, kind, cache.symbol_of(key))
    cache.store(key, made._library, made.native_name)
    return int(made.address)


def _compiled(declaration: Any, name: str, kind: SelfType, symbol: str) -> Any:
    function = declaration.methods[name]
    try:
        with global_compiler_lock, warnings.catch_warnings():
            warnings.simplefilter("ignore", errors.NumbaWarning)
            made = compiled_entry(name, function, kind, symbol)
    except NotCompilableError:
        raise
    except Exception as error:
        what = f"{declaration.cls.__qualname__}.{name} of {declaration.name!r}"
        raise not_compilable(error, function, what) from error
    _IMMORTAL.append(made)
    return made
