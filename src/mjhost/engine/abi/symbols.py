"""The engine's functions that the bindings do not offer, typed, under one name for every version.

Owns: the calls that register, look up and open what ``mjplugin.h`` is about.
Invariants: no call here can reach a null dereference or an engine error through its arguments but
for the registrations, which are allowed under ``guard.no_exit`` only: outside of the bindings an
engine error ends the process. What the engine would not survive even there is refused in Python.
Threads: any. Looking up keeps the GIL, it neither waits nor calls back. Everything else gives it
up: registering waits for a lock that another thread may hold while it loads a library, and opening,
parsing, decoding run providers and decoders, which may be Python's and may be on other threads.
Failure: ``UnsupportedEngineError`` for an engine without these functions.
Not a goal: deciding what may be registered; only ``engine.registry`` calls the registrations.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any, Final

import mujoco

from mjhost import layout
from mjhost.engine.abi.structs import Address, Decoder, Encoder, Plugin, Provider, Resource, text
from mjhost.errors import InvalidArgumentError, UnsupportedEngineError

_ERROR_SIZE: Final = 1024
_NAME_LIMIT: Final = 1024  # mjMAXPLUGINNAME, of which one is the end
_INT: Final = ctypes.c_int
_STRING: Final = ctypes.c_char_p

# Two names: before 3.16 and since.
_REGISTER_PROVIDER: Final = ("mjp_registerResourceProvider", "mjp_registerProvider")
_PROVIDER_COUNT: Final = ("mjp_resourceProviderCount", "mjp_providerCount")
_FIND_PROVIDER: Final = ("mjp_getResourceProvider", "mjp_findProvider")
_PROVIDER_AT: Final = ("mjp_getResourceProviderAtSlot", "mjp_getProviderAtSlot")
_FIND_ARCHIVE: Final = ("mjp_findArchiveResourceProvider", "mjp_findArchiveProvider")


def _exported(*names: str) -> str:
    """The one of ``names`` that the engine exports."""
    library = layout.library()
    for name in names:
        if hasattr(library, name):
            return name
    raise UnsupportedEngineError(
        f"MuJoCo {mujoco.__version__} exports no function {' or '.join(names)}; "
        "reinstall mujoco from one wheel"
    )


def _keeping(names: str | tuple[str, ...], result: Any, *arguments: Any) -> Callable[..., Any]:
    """A function that is called with the GIL held."""
    return _function(ctypes.PYFUNCTYPE, names, result, arguments)


def _releasing(names: str | tuple[str, ...], result: Any, *arguments: Any) -> Callable[..., Any]:
    """A function that is called with the GIL given up."""
    return _function(ctypes.CFUNCTYPE, names, result, arguments)


def _function(
    factory: Callable[..., Any], names: str | tuple[str, ...], result: Any, arguments: Any
) -> Callable[..., Any]:
    # An own object each: argument types set on the library's attribute would be everybody's.
    name = _exported(*((names,) if isinstance(names, str) else names))
    found: Callable[..., Any] = factory(result, *arguments)((name, layout.library()))
    found.__name__ = name
    return found


def symbol_address(name: str) -> int:
    """Where an exported function starts, such as ``"mju_error"``: for machine code only.

    Raises:
        UnsupportedEngineError: the engine does not export it.
    """
    function = getattr(layout.library(), _exported(name))
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@functools.cache
def engine() -> Engine:
    """The functions of the loaded engine."""
    return Engine()


_SAFE: Final = 120  # bytes; twice that, with the engine's own words, is below where it cuts


def engine_text(message: str) -> bytes:
    """``message`` as the engine may carry it in an error.

    The compiler cuts its errors after some 500 bytes, in the middle of a character if it comes to
    that, and the bindings then know nothing better than ``UnicodeDecodeError``. So what might reach
    that far has no character of several bytes.
    """
    text = message.replace("\0", " ").encode("utf-8", "backslashreplace")
    return text if len(text) <= _SAFE else text.decode().encode("ascii", "backslashreplace")


class Engine:
    """Typed functions; an address is an ``int``, 0 for null, and a missing thing is ``None``."""

    def __init__(self) -> None:
        plugin, provider = ctypes.POINTER(Plugin), ctypes.POINTER(Provider)
        decoder, encoder = ctypes.POINTER(Decoder), ctypes.POINTER(Encoder)
        self._register_plugin = _releasing("mjp_registerPlugin", _INT, plugin)
        self._get_plugin = _keeping("mjp_getPlugin", plugin, _STRING, ctypes.POINTER(_INT))
        self._plugin_at = _keeping("mjp_getPluginAtSlot", plugin, _INT)
        self._plugin_count = _keeping("mjp_pluginCount", _INT)
        self._plugin_config = _keeping("mj_getPluginConfig", _STRING, Address, _INT, _STRING)
        self._register_provider = _releasing(_REGISTER_PROVIDER, _INT, provider)
        self._find_provider = _keeping(_FIND_PROVIDER, provider, _STRING)
        self._provider_at = _keeping(_PROVIDER_AT, provider, _INT)
        self._provider_count = _keeping(_PROVIDER_COUNT, _INT)
        self._find_archive = _keeping(_FIND_ARCHIVE, provider, _STRING)
        self._register_decoder = _releasing("mjp_registerDecoder", None, decoder)
        # Asks the decoders' `can_decode`, which may be Python's.
        self._find_decoder = _releasing("mjp_findDecoder", decoder, Address, _STRING)
        self._register_encoder = _releasing("mjp_registerEncoder", None, encoder)
        self._find_encoder = _keeping("mjp_findEncoder", encoder, _STRING, _STRING)
        self._resources()
        self._delete_spec = _releasing("mj_deleteSpec", None, Address)
        self._warning = _releasing("mju_warning", None, _STRING)
        self._set_thread_handler = _keeping("_mjPRIVATE_setTlsLogHandler", Address, Address)
        self._process_handler = _keeping("_mjPRIVATE_getGlobalLogHandler", Address)

    def _resources(self) -> None:
        report = (ctypes.c_char_p, ctypes.c_size_t)
        self._open = _releasing("mju_openResource", Address, _STRING, _STRING, Address, *report)
        pointer = ctypes.POINTER(ctypes.c_void_p)
        self._read = _releasing("mju_readResource", _INT, Address, pointer)
        self._close = _releasing("mju_closeResource", None, Address)
        size = ctypes.c_int64
        self._write = _releasing(
            "mju_writeResource", size, _STRING, _STRING, size, Address, *report
        )
        self._modified = _releasing("mju_isModifiedResource", _INT, Address, _STRING)
        self._parse = _releasing(
            "mj_parseXMLString", Address, _STRING, Address, ctypes.c_char_p, _INT
        )

    # -- plugins ---------------------------------------------------------------------------------

    def register_plugin(self, plugin: Plugin) -> int:
        """Registers for the life of the process; returns the slot, that of an equal one again.

        Contract: under ``guard.no_exit``; whether it failed is known from there. The engine keeps
        a copy of the struct and of its strings, so that only the thunks have to stay.

        Raises:
            InvalidArgumentError: the engine would end the process, guarded or not.
        """
        if not plugin.name or len(plugin.name) >= _NAME_LIMIT:
            raise InvalidArgumentError(
                f"a plugin needs a name of 1 to {_NAME_LIMIT - 1} bytes, got {text(plugin.name)!r}"
            )
        if plugin.nattribute and not plugin.attributes:
            raise InvalidArgumentError(
                f"plugin {text(plugin.name)} counts {plugin.nattribute} attributes and names none"
            )
        return int(self._register_plugin(plugin))

    def get_plugin(self, name: str) -> tuple[int, Plugin] | None:
        """Slot and the engine's own struct of a plugin; upper and lower case are the same."""
        slot = _INT(-1)
        found = self._get_plugin(_encoded("a plugin's name", name), slot)
        return (slot.value, found.contents) if found else None

    def plugin_at(self, slot: int) -> Plugin | None:
        """The engine's own struct in a slot."""
        found = self._plugin_at(slot)
        return found.contents if found else None

    def plugin_count(self) -> int:
        """How many are registered; slots are the numbers below."""
        return int(self._plugin_count())

    def plugin_config(self, model: int, instance: int, key: str) -> str | None:
        """Value of a configuration attribute: ``""`` if it is not set, ``None`` if there is none.

        Args:
            model: address of an ``mjModel``.
            instance: of the plugin in this model; what is out of range has no attribute.
            key: the attribute's name.
        """
        found = self._plugin_config(model, instance, _encoded("an attribute's name", key))
        return None if found is None else text(found)

    # -- providers -------------------------------------------------------------------------------

    def register_provider(self, provider: Provider) -> int:
        """Registers for the life of the process; returns the slot, -1 if it is no provider.

        Contract: under ``guard.no_exit``; whether it failed is known from there: a prefix that is
        taken returns a slot like any other.
        """
        return int(self._register_provider(provider))

    def find_provider(self, name: str) -> Provider | None:
        """The provider that a resource of this name comes from; ``None`` is the file system."""
        found = self._find_provider(_encoded("a resource's name", name))
        return found.contents if found else None

    def provider_at(self, slot: int) -> Provider | None:
        """The engine's own struct in a slot; the first is 1."""
        found = self._provider_at(slot)
        return found.contents if found else None

    def provider_count(self) -> int:
        """How many are registered."""
        return int(self._provider_count())

    def find_archive_provider(self, name: str) -> Provider | None:
        """What opens the archive ``name``: its ``prefix`` is the extension."""
        found = self._find_archive(_encoded("a resource's name", name))
        return found.contents if found else None

    # -- decoders and encoders -------------------------------------------------------------------

    def register_decoder(self, decoder: Decoder) -> None:
        """Registers for the life of the process: once per content type and extension in it.

        Contract: under ``guard.no_exit``, which alone knows whether it failed. If it did for one
        extension of several, those before it are registered.

        Raises:
            InvalidArgumentError: it has neither content type nor extension.
        """
        _claims("decoder", decoder)
        self._register_decoder(decoder)

    def find_decoder(self, resource: int, content_type: str = "") -> Decoder | None:
        """The decoder for a resource; a content type goes before the extension of its name.

        Args:
            resource: address of an ``mjResource``.
            content_type: none if empty.
        """
        # Neither is a warning, and null ends the process on 3.15.
        if not content_type and b"." not in (Resource.from_address(resource).name or b""):
            return None
        found = self._find_decoder(resource, _encoded("a content type", content_type))
        return found.contents if found else None

    def register_encoder(self, encoder: Encoder) -> None:
        """As ``register_decoder``."""
        _claims("encoder", encoder)
        self._register_encoder(encoder)

    def find_encoder(self, name: str, content_type: str = "") -> Encoder | None:
        """The encoder for a file name; a content type goes before its extension."""
        if not content_type and "." not in name:
            return None
        found = self._find_encoder(
            _encoded("a resource's name", name), _encoded("a content type", content_type)
        )
        return found.contents if found else None

    # -- resources -------------------------------------------------------------------------------

    def open_resource(self, name: str, *, directory: str = "", vfs: int = 0) -> tuple[int, str]:
        """Opens through the provider of its name: the address, or 0 and why not."""
        report = ctypes.create_string_buffer(_ERROR_SIZE)
        found = self._open(
            _encoded("a directory", directory),
            _encoded("a resource's name", name),
            vfs,
            report,
            _ERROR_SIZE,
        )
        return int(found), text(report.value)

    def read_resource(self, resource: int) -> bytes | None:
        """A copy of the bytes of an open resource; ``None`` if the provider failed."""
        start = ctypes.c_void_p()
        size = int(self._read(resource, start))
        if size < 0:
            return None
        return ctypes.string_at(start.value, size) if start.value else b""

    def close_resource(self, resource: int) -> None:
        """Closes what ``open_resource`` opened, once."""
        self._close(resource)

    def write_resource(self, name: str, content: bytes, *, vfs: int = 0) -> tuple[int, str]:
        """Writes through the provider of its name: bytes written, or -1 and why not."""
        report = ctypes.create_string_buffer(_ERROR_SIZE)
        encoded = _encoded("a resource's name", name)
        written = self._write(encoded, content, len(content), vfs, report, _ERROR_SIZE)
        return int(written), text(report.value)

    def is_modified_resource(self, resource: int, timestamp: bytes) -> int:
        """0 if an open resource is that of ``timestamp``; above if newer, below if older."""
        return int(self._modified(resource, timestamp))

    def parse_xml_string(self, xml: str, *, vfs: int = 0) -> tuple[int, str]:
        """Parses MJCF: the address of an ``mjSpec``, or 0; and the engine's complaint, if any.

        Contract: the spec is the caller's, who gives it to the engine or deletes it.
        """
        report = ctypes.create_string_buffer(_ERROR_SIZE)
        found = self._parse(_encoded("MJCF", xml), vfs, report, _ERROR_SIZE)
        return int(found), text(report.value)

    def delete_spec(self, spec: int) -> None:
        """Deletes what ``parse_xml_string`` made."""
        self._delete_spec(spec)

    # -- words -----------------------------------------------------------------------------------

    def warn(self, message: str) -> None:
        """Says ``message`` as a warning of the engine; what is longer than 1023 bytes is cut.

        During compilation it becomes part of the error, if the compilation fails.
        """
        # The text is the format: on some platforms variadic arguments travel in another way.
        self._warning(engine_text(message).replace(b"%", b"%%"))

    def set_thread_log_handler(self, handler: int) -> int:
        """Sets the calling thread's log handler, 0 for none; returns the one before.

        Contract: a handler stays for the life of the process.
        """
        return int(self._set_thread_handler(handler))

    def process_log_handler(self) -> int:
        """The log handler of threads that have none of their own."""
        return int(self._process_handler())


def _claims(what: str, struct: Decoder | Encoder) -> None:
    if not struct.content_type and not struct.extension:
        raise InvalidArgumentError(f"a {what} needs a content type or an extension, got neither")


def _encoded(what: str, value: str) -> bytes:
    encoded = value.encode("utf-8", "surrogateescape")
    if b"\0" in encoded:
        raise InvalidArgumentError(f"{what} cannot contain a null character, got {value[:80]!r}")
    return encoded
