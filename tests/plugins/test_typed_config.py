from __future__ import annotations

import dataclasses
import enum
import math
import pickle
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mjhost.errors import InvalidArgumentError, PluginConfigError, PluginLoadError
from mjhost.plugins import Plugin
from mjhost.plugins.typed_config import build_config


class Mode(enum.Enum):
    SOFT = "soft"
    HARD = "hard"


@dataclasses.dataclass
class Gains:
    kp: float
    kd: float = 0.0


@dataclasses.dataclass
class Config:
    speed: float
    count: int = 1
    on: bool = True
    joints: list[str] = dataclasses.field(default_factory=list)
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    mode: Mode = Mode.SOFT
    side: Literal["left", "right"] = "left"
    file: Path | None = None
    folder: Path = Path()
    gains: Gains | None = None
    nested: Gains = dataclasses.field(default_factory=lambda: Gains(1.0))
    table: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(2))
    bounded: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5
    anything: Any = None


class StructConfig(msgspec.Struct):
    speed: float
    label: str = ""


def build(**values):
    return build_config(Config, values, "plugin 'x'")


def problems(config_type=Config, **values):
    with pytest.raises(PluginConfigError) as caught:
        build_config(config_type, values, "plugin 'x'")
    assert str(caught.value).startswith("plugin 'x': ")
    return caught.value.problems


def test_every_declared_kind_is_built():
    config = build(
        speed=2,
        joints=["a"],
        axis=[1, 0, 0],
        mode="hard",
        side="right",
        folder="models",
        gains={"kp": 3},
        nested={"kp": 1, "kd": 2},
        table=[1, 2, 3],
        bounded=1,
        anything={"free": [1]},
    )
    assert config.speed == 2.0
    assert type(config.speed) is float
    assert config.axis == (1.0, 0.0, 0.0)
    assert config.mode is Mode.HARD
    assert config.folder == Path("models")
    assert config.gains == Gains(3.0)
    assert config.nested == Gains(1.0, 2.0)
    np.testing.assert_array_equal(config.table, [1.0, 2.0, 3.0])
    assert config.anything == {"free": [1]}


def test_numbers_of_numpy_are_numbers():
    config = build(speed=np.float32(0.5), count=np.int64(3), axis=np.ones(3))
    assert (config.speed, config.count, config.axis) == (0.5, 3, (1.0, 1.0, 1.0))


def test_objects_of_the_right_type_are_taken_as_they_are():
    gains = Gains(1.0)
    config = build(speed=1.0, mode=Mode.HARD, nested=gains, folder=Path("a"))
    assert config.nested is gains
    assert config.mode is Mode.HARD


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"speed": "fast"}, r"key 'speed': expected float, got str 'fast'"),
        ({"speed": True}, r"key 'speed': expected float, got bool True"),
        ({"speed": None}, r"key 'speed': expected float, got NoneType None"),
        ({"speed": "1e-3"}, r"YAML wants 1.0e-3"),
        ({"speed": 1.0, "count": 1.5}, r"key 'count': expected int, got float 1.5"),
        ({"speed": 1.0, "on": 1}, r"key 'on': expected bool, got int 1"),
        ({"speed": 1.0, "axis": [1, 2]}, r"key 'axis': expected tuple\[float, float, float\]"),
        ({"speed": 1.0, "joints": "a"}, r"key 'joints': expected list\[str\], got str 'a'"),
        ({"speed": 1.0, "mode": "mild"}, r"key 'mode': expected Mode, got str 'mild'"),
        ({"speed": 1.0, "side": "up"}, r"key 'side': expected Literal"),
        ({"speed": 1.0, "folder": 3}, r"key 'folder': expected Path, got int 3"),
        ({"speed": 1.0, "bounded": 2}, r"key 'bounded'.*<= 1"),
        ({"speed": 1.0, "nested": {"kp": "x"}}, r"key 'nested.kp': expected float, got str 'x'"),
        (
            {"speed": 1.0, "nested": {"kp": 1, "ki": 1}},
            r"unknown key 'nested.ki'; known: 'kd', 'kp'",
        ),
        ({"speed": 1.0, "nested": {}}, r"key 'nested.kp' is missing, expected float"),
        ({"speed": 1.0, "table": "x"}, r"key 'table': expected ndarray, got str 'x'"),
        ({"speed": 1.0, "sped": 2}, r"unknown key 'sped'; did you mean 'speed'"),
        ({}, r"key 'speed' is missing, expected float"),
    ],
)
def test_a_wrong_value_names_key_expected_type_and_given_value(values, told):
    (problem,) = problems(**values)
    with pytest.raises(AssertionError, match=told):
        raise AssertionError(problem)


def test_all_problems_are_told_at_once():
    assert len(problems(sped=1, count="x", on="y")) == 4


def test_structs_work_like_dataclasses():
    assert build_config(StructConfig, {"speed": 1}, "p") == StructConfig(1.0)
    assert "unknown key 'spee'" in problems(StructConfig, speed=1, spee=2)[0]
    assert "is missing" in problems(StructConfig)[0]


def test_a_plugin_without_config_takes_none():
    assert build_config(None, {}, "p") is None
    with pytest.raises(PluginConfigError, match="takes no config, got 'speed'"):
        build_config(None, {"speed": 1}, "p")


def test_a_config_that_is_no_mapping_is_refused():
    with pytest.raises(PluginConfigError, match="must be a mapping"):
        build_config(Config, [1], "p")


def test_a_config_class_that_declares_nothing_is_an_authors_error():
    with pytest.raises(InvalidArgumentError, match="must be a dataclass"):
        build_config(int, {}, "p")


def test_a_refusing_post_init_is_a_config_error_with_its_cause():
    @dataclasses.dataclass
    class Picky:
        a: int = 0

        def __post_init__(self):
            raise ValueError("a must be odd")

    with pytest.raises(PluginConfigError, match="a must be odd") as caught:
        build_config(Picky, {"a": 2}, "p")
    assert isinstance(caught.value.__cause__, ValueError)


def test_an_annotation_that_cannot_be_resolved_is_told():
    @dataclasses.dataclass
    class Odd:
        a: NoSuchType = 0  # noqa: F821

    with pytest.raises(PluginConfigError, match="NoSuchType"):
        build_config(Odd, {}, "p")


def test_a_config_error_is_a_load_error_a_value_error_and_survives_pickle():
    error = PluginConfigError("p", ["a", "b"])
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(again, PluginLoadError)
    assert isinstance(again, ValueError)
    assert (str(again), again.problems) == ("p: a; b", ("a", "b"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(deadline=None, max_examples=60)
@given(st.dictionaries(st.sampled_from([f.name for f in dataclasses.fields(Config)]), JSON))
def test_any_mapping_either_builds_the_declared_types_or_is_a_config_error(values):
    try:
        config = build(**values)
    except PluginConfigError:
        return
    assert type(config.speed) is float
    assert type(config.count) is int
    assert type(config.on) is bool
    assert isinstance(config.mode, Mode)


@settings(deadline=None, max_examples=50)
@given(st.integers(min_value=-(2**62), max_value=2**62))
def test_an_int_is_fine_where_a_float_is_meant(number):
    config = build(speed=number)
    assert type(config.speed) is float
    assert math.isclose(config.speed, number)


# The same through a plugin's constructor.


class Wind(Plugin):
    Config = Config


def test_a_plugin_takes_keywords_a_mapping_or_its_config():
    for plugin in (
        Wind(speed=3),
        Wind({"speed": 3}),
        Wind(Config(3.0)),
        Wind({"count": 2}, speed=3),
    ):
        assert type(plugin.config) is Config
        assert plugin.config.speed == 3.0


def test_keywords_replace_values_of_a_given_config():
    given_config = Config(3.0, count=7)
    plugin = Wind(given_config, speed=4)
    assert (plugin.config.speed, plugin.config.count) == (4.0, 7)
    assert given_config.speed == 3.0


def test_a_plugins_config_is_its_own():
    given_config = Config(3.0)
    plugin = Wind(given_config)
    plugin.config.speed = 9.0
    assert given_config.speed == 3.0


@pytest.mark.parametrize("config", [5, "speed", [1]])
def test_a_plugin_refuses_what_is_no_config(config):
    with pytest.raises(PluginConfigError):
        Wind(config)


def test_a_plugin_names_itself_in_config_errors():
    with pytest.raises(PluginConfigError, match="plugin Wind: unknown key 'sped'"):
        Wind(sped=1, speed=1)
