"""Resource providers: where the bytes of models and assets come from, written in Python.

Owns: ``resource_provider``, the providers declared with it, and the buffers of open resources.
Invariants: the C functions of a prefix are made once and stay for the life of the process; they
look the implementation up at each call, so that declaring it again swaps it. A buffer lives from
open to close, and is the very object that ``open`` returned. Without times of its own a resource is
told by a hash of its content: the engine's asset cache cannot serve what has changed. No lock is
held while an implementation runs.
Threads: the engine opens resources on the thread that loads and on workers of its compiler, several
at once; implementations have to stand that.
Failure: what an implementation raises makes the load fail with its message (see ``surfacing``). A
failed open leaves nothing behind. An interrupt makes the load fail in the same way, wherever it
arrives (``entrances``), and is raised by ``engine.check``.
Not a goal: looking at addresses: prefixes are matched by the engine, before the first colon, in
upper or lower case.
"""

from __future__ import annotations

import ctypes
import hashlib
import inspect
import itertools
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

from mjhost.callbacks.native import immortal
from mjhost.engine import failures, registry, surfacing
from mjhost.engine.abi.structs import PROVIDER_PROTOTYPES, Provider, Resource, address_of, thunk
from mjhost.engine.declaration import Origin
from mjhost.engine.entrances import guarded
from mjhost.errors import EngineDeclarationError, EngineNameTakenError, InvalidArgumentError

ImplementationT = TypeVar("ImplementationT")

_PREFIX: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_LARGEST: Final = 2**31 - 1  # the engine counts the bytes of a resource in int
_LONGEST_TIMESTAMP: Final = 511
DEFAULT_LIMIT: Final = 1 << 30
"""Bytes of one resource, unless the declaration says otherwise."""


class _Methods(NamedTuple):
    """What an implementation offers; ``None`` is what it leaves out."""

    open: Callable[[str], Any]
    modified: Callable[[str, str], Any] | None
    write: Callable[[str, bytes], Any] | None
    mount: Callable[[str], Any] | None
    unmount: Callable[[str], Any] | None


class _Opened(NamedTuple):
    """An open resource. ``content`` owns the memory at ``address``."""

    content: bytes
    address: int
    timestamp: bytes


def resource_provider(
    prefix: str, *, max_bytes: int = DEFAULT_LIMIT
) -> Callable[[ImplementationT], ImplementationT]:
    """Declares where resources come from whose names begin with ``prefix:``.

    What is decorated is a function ``open(uri)``, a class, made once without arguments, or an
    object with these methods::

        open(uri) -> bytes, or (bytes, timestamp)     required
        modified(uri, timestamp) -> bool              whether it is not the one of that time stamp
        write(uri, content)                           for `MjSpec.encode("prefix:…")`
        mount(prefix), unmount(prefix)                around a load; `mount` refuses with `False`

    ``uri`` is the whole name, prefix included, as the engine has put it together: relative names in
    a document are relative to the document (to ``prefix:/`` for a document without a directory).
    Without ``modified`` a resource is modified if its time
    stamp differs, and without a time stamp that is a hash of its content.

    Declaring a prefix again from the same place swaps the implementation, also for models that were
    loaded before.

    Args:
        prefix: a letter, then letters, digits, ``+``, ``.`` or ``-``; upper and lower case are the
            same.
        max_bytes: a resource that is larger is refused.

    Raises:
        EngineDeclarationError: nothing of that kind can be a provider.
        EngineNameTakenError: the prefix is somebody else's, for the life of the process.
        InvalidArgumentError: the prefix or the limit cannot be.

    Contract: the methods run on any thread, several at once, with no lock held; they must not step
    or reload the simulation that is loading.
    """
    if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix):
        raise InvalidArgumentError(
            "the prefix of a resource provider is a letter, then letters, digits, '+', '.' or '-', "
            f"without the colon, got {prefix!r}"
        )
    if not isinstance(max_bytes, int) or not 0 < max_bytes <= _LARGEST:
        raise InvalidArgumentError(f"max_bytes is from 1 to {_LARGEST}, got {max_bytes!r}")

    def declare(implementation: ImplementationT) -> ImplementationT:
        origin = origin_of(implementation)
        methods = _methods(prefix, implementation, origin)
        _declare(prefix, methods, max_bytes, origin)
        return implementation

    return declare


def provider_prefixes() -> tuple[str, ...]:
    """Prefixes that were declared, in lower case."""
    return tuple(sorted(_providers))


# -- declaring -----------------------------------------------------------------------------------


def origin_of(implementation: Any) -> Origin:
    """Where a function, a class or the class of an object stands."""
    owner = implementation if hasattr(implementation, "__qualname__") else type(implementation)
    owner = inspect.unwrap(owner) if inspect.isfunction(owner) else owner
    try:
        file = inspect.getsourcefile(owner) or inspect.getfile(owner)
    except (OSError, TypeError):
        file = f"<{getattr(owner, '__module__', 'unknown')}>"
    line = _line_of(owner)
    return Origin(file, line, getattr(owner, "__qualname__", type(owner).__qualname__))


def _line_of(owner: Any) -> int:
    """Line of a function, or of the first function in a class; 0 if there is none."""
    # Not from `inspect`, which parses the source: on 3.11 two threads cannot do that at once.
    members = vars(owner).values() if isinstance(owner, type) else (owner,)
    codes = [member.__code__ for member in members if hasattr(member, "__code__")]
    return min((code.co_firstlineno for code in codes), default=0)


def _methods(prefix: str, implementation: Any, origin: Origin) -> _Methods:
    made = _made(prefix, implementation, origin)
    found = {
        name: _method(prefix, made, name, arguments, origin)
        for name, arguments in _ARGUMENTS.items()
    }
    opening = found.pop("open")
    if opening is None:
        raise EngineDeclarationError(
            f"resource provider {prefix!r}, {origin}: a provider is a function open(uri) or has a "
            f"method open(uri), {type(made).__name__} is neither"
        )
    return _Methods(opening, **found)


_ARGUMENTS: Final = {
    "open": ("uri",),
    "modified": ("uri", "timestamp"),
    "write": ("uri", "content"),
    "mount": ("prefix",),
    "unmount": ("prefix",),
}


def _made(prefix: str, implementation: Any, origin: Origin) -> Any:
    if not isinstance(implementation, type):
        return implementation
    try:
        return implementation()
    except TypeError as error:
        raise EngineDeclarationError(
            f"resource provider {prefix!r}, {origin}: a class is made without arguments ({error}); "
            "decorate an object if it needs some"
        ) from error


def _method(
    prefix: str, made: Any, name: str, arguments: tuple[str, ...], origin: Origin
) -> Callable[..., Any] | None:
    method: Callable[..., Any] | None = getattr(made, name, None)
    if method is None and name == "open" and callable(made):
        method = made
    if method is None:
        return None
    check_call(f"resource provider {prefix!r}, {origin}: {name}", method, arguments)
    return method


def check_call(what: str, function: Any, arguments: tuple[str, ...]) -> None:
    """Raises ``EngineDeclarationError`` if ``function`` cannot be called with these arguments."""
    if not callable(function):
        raise EngineDeclarationError(f"{what} has to be callable, got {type(function).__name__}")
    if inspect.iscoroutinefunction(function):
        raise EngineDeclarationError(f"{what} is called by the engine, which cannot await it")
    try:
        inspect.signature(function).bind(*arguments)
    except ValueError:
        return  # no signature to be had: a builtin
    except TypeError as error:
        raise EngineDeclarationError(
            f"{what} is called with ({', '.join(arguments)}): {error}"
        ) from error


_providers: Final[dict[str, _Provider]] = {}
_declaring: Final = threading.Lock()


def _declare(prefix: str, methods: _Methods, max_bytes: int, origin: Origin) -> None:
    key = prefix.lower()
    with _declaring:
        known = _providers.get(key)
        if known is None:
            provider = _Provider(prefix, methods, max_bytes, origin)
            registry.register_provider(provider.struct, origin)
            _providers[key] = immortal(provider)
        elif known.origin.is_same_source(origin):
            known.swap(methods, max_bytes, origin)
        else:
            raise EngineNameTakenError(
                f"resource provider {prefix!r} of {origin}: the prefix is taken by {known.origin}, "
                "for the life of the process; choose another one"
            )


# -- one provider --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Implementation:
    methods: _Methods
    max_bytes: int
    origin: Origin


class _Provider:
    """A prefix: its implementation of the moment, its C functions, its open resources."""

    def __init__(self, prefix: str, methods: _Methods, max_bytes: int, origin: Origin) -> None:
        self.prefix = prefix
        self._now = _Implementation(methods, max_bytes, origin)
        self._opened: dict[int, _Opened] = {}
        self._unmounted: dict[int, BaseException] = {}  # address of a VFS: why it was not mounted
        # Addresses would be reused; and 0 is what the engine takes for not open.
        self._handles = itertools.count(1)
        self._thunks = {
            slot: thunk(slot, getattr(self, f"_on_{slot}")) for slot in PROVIDER_PROTOTYPES
        }
        self._name = prefix.encode()
        addresses = {slot: address_of(made) for slot, made in self._thunks.items()}
        self.struct = Provider(prefix=self._name, **addresses)

    @property
    def origin(self) -> Origin:
        """Where the implementation stands."""
        return self._now.origin

    def swap(self, methods: _Methods, max_bytes: int, origin: Origin) -> None:
        """Puts another implementation in place; what is open stays what it is."""
        self._now = _Implementation(methods, max_bytes, origin)

    # What is guarded is called by the engine, and must not raise.

    @guarded
    def _on_open(self, address: int) -> int:
        try:
            resource = Resource.from_address(address)
            uri = resource_name(resource)
            self._check_mounted(resource)
            self._keep(resource, self._content(uri))
            surfacing.forget(uri)
            return 1
        except BaseException as error:  # noqa: BLE001
            return self._refuse(Resource.from_address(address), error)

    def _check_mounted(self, resource: Resource) -> None:
        error = self._unmounted.get(resource.vfs or 0)
        if error is None:
            return
        if not isinstance(error, Exception):
            raise error  # an interrupt stays one
        reason = surfacing.one_line(failures.text_of(error)) or type(error).__name__
        raise ConnectionError(f"it was not mounted: {reason}") from error

    def _content(self, uri: str) -> _Opened:
        now = self._now
        result = now.methods.open(uri)
        content, timestamp = (
            result if isinstance(result, tuple) and len(result) == 2 else (result, "")
        )
        return _opened(content, timestamp, now.max_bytes)

    def _keep(self, resource: Resource, opened: _Opened) -> None:
        handle = next(self._handles)
        self._opened[handle] = opened
        resource.timestamp = opened.timestamp
        resource.data = handle

    def _refuse(self, resource: Resource, error: BaseException) -> int:
        """The engine's answer to a failed open: no, or a document that says why."""
        self._close(resource)  # an interrupt may come when it is open already
        uri = resource_name(resource)
        failure = self._failure("open", uri, error)
        if not surfacing.is_document(uri):
            surfacing.tell(failure, uri)
            return 0
        surfacing.reached(failure, uri)
        content = surfacing.explaining_document(failure)
        self._keep(resource, _opened(content, "", len(content)))
        return 1

    @guarded
    def _on_read(self, address: int, buffer: Any) -> int:
        try:
            opened = self._opened.get(Resource.from_address(address).data or 0)
            if opened is None:
                return -1
            buffer[0] = opened.address
            return len(opened.content)
        except BaseException as error:  # noqa: BLE001
            self._tell("read", address, error)
            return -1

    @guarded
    def _on_close(self, address: int) -> None:
        try:
            self._close(Resource.from_address(address))
        except BaseException as error:  # noqa: BLE001
            self._close(Resource.from_address(address))
            self._tell("close", address, error)

    def _close(self, resource: Resource) -> None:
        self._opened.pop(resource.data or 0, None)
        resource.data = None

    @guarded
    def _on_modified(self, address: int, timestamp: bytes | None) -> int:
        try:
            return int(self._is_modified(Resource.from_address(address), timestamp or b""))
        except BaseException as error:  # noqa: BLE001
            # The bytes at hand are used, not those of the cache.
            self._tell("modified", address, error)
            return 1

    def _is_modified(self, resource: Resource, known: bytes) -> bool:
        modified = self._now.methods.modified
        if modified is None:
            return bool(known != resource.timestamp)
        return bool(modified(resource_name(resource), known.decode("utf-8", "replace")))

    @guarded
    def _on_mount(self, address: int) -> int:
        # The engine asks before the first open of a load, and opens whatever the answer was.
        try:
            mount = self._now.methods.mount
            if mount is not None and mount(self.prefix) is False:
                raise ConnectionError("mount(prefix) returned False")
            return 1
        except BaseException as error:  # noqa: BLE001
            self._unmounted[Resource.from_address(address).vfs or 0] = error
            return 0

    @guarded
    def _on_unmount(self, address: int) -> int:
        try:
            unmount, vfs = self._now.methods.unmount, Resource.from_address(address).vfs or 0
            if self._unmounted.pop(vfs, None) is None and unmount is not None:
                unmount(self.prefix)
            return 1
        except BaseException as error:  # noqa: BLE001
            self._tell("unmount", address, error)
            return 0

    @guarded
    def _on_write(self, address: int, buffer: int, size: int) -> int:
        try:
            self._write(resource_name(Resource.from_address(address)), buffer, size)
            return size
        except BaseException as error:  # noqa: BLE001
            name = resource_name(Resource.from_address(address))
            surfacing.cry(self._failure("write", name, error), name)
            return -1

    def _write(self, uri: str, buffer: int, size: int) -> None:
        now = self._now
        if now.methods.write is None:
            raise OSError(f"it has no method write(uri, content), see {now.origin}")
        _check_size(size, now.max_bytes)
        now.methods.write(uri, ctypes.string_at(buffer, size) if size else b"")

    def _tell(self, method: str, address: int, error: BaseException) -> None:
        name = resource_name(Resource.from_address(address))
        surfacing.tell(self._failure(method, name, error), name)

    def _failure(self, method: str, name: str, error: BaseException) -> Any:
        return surfacing.failure(f"resource provider {self.prefix!r}", method, name, error)


def resource_name(resource: Resource) -> str:
    """The name that the engine opens a resource by; bytes that are no text come through."""
    return (resource.name or b"").decode("utf-8", "surrogateescape")


def _opened(content: Any, timestamp: Any, max_bytes: int) -> _Opened:
    if not isinstance(content, bytes):
        if not isinstance(content, bytearray | memoryview):
            hint = "; encode it" if isinstance(content, str) else ""
            raise TypeError(f"open(uri) returns bytes, got {type(content).__name__}{hint}")
        content = bytes(content)
    _check_size(len(content), max_bytes)
    if not isinstance(timestamp, str):
        raise TypeError(f"a time stamp is text, got {type(timestamp).__name__}")
    stamp = timestamp.encode() if timestamp else content_stamp(content).encode()
    if len(stamp) > _LONGEST_TIMESTAMP or b"\0" in stamp:
        raise ValueError(f"a time stamp has at most {_LONGEST_TIMESTAMP} bytes, none of them null")
    address = ctypes.cast(ctypes.c_char_p(content), ctypes.c_void_p).value or 0
    return _Opened(content, address, stamp)


def content_stamp(content: bytes) -> str:
    """The time stamp of content that has none: a hash of it."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _check_size(size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise ValueError(f"it has {size} bytes, at most {max_bytes} are allowed (max_bytes)")
