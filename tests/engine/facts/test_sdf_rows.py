"""Signed distance fields: what the compiler and the collider ask a plugin of that kind."""

from __future__ import annotations

import ctypes
import math

import mujoco
import pytest

from tests.engine.facts.kit import SDF, RawPlugin, compiled, run_script

CUBE = " ".join(f"{x} {y} {z}" for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1))
# The field is a sphere of 0.15; the mesh that is drawn, a cube of 0.1.
DRAWN = f'<mesh name="m" vertex="{CUBE}"/>'
BY_FIELD = '<mesh name="m"><plugin instance="one"/></mesh>'
SCENE = """
<mujoco>
  <option gravity="0 0 0" sdf_initpoints="{points}"/>
  <extension><plugin plugin="{name}"><instance name="one"/></plugin></extension>
  <asset>{mesh}</asset>
  <worldbody>
    {other}
    <body pos="0 0 {height}"><freejoint/>
      <geom type="sdf" mesh="m"><plugin instance="one"/></geom></body>
  </worldbody>
</mujoco>
"""
PLANE = '<geom type="plane" size="1 1 1"/>'
BALL = '<geom type="sphere" size=".1" pos="0 0 -.1"/>'
TWIN = '<geom type="sdf" mesh="m"><plugin instance="one"/></geom>'
RADIUS = 0.15
SIGSEGV = -11

_vectors = {}


def distance(point, *_):
    vector = _vectors.get(point)
    if vector is None:
        vector = _vectors[point] = (ctypes.c_double * 3).from_address(point)
    return math.hypot(*vector) - RADIUS


def gradient(result, point, _data, _instance):
    values = (ctypes.c_double * 3).from_address(point)
    length = math.hypot(*values) or 1.0
    (ctypes.c_double * 3).from_address(result)[:] = [value / length for value in values]


def bounds(box, _attributes):
    (ctypes.c_double * 6).from_address(box)[:] = 0, 0, 0, RADIUS, RADIUS, RADIUS


class Ball(RawPlugin):
    """The field of a ball; calls of the static distance are counted, not logged."""

    def __init__(self, *without):
        functions = {
            "sdf_distance": distance,
            "sdf_gradient": gradient,
            "sdf_staticdistance": distance,
            "sdf_attribute": lambda *_: None,
            "sdf_aabb": bounds,
        }
        self.static_calls = self.static_calls_at_init = 0
        super().__init__(SDF, init=self._init, **functions | dict.fromkeys(without))

    def _init(self, *_):
        self.static_calls_at_init = self.static_calls_at_init or self.static_calls
        return 0

    def _logged(self, slot):
        if slot != "sdf_staticdistance":
            return super()._logged(slot)

        def static(point, _attributes):
            self.static_calls += 1
            return distance(point)

        return static


def scene(field, other, *, mesh=DRAWN, height=0.12, points=40):
    xml = SCENE.format(name=field.name, other=other, mesh=mesh, height=height, points=points)
    model, data = compiled(xml)
    field.log.clear()
    return model, data


@pytest.mark.slow
def test_the_mesh_of_a_field_is_made_of_a_million_points_before_there_are_data():
    field = Ball()
    xml = SCENE.format(name=field.name, other="", mesh=BY_FIELD, height=1, points=40)
    model = mujoco.MjModel.from_xml_string(xml)
    assert field.static_calls == field.static_calls_at_init == 101**3
    before = field.calls[: field.calls.index("init")]
    assert {*before} == {"nstate", "sdf_attribute", "sdf_aabb"}
    assert model.mesh_vert.max() == pytest.approx(RADIUS, rel=0.05)


def test_a_plane_meets_the_mesh_and_never_asks_the_field():
    field = Ball()
    model, data = scene(field, PLANE, height=0.12)
    mujoco.mj_forward(model, data)
    assert (data.ncon, field.count("sdf_distance")) == (0, 0)  # the field would reach the plane
    data.qpos[2] = 0.09
    mujoco.mj_forward(model, data)
    assert field.count("sdf_distance") == 0
    assert min(data.contact.dist) == pytest.approx(-0.01)


def test_the_box_of_the_mesh_decides_whether_a_field_is_asked():
    field = Ball()
    far = math.sqrt(3) * 0.1 + 0.005  # beyond the mesh's bounding sphere, inside the field
    model, data = scene(field, BALL.replace("-.1", "0"), height=0.1 + far)
    mujoco.mj_forward(model, data)
    assert (data.ncon, field.count("sdf_distance")) == (0, 0)
    data.qpos[2] = 0.19
    mujoco.mj_forward(model, data)
    assert field.count("sdf_distance") > 0
    assert data.ncon > 0


@pytest.mark.slow
def test_more_starting_points_find_more_contacts():
    field = Ball()
    found = []
    for points in (0, 1, 40, 300):
        model, data = scene(field, TWIN, height=0.15, points=points)
        mujoco.mj_forward(model, data)
        found.append((data.ncon, field.count("sdf_distance")))
    assert [asked for _, asked in found] == sorted({asked for _, asked in found})
    assert found[0][0] <= found[1][0] < found[2][0] <= found[3][0]


def test_collisions_of_fields_reset_the_plugin_without_a_state():
    field = Ball()
    model, data = scene(field, TWIN, height=0.15)
    field.log.clear()
    mujoco.mj_forward(model, data)
    states = {entry[2] for entry in field.log if entry[0] == "reset"}
    assert states == {0}


SCRIPT = """
import sys
from tests.engine.facts import test_sdf_rows as rows
field = rows.Ball(*sys.argv[2:])
model, data = rows.scene(field, rows.TWIN, mesh=getattr(rows, sys.argv[1]), height=0.15)
print("compiled", flush=True)
rows.mujoco.mj_forward(model, data)
print("done", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "reached", "status"),
    [
        (["DRAWN"], "compiled done", 0),
        (["DRAWN", "reset"], "compiled", SIGSEGV),
        (["BY_FIELD", "sdf_staticdistance"], "", SIGSEGV),
    ],
    ids=["whole", "reset is null", "the static distance is null"],
)
def test_null_functions_of_a_field_crash_the_compiler_or_the_collision(
    tmp_path, arguments, reached, status
):
    ended = run_script(SCRIPT, *arguments, folder=tmp_path)
    assert (" ".join(ended.stdout.split()), ended.returncode) == (reached, status), ended.stderr
