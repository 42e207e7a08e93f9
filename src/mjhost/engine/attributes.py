"""Typed attributes of engine plugins: what a ``<config key= value=>`` may say.

Owns: the kinds of attributes, how an annotation becomes one, and how MJCF text becomes a value.
Invariants: text is parsed completely or refused; nothing is guessed, clamped or cut off. A number
is finite unless the default or a bound of its attribute is infinite; NaN never passes.
Threads: specifications are immutable.
Failure: ``EngineDeclarationError`` for what cannot be an attribute; ``ValueError`` for a text, with
what is wrong and what is expected.
"""

from __future__ import annotations

import enum
import inspect
import math
import re
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from mjhost.errors import EngineDeclarationError, did_you_mean

_MISSING: Final = object()
_INT64: Final = 2**63
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?inf(inity)?")
_ARRAY: Final = re.compile(r"\s*['\"]?(float64|float|int32|int64|int)\[\s*(:|[0-9]+)\s*\]['\"]?\s*")
_DTYPES: Final = {"float64": "float64", "float": "float64", "int": "int64"}
_TRUTH: Final = {"true": True, "false": False, "1": True, "0": False}
_SHOWN: Final = 60  # characters of a text in a message


@dataclass(frozen=True, slots=True)
class Marker:
    """What ``attribute`` leaves in a class body until the class is declared."""

    default: Any
    minimum: float | None
    maximum: float | None
    choices: tuple[Any, ...] | None
    doc: str


def attribute(
    default: Any = _MISSING,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: Sequence[Any] | None = None,
    doc: str = "",
) -> Any:
    """An attribute with limits, for an annotated name of an engine plugin.

    ::

        kp: float = engine.attribute(10.0, minimum=0, doc="proportional gain, N·m/rad")

    Args:
        default: the value where the model has no text for it; without, the model has to.
        minimum: least value, included; of each element for a vector.
        maximum: greatest value, included; of each element for a vector.
        choices: the only values there are.
        doc: one line for reports.
    """
    return Marker(default, minimum, maximum, None if choices is None else tuple(choices), doc)


@dataclass(frozen=True, slots=True)
class AttributeSpec:
    """One attribute as declared.

    Attributes:
        name: key of ``<config>``.
        kind: ``float``, ``int``, ``bool``, ``str``, ``vector`` or ``enum``.
        default: value without a text; meaningless if ``required``.
        required: whether a model has to give a text.
        size: elements of a vector, ``None`` for any number; 1 for everything else.
        dtype: element type of a vector: ``float64``, ``int32`` or ``int64``.
        enum: the class of an ``enum``.
    """

    name: str
    kind: str
    default: Any = None
    required: bool = False
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[Any, ...] | None = None
    doc: str = ""
    size: int | None = 1
    dtype: str = "float64"
    enum: type[enum.Enum] | None = field(default=None, compare=False)

    @property
    def expectation(self) -> str:
        """What a text has to be, in words."""
        words = _NOUNS[self.kind](self)
        if self.choices is not None and self.kind != "enum":
            words += " out of " + ", ".join(str(choice) for choice in self.choices)
        if self.minimum is not None and self.maximum is not None:
            return f"{words} from {self.minimum} to {self.maximum}"
        if self.minimum is not None:
            return f"{words} of at least {self.minimum}"
        return words if self.maximum is None else f"{words} of at most {self.maximum}"

    def parse(self, text: str) -> Any:
        """The value of a text of the model; the default for an empty one.

        Raises:
            ValueError: it is none; the message gives text and expectation.
        """
        text = text.strip()
        if not text:
            if self.required:
                raise ValueError(f"{self.name} has no value; expected {self.expectation}")
            return self.default
        try:
            return self.checked(_PARSERS[self.kind](self, text))
        except ValueError as error:
            shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
            raise ValueError(
                f'{self.name}="{shown}" {error}; expected {self.expectation}'
            ) from None

    def checked(self, value: Any) -> Any:
        """``value``, if it obeys the limits.

        Raises:
            ValueError: it does not; the message says how.
        """
        for element in np.ravel(value) if self.kind == "vector" else (value,):
            self._check_element(element)
        if self.kind == "vector" and self.size is not None and len(value) != self.size:
            raise ValueError(f"has {len(value)} elements")
        return value

    def _check_element(self, value: Any) -> None:
        if self.choices is not None and value not in self.choices:
            raise ValueError("is none of the choices")
        if isinstance(value, float):
            if math.isnan(value):
                raise ValueError("is no number")
            if math.isinf(value) and not self._may_be_infinite:
                raise ValueError("is infinite")
        if self.minimum is not None and value < self.minimum:
            raise ValueError("is too small")
        if self.maximum is not None and value > self.maximum:
            raise ValueError("is too large")

    @property
    def _may_be_infinite(self) -> bool:
        given = [self.minimum, self.maximum, *(self.choices or ())]
        if not self.required:
            given += list(np.ravel(self.default))
        return any(isinstance(value, float) and math.isinf(value) for value in given)


# -- parsing -------------------------------------------------------------------------------------


def _parse_float(_: AttributeSpec, text: str) -> float:
    if not _NUMBER.fullmatch(text.lower()):
        raise ValueError("is no number")
    return float(text)


def _parse_int(_: AttributeSpec, text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError("is no whole number")
    value = int(text)
    if not -_INT64 <= value < _INT64:
        raise ValueError("does not fit into 64 bits")
    return value


def _parse_bool(_: AttributeSpec, text: str) -> bool:
    if text not in _TRUTH:
        raise ValueError("is no truth value")
    return _TRUTH[text]


def _parse_str(_: AttributeSpec, text: str) -> str:
    return text


def _parse_enum(spec: AttributeSpec, text: str) -> enum.Enum:
    assert spec.enum is not None
    names = _enum_names(spec.enum)
    if text not in names:
        raise ValueError(f"does not exist ({did_you_mean(text, names)})")
    return names[text]


def _parse_vector(spec: AttributeSpec, text: str) -> np.ndarray:
    parse = _parse_float if spec.dtype == "float64" else _parse_int
    values = []
    for word in text.replace(",", " ").split():
        try:
            values.append(parse(spec, word))
        except ValueError as error:
            raise ValueError(f"has {word!r}, which {error}") from None
    return _vector(values, spec.dtype)


def _vector(values: Any, dtype: str) -> np.ndarray:
    """A one-dimensional array that nobody can change."""
    try:
        array = np.array(values, dtype=dtype)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"is no vector of {dtype} ({error})") from None
    if array.ndim != 1:
        raise ValueError(f"has {array.ndim} dimensions")
    array.flags.writeable = False
    return array


def _enum_names(kind: type[enum.Enum]) -> Mapping[str, enum.Enum]:
    """Member names, and the values that are text."""
    texts = {member.value: member for member in kind if isinstance(member.value, str)}
    return {**texts, **kind.__members__}


_PARSERS: Final[Mapping[str, Callable[[AttributeSpec, str], Any]]] = {
    "float": _parse_float,
    "int": _parse_int,
    "bool": _parse_bool,
    "str": _parse_str,
    "enum": _parse_enum,
    "vector": _parse_vector,
}


def _vector_noun(spec: AttributeSpec) -> str:
    noun = "numbers" if spec.dtype == "float64" else "whole numbers"
    return f"{noun}, separated by blanks" if spec.size is None else f"{spec.size} {noun}"


def _enum_noun(spec: AttributeSpec) -> str:
    assert spec.enum is not None
    return "one of " + ", ".join(spec.enum.__members__)


_NOUNS: Final[Mapping[str, Callable[[AttributeSpec], str]]] = {
    "float": lambda _: "a number",
    "int": lambda _: "a whole number",
    "bool": lambda _: '"true" or "false"',
    "str": lambda _: "a text",
    "enum": _enum_noun,
    "vector": _vector_noun,
}


# -- declaring -----------------------------------------------------------------------------------


def specifications(cls: type, scope: Mapping[str, Any]) -> dict[str, AttributeSpec]:
    """The attributes that ``cls`` and its bases declare, in the order of the text.

    Args:
        cls: the class.
        scope: local names of the place where it is declared; annotations may use them.

    Raises:
        EngineDeclarationError: an annotation, default or limit that makes no attribute.
    """
    found: dict[str, AttributeSpec] = {}
    for owner in reversed(cls.__mro__[:-1]):
        for name, annotation in _annotations(owner).items():
            if not _is_constant(annotation, owner, scope):
                found[name] = _specification(cls, owner, name, annotation, scope)
    return found


def _annotations(owner: type) -> Mapping[str, Any]:
    if sys.version_info >= (3, 14):
        import annotationlib

        form = annotationlib.Format.FORWARDREF
        return annotationlib.get_annotations(owner, format=form)
    return inspect.get_annotations(owner)


def _is_constant(annotation: Any, owner: type, scope: Mapping[str, Any]) -> bool:
    if isinstance(annotation, str):
        if "ClassVar" not in annotation and "Final" not in annotation:
            return False
        annotation = _resolved(annotation, owner, scope)
    return typing.get_origin(annotation) in {typing.ClassVar, typing.Final} or annotation in (
        typing.ClassVar,
        typing.Final,
    )


def _specification(
    cls: type, owner: type, name: str, annotation: Any, scope: Mapping[str, Any]
) -> AttributeSpec:
    where = f"attribute {name!r} of {cls.__qualname__}"
    if name.startswith("_"):
        raise EngineDeclarationError(f"{where}: a key of <config> cannot begin with an underscore")
    try:
        kind = _kind(annotation, owner, scope)
    except (NameError, SyntaxError, TypeError) as error:
        raise EngineDeclarationError(
            f"{where}: the annotation {_shown(annotation)} is none of float, int, bool, str, an "
            f'enum.Enum, "float64[3]", "float64[:]", tuple[float, ...] ({error}); '
            "a constant goes without annotation"
        ) from None
    given = cls.__dict__.get(name, getattr(cls, name, _MISSING))
    marker = given if isinstance(given, Marker) else Marker(given, None, None, None, "")
    try:
        return _with_limits(name, kind, marker)
    except ValueError as error:
        raise EngineDeclarationError(f"{where}: {error}") from None


def _shown(annotation: Any) -> str:
    return (
        annotation
        if isinstance(annotation, str)
        else getattr(annotation, "__name__", "") or (repr(annotation))
    )


def _with_limits(name: str, kind: Mapping[str, Any], marker: Marker) -> AttributeSpec:
    _check_limits(kind["kind"], marker)
    required = marker.default is _MISSING
    choices = marker.choices if marker.choices is not None else kind.get("choices")
    spec = AttributeSpec(
        **{key: value for key, value in kind.items() if key != "choices"},
        name=name,
        default=None if required else _default(kind, marker.default),
        required=required,
        minimum=marker.minimum,
        maximum=marker.maximum,
        choices=choices,
        doc=marker.doc,
    )
    if not required:
        try:
            spec.checked(spec.default)
        except ValueError as error:
            raise ValueError(
                f"the default {marker.default!r} {error}; expected {spec.expectation}"
            ) from None
    return spec


def _check_limits(kind: str, marker: Marker) -> None:
    limited = marker.minimum is not None or marker.maximum is not None
    if limited and kind not in {"float", "int", "vector"}:
        raise ValueError(f"minimum and maximum are for numbers, this is {kind}")
    for limit in (marker.minimum, marker.maximum):
        if limit is not None and (not isinstance(limit, int | float) or math.isnan(limit)):
            raise ValueError(f"a limit must be a number, got {limit!r}")
    if None not in (marker.minimum, marker.maximum) and marker.minimum > marker.maximum:  # type: ignore[operator]
        raise ValueError(f"minimum {marker.minimum} is above maximum {marker.maximum}")
    if marker.choices is not None and not marker.choices:
        raise ValueError("choices are empty")


def _default(kind: Mapping[str, Any], default: Any) -> Any:
    """``default`` as the type that a parsed text has."""
    if kind["kind"] == "vector":
        return _vector(default, kind.get("dtype", "float64"))
    wanted: Any = (
        kind.get("enum") or {"float": float, "int": int, "bool": bool, "str": str}[kind["kind"]]
    )
    if wanted is float and isinstance(default, int) and not isinstance(default, bool):
        return float(default)
    is_truth_for_number = wanted is int and isinstance(default, bool)
    if not isinstance(default, wanted) or is_truth_for_number:
        raise ValueError(
            f"the default {default!r} is {type(default).__name__}, the annotation says "
            f"{wanted.__name__}"
        )
    return default


# -- annotations ---------------------------------------------------------------------------------


def _kind(annotation: Any, owner: type, scope: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a specification that an annotation decides."""
    if isinstance(annotation, str):
        array = _ARRAY.fullmatch(annotation)
        if array:
            dtype = _DTYPES.get(array[1], array[1])
            return _vector_kind(dtype, None if array[2] == ":" else int(array[2]))
        annotation = _resolved(annotation, owner, scope)
        if isinstance(annotation, str):
            return _kind(annotation, owner, scope)
    return _kind_of_type(annotation)


def _resolved(annotation: str, owner: type, scope: Mapping[str, Any]) -> Any:
    names = vars(sys.modules[owner.__module__]) if owner.__module__ in sys.modules else {}
    return eval(annotation, dict(names), {**vars(owner), **scope})  # noqa: S307 - the class's own text


def _kind_of_type(annotation: Any) -> dict[str, Any]:
    simple = {float: "float", int: "int", bool: "bool", str: "str"}
    if isinstance(annotation, type) and annotation in simple:
        return {"kind": simple[annotation]}
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return {"kind": "enum", "enum": annotation}
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal and all(isinstance(choice, str) for choice in arguments):
        return {"kind": "str", "choices": arguments}
    if origin is tuple:
        return _tuple_kind(arguments)
    if annotation is np.ndarray or origin is np.ndarray:
        return _vector_kind("float64", None)
    raise TypeError("not supported")


def _tuple_kind(arguments: tuple[Any, ...]) -> dict[str, Any]:
    elements = tuple(argument for argument in arguments if argument is not Ellipsis)
    if not elements or len(set(elements)) != 1 or elements[0] not in {float, int}:
        raise TypeError("a vector has elements of float, or of int")
    dtype = "float64" if elements[0] is float else "int64"
    return _vector_kind(dtype, None if Ellipsis in arguments else len(elements))


def _vector_kind(dtype: str, size: int | None) -> dict[str, Any]:
    return {"kind": "vector", "dtype": dtype, "size": size}
