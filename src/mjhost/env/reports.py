"""What a load did, put together as records.

Invariants: a report is made when everything is done; making one changes nothing.
Threads: the loading thread, with no lock held.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import mujoco
import numpy as np

from mjhost.env.records import LoadReport, ReloadReport

if TYPE_CHECKING:
    from mjhost.env.carrying import Start
    from mjhost.env.hosted import HostedModel
    from mjhost.env.loading import CompiledModel
    from mjhost.plugins import PluginLoadReport
    from mjhost.state.carry import CarryReport


_KINDS: Final = ("body_", "jnt_", "dof_", "geom_", "site_", "tendon_", "actuator_", "eq_", "pair_")
_ARRAYS: Final = tuple(name for name in dir(mujoco.MjModel) if name.startswith(_KINDS))


@dataclass(frozen=True, slots=True)
class Installed:
    """What was done under the lock."""

    hosted: HostedModel
    pause_s: float
    applied: tuple[str, ...]
    option_error: str | None
    plugins: PluginLoadReport
    carried: CarryReport | None


def load_report(compiled: CompiledModel, installed: Installed, start: Start) -> LoadReport:
    """The report of a load."""
    return LoadReport(
        source=compiled.source.label,
        content_hash=compiled.content_hash,
        generation=installed.hosted.generation,
        compile_s=compiled.compile_s,
        data_s=compiled.data_s,
        forward_s=compiled.forward_s,
        pause_s=installed.pause_s,
        option_error=installed.option_error,
        plugins=installed.plugins,
        kept_options=installed.applied,
        warnings=compiled.warnings,
        initial_state_problems=start.problems,
        carried=installed.carried,
        import_report=compiled.import_report,
    )


def reload_report(report: LoadReport, old: HostedModel, edits_dropped: int) -> ReloadReport:
    """The report of a load that replaced ``old``."""
    return ReloadReport(
        previous_source=old.source.label,
        edits_dropped=edits_dropped,
        values_dropped=changed_values(old.model, old.pristine),
        **{name: getattr(report, name) for name in report.__struct_fields__},
    )


def changed_values(model: mujoco.MjModel, pristine: mujoco.MjModel) -> tuple[str, ...]:
    """Names of the arrays of numbers that differ between two models of the same sizes."""
    pairs = ((name, getattr(model, name), getattr(pristine, name)) for name in _ARRAYS)
    return tuple(name for name, now, then in pairs if _are_numbers(now) and _differ(now, then))


def _are_numbers(array: object) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.kind == "f"


def _differ(now: Any, then: Any) -> bool:
    return bool(now.tobytes() != then.tobytes())
