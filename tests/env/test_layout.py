from __future__ import annotations

import ctypes
import math

import mujoco
import numpy as np
import pytest

from mjhost import layout
from mjhost.errors import InvalidArgumentError, UnsupportedEngineError

XML = """
<mujoco><worldbody>
  <geom type="plane" size="1 1 1"/>
  <body pos="0 0 .2"><freejoint/><geom name="g" size=".1"/></body>
</worldbody></mujoco>
"""


@pytest.fixture
def pair():
    model = mujoco.MjModel.from_xml_string(XML)
    return model, mujoco.MjData(model)


@pytest.mark.parametrize(("struct", "index"), [("mjModel", 0), ("mjData", 1)])
def test_every_array_of_the_bindings_lies_where_the_layout_says(pair, struct, index):
    owner = pair[index]
    mirror = layout.structure(struct).from_address(layout.address_of(owner, struct))
    compared = 0
    for name, kind in layout.structure(struct)._fields_:
        array = getattr(owner, name, None)
        filled = kind is ctypes.c_void_p and isinstance(array, np.ndarray) and array.size
        if filled and getattr(mirror, name):  # arena arrays are null while unused
            assert getattr(mirror, name) == array.ctypes.data, name
            compared += 1
    assert compared > 40


def test_every_scalar_of_the_data_reads_as_the_bindings_read_it(pair):
    model, data = pair
    mujoco.mj_forward(model, data)
    mirror = layout.structure("mjData").from_address(layout.address_of(data, "mjData"))
    names = [
        n for n, k in layout.structure("mjData")._fields_ if issubclass(k, ctypes._SimpleCData)
    ]
    compared = [n for n in names if isinstance(getattr(data, n, None), (int, float, bool))]
    assert {"time", "ncon", "nefc", "narena"} <= set(compared)
    for name in compared:
        value = getattr(mirror, name)
        assert (value or 0) == getattr(data, name), name


def test_the_option_struct_has_the_size_of_both_supported_engines():
    assert layout.size_of("mjOption") == 304


def test_a_cell_writes_through_to_the_object(pair):
    _, data = pair
    cell = layout.double_cell(data, "mjData", "time")
    cell.value = 1.25
    assert data.time == 1.25
    data.time = 2.5
    assert cell.value == 2.5


def test_a_cell_over_an_option_of_a_model_is_the_models(pair):
    model, _ = pair
    cell = layout.double_cell(model.opt, "mjOption", "timestep")
    model.opt.timestep = 0.0625
    assert cell.value == 0.0625


def test_a_cell_over_nan_is_accepted(pair):
    _, data = pair
    data.time = math.nan
    assert math.isnan(layout.double_cell(data, "mjData", "time").value)


def test_an_unknown_member_is_refused():
    with pytest.raises(UnsupportedEngineError, match="no member 'tine'"):
        layout.offset_of("mjData", "tine")


def test_an_unknown_struct_is_refused():
    with pytest.raises(UnsupportedEngineError, match="'mjNothing'"):
        layout.structure("mjNothing")


def test_a_model_is_copied_in_place(pair):
    model, _ = pair
    pristine = mujoco.MjModel.from_xml_string(XML)
    where, mass = model.body_mass.ctypes.data, model.body_mass
    model.body_mass[:] = 7
    model.opt.timestep = 0.25
    model.vis.map.znear = 0.5
    layout.copy_model_into(model, pristine)
    assert model.body_mass.ctypes.data == where
    assert mass.tobytes() == pristine.body_mass.tobytes()
    assert model.opt.timestep == 0.002
    assert image(model) == image(pristine)


def test_a_model_of_other_sizes_is_not_copied(pair):
    model, _ = pair
    other = mujoco.MjModel.from_xml_string(XML.replace('name="g"', 'name="longer"'))
    before = image(model)
    with pytest.raises(InvalidArgumentError, match="nnames"):
        layout.copy_model_into(model, other)
    assert image(model) == before


def image(model) -> bytes:
    content = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, content)
    return content.tobytes()
