"""A model on which every callback kind is called, and one of it without llvmlite."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import mujoco

from tests.architecture.source import ROOT

XML = """
<mujoco>
  <option integrator="{integrator}"/>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body pos="0 0 .05">
      <freejoint/>
      <geom name="ball" size=".1"/>
    </body>
    <body pos="2 0 1">
      <joint name="j" axis="0 1 0"/>
      <geom size=".1" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <actuator>
    <motor name="m" joint="j"/>
    <general name="u" joint="j" dyntype="user" gaintype="user" biastype="user" actdim="1"/>
  </actuator>
  <sensor>
    <user dim="1" needstage="acc"/>
  </sensor>
</mujoco>
"""

# Run in a process of its own, where nothing is imported yet.
_WITHOUT_FRAMES = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "llvmlite" else find(name, *more)
"""


def pair(integrator: str = "Euler"):
    model = mujoco.MjModel.from_xml_string(XML.format(integrator=integrator))
    return model, mujoco.MjData(model)


def run_without_frames(code: str, directory: Path) -> str:
    """What a script prints where the extra ``fast`` is not found."""
    return run(_WITHOUT_FRAMES + textwrap.dedent(code), directory)


def run(code: str, directory: Path) -> str:
    """What a script prints in a process of its own."""
    ended = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(code)],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout
