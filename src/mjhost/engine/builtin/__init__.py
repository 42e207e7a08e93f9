"""Extensions that come along, each the example of its kind.

Nothing is registered by importing this package: a name that MuJoCo has seen is taken for the life
of the process, and a program may want ``mem`` or ``.ply`` for itself. Importing one of the modules
registers what it defines; ``register_all`` imports them all. An env does so by itself for what a
model needs and the program does not have.

Resource providers: ``mem:`` (``mem``), ``zip:`` (``zip_archive``), ``package:`` (``package``) and
``https:`` (``https``, which refuses until it is allowed).
Engine plugins: ``mjhost.pid``, ``mjhost.cable``, ``mjhost.lowpass``, ``mjhost.thermal`` (a module
each) and ``mjhost.sdf.*`` (``sdf``); ``choice.use`` runs them as machine code.
Decoders of meshes: ``.off`` (``off``), ``.ply`` (``ply``). Decoder and encoder of models:
``.mjsqlite`` (``mjsqlite``).

Threads: registering from several threads at once registers once.
Failure: ``EngineNameTakenError`` if the program has something of that name; what was registered
before stays.
"""

from __future__ import annotations

import importlib
from typing import Final

RESOURCES: Final = ("mem", "zip_archive", "package", "https")
"""Modules with a resource provider."""

CODECS: Final = ("off", "ply", "mjsqlite")
"""Modules with decoders and encoders."""

PLUGINS: Final = ("pid", "cable", "lowpass", "thermal", "sdf")
"""Modules with engine plugins."""


def register_all() -> None:
    """Registers every bundled extension; again does nothing."""
    for name in (*RESOURCES, *CODECS, *PLUGINS):
        importlib.import_module(f"{__name__}.{name}")
