"""Worlds for robots: several in one, each at its pose, on a floor with a light.

Invariants: a spec that was placed is part of another; callers give specs that nobody else has.
Failure: ``ModelLoadError`` if the parts do not go together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import mujoco
import numpy as np

from mjhost.description.report import NoteKind, Notes
from mjhost.errors import InvalidArgumentError, ModelLoadError

World: TypeAlias = Literal["none", "ground"]
Position: TypeAlias = tuple[float, float, float]
Quaternion: TypeAlias = tuple[float, float, float, float]

ORIGIN: Final = (0.0, 0.0, 0.0)
UPRIGHT: Final = (1.0, 0.0, 0.0, 0.0)


class Part(NamedTuple):
    """A robot and where it goes.

    Attributes:
        spec: of the robot.
        prefix: of its names.
        pos: in the world, m.
        quat: in the world, w x y z.
    """

    spec: mujoco.MjSpec
    prefix: str = ""
    pos: Position = ORIGIN
    quat: Quaternion = UPRIGHT


def check_world(world: Any) -> None:
    """Raises ``InvalidArgumentError`` unless there is such a world."""
    if world not in ("none", "ground"):
        raise InvalidArgumentError(f"world must be none or ground, got {world!r}")


def placed(parts: Sequence[Part], world: World, notes: Notes) -> mujoco.MjSpec:
    """One spec of all parts; the simulation options are those of the first."""
    if len(parts) == 1 and parts[0][1:] == ("", ORIGIN, UPRIGHT):
        whole = parts[0].spec
    else:
        whole = _joined(parts, notes)
    if world == "ground":
        _add_ground(whole)
    return whole


def _joined(parts: Sequence[Part], notes: Notes) -> mujoco.MjSpec:
    whole = mujoco.MjSpec()
    whole.modelname = parts[0].spec.modelname if len(parts) == 1 else "robots"
    _take_options(whole, parts[0].spec)
    assets: dict[str, bytes] = {}
    try:
        for spec, prefix, pos, quat in parts:
            lost = _take_options(spec, whole)
            if lost:
                text = f"its simulation options give way to those of the first robot: {lost}"
                notes.add(NoteKind.DROPPED, f"robot {prefix!r}", text, "set them on the env")
            assets |= spec.assets
            frame = whole.worldbody.add_frame(pos=pos, quat=quat)
            whole.attach(spec, prefix=prefix, frame=frame)
        whole.assets = assets
        if any(len(part.spec.keys) for part in parts):
            # MuJoCo 3.15 keeps keyframes of what was attached aside until a compile, and a copy
            # made before loses their controls.
            whole.compile()
    except ValueError as error:
        told = " ".join(str(error).split())
        raise ModelLoadError(f"the robots do not go together: {told}") from error
    return whole


def _take_options(spec: mujoco.MjSpec, other: mujoco.MjSpec) -> str:
    """Gives ``spec`` the options of ``other``; what that changes.

    The engine would choose between two that differ, on 3.15 in another way than on 4.0.
    """
    changed = []
    for name in _OPTIONS:
        ours, theirs = getattr(spec.option, name), getattr(other.option, name)
        if not np.array_equal(ours, theirs):
            changed.append(f"{name} {np.array(ours)}")
            setattr(spec.option, name, theirs)
    return ", ".join(changed)


_OPTIONS: Final = tuple(
    name
    for name in dir(mujoco.MjOption)
    if not name.startswith("_") and not callable(getattr(mujoco.MjOption, name))
)


def _add_ground(spec: mujoco.MjSpec) -> None:
    """A floor that is seen to be one, and a light."""
    texture = spec.add_texture(
        name="ground",
        type=mujoco.mjtTexture.mjTEXTURE_2D,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
        width=300,
        height=300,
        rgb1=[0.32, 0.36, 0.4],
        rgb2=[0.27, 0.3, 0.34],
    )
    material = spec.add_material(name="ground", texrepeat=[5, 5], texuniform=True)
    material.textures[int(mujoco.mjtTextureRole.mjTEXROLE_RGB)] = texture.name
    spec.worldbody.add_light(
        name="sun", pos=[0, 0, 4], dir=[0, 0, -1], type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL
    )
    spec.worldbody.add_geom(
        name="ground", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 0.1], material="ground"
    )
