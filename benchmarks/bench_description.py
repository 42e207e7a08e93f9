"""A robot from a URDF with 50 Collada meshes: the second import against the first.

The target stands on every line. What a user calls is `MujocoEnv.load`: an import, and what hosting
needs beside it. `description.load` is the import alone: reading, converting, compiling, the report.
Before a first one the cache of converted meshes is empty and so is the engine's own; a second one
finds what the first has left. "In another process" the engine's is empty again, and readers of mesh
formats are imported by whoever needs them; the start of Python is not counted.

The usual robot has fine meshes to be seen and coarse ones that collide. The other has the fine ones
for both, so that the engine makes convex hulls of them: that is its work, and no file can keep it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import mujoco
import numpy as np
import trimesh
from _harness import Figure, Settings, collector_off, main, quartiles

from mjhost import MujocoEnv, description
from mjhost.description import mesh_cache

BENCHMARK = "bench_description"
MESHES = 50
FINE, COARSE = 4, 2  # subdivisions of an icosahedron: 5120 and 320 triangles
ROUNDS, QUICK_ROUNDS = 7, 2
HIGHEST = 0.2

IMPORT = """
import sys, time
from mjhost import description
started = time.perf_counter()
description.load(sys.argv[1])
print(time.perf_counter() - started)
"""


def run(settings: Settings) -> list[Figure]:
    rounds = QUICK_ROUNDS if settings.quick else ROUNDS
    figures = []
    with TemporaryDirectory() as folder:
        for name, ending, level in (("coarse STL", "stl", COARSE), ("the same", "dae", FINE)):
            robot = write(Path(folder) / ending, ending, level)
            model = f"{MESHES} Collada to be seen, {name} to collide"
            for measure, pair in (
                ("second MujocoEnv.load / first", hosted),
                ("second description.load / first", imported),
                ("second description.load / first, each in another process", imported_elsewhere),
            ):
                pairs = [pair(robot) for _ in range(rounds + 1)][1:]
                figures.append(figure(measure, model, pairs, HIGHEST))
    return figures


def write(folder: Path, ending: str, level: int) -> Path:
    """A chain of links with a mesh to be seen and one that collides each."""
    folder.mkdir()
    numbers = np.random.default_rng(0)
    parts = []
    for link in range(MESHES):
        noise = numbers.random(3) * 0.02
        (folder / f"{link}.dae").write_bytes(ball(FINE, noise).export(file_type="dae"))
        if ending == "stl":
            (folder / f"{link}.stl").write_bytes(ball(level, noise).export(file_type="stl"))
        shape = '<{0}><geometry><mesh filename="{1}.{2}"/></geometry></{0}>'
        parts.append(
            f'<link name="l{link}"><inertial><mass value="1"/><inertia ixx=".01" ixy="0" ixz="0" '
            f'iyy=".01" iyz="0" izz=".01"/></inertial>{shape.format("visual", link, "dae")}'
            f"{shape.format('collision', link, ending)}</link>"
        )
        if link:
            parts.append(
                f'<joint name="j{link}" type="revolute"><parent link="l{link - 1}"/><child '
                f'link="l{link}"/><origin xyz="0 0 .2"/><axis xyz="0 1 0"/><limit lower="-1" '
                'upper="1" effort="10" velocity="1"/></joint>'
            )
    path = folder / "robot.urdf"
    path.write_text(f'<robot name="chain">{"".join(parts)}</robot>')
    return path


def ball(level: int, noise) -> trimesh.Trimesh:
    made = trimesh.creation.icosphere(level, radius=0.05)
    made.vertices *= 1 + noise + 0.02 * np.sin(40 * made.vertices)
    return made


def imported(robot: Path) -> tuple[float, float]:
    """Seconds of a second and of a first import."""
    with empty_caches():
        first = timed(lambda: description.load(robot))
        return timed(lambda: description.load(robot)), first


def hosted(robot: Path) -> tuple[float, float]:
    """The same with what hosting takes."""
    with empty_caches(), MujocoEnv() as env:
        first = timed(lambda: env.load(robot))
        return timed(env.reload), first


def imported_elsewhere(robot: Path) -> tuple[float, float]:
    """The same as ``imported``, each import in a process of its own."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-c", IMPORT, str(robot)]
        environment = {**os.environ, "XDG_CACHE_HOME": folder}
        first, second = (
            subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout
            for _ in range(2)
        )
    return float(second), float(first)


@contextmanager
def empty_caches() -> Iterator[None]:
    """Nothing was ever converted or compiled in here."""
    mujoco.mj_clearCache(mujoco.mj_getCache())
    with TemporaryDirectory() as folder:
        place = Path(folder) / "meshes"
        before, mesh_cache.folder = mesh_cache.folder, lambda: place
        try:
            yield
        finally:
            mesh_cache.folder = before


def timed(call: Callable[[], object]) -> float:
    with collector_off():
        started = time.perf_counter()
        call()
        return time.perf_counter() - started


def figure(
    measure: str, model: str, pairs: list[tuple[float, float]], high: float | None
) -> Figure:
    q1, middle, q3 = quartiles([second / first for second, first in pairs])
    second, first = (quartiles([pair[side] for pair in pairs])[1] for side in (0, 1))
    return Figure(
        BENCHMARK,
        measure,
        model,
        middle,
        q1,
        q3,
        "x (wall)",
        f"{second:.2f} s",
        f"{first:.2f} s",
        len(pairs),
        high=high,
    )


if __name__ == "__main__":
    main(run)
