"""SDF plugins: distances, gradients, what the compiler asks, and what may fail there."""

import math
import os

import mujoco
import numpy as np
import pytest

from mjhost import engine
from mjhost.engine import failures, frames, lives, registry
from mjhost.errors import EnginePluginError

SCENE = """
<mujoco>
  <option sdf_iterations="10" sdf_initpoints="10"/>
  <extension>
    <plugin plugin="{name}"><instance name="ball">{config}</instance></plugin>
  </extension>
  <asset><mesh name="ball"><plugin instance="ball"/></mesh></asset>
  <worldbody>
    <body pos="0 0 0.3"><freejoint/>
      <geom type="sdf" mesh="ball" mass="1"><plugin instance="ball"/></geom>
    </body>
    <geom type="box" size="1 1 0.1" pos="0 0 0.05"/>
  </worldbody>
</mujoco>
"""
BROKEN = set()


class Ball:
    radius: float = engine.attribute(0.2, minimum=0.01)
    label: str = "ball"

    def sdf_static_distance(self, point):
        if "static" in BROKEN:
            raise ValueError("static is broken")
        return math.hypot(*point.tolist()) - self.radius

    def sdf_aabb(self):
        if "aabb" in BROKEN:
            raise ValueError("aabb is broken")
        return 0, 0, 0, self.radius, self.radius, self.radius


class Explicit(Ball):
    """The same with everything written out."""

    def sdf_distance(self, point, data, instance):
        if "distance" in BROKEN:
            raise ValueError("distance is broken")
        return self.sdf_static_distance(point)

    def sdf_gradient(self, point, data, instance):
        if "gradient" in BROKEN:
            raise ValueError("gradient is broken")
        return point / np.linalg.norm(point)

    def compute(self, model, data, instance, capability):
        assert capability == 8


def compiled(name, **config):
    keys = "".join(f'<config key="{key}" value="{value}"/>' for key, value in config.items())
    return mujoco.MjModel.from_xml_string(SCENE.format(name=name, config=keys))


@pytest.fixture(scope="module", params=["framed", "bare"])
def model(request):
    """The compiler asks a million distances, so that one model has to do for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "bare":
            patch.setattr(frames, "available", lambda: False)
        elif not frames.available():
            pytest.skip("the extra fast is not installed")
        name = f"test.sdf.{os.getpid()}.{request.param}"
        engine.plugin(name, ("sdf",))(Explicit)
        return compiled(name, radius="0.15")


@pytest.fixture
def broken():
    BROKEN.clear()
    yield BROKEN
    BROKEN.clear()
    while failures.take_any():
        pass


@pytest.mark.slow
def test_a_ball_falls_onto_a_box_and_stays(model, broken):
    data = mujoco.MjData(model)
    for _ in range(150):
        mujoco.mj_step(model, data)
    assert data.qpos[2] == pytest.approx(0.3, abs=0.02)
    assert data.ncon > 0


@pytest.mark.slow
def test_the_box_and_the_mesh_come_from_the_attributes(model):
    assert model.geom_type[model.body_geomadr[1]] == mujoco.mjtGeom.mjGEOM_SDF
    assert model.geom_aabb[model.body_geomadr[1]][3:] == pytest.approx([0.15] * 3, abs=0.01)
    assert np.linalg.norm(model.mesh_vert, axis=1).mean() == pytest.approx(0.15, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["distance", "gradient"])
def test_a_failure_in_a_collision_is_the_steps(model, broken, method):
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    broken.add(method)
    with pytest.raises(EnginePluginError, match=f"{method} is broken"):
        mujoco.mj_step(model, data)
        engine.check(data)
    broken.clear()
    mujoco.mj_step(model, data)


@pytest.mark.slow
def test_data_without_a_record_get_one_in_the_collision(model, broken):
    data = mujoco.MjData(model)
    lives.forget(data._address)
    mujoco.mj_step(model, data)
    engine.check(data)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["framed"], indirect=True)
@pytest.mark.parametrize("method", ["static", "aabb"])
def test_a_failure_while_compiling_is_the_compilers_error(name, broken, way, method):
    engine.plugin(name, ("sdf",))(Ball)
    broken.add(method)
    with pytest.raises(ValueError, match=f"(?s){name}.*{method} is broken"):
        compiled(name)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["bare"], indirect=True)
def test_a_wrong_attribute_is_the_compilers_error(name, broken, way):
    engine.plugin(name, ("sdf",))(Ball)
    with pytest.raises(ValueError, match='(?s)radius="-1" is too small'):
        compiled(name, radius="-1")


def test_defaults_follow_from_the_static_distance(name):
    engine.plugin(name, ("sdf",))(type("Ball", (Ball,), {}))
    declaration = registry.plugin(name).declaration
    from mjhost.engine.instances import class_of_self, object_of

    self = object_of(declaration, class_of_self(declaration), lambda _: "")
    point = np.array([0.3, 0.4, 0.0])
    assert self.sdf_distance(point, None, 0) == pytest.approx(0.3)
    assert self.sdf_gradient(point, None, 0) == pytest.approx([0.6, 0.8, 0.0], abs=1e-6)
    assert point.tolist() == [0.3, 0.4, 0.0]


@pytest.mark.parametrize(
    "box",
    [
        (0, 0, 0, math.nan, 1, 1),
        (0, 0, 0, 0, 0, 0),
        (0, 0, 0, 1, 1, 0),
        (0, 0, 0, math.inf, 1, 1),
        (math.nan, 0, 0, 1, 1, 1),
        (0, 0, 0, -1, -1, -1),
    ],
)
def test_a_box_that_is_none_is_refused(name, box):
    @engine.plugin(name, capabilities=("sdf",))
    class Boxed:
        def sdf_static_distance(self, point):
            return math.hypot(*point.tolist()) - 0.1

        def sdf_aabb(self):
            return box

    with pytest.raises(ValueError, match="a box is finite and its half sizes are positive"):
        mujoco.MjModel.from_xml_string(SCENE.format(name=name, config=""))
