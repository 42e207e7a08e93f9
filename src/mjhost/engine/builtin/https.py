"""Resource provider ``https:``, which refuses until a host is allowed.

A simulation that fetches its model is another one tomorrow, and waits for a network that may not be
there: the file is better downloaded once. Who wants it all the same says from where::

    from mjhost.engine.builtin import https

    https.allow("models.example.org")

Owns: the hosts that are allowed.
Invariants: nothing is asked of a host that is not allowed, also not by redirection; a file is at
most ``LIMIT`` bytes, a server that is silent for ``TIMEOUT_S`` has failed.
Threads: any; files are fetched in parallel.
Failure: ``PermissionError`` for a host, ``OSError`` of the network.
Not a goal: ``http:``, credentials, caching.
"""

from __future__ import annotations

import re
import threading
import urllib.parse
import urllib.request
from http.client import HTTPMessage
from typing import IO, Final

from mjhost.engine.providers import resource_provider
from mjhost.errors import InvalidArgumentError

LIMIT: Final = 256 << 20
"""Bytes of one file."""

TIMEOUT_S: Final = 10.0
"""How long a server may be silent, s wall."""

_PIECE: Final = 1 << 20
_HOST: Final = re.compile(r"[a-z0-9.-]+(:\d+)?")
_allowed: Final[set[str]] = set()
_lock: Final = threading.Lock()


def allow(*hosts: str) -> None:
    """Allows files to be fetched from hosts, given by name, with the port if it is not 443."""
    for host in hosts:
        if not isinstance(host, str) or not _HOST.fullmatch(host.lower()):
            raise InvalidArgumentError(f"a host is given as in models.example.org, got {host!r}")
    with _lock:
        _allowed.update(host.lower() for host in hosts)


def forbid(*hosts: str) -> None:
    """Undoes ``allow``; without hosts, for all of them."""
    with _lock:
        _allowed.difference_update([host.lower() for host in hosts] or tuple(_allowed))


def check_address(uri: str) -> None:
    """Raises unless ``uri`` is of a host that is allowed."""
    parts = urllib.parse.urlsplit(uri)
    if parts.scheme.lower() != "https" or "@" in parts.netloc:
        raise PermissionError(f"{uri} is refused: only plain https addresses are fetched")
    if parts.netloc.lower() not in _allowed:
        raise PermissionError(
            f"{uri} is not fetched: download it and name the file, or allow the host with "
            f"mjhost.engine.builtin.https.allow({parts.netloc.lower()!r}); "
            f"allowed are {sorted(_allowed) or 'none'}"
        )


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows only to where it may go."""

    def redirect_request(  # noqa: PLR0917 - as the base has it
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        check_address(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


@resource_provider("https", max_bytes=LIMIT)
def fetch(uri: str) -> bytes:
    """The file at an address."""
    check_address(uri)
    opener = urllib.request.build_opener(_Redirects)
    with opener.open(uri, timeout=TIMEOUT_S) as answer:
        return _limited(answer)


def _limited(answer: IO[bytes]) -> bytes:
    pieces, size = [], 0
    while piece := answer.read(_PIECE):
        size += len(piece)
        if size > LIMIT:
            raise ValueError(f"it has more than {LIMIT} bytes")
        pieces.append(piece)
    return b"".join(pieces)
