"""A class as an engine plugin: what it declares, checked before anything is registered.

Owns: ``plugin``, ``declare`` and the records they make. Pure but for the last line of ``plugin``,
which hands the declaration to the registry.
Invariants: a declaration is right or it does not exist. What it says about the class does not
change afterwards; the shape is the part that the engine and compiled models rely on.
Threads: declarations are immutable.
Failure: ``EngineDeclarationError`` with class, file and line; ``EngineNameTakenError`` from the
registry. Nothing was registered.
"""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import FrameType, MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

from mjhost.engine import attributes, members
from mjhost.engine.attributes import AttributeSpec
from mjhost.engine.methods import CAPABILITIES, METHODS, STAGES, capability_flags
from mjhost.errors import EngineDeclarationError, did_you_mean

ClassT = TypeVar("ClassT", bound=type)

SLICES: Final = MappingProxyType(
    {
        "state": "float64",
        "act": "float64",
        "act_dot": "float64",
        "sensordata": "float64",
        "actuators": "int32",
        "ctrladr": "int32",
        "outadr": "int32",
        "actadr": "int32",
        "sensors": "int32",
        "sensoradr": "int32",
        "bodies": "int32",
        "geoms": "int32",
    }
)
"""What ``self`` has besides attributes: name → element type; ``instances`` says what each is."""

_LONGEST_NAME: Final = 1023
_MOST_ATTRIBUTES: Final = 255

MECHANISMS: Final = (
    "MuJoCo can be extended in four ways: mjcb_* callbacks (engine.callback), engine plugins that "
    "are actuators, sensors, passive forces or SDFs (engine.plugin), decoders and encoders, and "
    "resource providers; there is no other, and none that replaces a solver or an integrator"
)


class Origin(NamedTuple):
    """Where a declaration stands.

    Attributes:
        file: the source, or a name for an interactive session.
        line: of the decorator.
        qualname: of the class.
    """

    file: str
    line: int
    qualname: str

    def __str__(self) -> str:
        return f"{self.qualname} ({self.file}:{self.line})"

    def is_same_source(self, other: Origin) -> bool:
        """Whether both are the same class, perhaps edited in between."""
        return (self.file, self.qualname) == (other.file, other.qualname)


class Shape(NamedTuple):
    """What the engine and compiled models rely on; it is frozen when the name is registered.

    ``None`` as a size stands for a method: it decides per model, and is compared per model.
    """

    capabilities: tuple[str, ...]
    attributes: tuple[str, ...]
    stage: str | None
    state_size: int | None
    sensor_size: int | None

    def difference(self, other: Shape) -> str:
        """How ``other`` differs, in words; empty if it does not."""
        return "; ".join(
            f"{name} was {_told(mine)} and is now {_told(theirs)}"
            for name, mine, theirs in zip(self._fields, self, other, strict=True)
            if mine != theirs
        )


def _told(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(value)})"
    return "a method" if value is None else repr(value)


@dataclass(frozen=True, eq=False)
class Declaration:
    """One class, declared as an engine plugin.

    Attributes:
        name: what models call it.
        cls: the class.
        capabilities: in the order of the table.
        attributes: keys of ``<config>``, in the order of the text.
        methods: the methods of the table that exist, as plain functions; the SDF ones that the
            class leaves out are filled in.
        helpers: its other plain functions.
        constants: class attributes that are neither; read-only.
        stage: when its sensors are computed; ``None`` for what is no sensor.
        compiled: whether Numba compiles the methods.
        memo_type: the ``NamedTuple`` class that ``init`` is annotated to return, or ``None``.
        origin: where it stands.
    """

    name: str
    cls: type
    capabilities: tuple[str, ...]
    attributes: Mapping[str, AttributeSpec]
    methods: Mapping[str, Callable[..., Any]]
    helpers: Mapping[str, Callable[..., Any]]
    constants: Mapping[str, Any]
    stage: str | None
    compiled: bool
    memo_type: type | None
    origin: Origin

    @property
    def flags(self) -> int:
        """The engine's capability bits."""
        return capability_flags(self.capabilities)

    @property
    def need_stage(self) -> int:
        """The engine's number of the stage."""
        return STAGES[self.stage] if self.stage else 0

    @property
    def shape(self) -> Shape:
        """The part that is frozen once the name is registered."""
        return Shape(
            self.capabilities,
            tuple(self.attributes),
            self.stage,
            self._size("state_size"),
            self._size("sensor_size"),
        )

    def _size(self, name: str) -> int | None:
        return None if name in self.methods else int(self.constants.get(name, 0))


def plugin(
    name: str,
    capabilities: Iterable[str],
    *,
    stage: str | None = None,
    compiled: bool = False,
) -> Callable[[ClassT], ClassT]:
    """Class decorator: registers the class as an engine plugin, for the life of the process.

    ::

        @engine.plugin("acme.spring", capabilities=("passive",))
        class Spring:
            stiffness: float = engine.attribute(10.0, minimum=0)

            def compute(self, model, data, instance, capability):
                data.qfrc_passive[0] -= self.stiffness * data.qpos[0]

    The class is returned as it is. Declaring the same class of the same file again, in a notebook
    or by a reload, replaces the implementation behind the name.

    Args:
        name: what models call it, ``<plugin plugin="acme.spring"/>``: 1 to 1023 printable
            characters, unique whatever the case.
        capabilities: one or more of ``actuator``, ``sensor``, ``passive``, ``sdf``.
        stage: when a sensor is computed: ``pos``, ``vel`` or ``acc`` (the default).
        compiled: compile the methods with Numba (extra ``fast``).

    Raises:
        EngineDeclarationError: something about it cannot be right.
        EngineNameTakenError: the engine has something else under that name.
    """
    frame = sys._getframe(1)

    def decorate(cls: ClassT) -> ClassT:
        from mjhost.engine import registry

        registry.register_plugin(
            declare(name, cls, capabilities, stage=stage, compiled=compiled, frame=frame)
        )
        return cls

    return decorate


def declare(
    name: str,
    cls: type,
    capabilities: Iterable[str],
    *,
    stage: str | None = None,
    compiled: bool = False,
    frame: FrameType | None = None,
) -> Declaration:
    """Checks ``cls`` and says what it declares; the arguments are those of ``plugin``.

    ``frame`` is the place of the declaration, for its origin and for local names in annotations.
    """
    if not isinstance(cls, type):
        raise EngineDeclarationError(f"an engine plugin is a class, got {cls!r}")
    origin = _origin(cls, frame)
    try:
        return _declaration(
            name, cls, capabilities, stage=stage, compiled=compiled, origin=origin, frame=frame
        )
    except EngineDeclarationError as error:
        raise EngineDeclarationError(f"engine plugin {name!r}, {origin}: {error}") from error


def _declaration(
    name: str,
    cls: type,
    capabilities: Iterable[str],
    *,
    stage: str | None,
    compiled: bool,
    origin: Origin,
    frame: FrameType | None,
) -> Declaration:
    _check_name(name)
    scope = {} if frame is None else frame.f_locals
    known = _capabilities(capabilities)
    specs = attributes.specifications(cls, scope)
    _check_attributes(specs)
    found = members.members(cls, specs, known)
    return Declaration(
        name=name,
        cls=cls,
        capabilities=known,
        attributes=MappingProxyType(specs),
        methods=MappingProxyType(found.methods),
        helpers=MappingProxyType(found.helpers),
        constants=MappingProxyType(found.constants),
        stage=_stage(stage, known),
        compiled=bool(compiled),
        memo_type=_memo_type(found.methods.get("init"), scope),
        origin=origin,
    )


def _check_name(name: str) -> None:
    # Printable first: what cannot be encoded is not.
    if isinstance(name, str) and (not name.isprintable() or name != name.strip() or " " in name):
        raise EngineDeclarationError(
            f"a name has only printable characters and no blanks, got {name!r}"
        )
    if not isinstance(name, str) or not 1 <= len(name.encode()) <= _LONGEST_NAME:
        raise EngineDeclarationError(
            f"a name has 1 to {_LONGEST_NAME} bytes, got "
            + (f"{len(name.encode())}" if isinstance(name, str) else repr(name))
        )


def _capabilities(given: Iterable[str]) -> tuple[str, ...]:
    wanted = (given,) if isinstance(given, str) else tuple(given)
    unknown = [item for item in wanted if item not in CAPABILITIES]
    if unknown:
        raise EngineDeclarationError(
            f"there is no capability {unknown[0]!r}; {did_you_mean(str(unknown[0]), CAPABILITIES)}."
            f" {MECHANISMS}"
        )
    if not wanted:
        raise EngineDeclarationError(
            f"a plugin needs at least one capability out of {', '.join(CAPABILITIES)}"
        )
    return tuple(name for name in CAPABILITIES if name in wanted)


def _stage(stage: str | None, capabilities: tuple[str, ...]) -> str | None:
    if "sensor" not in capabilities:
        if stage is not None:
            raise EngineDeclarationError(
                f"a stage ({stage!r}) is for sensors, the capabilities are "
                f"{', '.join(capabilities)}; leave it out"
            )
        return None
    chosen = "acc" if stage is None else stage
    if chosen not in STAGES:
        raise EngineDeclarationError(
            f"there is no stage {stage!r}: a sensor is computed after positions ('pos'), after "
            "velocities ('vel') or after accelerations ('acc')"
        )
    return chosen


def _check_attributes(specs: Mapping[str, AttributeSpec]) -> None:
    if len(specs) > _MOST_ATTRIBUTES:
        raise EngineDeclarationError(
            f"the engine takes {_MOST_ATTRIBUTES} attributes, these are {len(specs)}; use vectors"
        )
    for name in specs:
        taken = {**METHODS, **SLICES, "memo": None}
        if name in taken:
            raise EngineDeclarationError(
                f"the attribute {name!r} would hide what self.{name} is; choose another name"
                + (f", or drop the annotation of the constant {name!r}" if name in METHODS else "")
            )


def _memo_type(init: Callable[..., Any] | None, scope: Mapping[str, Any]) -> type | None:
    annotation = getattr(init, "__annotations__", {}).get("return")
    if isinstance(annotation, str):
        try:
            hints = typing.get_type_hints(init, localns=dict(scope))
        except (NameError, SyntaxError, TypeError):
            return None
        annotation = hints.get("return")
    is_named_tuple = isinstance(annotation, type) and issubclass(annotation, tuple)
    return annotation if is_named_tuple and hasattr(annotation, "_fields") else None


def _origin(cls: type, frame: FrameType | None) -> Origin:
    if frame is not None:
        file = frame.f_code.co_filename
        # Every cell of a notebook is a file of its own, and another one once it was edited.
        script = getattr(sys.modules.get("__main__"), "__file__", None)
        if cls.__module__ == "__main__" and file != script:
            file = "interactive session"
        return Origin(file, frame.f_lineno, cls.__qualname__)
    try:
        return Origin(inspect.getfile(cls), inspect.getsourcelines(cls)[1], cls.__qualname__)
    except (OSError, TypeError):
        return Origin(cls.__module__, 0, cls.__qualname__)
