"""Rays from one point, cast in one call of the engine.

What bends (flex) has no such call: each ray that comes near a flex is asked of it by itself.

Owns: ``RayFan``.
Invariants: directions are of unit length, so that distances are metres.
Threads: under the physics lock, outside the engine's own calls.
Failure: what is not in the model is told when a fan is made.
Not a goal: noise; see ``mjhost.bundled.instrument``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import mujoco
import numpy as np
import numpy.typing as npt

from mjhost.bundled.frames import Mount
from mjhost.bundled.instrument import RangeConfig, Ranges
from mjhost.bundled.sight import Sight
from mjhost.state.kinematics import PresentKinematics
from mjhost.state.names import Names, ObjectKind
from mjhost.state.records import Array

MOST_RAYS: Final = 1 << 20
"""Most rays of one fan."""


class RayFan:
    """Rays from the origin of a mount, in directions that turn with it.

    Args:
        model: the model.
        mount: where they begin.
        directions: unit vectors in the mount, shape ``(n, 3)``.
        config: what is seen.

    Attributes:
        directions: as given.

    Raises:
        UnknownNameError: the configuration names a material that is not in the model.
    """

    def __init__(
        self, model: mujoco.MjModel, mount: Mount, directions: Array, config: RangeConfig
    ) -> None:
        count = len(directions)
        if not 1 <= count <= MOST_RAYS:
            raise ValueError(f"a scan has from 1 to {MOST_RAYS} rays, got {count}")
        self.directions = directions
        self._model, self._mount, self._config = model, mount, config
        self._present = PresentKinematics(model)
        self._sight = Sight(model, mount.frame, config)
        self._materials = _intensities(model, config)
        self._world = np.empty((count, 3))
        self._normals = np.empty((count, 3)) if config.intensity == "cosine" else None
        self._geoms = np.empty(count, np.int32)
        self._flexes = np.full(count, -1, np.int32)
        self._distances = np.empty(count)

    def cast(self, data: mujoco.MjData) -> Array:
        """Distances in the present state, shape ``(n,)``, m; ``inf`` where nothing is hit.

        The array is used again by the next call.
        """
        model, now = self._model, self._present.of(data)
        if self._mount.frame.kind is ObjectKind.CAMERA:
            mujoco.mj_camlight(model, now)
        origin, matrix = self._mount.pose(now)
        self._sight.clear(now)
        np.matmul(self.directions, matrix.T, out=self._world)
        mujoco.mj_multiRay(
            model,
            now,
            origin,
            self._world.reshape(-1),
            self._sight.groups,
            self._sight.static,
            self._sight.exclude,
            self._geoms,
            self._distances,
            None if self._normals is None else self._normals.reshape(-1),
            len(self._distances),
            self._sight.reach(now, origin),
        )
        found = self._distances
        found[(found < 0.0) | (found > self._config.range_max)] = np.inf
        if model.nflex:
            self._meet_flexes(now, origin)
        return found

    def intensities(self) -> Ranges:
        """Intensities of the last cast, shape ``(n,)``, 0 where nothing is hit; or empty."""
        config, hit = self._config, np.isfinite(self._distances)
        if config.intensity == "none":
            return np.empty(0, np.float32)
        if config.intensity == "constant":
            return np.where(hit, np.float32(config.intensity_value), np.float32(0.0))
        if self._normals is not None:
            cosines = np.abs(np.einsum("ij,ij->i", self._world, self._normals))
            return np.where(hit, cosines, 0.0).astype(np.float32)
        found: Ranges = self._materials[self._materials_hit()].astype(np.float32)
        found[~hit] = 0.0
        return found

    def _materials_hit(self) -> npt.NDArray[np.int32]:
        """Material that each ray has met; -1 if it is none."""
        model, materials = self._model, np.full(len(self._geoms), -1, np.int32)
        for hits, of in ((self._geoms, model.geom_matid), (self._flexes, model.flex_matid)):
            materials[hits >= 0] = of[hits[hits >= 0]]
        return materials

    def _meet_flexes(self, now: mujoco.MjData, origin: Array) -> None:
        """Shortens the rays that meet a flex before anything else."""
        model, vertex, normal = self._model, np.empty(1, np.int32), np.empty(3)
        self._flexes.fill(-1)
        mujoco.mj_flex(model, now)
        for flex in self._sight.flexes:
            thin = bool(model.flex_dim[flex] == 1)
            shape = (False, thin, not thin, False)  # vertices, edges, faces, skin
            for ray in self._near(now, origin, flex):
                way = self._world[ray]
                found = mujoco.mj_rayFlex(model, now, 0, *shape, flex, origin, way, vertex, normal)
                if 0.0 <= found <= self._config.range_max and found < self._distances[ray]:
                    self._distances[ray] = found
                    self._geoms[ray], self._flexes[ray] = -1, flex
                    if self._normals is not None:
                        self._normals[ray] = normal

    def _near(self, now: mujoco.MjData, origin: Array, flex: int) -> Any:
        """Numbers of the rays that pass through a ball around a flex before they meet anything."""
        model = self._model
        start, count = int(model.flex_vertadr[flex]), int(model.flex_vertnum[flex])
        vertices = now.flexvert_xpos[start : start + count]
        middle = 0.5 * (vertices.min(axis=0) + vertices.max(axis=0))
        radius = float(np.linalg.norm(vertices - middle, axis=1).max() + model.flex_radius[flex])
        radius *= 1.0 + 1e-9
        way = middle - origin
        square = float(way @ way)
        along = self._world @ way
        passes = square - along * along <= radius * radius
        ahead = (along >= 0.0) | (square <= radius * radius)
        return np.flatnonzero(passes & ahead & (along - radius <= self._distances))


def directions(azimuths: Iterable[float], elevations: Iterable[float]) -> Array:
    """Unit vectors, shape ``(n, 3)``: for each elevation (rad from the x-y plane) all azimuths."""
    turn, rise = np.meshgrid(np.asarray([*azimuths]), np.asarray([*elevations]))
    turn, rise = turn.reshape(-1), rise.reshape(-1)
    return np.stack(
        [np.cos(rise) * np.cos(turn), np.cos(rise) * np.sin(turn), np.sin(rise)], axis=1
    )


def _intensities(model: mujoco.MjModel, config: RangeConfig) -> Array:
    """The intensity of each material, and at the end that of what has none."""
    names = Names(model)
    found = np.append(model.mat_reflectance.astype(np.float64), config.intensity_value)
    for name, intensity in config.materials.items():
        found[names.id(ObjectKind.MATERIAL, name)] = intensity
    return found
