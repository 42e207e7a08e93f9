"""Engine extensions as an env meets them: what they raised, and the bundled ones a model needs.

Owns: the question after every engine call whether an extension raised in it. One that did leaves a
mark in the data's warnings, so a step in which nothing was raised is asked nothing; see
``mjhost.engine.failures``. And the rule that bundled decoders and providers are registered when a
model needs one and the program has none of that name.
Threads: failures under the physics lock, or on private data; the rest anywhere.
Failure: none of its own.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import mujoco

from mjhost.engine import failures
from mjhost.errors import EngineNameTakenError

if TYPE_CHECKING:
    from mjhost.env.hosted import HostedModel

_BUNDLED: Final = {
    r"\.off\b": "off",
    r"\.ply\b": "ply",
    r"\.mjsqlite\b": "mjsqlite",
    r"\bmem:": "mem",
    r"\bzip:": "zip_archive",
    r"\bpackage:": "package",
    r"\bhttps:": "https",
    r"\bmjhost\.pid\b": "pid",
    r"\bmjhost\.cable\b": "cable",
    r"\bmjhost\.lowpass\b": "lowpass",
    r"\bmjhost\.thermal\b": "thermal",
    r"\bmjhost\.sdf\.": "sdf",
}
_tried: set[str] = set()


def failure_of(data: mujoco.MjData) -> BaseException | None:
    """What an extension raised for ``data``, to be raised once by the caller; ``None`` else."""
    error = failures.take(data._address)
    return None if error is None else failures.surface(error)


def raise_failure(data: mujoco.MjData) -> None:
    """Raises what an extension raised for ``data``."""
    error = failure_of(data)
    if error is not None:
        raise error


def raise_interrupt() -> None:
    """Raises the interrupt or exit by which an extension made a load fail, if it was one."""
    interrupt = failures.take_interrupt()
    if interrupt is not None:
        raise interrupt


def told(message: str) -> str:
    """``message`` of a failed load; an extension's failure that it tells of no longer waits."""
    failures.forget_told(message)
    return message


def has_extensions(model: mujoco.MjModel) -> bool:
    """Whether the model has an engine plugin that was declared in Python."""
    if not model.nplugin or "mjhost.engine.registry" not in sys.modules:
        return False
    from mjhost.engine import registry

    ours = {entry.slot for entry in registry.plugins().values()}
    return not ours.isdisjoint(model.plugin.tolist())


def interrupts_kept(hosted: HostedModel) -> contextlib.AbstractContextManager[None]:
    """Around engine calls: an interrupt on the way into an extension's method is not lost.

    It is a failure of the data then. Only the main thread gets interrupts.
    """
    if not hosted.extended or threading.current_thread() is not threading.main_thread():
        return contextlib.nullcontext()
    return _interrupts_kept(hosted.data._address)


@contextlib.contextmanager
def _interrupts_kept(address: int) -> Iterator[None]:
    before = sys.unraisablehook

    def keep(report: Any) -> None:
        if not failures.keep_dropped(report, address):
            before(report)

    sys.unraisablehook = keep
    try:
        yield
    finally:
        if sys.unraisablehook is keep:
            sys.unraisablehook = before


# -- what a model needs --------------------------------------------------------------------------


def register_bundled(reason: str) -> bool:
    """Registers the bundled extensions that an engine error seems to ask for.

    Args:
        reason: what the engine said.

    Returns:
        whether there is something new, so that another attempt makes sense.
    """
    lowered = reason.lower()
    wanted = {name for mention, name in _BUNDLED.items() if re.search(mention, lowered)} - _tried
    registered = [_registered(name) for name in sorted(wanted)]
    return any(registered)


def _registered(name: str) -> bool:
    _tried.add(name)
    try:
        importlib.import_module(f"mjhost.engine.builtin.{name}")
    except EngineNameTakenError:
        return False  # the program has its own
    return True


def model_suffixes() -> frozenset[str]:
    """Endings of model files that a decoder reads, with the dot."""
    from mjhost.engine import codecs

    return codecs.model_suffixes()


def prepare_decoder(path: Path) -> None:
    """Makes sure that the file can be decoded, if a bundled decoder can do it."""
    from mjhost.engine import codecs

    codecs.prepare(path.name)


def hint_for(reason: str) -> str:
    """What to add to an engine's error that names a plugin or decoder which does not exist."""
    from mjhost.engine.explanations import explain_unknown_plugin

    hint = explain_unknown_plugin(reason)
    return f"; {hint}" if hint else ""
