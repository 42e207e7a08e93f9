"""The structs of ``mjplugin.h``, and the C signature of every function pointer in them.

MuJoCo describes the rest of its memory in ``mujoco.introspect`` (see ``mjhost.layout``); these it
leaves out. They are the same in every supported version but for one signature, ``decode``.

Owns: the mirrors and the prototypes.
Invariants: every pointer to a function is a plain address in the mirror (``None`` if null); its
prototype has the same name in ``PROTOTYPES``. An address in a prototype is an ``int``, 0 if null.
A struct given to the engine is copied by it, but not what it points to: strings and thunks have to
live as long as the process.
Threads: immutable.
Failure: none here; ``verify`` compares them with what the engine itself has registered.
Not a goal: catching what a Python function raises. ctypes prints it and hands the engine whatever
was in the register, so that a thunk is made of a function that cannot raise.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import mujoco

Address: Final = ctypes.c_size_t
"""What prototypes call a pointer: unlike ``c_void_p``, null arrives as 0 and not as ``None``."""


def _members(*names: str) -> list[tuple[str, Any]]:
    return [(name, ctypes.c_void_p) for name in names]


def _prototype(result: Any, *arguments: Any) -> Any:
    return ctypes.CFUNCTYPE(result, *arguments)


class Plugin(ctypes.Structure):
    """``mjpPlugin``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("nattribute", ctypes.c_int),
        ("attributes", ctypes.POINTER(ctypes.c_char_p)),
        ("capabilityflags", ctypes.c_int),
        ("needstage", ctypes.c_int),
        *_members("nstate", "nsensordata", "init", "destroy", "copy", "reset", "compute"),
        *_members("advance", "visualize", "actuator_act_dot"),
        *_members("sdf_distance", "sdf_gradient", "sdf_staticdistance"),
        *_members("sdf_attribute", "sdf_aabb"),
    )

    @property
    def attribute_names(self) -> tuple[str, ...]:
        """The names of the configuration attributes, copied."""
        return tuple(text(self.attributes[index]) for index in range(self.nattribute))


class Provider(ctypes.Structure):
    """``mjpResourceProvider``."""

    _fields_ = (
        ("prefix", ctypes.c_char_p),
        *_members("open", "read", "close", "mount", "unmount", "modified", "write"),
        ("data", ctypes.c_void_p),
    )


class Resource(ctypes.Structure):
    """``mjResource``; ``Resource.from_address`` shows the one that a callback is given."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("vfs", ctypes.c_void_p),
        ("timestamp", ctypes.c_char * 512),
        ("provider", ctypes.POINTER(Provider)),
        ("args", ctypes.c_char_p),
    )


class Decoder(ctypes.Structure):
    """``mjpDecoder``."""

    _fields_ = (
        ("content_type", ctypes.c_char_p),
        ("extension", ctypes.c_char_p),
        *_members("can_decode", "decode"),
    )


class Encoder(ctypes.Structure):
    """``mjpEncoder``."""

    _fields_ = (
        ("content_type", ctypes.c_char_p),
        ("extension", ctypes.c_char_p),
        *_members("encode", "close_resource"),
    )


def text(value: bytes | None) -> str:
    """A string of the engine, readable whatever it holds; empty if null."""
    return (value or b"").decode("utf-8", "replace")


# -- signatures ----------------------------------------------------------------------------------

_INT: Final = ctypes.c_int
_DOUBLE: Final = ctypes.c_double
_RESOURCE: Final = _prototype(_INT, Address)

DECODE_REPORTS: Final = mujoco.mj_version() >= 3_016_000
"""Whether ``decode`` gets a buffer for the reason of a failure."""

PLUGIN_PROTOTYPES: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "nstate": _prototype(_INT, Address, _INT),
        "nsensordata": _prototype(_INT, Address, _INT, _INT),
        "init": _prototype(_INT, Address, Address, _INT),
        "destroy": _prototype(None, Address, _INT),
        "copy": _prototype(None, Address, Address, Address, _INT),
        "reset": _prototype(None, Address, Address, Address, _INT),
        "compute": _prototype(None, Address, Address, _INT, _INT),
        "advance": _prototype(None, Address, Address, _INT),
        "visualize": _prototype(None, Address, Address, Address, Address, _INT),
        "actuator_act_dot": _prototype(None, Address, Address, _INT),
        "sdf_distance": _prototype(_DOUBLE, Address, Address, _INT),
        "sdf_gradient": _prototype(None, Address, Address, Address, _INT),
        "sdf_staticdistance": _prototype(_DOUBLE, Address, Address),
        "sdf_attribute": _prototype(None, Address, Address, Address),
        "sdf_aabb": _prototype(None, Address, Address),
    }
)
PROVIDER_PROTOTYPES: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "open": _RESOURCE,
        "read": _prototype(_INT, Address, ctypes.POINTER(ctypes.c_void_p)),
        "close": _prototype(None, Address),
        "mount": _RESOURCE,
        "unmount": _RESOURCE,
        "modified": _prototype(_INT, Address, ctypes.c_char_p),
        "write": _prototype(ctypes.c_int64, Address, Address, ctypes.c_int64),
    }
)
DECODER_PROTOTYPES: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "can_decode": _RESOURCE,
        "decode": (
            _prototype(Address, Address, Address, Address, _INT)
            if DECODE_REPORTS
            else _prototype(Address, Address, Address)
        ),
    }
)
ENCODER_PROTOTYPES: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "encode": _prototype(ctypes.c_int64, Address, Address, Address, Address),
        "close_resource": _prototype(None, Address),
    }
)
PROTOTYPES: Final[Mapping[str, Any]] = MappingProxyType(
    {**PLUGIN_PROTOTYPES, **PROVIDER_PROTOTYPES, **DECODER_PROTOTYPES, **ENCODER_PROTOTYPES}
)
"""Every function of the five structs by its name there, arguments in the order of the header."""


def thunk(slot: str, function: Callable[..., Any]) -> Any:
    """Makes a C function of a Python function that takes what the header says.

    ``decode`` takes ``(resource, vfs, error=0, error_size=0)``: the latter two are not given where
    the engine has no place for the reason of a failure.

    Contract: keep what is returned for the life of the process, and let ``function`` not raise.
    """
    return PROTOTYPES[slot](function)


def address_of(function: Any) -> int:
    """Where a thunk, or any other ctypes function, starts."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0
