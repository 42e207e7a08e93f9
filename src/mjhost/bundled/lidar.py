"""A 3-D scanner.

Owns: the order of its points: ring by ring as given or from below, each from the least azimuth on.
Failure: a pattern without beams is refused by the configuration.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np

from mjhost.bundled.instrument import RangeConfig, Ranges
from mjhost.bundled.range_finder import RangeFinder
from mjhost.bundled.rays import MOST_RAYS, directions
from mjhost.state.records import Array
from mjhost.streams.records import CloudReading, Record

_Angle = Annotated[float, msgspec.Meta(ge=-2 * math.pi, le=2 * math.pi)]
_Rise = Annotated[float, msgspec.Meta(ge=-math.pi / 2, le=math.pi / 2)]


class Lidar(RangeFinder):
    """Publishes ``CloudReading``: the points that rings of beams hit, in coordinates of a frame.

    Poses are those of the present state.
    """

    record: ClassVar[type[Record]] = CloudReading

    class Config(RangeConfig, frozen=True, kw_only=True):
        """What can be chosen.

        Attributes:
            elevation_min: of the lowest ring, rad above the x-y plane.
            elevation_max: of the highest ring, rad above the x-y plane.
            rings: how many, evenly spaced.
            elevations: of each ring, rad, instead of the three above.
            azimuth_min: of the first column, rad from x about z.
            azimuth_max: of the last column, rad; a full circle ends one column before it begins
                again.
            columns: beams of a ring.
            organised: keep a point for every beam, NaN where there is none.
        """

        elevation_min: _Rise = -math.pi / 12
        elevation_max: _Rise = math.pi / 12
        rings: Annotated[int, msgspec.Meta(ge=1, le=1 << 16)] = 16
        elevations: tuple[_Rise, ...] = ()
        azimuth_min: _Angle = -math.pi
        azimuth_max: _Angle = math.pi
        columns: Annotated[int, msgspec.Meta(ge=1, le=MOST_RAYS)] = 360
        organised: bool = False

        def __post_init__(self) -> None:
            """Refuse patterns that go nowhere, or round more than once."""
            super().__post_init__()
            turn = self.azimuth_max - self.azimuth_min
            if self.columns > 1 and not 0.0 < turn <= 2 * math.pi + 1e-9:
                raise ValueError(
                    "azimuth_max must be above azimuth_min by at most a full turn, got "
                    f"{self.azimuth_min} and {self.azimuth_max}"
                )
            if self.elevation_min > self.elevation_max:
                raise ValueError(
                    "elevation_min must not be above elevation_max, got "
                    f"{self.elevation_min} and {self.elevation_max}"
                )
            if len(self.heights) * self.columns > MOST_RAYS:
                raise ValueError(f"a scan has at most {MOST_RAYS} rays")

        @property
        def heights(self) -> Array:
            """Elevations of the rings, rad."""
            if self.elevations:
                return np.array(self.elevations)
            return np.linspace(self.elevation_min, self.elevation_max, self.rings)

        @property
        def azimuths(self) -> Array:
            """Azimuths of the columns, rad."""
            full = self.azimuth_max - self.azimuth_min > 2 * math.pi - 1e-9
            return np.linspace(self.azimuth_min, self.azimuth_max, self.columns, endpoint=not full)

    def directions(self) -> Array:
        """Ring by ring from below, each from the least azimuth on."""
        return directions(self.config.azimuths, self.config.heights)

    def load(self, model: Any, data: Any) -> None:
        """Look the frame up and lay out the beams."""
        rings = np.arange(len(self.config.heights), dtype=np.uint16)
        self._rings = np.repeat(rings, self.config.columns)
        super().load(model, data)

    def reading(self, ranges: Ranges, intensities: Ranges, period: float) -> Any:
        """One cloud."""
        del period
        organised, hit = self.config.organised, np.isfinite(ranges)
        kept = slice(None) if organised else hit
        reach = np.where(hit, ranges, np.nan)[kept]
        return CloudReading(
            frame=self.label,
            points=(self.fan.directions[kept] * reach[:, None]).astype(np.float32),
            rings=self._rings[kept],
            intensities=intensities[kept] if len(intensities) else intensities,
            width=self.config.columns if organised else 0,
        )
