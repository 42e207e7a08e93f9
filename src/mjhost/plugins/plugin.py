"""The class that users subclass, and nothing that a plugin author does not need.

Owns: ``Plugin``.
Invariants: the arguments a plugin was constructed with are kept, so that an instance can serve as
the template of as many fresh objects as there are generations.
Threads: hooks of a step run on the thread that steps; no two hooks of one env run at the same time.
Failure: wrong configuration raises ``PluginConfigError`` from the constructor.
Not a goal: lifecycle. The host decides when which hook runs.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Self

import msgspec

from mjhost.plugins.typed_config import build_config
from mjhost.streams import PluginStreams


class Plugin:
    """A part of a simulation: subclass it and override the hooks you need.

    The ``model`` and ``data`` that a hook receives are live and valid for that call only: reload
    replaces both. Keep names and numbers, never views; resolve ids in ``load``, once per model.

    Order within a step: ``pre_step`` · the engine step, in which ``control`` (``mjcb_control``) and
    ``passive`` (``mjcb_passive``) run as often as the integrator asks (RK4: four times; finite
    differences: many times) · ``last_stage`` · ``post_step`` · ``render`` when a picture is taken.
    ``pre_step`` and ``post_step`` run exactly once per step whatever the integrator. Keep
    ``control`` and ``passive`` free of counters and random numbers for that reason.

    A hook that is not overridden costs nothing. A hook that raises stops the simulation before the
    step it was part of, and the exception names the plugin. From inside a hook no operation of the
    env that steps, writes or waits is possible: ``env.call_soon`` defers it, ``env.request_pause``
    pauses.

    Configuration is typed::

        class Wind(Plugin):
            @dataclass
            class Config:
                speed: float = 0.0  # m/s

            def passive(self, model, data):
                data.qfrc_passive[:3] += self.config.speed

        env = MujocoEnv(model, plugins=[Wind(speed=3.0)])

    An instance given to an env is a template: each generation gets a fresh object of its class,
    constructed with the same arguments.

    Attributes:
        Config: a dataclass or ``msgspec.Struct``, or None for a plugin without configuration.
        stateless: True says that nothing of the past of the simulation is kept in the object; see
            ``env.checkpoint()``.
        rate_hz: None, or the rate (Hz, simulation time) at which ``pre_step`` and ``post_step`` run
            instead of with every step.
        config: an instance of ``Config``, or None without one.
        name: the unique name in its env; empty until loaded.
        streams: from ``load`` on, where it declares the streams that it publishes records to and
            the inlets by which it takes commands; see ``docs/streams.md``.
    """

    Config: ClassVar[type | None] = None
    stateless: ClassVar[bool] = False
    rate_hz: float | None = None
    name: str = ""
    config: Any = None
    streams: PluginStreams

    _mjhost_construction: tuple[tuple[Any, ...], dict[str, Any]]
    _mjhost_skip: list[bool]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Keep the arguments for the fresh objects of later generations."""
        self = super().__new__(cls)
        self._mjhost_construction = (args, kwargs)
        self._mjhost_skip = []
        return self

    def __init__(self, config: Any = None, /, **values: Any) -> None:
        """Take a configuration: an instance of ``Config``, a mapping, or its keys as keywords.

        Raises:
            PluginConfigError: an unknown or missing key or a wrong type; the message names the key,
                the expected type and the given value.
        """
        self.config = self._make_config(config, values)

    @classmethod
    def _make_config(cls, config: Any, values: dict[str, Any]) -> Any:
        where = f"plugin {cls.__qualname__}"
        if cls.Config is not None and isinstance(config, cls.Config):
            own = copy.copy(config)  # the template's stays as it is if the plugin writes to its own
            if not values:
                return own
            config = {f: getattr(own, f) for f in _field_names(own)}
        if values and isinstance(config, Mapping):
            config = {**config, **values}
        elif config is None:
            config = values
        return build_config(cls.Config, config, where)

    def skip_timing(self) -> None:
        """Keep the running call out of the statistics: it had no work to do this time."""
        self._mjhost_skip[:] = [True]

    # Life of a generation.

    def load(self, model: Any, data: Any) -> None:
        """Get ready for a model; raise to fail. No hook of a step runs before ``activate``."""

    def activate(self) -> None:
        """Everything is loaded; hooks run from now on."""

    def reset(self) -> None:
        """The state was reset."""

    def geometry_changed(self, model: Any, data: Any, geom_id: int) -> None:
        """Type, size, friction or mass of a geom was changed through the env."""

    def on_pause(self) -> None:
        """The simulation was paused."""

    def on_resume(self) -> None:
        """The simulation goes on."""

    def save_state(self) -> dict[str, Any]:
        """What the next generation of this plugin, or a checkpoint, should know.

        Values by name: None, numbers, text, bytes, NumPy arrays, and lists, tuples and dicts of
        them. For a random generator that is ``rng.bit_generator.state``.
        """
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take what ``save_state`` returned: after ``load``, or when a checkpoint is restored."""

    def close(self) -> None:
        """The generation ends; also called if ``load`` raised."""

    # Hooks of a step, in their order.

    def pre_step(self, model: Any, data: Any) -> None:
        """Before the engine step."""

    def control(self, model: Any, data: Any) -> None:
        """Inside the engine's forward pass, before actuation: write ``data.ctrl``."""

    def passive(self, model: Any, data: Any) -> None:
        """After the engine's passive forces: add to ``data.qfrc_passive``."""

    def last_stage(self, model: Any, data: Any) -> None:
        """After the engine step."""

    def post_step(self, model: Any, data: Any) -> None:
        """After ``last_stage`` of all plugins."""

    def render(self, model: Any, data: Any, scene: Any) -> None:
        """A picture is taken: add geoms to ``scene``."""


def fresh_copy(template: Plugin) -> Plugin:
    """A new object of the template's class, constructed with the template's arguments."""
    args, kwargs = template._mjhost_construction
    return type(template)(*args, **kwargs)


def keeps_state(plugin: Plugin) -> bool:
    """Whether the object has attributes of its own, so that the past may be in them.

    What a class, a module or a closure keeps cannot be seen.
    """
    if type(plugin).stateless:
        return False
    return any(name not in _GIVEN for name in vars(plugin))


_GIVEN: Final = frozenset(
    {"config", "name", "rate_hz", "streams", "_mjhost_construction", "_mjhost_skip"}
)


def _field_names(config: Any) -> tuple[str, ...]:
    if isinstance(config, msgspec.Struct):
        return config.__struct_fields__
    return tuple(config.__dataclass_fields__)
