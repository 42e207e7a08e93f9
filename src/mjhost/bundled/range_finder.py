"""What range finders have in common: a place on the robot, a stream, rays and noise.

Owns: ``RangeFinder``, and how a displaced instrument's frame is called and told.
Invariants: nothing is cast while nobody listens.
Failure: what cannot be is told when it is loaded.
Not a goal: the pattern of beams and the record, which are those of the subclass; motion within a
scan, all beams of which go out at the same moment.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from mjhost.bundled.frames import Mount, frame, frame_names, stream_word
from mjhost.bundled.instrument import RangeModel, Ranges
from mjhost.bundled.rays import RayFan
from mjhost.errors import InvalidArgumentError
from mjhost.plugins import Plugin
from mjhost.state.names import Names
from mjhost.state.records import Array
from mjhost.streams.records import Record, TransformReadings


class RangeFinder(Plugin, ABC):
    """Publishes a record of all its beams, at its rate.

    If its own frame is none of the model's, the pose of it is latched on ``<stream>/tf_static``.

    Attributes:
        record: the type of the records.
        label: name of its frame in records.
        fan: its rays.
    """

    stateless: ClassVar[bool] = True
    record: ClassVar[type[Record]]

    def __init__(self, config: Any = None, /, **values: Any) -> None:
        super().__init__(config, **values)
        self.rate_hz = self.config.rate

    def load(self, model: Any, data: Any) -> None:
        """Look the frame up and lay out the beams."""
        del data
        config, names = self.config, Names(model)
        mount = Mount(frame(names, config.frame), config.position, config.orientation)
        stream = config.stream or stream_word(self.name)
        self.label = _label(config.label, mount, stream, names)
        self.fan = RayFan(model, mount, self.directions(), config)
        self._instrument = RangeModel(config, stream)
        self._out = self.streams.declare(stream, self.record)
        if self.label != config.frame:
            told = self.streams.declare(f"{stream}/tf_static", TransformReadings, latched=True)
            told.publish(
                TransformReadings(
                    parents=(config.frame,),
                    children=(self.label,),
                    positions=mount.position[None],
                    orientations=mount.orientation[None],
                )
            )

    def post_step(self, model: Any, data: Any) -> None:
        """Scan, if anybody listens."""
        if not self._out.wanted:
            self.skip_timing()
            return
        stamp = self._out.now()
        ranges = self._instrument.readings(self.fan.cast(data), stamp.step)
        period = max(1.0 / self.config.rate, float(model.opt.timestep))
        self._out.publish(self.reading(ranges, self.fan.intensities(), period), stamp)

    @abstractmethod
    def directions(self) -> Array:
        """Unit vectors of the beams in the instrument's frame, shape ``(n, 3)``."""

    @abstractmethod
    def reading(self, ranges: Ranges, intensities: Ranges, period: float) -> Any:
        """A record.

        Args:
            ranges: of the beams, m, shape ``(n,)``.
            intensities: of the beams, shape ``(n,)`` or empty.
            period: between two scans, s sim.
        """


def _label(wanted: str, mount: Mount, stream: str, names: Names) -> str:
    """The name of an instrument's frame, which is no other frame's.

    Raises:
        InvalidArgumentError: another frame of the model has that name.
    """
    own = mount.frame.name
    label = wanted or (f"{stream.replace('/', '_')}_frame" if mount.is_displaced else own)
    if label == own and not mount.is_displaced:
        return label
    if label in frame_names(names):
        raise InvalidArgumentError(
            f"the frame of {stream!r} needs a name of its own, and the model has a frame "
            f"{label!r}; give another label"
        )
    return label
