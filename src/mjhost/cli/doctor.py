"""The command ``mjhost doctor``: what mjhost finds on this machine, and what to do about it.

Invariants: a finding is about what exists: parts that are not there are not mentioned. Only what
makes mjhost unusable is a failure; known defects of a supported engine are warnings. Importing this
imports no engine: one that cannot be imported is a finding.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Final

import msgspec
import typer

from mjhost import __version__, models
from mjhost.cli import output
from mjhost.cli.arguments import DebugFlag, JsonFlag
from mjhost.cli.exits import ExitStatus

Version = tuple[int, ...]

_PROMISED: Final = ((3, 15), (4, 0))
_PYTHONS: Final = ((3, 11), (3, 13))
_FAST: Final = ("numba", "llvmlite")
_TRIAL_STEPS: Final = 100


class Level(StrEnum):
    """How much a finding matters."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at.

    Attributes:
        subject: what.
        level: how much it matters.
        text: what was found, and what to do if it is not good.
    """

    subject: str
    level: Level
    text: str


class Defect(msgspec.Struct, frozen=True):
    """A known defect of some engines.

    Attributes:
        since, until: the first version that has it and the first that has not.
        text: what goes wrong, and what helps.
        handled: whether mjhost keeps it from happening.
    """

    since: Version
    until: Version
    text: str
    handled: bool = False


DEFECTS: Final = (
    Defect(
        (4, 0, 0),
        (4, 0, 1),
        "the sparse Cholesky factorisation is wrong with merged supernodes, so forces of large "
        "sparse models may be; fixed in 4.0.1",
    ),
    Defect(
        (3, 0, 0),
        (4, 0, 0),
        "an engine error that follows a mujoco.mj_* call inside a Python callback of the same step "
        "aborts the process; do not call the engine from callbacks, or use 4.0",
    ),
    Defect(
        (3, 0, 0),
        (4, 0, 0),
        "the asset cache may serve an edited mesh in its old form; mjhost empties it at each load",
        handled=True,
    ),
)


def doctor(*, json: JsonFlag = False, _debug: DebugFlag = False) -> None:
    """Look at the engine, Python and machine, and say what is not as it should be.

    Status 1 only if something makes mjhost unusable.

    * `mjhost doctor`
    * `mjhost doctor --json`
    """
    status = _say(list(examine()), json=json)
    if status is not ExitStatus.OK:
        raise typer.Exit(status)


def say_without_engine(reason: str, *, json: bool) -> ExitStatus:
    """What there is to find where the engine cannot be imported, for ``reason``."""
    return _say(list(examine_without_engine(reason)), json=json)


def _say(findings: list[Finding], *, json: bool) -> ExitStatus:
    if json:
        output.say_json(findings)
    else:
        rows = [(found.subject, found.level, found.text) for found in findings]
        output.say_table(("SUBJECT", "LEVEL", "FINDING"), rows)
    if any(found.level is Level.FAILURE for found in findings):
        output.note("error: mjhost cannot work here; see the failures above")
        return ExitStatus.FAILED
    return ExitStatus.OK


def examine_without_engine(reason: str) -> Iterator[Finding]:
    """The findings that need no engine, and that there is none."""
    yield Finding("mjhost", Level.OK, __version__)
    yield python_finding(sys.version_info[:2])
    yield Finding("MuJoCo", Level.FAILURE, f"the engine cannot be imported: {reason}")
    yield fast_finding(_installed)
    yield from _machine_findings()


def examine() -> Iterator[Finding]:
    """Every finding, in the order in which they are shown."""
    import mujoco

    version = mujoco.mj_versionString()
    yield Finding("mjhost", Level.OK, __version__)
    yield python_finding(sys.version_info[:2])
    yield engine_finding(version)
    yield from mismatch_findings(version, mujoco.__version__)
    yield from defect_findings(version)
    yield trial_finding(_host_a_pendulum)
    yield fast_finding(_installed)
    yield from _machine_findings()


# -- engine and Python -------------------------------------------------------------------------


def numbers(version: str) -> Version:
    """The numbers at the beginning of a version's parts: ``4.0.1rc2`` is 4, 0, 1."""
    parts = []
    for part in version.split(".")[:3]:
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        parts.append(int(digits or 0))
    return tuple(parts)


def python_finding(version: Version) -> Finding:
    """Whether this Python is one that mjhost is tested on."""
    text = f"{platform.python_implementation()} {platform.python_version()}"
    first, last = _PYTHONS
    if first <= version <= last:
        return Finding("Python", Level.OK, text)
    return Finding("Python", Level.WARNING, f"{text}: not tested; 3.11 to 3.13 are")


def engine_finding(version: str) -> Finding:
    """Whether this engine is promised, runs unpromised, or is none that mjhost can host."""
    first, last = _PROMISED
    found = numbers(version)[:2]
    if found in _PROMISED:
        return Finding("MuJoCo", Level.OK, f"{version}: every test of mjhost runs on it")
    if first < found < last:
        return Finding(
            "MuJoCo", Level.WARNING, f"{version}: runs, but only 3.15 and 4.0 are tested"
        )
    return Finding("MuJoCo", Level.FAILURE, f"{version}: not supported; install mujoco>=3.15,<4.1")


def mismatch_findings(library: str, package: str) -> Iterator[Finding]:
    """A complaint if the bindings and the library they loaded are of different versions."""
    if numbers(library) != numbers(package):
        text = f"library {library} under the bindings of {package}; reinstall the mujoco package"
        yield Finding("MuJoCo", Level.FAILURE, text)


def defect_findings(version: str) -> Iterator[Finding]:
    """The known defects that an engine has."""
    found = numbers(version)
    for defect in DEFECTS:
        if defect.since <= found < defect.until:
            level = Level.OK if defect.handled else Level.WARNING
            yield Finding("known defect", level, defect.text)


def _host_a_pendulum() -> int:
    from mjhost.env import MujocoEnv

    with MujocoEnv(models.path("pendulum")) as env:
        return env.step(_TRIAL_STEPS).completed


def trial_finding(host: Callable[[], int]) -> Finding:
    """Whether a bundled model can be hosted and stepped."""
    try:
        steps = host()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        reason = f"{type(error).__name__}: {output.one_line(error)}"
        return Finding("trial", Level.FAILURE, f"a bundled model cannot be hosted: {reason}")
    return Finding("trial", Level.OK, f"a bundled model was hosted for {steps} steps")


# -- extras and machine ------------------------------------------------------------------------


def _installed(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def fast_finding(installed: Callable[[str], str | None]) -> Finding:
    """Whether the extra ``fast`` is there; without it nothing of today's mjhost is missing."""
    versions = {package: installed(package) for package in _FAST}
    missing = [package for package, version in versions.items() if version is None]
    if missing:
        text = f"not installed ({', '.join(missing)}); optional: pip install 'mjhost[fast]'"
    else:
        text = ", ".join(f"{package} {version}" for package, version in versions.items())
    return Finding("extra fast", Level.OK, text)


def _machine_findings() -> Iterator[Finding]:
    usable, present = len(os.sched_getaffinity(0)), os.cpu_count()
    yield Finding("processors", Level.OK, f"{usable} usable of {present}, {platform.machine()}")
    yield Finding("system", Level.OK, platform.platform())
    chosen = os.environ.get("MUJOCO_GL")
    yield Finding("MUJOCO_GL", Level.OK, repr(chosen) if chosen else "not set")
    guarded = "MJHOST_EVAL_TOKEN" in os.environ
    yield Finding("evaluation mode", Level.OK, "on: MJHOST_EVAL_TOKEN is set" if guarded else "off")
