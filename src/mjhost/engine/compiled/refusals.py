"""Sentences for users that travel through Numba's errors, and how to recognise them again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mjhost.engine.compiled.face import errors

# Numba wraps, quotes and concatenates messages; what stands between these survives.
OPENING: Final = "\N{LEFT-POINTING DOUBLE ANGLE QUOTATION MARK}mjhost: "
CLOSING: Final = "\N{RIGHT-POINTING DOUBLE ANGLE QUOTATION MARK}"

if TYPE_CHECKING:

    class _TypingError(Exception):
        def __init__(self, msg: str, loc: Any = None) -> None: ...

else:
    _TypingError = errors.TypingError


class RefusedError(_TypingError):
    """Source that cannot be compiled, for a reason that mjhost knows better than Numba.

    Args:
        sentence: what was written and what to write instead.
        loc: where, if the caller knows; else Numba's context tells.
    """

    def __init__(self, sentence: str, loc: Any = None) -> None:
        super().__init__(f"{OPENING}{sentence}{CLOSING}", loc=loc)
        self.sentence = sentence
