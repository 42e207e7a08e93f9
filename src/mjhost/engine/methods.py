"""The one table of what an engine plugin may define.

Owns: capabilities, sensor stages, and per method its name here, its slot in the engine, its
arguments, who needs it and what happens without it. Everything that treats methods by name reads
this table: the checks of a declaration, the trampolines, the compiled path, the reports.
Threads: constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

CAPABILITIES: Final = MappingProxyType({"actuator": 1, "sensor": 2, "passive": 4, "sdf": 8})
"""What a plugin can be, and the engine's bit for it; ``compute`` gets the bit."""

STAGES: Final = MappingProxyType({"pos": 1, "vel": 2, "acc": 3})
"""When a sensor is computed, and the engine's number for it (``mjtStage``)."""

EVERY: Final = frozenset(CAPABILITIES)
_SDF: Final = frozenset({"sdf"})
_FORCES: Final = frozenset({"actuator", "sensor", "passive"})


@dataclass(frozen=True, slots=True)
class Method:
    """One method of the table.

    Attributes:
        name: as users define it.
        slot: the member of the engine's plugin struct.
        arguments: what it is called with, after ``self``.
        used_by: capabilities for which the engine calls it.
        required_by: capabilities that cannot do without it.
        otherwise: what happens where it is not defined.
        may_be_constant: whether a class attribute of that name, an int, is as good.
    """

    name: str
    slot: str
    arguments: tuple[str, ...]
    used_by: frozenset[str] = EVERY
    required_by: frozenset[str] = frozenset()
    otherwise: str = "nothing happens"
    may_be_constant: bool = False

    @property
    def signature(self) -> str:
        """The line to write, for messages."""
        return f"def {self.name}({', '.join(('self', *self.arguments))})"


_STEP: Final = ("model", "data", "instance")

METHODS: Final = MappingProxyType(
    {
        method.name: method
        for method in (
            Method(
                "state_size",
                "nstate",
                ("model", "instance"),
                otherwise="the instance has no plugin_state",
                may_be_constant=True,
            ),
            Method(
                "sensor_size",
                "nsensordata",
                ("model", "instance", "sensor"),
                used_by=frozenset({"sensor"}),
                required_by=frozenset({"sensor"}),
                may_be_constant=True,
            ),
            Method("init", "init", _STEP, otherwise="self.memo is None"),
            Method("destroy", "destroy", ("data", "instance"), otherwise="the memo is let go of"),
            Method(
                "copy",
                "copy",
                ("model", "target", "source", "instance"),
                otherwise="init makes the target's memo",
            ),
            Method("reset", "reset", _STEP, otherwise="plugin_state is zero"),
            Method("compute", "compute", (*_STEP, "capability"), required_by=_FORCES),
            Method("advance", "advance", _STEP),
            Method("actuator_act_dot", "actuator_act_dot", _STEP, used_by=frozenset({"actuator"})),
            Method("visualize", "visualize", ("model", "data", "option", "scene", "instance")),
            Method(
                "sdf_distance",
                "sdf_distance",
                ("point", "data", "instance"),
                used_by=_SDF,
                otherwise="sdf_static_distance answers",
            ),
            Method(
                "sdf_gradient",
                "sdf_gradient",
                ("point", "data", "instance"),
                used_by=_SDF,
                otherwise="central differences of sdf_distance",
            ),
            Method(
                "sdf_static_distance",
                "sdf_staticdistance",
                ("point",),
                used_by=_SDF,
                required_by=_SDF,
            ),
            Method("sdf_aabb", "sdf_aabb", (), used_by=_SDF, required_by=_SDF),
        )
    }
)

DERIVED_SLOTS: Final = MappingProxyType({"sdf_attribute": "the annotated attributes of the class"})
"""Slots of the engine that no method stands for, and what does."""

FOREIGN_NAMES: Final = MappingProxyType(
    {method.slot: method.name for method in METHODS.values() if method.slot != method.name}
    | {"sdf_attribute": "", "sdf_attributes": "", "setup": "init", "act_dot": "actuator_act_dot"}
)
"""Names under which people look for a method, and its name here; empty where it is derived."""


def capability_flags(capabilities: tuple[str, ...]) -> int:
    """The engine's bits for some capabilities."""
    return sum(CAPABILITIES[name] for name in capabilities)


def capability_names(flags: int) -> tuple[str, ...]:
    """The names of the engine's bits; unknown bits have none."""
    return tuple(name for name, bit in CAPABILITIES.items() if flags & bit)
