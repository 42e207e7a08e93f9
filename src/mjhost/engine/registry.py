"""The only place that registers anything with the engine.

Owns: the names of everything mjhost registered, with their origins; what is behind each plugin name
and its frozen shape; the exchange of an implementation.
Invariants: a registration cannot end the process: what the engine would refuse is refused before,
and the rest is made where an engine error comes back. A name belongs to one origin for the life of
the process. Nothing is registered before ``abi.verify`` has passed.
Threads: any; one lock.
Failure: ``EngineNameTakenError`` names both origins, every time; ``EngineDeclarationError`` for a
changed shape says how it differs. The engine and the present implementation are as before.
Not a goal: unregistering, which the engine cannot do.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from mjhost.callbacks.native import immortal
from mjhost.engine import failures, frames, trampolines
from mjhost.engine.abi.guard import no_exit
from mjhost.engine.abi.structs import (
    PROTOTYPES,
    Decoder,
    Encoder,
    Plugin,
    Provider,
    address_of,
    text,
)
from mjhost.engine.abi.symbols import engine, symbol_address
from mjhost.engine.abi.verify import verify
from mjhost.engine.declaration import Declaration, Origin, declare
from mjhost.engine.lives import Lives
from mjhost.engine.methods import METHODS
from mjhost.errors import (
    EngineDeclarationError,
    EngineNameTakenError,
    UnknownNameError,
    did_you_mean,
)

_lock = threading.RLock()
_plugins: Final[dict[str, Registered]] = {}
_others: Final[dict[tuple[str, str], str]] = {}  # kind and name → origin

# Slots that exist whatever the class defines; the others are null where it does not.
_ALWAYS: Final = ("nstate", "init", "destroy", "copy", "reset", "compute")
_SDF: Final = ("sdf_distance", "sdf_gradient", "sdf_staticdistance", "sdf_attribute", "sdf_aabb")
# Slots that may have a compiled method, all but one under the name of the method, and the index of
# the data among the arguments.
_COMPILED: Final[Mapping[str, int | None]] = {
    "compute": 1,
    "advance": 1,
    "actuator_act_dot": 1,
    "sdf_distance": 1,
    "sdf_gradient": 2,
    "sdf_staticdistance": None,
}
_DRAIN_S: Final = 1.0


class Registered:
    """One plugin name.

    Attributes:
        declaration: the present implementation.
        slot: the engine's number.
        generation: of the implementation, from 1.
        lives: its instances.
    """

    def __init__(self, declaration: Declaration, lives: Lives) -> None:
        self.shape = declaration.shape
        self.lives = lives
        self.slot = -1
        self.generation = 1
        self.struct: Plugin | None = None  # the engine's own
        self.addresses: dict[str, int] = {}
        self.cells: dict[str, ctypes.c_uint64] = {}

    @property
    def declaration(self) -> Declaration:
        """The present implementation."""
        return self.lives.declaration

    @property
    def origin(self) -> Origin:
        """Where the present implementation stands."""
        return self.declaration.origin


def _free_lock() -> None:
    """In a forked child nobody holds it, whatever a vanished thread did."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_free_lock)


# -- plugins -------------------------------------------------------------------------------------


def register_plugin(declaration: Declaration) -> Registered:
    """Registers a declaration, or puts it behind its name if that is of the same class and file.

    Raises:
        EngineNameTakenError: the name is something else's.
        EngineDeclarationError: it is the same class, in another shape.
        NotCompilableError: it is to be compiled, and cannot be.
    """
    verify()
    with _lock:
        known = _plugins.get(declaration.name.lower())
        if known is None:
            _refuse_foreign(declaration)
            return _register(declaration)
        same_name = known.declaration.name == declaration.name
        if not same_name or not known.origin.is_same_source(declaration.origin):
            raise _taken("engine plugin", declaration.name, str(known.origin), declaration.origin)
        return _exchange(known, declaration)


def reload(name: str, cls: type) -> Registered:
    """Puts ``cls`` behind a name that mjhost registered, wherever it comes from.

    Contract: between steps of the data that use it.

    Raises:
        UnknownNameError: there is no such name.
        EngineDeclarationError: ``cls`` cannot be a plugin, or not in that shape.
    """
    known = plugin(name)
    present = known.declaration
    made = declare(
        present.name,
        cls,
        present.capabilities,
        stage=present.stage,
        compiled=present.compiled,
    )
    with _lock:
        return _exchange(known, made)


def plugin(name: str) -> Registered:
    """What is registered under a name.

    Raises:
        UnknownNameError: mjhost has not registered it.
    """
    known = _plugins.get(name.lower())
    if known is None:
        names = [entry.declaration.name for entry in _plugins.values()]
        raise UnknownNameError(
            f"no engine plugin {name!r} was registered by mjhost; {did_you_mean(name, names)}"
        )
    return known


def plugins() -> Mapping[str, Registered]:
    """Every plugin that mjhost registered, by name."""
    with _lock:
        return MappingProxyType({e.declaration.name: e for e in _plugins.values()})


def _refuse_foreign(declaration: Declaration) -> None:
    found = engine().get_plugin(declaration.name)
    if found is not None:
        slot, struct = found
        code = struct.compute or struct.init or 0
        origin = f"{text(struct.name)!r} in slot {slot}, {_code_at(code)}"
        raise _taken("engine plugin", declaration.name, origin, declaration.origin)


def _code_at(address: int) -> str:
    from mjhost.callbacks.symbols import code_at

    return code_at(address) if address else "without code"


def _taken(what: str, name: str, holder: str, wanted: object) -> EngineNameTakenError:
    return EngineNameTakenError(
        f"the {what} {name!r} of {wanted} cannot be registered: the name belongs to {holder}, for "
        "the life of the process (upper and lower case are the same); choose another name"
    )


def _register(declaration: Declaration) -> Registered:
    entry = Registered(declaration, Lives(declaration, _compiled(declaration)))
    _make_code(entry)
    struct = Plugin()
    struct.name = declaration.name.encode()
    names = [name.encode() for name in declaration.attributes]
    struct.nattribute = len(names)
    struct.attributes = (ctypes.c_char_p * max(1, len(names)))(*names)
    struct.capabilityflags = declaration.flags
    struct.needstage = declaration.need_stage
    for slot in _slots(declaration):
        setattr(struct, slot, entry.addresses[slot])
    with no_exit() as said:
        entry.slot = engine().register_plugin(immortal(struct))
    if said.failed or entry.slot < 0:
        raise EngineNameTakenError(
            f"the engine refuses the engine plugin {declaration.name!r} of {declaration.origin}: "
            f"{said.message or 'without a reason'}"
        )
    entry.struct = engine().plugin_at(entry.slot)
    _plugins[declaration.name.lower()] = immortal(entry)
    return entry


def _slots(declaration: Declaration) -> tuple[str, ...]:
    """The slots that are not null for a declaration."""
    chosen = [METHODS[name].slot for name in declaration.methods if name in METHODS]
    sensor = ("nsensordata",) if "sensor" in declaration.capabilities else ()
    sdf = _SDF if "sdf" in declaration.capabilities else ()
    return tuple(dict.fromkeys((*_ALWAYS, *sensor, *sdf, *chosen)))


def _make_code(entry: Registered) -> None:
    """Makes what the engine enters for a name, once: every slot, whether it is used or not."""
    thunks = trampolines.make(entry.lives)
    for slot, function in thunks.items():
        entry.addresses[slot] = address_of(immortal(PROTOTYPES[slot](function)))
    if frames.available():
        entry.cells = {slot: immortal(ctypes.c_uint64(0)) for slot in _COMPILED}
        retries = {
            slot: trampolines.retrying(entry.lives, slot, thunks[slot], data_at)
            for slot, data_at in _COMPILED.items()
            if data_at is not None
        }
        entry.addresses |= frames.build(thunks, retries, entry.cells)
    _point_cells(entry)


def _compiled(declaration: Declaration) -> Any:
    if not declaration.compiled:
        return None
    try:
        from mjhost.engine.compiled import compile_methods
    except ImportError as error:
        raise ImportError(
            f"compiled=True of engine plugin {declaration.name!r} needs Numba: "
            f"pip install 'mjhost[fast]' ({error})"
        ) from error
    return compile_methods(declaration)


def _point_cells(entry: Registered) -> None:
    compiled = entry.lives.compiled
    entries = {} if compiled is None else compiled.entries
    for name, method in METHODS.items():
        if method.slot in entry.cells:
            entry.cells[method.slot].value = entries.get(name, 0)


def _exchange(entry: Registered, declaration: Declaration) -> Registered:
    difference = entry.shape.difference(declaration.shape)
    if difference:
        raise EngineDeclarationError(
            f"engine plugin {declaration.name!r} cannot be replaced by {declaration.origin}: the "
            f"shape of a name is frozen when it is registered, and {difference}; give the new one "
            "another name, or start a new process"
        )
    compiled = _compiled(declaration)
    for cell in entry.cells.values():
        cell.value = 0
    entry.lives.implement(declaration, compiled)
    _point_cells(entry)
    entry.generation += 1
    wanted = _slots(declaration)
    for slot, address in entry.addresses.items():
        # The engine's own table: models and data follow at once, a store is one instruction.
        setattr(entry.struct, slot, address if slot in wanted else None)
    return entry


# -- providers, decoders, encoders ---------------------------------------------------------------


def register_provider(provider: Provider, origin: object) -> int:
    """Registers a resource provider; returns its slot. The struct is kept for ever.

    Raises:
        EngineNameTakenError: the prefix is another's.
        EngineDeclarationError: the engine does not accept it.
    """
    prefix = text(provider.prefix)
    slot: int = _register_other(
        "resource provider",
        (prefix,),
        origin,
        lambda: engine().register_provider(provider),
        provider,
    )
    return slot


def register_decoder(decoder: Decoder, origin: object) -> None:
    """Registers a decoder. The struct is kept for ever.

    Raises:
        EngineNameTakenError: the content type or an extension is another's.
        EngineDeclarationError: the engine does not accept it.
    """
    names = _claimed(decoder)
    _register_other("decoder", names, origin, lambda: engine().register_decoder(decoder), decoder)


def register_encoder(encoder: Encoder, origin: object) -> None:
    """Registers an encoder. The struct is kept for ever.

    Raises:
        EngineNameTakenError: the content type or an extension is another's.
        EngineDeclarationError: the engine does not accept it.
    """
    names = _claimed(encoder)
    _register_other("encoder", names, origin, lambda: engine().register_encoder(encoder), encoder)


def _claimed(struct: Decoder | Encoder) -> tuple[str, ...]:
    extensions = text(struct.extension).split("|")
    return tuple(name for name in (text(struct.content_type), *extensions) if name)


def _register_other(
    kind: str, names: tuple[str, ...], origin: object, register: Callable[[], Any], struct: Any
) -> Any:
    verify()
    with _lock:
        for name in names:
            holder = _others.get((kind, name.lower()))
            if holder is not None:
                raise _taken(kind, name, holder, origin)
        with no_exit() as said:
            slot = register()
        if said.failed:
            raise _taken(kind, "|".join(names), f"the engine ({said.message})", origin)
        if isinstance(slot, int) and slot < 0:
            raise EngineDeclarationError(
                f"the engine refuses the {kind} {'|'.join(names)!r} of {origin}: "
                f"{said.message or 'without a reason'}"
            )
        immortal(struct)
        _others.update(dict.fromkeys(((kind, name.lower()) for name in names), str(origin)))
        return slot


def others() -> Mapping[tuple[str, str], str]:
    """Providers, decoders and encoders that mjhost registered: (kind, name) → origin."""
    with _lock:
        return MappingProxyType(dict(_others))


# -- the end -------------------------------------------------------------------------------------


def _close() -> None:
    """The engine enters Python no more: data die, and threads may step, after the interpreter."""
    nothing = _does_nothing()
    with _lock:
        for entry in _plugins.values():
            for slot in entry.addresses:
                if entry.struct is not None and getattr(entry.struct, slot):
                    setattr(entry.struct, slot, nothing)
    end = time.monotonic() + _DRAIN_S
    time.sleep(0.001)  # gives up the GIL for those that are on their way in
    while frames.inside() > 0 and time.monotonic() < end:
        time.sleep(0.001)
    failures.log_the_rest()


def _does_nothing() -> int:
    """A C function that looks at no argument and returns 0."""
    return ctypes.cast(ctypes.CDLL(None).sched_yield, ctypes.c_void_p).value or symbol_address(
        "mj_version"
    )


atexit.register(_close)
