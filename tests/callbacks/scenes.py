"""Small models and readings that the callback tests share."""

from __future__ import annotations

import copy
import ctypes

import mujoco

from mjhost.callbacks import KINDS
from mjhost.callbacks.symbols import exported_pointer

HINGE = """
<mujoco model="hinge">
  <option gravity="0 0 {gravity}" integrator="{integrator}" timestep="0.002"/>
  <worldbody>
    <body name="rod">
      <joint name="j" type="hinge" axis="0 1 0"/>
      <geom name="bob" size=".1" pos="0 0 -.5" mass="1"/>
    </body>
  </worldbody>
  <sensor>
    <user name="u" dim="2" needstage="pos"/>
    <user dim="1" needstage="vel"/>
    <user dim="1" needstage="acc"/>
  </sensor>
</mujoco>
"""

# Something for every kind: three bodies that touch, two user actuators, sensors at all stages.
RICH = """
<mujoco>
  <option integrator="{integrator}" timestep="0.002"/>
  <worldbody>
    <body><joint name="a"/><geom size=".2" mass="1" margin="1"/></body>
    <body pos=".1 0 0"><joint name="b"/><geom size=".2" mass="1" margin="1"/></body>
    <body pos=".2 0 0"><joint name="c"/><geom size=".2" mass="1" margin="1"/></body>
  </worldbody>
  <actuator>
    <general joint="a" dyntype="user" gaintype="user" biastype="user" actdim="1"/>
    <general joint="b" dyntype="user" gaintype="user" biastype="user" actdim="1"/>
  </actuator>
  <sensor>
    <user dim="1" needstage="pos"/><user dim="1" needstage="vel"/><user dim="1" needstage="acc"/>
  </sensor>
</mujoco>
"""


INTEGRATORS = ("Euler", "RK4", "implicit", "implicitfast", "discrete")

# Compiled here, since a test cannot compile any more once it installed a foreign callback.
_HINGES = {
    (name, gravity): mujoco.MjModel.from_xml_string(HINGE.format(integrator=name, gravity=gravity))
    for name in INTEGRATORS
    for gravity in ("0", "-9.81")
}
_RICH = {name: mujoco.MjModel.from_xml_string(RICH.format(integrator=name)) for name in INTEGRATORS}


def hinge(integrator="Euler", gravity="-9.81"):
    return fresh(_HINGES[integrator, gravity])


def rich(integrator="Euler"):
    return fresh(_RICH[integrator])


def pair(xml):
    return fresh(mujoco.MjModel.from_xml_string(xml))


def fresh(model):
    own = copy.copy(model)
    return own, mujoco.MjData(own)


def symbols():
    return {name: exported_pointer(kind).value for name, kind in KINDS.items()}


class Counter:
    """Counts calls per kind, with neutral results."""

    def __init__(self):
        self.calls = dict.fromkeys(KINDS, 0)

    def hook(self, kind):
        value = 1.0 if kind == "act_gain" else 0.0

        def pair_hook(model, data):
            self.calls[kind] += 1

        def sensor_hook(model, data, stage):
            self.calls[kind] += 1

        def filter_hook(model, data, geom1, geom2):
            self.calls[kind] += 1
            return 0

        def act_hook(model, data, index):
            self.calls[kind] += 1
            return value

        def time_hook():
            self.calls[kind] += 1
            return float(self.calls[kind])

        shapes = {
            "sensor": sensor_hook,
            "contactfilter": filter_hook,
            "time": time_hook,
            "control": pair_hook,
            "passive": pair_hook,
        }
        return shapes.get(kind, act_hook)

    def hook_all(self, route):
        for kind in KINDS:
            route.set(kind, self.hook(kind))


def step(route, count=1):
    """What an env does around the engine's step, without its roll-back."""
    for _ in range(count):
        with route.entered("step"):
            mujoco.mj_step(route.model, route.data)
        if route.parked:
            raise route.take()


def set_bare(kind, pointer):
    """Writes the exported pointer as C code would, past the binding."""
    address = ctypes.cast(pointer, ctypes.c_void_p).value if pointer is not None else None
    exported_pointer(KINDS[kind]).value = address
