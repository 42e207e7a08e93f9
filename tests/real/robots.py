"""Real robots as published descriptions, and what an independent reader makes of them.

Owns: the list of robots (``robots.toml``); the cache is the one of ``tests.real.corpus``.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import yourdfpy

from tests.real import corpus

WHEELS = corpus.read_manifest(Path(__file__).with_name("robots.toml"))
ROBOT_IDS = tuple(name for wheel in WHEELS for name, _ in wheel.models)


def robot_path(name: str) -> Path:
    """The URDF of a robot, with its meshes where it looks for them."""
    wheel, member = next((w, m) for w in WHEELS for known, m in w.models if known == name)
    return corpus.tree(wheel, corpus.cache_dir()) / member


@functools.lru_cache(maxsize=1)
def independently_read(path: Path) -> yourdfpy.URDF:
    """The robot as ``yourdfpy`` reads it, without meshes."""
    return yourdfpy.URDF.load(str(path), load_meshes=False, filename_handler=str)


def random_positions(robot: yourdfpy.URDF, rng: np.random.Generator) -> dict[str, float]:
    """A position within its limits for each joint of one degree of freedom, mimics included."""
    found: dict[str, float] = {}
    for name, joint in robot.joint_map.items():
        if joint.type in ("revolute", "prismatic"):
            found[name] = float(rng.uniform(joint.limit.lower, joint.limit.upper))
        elif joint.type == "continuous":
            found[name] = float(rng.uniform(-np.pi, np.pi))
    for name, joint in robot.joint_map.items():
        if joint.mimic is not None and name in found:
            found[name] = found[joint.mimic.joint] * joint.mimic.multiplier + joint.mimic.offset
    return found


def link_poses(robot: yourdfpy.URDF, positions: dict[str, float]) -> dict[str, np.ndarray]:
    """The pose of each link in the frame of the root link, ``(4, 4)``."""
    robot.update_cfg({name: positions[name] for name in robot.actuated_joint_names})
    return {name: robot.get_transform(name, robot.base_link) for name in robot.link_map}


def inertial(link: yourdfpy.urdf.Link) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass in kg, centre of mass ``(3,)`` in m, inertia ``(3, 3)`` in kg·m², in the link frame."""
    found = link.inertial
    if found is None:
        return 0.0, np.zeros(3), np.zeros((3, 3))
    origin = np.eye(4) if found.origin is None else found.origin
    turn = origin[:3, :3]
    inertia = np.zeros((3, 3)) if found.inertia is None else found.inertia
    return float(found.mass or 0.0), origin[:3, 3], turn @ inertia @ turn.T
