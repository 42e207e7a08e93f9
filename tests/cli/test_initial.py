"""``--initial-state``: joints by pair and by file."""

from __future__ import annotations

import json

import pytest
import typer

from mjhost import models
from mjhost.cli.initial import initial_states
from mjhost.cli.main import main
from tests.cli.models import write


def test_later_ones_are_on_top_of_earlier_ones(tmp_path):
    text = "knee: 0.3\nroot: {qpos: [0, 0, 1, 1, 0, 0, 0], qvel: [0, 0, 0, 0, 0, 1]}\n"
    file = write(tmp_path, text, "start.yaml")
    assert initial_states([]) is None
    states = initial_states([str(file), "knee=0.5", "ball=1,0,0,0"])
    assert states["knee"] == [0.5]
    assert states["ball"] == [1, 0, 0, 0]
    assert states["root"]["qvel"][-1] == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [("[1, 2]", "must map"), ("knee: [", "cannot be read"), ("1: 2", "must map"),
     ("#" * (1 << 20) + "##", "longer")],
)  # fmt: skip
def test_a_file_that_is_none_is_named(tmp_path, content, words):
    file = write(tmp_path, content, "start.yaml")
    with pytest.raises(typer.BadParameter, match=words) as refused:
        initial_states([str(file)])
    assert "start.yaml" in str(refused.value)


@pytest.mark.parametrize("text", ["knee=", "knee=x", "=1", "nothing.yaml"])
def test_a_pair_that_is_none_is_named(text):
    with pytest.raises(typer.BadParameter) as refused:
        initial_states([text])
    assert text in str(refused.value)


def test_a_run_starts_there_and_an_unknown_joint_ends_it(capsys, tmp_path):
    kept = tmp_path / "end.ckpt"
    words = ["run", str(models.path("pendulum")), "--steps", "1", "--realtime", "0", "--headless"]
    assert main([*words, "-i", "hinge=0.5", "--checkpoint-at-exit", str(kept)]) == 0
    assert main(["state", str(kept), "joint.hinge.qpos", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert shown["values"]["joint.hinge.qpos"] == pytest.approx(0.5, abs=1e-3)
    assert main([*words, "-i", "hing=0.5"]) == 1
    assert "did you mean 'hinge'" in capsys.readouterr().err
