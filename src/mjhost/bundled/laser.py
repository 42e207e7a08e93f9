"""A planar scanner.

Owns: the order of its beams.
Failure: a frame that is not there, or a fan without beams, is told when it is loaded.
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
from mjhost.streams.records import ScanReading

_Angle = Annotated[float, msgspec.Meta(ge=-2 * math.pi, le=2 * math.pi)]


class Laser(Plugin):
    """Publishes ``ScanReading``: distances around the z axis of a frame, counted from its x axis.

    Beams go from ``angle_min`` to ``angle_max``, both included. Poses are those of the present
    state.
    """

    stateless: ClassVar[bool] = True

    class Config(RangeConfig, frozen=True, kw_only=True):
        """What can be chosen.

        Attributes:
            angle_min: of the first beam, rad.
            angle_max: of the last beam, rad.
            beams: how many.
        """

        angle_min: _Angle = -0.75 * math.pi
        angle_max: _Angle = 0.75 * math.pi
        beams: Annotated[int, msgspec.Meta(ge=1, le=MOST_RAYS)] = 541

        def __post_init__(self) -> None:
            """Refuse a fan that goes nowhere."""
            super().__post_init__()
            if self.beams > 1 and not self.angle_min < self.angle_max:
                raise ValueError(
                    f"angle_min must be below angle_max, got {self.angle_min} and {self.angle_max}"
                )

    def __init__(self, config: Any = None, /, **values: Any) -> None:
        super().__init__(config, **values)
        self.rate_hz = self.config.rate

    def load(self, model: Any, data: Any) -> None:
        """Look the frame up and lay out the beams."""
        del data
        config = self.config
        angles = np.linspace(config.angle_min, config.angle_max, config.beams)
        where = frame(Names(model), config.frame)
        self._fan = RayFan(model, where, directions(angles, [0.0]), config)
        stream = config.stream or stream_word(self.name)
        self._model = RangeModel(config, stream)
        self._step = (config.angle_max - config.angle_min) / max(1, config.beams - 1)
        self._out = self.streams.declare(stream, ScanReading)

    def post_step(self, model: Any, data: Any) -> None:
        """Scan, if anybody listens."""
        del model
        if not self._out.wanted:
            self.skip_timing()
            return
        stamp, config = self._out.now(), self.config
        ranges = self._model.readings(self._fan.cast(data), stamp.step)
        self._out.publish(
            ScanReading(
                frame=config.frame,
                angle_min=config.angle_min,
                angle_step=self._step,
                range_min=config.range_min,
                range_max=config.range_max,
                period=1.0 / config.rate,
                ranges=ranges,
                intensities=self._fan.cosines(),
            ),
            stamp,
        )
