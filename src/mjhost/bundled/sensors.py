"""All sensors of a model as records, with noise, and the truth beside it.

Owns: which streams there are, and readings that are on their way (latency).
Invariants: the engine computes sensors at the start of a step, so a reading is stamped with the
boundary that the step began at. Noise depends on seed and step, not on who listens.
Failure: a name or type of sensor that is not in the model is told when it is loaded.
Not a goal: pictures; and rays, but for the engine's own range finders.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from mjhost.bundled.frames import stream_word
from mjhost.bundled.noise import Channel, NoiseRule, SensorNoise
from mjhost.bundled.sensor_records import SensorChannel, by_site, channels
from mjhost.errors import PluginLoadError, UnknownNameError, did_you_mean
from mjhost.plugins import Plugin
from mjhost.state.names import Names
from mjhost.state.records import Array
from mjhost.streams import Outlet, Stamp
from mjhost.streams.records import ImuReading, Record, WrenchReading

Maker = Callable[[Array], Record]
_EVERYTHING = "*"

MOST_LATE: Final = 1 << 16
"""Most readings that are under way; beyond it the oldest are lost."""


class _Stream(NamedTuple):
    """One stream of readings, and that of the truth.

    Attributes:
        make: makes its record of all sensor data.
        outlet: of the readings.
        truth: of the true values, if asked for.
        channels: numbers of the channels that it is made of.
        delay: from the measurement to the publication, s sim.
    """

    make: Maker
    outlet: Outlet[Any]
    truth: Outlet[Any] | None
    channels: tuple[int, ...]
    delay: float


class _Late(NamedTuple):
    """A reading on its way.

    Attributes:
        due: step at which it comes.
        stream: number of its stream.
        stamp: of the measurement.
        values: all sensor data as they were read.
    """

    due: int
    stream: int
    stamp: Stamp
    values: Array


class Sensors(Plugin):
    """Publishes every sensor on ``sensors/<name>``, and what a site has of them together besides.

    A site with accelerometer and gyro is an IMU, ``imu/<site>``; one with force and torque sensors
    has ``force_torque/<site>``. With ``ground_truth`` the values without noise are on
    ``ground_truth/<stream>``.
    """

    class Config(msgspec.Struct, frozen=True, kw_only=True):
        """What can be chosen.

        Attributes:
            include: names or types of sensors; empty: all.
            exclude: names or types of sensors that are left out.
            rate: readings per second of simulation, Hz; None: with every step.
            noise: by name or type of a sensor, or ``"*"`` for all others.
            model_noise: where no rule says otherwise, take the ``noise`` attribute of the model's
                sensors as their sigma.
            seed: of the noise.
            ground_truth: publish the values without noise as well.
            groups: publish IMUs and wrenches of sites.
        """

        include: tuple[str, ...] = ()
        exclude: tuple[str, ...] = ()
        rate: Annotated[float, msgspec.Meta(gt=0.0)] | None = None
        noise: dict[str, NoiseRule] = {}
        model_noise: bool = False
        seed: Annotated[int, msgspec.Meta(ge=0)] = 0
        ground_truth: bool = False
        groups: bool = True

    def __init__(self, config: Any = None, /, **values: Any) -> None:
        super().__init__(config, **values)
        self.rate_hz = self.config.rate

    # -- loading -----------------------------------------------------------------------------

    def load(self, model: Any, data: Any) -> None:
        """Look the sensors up and declare their streams."""
        del data
        names = Names(model)
        self._channels = self._chosen(channels(model, names))
        if not self._channels:
            raise PluginLoadError("there is no sensor to publish: the model has none, or none left")
        rules = [self._rule(model, channel) for channel in self._channels]
        self._ranges = [c.place for c in self._channels if c.kind == "rangefinder"]
        noisy = [
            Channel(c.place, rule, c.is_orientation, c.low, c.high)
            for c, rule in zip(self._channels, rules, strict=True)
        ]
        self._noise = SensorNoise(noisy, model.nsensordata, self.config.seed, self.name)
        self._silent = self._noise.is_silent
        self._latencies = [rule.latency for rule in rules]
        self._under_way: deque[_Late] = deque(maxlen=MOST_LATE)
        self._streams: list[_Stream] = []
        for number, channel in enumerate(self._channels):
            name = f"sensors/{stream_word(channel.name)}"
            self._declare(name, channel.record, (number,), _maker_of(channel))
        if self.config.groups:
            self._declare_groups(model, names)

    def _chosen(self, found: tuple[SensorChannel, ...]) -> tuple[SensorChannel, ...]:
        config = self.config
        known = {channel.name for channel in found} | {channel.kind for channel in found}
        named = {*config.noise} - {_EVERYTHING}
        for word in (*config.include, *config.exclude, *named):
            if word not in known:
                raise UnknownNameError(
                    f"no sensor of the model has the name or type {word!r}; "
                    f"{did_you_mean(word, known)}"
                )
        wanted, unwanted = {*config.include}, {*config.exclude}
        return tuple(
            channel
            for channel in found
            if (not wanted or wanted & {channel.name, channel.kind})
            and not unwanted & {channel.name, channel.kind}
        )

    def _rule(self, model: Any, channel: SensorChannel) -> NoiseRule:
        noise: dict[str, NoiseRule] = self.config.noise
        for word in (channel.name, channel.kind, _EVERYTHING):
            if word in noise:
                return noise[word]
        sigma = float(model.sensor_noise[channel.id]) if self.config.model_noise else 0.0
        return NoiseRule(sigma=sigma)

    def _declare(
        self, name: str, record: type[Record], numbers: tuple[int, ...], make: Maker
    ) -> None:
        truth = None
        if self.config.ground_truth:
            truth = self.streams.declare(f"ground_truth/{name}", record)
        delay = max(self._latencies[number] for number in numbers)
        outlet = self.streams.declare(name, record)
        self._streams.append(_Stream(make, outlet, truth, numbers, delay))

    def _declare_groups(self, model: Any, names: Names) -> None:
        number = {channel.id: index for index, channel in enumerate(self._channels)}
        for site, kinds in by_site(model, names, self._channels).items():
            word = stream_word(site)
            for prefix, record, needed, more in (
                ("imu", ImuReading, ("accelerometer", "gyro"), ("framequat",)),
                ("force_torque", WrenchReading, ("force", "torque"), ()),
            ):
                if all(kind in kinds for kind in needed):
                    parts = {kind: kinds[kind] for kind in (*needed, *more) if kind in kinds}
                    numbers = tuple(number[part.id] for part in parts.values())
                    make = self._imu(site, parts) if prefix == "imu" else _wrench(site, parts)
                    self._declare(f"{prefix}/{word}", record, numbers, make)

    def _imu(self, site: str, parts: dict[str, SensorChannel]) -> Maker:
        places = {kind: part.place for kind, part in parts.items()}
        quat = places.get("framequat")
        sigmas = [
            self._sigma_of(parts.get(kind)) for kind in ("framequat", "gyro", "accelerometer")
        ]
        variances = (sigmas[0] ** 2, sigmas[1] ** 2, sigmas[2] ** 2)

        def make(values: Array) -> Record:
            return ImuReading(
                frame=site,
                orientation=None if quat is None else values[quat].copy(),
                angular_velocity=values[places["gyro"]].copy(),
                linear_acceleration=values[places["accelerometer"]].copy(),
                variances=variances,
            )

        return make

    def _sigma_of(self, channel: SensorChannel | None) -> float:
        return 0.0 if channel is None else self._noise.sigma_of(self._channels.index(channel))

    # -- publishing --------------------------------------------------------------------------

    def post_step(self, model: Any, data: Any) -> None:
        """Publish what the engine measured at the start of the step."""
        dt = float(model.opt.timestep)
        stamp = _step_before(self._streams[0].outlet.now(), dt)
        self._noise.walk(stamp.step, dt if self.rate_hz is None else 1.0 / self.rate_hz)
        truths = [stream for stream in self._streams if stream.truth and stream.truth.wanted]
        wanted = [
            number
            for number, stream in enumerate(self._streams)
            if stream.delay or stream.outlet.wanted  # who listens later gets what is late
        ]
        for stream in truths:
            assert stream.truth is not None, "only those with one"
            stream.truth.publish(stream.make(data.sensordata), stamp)
        if wanted:
            self._tell(wanted, data.sensordata, stamp, dt)
        elif not truths:
            self.skip_timing()
        self._deliver(stamp.step)

    def _tell(self, wanted: list[int], truth: Array, stamp: Stamp, dt: float) -> None:
        while self._under_way and self._under_way[-1].stamp.step >= stamp.step:
            self._under_way.pop()  # of this step before it was undone
        if self._silent:
            values, dropped = truth.copy(), None
        else:
            values = self._noise.readings(truth, stamp.step)
            for place in self._ranges:
                if truth[place.start] < 0.0:  # no return, which has no noise
                    values[place] = truth[place]
            dropped = self._noise.dropped(stamp.step)
        for number in wanted:
            stream = self._streams[number]
            if dropped is not None and dropped[[*stream.channels]].any():
                continue
            if stream.delay:
                due = stamp.step + round(stream.delay / dt)
                self._under_way.append(_Late(due, number, stamp, values))
            else:
                stream.outlet.publish(stream.make(values), stamp)

    def _deliver(self, step: int) -> None:
        """Publishes what has been under way for long enough, in the order of measurement."""
        if not self._under_way:
            return
        waiting: deque[_Late] = deque(maxlen=MOST_LATE)
        for late in self._under_way:
            if late.due <= step:
                stream = self._streams[late.stream]
                stream.outlet.publish(stream.make(late.values), late.stamp)
            else:
                waiting.append(late)
        self._under_way = waiting

    # -- the past ----------------------------------------------------------------------------

    def reset(self) -> None:
        """Bias and what is under way begin anew."""
        self._noise.restart()
        self._under_way.clear()

    def save_state(self) -> dict[str, Any]:
        """The bias, and what is under way."""
        late = [[late.due, late.stream, [*late.stamp], late.values] for late in self._under_way]
        return {"streams": self._names(), "late": late, **self._noise.save()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on with both, if the sensors are the same."""
        self._under_way.clear()
        if state["streams"] != self._names() or len(state["bias"]) != len(self._noise.bias):
            return
        self._noise.load(state)
        for due, stream, stamp, values in state["late"]:
            self._under_way.append(_Late(due, stream, Stamp(*stamp), values))

    def _names(self) -> list[str]:
        return [stream.outlet.name for stream in self._streams]


def _maker_of(channel: SensorChannel) -> Maker:
    return lambda values: channel.reading(values[channel.place].copy())


def _wrench(site: str, parts: dict[str, SensorChannel]) -> Maker:
    force, torque = parts["force"].place, parts["torque"].place
    return lambda values: WrenchReading(
        frame=site, force=values[force].copy(), torque=values[torque].copy()
    )


def _step_before(now: Stamp, dt: float) -> Stamp:
    """The boundary at which the step began whose end is now."""
    return now._replace(
        session_time=now.session_time - dt, sim_time=now.sim_time - dt, step=now.step - 1
    )
