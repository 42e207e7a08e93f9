"""Arithmetic that Numba and LLVM would do otherwise than Python, done as Python does it.

Owns: ``**`` of floats, which goes to the C library's ``pow`` (as Python's does) where Numba
multiplies, with another last digit in one of a thousand cases; and the functions of ``math``, which
raise in Python for arguments outside of their domain where Numba returns NaN, or any integer.
Invariants: a function of ``STAND_INS`` takes and returns what the one it stands for does.
Not a goal: NumPy's own ``sin``, ``tanh``, ``sum``, ``dot``, …: it computes them with other code
than the C library, on some processors with other last digits, and its ``maximum`` picks either of
two zeros. ``math`` and loops are exact.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import math
import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from mjhost.engine.compiled.face import add_symbol, cgutils, intrinsic, ir, overload, types

_POW: Final = "mjhost_pow"  # under its own name LLVM would know it, and write x * x for 2


def _address_of_pow() -> int:
    library = ctypes.CDLL(ctypes.util.find_library("m") or None)
    found = ctypes.cast(library.pow, ctypes.c_void_p).value
    assert found is not None
    return found


add_symbol(_POW, _address_of_pow())


@intrinsic
def _pow(_typing: Any, _base: Any, _exponent: Any) -> Any:
    def code(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        double = ir.DoubleType()
        kind = ir.FunctionType(double, [double, double])
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, _POW), args)

    return types.float64(types.float64, types.float64), code


def power(base: Any, exponent: Any) -> Any:
    """``base ** exponent``."""
    return base**exponent


def math_pow(base: float, exponent: float) -> float:
    """``math.pow``."""
    return math.pow(base, exponent)


def _float_power(base: Any, exponent: Any) -> Any:
    """``**`` of floats; an error wherever Python's ``float`` makes no float of it."""
    x, y = float(base), float(exponent)
    result = _pow(x, y)
    if not math.isfinite(result) and math.isfinite(x) and math.isfinite(y):
        if x == 0.0:
            raise ZeroDivisionError("0.0 cannot be raised to a negative power")
        if math.isnan(result):
            raise ValueError("a fractional power of a negative number")
        raise OverflowError("numerical result out of range")
    return result


@overload(power)
def _power(base: Any, exponent: Any) -> Any:
    numbers = isinstance(base, types.Number) and isinstance(exponent, types.Number)
    if numbers and types.complex128 not in (base, exponent) and _is_real(base, exponent):
        return _float_power
    return lambda base, exponent: base**exponent


@overload(math_pow)
def _math_pow(base: Any, exponent: Any) -> Any:  # noqa: ARG001 - names as in the code
    return _float_power


def _is_real(base: Any, exponent: Any) -> bool:
    return isinstance(base, types.Float) or isinstance(exponent, types.Float)


# -- math ----------------------------------------------------------------------------------------

_UNARY: Final = (
    *("acos", "acosh", "asin", "atanh", "cos", "cosh", "exp", "expm1"),
    *("log", "log10", "log1p", "log2", "sin", "sinh", "sqrt", "tan"),
)


def _checked(function: Callable[[float], float]) -> Callable[..., Any]:
    """``function`` with the errors that Python has for it."""

    def checked(x: float) -> float:
        return function(x)

    @overload(checked)
    def _compiled(x: Any) -> Any:  # noqa: ARG001 - names as in the code
        def compiled(x: Any) -> Any:
            given = float(x)
            result = function(given)
            if math.isnan(result) and not math.isnan(given):
                raise ValueError("math domain error")
            if math.isinf(result) and not math.isinf(given):
                raise OverflowError("math range error")
            return result

        return compiled

    checked.__name__ = checked.__qualname__ = function.__name__
    return checked


def _checked_fmod() -> Callable[..., Any]:
    def fmod(x: float, y: float) -> float:
        return math.fmod(x, y)

    @overload(fmod)
    def _compiled(x: Any, y: Any) -> Any:  # noqa: ARG001 - names as in the code
        def compiled(x: Any, y: Any) -> Any:
            number, divisor = float(x), float(y)
            if math.isnan(number) or math.isnan(divisor):
                return number + divisor
            if math.isinf(number) or divisor == 0.0:
                raise ValueError("math domain error")
            return np.fmod(number, divisor)

        return compiled

    return fmod


def whole(x: Any) -> Any:
    """``int(x)``."""
    return int(x)


def real(x: Any) -> Any:
    """``float(x)``."""
    return float(x)


@overload(real)
def _real(x: Any) -> Any:
    if isinstance(x, types.Boolean):
        return lambda x: 1.0 if x else 0.0
    return lambda x: float(x)  # noqa: PLW0108 - the code, for Numba to read


def nearest(x: Any) -> Any:
    """``round(x)``."""
    return round(x)


def _whole_floor(x: Any) -> Any:
    return math.floor(x)


def _whole_ceil(x: Any) -> Any:
    return math.ceil(x)


def _checked_whole(function: Callable[[Any], Any], towards: Callable[[Any], Any]) -> None:
    """Makes ``function`` raise for floats that 64 bits do not hold; Numba returns anything."""

    @overload(function)
    def _compiled(x: Any) -> Any:
        if isinstance(x, types.Boolean):
            return lambda x: 1 if x else 0
        if not isinstance(x, types.Float):
            return lambda x: int(x)  # noqa: PLW0108 - the code, for Numba to read

        def compiled(x: Any) -> Any:
            result = towards(x)
            if not -_TWO_63 <= result < _TWO_63:
                raise OverflowError("does not fit into 64 bits")
            return int(result)

        return compiled


_TWO_63: Final = float(2**63)
_checked_whole(whole, np.trunc)
_checked_whole(nearest, np.rint)
_checked_whole(_whole_floor, np.floor)
_checked_whole(_whole_ceil, np.ceil)

CONVERSIONS: Final[dict[Any, Callable[..., Any]]] = {int: whole, float: real, round: nearest}
"""What compiled code calls instead of these; as objects they are left alone."""

STAND_INS: Final[dict[Any, Callable[..., Any]]] = {
    **{getattr(math, name): _checked(getattr(math, name)) for name in _UNARY},
    math.fmod: _checked_fmod(),
    math.pow: math_pow,
    math.floor: _whole_floor,
    math.ceil: _whole_ceil,
    math.trunc: whole,
    pow: power,
    operator.pow: power,
}
"""What compiled code calls instead."""

OTHERWISE: Final[dict[Any, str]] = {
    math.hypot: "math.sqrt(x * x + y * y)",
    math.gamma: "a function of your own",
    math.lgamma: "a function of your own",
}
"""Functions that Python computes with code of its own, to other last digits; what to write."""
