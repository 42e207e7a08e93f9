"""A 3-D scanner.

Owns: the order of its points: ring by ring from below, each from the least azimuth on.
Failure: a frame that is not there, or a pattern without beams, is told when it is loaded.
Not a goal: motion within a scan; all beams of one go out at the same moment.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np

from mjhost.bundled.frames import frame, stream_word
from mjhost.bundled.rays import MOST_RAYS, RangeConfig, RangeModel, RayFan, directions
from mjhost.plugins import Plugin
from mjhost.state.names import Names
from mjhost.state.records import Array
from mjhost.streams.records import CloudReading

_Angle = Annotated[float, msgspec.Meta(ge=-2 * math.pi, le=2 * math.pi)]
_Rise = Annotated[float, msgspec.Meta(ge=-math.pi / 2, le=math.pi / 2)]


class Lidar(Plugin):
    """Publishes ``CloudReading``: the points that rings of beams hit, in coordinates of a frame.

    Poses are those of the present state.
    """

    stateless: ClassVar[bool] = True

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

    def __init__(self, config: Any = None, /, **values: Any) -> None:
        super().__init__(config, **values)
        self.rate_hz = self.config.rate

    def load(self, model: Any, data: Any) -> None:
        """Look the frame up and lay out the beams."""
        del data
        config = self.config
        heights = config.heights
        pattern = directions(config.azimuths, heights)
        self._fan = RayFan(model, frame(Names(model), config.frame), pattern, config)
        self._rings = np.repeat(np.arange(len(heights), dtype=np.uint16), config.columns)
        stream = config.stream or stream_word(self.name)
        self._model = RangeModel(config, stream)
        self._out = self.streams.declare(stream, CloudReading)

    def post_step(self, model: Any, data: Any) -> None:
        """Scan, if anybody listens."""
        del model
        if not self._out.wanted:
            self.skip_timing()
            return
        stamp = self._out.now()
        ranges = self._model.readings(self._fan.cast(data), stamp.step)
        self._out.publish(self._cloud(ranges), stamp)

    def _cloud(self, ranges: Any) -> CloudReading:
        config, intensities = self.config, self._fan.cosines()
        hit = np.isfinite(ranges)
        if config.organised:
            reach = np.where(hit, ranges, np.nan)
            points = (self._fan.directions * reach[:, None]).astype(np.float32)
            return CloudReading(
                frame=config.frame,
                points=points,
                rings=self._rings,
                intensities=intensities,
                width=config.columns,
            )
        points = (self._fan.directions[hit] * ranges[hit, None]).astype(np.float32)
        return CloudReading(
            frame=config.frame,
            points=points,
            rings=self._rings[hit],
            intensities=intensities[hit] if len(intensities) else intensities,
        )
