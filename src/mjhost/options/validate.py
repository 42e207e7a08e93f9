"""Rules that a whole set of run-time options has to fulfil.

Invariants: *runnable* rules are what the engine cannot survive, and hold for every field of every
candidate. *Domain* rules are what is sensible, and hold for touched fields only, so that one odd
value in somebody's model never blocks an unrelated change. Every problem is reported at once, a
field at most once; a rule between fields is reported at the field that was touched.
Threads: pure functions.
Failure: ``OptionsRejected``; nothing was changed.
Not a goal: rules that depend on the model. The engine refuses some options for models with
flexes; that is an engine error of the next step, which the host rolls back.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from collections.abc import Set as AbstractSet
from typing import Any, Final, TypeAlias

import msgspec

from mjhost.errors import InvalidArgumentError, did_you_mean
from mjhost.options.convert import ValueRefused, convert, problem, shown
from mjhost.options.records import (
    OptionsResult,
    RuntimeOptionsError,
    RuntimeOptionsPatch,
    RuntimeOptionsSnapshot,
)
from mjhost.options.table import (
    ANY,
    BY_NAME,
    DESCRIPTORS,
    INT32,
    EngineVersion,
    Kind,
    OptionDescriptor,
    OptionValue,
    Range,
    engine_version,
)

_NO_LIMIT: Final = (ANY,)
_STORED_AS: Final = {Kind.BOOL: bool, Kind.FLOAT: float, Kind.INT: int, Kind.ENUM: str}
_Check: TypeAlias = Callable[[RuntimeOptionsSnapshot, EngineVersion], bool]


class Relation(msgspec.Struct, frozen=True):
    """A runnable rule between fields.

    Attributes:
        fields: the fields it is about, the one to blame by default first.
        rule: what must hold, in words.
        broken: whether a snapshot breaks it on an engine.
    """

    fields: tuple[str, ...]
    rule: str
    broken: _Check


def _endless(count: str, tolerance: str) -> Relation:
    def broken(options: RuntimeOptionsSnapshot, _: EngineVersion) -> bool:
        many: bool = getattr(options, count) > 1000
        return many and getattr(options, tolerance) <= 0

    rule = f"must be above 0 while {count} is above 1000"
    return Relation((tolerance, count), rule, broken)


def _ipc_solver(options: RuntimeOptionsSnapshot, version: EngineVersion) -> bool:
    return options.ipc and options.solver not in (("CG",) if version < (4, 0) else ("CG", "Newton"))


# Each of these is a fatal engine error in the next step; measured on 3.15.0 and 4.0.0.
RELATIONS: Final = (
    _endless("iterations", "tolerance"),
    _endless("ls_iterations", "ls_tolerance"),
    _endless("noslip_iterations", "noslip_tolerance"),
    Relation(
        ("ipc", "integrator"),
        "needs the integrator discrete",
        lambda o, _: o.ipc and o.integrator != "discrete",
    ),
    Relation(("ipc", "solver"), "needs the solver CG, or Newton from MuJoCo 4.0 on", _ipc_solver),
    Relation(("ipc", "fwd_inv"), "excludes fwd_inv", lambda o, _: o.ipc and o.fwd_inv),
    Relation(("ipc", "sleep"), "excludes sleep", lambda o, _: o.ipc and o.sleep),
    Relation(
        ("sleep", "island_disabled", "integrator"),
        "needs islands under the integrator discrete",
        lambda o, _: o.sleep and o.island_disabled and o.integrator == "discrete",
    ),
    Relation(
        ("fwd_inv", "inv_discrete", "integrator"),
        "excludes inv_discrete under the integrator RK4",
        lambda o, _: o.fwd_inv and o.inv_discrete and o.integrator == "RK4",
    ),
)

ARRAY_RULES: Final[dict[str, Callable[[tuple[float, ...]], bool]]] = {
    "solref": lambda v: min(v) > 0 or max(v) < 0,
    "solimp": lambda v: v[0] <= v[1],
}


def validate_runtime_options(
    candidate: RuntimeOptionsSnapshot,
    *,
    touched: Iterable[str] | RuntimeOptionsPatch | None = None,
    engine: str | None = None,
    raise_on_error: bool = True,
) -> OptionsResult:
    """Check a whole set of options.

    Args:
        candidate: the options as they would be.
        touched: canonical names of the fields, or the patch, that made the candidate; domain
            rules apply to these. ``None`` is every field, an empty collection none.
        engine: MuJoCo version that is to run them; by default the installed one.
        raise_on_error: whether to raise instead of returning the problems.

    Returns:
        A result with ``snapshot`` the candidate, ``errors`` and ``warnings``.

    Raises:
        OptionsRejected: with every problem in ``errors``.
        InvalidArgumentError: not a snapshot, an unknown name in ``touched`` or no version.
    """
    if not isinstance(candidate, RuntimeOptionsSnapshot):
        raise InvalidArgumentError(
            f"the candidate must be a RuntimeOptionsSnapshot, got {shown(candidate)}; "
            "merge_runtime_options makes one out of a snapshot and a patch"
        )
    result = check(candidate, _touched(touched), engine_version(engine))
    if raise_on_error:
        result.raise_if_rejected()
    return result


def check(
    candidate: RuntimeOptionsSnapshot,
    touched: AbstractSet[str],
    version: EngineVersion,
    *,
    unread: AbstractSet[str] = frozenset(),
) -> OptionsResult:
    """All problems of a candidate; rules between ``unread`` fields are left out."""
    errors, warnings = [], []
    for field in DESCRIPTORS:
        value = getattr(candidate, field.name)
        found = _unrunnable(field, value, version)
        if found is None and field.name in touched:
            found = _outside_domain(field, value)
            warnings += [] if found else _cautions(field, value)
        if found is not None:
            errors.append(found)
    doubtful = {found.field for found in errors} | unread
    errors += _broken_relations(candidate, touched, version, doubtful)
    return OptionsResult(errors=tuple(errors), warnings=tuple(warnings), snapshot=candidate)


def _unrunnable(
    field: OptionDescriptor, value: OptionValue, version: EngineVersion
) -> RuntimeOptionsError | None:
    reason = _misfit(field, value)
    if not reason and field.since > version and value != field.default:
        reason = f"needs MuJoCo {field.since[0]}.{field.since[1]} or newer"
    if not reason and not _within(field.runnable, value):
        reason = f"must be {field.runnable[0]}, the engine cannot run otherwise"
    return problem(field, reason, value) if reason else None


def _outside_domain(field: OptionDescriptor, value: OptionValue) -> RuntimeOptionsError | None:
    rule = ARRAY_RULES.get(field.name)
    fulfilled = rule is None or not isinstance(value, tuple) or rule(value)
    if fulfilled and _within(field.domain, value):
        return None
    return problem(field, "must be within its sensible range", value)


def _cautions(field: OptionDescriptor, value: OptionValue) -> list[RuntimeOptionsError]:
    if _within((field.caution,), value):
        return []
    return [problem(field, f"is unusual, {field.caution} is usual", value)]


def _misfit(field: OptionDescriptor, value: OptionValue) -> str:
    """Why a value cannot stand in a snapshot; empty for what parsing and reading put there."""
    stored = _STORED_AS.get(field.kind)
    if type(value) is stored and (stored is bool or value in _within_type(field)):
        return ""
    try:
        converted = convert(field, value)
    except ValueRefused as refused:
        return str(refused)
    same = type(converted) is type(value) and converted == value
    return "" if same else f"must be stored as {type(converted).__name__}"


def _within_type(field: OptionDescriptor) -> Container[Any]:
    return field.choices or (INT32 if field.kind is Kind.INT else ANY)


def _within(ranges: tuple[Range, ...], value: OptionValue) -> bool:
    if ranges == _NO_LIMIT or isinstance(value, (bool, str, frozenset)):
        return True
    if not isinstance(value, tuple):
        return value in ranges[0]
    each = ranges * len(value) if len(ranges) == 1 else ranges
    return all(part in allowed for part, allowed in zip(value, each, strict=True))


def _broken_relations(
    candidate: RuntimeOptionsSnapshot,
    touched: AbstractSet[str],
    version: EngineVersion,
    doubtful: AbstractSet[str],
) -> list[RuntimeOptionsError]:
    return [
        _relation_problem(relation, candidate, touched)
        for relation in RELATIONS
        if doubtful.isdisjoint(relation.fields) and relation.broken(candidate, version)
    ]


def _relation_problem(
    relation: Relation, candidate: RuntimeOptionsSnapshot, touched: AbstractSet[str]
) -> RuntimeOptionsError:
    subject = relation.fields[0]
    blamed = next((name for name in relation.fields if name in touched), subject)
    rule = relation.rule if blamed == subject else f"cannot be so: {subject} {relation.rule}"
    given = ", ".join(f"{name}={shown(getattr(candidate, name))}" for name in relation.fields)
    return RuntimeOptionsError(blamed, rule, given=given)


def _touched(touched: Iterable[str] | RuntimeOptionsPatch | None) -> AbstractSet[str]:
    if touched is None:
        return BY_NAME.keys()
    if isinstance(touched, RuntimeOptionsPatch):
        return frozenset(touched.names())
    names = frozenset((touched,) if isinstance(touched, str) else touched)
    for name in names - BY_NAME.keys():
        raise InvalidArgumentError(
            f"touched must hold canonical field names, got {shown(name)}; "
            f"{did_you_mean(str(name)[:64], BY_NAME)}"
        )
    return names
