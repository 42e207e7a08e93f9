"""The plugins, decoders, encoders and providers that the engine's wheels bring along."""

from __future__ import annotations

import ctypes
import math

import mujoco
import pytest

from mjhost.engine.abi.structs import Resource, text
from mjhost.engine.abi.symbols import engine
from tests.engine.facts.kit import MAJOR, compiled

PID = """
<mujoco>
  <option gravity="0 0 0"/>
  <extension>
    <plugin plugin="mujoco.pid"><instance name="p">{config}</instance></plugin>
  </extension>
  <worldbody>
    <body><joint name="i"/><joint name="j" axis="0 1 0"/><geom pos="0 0 -.3" size=".1"/></body>
  </worldbody>
  <actuator>{before}<plugin name="a" joint="j" plugin="mujoco.pid" instance="p" {more}/></actuator>
</mujoco>
"""
BUILT_IN = {
    "mujoco.pid",
    "mujoco.sensor.touch_grid",
    *(f"mujoco.sdf.{shape}" for shape in ("bolt", "bowl", "gear", "nut", "torus")),
}
CABLE = "mujoco.elasticity.cable"


def pid_xml(*config, before="", more=""):
    keys = "".join(f'<config key="{key}" value="{value}"/>' for key, value in config)
    return PID.format(config=keys, before=before, more=more)


def pid_force(*config, **arguments):
    model, data = compiled(pid_xml(*config, **arguments))
    data.ctrl[-1] = 1.0
    mujoco.mj_forward(model, data)
    return float(data.actuator_force[-1])


def test_the_wheels_bring_seven_plugins_and_version_3_the_cable():
    # The registry is the process's: what others register comes after.
    found = {text(engine().plugin_at(slot).name) for slot in range(8 if MAJOR < 4 else 7)}
    assert found == (BUILT_IN | {CABLE} if MAJOR < 4 else BUILT_IN)


@pytest.mark.parametrize(
    ("kp", "force"), [("40", 40.0), ("abc", 0.0), ("1 2", 1.0), ("nan", math.nan)]
)
def test_a_value_that_is_no_number_is_accepted_as_something_else(kp, force):
    assert pid_force(("kp", kp)) == pytest.approx(force, nan_ok=True)


@pytest.mark.parametrize(
    ("config", "more", "reason"),
    [
        ([("imax", "-1")], 'actdim="1"', "negative imax"),
        ([("slewmax", "-1")], 'actdim="1"', "slewmax"),
        ([], "", "expected 1"),
    ],
)
def test_what_the_controller_refuses_is_an_error_of_compilation(config, more, reason):
    with pytest.raises(ValueError, match=f"(?s)plugin->init failed.*{reason}"):
        compiled(pid_xml(("kp", "40"), ("ki", "4"), *config, more=more))


def test_an_unknown_key_and_a_key_given_twice_are_refused():
    with pytest.raises(ValueError, match="unrecognized attribute 'plugin:kq'"):
        compiled(pid_xml(("kp", "40"), ("kq", "4")))
    with pytest.raises(ValueError, match="(?i)kp.*(duplicate|already)|(duplicate|already).*kp"):
        compiled(pid_xml(("kp", "40"), ("kp", "4")))


@pytest.mark.parametrize(
    ("config", "more", "activations"),
    [
        ([("kp", "40")], "", 0),
        ([("kp", "40"), ("ki", "4")], 'actdim="1"', 1),
        ([("kp", "40"), ("ki", "4"), ("slewmax", "3")], 'actdim="2"', 2),
    ],
)
def test_the_controller_keeps_its_state_in_activations(config, more, activations):
    model, _ = compiled(pid_xml(*config, more=more))
    assert (model.npluginstate, model.na) == (0, activations)


def test_the_slew_limit_of_the_controller_does_not_hold_at_time_zero():
    model, data = compiled(pid_xml(("kp", "1"), ("slewmax", "3"), more='actdim="1"'))
    forces = []
    for time in (0.0, 1.0):
        mujoco.mj_resetData(model, data)
        data.time, data.ctrl[0] = time, 1.0
        mujoco.mj_forward(model, data)
        forces.append(float(data.actuator_force[0]))
    assert forces == pytest.approx([1.0, 3.0 * model.opt.timestep])


def test_version_3_reads_the_control_of_the_actuators_number_and_version_4_its_own():
    # An actuator of two inputs takes two controls: the number of the next one is not its address.
    before = '<pid joint="i" kp="1" kv="1"/>'
    model, data = compiled(pid_xml(("kp", "40"), before=before))
    own = int(model.actuator_ctrladr[1])
    assert own == 2
    forces = []
    for index in (own, 1):
        data.ctrl[:] = 0.0
        data.ctrl[index] = 1.0
        mujoco.mj_forward(model, data)
        forces.append(float(data.actuator_force[model.actuator_outadr[1]]))
    assert forces == ([0.0, 40.0] if MAJOR < 4 else [40.0, 0.0])


CABLE_XML = f"""
<mujoco>
  <extension><plugin plugin="{CABLE}"/></extension>
  <worldbody>
    <composite type="cable" curve="s" count="5 1 1" size="1" initial="none">
      <plugin plugin="{CABLE}"><config key="twist" value="1e7"/></plugin>
      <geom type="capsule" size=".005"/>
    </composite>
  </worldbody>
</mujoco>
"""


def test_the_cable_is_a_passive_plugin_without_reset_of_version_3():
    if MAJOR < 4:
        slot, plugin = engine().get_plugin(CABLE)
        assert (slot, plugin.capabilityflags, plugin.reset) == (1, 4, None)
        assert compiled(CABLE_XML)[0].nplugin == 1
    else:
        assert engine().get_plugin(CABLE) is None
        with pytest.raises(ValueError, match="unrecognized element\nElement 'composite'"):
            compiled(CABLE_XML)


@pytest.mark.parametrize("name", ["part.obj", "part.stl", "model.mjz", "model.zip"])
def test_meshes_and_archives_have_decoders(name):
    assert decoder_of(name) is not None
    assert decoder_of("part.dae") is None


def decoder_of(name):
    resource = Resource(name=name.encode())
    return engine().find_decoder(ctypes.addressof(resource))


def test_archives_have_encoders_and_providers_of_their_own_and_meshes_have_none():
    for name in ("model.mjz", "model.zip"):
        assert engine().find_encoder(name) is not None
        assert engine().find_archive_provider(name) is not None
    for name in ("part.obj", "part.stl"):
        assert engine().find_encoder(name) is None
        assert engine().find_archive_provider(name) is None
