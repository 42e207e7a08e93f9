"""A planar scanner.

Owns: the order of its beams.
Failure: a fan without beams is refused by the configuration.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, Final

import msgspec
import numpy as np

from mjhost.bundled.instrument import RangeConfig, Ranges
from mjhost.bundled.range_finder import RangeFinder
from mjhost.bundled.rays import MOST_RAYS, directions
from mjhost.state.records import Array
from mjhost.streams.records import Record, ScanReading

_Angle = Annotated[float, msgspec.Meta(ge=-2 * math.pi, le=2 * math.pi)]
_USUAL: Final = 541  # beams: every half degree of the usual fan
_NEAR: Final = 1e-6  # of a step: an end this close to a beam is one


class Laser(RangeFinder):
    """Publishes ``ScanReading``: distances around the z axis of a frame, counted from its x axis.

    Beams go from ``angle_min`` to ``angle_max``, both included. Poses are those of the present
    state.
    """

    record: ClassVar[type[Record]] = ScanReading

    class Config(RangeConfig, frozen=True, kw_only=True):
        """What can be chosen.

        Attributes:
            angle_min: of the first beam, rad.
            angle_max: of the last beam, rad.
            beams: how many; 541 if ``angle_step`` does not say it.
            angle_step: rad between neighbouring beams, instead of ``beams``; the last one is then
                at ``angle_max`` or less than a step before it.
        """

        angle_min: _Angle = -0.75 * math.pi
        angle_max: _Angle = 0.75 * math.pi
        beams: Annotated[int, msgspec.Meta(ge=1, le=MOST_RAYS)] | None = None
        angle_step: Annotated[float, msgspec.Meta(ge=1e-6, le=4 * math.pi)] | None = None

        def __post_init__(self) -> None:
            """Refuse a fan that goes nowhere."""
            super().__post_init__()
            if self.beams is not None and self.angle_step is not None:
                raise ValueError(
                    "beams or angle_step can be chosen, not both, got "
                    f"{self.beams} and {self.angle_step}"
                )
            alone = self.count == 1
            if self.angle_min > self.angle_max or (self.angle_min == self.angle_max and not alone):
                raise ValueError(
                    f"angle_min must be below angle_max, got {self.angle_min} and {self.angle_max}"
                )
            if self.count > MOST_RAYS:
                raise ValueError(f"a scan has at most {MOST_RAYS} beams, got {self.count}")

        @property
        def count(self) -> int:
            """How many beams there are."""
            if self.angle_step is None:
                return _USUAL if self.beams is None else self.beams
            return 1 + math.floor((self.angle_max - self.angle_min) / self.angle_step + _NEAR)

        @property
        def step(self) -> float:
            """Rad between neighbouring beams."""
            if self.angle_step is not None:
                return self.angle_step
            return (self.angle_max - self.angle_min) / max(1, self.count - 1)

    def directions(self) -> Array:
        """In the x-y plane, from the least angle on."""
        config = self.config
        if config.angle_step is None:
            angles = np.linspace(config.angle_min, config.angle_max, config.count)
        else:
            angles = config.angle_min + config.angle_step * np.arange(config.count)
        return directions(angles, [0.0])

    def reading(self, ranges: Ranges, intensities: Ranges, period: float) -> Any:
        """One scan."""
        config = self.config
        return ScanReading(
            frame=self.label,
            angle_min=config.angle_min,
            angle_step=config.step,
            range_min=config.range_min,
            range_max=config.range_max,
            period=period,
            ranges=ranges,
            intensities=intensities,
        )
