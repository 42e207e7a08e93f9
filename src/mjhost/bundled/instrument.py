"""What can be chosen of a range finder, and what it reads of true distances.

Owns: ``RangeConfig``, ``RangeModel``.
Invariants: what comes out is as REP 117 has it: ``inf`` no return, ``-inf`` nearer than the least
range, NaN dropped. Noise has no past: it is a function of seed, stream and step.
Threads: plain values and functions of them.
Failure: wrong bounds are a ``ValueError`` of the configuration.
Not a goal: what a ray meets; see ``mjhost.bundled.rays``.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from mjhost.bundled.noise import drawn
from mjhost.state import poses
from mjhost.state.records import Array

_GROUPS: Final = 6
_MOST: Final = 1e6  # of a distance, m; and of anything else that has no bound of its own

NotNegative = Annotated[float, msgspec.Meta(ge=0.0, le=_MOST)]
Positive = Annotated[float, msgspec.Meta(gt=0.0, le=_MOST)]
Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Group = Annotated[int, msgspec.Meta(ge=0, lt=_GROUPS)]
Ranges = npt.NDArray[np.float32]


class RangeConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What every range finder can be told.

    Attributes:
        frame: body, site, camera or geom that it is in; its x axis is azimuth 0, z is up.
        position: of the instrument in ``frame``, m.
        orientation: of the instrument in ``frame``, quaternion w x y z.
        label: name of the instrument's own frame in records; empty: ``frame``, or of a displaced
            instrument ``<stream>_frame``.
        stream: name of its stream; empty: that of the plugin.
        rate: scans per second of simulation, Hz.
        range_min: what is nearer reads ``-inf``, m.
        range_max: what is farther is not seen, m.
        groups: groups of geoms and flexes that are seen.
        static: whether geoms of the world and what is welded to it are seen.
        own_body: whether geoms of the body that it is on are seen.
        own_tree: whether those of the other bodies of its kinematic tree are seen.
        flexes: whether what bends is seen; some 4 µs for each ray that comes near one.
        alpha_min: what is more transparent (alpha below this) is looked through; alpha 0 always is.
        sigma: standard deviation of a distance, m.
        sigma_relative: the same as a share of the distance; both add as squares.
        resolution: distances are multiples of it, m; 0: all.
        dropout: share of the beams that give no reading.
        seed: of the noise, which is a function of it, of the stream's name and of the step.
        intensity: ``"none"``; ``"constant"``: ``intensity_value``; ``"material"``: that of
            ``materials``, else the ``reflectance`` of the material, and ``intensity_value`` of what
            has no material; ``"cosine"``: that of the angle of incidence.
        intensity_value: see ``intensity``.
        materials: intensities by name of the material.
    """

    frame: str
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    orientation: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    label: str = ""
    stream: str = ""
    rate: Positive = 10.0
    range_min: NotNegative = 0.05
    range_max: Positive = 30.0
    groups: tuple[Group, ...] = tuple(range(_GROUPS))
    static: bool = True
    own_body: bool = False
    own_tree: bool = True
    flexes: bool = True
    alpha_min: Share = 0.0
    sigma: NotNegative = 0.0
    sigma_relative: NotNegative = 0.0
    resolution: NotNegative = 0.0
    dropout: Share = 0.0
    seed: Annotated[int, msgspec.Meta(ge=0)] = 0
    intensity: Literal["none", "constant", "material", "cosine"] = "none"
    intensity_value: NotNegative = 1.0
    materials: dict[str, NotNegative] = {}

    def __post_init__(self) -> None:
        """Refuse ranges that leave nothing, and poses that are none."""
        if not self.range_min < self.range_max:
            raise ValueError(
                f"range_min must be below range_max, got {self.range_min} and {self.range_max}"
            )
        poses.position(self.position, "position")
        poses.quaternion(self.orientation, "orientation")


class RangeModel:
    """What an instrument reads of true distances.

    Its noise does not depend on who listens, and comes again after a reset or a restore.
    """

    def __init__(self, config: RangeConfig, stream: str) -> None:
        self._config = config
        self._stream = stream

    def readings(self, distances: Array, step: int) -> Ranges:
        """Readings of ``distances`` (m) in step ``step``, a new array of the same shape."""
        config = self._config
        read = distances.copy()
        hit = np.isfinite(read)
        if config.sigma or config.sigma_relative or config.dropout:
            self._disturb(read, hit, drawn(config.seed, self._stream, step))
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
