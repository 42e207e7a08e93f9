"""What is added to the engine's own words."""

from __future__ import annotations

import mujoco
import pytest

from mjhost.engine.explanations import REMOVED, explain_unknown_plugin

BODY = '<worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody>'


def _explained(xml: str) -> str:
    with pytest.raises(ValueError) as caught:
        mujoco.MjModel.from_xml_string(xml)
    return explain_unknown_plugin(str(caught.value))


def _declaring(name):
    return f'<mujoco><extension><plugin plugin="{name}"/></extension></mujoco>'


def _using(name):
    return f'<mujoco>{BODY}<actuator><plugin joint="j" plugin="{name}"/></actuator></mujoco>'


@pytest.mark.parametrize("xml", [_declaring("acme.nothing"), _using("acme.nothing")])
def test_missing_plugin_is_named_with_what_is_registered_and_what_to_do(xml):
    told = _explained(xml)
    assert "no engine plugin 'acme.nothing' is registered" in told
    assert "mujoco.pid" in told
    assert "engine.load_library" in told


def test_near_name_is_suggested():
    assert "did you mean 'mujoco.pid'" in _explained(_declaring("mujoco.pdi"))


def test_plugin_that_is_registered_and_not_declared_is_told_apart():
    assert 'add <extension><plugin plugin="mujoco.pid"/>' in _explained(_using("mujoco.pid"))


@pytest.mark.parametrize("name", REMOVED)
def test_removed_plugin_has_its_replacement(name):
    told = explain_unknown_plugin(f"XML Error: plugin {name} not found\nElement 'plugin', line 1\n")
    if name == "mujoco.elasticity.cable" and mujoco.mj_version() < 4_000_000:
        assert "does not declare it" in told
        return
    assert mujoco.__version__ in told
    assert "a flexcomp of dim=" in told


def test_composite_of_an_old_model_has_its_replacement():
    cable = '<mujoco><worldbody><composite type="cable" count="4 1 1"/></worldbody></mujoco>'
    if mujoco.mj_version() < 4_000_000:
        pytest.skip("MuJoCo 3 has the element")
    told = _explained(cable)
    assert "'composite'" in told
    assert mujoco.__version__ in told
    assert 'flexcomp of dim="1"' in told


def test_the_bundled_cable_is_offered():
    told = explain_unknown_plugin("unrecognized plugin 'mujoco.elasticity.cable'")
    assert mujoco.mj_version() < 4_000_000 or "mjhost.cable" in told


def test_unknown_attribute_is_told_with_the_known_ones():
    told = _explained(
        '<mujoco><extension><plugin plugin="mujoco.pid"><instance name="p">'
        '<config key="kq" value="1"/></instance></plugin></extension></mujoco>'
    )
    assert "the attributes of 'mujoco.pid' are kp, ki, kd, imax, slewmax" in told


def test_plugin_used_as_what_it_is_not_is_told_with_what_it_is():
    told = _explained(
        f'<mujoco><extension><plugin plugin="mujoco.pid"/></extension>{BODY}'
        '<sensor><plugin plugin="mujoco.pid"/></sensor></mujoco>'
    )
    assert told == "'mujoco.pid' is for actuator only"


def test_mesh_without_decoder_is_told_with_extension_and_decoders():
    told = explain_unknown_plugin("Error: no decoder found for mesh file 'a.acme'\nElement")
    assert "'.acme'" in told
    assert ".obj" in told


def test_near_attribute_is_suggested():
    told = explain_unknown_plugin("unrecognized attribute 'plugin:imaxx' for plugin mujoco.pid'")
    assert told.startswith("did you mean 'imax'?")


@pytest.mark.parametrize("message", ["", "Error: repeated name 'a'", "plugin->init failed"])
def test_other_errors_get_nothing_added(message):
    assert explain_unknown_plugin(message) == ""
