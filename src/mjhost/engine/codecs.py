"""Decoders and encoders: files that become specs, and specs that become files, in Python.

Owns: ``decoder``, ``encoder``, what is declared with them, and the bytes of encoders until the
engine has written them.
Invariants: the C functions of a codec are made once and stay for the life of the process; declaring
it again from the same place swaps the function behind them. The engine owns the spec it is given: a
copy.
Threads: the engine decodes the meshes of a model on several threads at once; functions have to
stand that. No lock is held while they run.
Failure: what a decoder raises makes the load fail with its message; MuJoCo 3.15 takes no message
from the decoder of a whole model or from an encoder: there it is a warning, and waits for
``engine.check`` (see ``surfacing``). Nothing is written by an encoder that fails.
Not a goal: looking into files to tell formats apart: the engine goes by content type and extension.
"""

from __future__ import annotations

import ctypes
import inspect
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final, TypeVar

import mujoco

from mjhost.callbacks.native import immortal
from mjhost.callbacks.symbols import code_at
from mjhost.engine import registry, specs, surfacing
from mjhost.engine.abi.structs import Decoder, Encoder, Resource, address_of, thunk
from mjhost.engine.abi.symbols import engine
from mjhost.engine.declaration import Origin
from mjhost.engine.entrances import guarded
from mjhost.engine.meshes import Mesh, spec_of
from mjhost.engine.providers import (
    DEFAULT_LIMIT,
    check_call,
    origin_of,
    resource_name,
)
from mjhost.errors import (
    EngineDeclarationError,
    EngineNameTakenError,
    EnginePluginError,
    InvalidArgumentError,
)

__all__ = ["Mesh", "decoder", "encoder", "hint", "model_suffixes", "prepare"]

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_EXTENSION: Final = re.compile(r"\.[A-Za-z0-9_+-]+")
_CONTENT_TYPE: Final = re.compile(r"[\w.+-]+/[\w.+-]+", re.ASCII)
_BUNDLED: Final = {".off": "off", ".ply": "ply", ".mjsqlite": "mjsqlite"}
_BUNDLED_MODELS: Final = frozenset({".mjsqlite"})


def decoder(
    extension: str,
    content_type: str,
    *,
    meshes_only: bool = False,
    max_bytes: int = DEFAULT_LIMIT,
) -> Callable[[FunctionT], FunctionT]:
    """Declares a function ``decode(content, name)`` that reads files of one kind.

    It gets the bytes and the name of the resource, and returns an ``MjSpec``, MJCF text, or a mesh
    as ``(vertices, faces)``: shapes ``(n, 3)``, m, and vertex indices from 0. The engine uses it
    for ``<mesh file>``, taking the first mesh of the spec, for ``<model file>`` and for
    ``MjSpec.from_file``; not for ``MjModel.from_xml_path``. A spec that is returned cannot bring
    ``assets`` along; a resource provider can serve them.

    Args:
        extension: with the dot; several are separated by ``|``.
        content_type: what ``<mesh content_type>`` may name instead, such as ``model/off``.
        meshes_only: files of this kind are no models.
        max_bytes: a file that is larger is refused.

    Raises:
        EngineDeclarationError: the function cannot be called like that.
        EngineNameTakenError: extension or content type have another decoder, or are MuJoCo's own.
        InvalidArgumentError: they cannot be.

    Contract: called on any thread, several at once, with no lock held.
    """
    extensions = _checked_names("decoder", extension, content_type, max_bytes)

    def declare(function: FunctionT) -> FunctionT:
        origin = origin_of(function)
        check_call(f"decoder {extension!r}, {origin}:", function, ("content", "name"))
        made = _DecoderImplementation(function, origin, max_bytes, meshes_only)
        _declare(_decoders, _Decoder, extensions, content_type, made)
        return function

    return declare


def encoder(extension: str, content_type: str) -> Callable[[FunctionT], FunctionT]:
    """Declares a function that turns a spec into the bytes of a file.

    Behind ``MjSpec.encode(filename, model)``. What the function gets, it says by the names of its
    arguments, any of:

    * ``spec``: an ``MjSpec`` with the files it refers to as its ``assets``;
    * ``model``: the ``MjModel`` that ``encode`` was given, or ``None``;
    * ``xml``: the spec as MJCF text, numbers with 17 digits, written by the engine;
    * ``assets``: the files that this text refers to, by name;
    * ``name``: the file name that ``encode`` was given.

    All are copies. A spec that was not compiled yet is compiled on the side.

    Args:
        extension: with the dot; several are separated by ``|``.
        content_type: what ``encode(..., content_type=...)`` may name instead.

    Raises:
        EngineDeclarationError: the function asks for something else.
        EngineNameTakenError: extension or content type have another encoder, or are MuJoCo's own.
        InvalidArgumentError: they cannot be.

    Contract: called on the thread that encodes, with no lock held.
    """
    extensions = _checked_names("encoder", extension, content_type, DEFAULT_LIMIT)

    def declare(function: FunctionT) -> FunctionT:
        origin = origin_of(function)
        made = _EncoderImplementation(function, origin, _wanted(extension, function, origin))
        _declare(_encoders, _Encoder, extensions, content_type, made)
        return function

    return declare


# -- for those who open files --------------------------------------------------------------------


def model_suffixes() -> frozenset[str]:
    """Extensions of models that a decoder reads, with the dot, in lower case; bundled ones too.

    A file of this kind is opened with ``MjSpec.from_file``, after ``prepare``.
    """
    declared = {
        extension
        for extension, found in _decoders.items()
        if extension.startswith(".") and not found.meshes_only
    }
    return _BUNDLED_MODELS | declared


def prepare(name: str) -> None:
    """Registers the bundled decoder that a file of this name needs, if it has none."""
    suffix = PurePosixPath(name).suffix.lower()
    if suffix in _BUNDLED and suffix not in _decoders:
        __import__(f"mjhost.engine.builtin.{_BUNDLED[suffix]}")


def hint(reason: str) -> str:
    """What to add to an engine error about a file without a decoder; empty for other errors."""
    found = re.search(r"no decoder found for mesh file '([^']*)'", reason)
    if found is None:
        return ""
    suffix = PurePosixPath(found[1]).suffix.lower()
    known = sorted({".obj", ".stl", *(name for name in _decoders if name.startswith("."))})
    if suffix in _BUNDLED:
        return f"import mjhost.engine.builtin.{_BUNDLED[suffix]} to read {suffix} files"
    return (
        f"{suffix or 'a name without an extension'!r} has no decoder, only {', '.join(known)}; "
        "declare one with mjhost.engine.decoder, or convert the file"
    )


# -- declaring -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _DecoderImplementation:
    function: Callable[[bytes, str], Any]
    origin: Origin
    max_bytes: int
    meshes_only: bool


@dataclass(frozen=True, slots=True)
class _EncoderImplementation:
    function: Callable[..., Any]
    origin: Origin
    wanted: tuple[str, ...]


_decoders: Final[dict[str, _Decoder]] = {}
_encoders: Final[dict[str, _Encoder]] = {}
_declaring: Final = threading.Lock()


def _checked_names(what: str, extension: str, content_type: str, max_bytes: int) -> tuple[str, ...]:
    extensions = tuple(extension.split("|")) if isinstance(extension, str) else ()
    if not extensions or not all(map(_EXTENSION.fullmatch, extensions)):
        raise InvalidArgumentError(
            f"the extension of {what} is a dot and letters, digits, '_', '+' or '-', several "
            f"separated by '|', got {extension!r}"
        )
    if not isinstance(content_type, str) or not _CONTENT_TYPE.fullmatch(content_type):
        raise InvalidArgumentError(
            f"the content type of {what} {extension!r} is like 'model/obj', got {content_type!r}"
        )
    if not isinstance(max_bytes, int) or max_bytes <= 0:
        raise InvalidArgumentError(f"max_bytes is a positive number, got {max_bytes!r}")
    return tuple(dict.fromkeys(name.lower() for name in extensions))


def _wanted(extension: str, function: Any, origin: Origin) -> tuple[str, ...]:
    """Names of the arguments, all of them known."""
    what = f"encoder {extension!r}, {origin}"
    if not callable(function) or inspect.iscoroutinefunction(function):
        raise EngineDeclarationError(f"{what}: a plain function encodes, got {function!r}")
    parameters = inspect.signature(function).parameters.values()
    wanted = tuple(
        item.name
        for item in parameters
        if item.kind in {item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY}
        and (item.name in specs.ENCODABLE or item.default is item.empty)
    )
    unknown = [name for name in wanted if name not in specs.ENCODABLE]
    if unknown or not wanted:
        raise EngineDeclarationError(
            f"{what}: the arguments are any of {', '.join(specs.ENCODABLE)}, got "
            f"({', '.join(item.name for item in parameters)})"
        )
    return wanted


def _declare(
    table: dict[str, Any], kind: Any, extensions: tuple[str, ...], content_type: str, made: Any
) -> None:
    keys = (*extensions, content_type.lower())
    with _declaring:
        known = {id(table[key]): table[key] for key in keys if key in table}
        if not known:
            _refuse_engines_own(kind, keys, made.origin)
            codec = kind(extensions, content_type, made)
            codec.register()
            table.update(dict.fromkeys(keys, immortal(codec)))
            return
        for codec in known.values():
            if not codec.origin.is_same_source(made.origin) or set(codec.keys) != set(keys):
                raise EngineNameTakenError(
                    f"{kind.what} for {', '.join(keys)} of {made.origin}: "
                    f"{', '.join(codec.keys)} belong to {codec.origin}, for the life of the process"
                )
            codec.now = made


def _refuse_engines_own(kind: Any, keys: tuple[str, ...], origin: Origin) -> None:
    # The engine would register the names before the one that it refuses.
    for key in keys:
        code = kind.native(key)
        if code:
            raise EngineNameTakenError(
                f"{kind.what} for {', '.join(keys)} of {origin}: {key} is the engine's own or of a "
                f"native library ({code_at(code)}), for the life of the process"
            )


def _extension_and_type(key: str) -> tuple[str, str]:
    return (f"x{key}", "") if key.startswith(".") else ("x", key)


# -- one decoder ---------------------------------------------------------------------------------


class _Decoder:
    """A decoder: its function of the moment and its C functions, which must not raise."""

    what = "decoder"

    def __init__(
        self, extensions: tuple[str, ...], content_type: str, now: _DecoderImplementation
    ) -> None:
        self.keys = (*extensions, content_type.lower())
        self.now = now
        self._strings = content_type.encode(), "|".join(extensions).encode()
        self._thunks = (thunk("decode", self._on_decode),)
        addresses = [_always(), *map(address_of, self._thunks)]
        self.struct = Decoder(*self._strings, *addresses)

    @property
    def origin(self) -> Origin:
        """Where the function stands."""
        return self.now.origin

    @staticmethod
    def native(key: str) -> int:
        """The code of what the engine has for an extension or content type, 0 for nothing."""
        name, content_type = _extension_and_type(key)
        resource = Resource(name=name.encode())
        found = engine().find_decoder(ctypes.addressof(resource), content_type)
        return (found.decode or 0) if found else 0

    @property
    def meshes_only(self) -> bool:
        """Whether it reads no models."""
        return self.now.meshes_only

    def register(self) -> None:
        """Makes it known to the engine."""
        registry.register_decoder(self.struct, self.origin)

    @guarded
    def _on_decode(self, address: int, _vfs: int, report: int = 0, size: int = 0) -> int:
        try:
            return self._decoded(address, resource_name(Resource.from_address(address)))
        except BaseException as error:  # noqa: BLE001
            name = resource_name(Resource.from_address(address))
            failure = surfacing.failure(f"decoder {self.keys[0]!r}", "decode", name, error)
            if report and size > 0:
                surfacing.write_report(failure, report, size)
                surfacing.reached(failure, name)
            else:
                surfacing.cry(failure, name)
            return 0

    def _decoded(self, address: int, name: str) -> int:
        content = engine().read_resource(address)
        if content is None:
            raise _unreadable(surfacing.forget(name))
        if len(content) > self.now.max_bytes:
            raise ValueError(
                f"it has {len(content)} bytes, at most {self.now.max_bytes} are allowed"
            )
        return _engine_spec(self.now.function(content, name), name)


def _unreadable(reason: EnginePluginError | None) -> BaseException:
    """What is raised where a resource cannot be read; an interrupt of its provider stays one."""
    if reason is None:
        return FileNotFoundError("it cannot be read")
    if isinstance(reason.__cause__, Exception | None):
        error = FileNotFoundError(str(reason))
        error.__cause__ = reason
        return error
    return reason.__cause__


def _always() -> int:
    """A C function that looks at no argument and returns a positive number."""
    return address_of(ctypes.CDLL(None).getpid)


def _engine_spec(result: Any, name: str) -> int:
    """A spec of the engine's own, made of what a decoder returned."""
    if isinstance(result, str):
        spec, complaint = engine().parse_xml_string(result)
        if not spec:
            raise ValueError(f"the MJCF that it returned is none: {complaint}")
        return spec
    if isinstance(result, tuple) and len(result) == 2:
        stem = PurePosixPath(name).stem
        result = spec_of(Mesh(*result), surfacing.one_line(stem) or "mesh")
    if not isinstance(result, mujoco.MjSpec):
        raise TypeError(
            "a decoder returns an MjSpec, MJCF text or (vertices, faces), got "
            f"{type(result).__name__}"
        )
    if result.assets:
        raise ValueError(
            f"the spec has assets ({', '.join(sorted(result.assets)[:3])}), which the engine does "
            "not take from a decoder; serve them with a resource provider and refer to them there"
        )
    return specs.copied(result)


# -- one encoder ---------------------------------------------------------------------------------


class _Encoder:
    """An encoder: its function of the moment, its C functions, the bytes that are being written."""

    what = "encoder"

    def __init__(
        self, extensions: tuple[str, ...], content_type: str, now: _EncoderImplementation
    ) -> None:
        self.keys = (*extensions, content_type.lower())
        self.now = now
        self._strings = content_type.encode(), "|".join(extensions).encode()
        self._written: dict[int, bytes] = {}
        self._thunks = (thunk("encode", self._on_encode), thunk("close_resource", self._on_close))
        addresses = [address_of(made) for made in self._thunks]
        self.struct = Encoder(*self._strings, *addresses)

    @property
    def origin(self) -> Origin:
        """Where the function stands."""
        return self.now.origin

    @staticmethod
    def native(key: str) -> int:
        """The code of what the engine has for an extension or content type, 0 for nothing."""
        found = engine().find_encoder(*_extension_and_type(key))
        return (found.encode or 0) if found else 0

    def register(self) -> None:
        """Makes it known to the engine."""
        registry.register_encoder(self.struct, self.origin)

    @guarded
    def _on_encode(self, spec: int, model: int, vfs: int, address: int) -> int:
        try:
            resource = Resource.from_address(address)
            content = self._encoded(specs.Encodable(spec, model, vfs, resource_name(resource)))
            self._written[address] = content
            resource.data = ctypes.cast(ctypes.c_char_p(content), ctypes.c_void_p).value
            return len(content)
        except BaseException as error:  # noqa: BLE001
            name = resource_name(Resource.from_address(address))
            failure = surfacing.failure(f"encoder {self.keys[0]!r}", "encode", name, error)
            self._close(address)
            surfacing.cry(failure, name)
            return -1

    def _encoded(self, source: specs.Encodable) -> bytes:
        now = self.now
        content = now.function(**{name: getattr(source, name) for name in now.wanted})
        if not isinstance(content, bytes | bytearray | memoryview):
            raise TypeError(f"an encoder returns bytes, got {type(content).__name__}")
        if not len(content):
            raise ValueError(
                "an encoder returns at least one byte; the engine takes none for failure"
            )
        return bytes(content)

    @guarded
    def _on_close(self, address: int) -> None:
        try:
            self._close(address)
        except BaseException as error:  # noqa: BLE001
            self._close(address)
            name = resource_name(Resource.from_address(address))
            surfacing.wait(
                surfacing.failure(f"encoder {self.keys[0]!r}", "close", name, error), name
            )

    def _close(self, address: int) -> None:
        self._written.pop(address, None)
        Resource.from_address(address).data = None
