"""Arguments that the engine takes, for each of its functions that ``mj`` has."""

from __future__ import annotations

import ctypes

import mujoco
import numpy as np

from mjhost.engine import views
from mjhost.engine.views import checks, functions
from mjhost.engine.views.functions import mj
from tests.engine.views.scenes import stepped

TABLE = functions.table()


def struct_arguments(scene="rich"):
    model, data = stepped(scene)
    model_view = views.model_view(model._address)
    return (model, data), (model_view, views.data_view(data._address, model_view))


# Arguments that have to be of some kind beyond their range.
CHOSEN = {
    ("mju_decodePyramid", "dim"): 3,
    ("mju_encodePyramid", "dim"): 3,
    ("mj_getPluginConfig", "plugin_id"): 0,
    ("mj_rayFlex", "flexid"): 0,
    ("mj_actuatorInputName", "input"): 0,
    ("mj_rayHfield", "geomid"): 1,
    ("mj_rayMesh", "geomid"): 4,
    ("mju_euler2Quat", "seq"): "xyZ",
    ("mju_Halton", "base"): 3,
    ("mju_rayGeom", "geomtype"): int(mujoco.mjtGeom.mjGEOM_BOX),
    ("mju_raySkin", "nvert"): 3,
    ("mj_getState", "sig"): int(mujoco.mjtState.mjSTATE_FULLPHYSICS),
    ("mju_bandDiag", "ntotal"): 3,
}


def valid(spec, model, data):
    """Arguments that the engine takes for a function, the same ones each time."""
    found = [simple(spec, parameter, model, data) for parameter in spec.parameters]
    for index, parameter in enumerate(spec.parameters):
        if parameter.kind == "array" and not parameter.absent:
            size = checks.evaluator(parameter.length)(found) or 12
            dtype = np.dtype(parameter.ctype)
            ones = np.linspace(0.5, 2.0, size) if dtype.kind == "f" else np.zeros(size)
            found[index] = ones.astype(dtype)
    if spec.name == "mj_getState":
        found[2] = np.zeros(mj.mj_stateSize(model, found[3]))
    if spec.name == "mju_boxQP":
        found[7] += 5  # the upper bounds
    return found


def simple(spec, parameter, model, data):
    if parameter.absent:
        return None
    if (spec.name, parameter.name) in CHOSEN:
        return CHOSEN[spec.name, parameter.name]
    if parameter.kind == "scalar":
        real = parameter.ctype in {ctypes.c_double, ctypes.c_float}
        return 0.5 if real else max(1, parameter.lowest or 0)
    return {"model": model, "data": data, "text": "hand", "array": None}[parameter.kind]
