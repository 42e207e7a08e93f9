"""The container that checkpoints are kept in.

A file is, without gaps: ``MJHOSTCP``; the version of the format and the length of the header, each
an unsigned little-endian number, of 4 and 8 bytes; the header, in MessagePack; the bytes of the
arrays that the header lists, little-endian, in C order; SHA-256 of all that.

Owns: that layout, and writing such that a file is there wholly or not at all.
Invariants: a file is written next to its place, flushed to the disk and renamed. Nothing of a file
is believed before its checksum was found right, and no size that it claims makes anything allocate
more than the file itself has.
Failure: ``CheckpointError`` for what is no such file; ``OSError`` for what cannot be read or
written.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from mjhost.errors import CheckpointError

MAGIC: Final = b"MJHOSTCP"
VERSION: Final = 1

MOST_BYTES: Final = 1 << 31
"""Longest file that is read, bytes."""

_LENGTHS: Final = struct.Struct("<IQ")
_DIGEST_BYTES: Final = 32
_START: Final = len(MAGIC) + _LENGTHS.size
_DTYPES: Final = frozenset(
    ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8")
)


class ArrayEntry(NamedTuple):
    """An array in the file.

    Attributes:
        dtype: as NumPy writes it, such as ``<f8``.
        shape: its extents.
    """

    dtype: str
    shape: tuple[int, ...]


class _Head(msgspec.Struct, frozen=True):
    """The header: the arrays, and whatever the writer wanted to say beside them."""

    arrays: tuple[ArrayEntry, ...]
    content: msgspec.Raw


def encode(content: Any, arrays: Sequence[np.ndarray[Any, Any]]) -> bytes:
    """The bytes of a file.

    Args:
        content: what MessagePack can hold.
        arrays: of booleans or numbers.
    """
    plain = [_little(array) for array in arrays]
    entries = tuple(ArrayEntry(array.dtype.str, array.shape) for array in plain)
    head = msgspec.msgpack.encode(_Head(entries, msgspec.Raw(msgspec.msgpack.encode(content))))
    parts = [MAGIC, _LENGTHS.pack(VERSION, len(head)), head, *(a.tobytes() for a in plain)]
    body = b"".join(parts)
    return body + hashlib.sha256(body).digest()


def _little(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray(array, array.dtype.newbyteorder("<"), order="C")


def decode(image: bytes, kind: type[Any]) -> tuple[Any, list[np.ndarray[Any, Any]]]:
    """Content, converted to ``kind``, and arrays of a file.

    Raises:
        CheckpointError: it is none.
    """
    head, at = _head(image)
    try:
        content = msgspec.msgpack.decode(head.content, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise CheckpointError(f"the header does not say what it must: {error}") from error
    arrays, end = [], len(image) - _DIGEST_BYTES
    for entry in head.arrays:
        array, at = _array(image, at, end, entry)
        arrays.append(array)
    if at != end:
        raise CheckpointError(f"{end - at} bytes belong to none of its arrays")
    return content, arrays


def _head(image: bytes) -> tuple[_Head, int]:
    if not image.startswith(MAGIC) or len(image) < _START + _DIGEST_BYTES:
        raise CheckpointError("it does not begin like a checkpoint, or ends right after")
    version, length = _LENGTHS.unpack_from(image, len(MAGIC))
    if version != VERSION:
        raise CheckpointError(
            f"it has format {version}, this version of mjhost knows {VERSION}: write it again with "
            "the version that wrote it, or use that"
        )
    if hashlib.sha256(image[:-_DIGEST_BYTES]).digest() != image[-_DIGEST_BYTES:]:
        raise CheckpointError("its checksum is not that of its contents: truncated or altered")
    if length > len(image) - _START - _DIGEST_BYTES:
        raise CheckpointError("its header is longer than the file")
    try:
        head = msgspec.msgpack.decode(image[_START : _START + length], type=_Head)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise CheckpointError(f"its header cannot be read: {error}") from error
    return head, _START + length


def _array(
    image: bytes, start: int, limit: int, entry: ArrayEntry
) -> tuple[np.ndarray[Any, Any], int]:
    if entry.dtype not in _DTYPES or any(extent < 0 for extent in entry.shape):
        raise CheckpointError(f"an array of {entry.dtype!r}, {entry.shape} is not possible")
    dtype = np.dtype(entry.dtype)
    count = 1
    for extent in entry.shape:
        count *= extent
    end = start + count * dtype.itemsize
    if end > limit or len(entry.shape) > 16:
        raise CheckpointError("an array is longer than the file")
    flat = np.frombuffer(image, dtype, count, start)
    return flat.reshape(entry.shape).astype(dtype.newbyteorder("=")), end


def read(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file, if it is not too long to be one."""
    place = Path(path)
    # A pipe or device would be read for ever.
    if place.exists() and not place.is_file():
        raise CheckpointError(f"{place} is not a regular file")
    with place.open("rb") as file:
        image = file.read(MOST_BYTES + 1)
    if len(image) > MOST_BYTES:
        raise CheckpointError(f"{place} is longer than {MOST_BYTES} bytes")
    return image


def write(path: str | os.PathLike[str], image: bytes) -> None:
    """Puts a file in its place, wholly or not at all."""
    place = Path(path)
    mode = _mode_of(place)
    number, name = tempfile.mkstemp(prefix=f".{place.name}.", suffix=".new", dir=place.parent)
    try:
        with os.fdopen(number, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(image)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(place)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync(place.parent)


def _mode_of(place: Path) -> int:
    """What the file had, or what the user's mask leaves to a new one."""
    with contextlib.suppress(OSError):
        return place.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sync(folder: Path) -> None:
    """The name, too, has to survive a power cut."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
