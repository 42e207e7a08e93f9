"""Engine plugins at the speed of C: the methods of a class compiled by Numba.

The same source runs in both paths and computes the same bits. Modules: ``face`` (what is used of
Numba), ``views`` (``model`` and ``data``), ``selves`` and ``records`` (``self``), ``functions``
(``mj.*``), ``arithmetic`` and ``pipeline`` (Python's arithmetic, what is refused), ``entries``
(what the engine calls), ``problems`` (errors with file and line), ``fingerprints`` and ``cache``
(machine code on disk), ``compilation`` (a declaration as a whole), ``callbacks``.

Invariants: imported only for ``compiled=True`` (extra ``fast``). What cannot be compiled is refused
when it is declared; nothing falls back to Python.
"""

from __future__ import annotations

from mjhost.engine.compiled.compilation import CompiledMethods, compile_methods
from mjhost.engine.compiled.entries import ABSENT, DONE, RAISED
from mjhost.engine.compiled.records import Packed

__all__ = ["ABSENT", "DONE", "RAISED", "CompiledMethods", "Packed", "compile_methods"]
