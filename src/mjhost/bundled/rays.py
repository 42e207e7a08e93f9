"""Rays from one point, cast in one call of the engine, and what a range finder makes of them.

What bends (flex) has no such call: each ray is asked of each flex by itself, some 4 µs.

Owns: ``RayFan``, ``RangeModel``.
Invariants: directions are of unit length, so that distances are metres. What comes out is as
REP 117 has it: ``inf`` no return, ``-inf`` nearer than the least range, NaN dropped.
Threads: under the physics lock, outside the engine's own calls.
Failure: wrong bounds are a ``ValueError`` of the configuration.
Not a goal: skins, which the engine's rays do not see.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal

import msgspec
import mujoco
import numpy as np
import numpy.typing as npt

from mjhost.bundled.frames import Frame
from mjhost.options.table import engine_version
from mjhost.state.kinematics import PresentKinematics
from mjhost.state.names import ObjectKind
from mjhost.state.records import Array

MOST_RAYS: Final = 1 << 20
"""Most rays of one fan."""

_GROUPS: Final = 6
_GRAIN: Final = 1e-9

NotNegative = Annotated[float, msgspec.Meta(ge=0.0)]
Positive = Annotated[float, msgspec.Meta(gt=0.0)]
Group = Annotated[int, msgspec.Meta(ge=0, lt=_GROUPS)]
Ranges = npt.NDArray[np.float32]


class RangeConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What every range finder can be told.

    Attributes:
        frame: body, site, camera or geom that it is in; its x axis is azimuth 0, z is up.
        stream: name of its stream; empty: that of the plugin.
        rate: scans per second of simulation, Hz.
        range_min: what is nearer reads ``-inf``, m.
        range_max: what is farther is not seen, m.
        groups: geom groups that are seen.
        static: whether geoms of the world and what is welded to it are seen.
        own_body: whether geoms of the body that it is on are seen.
        flexes: whether what bends is seen; some 4 µs for each ray and flex.
        sigma: standard deviation of a distance, m.
        sigma_relative: the same as a share of the distance; both add as squares.
        resolution: distances are multiples of it, m; 0: all.
        dropout: share of the beams that give no reading.
        seed: of the noise, which is a function of it, of the stream's name and of the step.
        intensity: ``"cosine"``: that of the angle of incidence; ``"none"``.
    """

    frame: str
    stream: str = ""
    rate: Positive = 10.0
    range_min: NotNegative = 0.05
    range_max: Positive = 30.0
    groups: tuple[Group, ...] = tuple(range(_GROUPS))
    static: bool = True
    own_body: bool = False
    flexes: bool = True
    sigma: NotNegative = 0.0
    sigma_relative: NotNegative = 0.0
    resolution: NotNegative = 0.0
    dropout: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] = 0.0
    seed: Annotated[int, msgspec.Meta(ge=0)] = 0
    intensity: Literal["none", "cosine"] = "none"

    def __post_init__(self) -> None:
        """Refuse ranges that leave nothing."""
        if not self.range_min < self.range_max < float("inf"):
            raise ValueError(
                f"range_min must be below range_max, and that finite, got {self.range_min} and "
                f"{self.range_max}"
            )


class RayFan:
    """Rays from the origin of a frame, in directions that turn with it.

    Args:
        model: the model.
        frame: where they begin.
        directions: unit vectors in the frame, shape ``(n, 3)``.
        config: what is seen.

    Attributes:
        directions: as given.
    """

    def __init__(
        self, model: mujoco.MjModel, frame: Frame, directions: Array, config: RangeConfig
    ) -> None:
        count = len(directions)
        if not 1 <= count <= MOST_RAYS:
            raise ValueError(f"a scan has from 1 to {MOST_RAYS} rays, got {count}")
        self.directions = directions
        self._model, self._frame = model, frame
        self._present = PresentKinematics(model)
        self._cutoff, self._static = config.range_max, config.static
        self._flexes = range(model.nflex if config.flexes else 0)
        self._groups = np.isin(np.arange(_GROUPS), config.groups).astype(np.uint8)
        self._exclude = -1 if config.own_body else _body_of(model, frame)
        self._world = np.empty((count, 3))
        self._normals = np.empty((count, 3)) if config.intensity == "cosine" else None
        self._geoms = np.empty(count, np.int32)
        self._distances = np.empty(count)
        planes = model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE
        self._planes = np.flatnonzero(planes) if engine_version() < (4, 0) else np.empty(0, int)

    def cast(self, data: mujoco.MjData) -> Array:
        """Distances in the present state, shape ``(n,)``, m; ``inf`` where nothing is hit.

        The array is used again by the next call.
        """
        model, now = self._model, self._present.of(data)
        if self._frame.kind is ObjectKind.CAMERA:
            mujoco.mj_camlight(model, now)
        origin, matrix = self._frame.pose(now)
        np.matmul(self.directions, matrix.T, out=self._world)
        normals = None if self._normals is None else self._normals.reshape(-1)
        mujoco.mj_multiRay(
            model,
            now,
            origin,
            self._world.reshape(-1),
            self._groups,
            self._static,
            self._exclude,
            self._geoms,
            self._distances,
            normals,
            len(self._distances),
            self._reach(now, origin),
        )
        if self._flexes:
            self._meet_flexes(now, origin)
        found = self._distances
        found[(found < 0.0) | (found > self._cutoff)] = np.inf
        return found

    def _reach(self, now: mujoco.MjData, origin: Array) -> float:
        """How far the engine is to look; 3.x takes planes to be no larger than their centres."""
        if not len(self._planes):
            return self._cutoff
        away = now.geom_xpos[self._planes] - origin
        farthest = float(np.sqrt(np.einsum("ij,ij->i", away, away).max()))
        return max(self._cutoff, farthest * (1.0 + _GRAIN))

    def _meet_flexes(self, now: mujoco.MjData, origin: Array) -> None:
        """Shortens the rays that meet a flex before anything else."""
        model, vertex, normal = self._model, np.empty(1, np.int32), np.empty(3)
        mujoco.mj_flex(model, now)
        for flex in self._flexes:
            thin = bool(model.flex_dim[flex] == 1)
            shape = (False, thin, not thin, False)  # vertices, edges, faces, skin
            for ray, way in enumerate(self._world):
                found = mujoco.mj_rayFlex(model, now, 0, *shape, flex, origin, way, vertex, normal)
                if found >= 0.0 and not 0.0 <= self._distances[ray] <= found:
                    self._distances[ray] = found
                    if self._normals is not None:
                        self._normals[ray] = normal

    def cosines(self) -> Ranges:
        """Cosine of the angle of incidence of each ray of the last cast; 0 where nothing is hit."""
        if self._normals is None:
            return np.empty(0, np.float32)
        cosines = np.abs(np.einsum("ij,ij->i", self._world, self._normals))
        cosines[np.isinf(self._distances)] = 0.0
        found: Ranges = cosines.astype(np.float32)
        return found


class RangeModel:
    """What an instrument reads of true distances.

    Its noise is a function of seed, stream and step: it does not depend on who listens, and comes
    again after a reset or a restore.
    """

    def __init__(self, config: RangeConfig, stream: str) -> None:
        self._config = config
        self._key = (config.seed << 32) + zlib.crc32(stream.encode())

    def readings(self, distances: Array, step: int) -> Ranges:
        """Readings of ``distances`` (m) in step ``step``, a new array of the same shape."""
        config = self._config
        read = distances.copy()
        hit = np.isfinite(read)
        if config.sigma or config.sigma_relative or config.dropout:
            key = np.random.SeedSequence([self._key, step])
            noise = np.random.Generator(np.random.Philox(key))
            self._disturb(read, hit, noise)
        if config.resolution:
            read[hit] = np.round(read[hit] / config.resolution) * config.resolution
        read[hit & (read > config.range_max)] = np.inf
        read[hit & (read < config.range_min)] = -np.inf
        return read.astype(np.float32)

    def _disturb(self, read: Array, hit: npt.NDArray[np.bool_], noise: np.random.Generator) -> None:
        """Adds Gaussian noise, and drops readings, in place."""
        config = self._config
        gaussian = noise.standard_normal(len(read))  # of every beam: one hit less shifts no other
        dropped = noise.random(len(read)) < config.dropout
        sigma = np.hypot(config.sigma, config.sigma_relative * read[hit])
        read[hit] = np.maximum(0.0, read[hit] + sigma * gaussian[hit])
        read[dropped] = np.nan
        hit &= ~dropped


def directions(azimuths: Iterable[float], elevations: Iterable[float]) -> Array:
    """Unit vectors, shape ``(n, 3)``: for each elevation (rad from the x-y plane) all azimuths."""
    turn, rise = np.meshgrid(np.asarray([*azimuths]), np.asarray([*elevations]))
    turn, rise = turn.reshape(-1), rise.reshape(-1)
    return np.stack(
        [np.cos(rise) * np.cos(turn), np.cos(rise) * np.sin(turn), np.sin(rise)], axis=1
    )


def _body_of(model: Any, frame: Frame) -> int:
    """The body that a frame is on; -1 for the world, of which everything static is part."""
    owners = {
        ObjectKind.SITE: "site_bodyid",
        ObjectKind.CAMERA: "cam_bodyid",
        ObjectKind.GEOM: "geom_bodyid",
    }
    owner = owners.get(frame.kind)
    body = frame.id if owner is None else int(getattr(model, owner)[frame.id])
    return body or -1
