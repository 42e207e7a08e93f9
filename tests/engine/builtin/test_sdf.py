"""``mjhost.sdf.*``: distances, gradients, and contacts that both paths find at the same bits."""

import importlib.util
import itertools
import math
import os

import mujoco
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mjhost.engine.builtin import choice, sdf
from mjhost.errors import EngineDeclarationError, EngineNameTakenError

SHAPES = {
    "sphere": (sdf.Sphere, {"radius": 0.2}),
    "torus": (sdf.Torus, {"radius1": 0.2, "radius2": 0.05}),
    "gyroid": (sdf.Gyroid, {"radius": 0.3, "period": 0.2, "thickness": 0.03}),
}
SERIAL = itertools.count()
HAS_NUMBA = importlib.util.find_spec("numba") is not None


def shape(name):
    """A shape without an engine, as far as its methods need one."""
    cls, attributes = SHAPES[name]
    made = cls()
    vars(made).update(attributes)
    return made


points = st.tuples(*[st.floats(-0.4, 0.4)] * 3).map(np.array)


@pytest.mark.parametrize("name", SHAPES)
@settings(deadline=None, max_examples=60)
@given(first=points, second=points)
def test_distance_changes_no_faster_than_the_point_moves(name, first, second):
    distance = shape(name).sdf_static_distance
    assert abs(distance(first) - distance(second)) <= math.dist(first, second) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("name", SHAPES)
@settings(deadline=None, max_examples=60)
@given(point=points)
@example(point=np.array((0.0, 1e-160, 0.0)))
def test_gradient_is_that_of_the_distance(name, point):
    it = shape(name)
    gradient = it.sdf_gradient(point, None, 0)
    assert np.linalg.norm(gradient) <= 1 + 1e-9
    step = 1e-6
    for axis in range(3):
        ahead, behind = point.copy(), point.copy()
        ahead[axis] += step
        behind[axis] -= step
        here, before = it.sdf_static_distance(point), it.sdf_static_distance(behind)
        after = it.sdf_static_distance(ahead)
        forward, backward = (after - here) / step, (here - before) / step
        # Across a crease the two sides differ, and the gradient is that of one of them.
        low, high = min(forward, backward) - 1e-3, max(forward, backward) + 1e-3
        assert low <= gradient[axis] <= high


@pytest.mark.parametrize("name", ["sphere", "torus"])
def test_gradient_exists_where_the_distance_has_a_crease(name):
    gradient = shape(name).sdf_gradient(np.zeros(3), None, 0)
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("name", SHAPES)
@settings(deadline=None, max_examples=60)
@given(point=points)
def test_box_holds_the_shape(name, point):
    it = shape(name)
    centre, half = np.array(it.sdf_aabb()).reshape(2, 3)
    if it.sdf_static_distance(point) < 0:
        assert (np.abs(point - centre) <= half + 1e-12).all()


MODEL = """
<mujoco>
  <option timestep=".004" sdf_initpoints="10" sdf_iterations="10"/>
  <extension><plugin plugin="{plugin}"><instance name="it">{config}</instance></plugin></extension>
  <asset><mesh name="it"><plugin instance="it"/></mesh></asset>
  <worldbody>
    <geom type="sphere" size=".15"/> <geom type="sphere" size=".15" pos=".2 .1 -.02"/>
    <body pos=".03 .02 .4" euler="10 20 30"><freejoint/>
      <geom type="sdf" mesh="it" density="500"><plugin instance="it"/></geom>
    </body>
  </worldbody>
</mujoco>
"""


def compiled_model(plugin, attributes):
    config = "".join(f'<config key="{key}" value="{value}"/>' for key, value in attributes.items())
    return mujoco.MjModel.from_xml_string(MODEL.format(plugin=plugin, config=config))


def fall(model, steps=60):
    """Positions of a shape that falls on two balls, and how often they touched."""
    data = mujoco.MjData(model)
    rows, contacts = [], 0
    for _ in range(steps):
        mujoco.mj_step(model, data)
        rows.append(np.concatenate((data.qpos, data.qvel)))
        contacts += data.ncon
    return np.array(rows), contacts


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_both_paths_find_the_same_contacts_to_the_bit(name, on_both_paths):
    choice.use(compiled=True)  # the mesh takes Python seconds
    model = compiled_model(f"mjhost.sdf.{name}", SHAPES[name][1])
    (python, contacts), (compiled, _) = on_both_paths(fall, model)
    assert contacts > 0
    assert python.tobytes() == compiled.tobytes()


@pytest.mark.slow
def test_torus_falls_as_the_native_one(path):
    attributes = SHAPES["torus"][1]
    mine, native = (compiled_model(f"{who}.sdf.torus", attributes) for who in ("mjhost", "mujoco"))
    assert mine.mesh_vert.tobytes() == native.mesh_vert.tobytes(), path
    positions, contacts = fall(mine)
    assert contacts > 0, path
    assert np.abs(positions - fall(native)[0]).max() < 1e-9, path


def ball(x, y, z):
    return math.sqrt(x * x + y * y + z * z) - 0.2


def slab(x, y, z):
    return max(abs(x) - 0.2, abs(y) - 0.2, abs(z) - 0.2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "volume"), [(ball, 4 / 3 * math.pi * 0.2**3), (slab, 0.4**3)], ids=["ball", "slab"]
)
def test_function_is_a_closed_body_that_collides(function, volume):
    name = f"test.sdf.{os.getpid()}.{next(SERIAL)}"
    sdf.function(name, function, box=(0.2, 0.2, 0.2), compiled=HAS_NUMBA)
    xml = MODEL.format(plugin=name, config="").replace("<mesh", '<mesh inertia="exact"')
    model = mujoco.MjModel.from_xml_string(xml)
    assert model.body_mass[1] == pytest.approx(500 * volume, rel=2e-3)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 40)
    assert data.ncon > 0
    assert np.linalg.norm(data.qpos[:3]) > 0.3  # not in the balls of 0.15 below


def test_function_may_be_given_again_and_another_may_not():
    name = f"test.sdf.{os.getpid()}.{next(SERIAL)}"
    sdf.function(name, ball, box=(0.2, 0.2, 0.2), compiled=False)
    sdf.function(name, ball, box=(0.2, 0.2, 0.2), compiled=False)

    def other(x, y, z):
        return x + y + z

    with pytest.raises(EngineNameTakenError, match="function ball.*test_sdf.py"):
        sdf.function(name, other, box=(0.2, 0.2, 0.2), compiled=False)


@pytest.mark.parametrize(
    ("function", "box", "complaint"),
    [
        ("x*x + y*y", (1, 1, 1), "plain function or lambda of x, y, z"),
        (math.hypot, (1, 1, 1), "plain function or lambda of x, y, z"),
        (lambda x, y: x + y, (1, 1, 1), r"x, y, z, which .*lambda.*\(x, y\) does not take"),
        (ball, (1, 1), "3 half sizes above 0"),
        (ball, (1, 0, 1), "3 half sizes above 0"),
        (ball, (1, math.nan, 1), "3 half sizes above 0"),
    ],
)
def test_what_is_no_shape_is_refused(function, box, complaint):
    name = f"test.sdf.{os.getpid()}.{next(SERIAL)}"
    with pytest.raises(EngineDeclarationError, match=complaint):
        sdf.function(name, function, box=box)


@pytest.mark.slow
def test_wrong_attribute_fails_the_compilation():
    with pytest.raises(ValueError, match='="-1" is too small; expected a number of at least 1e-06'):
        compiled_model("mjhost.sdf.torus", {"radius1": -1})
