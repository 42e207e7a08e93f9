"""Laser and lidar: right distances, every setting, noise that comes again."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest

from mjhost import MujocoEnv
from mjhost.bundled.laser import Laser
from mjhost.bundled.lidar import Lidar
from mjhost.bundled.rays import directions
from mjhost.errors import PluginConfigError

DT = 0.01
MODEL = f"""
<mujoco>
  <option timestep="{DT}" gravity="0 0 0"/>
  <worldbody>
    <geom name="east" type="box" pos="5 0 0" size="1 9 9" group="1"/>
    <geom name="north" type="box" pos="0 3 0" size="9 1 9" group="2"/>
    <body name="robot"><freejoint/>
      <geom name="shell" type="sphere" size=".2" mass="1"/>
      <site name="scanner"/>
      <site name="turned" euler="0 0 90"/>
      <camera name="eye" pos="0 0 0" euler="0 0 90"/>
    </body>
    <body name="ball" pos="-3 0 0"><freejoint/><geom type="sphere" size=".5" mass="1"/></body>
  </worldbody>
</mujoco>
"""
FOUR = {"frame": "scanner", "angle_min": -math.pi, "angle_max": math.pi / 2, "beams": 4, "rate": 50}
# west (the ball), south (nothing), east, north
TRUE = [2.5, math.inf, 4.0, 2.0]


def scan(model=MODEL, plugin=Laser, prepare=None, **settings):
    """The first record of a scanner."""
    with MujocoEnv(model, plugins=[plugin(**{**FOUR, **settings})]) as env:
        assert env.plugin_load_report.ok, env.plugin_load_report.failures
        with env.streams.subscribe() as samples:
            if prepare is not None:
                prepare(env)
            env.advance(1 / 50)
            (sample,) = samples.drain()
            return sample.record


def cloud(**settings):
    pattern = {"frame": "scanner", "rings": 1, "elevation_min": 0.0, "elevation_max": 0.0}
    names = ("angle_min", "angle_max", "beams")
    base = {key: value for key, value in FOUR.items() if key not in names}
    with MujocoEnv(MODEL, plugins=[Lidar(**{**base, **pattern, "columns": 4, **settings})]) as env:
        assert env.plugin_load_report.ok, env.plugin_load_report.failures
        with env.streams.subscribe() as samples:
            env.advance(1 / 50)
            (sample,) = samples.drain()
            return sample.record


# -- distances -----------------------------------------------------------------------------------


def test_a_scan_has_the_distances_along_its_beams():
    record = scan()
    np.testing.assert_allclose(record.ranges, TRUE, rtol=1e-6)
    assert (record.frame, record.angle_min, record.range_min) == ("scanner", -math.pi, 0.05)
    assert record.angle_step == pytest.approx(math.pi / 2)
    assert record.period == pytest.approx(1 / 50)
    assert (record.ranges.dtype, len(record.intensities)) == (np.float32, 0)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"frame": "turned"}, [math.inf, 4.0, 2.0, 2.5]),
        ({"frame": "eye"}, [math.inf, 4.0, 2.0, 2.5]),
        ({"frame": "robot"}, TRUE),
        ({"frame": "shell"}, TRUE),
        ({"frame": "world"}, TRUE),
        ({"angle_min": 0.0, "angle_max": 0.0, "beams": 1}, [4.0]),
        ({"angle_min": 0.0, "angle_max": math.pi / 2, "beams": 2}, [4.0, 2.0]),
        ({"range_max": 3.0}, [2.5, math.inf, math.inf, 2.0]),
        ({"range_max": 2.0}, [math.inf, math.inf, math.inf, 2.0]),
        ({"range_min": 2.25}, [2.5, math.inf, 4.0, -math.inf]),
        ({"groups": [0, 1]}, [2.5, math.inf, 4.0, math.inf]),
        ({"static": False}, [2.5, math.inf, math.inf, math.inf]),
        ({"own_body": True}, [0.2, 0.2, 0.2, 0.2]),
        ({"resolution": 0.75}, [2.25, math.inf, 3.75, 2.25]),
    ],
)
def test_every_setting_is_honoured(settings, expected):
    if settings.get("frame") == "world":  # stands where the robot is, whose shell is not its own

        def prepare(env):
            env.set_body_state("robot", pos=(0.0, 0.0, 50.0))

        record = scan(prepare=prepare, **settings)
    else:
        record = scan(**settings)
    np.testing.assert_allclose(record.ranges, expected, rtol=1e-6)


def test_distances_are_those_of_the_present_state_and_stamp():
    with MujocoEnv(MODEL, plugins=[Laser(**FOUR)]) as env:
        env.set_body_state("robot", linear=(1.0, 0.0, 0.0))
        with env.streams.subscribe() as samples:
            env.advance(0.1)
            told = samples.drain()
    assert [sample.stamp.step for sample in told] == [2, 4, 6, 8, 10]
    for sample in told:
        east = sample.record.ranges[2]
        assert east == pytest.approx(4.0 - sample.stamp.sim_time, abs=1e-6)


def test_the_cosine_of_incidence_is_the_intensity():
    record = scan(intensity="cosine", angle_min=0.0, angle_max=math.pi / 12, beams=2)
    np.testing.assert_allclose(record.intensities, [1.0, math.cos(math.pi / 12)], rtol=1e-6)
    assert scan(intensity="cosine").intensities[1] == 0.0  # nothing was hit


def test_one_call_finds_what_single_rays_find():
    model = mujoco.MjModel.from_xml_string(MODEL)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    beams = 90
    record = scan(angle_min=-3.0, angle_max=3.0, beams=beams)
    geom, body = np.zeros(1, np.int32), model.body("robot").id
    for angle, found in zip(np.linspace(-3.0, 3.0, beams), record.ranges, strict=True):
        way = np.array([math.cos(angle), math.sin(angle), 0.0])
        single = mujoco.mj_ray(model, data, np.zeros(3), way, None, 1, body, geom)
        assert found == pytest.approx(single if 0 <= single <= 30 else math.inf, rel=1e-6)


def test_a_floor_is_seen_however_far_its_middle_is():
    floor = """
    <mujoco><worldbody>
      <geom type="plane" size="0 0 1"/>
      <body name="robot" pos="0 0 1"><freejoint/><geom size=".1"/><site name="scanner"/></body>
    </worldbody></mujoco>"""

    def drive(env):
        env.set_body_state("robot", pos=(40.0, 30.0, 1.0), quat=(1.0, 0.0, 1.0, 0.0))  # x down

    record = scan(model=floor, prepare=drive, angle_min=0.0, angle_max=0.0, beams=1, range_max=10.0)
    assert record.ranges[0] == pytest.approx(1.0, abs=0.01)


def test_what_bends_is_seen_where_it_is():
    bending = """
    <mujoco><option gravity="0 0 0"/>
      <worldbody>
        <site name="scanner"/>
        <flexcomp name="cloth" type="grid" dim="2" count="5 5 1" spacing=".5 .5 .1" pos="2 0 0"
                  euler="0 90 0" radius=".01" mass="1"><edge equality="true"/></flexcomp>
        <geom type="sphere" pos="4 0 0" size=".5"/>
      </worldbody></mujoco>"""
    settings = {"model": bending, "angle_min": 0.05, "angle_max": 0.05, "beams": 1}
    record = scan(**settings, intensity="cosine")
    assert record.ranges[0] == pytest.approx(2.0 / math.cos(0.05), rel=1e-6)
    assert record.intensities[0] == pytest.approx(math.cos(0.05), rel=1e-6)
    assert scan(**settings, flexes=False).ranges[0] > 3.0


# -- clouds --------------------------------------------------------------------------------------


def test_a_cloud_has_the_points_that_were_hit_with_their_rings():
    record = cloud()
    np.testing.assert_allclose(record.points, [[-2.5, 0, 0], [4, 0, 0], [0, 2, 0]], atol=1e-5)
    assert (list(record.rings), record.width) == ([0, 0, 0], 0)


def test_an_organised_cloud_keeps_a_place_for_every_beam():
    record = cloud(organised=True, elevations=[0.0, math.pi / 2], intensity="cosine")
    assert (record.points.shape, record.width) == ((8, 3), 4)
    assert np.isnan(record.points[[1, 4, 5, 6, 7]]).all()
    np.testing.assert_allclose(record.points[2], [4, 0, 0], atol=1e-5)
    assert list(record.rings) == [0, 0, 0, 0, 1, 1, 1, 1]
    assert record.intensities[2] == pytest.approx(1.0)


def test_a_full_circle_ends_one_column_before_it_begins_again():
    full = Lidar(frame="world", columns=4).config
    np.testing.assert_allclose(full.azimuths, [-math.pi, -math.pi / 2, 0, math.pi / 2])
    narrow = Lidar(frame="world", azimuth_min=0.0, azimuth_max=1.0, columns=3).config
    assert list(narrow.azimuths) == [0.0, 0.5, 1.0]


def test_directions_are_rings_of_unit_vectors():
    found = directions([0.0, math.pi / 2], [0.0, math.pi / 4])
    half = math.sqrt(0.5)
    expected = [[1, 0, 0], [0, 1, 0], [half, 0, half], [0, half, half]]
    np.testing.assert_allclose(found, expected, atol=1e-12)


# -- noise ---------------------------------------------------------------------------------------


def test_noise_has_its_sigma_and_dropout_its_share():
    settings = {"angle_min": -0.1, "angle_max": 0.1, "beams": 4_000}
    still = scan(**settings).ranges
    noisy = scan(**settings, sigma=0.03, sigma_relative=0.01, dropout=0.25).ranges
    kept = ~np.isnan(noisy)
    assert 1 - kept.mean() == pytest.approx(0.25, abs=0.03)
    expected = math.hypot(0.03, 0.04)
    assert (noisy - still)[kept].std() == pytest.approx(expected, rel=0.05)
    assert (noisy - still)[kept].mean() == pytest.approx(0.0, abs=5e-3)


def record_noise(env, scans):
    with env.streams.subscribe("Laser") as samples:
        env.advance(scans / 50)
        return [sample.record.ranges.tobytes() for sample in samples.drain()]


def test_noise_depends_on_seed_and_step_and_not_on_who_listens():
    noisy = {**FOUR, "sigma": 0.1}
    with MujocoEnv(MODEL, plugins=[Laser(**noisy)]) as env:
        first = record_noise(env, 4)
        env.reset()
        env.advance(2 / 50)  # nobody listens
        assert record_noise(env, 2) == first[2:]
        checkpoint = env.checkpoint()
        assert checkpoint.exact
        after = record_noise(env, 2)
        env.restore(checkpoint)
        assert record_noise(env, 2) == after
    assert len({*first, *after}) == 6
    with MujocoEnv(MODEL, plugins=[Laser(**noisy, seed=1)]) as env:
        assert not {*record_noise(env, 4)} & {*first}


# -- life ----------------------------------------------------------------------------------------


def test_without_a_listener_nothing_is_cast():
    with MujocoEnv(MODEL, plugins=[Laser(**FOUR)]) as env:
        env.step(10)
        timing = env.plugin_statistics[0].hooks["post_step"]
        assert (timing.calls, timing.skipped) == (5, 5)


def test_scans_write_nothing_into_the_simulation():
    with MujocoEnv(MODEL) as plain, MujocoEnv(MODEL, plugins=[Laser(**FOUR)]) as env:
        for each in (plain, env):
            each.set_body_state("ball", linear=(1.0, 2.0, 0.0))
        with env.streams.subscribe():
            env.step(20)
        plain.step(20)
        assert env.data.qpos.tobytes() == plain.data.qpos.tobytes()
        assert env.data.xpos.tobytes() == plain.data.xpos.tobytes()


def test_a_subscription_goes_on_over_a_reload_into_another_model():
    other = MODEL.replace('pos="5 0 0"', 'pos="7 0 0"')
    with MujocoEnv(MODEL, plugins=[Laser(**FOUR)]) as env:
        samples = env.streams.subscribe("Laser")
        env.advance(1 / 50)
        env.reload(other)
        env.advance(1 / 50)
        assert [s.record.ranges[2] for s in samples.drain()] == pytest.approx([4.0, 6.0])


@pytest.mark.parametrize("name", ["laser", "lidar"])
def test_they_are_found_by_the_names_of_their_entry_points(name):
    record = {"type": name, "config": {"frame": "scanner"}}
    with MujocoEnv(MODEL, plugins=[record]) as env:
        assert env.plugin_load_report.ok, env.plugin_load_report.failures
        assert [info.name for info in env.streams.streams()] == [name]


def test_a_frame_that_is_not_there_is_told_with_those_near():
    with MujocoEnv(MODEL, plugins=[Laser(frame="scaner")]) as env:
        told = env.plugin_load_report.failures[0].error
        assert "no body, site, camera or geom is named 'scaner'; did you mean 'scanner'" in told


@pytest.mark.parametrize(
    ("plugin", "settings", "told"),
    [
        (Laser, {}, "frame"),
        (Laser, {"range_min": 5.0, "range_max": 5.0}, "range_min must be below range_max"),
        (Laser, {"range_max": math.inf}, "range_max"),
        (Laser, {"sigma": math.inf}, "sigma"),
        (Laser, {"beams": 5, "angle_step": 0.1}, "beams or angle_step can be chosen, not both"),
        (Laser, {"angle_step": 1e-6}, "at most"),
        (Laser, {"position": [0.0, 0.0]}, "position"),
        (Laser, {"position": [math.nan, 0.0, 0.0]}, "position"),
        (Laser, {"orientation": [0.0, 0.0, 0.0, 0.0]}, "orientation"),
        (Laser, {"alpha_min": 1.5}, "alpha_min"),
        (Laser, {"materials": {"steel": -1.0}}, "materials"),
        (Laser, {"beams": 0}, "beams"),
        (Laser, {"angle_min": 1.0, "angle_max": 1.0}, "angle_min must be below angle_max"),
        (Laser, {"rate": 0.0}, "rate"),
        (Laser, {"groups": [6]}, "groups"),
        (Laser, {"dropout": 1.5}, "dropout"),
        (Laser, {"sigma": -1.0}, "sigma"),
        (Laser, {"intensity": "loud"}, "intensity"),
        (Lidar, {"azimuth_min": 1.0, "azimuth_max": 0.0}, "azimuth_max must be above"),
        (Lidar, {"elevation_min": 1.0, "elevation_max": 0.0}, "elevation_min must not be above"),
        (Lidar, {"rings": 2_000, "columns": 2_000}, "at most"),
        (Lidar, {"elevations": [2.0]}, "elevations"),
    ],
)
def test_settings_that_cannot_be_are_refused_by_name(plugin, settings, told):
    given = settings if settings == {} else {"frame": "scanner", **settings}
    with pytest.raises(PluginConfigError, match=told):
        plugin(**given)
