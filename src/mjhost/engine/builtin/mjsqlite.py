"""Models in one SQLite file, ``.mjsqlite``: the MJCF text and every file it refers to.

::

    from mjhost.engine.builtin import mjsqlite

    spec.encode("robot.mjsqlite")                    # of a spec: as the engine writes it
    Path("robot.mjsqlite").write_bytes(mjsqlite.pack(text, files))      # of a text: as it is
    spec = mujoco.MjSpec.from_file("robot.mjsqlite")

What is packed from a text compiles to the numbers of that text, bit for bit. What is encoded from a
spec went through MuJoCo's writer: with 17 digits, but with what else that does to a model.

The engine takes no files from a decoder, only names. The files stay in the archive, and the spec
refers to them as ``mjsqlite:ARCHIVE!/HASH/NAME``, which a resource provider resolves: from the
archives read last, else from the archive again, if that is still the same. Such a spec can be
copied, attached and compiled at any time; saved as XML it needs the archive.

Owns: the archives read last, at most ``KEPT`` bytes.
Invariants: an archive is opened from its bytes, in memory, and only what ``pack`` writes is
accepted: two plain tables, no view, trigger or index. Its MJCF refers to nothing outside.
Threads: any; a connection never leaves the call that made it.
Failure: ``ValueError`` with what is wrong with the archive.
Not a goal: archives to be written by others; whoever does takes the schema as it stands here.
"""

from __future__ import annotations

import hashlib
import posixpath
import sqlite3
import threading
import urllib.parse
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import mujoco

from mjhost.engine.abi.symbols import engine
from mjhost.engine.codecs import decoder, encoder
from mjhost.engine.providers import resource_provider
from mjhost.errors import InvalidArgumentError, did_you_mean

LIMIT: Final = 1 << 30
"""Bytes of one archive."""

KEPT: Final = 256 << 20
"""Bytes of the archives that are kept for compilations to come; the newest is always kept."""

APPLICATION_ID: Final = 0x6D6A7371
"""SQLite's mark of the file type: ``mjsq``."""

VERSION: Final = 1
"""Of the schema."""

SCHEMA: Final = {
    "asset": "CREATE TABLE asset (name TEXT NOT NULL PRIMARY KEY, content BLOB NOT NULL) "
    "WITHOUT ROWID",
    "model": "CREATE TABLE model (xml TEXT NOT NULL)",
}
"""The whole of it. ``model`` has one row."""

_MAGIC: Final = b"SQLite format 3\0"
_FILES_LIMIT: Final = 200_000
_HASH: Final = 16
_STEPS: Final = 20_000  # callbacks, one per thousand instructions of SQLite


class Archive(NamedTuple):
    """What is in an archive.

    Attributes:
        xml: the MJCF text.
        assets: files by the names that the text uses.
    """

    xml: str
    assets: dict[str, bytes]


def pack(xml: str, assets: Mapping[str, bytes] | None = None) -> bytes:
    """The bytes of an archive.

    Args:
        xml: MJCF text.
        assets: meshes, textures, height fields and included documents, by name; names are paths
            relative to the text, with ``/``.

    Raises:
        InvalidArgumentError: a name or a content that cannot be, or too much of it.
    """
    files = {_checked_name(name): _checked_content(name, v) for name, v in (assets or {}).items()}
    if sum(map(len, files.values())) + len(xml) > LIMIT:
        raise InvalidArgumentError(f"an archive has at most {LIMIT} bytes")
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        for statement in SCHEMA.values():
            connection.execute(statement)
        connection.execute("INSERT INTO model VALUES (?)", (xml,))
        connection.executemany("INSERT INTO asset VALUES (?, ?)", sorted(files.items()))
        connection.commit()
        return bytes(connection.serialize())


def _checked_name(name: str) -> str:
    plain = isinstance(name, str) and name and "\0" not in name and "\\" not in name
    if not plain or name.startswith("/") or posixpath.normpath(name) != name or name[:2] == "..":
        raise InvalidArgumentError(
            f"the name of a file in an archive is a plain path, got {name!r}"
        )
    return name


def _checked_content(name: str, content: Any) -> bytes:
    if not isinstance(content, bytes | bytearray | memoryview):
        raise InvalidArgumentError(f"file {name!r} is given as bytes, got {type(content).__name__}")
    return bytes(content)


def unpack(content: bytes) -> Archive:
    """What is in an archive.

    Raises:
        ValueError: it is damaged, too large, or of another kind.
    """
    if len(content) > LIMIT:
        raise ValueError(f"an archive has at most {LIMIT} bytes, this one {len(content)}")
    if not content.startswith(_MAGIC):
        raise ValueError("it is no SQLite file")
    try:
        with _opened(content) as connection:
            _check_kind(connection)
            xml = _rows(connection, "SELECT xml FROM model", 1)
            assets = _rows(connection, "SELECT name, content FROM asset", _FILES_LIMIT)
    except (sqlite3.Error, OverflowError, MemoryError, UnicodeDecodeError) as error:
        raise ValueError(f"the archive is damaged: {error}") from error
    if len(xml) != 1 or not isinstance(xml[0][0], str):
        raise ValueError("the archive has no model, or several")
    if not all(isinstance(name, str) and isinstance(data, bytes) for name, data in assets):
        raise ValueError("the archive has a file that is none")
    return Archive(xml[0][0], dict(assets))


@contextmanager
def _opened(content: bytes) -> Iterator[sqlite3.Connection]:
    """A connection to the bytes, which can read and nothing else, and not for ever."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(content)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute("PRAGMA query_only = ON")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LIMIT)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        steps = iter(range(_STEPS))
        connection.set_progress_handler(lambda: next(steps, None) is None, 1000)
        connection.set_authorizer(_authorized)
        yield connection


def _authorized(action: int, *_details: Any) -> int:
    allowed = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_PRAGMA)
    return sqlite3.SQLITE_OK if action in allowed else sqlite3.SQLITE_DENY


def _check_kind(connection: sqlite3.Connection) -> None:
    mark = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if mark != APPLICATION_ID:
        raise ValueError("it is an SQLite file, but no mjsqlite archive")
    if version != VERSION:
        raise ValueError(f"the archive is of version {version}, this mjhost reads {VERSION}")
    rows = _rows(connection, "SELECT type, name, tbl_name, sql FROM sqlite_master", 16)
    expected = {("table", name, name, text) for name, text in SCHEMA.items()}
    if {tuple(row) for row in rows} != expected or len(rows) != len(expected):
        raise ValueError("the archive has other tables than an mjsqlite archive")


def _rows(connection: sqlite3.Connection, query: str, limit: int) -> list[Any]:
    rows = connection.execute(query).fetchmany(limit + 1)
    if len(rows) > limit:
        raise ValueError(f"the archive has more than {limit} rows where that is the most")
    return rows


# -- decoding ------------------------------------------------------------------------------------


@decoder(".mjsqlite", "application/vnd.mjhost.mjsqlite", max_bytes=LIMIT)
def decode(content: bytes, name: str) -> mujoco.MjSpec:
    """The model in an archive, whose files are named as the resource provider finds them."""
    archive = unpack(content)
    documents = {key: value for key, value in archive.assets.items() if key.endswith(".xml")}
    files = {key: value for key, value in archive.assets.items() if key not in documents}
    spec = mujoco.MjSpec.from_string(archive.xml, include=documents, assets=files)
    home = _Home(_container(name), hashlib.sha256(content).hexdigest()[:_HASH])
    _keep(home, _Kept(files, len(content)))
    _rename_files(spec, _Names(str(home), files))
    for key in list(spec.assets):
        del spec.assets[key]
    return spec


def _rename_files(spec: mujoco.MjSpec, names: _Names) -> None:
    for element in (*spec.meshes, *spec.hfields, *spec.skins):
        if element.file:
            element.file = names.of(element.compiler.meshdir, element.file)
    for texture in spec.textures:
        directory = texture.compiler.texturedir
        if texture.file:
            texture.file = names.of(directory, texture.file)
        for index, file in enumerate(list(texture.cubefiles)):
            if file:
                texture.cubefiles[index] = names.of(directory, file)


class _Names:
    """Names of an archive's files, looked up the way the engine does in memory."""

    def __init__(self, home: str, files: Mapping[str, bytes]) -> None:
        self._home = home
        self._files = {name.lower(): name for name in files}

    def of(self, directory: str, file: str) -> str:
        """What the engine shall call a file that the model has in ``directory``."""
        full = posixpath.normpath(posixpath.join(directory, file))
        for candidate in (full, file, posixpath.basename(file)):
            if candidate.lower() in self._files:
                return self._home + self._files[candidate.lower()]
        raise ValueError(
            f"the model refers to {full!r}, which is not in the archive; "
            f"{did_you_mean(full, self._files.values())}"
        )


@encoder(".mjsqlite", "application/vnd.mjhost.mjsqlite")
def encode(xml: str, assets: dict[str, bytes]) -> bytes:
    """The archive of a spec."""
    return pack(xml, assets)


# -- the files of decoded models -----------------------------------------------------------------


class _Home(NamedTuple):
    """An archive as its files' names begin: where it was, and a hash of its bytes."""

    container: str
    digest: str

    def __str__(self) -> str:
        # Quoted whole, so that the engine sees neither its slashes nor its colons.
        return f"mjsqlite:{urllib.parse.quote(self.container, safe='')}!/{self.digest}/"


class _Kept(NamedTuple):
    files: Mapping[str, bytes]
    size: int


_kept: Final[OrderedDict[_Home, _Kept]] = OrderedDict()
_lock: Final = threading.Lock()


def _container(name: str) -> str:
    """The archive's name, from anywhere."""
    return name if engine().find_provider(name) else str(Path(name).absolute())


def _keep(home: _Home, kept: _Kept) -> None:
    with _lock:
        _kept[home] = kept
        _kept.move_to_end(home)
        while len(_kept) > 1 and sum(entry.size for entry in _kept.values()) > KEPT:
            _kept.popitem(last=False)


@resource_provider("mjsqlite", max_bytes=LIMIT)
def open_file(uri: str) -> bytes:
    """A file of an archive that was decoded."""
    container, _, inner = uri.partition(":")[2].partition("!/")
    digest, _, name = inner.partition("/")
    home = _Home(urllib.parse.unquote(container), digest)
    with _lock:
        kept = _kept.get(home)
    files = _reread(home) if kept is None else kept.files
    if name not in files:
        raise FileNotFoundError(f"{home.container} has no {name!r}; {did_you_mean(name, files)}")
    return files[name]


def _reread(home: _Home) -> Mapping[str, bytes]:
    content = _read(home.container)
    if hashlib.sha256(content).hexdigest()[:_HASH] != home.digest:
        raise ValueError(
            f"{home.container} has changed since the model was decoded; decode it again"
        )
    files = unpack(content).assets
    _keep(home, _Kept(files, len(content)))
    return files


def _read(container: str) -> bytes:
    resource, _ = engine().open_resource(container)
    if not resource:
        raise FileNotFoundError(
            f"the archive {container} is neither there nor in memory; decode it again"
        )
    try:
        content = engine().read_resource(resource)
    finally:
        engine().close_resource(resource)
    if content is None:
        raise OSError(f"the archive {container} cannot be read")
    return content
