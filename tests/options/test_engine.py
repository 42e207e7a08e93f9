"""No accepted value crashes, hangs or is refused by the engine; the engine says so itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import mujoco
import pytest

import mjhost
from mjhost.options import OptionBlock, descriptors, prepare_runtime_options

RUNS = Path(__file__).with_name("engine_runs.py")


def _walk(seed, count, tmp_path, timeout):
    # The package under test, wherever it comes from, also from another working directory.
    environment = {**os.environ, "PYTHONPATH": str(Path(mjhost.__file__).parents[1])}
    ended = subprocess.run(
        [sys.executable, RUNS, str(seed), str(count)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    last = "\n".join(ended.stderr.splitlines()[-3:])
    assert ended.returncode == 0, f"ended with {ended.returncode} after\n{last}"
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_no_accepted_option_crashes_or_hangs_the_engine(seed, tmp_path):
    tally = _walk(seed, 500, tmp_path, timeout=120)
    assert tally["fatal"] == []
    assert tally["accepted"] > 200
    assert tally["refused"] > 50


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10, 30))
def test_no_accepted_option_crashes_or_hangs_the_engine_in_a_long_walk(seed, tmp_path):
    assert _walk(seed, 5000, tmp_path, timeout=900)["fatal"] == []


CONTACT = """
<mujoco>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body pos="0 0 .09"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  </worldbody>
</mujoco>
"""
SPECIAL = ("ipc", "sleep", "fwd_inv", "inv_discrete", "island_disabled")


@pytest.mark.slow
def test_rules_between_fields_are_those_of_the_engine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = mujoco.MjModel.from_xml_string(CONTACT)
    block = OptionBlock(model.opt)
    bits = {field.name: field for field in descriptors()}
    wrong = []
    for integrator in range(5):
        for solver in range(3):
            for chosen in range(1 << len(SPECIAL)):
                flags = {name: bool(chosen >> i & 1) for i, name in enumerate(SPECIAL)}
                changes = {**flags, "integrator": integrator, "solver": solver}
                result = prepare_runtime_options(block.read(), changes, raise_on_error=False)
                if result.ok != _engine_runs(model, changes, bits):
                    wrong.append((result.ok, changes))
    assert wrong == []


def _engine_runs(model, changes, bits):
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    start = OptionBlock(model.opt).raw()
    model.opt.integrator = changes["integrator"]
    model.opt.solver = changes["solver"]
    for name in SPECIAL:
        if changes[name]:
            member = bits[name].member
            setattr(model.opt, member, getattr(model.opt, member) | bits[name].bit)
    try:
        mujoco.mj_step(model, data, nstep=2)
    except mujoco.FatalError:
        return False
    finally:
        OptionBlock(model.opt).restore(start)
    return True
