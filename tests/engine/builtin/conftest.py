"""Both paths of the bundled plugins, and runs to the last bit."""

import importlib.util
import types

import mujoco
import numpy as np
import pytest

from mjhost.engine.builtin import choice

HAS_NUMBA = importlib.util.find_spec("numba") is not None
NEEDS_NUMBA = pytest.mark.skipif(not HAS_NUMBA, reason="the extra `fast` is not installed")


@pytest.fixture(params=["python", pytest.param("compiled", marks=NEEDS_NUMBA)])
def path(request):
    """The test runs with Python's methods, and with compiled ones."""
    choice.use(compiled=request.param == "compiled")
    yield request.param
    choice.use(compiled=False)


@pytest.fixture
def on_both_paths():
    """Calls a function on each path and returns both results."""
    if not HAS_NUMBA:
        pytest.skip("the extra `fast` is not installed")

    def run(function, *arguments):
        results = []
        for compiled in (False, True):
            choice.use(compiled=compiled)
            results.append(function(*arguments))
        return results

    yield run
    choice.use(compiled=False)


def _state(model, data):
    size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_INTEGRATION)
    state = np.empty(size)
    mujoco.mj_getState(model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
    return state


def _run(xml, controls, prepare=None):
    """Every state, force and reading of a run, in bytes that can be compared."""
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    if prepare is not None:
        prepare(model, data)
    rows = []
    for control in controls:
        data.ctrl[:] = control
        mujoco.mj_step(model, data)
        parts = (_state(model, data), data.actuator_force, data.qfrc_passive, data.sensordata)
        rows.append(np.concatenate(parts))
    return np.array(rows)


@pytest.fixture
def runs():
    """``runs.state(model, data)``, ``runs.run(xml, controls, prepare)``."""
    return types.SimpleNamespace(state=_state, run=_run)
