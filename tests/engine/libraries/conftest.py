"""Native plugin libraries, compiled against the headers of the installed engine."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from pathlib import Path

import mujoco
import pytest

SOURCE = Path(__file__).with_name("counter.c")
WHEEL = Path(mujoco.__file__).parent
_NUMBERS = itertools.count()

MODEL = """
<mujoco>
  <extension><plugin plugin="{name}"><instance name="c"/><instance name="d"/></plugin></extension>
  <worldbody><body><joint/><geom size=".1"/></body></worldbody>
  <sensor><plugin plugin="{name}" instance="c"/><plugin plugin="{name}" instance="d"/></sensor>
</mujoco>
"""


@pytest.fixture
def name():
    """A plugin name that nothing has."""
    return f"test.counter{os.getpid()}x{next(_NUMBERS)}"


@pytest.fixture
def build(tmp_path):
    """Compiles a plugin library: ``build(name, gain)``."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    (engine,) = WHEEL.glob("libmujoco.so.*")

    def compile_(name, gain=1.0, *flags, link=engine, file=None):
        out = file or tmp_path / f"lib{name}-{gain:g}-{next(_NUMBERS)}.so"
        defines = [f'-DNAME="{name}"', f"-DGAIN={gain}", *flags]
        command = [compiler, "-shared", "-fPIC", f"-I{WHEEL / 'include'}", *defines, str(SOURCE)]
        links = [str(link), f"-Wl,-rpath,{WHEEL}"] if link else []
        subprocess.run([*command, "-o", str(out), *links], check=True, timeout=60)
        return out

    return compile_


@pytest.fixture
def run():
    """The sensors of a plugin after 5 steps."""

    def sensors(name):
        model = mujoco.MjModel.from_xml_string(MODEL.format(name=name))
        data = mujoco.MjData(model)
        for _ in range(5):
            mujoco.mj_step(model, data)
        return list(data.sensordata)

    return sensors
