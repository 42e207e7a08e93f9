"""Resource provider ``zip:``, files inside of zip archives, which stay packed.

``zip:/data/robot.zip!/meshes/arm.obj`` is the member ``meshes/arm.obj`` of ``/data/robot.zip``. A
relative archive is relative to the working directory. A document in an archive finds its
neighbours.

Owns: the directories of the archives used last.
Invariants: nothing outside of the archive is read. No more than ``MEMBER_LIMIT`` bytes are
unpacked, whatever the archive says about itself; a member of wrong length or checksum is refused.
No archive is kept open. An archive that changed is read anew.
Threads: any; members are unpacked in parallel.
Failure: ``OSError`` or ``ValueError`` with archive and member.
Not a goal: encrypted members, other methods than stored and deflated, archives within archives.
"""

from __future__ import annotations

import os
import stat
import struct
import threading
import zipfile
import zlib
from collections import OrderedDict
from typing import IO, Final, NamedTuple

from mjhost.engine.providers import resource_provider
from mjhost.errors import did_you_mean

MEMBER_LIMIT: Final = 256 << 20
"""Bytes of one member, unpacked."""

ENTRY_LIMIT: Final = 200_000
"""Members of one archive."""

_KEPT: Final = 16
_HEADER: Final = struct.Struct("<4s22xHH")
_ENCRYPTED: Final = 1

_Directory = dict[str, zipfile.ZipInfo]
_directories: Final[OrderedDict[tuple[str, int, int, int], _Directory]] = OrderedDict()
_lock: Final = threading.Lock()


class _Place(NamedTuple):
    archive: str
    member: str


@resource_provider("zip", max_bytes=MEMBER_LIMIT)
def open_member(uri: str) -> bytes:
    """The bytes of a member."""
    place = _place(uri)
    with open(place.archive, "rb") as file:  # noqa: PTH123 - the path is text of a document
        directory = _directory(place.archive, file)
        info = directory.get(place.member)
        if info is None:
            raise FileNotFoundError(
                f"{place.archive} has no member {place.member!r}; "
                f"{did_you_mean(place.member, directory)}"
            )
        return _unpacked(file, info)


def _place(uri: str) -> _Place:
    archive, separator, member = uri.partition(":")[2].partition("!/")
    if not separator or not archive or not member:
        raise ValueError("a name is zip:ARCHIVE!/MEMBER")
    if ".." in member.split("/"):
        raise ValueError("the name of a member cannot lead out of the archive")
    return _Place(archive, member)


def _directory(path: str, file: IO[bytes]) -> _Directory:
    """The members of an archive, from memory if it has not changed."""
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{path} is not a regular file")
    key = (os.path.abspath(path), status.st_ino, status.st_mtime_ns, status.st_size)  # noqa: PTH100
    with _lock:
        if key in _directories:
            _directories.move_to_end(key)
            return _directories[key]
    found = _read_directory(path, file)
    with _lock:
        _directories[key] = found
        while len(_directories) > _KEPT:
            _directories.popitem(last=False)
    return found


def _read_directory(path: str, file: IO[bytes]) -> _Directory:
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error) as error:
        raise ValueError(f"{path} is no zip archive: {error}") from error
    if len(members) > ENTRY_LIMIT:
        raise ValueError(f"{path} has {len(members)} members, at most {ENTRY_LIMIT} are read")
    return {info.filename: info for info in members if not info.filename.endswith("/")}


def _unpacked(file: IO[bytes], info: zipfile.ZipInfo) -> bytes:
    name = info.filename
    if info.flag_bits & _ENCRYPTED:
        raise ValueError(f"member {name!r} is encrypted")
    if max(info.file_size, info.compress_size) > MEMBER_LIMIT:
        raise ValueError(f"member {name!r} has {info.file_size} bytes, at most {MEMBER_LIMIT}")
    file.seek(info.header_offset)
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size or header[:4] != b"PK\3\4":
        raise ValueError(f"member {name!r} is not where the archive says")
    _, name_size, extra_size = _HEADER.unpack(header)
    file.seek(name_size + extra_size, os.SEEK_CUR)
    content = _plain(name, info.compress_type, file.read(info.compress_size), info.file_size)
    if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
        raise ValueError(f"member {name!r} is damaged")
    return content


def _plain(name: str, method: int, packed: bytes, size: int) -> bytes:
    if method == zipfile.ZIP_STORED:
        return packed
    if method != zipfile.ZIP_DEFLATED:
        raise ValueError(f"member {name!r} is packed with method {method}, not stored or deflated")
    try:
        # One byte more than it may have: then it has too many.
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, size + 1)
    except zlib.error as error:
        raise ValueError(f"member {name!r} is damaged: {error}") from error
