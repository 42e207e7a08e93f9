"""``mjhost.cable`` against MuJoCo's where it exists, and against the theory of rods everywhere."""

import math

import mujoco
import numpy as np
import pytest

from mjhost.engine.builtin import cable  # noqa: F401 - registers

NATIVE = "mujoco.elasticity.cable"
ONLY_3 = pytest.mark.skipif(
    not mujoco.__version__.startswith("3."), reason="MuJoCo 4 has no cable to compare with"
)
TWIST, BEND = 3e6, 8e6
LENGTH = 0.1
SECTIONS = {
    "capsule": '<geom type="capsule" size=".01" fromto="0 0 0 .1 0 0"/>',
    "cylinder": '<geom type="cylinder" size=".012" fromto="0 0 0 .1 0 0"/>',
    "box": '<geom type="box" size=".05 .01 .02" pos=".05 0 0"/>',
    "flat box": '<geom type="box" size=".05 .02 .005" pos=".05 0 0"/>',
}
GEOM = SECTIONS["capsule"]


def bodies(count, geom, joint='<joint type="ball" damping="1e-3"/>', bent=0.0, first=""):
    """A chain along x, written out; ``bent`` is about how much each body is turned, rad."""
    draw = np.random.default_rng(7)
    text = ""
    for k in range(count):
        axis = draw.normal(size=3)
        turn = np.zeros(4)
        mujoco.mju_axisAngle2Quat(turn, axis / np.linalg.norm(axis), bent)
        quat = " ".join(map(repr, turn.tolist()))
        place = f'pos="{LENGTH if k else 0} 0 {0 if k else 1}" quat="{quat}"'
        text += f'<body name="b{k}" {place}>{joint if k else first}{geom}<plugin instance="rod"/>'
    return text + "</body>" * count


def xml_of(plugin, chain, *, flat="false", vmax=0.0):
    return f"""
    <mujoco>
      <option><flag gravity="disable" contact="disable"/></option>
      <extension><plugin plugin="{plugin}"><instance name="rod">
        <config key="twist" value="{TWIST}"/><config key="bend" value="{BEND}"/>
        <config key="flat" value="{flat}"/><config key="vmax" value="{vmax}"/>
      </instance></plugin></extension>
      <worldbody>{chain}</worldbody>
    </mujoco>"""


def turned(model, data, seed=3, size=0.3):
    """Turns every ball joint somewhere."""
    draw = np.random.default_rng(seed)
    for joint in np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_BALL):
        start = model.jnt_qposadr[joint]
        mujoco.mju_quatIntegrate(data.qpos[start : start + 4], draw.normal(size=3), size)


def passive(xml, seed=3):
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    turned(model, data, seed)
    mujoco.mj_forward(model, data)
    return data.qfrc_passive.copy()


@ONLY_3
@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("flat", ["true", "false"])
@pytest.mark.parametrize("first", ["", "<freejoint/>"])
def test_forces_are_those_of_the_native_cable(section, flat, first, path):
    chain = bodies(8, SECTIONS[section], bent=0.2, first=first)
    for seed in range(5):
        mine = passive(xml_of("mjhost.cable", chain, flat=flat), seed)
        native = passive(xml_of(NATIVE, chain, flat=flat), seed)
        assert np.abs(native).max() > 1e-3
        assert np.abs(mine - native).max() <= 1e-12 * max(1.0, np.abs(native).max()), path


COMPOSITE = """
<mujoco>
  <extension><plugin plugin="PLUGIN"/></extension>
  <worldbody>
    <composite type="cable" curve="s cos(s) sin(s)" count="15 1 1" size="1 .1 .2" initial="INITIAL">
      <plugin plugin="PLUGIN">
        <config key="twist" value="1e7"/><config key="bend" value="4e6"/>
      </plugin>
      <joint kind="main" damping=".015"/><geom type="capsule" size=".005" density="1000"/>
    </composite>
  </worldbody>
</mujoco>"""


@ONLY_3
@pytest.mark.parametrize("initial", ["ball", "free", "none"])
def test_it_takes_the_place_of_the_native_one_in_a_composite_written_out(initial):
    spec = mujoco.MjSpec.from_string(
        COMPOSITE.replace("INITIAL", initial).replace("PLUGIN", NATIVE)
    )
    spec.compile()
    written_out = spec.to_xml()
    assert "<composite" not in written_out
    mine = passive(written_out.replace(NATIVE, "mjhost.cable"))
    native = passive(written_out)
    assert np.abs(mine - native).max() <= 1e-12 * max(1.0, np.abs(native).max())


@ONLY_3
def test_colours_are_those_of_the_native_cable():
    colours = []
    for plugin in ("mjhost.cable", NATIVE):
        chain = bodies(8, SECTIONS["box"])
        model = mujoco.MjModel.from_xml_string(xml_of(plugin, chain, vmax=9.0))
        data = mujoco.MjData(model)
        turned(model, data)
        mujoco.mj_forward(model, data)
        scene = mujoco.MjvScene(model, 100)
        everything = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(
            model, data, mujoco.MjvOption(), None, mujoco.MjvCamera(), everything, scene
        )
        colours.append(model.geom_rgba.copy())
    assert np.allclose(*colours, rtol=0, atol=1e-6)
    assert len(np.unique(colours[0], axis=0)) > 4


def bent_evenly(xml, vector, angle):
    """``qfrc_passive`` per joint when each is turned by ``angle`` about ``vector``."""
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    turn = np.zeros(4)
    mujoco.mju_axisAngle2Quat(turn, np.asarray(vector, float), angle)
    data.qpos[:] = np.tile(turn, model.njnt)
    mujoco.mj_forward(model, data)
    return data.qfrc_passive.reshape(-1, 3)


@pytest.mark.parametrize(
    ("vector", "stiffness"),
    [
        ((1, 0, 0), TWIST * math.pi * 0.01**4 / 2),
        ((0, 1, 0), BEND * math.pi * 0.01**4 / 4),
        ((0, 0, 1), BEND * math.pi * 0.01**4 / 4),
    ],
)
def test_each_joint_resists_with_the_stiffness_of_the_rod(vector, stiffness, path):
    angle = 0.07
    forces = bent_evenly(xml_of("mjhost.cable", bodies(6, SECTIONS["capsule"])), vector, angle)
    right = -stiffness * angle / LENGTH * np.asarray(vector, float)
    assert np.abs(forces - right).max() < 1e-12, path


def test_rod_carries_a_load_bent_as_the_theory_of_beams_says(path):
    count, load = 20, 1e-3
    stiffness = BEND * math.pi * 0.01**4 / 4
    model = mujoco.MjModel.from_xml_string(xml_of("mjhost.cable", bodies(count, GEOM)))
    data = mujoco.MjData(model)
    arms = LENGTH * (count - 0.5 - np.arange(1, count))  # from each joint to the last body's middle
    for k, arm in enumerate(arms):
        turn = np.array([0.0, load * arm * LENGTH / stiffness, 0.0])
        mujoco.mju_quatIntegrate(data.qpos[4 * k : 4 * k + 4], turn, 1.0)
    data.xfrc_applied[count, 2] = -load
    mujoco.mj_forward(model, data)
    # In balance, but for what the theory leaves out, the shortening by the bend.
    assert np.abs(data.qfrc_smooth).max() < 0.01 * np.abs(data.qfrc_passive).max(), path
    # Each joint stands for the half segments around it: the clamped half of the first is missing.
    reach = arms[0] + LENGTH / 2
    right = load * reach**3 / (3 * stiffness)
    assert 1.0 - data.xipos[count, 2] == pytest.approx(right, rel=0.02), path


def test_rest_shape_is_without_stress_unless_flat(path):
    chain = bodies(6, SECTIONS["capsule"], bent=0.3)
    curved = mujoco.MjModel.from_xml_string(xml_of("mjhost.cable", chain))
    flat = mujoco.MjModel.from_xml_string(xml_of("mjhost.cable", chain, flat="true"))
    forces = []
    for model in (curved, flat):
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        forces.append(np.abs(data.qfrc_passive).max())
    assert forces[0] < 1e-12, path
    assert forces[1] > 1e-3, path


def test_free_rod_neither_turns_nor_drifts_by_itself(path):
    model = mujoco.MjModel.from_xml_string(
        xml_of("mjhost.cable", bodies(8, SECTIONS["box"], first="<freejoint/>"))
    )
    data = mujoco.MjData(model)
    turned(model, data)
    mujoco.mj_forward(model, data)
    assert np.abs(data.qfrc_passive[:6]).max() < 1e-12, path
    assert np.abs(data.qfrc_passive[6:]).max() > 1e-2, path


def test_both_paths_compute_the_same_bits(on_both_paths, runs):
    chain = bodies(8, SECTIONS["flat box"], bent=0.2)
    xml = xml_of("mjhost.cable", chain)
    python, compiled = on_both_paths(runs.run, xml, np.zeros((50, 0)), turned)
    assert python.tobytes() == compiled.tobytes()


@pytest.mark.parametrize(
    ("chain", "complaint"),
    [
        (bodies(3, GEOM, joint="<joint/>"), "body 'b1' .* must hang by a ball joint"),
        (bodies(3, GEOM, joint=""), "body 'b1' .* must hang by a ball joint"),
        (bodies(3, '<geom size=".1"/>'), "first geom of body 'b0' .* capsule, a cylinder or a box"),
        (
            bodies(2, '<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>'),
            "first geom of body 'b0'",
        ),
        (
            bodies(2, GEOM) + bodies(2, GEOM).replace('name="b', 'name="c'),
            "body 'c0' .* is no child of body 'b1'",
        ),
        ("", "no body names this instance"),
        (bodies(2, GEOM).replace('pos="0.1 0 0"', 'pos="0 0 0"'), "is where the one before is"),
    ],
)
def test_what_is_no_cable_is_refused(chain, complaint):
    with pytest.raises(ValueError, match=complaint):
        mujoco.MjModel.from_xml_string(xml_of("mjhost.cable", chain))


def test_side_body_between_two_links_is_no_part_of_the_cable(path):
    # MuJoCo's own counts bodies by number and refuses this.
    plain = bodies(4, GEOM)
    with_side = plain.replace('<body name="b2"', '<body><geom size=".01"/></body><body name="b2"')
    forces = [passive(xml_of("mjhost.cable", chain)) for chain in (plain, with_side)]
    assert np.array_equal(*forces), path
