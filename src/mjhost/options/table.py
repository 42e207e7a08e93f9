"""The table of run-time options: every fact about every field, stated once.

Owns: ``DESCRIPTORS``. Parsing, validation, mapping, command-line help, the HTTP schema, ROS
descriptors, dashboard widgets and ``docs/options.md`` are generated from it.
Invariants: canonical names and aliases are unique; the table names every member of ``mjOption`` and
every disable and enable bit of the supported engines (a test compares it with the installed one).
Threads: immutable, safe anywhere.
Not a goal: rules between fields. Those are in ``validate``.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final, TypeAlias

import msgspec
import mujoco

from mjhost.errors import InvalidArgumentError

OptionValue: TypeAlias = bool | int | float | str | tuple[float, ...] | frozenset[int]
EngineVersion: TypeAlias = tuple[int, int]

_MANUAL: Final = "https://mujoco.readthedocs.io/en/stable/XMLreference.html#option-"
_INF: Final = math.inf


class Kind(StrEnum):
    """What a field holds."""

    FLOAT = "float"
    INT = "int"
    BOOL = "bool"
    ENUM = "enum"
    ARRAY = "array"
    GROUPS = "groups"


class Range(msgspec.Struct, frozen=True):
    """An interval of finite numbers, each end open or closed.

    Attributes:
        low: the least value, or minus infinity.
        high: the greatest value, or infinity.
        low_open: ``low`` itself is outside.
        high_open: ``high`` itself is outside.
    """

    low: float = -_INF
    high: float = _INF
    low_open: bool = False
    high_open: bool = False

    def __contains__(self, value: Any) -> bool:
        above = value > self.low if self.low_open else value >= self.low
        below = value < self.high if self.high_open else value <= self.high
        return above and below and math.isfinite(value)

    def __str__(self) -> str:
        low = f"{'above' if self.low_open else 'at least'} {self.low:.15g}"
        high = f"{'below' if self.high_open else 'at most'} {self.high:.15g}"
        if self.low == -_INF:
            return "any finite number" if self.high == _INF else high
        if self.high == _INF:
            return low
        if self.low_open or self.high_open:
            return f"{low} and {high}"
        return f"{self.low:.15g} to {self.high:.15g}"


ANY: Final = Range()
INT32: Final = Range(-(2.0**31), 2.0**31 - 1)


class OptionDescriptor(msgspec.Struct, frozen=True, kw_only=True):
    """Everything there is to know about one field of the run-time options.

    Attributes:
        name: canonical name, as in the snapshot.
        kind: what the field holds.
        member: the ``mjOption`` member that stores it.
        help: one sentence.
        default: value of a fresh ``mjOption``.
        size: number of elements of an array; the number of groups for ``groups``.
        unit: SI unit, empty for pure numbers.
        runnable: what the engine survives; one range for all elements or one for each.
        domain: what is sensible, checked on touched fields only; same shape.
        caution: inside ``domain`` but outside this range is accepted with a warning.
        rule: what the elements of an array must fulfil together, in words.
        aliases: other accepted names.
        choices: names of an enum; the position is the engine's number.
        enum: the engine's enum type, for ``choices`` and bits.
        constant: for flags, the engine's constant of the bit.
        bit: for flags, the bit in ``member``.
        since: first engine version (major, minor) that has it.
        xml: where MJCF sets it.
        doc: address of the engine's documentation.
    """

    name: str
    kind: Kind
    member: str
    help: str
    default: OptionValue
    size: int = 1
    unit: str = ""
    runnable: tuple[Range, ...] = (ANY,)
    domain: tuple[Range, ...] = (ANY,)
    caution: Range = ANY
    rule: str = ""
    aliases: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    enum: str = ""
    constant: str = ""
    bit: int = 0
    since: EngineVersion = (3, 15)
    xml: str = ""
    doc: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The canonical name and every alias."""
        return (self.name, *self.aliases)

    def allowed(self) -> str:
        """The sensible values in words, with the unit."""
        unit = f" in {self.unit}" if self.unit else ""
        rule = f", {self.rule}" if self.rule else ""
        match self.kind:
            case Kind.BOOL:
                return "true or false"
            case Kind.ENUM:
                return f"{', '.join(self.choices)} or 0 to {len(self.choices) - 1}"
            case Kind.GROUPS:
                return f"actuator groups 0 to {self.size - 1}"
            case Kind.ARRAY:
                return f"{self.size} numbers{unit}, {self._ranges()}{rule}"
        return f"{self._ranges()} {self.unit}".rstrip()

    def _ranges(self) -> str:
        if len(self.domain) == 1:
            each = "each " if self.kind is Kind.ARRAY else ""
            return f"{each}{self.domain[0]}"
        return "; ".join(str(part) for part in self.domain)


def _anchor(attribute: str) -> str:
    return _MANUAL + attribute.replace("_", "-")


def _float(
    name: str, default: float, domain: Range, text: str, *, unit: str = "", alias: str = ""
) -> OptionDescriptor:
    return OptionDescriptor(
        name=name, kind=Kind.FLOAT, member=name, help=text, default=default, unit=unit,
        domain=(domain,), aliases=(alias,) if alias else (), xml=f"option/{name}",
        doc=_anchor(name),
    )  # fmt: skip


def _int(
    name: str, default: int, domain: Range, text: str, *, runnable: Range = INT32, alias: str = ""
) -> OptionDescriptor:
    return OptionDescriptor(
        name=name, kind=Kind.INT, member=name, help=text, default=default, runnable=(runnable,),
        domain=(domain,), aliases=(alias,) if alias else (), xml=f"option/{name}",
        doc=_anchor(name),
    )  # fmt: skip


def _array(
    name: str,
    default: Sequence[float],
    domain: tuple[Range, ...],
    text: str,
    *,
    unit: str = "",
    override: bool = False,
    rule: str = "",
) -> OptionDescriptor:
    member = f"o_{name}" if override else name
    return OptionDescriptor(
        name=name, kind=Kind.ARRAY, member=member, help=text, default=tuple(default),
        size=len(default), unit=unit, domain=domain, rule=rule, xml=f"option/{member}",
        aliases=(member,) if override else (), doc=_anchor(member),
    )  # fmt: skip


def _enum(
    name: str, enum: str, choices: tuple[str, ...], default: str, text: str
) -> OptionDescriptor:
    return OptionDescriptor(
        name=name, kind=Kind.ENUM, member=name, help=text, default=default, choices=choices,
        enum=enum, xml=f"option/{name}", doc=_anchor(name),
    )  # fmt: skip


def _disable(index: int, feature: str, text: str) -> OptionDescriptor:
    return OptionDescriptor(
        name=f"{feature}_disabled", kind=Kind.BOOL, member="disableflags", help=text,
        default=False, enum="mjtDisableBit", constant=f"mjDSBL_{feature.upper()}", bit=1 << index,
        xml=f"option/flag/{feature}", doc=_anchor(f"flag-{feature}"),
    )  # fmt: skip


def _enable(
    index: int, name: str, attribute: str, text: str, *, since: EngineVersion = (3, 15)
) -> OptionDescriptor:
    return OptionDescriptor(
        name=name, kind=Kind.BOOL, member="enableflags", help=text, default=False,
        enum="mjtEnableBit", constant=f"mjENBL_{attribute.upper()}", bit=1 << index, since=since,
        xml=f"option/flag/{attribute}", doc=_anchor(f"flag-{attribute}"),
    )  # fmt: skip


_TIMESTEP = msgspec.structs.replace(
    _float("timestep", 0.002, Range(1e-6, 1), "Simulated time that one step covers.", unit="s"),
    runnable=(Range(0, low_open=True),),
    caution=Range(high=0.1),
)
_MARGIN = msgspec.structs.replace(
    _float("margin", 0.0, Range(0, 1), "Contact margin used by `override_contacts`.", unit="m"),
    member="o_margin", aliases=("o_margin",), xml="option/o_margin", doc=_anchor("o_margin"),
)  # fmt: skip
_DISABLE_ACTUATOR = OptionDescriptor(
    name="disable_actuator", kind=Kind.GROUPS, member="disableactuator", size=31,
    help="Actuator groups that produce no force and whose activations stand still.",
    default=frozenset(), domain=(Range(0, 30),), aliases=("actuatorgroupdisable",),
    xml="option/actuatorgroupdisable", doc=_anchor("actuatorgroupdisable"),
)  # fmt: skip
_SOLIMP_DOMAIN = (
    Range(0, 0.9999, low_open=True),
    Range(0, 0.9999, low_open=True),
    Range(0, low_open=True),
    Range(0, 1, low_open=True, high_open=True),
    Range(1, 20),
)
_UP_TO_A_MILLION = Range(1, 1e6)

DESCRIPTORS: Final[tuple[OptionDescriptor, ...]] = (
    _TIMESTEP,
    _enum("integrator", "mjtIntegrator", ("Euler", "RK4", "implicit", "implicitfast", "discrete"),
          "Euler", "How velocities and positions are advanced over one step."),
    _enum("cone", "mjtCone", ("pyramidal", "elliptic"), "pyramidal",
          "Shape of the friction cone of every contact."),
    _enum("jacobian", "mjtJacobian", ("dense", "sparse", "auto"), "auto",
          "Storage of the constraint Jacobian; auto is sparse for large models."),
    _enum("solver", "mjtSolver", ("PGS", "CG", "Newton"), "Newton",
          "Algorithm that solves for constraint forces."),
    _float("impratio", 1.0, Range(0.01, 1e4),
           "Impedance of friction relative to that of the normal direction."),
    _float("tolerance", 1e-8, Range(0, 1e-2),
           "The solver stops early once it improves by less; 0 never stops early."),
    _float("ls_tolerance", 0.01, Range(1e-6, 1),
           "Precision at which the line search of CG and Newton stops.", alias="ls_tol"),
    _float("noslip_tolerance", 1e-6, Range(0, 1e-2),
           "The noslip pass stops early once it improves by less.", alias="noslip_tol"),
    _float("ccd_tolerance", 1e-6, Range(1e-12, 1e-2),
           "Precision at which convex collision detection stops.", alias="ccd_tol"),
    _float("sleep_tolerance", 1e-3, Range(0, 1),
           "Speed below which a tree may fall asleep when `sleep` is on."),
    _int("iterations", 100, Range(1, 1000), "Greatest number of solver iterations in a step.",
         runnable=_UP_TO_A_MILLION),
    _int("ls_iterations", 50, Range(1, 500),
         "Greatest number of line search iterations in one solver iteration.",
         runnable=_UP_TO_A_MILLION, alias="ls_iter"),
    _int("noslip_iterations", 0, Range(0, 100),
         "Greatest number of iterations that remove slip after the solver; 0 is off.",
         runnable=Range(INT32.low, 1e6), alias="noslip_iter"),
    _int("ccd_iterations", 35, Range(5, 1000),
         "Greatest number of iterations of convex collision detection.",
         runnable=Range(5, 1000), alias="ccd_iter"),
    _int("sdf_iterations", 10, Range(1, 1000),
         "Descent iterations from each starting point of a signed distance field collision.",
         alias="sdf_iter"),
    _int("sdf_initpoints", 40, Range(1, 1000),
         "Starting points of a signed distance field collision.",
         runnable=Range(0, 10_000), alias="sdf_init"),
    _array("gravity", (0.0, 0.0, -9.81), (Range(-1e4, 1e4),), "Gravitational acceleration.",
           unit="m/s²"),
    _array("wind", (0.0, 0.0, 0.0), (ANY,), "Velocity of the medium.", unit="m/s"),
    _array("magnetic", (0.0, -0.5, 0.0), (ANY,), "Magnetic flux that magnetometers see.",
           unit="T"),
    _float("density", 0.0, Range(0, 1e5), "Density of the medium; 0 turns lift and drag off.",
           unit="kg/m³"),
    _float("viscosity", 0.0, Range(0), "Viscosity of the medium; 0 turns viscous forces off.",
           unit="Pa·s"),
    _MARGIN,
    _array("solref", (0.02, 1.0), (ANY,), "Contact stiffness and damping used by "
           "`override_contacts`: time constant and damping ratio, or both negated.",
           override=True, rule="both positive or both negative"),
    _array("solimp", (0.9, 0.95, 0.001, 0.5, 2.0), _SOLIMP_DOMAIN, "Contact impedance used by "
           "`override_contacts`: dmin, dmax, width, midpoint, power.",
           override=True, rule="dmin at most dmax"),
    _array("friction", (1.0, 1.0, 0.005, 0.0001, 0.0001), (Range(1e-5, 1e3),),
           "Contact friction used by `override_contacts`: two tangential, one torsional, two "
           "rolling coefficients.", override=True),
    _DISABLE_ACTUATOR,
    _disable(0, "constraint", "Turns the constraint solver off: no constraint acts."),
    _disable(1, "equality", "Turns equality constraints off."),
    _disable(2, "frictionloss", "Turns dry friction in joints and tendons off."),
    _disable(3, "limit", "Turns joint and tendon limits off."),
    _disable(4, "contact", "Turns collision detection and contact forces off."),
    _disable(5, "spring", "Turns passive springs off; with `damper_disabled` all passive forces."),
    _disable(6, "damper", "Turns passive dampers off; with `spring_disabled` all passive forces."),
    _disable(7, "gravity", "Makes gravity zero without touching the `gravity` vector."),
    _disable(8, "clampctrl", "Lets controls exceed their range."),
    _disable(9, "warmstart", "Starts the solver from nothing instead of the last solution."),
    _disable(10, "filterparent", "Lets a body collide with its parent."),
    _disable(11, "actuation", "Turns actuator forces and activation dynamics off."),
    _disable(12, "refsafe", "Lets solref time constants fall below two time steps."),
    _disable(13, "sensor", "Leaves all sensor values as they are."),
    _disable(14, "midphase", "Turns the mid-phase filter of collision detection off."),
    _disable(15, "eulerdamp", "Lets the Euler integrator treat joint damping explicitly."),
    _disable(16, "autoreset", "Keeps the engine from resetting a diverged state."),
    _disable(17, "nativeccd", "Uses the older convex collision library."),
    _disable(18, "island", "Solves all constraints together instead of by island."),
    _disable(19, "multiccd", "Allows one contact only between two convex meshes."),
    _enable(0, "override_contacts", "override",
            "Replaces margin, solref, solimp and friction of every contact by the global ones."),
    _enable(1, "energy", "energy", "Computes potential and kinetic energy in each step."),
    _enable(2, "fwd_inv", "fwdinv", "Compares forward with inverse dynamics in each step."),
    _enable(3, "inv_discrete", "invdiscrete", "Makes inverse dynamics that of discrete time."),
    _enable(4, "sleep", "sleep", "Lets trees at rest fall asleep."),
    _enable(5, "diag_exact", "diagexact", "Computes the exact diagonal of constraint inertia."),
    _enable(6, "ipc", "ipc", "Intersection-free flex contact of the discrete integrator; its "
            "state is not fully part of a saved state."),
    _enable(7, "speculative", "speculative",
            "Adds contacts ahead of impact, so that fast geoms do not tunnel.", since=(4, 0)),
)  # fmt: skip
PASSIVE_DISABLED: Final = "passive_disabled"
"""Write-only name for ``spring_disabled`` and ``damper_disabled`` together."""
PASSIVE_FIELDS: Final = ("spring_disabled", "damper_disabled")

BY_NAME: Final = {descriptor.name: descriptor for descriptor in DESCRIPTORS}


def engine_version(engine: str | None = None) -> EngineVersion:
    """Major and minor number of ``engine``, by default of the installed MuJoCo.

    Raises:
        InvalidArgumentError: ``engine`` does not begin like a version number.
    """
    text = mujoco.__version__ if engine is None else engine
    found = re.match(r"(\d{1,4})\.(\d{1,4})(?!\d)", text) if isinstance(text, str) else None
    if found is None:
        shown = f"{text!r:.40}"
        raise InvalidArgumentError(f"engine must be a version such as '4.0.0', got {shown}")
    return int(found[1]), int(found[2])


def descriptors(engine: str | None = None) -> tuple[OptionDescriptor, ...]:
    """The fields that an engine has, in table order.

    Args:
        engine: a MuJoCo version such as ``"3.15.0"``; by default the installed one.

    Raises:
        InvalidArgumentError: ``engine`` is not a version.
    """
    return _fields_of(engine_version(engine))


@functools.lru_cache(maxsize=32)
def _fields_of(version: EngineVersion) -> tuple[OptionDescriptor, ...]:
    return tuple(descriptor for descriptor in DESCRIPTORS if descriptor.since <= version)


@functools.lru_cache(maxsize=1)
def name_index() -> dict[str, tuple[OptionDescriptor, ...]]:
    """Every accepted name, with the fields that it stands for."""
    index: dict[str, tuple[OptionDescriptor, ...]]
    index = {name: (field,) for field in DESCRIPTORS for name in field.names}
    index[PASSIVE_DISABLED] = tuple(BY_NAME[name] for name in PASSIVE_FIELDS)
    return index
