"""Names that no other test uses, and small models for them."""

import itertools
import os

import mujoco
import pytest

from mjhost.engine import failures, frames

_SERIAL = itertools.count()

SCENE = """
<mujoco>
  <extension>
    <plugin plugin="{name}"><instance name="{label}">{config}</instance></plugin>
  </extension>
  <worldbody>
    <body name="cart" {body}>{inner}
      <joint name="slide" type="slide" axis="1 0 0"/><geom size="0.1" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  {elements}
</mujoco>
"""

ELEMENTS = {
    "actuator": '<actuator><plugin joint="slide" instance="{label}" {more}/></actuator>',
    "sensor": '<sensor><plugin name="out" instance="{label}" {more}/></sensor>',
    "passive": "",
}


@pytest.fixture
def name():
    """A plugin name that is not taken."""
    return f"test.{os.getpid()}.{next(_SERIAL)}"


@pytest.fixture
def xml_of():
    """MJCF of a cart on a slide with one plugin instance."""

    def make(name, kind="passive", *, label="one", more="", inner="", **config):
        keys = "".join(f'<config key="{key}" value="{value}"/>' for key, value in config.items())
        if kind == "passive":
            inner += f'<plugin instance="{label}"/>'
        elements = ELEMENTS[kind].format(label=label, more=more)
        return SCENE.format(
            name=name, label=label, config=keys, body="", inner=inner, elements=elements
        )

    return make


@pytest.fixture
def model_of(xml_of):
    """A compiled model of ``xml_of``."""
    return lambda *args, **kwargs: mujoco.MjModel.from_xml_string(xml_of(*args, **kwargs))


@pytest.fixture(params=["framed", "bare"])
def way(request, monkeypatch):
    """Both ways into Python: machine-code frames, and ctypes closures only."""
    if request.param == "bare":
        monkeypatch.setattr(frames, "available", lambda: False)
    elif not frames.available():
        pytest.skip("the extra fast is not installed")
    return request.param


@pytest.fixture
def raises(way):
    """``raises(call, data)``: what the plugin raised in ``call``, however it surfaces."""
    from mjhost import engine
    from mjhost.errors import EnginePluginError

    def caught(call, data=None):
        with pytest.raises(EnginePluginError) as info:
            call()
            assert way == "bare", "the call returned although frames are there"
            engine.check(data)
        return info.value

    return caught


@pytest.fixture(autouse=True)
def _no_failure_left():
    yield
    left = []
    while (error := failures.take_any()) is not None:
        left.append(error)
    assert not left, f"failures left behind: {left}"
