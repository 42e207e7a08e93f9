"""What the facts are measured with: raw callbacks, raw plugins, and scripts that may crash.

A raw plugin is a struct of thunks registered past mjhost: it shows what the engine calls, in its
order, with nothing of ours in between.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import mujoco
import numpy as np

from mjhost.engine.abi import structs
from mjhost.engine.abi.guard import no_exit
from mjhost.engine.abi.symbols import engine
from mjhost.layout import offset_of
from tests.conftest import CALLBACKS, SYMBOLS

MAJOR = int(mujoco.mj_versionString().split(".")[0])
ACTUATOR, SENSOR, PASSIVE, SDF = 1, 2, 4, 8
PROTOTYPES = {
    "sensor": ctypes.CFUNCTYPE(None, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int),
    "control": ctypes.CFUNCTYPE(None, ctypes.c_size_t, ctypes.c_size_t),
    "passive": ctypes.CFUNCTYPE(None, ctypes.c_size_t, ctypes.c_size_t),
    "contactfilter": ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_int
    ),
    "act_dyn": ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int),
    "act_gain": ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int),
    "act_bias": ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int),
    "time": ctypes.CFUNCTYPE(ctypes.c_double),
}
RETURNS = {"contactfilter": 0, "act_dyn": 0.0, "act_gain": 0.0, "act_bias": 0.0, "time": 0.0}

_ROOT = Path(__file__).parents[3]  # where `tests` is found
_numbers = itertools.count()
_kept = []


def fresh_name():
    """A plugin name that nobody has registered."""
    return f"test.fact{next(_numbers)}"


# -- callbacks -----------------------------------------------------------------------------------


@contextmanager
def callbacks(**functions):
    """Installs Python callbacks with the binding's setters; afterwards all is as before."""
    with _pointers_kept():
        for kind, function in functions.items():
            getattr(mujoco, f"set_mjcb_{kind}")(function)
        yield


@contextmanager
def raw_callbacks(**functions):
    """Installs C callbacks in the engine's pointers, as a compiled program does."""
    thunks = {kind: PROTOTYPES[kind](function) for kind, function in functions.items()}
    with _pointers_kept():
        for kind, thunk in thunks.items():
            SYMBOLS[f"mjcb_{kind}"].value = structs.address_of(thunk)
        yield {kind: structs.address_of(thunk) for kind, thunk in thunks.items()}


@contextmanager
def _pointers_kept():
    before = {kind: SYMBOLS[f"mjcb_{kind}"].value for kind in CALLBACKS}
    try:
        yield
    finally:
        for kind, pointer in before.items():
            if getattr(mujoco, f"get_mjcb_{kind}")() is not None:
                getattr(mujoco, f"set_mjcb_{kind}")(None)
            SYMBOLS[f"mjcb_{kind}"].value = pointer


def counting(counts, *kinds):
    """Callbacks that do nothing but count; the sensor's stages are counted apart."""

    def make(kind):
        def count(*arguments):
            counts[f"sensor{int(arguments[2])}" if kind == "sensor" else kind] += 1
            return RETURNS.get(kind)

        return count

    return {kind: make(kind) for kind in kinds or CALLBACKS}


def counted(function, *kinds):
    """How often each callback is called by ``function()``."""
    counts = Counter()
    with callbacks(**counting(counts, *kinds)):
        function()
    return counts


def order_of(function, *kinds):
    """The callbacks in the order in which ``function()`` calls them."""
    order = []

    class Order(Counter):
        def __setitem__(self, kind, value):
            order.append(kind)

    with callbacks(**counting(Order(), *kinds)):
        function()
    return order


# -- plugins -------------------------------------------------------------------------------------


class RawPlugin:
    """A plugin of thunks that log what the engine calls.

    ``log`` has one entry per call: the slot and what tells calls of it apart. A function given by
    slot name runs as well, and what it returns is returned; ``None`` instead of one leaves the slot
    null.
    """

    def __init__(self, capabilities, *, attributes=(), stage=3, state=0, outputs=1, **functions):
        self.name = fresh_name()
        self.log = []
        self._state, self._outputs = state, outputs
        self._functions = functions
        struct = structs.Plugin(name=self.name.encode(), needstage=stage)
        struct.capabilityflags = capabilities
        struct.nattribute = len(attributes)
        struct.attributes = (ctypes.c_char_p * max(1, len(attributes)))(
            *[name.encode() for name in attributes]
        )
        wanted = {"nstate", "init", "destroy", "copy", "reset", "compute"} | {*functions}
        wanted |= {"nsensordata"} if capabilities & SENSOR else set()
        for slot in wanted:
            if slot not in functions or functions[slot] is not None:
                thunk = structs.PLUGIN_PROTOTYPES[slot](self._logged(slot))
                setattr(struct, slot, structs.address_of(thunk))
                _kept.append(thunk)
        with no_exit() as said:
            self.slot = engine().register_plugin(struct)
        self.refusal = said.message
        _kept.extend((self, struct))

    def _logged(self, slot):
        function = self._functions.get(slot)
        default = {"nstate": self._state, "nsensordata": self._outputs, "init": 0}.get(slot)
        default = 0.0 if slot in {"sdf_distance", "sdf_staticdistance"} else default
        failed = -1 if slot == "init" else default

        def call(*arguments):
            try:
                self.log.append((slot, *arguments))
                return default if function is None else function(*arguments)
            except BaseException as error:
                self.log.append(("raised", slot, repr(error)))
                return failed

        return call

    @property
    def calls(self):
        """The slots that were called, in order."""
        return [entry[0] for entry in self.log]

    def count(self, slot):
        return self.calls.count(slot)


def plugin_word(data, instance=0):
    """``plugin_data[instance]``, read from the memory."""
    return _plugin_data(data, instance).value


def set_plugin_word(data, value, instance=0):
    _plugin_data(data, instance).value = value


def _plugin_data(data, instance):
    address = data if isinstance(data, int) else data._address
    array = ctypes.c_size_t.from_address(address + offset_of("mjData", "plugin_data")).value
    return ctypes.c_size_t.from_address(array + 8 * instance)


# -- models --------------------------------------------------------------------------------------


def compiled(xml, assets=None):
    """Model and data of MJCF text."""
    model = mujoco.MjModel.from_xml_string(xml, assets or {})
    return model, mujoco.MjData(model)


def state_of(model, data, spec=mujoco.mjtState.mjSTATE_INTEGRATION):
    state = np.empty(mujoco.mj_stateSize(model, int(spec)))
    mujoco.mj_getState(model, data, state, int(spec))
    return state


# -- scripts -------------------------------------------------------------------------------------


def run_script(script, *arguments, folder, timeout=60):
    """Runs ``script`` in a process of its own, which may die of it."""
    paths = [str(_ROOT), os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
        timeout=timeout,
        capture_output=True,
        text=True,
        check=False,
    )
