"""Functions that the engine enters, guarded from their first instruction on.

An interrupt that arrives while the engine computes is raised by the first instruction of Python
that looks for one, and that is the first of the function that the engine enters: it comes before
any ``try``. Nothing could catch it there. ctypes would print and drop it, and the call would be
skipped. So the ``try`` that such a function begins with is made to begin where the function does:
its row of the code's table of exceptions, which says where an exception is handled, starts at 0.

Owns: ``guarded``.
Invariants: a function that does not begin with a ``try`` is refused where it is made. The handler
may use the arguments and nothing else that is local: no other statement may have run.
Not a goal: an interrupt in the handler itself, which is reported to ``sys.unraisablehook``
(``failures.keep_dropped``). Interpreters whose table is not known: there a function stays as it is,
and what is lost is reported in the same way.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any, Final, TypeVar

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_KNOWN: Final = sys.implementation.name == "cpython" and sys.version_info < (3, 15)
_BEGINNING: Final = frozenset({"COPY_FREE_VARS", "MAKE_CELL", "RESUME", "NOP", "CACHE"})
_ENTRY: Final = 0x80  # the first byte of a row
_MORE: Final = 0x40  # a byte that another one of the same number follows
_BITS: Final = 6
_NUMBERS: Final = 4  # of a row
_UNIT: Final = 2  # bytes of an instruction


def guarded(function: FunctionT) -> FunctionT:
    """``function``, whose first statement is a ``try``, with this ``try`` from its first moment.

    Raises:
        TypeError: it does not begin with a ``try``.
    """
    if _KNOWN:
        function.__code__ = _from_the_beginning(function.__code__)
    return function


def _from_the_beginning(code: CodeType) -> CodeType:
    table = code.co_exceptiontable
    numbers, length = _row(table)
    start = numbers[0] if numbers else 0
    before = [i.opname for i in dis.get_instructions(code) if i.offset < start * _UNIT]
    if not numbers or not _BEGINNING.issuperset(before):
        raise TypeError(f"{code.co_qualname} has to begin with a try to be guarded")
    row = _encoded([0, start + numbers[1], *numbers[2:]])
    return code.replace(co_exceptiontable=row + table[length:])


def _row(table: bytes) -> tuple[list[int], int]:
    """Start, length, target and depth of the first row, and how many bytes it takes."""
    numbers: list[int] = []
    value = 0
    for index, byte in enumerate(table):
        value = value << _BITS | byte & (_MORE - 1)
        if byte & _MORE:
            continue
        numbers.append(value)
        value = 0
        if len(numbers) == _NUMBERS:
            return numbers, index + 1
    return [], 0


def _encoded(numbers: list[int]) -> bytes:
    digits = [_digits(number) for number in numbers]
    row = bytearray(b"".join(digits))
    row[0] |= _ENTRY
    return bytes(row)


def _digits(number: int) -> bytes:
    """A number in bytes of six bits, the highest first."""
    found = [number & (_MORE - 1)]
    while number := number >> _BITS:
        found.insert(0, number & (_MORE - 1) | _MORE)
    return bytes(found)
