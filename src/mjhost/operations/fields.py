"""What a field of a request or response holds: a sentence, a unit, a frame, a shape.

Owns: ``about``, the only way in which fields are described, and ``facts_of``, which reads it back.
Invariants: a description is one sentence without a full stop. A number has a unit, ``"1"`` if it is
a pure one; what depends on a direction has a frame. In a *response* ``null`` stands where a number
is not finite; in a *request* a number that is not finite is refused.
Threads: immutable values, safe anywhere.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias, get_args, get_origin

import msgspec

Real: TypeAlias = float | None
"""A number of a response; ``None`` where it is not finite."""

RealVector: TypeAlias = tuple[Real, ...]
RealMatrix: TypeAlias = tuple[RealVector, ...]
RealTriple: TypeAlias = tuple[Real, Real, Real]
RealQuaternion: TypeAlias = tuple[Real, Real, Real, Real]

Triple: TypeAlias = tuple[float, float, float]
"""Three numbers of a request."""

Quaternion: TypeAlias = tuple[float, float, float, float]
"""A quaternion of a request, in the order w x y z."""

NotNegative: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]
"""A number of a request that is at least 0."""

Positive: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
"""A count of a request that is at least 1."""

NAME_LENGTH: Final = 1000
"""Most characters of a name in a request."""

Name: TypeAlias = Annotated[str, msgspec.Meta(max_length=NAME_LENGTH)]
"""A name in a request."""


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a client asks with; a field that does not exist is refused."""


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """What a client is answered; later versions may add fields."""


class Nothing(Request, frozen=True, kw_only=True):
    """A request without fields."""


class Done(Response, frozen=True, kw_only=True):
    """A response without fields: it was done."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is said about one field.

    Attributes:
        description: one sentence without a full stop.
        unit: SI unit; ``"1"`` for a pure number, empty for what is no number.
        frame: the frame its directions are given in, empty for what has none.
        shape: in MuJoCo's size names, empty for a scalar or a fixed number.
    """

    description: str = ""
    unit: str = ""
    frame: str = ""
    shape: str = ""


def about(description: str, unit: str = "", *, frame: str = "", shape: str = "") -> msgspec.Meta:
    """The annotation of a field.

    Args:
        description: one sentence without a full stop.
        unit: SI unit; ``"1"`` for a pure number.
        frame: the frame of a direction or position.
        shape: of an array without a fixed size.
    """
    facts = {"unit": unit, "frame": frame, "shape": shape}
    told = {name: text for name, text in facts.items() if text}
    schema = {f"x-{name}": text for name, text in told.items()}
    return msgspec.Meta(description=description, extra=told, extra_json_schema=schema or None)


def facts_of(annotation: Any) -> Facts:
    """What ``about`` said of a field with this annotation; empty texts if it was not used."""
    if get_origin(annotation) is not Annotated:
        return Facts()
    for note in get_args(annotation)[1:]:
        if isinstance(note, msgspec.Meta) and note.description:
            return Facts(description=note.description, **(note.extra or {}))
    return Facts()
