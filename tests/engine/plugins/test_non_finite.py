"""Distances and gradients that are no numbers are refused, by Python and by machine code."""

import math
import os

import mujoco
import pytest

from mjhost import engine
from mjhost.engine import compile_thunks
from mjhost.errors import EnginePluginError

pytestmark = pytest.mark.slow

SCENE = """
<mujoco>
  <extension><plugin plugin="{name}"><instance name="one"/></plugin></extension>
  <asset><mesh name="ball"><plugin instance="one"/></mesh></asset>
  <worldbody>
    <geom type="sdf" mesh="ball"><plugin instance="one"/></geom>
    <body pos="0 0 .25"><freejoint/><geom size=".1"/></body>
  </worldbody>
</mujoco>
"""


def ball(name, compiled, distance=0.0, gradient=0.0):
    """A ball that adds ``distance`` and ``gradient`` to what is right."""

    class Ball:
        def sdf_static_distance(self, point):
            return math.sqrt(point[0] ** 2 + point[1] ** 2 + point[2] ** 2) - 0.2

        def sdf_aabb(self):
            return (0, 0, 0, 0.2, 0.2, 0.2)

        def sdf_distance(self, point, data, instance):
            return self.sdf_static_distance(point) + distance

        def sdf_gradient(self, point, data, instance):
            return (0.0, 0.0, 1.0 + gradient)

    engine.plugin(name, ("sdf",), compiled=compiled)(Ball)


@pytest.fixture(scope="module", params=[False, True], ids=["python", "compiled"])
def balls(request):
    """Name, way and model of a ball that is right: one mesh, a million distances, for all tests."""
    if request.param:
        pytest.importorskip("numba")
    name = f"test.finite.{os.getpid()}.{request.param}"
    ball(name, request.param)
    return name, request.param, mujoco.MjModel.from_xml_string(SCENE.format(name=name))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("what", ["distance", "gradient"])
def test_what_is_not_finite_is_a_failure_of_the_step(balls, what, value):
    name, compiled, model = balls
    ball(name, compiled)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data)
    assert data.ncon > 0
    ball(name, compiled, **{what: value})
    before = data.qpos.tobytes()
    with pytest.raises(EnginePluginError, match=rf"{what}.* finite.*{value}"):
        mujoco.mj_step(model, data)
    assert data.qpos.tobytes() == before


@pytest.mark.parametrize("way", ["framed"], indirect=True)
@pytest.mark.parametrize("compiled", [False, True], ids=["python", "compiled"])
def test_a_static_distance_that_is_not_finite_fails_the_compilation(name, way, compiled):
    class Odd:
        def sdf_static_distance(self, point):
            return math.nan

        def sdf_aabb(self):
            return (0, 0, 0, 0.2, 0.2, 0.2)

    engine.plugin(name, ("sdf",), compiled=compiled)(Odd)
    with pytest.raises(ValueError, match="a distance is a finite number, got nan"):
        mujoco.MjModel.from_xml_string(SCENE.format(name=name))


@pytest.mark.parametrize("value", ["1", None, True, 1j, (1.0,)])
def test_a_distance_that_is_no_number_is_refused(value):
    with pytest.raises(TypeError, match="a distance is a finite number"):
        compile_thunks._finite(value)
