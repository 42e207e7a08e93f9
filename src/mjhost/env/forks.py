"""What becomes of envs in a forked child: they are closed there.

Owns: the weak set of live envs.
Invariants: the parent's env is not touched; in the child every call raises ``EnvClosedError`` and
no lock of a vanished thread can be waited for.
Threads: the hook runs in the child, which has one thread.
"""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mjhost.env.core import EnvCore

_live: weakref.WeakSet[EnvCore] = weakref.WeakSet()


def register(core: EnvCore) -> None:
    """Makes ``core`` close itself in every child forked from now on."""
    _live.add(core)


def _close_all_in_child() -> None:
    for core in list(_live):
        core.close_after_fork()


os.register_at_fork(after_in_child=_close_all_in_child)
