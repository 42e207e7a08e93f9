"""Running a method again in Python, for its exception, and leaving no trace of that.

Machine code that raises says no more than that it did. The same method, run by Python, raises the
exception with its traceback. It would also do a second time what the machine code had done before
it raised: that is taken back, and the data are as one run that failed has left them.

Owns: copies of what a method can write: the whole ``mjData`` but the part of the arena that is not
in use, and the arrays of the memo.
Invariants: the mark of a failure that the replay leaves (``failures``) stays.
Threads: that of the method; nobody else uses the data then.
Failure: none of its own. An exception passes, after the memory was put back.
Not a goal: beginning where the machine code began. A copy before each call would cost every step.
What the replay reads has been written once: a method that raises by what it counts itself may not
raise again, and says so (``unlike``).
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from mjhost.engine import failures
from mjhost.layout import offset_of, size_of

_DATA_SIZE: Final = size_of("mjData")
_BUFFER: Final = offset_of("mjData", "buffer"), offset_of("mjData", "nbuffer")
_ARENA: Final = offset_of("mjData", "arena"), offset_of("mjData", "parena")


@contextlib.contextmanager
def without_trace(data: int, memo: Any = None) -> Iterator[None]:
    """Around a replay: afterwards the data at an address, and the memo, are as they were before.

    Args:
        data: address of an ``mjData``; 0 if there is none.
        memo: what ``init`` returned, if anything.
    """
    kept = [(address, ctypes.string_at(address, size)) for address, size in _memory(data)]
    arrays = [(array, array.copy()) for array in _arrays(memo)]
    try:
        yield
    finally:
        with failures.mark_stays(data):
            for address, content in kept:
                ctypes.memmove(address, content, len(content))
        for array, values in arrays:
            array[...] = values


def unlike(what: str) -> RuntimeError:
    """What is said of machine code that raised where Python did not.

    Args:
        what: ``method`` or ``callback``.
    """
    return RuntimeError(
        f"the compiled {what} raised, and run once more by Python it did not, since it depends on "
        "what it had written itself; declare it with compiled=False to see what it raises"
    )


def _memory(data: int) -> Iterator[tuple[int, int]]:
    """Address and size of what a method can write to."""
    if not data:
        return
    yield data, _DATA_SIZE
    for start, size in (_BUFFER, _ARENA):
        yield _word(data + start), _word(data + size)


def _word(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value


def _arrays(memo: Any) -> Iterator[np.ndarray[Any, Any]]:
    """The arrays of a memo that compiled code can have."""
    for value in memo if isinstance(memo, tuple) else ():
        if isinstance(value, np.ndarray) and value.flags.writeable:
            yield value
