"""Resource provider ``mem:``, files that are only in memory.

::

    from mjhost.engine.builtin import mem

    mem.put("robot/arm.obj", content)       # <mesh file="mem:robot/arm.obj"/>

Names are paths: a document ``mem:robot/arm.xml`` finds ``arm.obj`` next to it. What a spec is
encoded to, as in ``spec.encode("mem:out.mjz")``, is put here.

Owns: the files, at most ``LIMIT`` bytes of them.
Invariants: a file is what was put last, as of the open; its time stamp is a hash of its content,
made when it was put.
Threads: any.
Failure: ``MemoryError`` if there is no room, ``InvalidArgumentError`` for what is no name or
no bytes; nothing was put then.
"""

from __future__ import annotations

import posixpath
import threading
from typing import Final, NamedTuple

from mjhost.engine.providers import content_stamp, resource_provider
from mjhost.errors import InvalidArgumentError, UnknownNameError, did_you_mean

LIMIT: Final = 4 << 30
"""Bytes of all files together."""


class _File(NamedTuple):
    content: bytes
    stamp: str


_files: Final[dict[str, _File]] = {}
_lock: Final = threading.Lock()
_used = 0


def put(name: str, content: bytes) -> str:
    """Keeps a file, in place of one of that name; returns what the engine calls it.

    Args:
        name: a path without ``mem:``.
        content: copied if it is not ``bytes``.
    """
    global _used
    key = _key(name)
    if not isinstance(content, bytes | bytearray | memoryview):
        raise InvalidArgumentError(
            f"mem: files are bytes, got {type(content).__name__} for {name!r}"
        )
    file = _File(bytes(content), content_stamp(bytes(content)))
    with _lock:
        before = _files.get(key)
        used = _used + len(file.content) - (len(before.content) if before else 0)
        if used > LIMIT:
            raise MemoryError(
                f"mem: has room for {LIMIT} bytes; {_used} are taken, {name!r} has "
                f"{len(file.content)}; remove some"
            )
        _files[key], _used = file, used
    return f"mem:{key}"


def remove(name: str) -> None:
    """Forgets a file; what the engine has open stays open.

    Raises:
        UnknownNameError: there is none of that name.
    """
    global _used
    key = _key(name)
    with _lock:
        if key not in _files:
            raise UnknownNameError(f"mem: has no {key!r}; {did_you_mean(key, _files)}")
        _used -= len(_files.pop(key).content)


def clear(prefix: str = "") -> None:
    """Forgets every file whose name begins with ``prefix``."""
    global _used
    with _lock:
        for key in [key for key in _files if key.startswith(prefix)]:
            _used -= len(_files.pop(key).content)


def names() -> tuple[str, ...]:
    """The names of all files."""
    with _lock:
        return tuple(sorted(_files))


def _key(name: str) -> str:
    """The path as the engine puts it: without ``.``, ``..`` and leading slashes."""
    if not isinstance(name, str) or "\0" in name or not name.strip("/. "):
        raise InvalidArgumentError(f"the name of a mem: file is a path, got {name!r}")
    path = posixpath.normpath(name).lstrip("/")
    if path.startswith(".."):
        raise InvalidArgumentError(f"the path of a mem: file cannot leave it, got {name!r}")
    return path


@resource_provider("mem")
class Memory:
    """What the engine sees of the files."""

    def open(self, uri: str) -> tuple[bytes, str]:
        """The file, and the hash of its content."""
        key = _key(uri.partition(":")[2])
        file = _files.get(key)
        if file is None:
            raise FileNotFoundError(f"nothing was put under {key!r} ({did_you_mean(key, names())})")
        return file

    def write(self, uri: str, content: bytes) -> None:
        """Puts what the engine writes."""
        put(uri.partition(":")[2], content)
