"""The four counters that tell a current object from a stale one.

Owns: the types ``ModelGeneration``, ``PluginGeneration``, ``FrameGeneration`` and ``OptionsEpoch``.
Invariants: a counter starts at 0 and only ever goes up through ``next()``; counters of different
types never compare, not even for equality; values are immutable and hashable, the hash covers the
type.
Threads: immutable, safe anywhere.
Failure: comparing with anything but the same type raises ``TypeError``; nothing else can fail.
Not a goal: deciding who is current. The owner of a generation does that.
"""

from __future__ import annotations

from typing import Self, final

from mjhost.errors import InvalidArgumentError


class _Counter:
    """A typed, strictly comparable, never negative number."""

    __slots__ = ("_value",)
    _value: int

    def __init__(self, value: int = 0) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InvalidArgumentError(
                f"{type(self).__name__} must wrap an integer of at least 0, got {value!r}"
            )
        object.__setattr__(self, "_value", value)

    @property
    def value(self) -> int:
        """The wrapped number."""
        return self._value

    def next(self) -> Self:
        """The generation that follows this one."""
        return type(self)(self._value + 1)

    def _other(self, other: object) -> int:
        # A silent False between two kinds of generation is the bug this type exists to prevent.
        if type(other) is not type(self):
            raise TypeError(
                f"{type(self).__name__} compares only with {type(self).__name__}, "
                f"got {type(other).__name__}"
            )
        value: int = getattr(other, "_value")  # noqa: B009 - checked above, mypy cannot see it
        return value

    def __eq__(self, other: object) -> bool:
        return self._value == self._other(other)

    def __ne__(self, other: object) -> bool:
        return self._value != self._other(other)

    def __lt__(self, other: object) -> bool:
        return self._value < self._other(other)

    def __le__(self, other: object) -> bool:
        return self._value <= self._other(other)

    def __gt__(self, other: object) -> bool:
        return self._value > self._other(other)

    def __ge__(self, other: object) -> bool:
        return self._value >= self._other(other)

    def __hash__(self) -> int:
        return hash((type(self), self._value))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable, cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable, cannot delete {name!r}")

    def __reduce__(self) -> tuple[type[Self], tuple[int]]:
        return type(self), (self._value,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._value})"


@final
class ModelGeneration(_Counter):
    """One ownership epoch of a model and its data."""

    __slots__ = ()


@final
class PluginGeneration(_Counter):
    """One adapter set loaded against one model generation."""

    __slots__ = ()


@final
class FrameGeneration(_Counter):
    """One render layout."""

    __slots__ = ()


@final
class OptionsEpoch(_Counter):
    """One applied options transaction."""

    __slots__ = ()
