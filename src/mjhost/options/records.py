"""The records of the run-time options: snapshot, patch, input, problem, result.

Invariants: all are frozen and hashable. Snapshot and patch have the fields of the table in its
order (a test compares them). An enum is its name as text, ``snapshot.integrator == "RK4"``; a
number in a live model that the engine itself does not know reads as that number in digits, which
validation refuses. Arrays are tuples of floats, ``disable_actuator`` is a frozen set of groups.
A field that the installed engine lacks (``speculative`` before 4.0) has its default in every
snapshot, cannot be named in a patch and is left out of ``as_dict``.
Threads: immutable, safe anywhere.
Failure: construction checks nothing; ``merge_runtime_options`` and ``validate_runtime_options``
refuse what does not fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from mjhost.errors import OptionsRejected
from mjhost.generation import OptionsEpoch
from mjhost.options.table import OptionValue, descriptors

PlainValue: TypeAlias = bool | int | float | str | list[float] | list[int]


class RuntimeOptionsSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A value for every run-time option, copied from one model at one moment."""

    timestep: float
    integrator: str
    cone: str
    jacobian: str
    solver: str
    impratio: float
    tolerance: float
    ls_tolerance: float
    noslip_tolerance: float
    ccd_tolerance: float
    sleep_tolerance: float
    iterations: int
    ls_iterations: int
    noslip_iterations: int
    ccd_iterations: int
    sdf_iterations: int
    sdf_initpoints: int
    gravity: tuple[float, ...]
    wind: tuple[float, ...]
    magnetic: tuple[float, ...]
    density: float
    viscosity: float
    margin: float
    solref: tuple[float, ...]
    solimp: tuple[float, ...]
    friction: tuple[float, ...]
    disable_actuator: frozenset[int]
    constraint_disabled: bool
    equality_disabled: bool
    frictionloss_disabled: bool
    limit_disabled: bool
    contact_disabled: bool
    spring_disabled: bool
    damper_disabled: bool
    gravity_disabled: bool
    clampctrl_disabled: bool
    warmstart_disabled: bool
    filterparent_disabled: bool
    actuation_disabled: bool
    refsafe_disabled: bool
    sensor_disabled: bool
    midphase_disabled: bool
    eulerdamp_disabled: bool
    autoreset_disabled: bool
    nativeccd_disabled: bool
    island_disabled: bool
    multiccd_disabled: bool
    override_contacts: bool
    energy: bool
    fwd_inv: bool
    inv_discrete: bool
    sleep: bool
    diag_exact: bool
    ipc: bool
    speculative: bool

    def as_dict(self, engine: str | None = None) -> dict[str, PlainValue]:
        """The fields of ``engine`` as values that JSON and YAML can hold.

        Args:
            engine: a MuJoCo version; by default the installed one.

        Raises:
            InvalidArgumentError: ``engine`` is not a version.
        """
        return {field.name: _plain(getattr(self, field.name)) for field in descriptors(engine)}


class RuntimeOptionsPatch(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """Changes to some run-time options; ``UNSET`` fields stay as they are."""

    timestep: float | UnsetType = UNSET
    integrator: str | UnsetType = UNSET
    cone: str | UnsetType = UNSET
    jacobian: str | UnsetType = UNSET
    solver: str | UnsetType = UNSET
    impratio: float | UnsetType = UNSET
    tolerance: float | UnsetType = UNSET
    ls_tolerance: float | UnsetType = UNSET
    noslip_tolerance: float | UnsetType = UNSET
    ccd_tolerance: float | UnsetType = UNSET
    sleep_tolerance: float | UnsetType = UNSET
    iterations: int | UnsetType = UNSET
    ls_iterations: int | UnsetType = UNSET
    noslip_iterations: int | UnsetType = UNSET
    ccd_iterations: int | UnsetType = UNSET
    sdf_iterations: int | UnsetType = UNSET
    sdf_initpoints: int | UnsetType = UNSET
    gravity: tuple[float, ...] | UnsetType = UNSET
    wind: tuple[float, ...] | UnsetType = UNSET
    magnetic: tuple[float, ...] | UnsetType = UNSET
    density: float | UnsetType = UNSET
    viscosity: float | UnsetType = UNSET
    margin: float | UnsetType = UNSET
    solref: tuple[float, ...] | UnsetType = UNSET
    solimp: tuple[float, ...] | UnsetType = UNSET
    friction: tuple[float, ...] | UnsetType = UNSET
    disable_actuator: frozenset[int] | UnsetType = UNSET
    constraint_disabled: bool | UnsetType = UNSET
    equality_disabled: bool | UnsetType = UNSET
    frictionloss_disabled: bool | UnsetType = UNSET
    limit_disabled: bool | UnsetType = UNSET
    contact_disabled: bool | UnsetType = UNSET
    spring_disabled: bool | UnsetType = UNSET
    damper_disabled: bool | UnsetType = UNSET
    gravity_disabled: bool | UnsetType = UNSET
    clampctrl_disabled: bool | UnsetType = UNSET
    warmstart_disabled: bool | UnsetType = UNSET
    filterparent_disabled: bool | UnsetType = UNSET
    actuation_disabled: bool | UnsetType = UNSET
    refsafe_disabled: bool | UnsetType = UNSET
    sensor_disabled: bool | UnsetType = UNSET
    midphase_disabled: bool | UnsetType = UNSET
    eulerdamp_disabled: bool | UnsetType = UNSET
    autoreset_disabled: bool | UnsetType = UNSET
    nativeccd_disabled: bool | UnsetType = UNSET
    island_disabled: bool | UnsetType = UNSET
    multiccd_disabled: bool | UnsetType = UNSET
    override_contacts: bool | UnsetType = UNSET
    energy: bool | UnsetType = UNSET
    fwd_inv: bool | UnsetType = UNSET
    inv_discrete: bool | UnsetType = UNSET
    sleep: bool | UnsetType = UNSET
    diag_exact: bool | UnsetType = UNSET
    ipc: bool | UnsetType = UNSET
    speculative: bool | UnsetType = UNSET

    def items(self) -> Iterator[tuple[str, OptionValue]]:
        """The named fields and their values, in table order."""
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not UNSET:
                yield name, value

    def names(self) -> tuple[str, ...]:
        """The named fields, in table order; empty for an empty patch."""
        return tuple(name for name, _ in self.items())

    def as_dict(self) -> dict[str, PlainValue]:
        """The named fields as values that JSON and YAML can hold."""
        return {name: _plain(value) for name, value in self.items()}


class RuntimeOptionInput(msgspec.Struct, frozen=True):
    """One requested change as an adapter received it.

    Attributes:
        field: canonical name or alias.
        value: bool, int, float, text or a sequence of numbers.
    """

    field: str
    value: Any


class RuntimeOptionsError(msgspec.Struct, frozen=True):
    """One problem of a patch or a snapshot, ready to be shown.

    Attributes:
        field: canonical name; the given one if there is no such field, ``"patch"`` if it is
            about the whole.
        message: what must hold, lower case, without the field.
        allowed: what would be accepted, in words; may be empty.
        given: what was given, shortened.
    """

    field: str
    message: str
    allowed: str = ""
    given: str = ""

    def __str__(self) -> str:
        given = f", got {self.given}" if self.given else ""
        allowed = f" (allowed: {self.allowed})" if self.allowed else ""
        return f"{self.field} {self.message}{given}{allowed}"


class OptionsResult(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of parsing, validating or applying a patch.

    Attributes:
        errors: every problem; empty means accepted.
        warnings: accepted all the same, worth a second look.
        snapshot: the candidate that was checked, or the options now live; ``None`` from parsing.
        patch: the changes as parsed; with errors only those that could be read.
        epoch: the transaction that applied it; ``None`` when nothing was applied.
        changed: names of the fields whose value differs from before, in table order.
    """

    errors: tuple[RuntimeOptionsError, ...] = ()
    warnings: tuple[RuntimeOptionsError, ...] = ()
    snapshot: RuntimeOptionsSnapshot | None = None
    patch: RuntimeOptionsPatch | None = None
    epoch: OptionsEpoch | None = None
    changed: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return not self.errors

    def raise_if_rejected(self) -> None:
        """Raise ``OptionsRejected`` with all errors if there is one."""
        if self.errors:
            raise OptionsRejected(self.errors)


def changed_fields(
    old: RuntimeOptionsSnapshot, new: RuntimeOptionsSnapshot
) -> dict[str, tuple[OptionValue, OptionValue]]:
    """Old and new value of every field that differs, in table order."""
    pairs = ((name, getattr(old, name), getattr(new, name)) for name in old.__struct_fields__)
    return {name: (before, after) for name, before, after in pairs if before != after}


def merge_fields(
    base: RuntimeOptionsSnapshot, changes: Mapping[str, OptionValue]
) -> RuntimeOptionsSnapshot:
    """``base`` with ``changes``, which must be canonical and converted."""
    return msgspec.structs.replace(base, **changes)


def _plain(value: OptionValue) -> PlainValue:
    if isinstance(value, frozenset):
        return sorted(value)
    return list(value) if isinstance(value, tuple) else value
