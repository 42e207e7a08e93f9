"""What providers, decoders and encoders raised, on its way into the engine's own error.

The engine runs them somewhere inside of a load, on the calling thread or on a worker of its
compiler, and tells of their failure in its own words. There are three ways to add ours: the buffer
that a decoder is given since 3.16; a warning, which becomes part of the error while the compiler
listens; in place of a document, one that cannot be parsed and says why. Where none of them leads
anywhere, the failure waits for ``engine.check``.

Owns: the words, and the failures that wait, by the name of the resource.
Invariants: a failure is told once: what reached the user in the engine's error no longer waits.
Threads: any.
Failure: none leaves here. An interrupt makes the load fail like anything else, and is raised by
``engine.check``.
"""

from __future__ import annotations

import ctypes
from typing import Final
from xml.sax.saxutils import quoteattr

from mjhost.engine import contexts, failures
from mjhost.engine.abi.symbols import engine, engine_text
from mjhost.errors import EnginePluginError

_SHOWN: Final = 400  # characters of a message; the engine's own buffers hold about a thousand bytes
_DOCUMENTS: Final = (".xml", ".urdf")

_waiting: Final[dict[str, EnginePluginError]] = {}
_WAITING_LIMIT: Final = 64  # as many as `failures` keeps without data


def failure(what: str, method: str, name: str, error: BaseException) -> EnginePluginError:
    """``error`` as raised by a provider, decoder or encoder.

    Args:
        what: who it was, such as ``"resource provider 'mem'"``.
        method: what of it was called.
        name: of the resource.
        error: becomes the cause.
    """
    reason = one_line(failures.text_of(error))
    kind = type(error).__name__
    # The reason before the name: the engine cuts its errors after some 500 bytes.
    made = EnginePluginError(
        f"{what}: {kind}{': ' if reason else ''}{reason} (in {method}({name!r}))",
        plugin=what,
        instance=None,
        method=method,
    )
    made.__cause__ = error
    return made


def one_line(text: str) -> str:
    """``text`` as it may stand in an engine message: one line, printable, not too long."""
    line = " ".join(text.split())
    line = "".join(letter if letter.isprintable() else "?" for letter in line)
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


def tell(error: EnginePluginError, name: str = "") -> None:
    """Puts ``error`` into the error of the compilation under way, or lets it wait."""
    if compiling():
        engine().warn(str(error))
        reached(error, name)
    else:
        wait(error, name)


def cry(error: EnginePluginError, name: str = "") -> None:
    """As ``tell``, and says it as a warning all the same: the engine's error will not explain."""
    if not compiling():
        engine().warn(str(error))
    tell(error, name)


def reached(error: EnginePluginError, name: str = "") -> None:
    """Notes that the engine's error carries ``error``."""
    failures.recent.append(error)
    forget(name)
    if not isinstance(error.__cause__, Exception):
        wait(error, name)  # an interrupt is more than the reason of a failed load


def wait(error: EnginePluginError, name: str) -> None:
    """Lets ``error`` wait for ``engine.check``, in place of an earlier one of the same resource."""
    forget(name)
    failures.park(error)
    if name:
        # Each step by itself is safe: a lock could be held by what an interrupt has left.
        for oldest in list(_waiting)[: max(0, len(_waiting) + 1 - _WAITING_LIMIT)]:
            _waiting.pop(oldest, None)
        _waiting[name] = error


def forget(name: str) -> EnginePluginError | None:
    """The failure of that resource if one waits, which it then no longer does."""
    error = _waiting.pop(name, None)
    if error is not None:
        # Gone if somebody has asked for it meanwhile.
        _remove(error)
    return error


def _remove(error: EnginePluginError) -> None:
    try:
        failures._homeless.remove(error)
    except ValueError:
        return


def compiling() -> bool:
    """Whether the compiler listens on this thread: it makes warnings part of its error."""
    return contexts.current() is contexts.Context.ENGINE


def is_document(name: str) -> bool:
    """Whether the engine will parse what it gets under that name."""
    return name.lower().endswith(_DOCUMENTS)


def explaining_document(error: EnginePluginError) -> bytes:
    """A document that the engine refuses with the words of ``error``."""
    return engine_text(f"<mujoco><option integrator={quoteattr(str(error))}/></mujoco>")


def write_report(error: EnginePluginError, buffer: int, size: int) -> None:
    """Writes the words of ``error`` into a buffer of the engine, cut to its size."""
    text = engine_text(str(error))[: size - 1]
    ctypes.memmove(buffer, text + b"\0", len(text) + 1)
