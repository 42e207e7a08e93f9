"""The one check that guards mutating operations during an evaluation.

Owns: the digest of the evaluation token.
Invariants: the token itself is never kept, returned, logged or put into a message; the comparison
takes the same time for every wrong token.
Threads: immutable after construction.
Not a goal: guarding in-process Python, which is trusted; a transport's own authentication.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from pathlib import Path

from mjhost.env.vocabulary import operation_of
from mjhost.errors import InvalidArgumentError, NotAuthorizedError

TOKEN_VARIABLE = "MJHOST_EVAL_TOKEN"  # noqa: S105 - the name of a variable, not a token
_MAX_TOKEN_BYTES = 4096


class AccessControl:
    """Decides whether an operation is admitted for the bearer of a token.

    Args:
        eval_token: the token, a path of a file that holds it, or ``None`` to look at the
            environment variable ``MJHOST_EVAL_TOKEN``. Without any of them everything is admitted.
    """

    __slots__ = ("_digest",)

    def __init__(self, eval_token: str | os.PathLike[str] | None) -> None:
        token = _resolve(eval_token)
        self._digest = None if token is None else _digest(token)

    @property
    def eval_mode(self) -> bool:
        """Whether mutating operations need the token."""
        return self._digest is not None

    def authorize(self, operation: str, token: str | None) -> None:
        """Raises ``NotAuthorizedError`` if ``operation`` needs a token and this is not it.

        Args:
            operation: a word of ``mjhost.env.vocabulary``.
            token: what the client gave; looked at only where one is needed.
        """
        asked = operation_of(operation)
        if self._digest is None or not asked.mutating:
            return
        if token is None:
            raise NotAuthorizedError(
                f"{operation} changes the simulation and needs the evaluation token; none was given"
            )
        if not hmac.compare_digest(self._digest, _digest(token)):
            raise NotAuthorizedError(
                f"{operation} changes the simulation and needs the evaluation token; the one given "
                "is not it"
            )


def _digest(token: str) -> bytes:
    if not isinstance(token, str):
        raise InvalidArgumentError(f"an evaluation token must be text, got {type(token).__name__}")
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _resolve(given: str | os.PathLike[str] | None) -> str | None:
    if given is None:
        token = os.environ.get(TOKEN_VARIABLE)
        return None if token is None else _checked(token, f"the variable {TOKEN_VARIABLE}")
    if isinstance(given, str):
        return _checked(given, "eval_token")
    if isinstance(given, os.PathLike):
        return _checked(_read(Path(given)), f"the file {os.fspath(given)}")
    raise InvalidArgumentError(
        f"eval_token must be text, a path or None, got {type(given).__name__}"
    )


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_TOKEN_BYTES + 1)
    except OSError as error:
        raise InvalidArgumentError(
            f"cannot read an evaluation token from {path}: {error}"
        ) from error
    if len(content) > _MAX_TOKEN_BYTES:
        raise _oversized(f"the file {path}")
    token = _text(content)
    if token is None:
        raise InvalidArgumentError(f"the file {path} must hold an evaluation token as UTF-8 text")
    return token.strip()


def _text(content: bytes) -> str | None:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:  # it carries the content: not even as the cause of another error
        return None


def _checked(token: str, origin: str) -> str:
    if not token.strip():
        raise InvalidArgumentError(f"{origin} must hold an evaluation token, it is empty")
    if len(token.encode("utf-8", "surrogatepass")) > _MAX_TOKEN_BYTES:
        raise _oversized(origin)
    return token


def _oversized(origin: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{origin} must hold an evaluation token of at most {_MAX_TOKEN_BYTES} bytes"
    )
