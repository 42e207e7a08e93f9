"""Save, 200 steps, restore, 200 steps: the same bytes, wherever it is restored."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mjhost import MujocoEnv
from mjhost.checkpoint import Checkpoint, compare
from tests.checkpoint.models import MATRIX, MUJOCO_4, digest, drive, scene

BEFORE, AFTER = 60, 200


@pytest.mark.parametrize("name", MATRIX)
def test_what_follows_a_restore_is_what_followed_the_checkpoint(name, tmp_path):
    with MujocoEnv(MATRIX[name]) as env:
        drive(env, 0, BEFORE)
        checkpoint = env.checkpoint()
        expected = drive(env, BEFORE, AFTER)
        env.restore(checkpoint)
        assert compare(checkpoint, env.checkpoint()) == [] or _only_session(checkpoint, env)
        assert drive(env, BEFORE, AFTER) == expected
        checkpoint.save(tmp_path / "it.ckpt")
    with MujocoEnv(MATRIX[name]) as fresh:
        fresh.restore(Checkpoint.load(tmp_path / "it.ckpt"))
        assert drive(fresh, BEFORE, AFTER) == expected


def _only_session(checkpoint, env) -> bool:
    """Session time goes on over a restore; nothing else may differ."""
    return [difference.name for difference in compare(checkpoint, env.checkpoint())] == [
        "session_time"
    ]


CONTINUE = """
import sys
from mjhost import MujocoEnv
from mjhost.checkpoint import Checkpoint
from tests.checkpoint.models import MATRIX, digest, drive
for name in sys.argv[2:]:
    with MujocoEnv(MATRIX[name]) as env:
        env.restore(Checkpoint.load(f"{sys.argv[1]}/{name}.ckpt"))
        print(digest(drive(env, 60, 200)))
"""


@pytest.mark.slow
def test_another_process_goes_on_to_the_same_bits(tmp_path, request):
    names = ["Euler-Newton", "RK4-CG", "delay", "tendon", "equality", "cloth", "pid"]
    expected = []
    for name in names:
        with MujocoEnv(MATRIX[name]) as env:
            drive(env, 0, BEFORE)
            env.checkpoint().save(tmp_path / f"{name}.ckpt")
            expected.append(digest(drive(env, BEFORE, AFTER)))
    done = subprocess.run(
        [sys.executable, "-c", CONTINUE, str(tmp_path), *names],
        cwd=request.config.rootpath,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout.split() == expected, done.stderr


SLEEPERS = scene(
    flag='sleep="enable"', world='<body pos="3 0 .1"><freejoint/><geom size=".1"/></body>'
)
IPC = """
<mujoco>
  <option timestep="0.005" integrator="discrete" solver="CG"><flag ipc="enable"/></option>
  <worldbody>
    <geom type="plane" size="3 3 .1"/>
    <flexcomp name="cloth" type="grid" count="5 5 1" spacing=".08 .08 .08" pos="0 0 .15" dim="2"
              radius=".01" mass=".5"><contact selfcollide="none"/></flexcomp>
  </worldbody>
  <sensor><clock/></sensor>
</mujoco>
"""


@pytest.mark.parametrize("model", [pytest.param(SLEEPERS, id="sleep"), pytest.param(IPC, id="ipc")])
def test_where_the_state_vector_is_not_enough_a_copy_is(model, tmp_path):
    with MujocoEnv(model) as env:
        drive(env, 0, 150)
        checkpoint = env.checkpoint()
        expected = drive(env, 150, AFTER)
        for _ in range(2):
            env.restore(checkpoint)
            assert drive(env, 150, AFTER) == expected
        with pytest.raises(ValueError, match=r"saving .* is not possible.*sleep"):
            checkpoint.save(tmp_path / "never.ckpt")
        assert not (tmp_path / "never.ckpt").exists()
        with MujocoEnv(model) as fresh:
            fresh.restore(checkpoint)
            assert drive(fresh, 150, AFTER) == expected


@pytest.mark.skipif(not MUJOCO_4, reason="springs yield since 4.0")
def test_the_rest_positions_of_plastic_springs_are_part_of_it():
    with MujocoEnv(MATRIX["Euler-Newton"]) as env:
        assert "plastic" in env.checkpoint().layout.names


def test_a_running_simulation_is_taken_at_a_boundary_and_goes_on():
    with MujocoEnv(MATRIX["Euler-Newton"], realtime=None) as env:
        with env.events.subscribe() as events:
            env.resume()
            checkpoints = [env.checkpoint() for _ in range(5)]
            env.restore(checkpoints[0])
            env.pause()
            kinds = [type(event).__name__ for event in events.drain()]
        assert kinds.count("CheckpointTaken") == 5
        assert kinds.count("CheckpointRestored") == 1
        steps = [checkpoint.counters.steps for checkpoint in checkpoints]
        assert steps == sorted(steps)
        env.restore(checkpoints[1])
        assert env.info.step_count == steps[1]
        assert env.data.time == checkpoints[1].time
