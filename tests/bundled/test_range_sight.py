"""What range finders see and where from: mounts, trees, transparency, materials, all shapes."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest

from mjhost import MujocoEnv
from mjhost.bundled.frames import Frame, Mount
from mjhost.bundled.laser import Laser
from mjhost.bundled.lidar import Lidar
from mjhost.bundled.rays import RayFan
from mjhost.state.names import ObjectKind

SOUTH_EAST_NORTH = {"angle_min": -math.pi / 2, "angle_max": math.pi / 2, "angle_step": math.pi / 2}
ROBOT = """
<mujoco>
  <option timestep="0.01" gravity="0 0 0"/>
  <asset>
    <material name="glass" rgba="1 1 1 .2" reflectance=".1"/>
    <material name="steel" reflectance=".75"/>
    <material name="air" rgba="1 1 1 0"/>
  </asset>
  <worldbody>
    <geom name="wall" type="box" pos="6 0 0" size="1 9 9" material="steel"/>
    <geom name="window" type="box" pos="4 0 0" size=".1 .5 .5" material="glass"/>
    <geom name="air" type="box" pos="3 0 0" size=".1 .5 .5" material="air"/>
    <geom name="veil" type="box" pos="0 5 0" size="1 1 1" rgba="1 1 1 .5"/>
    <body name="base" pos="0 0 -.5"><freejoint/>
      <geom name="plate" size=".1" mass="1"/>
      <body name="head" pos="0 0 .5"><joint axis="0 0 1"/>
        <geom name="shell" size=".2" mass="1"/>
        <site name="scanner"/>
        <body name="guard" pos="1 0 0"><geom type="box" size=".1 .1 .1" mass="1"/></body>
        <body name="ears" pos="0 -1 0">
          <geom size=".1" mass="1"/><geom size=".1" pos="0 0 1" mass="1"/>
          <geom size=".1" pos="0 0 2" mass="1"/><geom size=".1" pos="0 0 3" mass="1"/>
          <geom size=".1" pos="0 0 4" mass="1"/><geom size=".1" pos="0 0 5" mass="1"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def told(plugin, model=ROBOT, scans=1):
    """The last records of all streams of a scanner, by the name of the stream."""
    with MujocoEnv(model, plugins=[plugin]) as env:
        assert env.plugin_load_report.ok, env.plugin_load_report.failures
        with env.streams.subscribe() as samples:
            env.advance(scans / plugin.config.rate)
            return {sample.stream: sample.record for sample in samples.drain()}


def scan(model=ROBOT, **settings):
    given = {"frame": "scanner", "rate": 100, **SOUTH_EAST_NORTH, **settings}
    return told(Laser(**given, stream="scan"), model)["scan"]


def reason(**settings):
    """Why a laser with these settings is not loaded."""
    with MujocoEnv(ROBOT, plugins=[Laser(**settings)]) as env:
        return env.plugin_load_report.failures[0].error


# -- what is seen --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [0.9, 0.9, 4.0]),
        ({"own_tree": False}, [math.inf, 3.9, 4.0]),
        ({"own_tree": False, "own_body": True}, [0.2, 0.2, 0.2]),
        ({"own_tree": False, "alpha_min": 0.2}, [math.inf, 3.9, 4.0]),
        ({"own_tree": False, "alpha_min": 0.3}, [math.inf, 5.0, 4.0]),
        ({"own_tree": False, "alpha_min": 0.51}, [math.inf, 5.0, math.inf]),
        ({"frame": "world", "alpha_min": 1.0, "own_tree": False}, [0.2, 0.2, 0.2]),
    ],
)
def test_own_bodies_and_transparency_are_seen_as_asked(settings, expected):
    np.testing.assert_allclose(scan(**settings).ranges, expected, rtol=1e-6)


def test_what_is_hidden_stays_hidden_scan_after_scan_and_in_sleep():
    sleepy = ROBOT.replace('gravity="0 0 0"/>', 'gravity="0 0 0"><flag sleep="enable"/></option>')
    finder = Laser(frame="scanner", rate=100, own_tree=False, **SOUTH_EAST_NORTH)
    for model in (ROBOT, sleepy):
        last = told(finder, model, scans=100)["Laser"]
        np.testing.assert_allclose(last.ranges, [math.inf, 3.9, 4.0], rtol=1e-6)


SHAPES = """
<mujoco>
  <option timestep="0.01"/>
  <asset>
    <mesh name="pyramid" vertex="-1 -1 0 1 -1 0 1 1 0 -1 1 0 0 0 2"/>
    <hfield name="hills" nrow="3" ncol="3" size="1 1 .5 .1" elevation="0 0 0 0 1 0 0 0 0"/>
  </asset>
  <worldbody>
    <site name="scanner" pos="0 0 5"/>
    {geom}
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize(
    ("geom", "expected"),
    [
        ('<geom type="mesh" mesh="pyramid"/>', 3.0),
        ('<geom type="hfield" hfield="hills"/>', 4.5),
        ('<geom type="plane" size="1 1 1"/>', 5.0),
        ('<geom type="plane" size="1 1 1" pos="2 0 0"/>', math.inf),
        ('<geom type="ellipsoid" size="1 1 .25"/>', 4.75),
        ('<geom type="capsule" size=".5 1"/>', 3.5),
        ('<geom type="cylinder" size=".5 1"/>', 4.0),
    ],
)
def test_every_shape_of_the_engine_is_met(geom, expected):
    xml = SHAPES.format(geom=geom)
    down = {"orientation": [1.0, 0.0, 1.0, 0.0], "angle_max": 0.0, "angle_min": 0.0, "beams": 1}
    given = {"frame": "scanner", "rate": 100, **down}
    (found,) = told(Laser(**given, stream="scan"), xml)["scan"].ranges
    assert found == pytest.approx(expected, rel=1e-6)


CLOTH = """
<mujoco><option timestep="0.01" gravity="0 0 0"/>
  <asset><material name="silk" reflectance=".5"/></asset>
  <worldbody>
    <site name="scanner"/>
    <flexcomp name="cloth" type="grid" dim="{dim}" count="4 4 {deep}" spacing=".5 .5 .5"
              pos="3 .1 .1" euler="0 90 0" radius=".01" mass="1" material="silk" group="2">
      <edge equality="true"/><contact selfcollide="none"/></flexcomp>
    <geom type="sphere" pos="6 0 0" size=".5"/>
  </worldbody></mujoco>
"""
AHEAD = {"angle_min": 0.0, "angle_max": 0.0, "angle_step": None, "beams": 1}


@pytest.mark.parametrize("dim", [2, 3])
def test_what_bends_is_seen_like_what_is_stiff(dim):
    cloth = CLOTH.format(dim=dim, deep=1 if dim == 2 else 3)
    front = 3.0 if dim == 2 else 2.5
    record = scan(cloth, **AHEAD, intensity="material")
    assert record.ranges[0] == pytest.approx(front, abs=0.011)  # its radius
    assert record.intensities[0] == pytest.approx(0.5)
    assert scan(cloth, **AHEAD, groups=[0, 2]).ranges[0] == record.ranges[0]
    for behind in ({"flexes": False}, {"groups": [0]}, {"range_max": 6.0, "groups": [0]}):
        assert scan(cloth, **AHEAD, **behind).ranges[0] == pytest.approx(5.5)
    clear = cloth.replace('name="silk"', 'name="silk" rgba="1 1 1 .4"')
    assert scan(clear, **AHEAD).ranges[0] == record.ranges[0]
    assert scan(clear, **AHEAD, alpha_min=0.5).ranges[0] == pytest.approx(5.5)


def test_rays_that_pass_by_a_flex_are_not_asked_of_it_and_no_other_is_missed():
    model = mujoco.MjModel.from_xml_string(CLOTH.format(dim=2, deep=1))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    finder = Lidar(frame="scanner", rings=9, columns=120)
    way = finder.directions()
    fan = RayFan(model, Mount(Frame("scanner", ObjectKind.SITE, 0)), way, finder.config)
    found = fan.cast(data)
    geom, shape = np.zeros(1, np.int32), (False, False, True, False)
    hits = 0
    for ray, distance in enumerate(found):
        stiff = mujoco.mj_ray(model, data, np.zeros(3), way[ray], None, 1, -1, geom)
        bent = mujoco.mj_rayFlex(model, data, 0, *shape, 0, np.zeros(3), way[ray])
        hits += bent >= 0
        met = [d for d in (stiff, bent) if d >= 0]
        assert distance == pytest.approx(min(met, default=math.inf))
    assert hits > 20


# -- where from ----------------------------------------------------------------------------------


def test_a_displaced_scanner_sees_from_its_own_pose_and_tells_it():
    left = [2.0, 0.0, 0.0, 2.0]  # a quarter turn about z, of any length
    settings = {
        "position": [0.0, 1.0, 0.0],
        "orientation": left,
        "beams": 1,
        "stream": "front/scan",
    }
    finder = Laser(frame="scanner", rate=100, angle_min=0.0, angle_max=0.0, **settings)
    records = told(finder)
    assert records["front/scan"].frame == "front_scan_frame"
    assert records["front/scan"].ranges[0] == pytest.approx(3.0)
    mount = records["front/scan/tf_static"]
    assert (mount.parents, mount.children) == (("scanner",), ("front_scan_frame",))
    np.testing.assert_allclose(mount.positions, [[0.0, 1.0, 0.0]])
    np.testing.assert_allclose(mount.orientations, [[math.sqrt(0.5), 0, 0, math.sqrt(0.5)]])


def test_a_mount_turns_with_its_frame():
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><body euler="0 0 90" pos="1 2 3"/></worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    turn = [math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0]  # x down, z forward
    place, matrix = Mount(Frame("body", ObjectKind.BODY, 1), [1.0, 0.0, 0.0], turn).pose(data)
    np.testing.assert_allclose(place, [1.0, 3.0, 3.0], atol=1e-12)
    np.testing.assert_allclose(matrix, [[0, -1, 0], [0, 0, 1], [-1, 0, 0]], atol=1e-12)


def test_points_of_a_displaced_lidar_are_in_its_own_frame():
    settings = {"frame": "scanner", "position": [0.0, 1.0, 0.0], "label": "velodyne", "rate": 100}
    one = {"rings": 1, "elevations": [0.0], "azimuth_min": 0.0, "azimuth_max": 1.0, "columns": 1}
    record = told(Lidar(**settings, **one, stream="points"))["points"]
    assert record.frame == "velodyne"
    np.testing.assert_allclose(record.points, [[5.0, 0.0, 0.0]], atol=1e-5)


def test_a_label_of_its_own_is_told_also_where_nothing_is_displaced():
    finder = Laser(frame="scanner", label="laser", rate=100, stream="scan")
    records = told(finder)
    assert records["scan"].frame == "laser"
    np.testing.assert_array_equal(records["scan/tf_static"].positions, [[0.0, 0.0, 0.0]])
    assert list(told(Laser(frame="scanner", rate=100))) == ["Laser"]


def test_a_label_that_another_frame_has_is_refused():
    assert "'head'" in reason(frame="scanner", label="head")
    assert "'scanner'" in reason(frame="scanner", label="scanner", position=[1, 0, 0])


# -- beams, time, intensity ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "angles"),
    [
        ({"angle_min": -0.2, "angle_max": 0.2, "angle_step": 0.1}, [-0.2, -0.1, 0.0, 0.1, 0.2]),
        ({"angle_min": 0.0, "angle_max": 0.25, "angle_step": 0.1}, [0.0, 0.1, 0.2]),
        ({"angle_min": 0.0, "angle_max": 0.0, "angle_step": 0.1}, [0.0]),
        ({"angle_min": 0.0, "angle_max": 0.3, "beams": 4}, [0.0, 0.1, 0.2, 0.3]),
    ],
)
def test_beams_stand_at_their_angles(settings, angles):
    finder = Laser(frame="scanner", **settings)
    ways = finder.directions()
    np.testing.assert_allclose(np.arctan2(ways[:, 1], ways[:, 0]), angles, atol=1e-12)
    counted = finder.config.angle_min + finder.config.step * np.arange(finder.config.count)
    np.testing.assert_allclose(counted, angles, atol=1e-12)


def test_the_usual_fan_has_a_beam_every_half_degree():
    config = Laser(frame="scanner").config
    assert (config.count, config.step) == (541, pytest.approx(math.radians(0.5)))


@pytest.mark.parametrize(
    ("rate", "period", "steps"),
    [(30, 1 / 30, [4, 7, 10, 14, 17, 20]), (1_000, 0.01, list(range(1, 21)))],
)
def test_scans_keep_their_rate_for_ever_and_tell_it(rate, period, steps):
    finder = Laser(frame="scanner", rate=rate, beams=2)
    with MujocoEnv(ROBOT, plugins=[finder]) as env, env.streams.subscribe(maxsize=1_000) as samples:
        env.step(1_000)
        found = samples.drain()
    assert [sample.stamp.step for sample in found][: len(steps)] == steps
    assert found[0].record.period == pytest.approx(period)
    assert len(found) == pytest.approx(10.0 / period)
    assert found[-1].stamp.step == 1_000


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"intensity": "none"}, []),
        ({"intensity": "constant"}, [0.0, 1.0, 1.0]),
        ({"intensity": "constant", "intensity_value": 7.0}, [0.0, 7.0, 7.0]),
        ({"intensity": "material", "intensity_value": 0.3}, [0.0, 0.1, 0.3]),
        ({"intensity": "material", "materials": {"glass": 2.0}}, [0.0, 2.0, 1.0]),
        ({"intensity": "material", "alpha_min": 0.5}, [0.0, 0.75, 1.0]),
        ({"intensity": "material", "range_max": 3.0}, [0.0, 0.0, 0.0]),
        ({"intensity": "cosine"}, [0.0, 1.0, 1.0]),
    ],
)
def test_intensities_are_those_asked_for(settings, expected):
    record = scan(own_tree=False, **settings)
    np.testing.assert_allclose(record.intensities, expected, rtol=1e-6)
    assert record.intensities.dtype == np.float32


def test_a_material_that_is_not_there_is_told_with_those_near():
    told_so = reason(frame="scanner", intensity="material", materials={"glas": 1.0})
    assert "'glas'" in told_so
    assert "'glass'" in told_so


def test_points_of_a_dense_cloud_keep_their_rings_and_intensities():
    rows = {"elevations": [0.0, -math.pi / 2], "columns": 1, "azimuth_min": 0.0, "azimuth_max": 1.0}
    settings = {"frame": "scanner", "rate": 100, "intensity": "material", **rows}
    seen = told(Lidar(**settings, stream="points", own_tree=False))["points"]
    assert (list(seen.rings), list(seen.intensities)) == ([0], [pytest.approx(0.1)])
    below = told(Lidar(**settings, stream="points"))["points"]
    np.testing.assert_allclose(below.points, [[0.9, 0, 0], [0, 0, -0.4]], atol=1e-5)
    assert list(below.rings) == [0, 1]
