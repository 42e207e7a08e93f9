"""A small real model."""

from __future__ import annotations

import mujoco
import pytest

XML = """
<mujoco>
  <option timestep="0.002" integrator="{integrator}"/>
  <worldbody>
    <body pos="0 0 1">
      <joint name="hinge" type="hinge" axis="0 1 0" damping="0.1"/>
      <geom name="pole" type="capsule" size="0.02" fromto="0 0 0 0.5 0 0"/>
    </body>
  </worldbody>
  <actuator><motor name="hinge" joint="hinge"/></actuator>
</mujoco>
"""


@pytest.fixture
def model():
    return mujoco.MjModel.from_xml_string(XML.format(integrator="Euler"))


@pytest.fixture
def rk4_model():
    return mujoco.MjModel.from_xml_string(XML.format(integrator="RK4"))


@pytest.fixture
def data(model):
    return mujoco.MjData(model)
