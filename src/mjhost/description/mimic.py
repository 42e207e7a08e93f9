"""Joints that follow other joints, as equality constraints.

Invariants: position = multiplier · other + offset, also at the start of a simulation, as far as the
other is at 0 there.
Failure: ``ModelLoadError`` naming the joint that cannot follow, and why.
"""

from __future__ import annotations

from collections.abc import Sequence

import mujoco

from mjhost.description.report import NoteKind, Notes
from mjhost.description.urdf import Joint


def couple(spec: mujoco.MjSpec, joints: Sequence[Joint], notes: Notes) -> None:
    """Adds an equality for each joint that mimics another."""
    for joint in joints:
        if joint.mimic is None:
            continue
        other, factor, offset = joint.mimic
        equality = spec.add_equality(
            name=f"{joint.name}_mimic",
            type=mujoco.mjtEq.mjEQ_JOINT,
            objtype=mujoco.mjtObj.mjOBJ_JOINT,
            name1=joint.name,
            name2=other,
        )
        equality.data[:5] = [offset, factor, 0.0, 0.0, 0.0]
        text = f"mimics {other}: an equality constraint, {factor:g} x + {offset:g}"
        notes.add(NoteKind.CONVERTED, f"joint {joint.name}", text)
