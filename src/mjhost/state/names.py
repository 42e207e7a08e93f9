"""The names of a model's objects, and the one way from a name to an index.

Owns: the table of kinds of objects, and the dictionaries of a model's names, made when first asked
for.
Invariants: every object has exactly one name here: its own, or ``#`` and its index (``#3``) if the
model gives it none. Indices never leave the core.
Threads: a compiled model never changes its names, so a ``Names`` may be asked from anywhere; two
threads that make the same dictionary make the same one.
Failure: ``UnknownNameError`` that says what is near, what exists, and whether an object of another
kind has that name.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import mujoco

from mjhost.errors import InvalidArgumentError, UnknownNameError, did_you_mean


class ObjectKind(enum.StrEnum):
    """What can have a name; the value is MuJoCo's word."""

    BODY = "body"
    JOINT = "joint"
    GEOM = "geom"
    SITE = "site"
    CAMERA = "camera"
    LIGHT = "light"
    FLEX = "flex"
    MESH = "mesh"
    SKIN = "skin"
    HFIELD = "hfield"
    TEXTURE = "texture"
    MATERIAL = "material"
    PAIR = "pair"
    EXCLUDE = "exclude"
    EQUALITY = "equality"
    TENDON = "tendon"
    ACTUATOR = "actuator"
    SENSOR = "sensor"
    NUMERIC = "numeric"
    TEXT = "text"
    TUPLE = "tuple"
    KEYFRAME = "keyframe"
    PLUGIN = "plugin"


# The member of mjModel that says where the names of a kind begin; its length is their number.
_ADDRESSES: Final[dict[ObjectKind, str]] = {
    kind: f"name_{word}adr"
    for kind, word in {
        **{kind: kind.value for kind in ObjectKind},
        ObjectKind.JOINT: "jnt",
        ObjectKind.CAMERA: "cam",
        ObjectKind.TEXTURE: "tex",
        ObjectKind.MATERIAL: "mat",
        ObjectKind.EQUALITY: "eq",
        ObjectKind.KEYFRAME: "key",
    }.items()
}

# Kinds in which a name that was looked for in the wrong place is worth a hint.
_MISTAKABLE: Final = (
    ObjectKind.BODY,
    ObjectKind.JOINT,
    ObjectKind.GEOM,
    ObjectKind.SITE,
    ObjectKind.CAMERA,
    ObjectKind.EQUALITY,
    ObjectKind.TENDON,
    ObjectKind.ACTUATOR,
    ObjectKind.SENSOR,
)


class Names:
    """The names of one compiled model.

    Example:
        >>> import mujoco
        >>> names = Names(mujoco.MjModel.from_xml_string("<mujoco><worldbody/></mujoco>"))
        >>> names.id(ObjectKind.BODY, "world")
        0
    """

    __slots__ = ("_ids", "_names", "_tables", "_text")

    def __init__(self, model: mujoco.MjModel) -> None:
        self._text: bytes = model.names
        self._tables = {kind: getattr(model, member) for kind, member in _ADDRESSES.items()}
        self._names: dict[ObjectKind, tuple[str, ...]] = {}
        self._ids: dict[ObjectKind, Mapping[str, int]] = {}

    def of(self, kind: ObjectKind) -> tuple[str, ...]:
        """The names of all objects of ``kind``, in the order of their indices."""
        names = self._names.get(kind)
        if names is None:
            spelled = [self._spelled(int(address)) for address in self._tables[kind]]
            names = self._names[kind] = _complete(spelled)
        return names

    def _spelled(self, address: int) -> str:
        end = self._text.index(0, address)
        return self._text[address:end].decode("utf-8", "surrogateescape")

    def ids(self, kind: ObjectKind) -> Mapping[str, int]:
        """The indices of all objects of ``kind`` by name."""
        ids = self._ids.get(kind)
        if ids is None:
            numbered = {name: index for index, name in enumerate(self.of(kind))}
            ids = self._ids[kind] = MappingProxyType(numbered)
        return ids

    def name(self, kind: ObjectKind, index: int) -> str:
        """The name of the object of ``kind`` with ``index``."""
        return self.of(kind)[index]

    def id(self, kind: ObjectKind, name: str) -> int:
        """The index of the object of ``kind`` called ``name``.

        Raises:
            UnknownNameError: there is none.
            InvalidArgumentError: ``name`` is no text.
        """
        ids = self._ids.get(kind) or self.ids(kind)
        try:
            return ids[name]
        except (KeyError, TypeError):
            raise self._unknown(kind, name) from None

    def selected(self, kind: ObjectKind, names: Iterable[str] | None) -> dict[str, int]:
        """Indices by name: of ``names``, or of all objects of ``kind``.

        Raises:
            UnknownNameError: one of them does not exist.
            InvalidArgumentError: ``names`` is one text instead of several.
        """
        if names is None:
            return dict(self.ids(kind))
        if isinstance(names, str):
            raise InvalidArgumentError(
                f"the names of several {kind} objects are asked for as a list, got the text "
                f"{names!r}; write [{names!r}]"
            )
        return {name: self.id(kind, name) for name in names}

    def _unknown(self, kind: ObjectKind, name: Any) -> Exception:
        if not isinstance(name, str):
            return InvalidArgumentError(
                f"a {kind} is asked for by its name, a text, got {name!r} ({type(name).__name__})"
            )
        elsewhere = [other for other in _MISTAKABLE if other != kind and name in self.ids(other)]
        if elsewhere and not name.startswith("#"):
            others = " and ".join(f"a {other}" for other in elsewhere)
            return UnknownNameError(
                f"no {kind} is named {name!r}, but {others} is; "
                f"{did_you_mean(name, self.ids(kind))}"
            )
        return UnknownNameError(
            f"no {kind} is named {name!r}; {did_you_mean(name, self.ids(kind))}"
        )


def _complete(spelled: list[str]) -> tuple[str, ...]:
    """``spelled`` with a name for each object that has none, different from all others."""
    taken = {name for name in spelled if name.startswith("#")}
    names = []
    for index, name in enumerate(spelled):
        label = name or f"#{index}"
        while not name and label in taken:
            label = f"#{label}"
        names.append(label)
    return tuple(names)
