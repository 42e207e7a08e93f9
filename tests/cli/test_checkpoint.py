"""The commands about checkpoints: checkpoint, run --restore, state, set, diff."""

from __future__ import annotations

import json

import pytest

from mjhost import MujocoEnv
from mjhost.checkpoint import Checkpoint
from mjhost.models import path

COUNTER = """
from mjhost import Plugin

class Counter(Plugin):
    def load(self, model, data):
        self.count = 0

    def pre_step(self, model, data):
        self.count += 1
        data.ctrl[0] = 0.01 * self.count
"""
KEEPING = """
    def save_state(self):
        return {"count": self.count}

    def load_state(self, state):
        self.count = state["count"]
"""


@pytest.fixture
def kept(mjhost, tmp_path):
    """A checkpoint of the humanoid after half a second."""
    file = tmp_path / "kept.ckpt"
    assert mjhost("checkpoint", "humanoid", "--seconds", "0.5", "-o", str(file)).status == 0
    return file


def test_a_run_that_was_stopped_and_continued_is_the_one_that_never_stopped(mjhost, kept, tmp_path):
    whole, end = tmp_path / "whole.ckpt", tmp_path / "end.ckpt"
    words = ["--seconds", "1", "--realtime", "0"]
    assert mjhost("checkpoint", "humanoid", "--seconds", "1", "-o", str(whole)).status == 0
    ran = mjhost(
        "run", "humanoid", "--restore", str(kept), *words, "--checkpoint-at-exit", str(end)
    )
    assert ran.status == 0
    same = mjhost("diff", str(whole), str(end))
    assert (same.status, same.out) == (0, "nothing differs\n")


def test_diff_names_what_differs_and_says_so_in_its_status(mjhost, kept, tmp_path):
    other = tmp_path / "other.ckpt"
    set_ = mjhost("set", str(kept), "joint.waist_yaw.qpos=0.3", "option.timestep=0.001", "-o",
                  str(other))  # fmt: skip
    assert set_.out.splitlines() == ["joint.waist_yaw.qpos 0.3", "option.timestep 0.001"]
    found = mjhost("diff", str(kept), str(other), "--json")
    assert found.status == 1
    assert [(row["part"], row["name"]) for row in found.json] == [
        ("state", "joint.waist_yaw.qpos"), ("option", "timestep"),
    ]  # fmt: skip


def test_diff_of_two_models_goes_object_by_object(mjhost, tmp_path):
    text = path("pendulum").read_text()
    (tmp_path / "a.xml").write_text(text)
    assert mjhost("diff", "pendulum", str(tmp_path / "a.xml")).status == 0
    (tmp_path / "a.xml").write_text(text.replace('name="rod"', 'name="rod" group="3"'))
    found = mjhost("diff", "pendulum", str(tmp_path / "a.xml"))
    assert found.status == 1
    assert "geom rod.group" in found.out


def test_state_shows_names_and_values(mjhost, kept):
    record = mjhost("state", str(kept), "--json").json
    assert record["steps"] == 100
    assert record["exact"] is True
    assert len(record["values"]["joint.root.qpos"]) == 7
    one = mjhost("state", str(kept), "joint.root", "option.timestep")
    assert [line.split()[0] for line in one.out.splitlines()] == [
        "joint.root.qpos", "joint.root.qvel", "option.timestep",
    ]  # fmt: skip
    whole = mjhost("state", str(kept), "qpos", "--json").json
    assert len(whole["values"]["qpos"]) == 28


def test_state_shows_the_wrenches(mjhost, tmp_path):
    file = tmp_path / "pushed.ckpt"
    with MujocoEnv(path("humanoid")) as env:
        env.apply_wrench("pelvis", (1, 2, 3), (4, 5, 6), name="push")
        env.checkpoint().save(file)
    shown = mjhost("state", str(file), "wrench.pelvis")
    assert shown.out == "wrench.pelvis.push 1.0 2.0 3.0 4.0 5.0 6.0\n"


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["state", "FILE", "joint.waist"], 1, "did you mean"),
        (["set", "FILE", "joint.wasit_yaw.qpos=1"], 1, "did you mean 'joint.waist_yaw.qpos'"),
        (["set", "FILE", "joint.waist_yaw.qpos=1,2"], 2, "has 1 numbers, got 2"),
        (["set", "FILE", "joint.waist_yaw.qpos=nan"], 1, "must be finite"),
        (["set", "FILE", "joint.waist_yaw.qpos"], 2, "NAME=VALUE"),
        (["set", "FILE", "joint.waist_yaw.qpos=far"], 2, "needs numbers"),
        (["set", "FILE", "joint.root.qpos=0,0,1,0,0,0,0"], 2, "must not be zero"),
        (["set", "FILE", "option.timestep=0"], 1, "timestep"),
        (["run", "pendulum", "--restore", "FILE", "--steps", "3"], 1, "of another model"),
        (["diff", "FILE", "humanoid"], 2, "one of each"),
        (["checkpoint", "demo", "-o", "FILE", "--steps", "1", "--seconds", "1"], 2, "one limit"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_line_and_the_file_stays(mjhost, kept, words, status, told):
    before = kept.read_bytes()
    done = mjhost(*[str(kept) if word == "FILE" else word for word in words])
    assert done.status == status
    assert told in done.error
    assert kept.read_bytes() == before


def test_a_damaged_file_is_called_that(mjhost, kept):
    content = bytearray(kept.read_bytes())
    content[len(content) // 2] ^= 1
    kept.write_bytes(content)
    for words in (["state", str(kept)], ["diff", str(kept), str(kept)]):
        done = mjhost(*words)
        assert done.status == 1
        assert "checksum" in done.error


@pytest.mark.parametrize("says", [True, False])
def test_who_makes_a_checkpoint_inexact_is_told(mjhost, tmp_path, says):
    (tmp_path / "counter.py").write_text(COUNTER + (KEEPING if says else ""))
    file = tmp_path / "c.ckpt"
    words = ["--plugins", str(tmp_path / "counter.py"), "--steps", "20", "-o", str(file), "--json"]
    done = mjhost("checkpoint", "pendulum", *words)
    assert json.loads(done.out)["exact"] is says
    assert ("inexact" in done.err) is not says
    assert Checkpoint.load(file).exact is says


def test_a_run_that_ends_with_a_fault_keeps_the_state_before_it(mjhost, tmp_path):
    (tmp_path / "bad.py").write_text(COUNTER.replace("+= 1", "+= 1 / (5 - self.count)"))
    file = tmp_path / "c.ckpt"
    done = mjhost("run", "pendulum", "--plugins", str(tmp_path / "bad.py"), "--realtime", "0",
                  "--steps", "5000", "--checkpoint-at-exit", str(file))  # fmt: skip
    assert done.status in (0, 3)
    assert Checkpoint.load(file).counters.steps >= 1
