"""One class, run by both paths on twin data."""

from __future__ import annotations

import ctypes
import itertools
import os

import mujoco
import numpy as np

from mjhost import layout
from mjhost.engine import declaration, registry

SERIAL = itertools.count()
ROOM = 48  # numbers of userdata

SCENE = f"""
<mujoco>
  <size nuserdata="{ROOM}"/>
  <extension>
    <plugin plugin="{{name}}"><instance name="it">{{config}}</instance></plugin>
  </extension>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="ball" pos="0 0 0.09">
      <plugin instance="it"/>
      <freejoint/><geom name="ball" size="0.1"/><site name="tip" pos="0.1 0 0"/>
      <body name="arm" pos="0.3 0 0.5">
        <joint name="hinge" axis="0 1 0"/>
        <geom name="arm" type="capsule" fromto="0 0 0 0 0 0.3" size="0.02"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def unique(stem="compiled"):
    """A plugin name that is not taken."""
    return f"test.{stem}.{os.getpid()}.{next(SERIAL)}"


def declared(cls, capabilities=("passive",), **options):
    """A declaration that is not registered."""
    return declaration.declare(unique(), cls, capabilities, compiled=True, **options)


class Twins:
    """A registered class, a model with one instance of it, and two data.

    ``compiled`` runs the machine code, ``python`` the source; both begin where ``set`` puts them.
    """

    def __init__(self, cls, **config):
        self.name = unique()
        self.entry = registry.register_plugin(
            declaration.declare(self.name, cls, ("passive",), compiled=True)
        )
        keys = "".join(f'<config key="{key}" value="{value}"/>' for key, value in config.items())
        self.model = mujoco.MjModel.from_xml_string(SCENE.format(name=self.name, config=keys))
        self.compiled = mujoco.MjData(self.model)
        self.python = mujoco.MjData(self.model)
        for data in (self.compiled, self.python):
            mujoco.mj_forward(self.model, data)
        self._model = layout.address_of(self.model, "mjModel")
        self._compiled = layout.address_of(self.compiled, "mjData")
        self._python = layout.address_of(self.python, "mjData")
        prototype = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int
        )
        entries = self.entry.lives.compiled.entries
        self._entries = {name: prototype(address) for name, address in entries.items()}

    def record(self, data):
        """What mjhost keeps for the instance of a data."""
        return self.entry.lives.known(layout.address_of(data, "mjData"), 0)

    def set(self, values):
        """Puts numbers into the userdata of both."""
        for data in (self.compiled, self.python):
            data.userdata[:] = 0.0
            data.userdata[: len(values)] = values

    def run_compiled(self, method="compute"):
        """The status of the machine code."""
        return self._entries[method](self._model, self._compiled, 0, 4)

    def run_python(self, method="compute"):
        """What the source raises, or ``None``."""
        record = self.record(self.python)
        more = (4,) if method == "compute" else ()
        try:
            getattr(record.obj, method)(record.model, record.data, 0, *more)
        except Exception as error:
            return error
        return None

    def both(self, values=(), method="compute"):
        """Runs both on the same values; their userdata and whether both, or none, raised."""
        self.set(values)
        status, error = self.run_compiled(method), self.run_python(method)
        assert status == (0 if error is None else 1), (status, error, list(values))
        return self.compiled.userdata, self.python.userdata, error

    def agree(self, values=(), method="compute"):
        """Asserts that both leave the same bits, NaN included; returns them."""
        mine, theirs, error = self.both(values, method)
        if error is None:
            assert_same_bits(mine, theirs, values)
            assert_same_bits(self.compiled.qfrc_passive, self.python.qfrc_passive, values)
        return mine


def assert_same_bits(mine, theirs, values=()):
    """Bit for bit, but for the sign and payload of a NaN."""
    nan = np.isnan(mine) & np.isnan(theirs)
    same = (mine.view(np.int64) == theirs.view(np.int64)) | nan
    assert same.all(), [(k, mine[k], theirs[k], list(values)) for k in np.flatnonzero(~same)]
