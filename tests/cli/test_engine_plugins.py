"""``mjhost plugins --engine``: what is registered, and the way into a model."""

from __future__ import annotations

import itertools
import os

import mujoco
import pytest

from mjhost.cli.exits import ExitStatus
from tests.cli.models import write

_NUMBERS = itertools.count()
DECLARED = """
from mjhost import engine

@engine.plugin({name!r}, capabilities=("actuator",))
class Mine:
    gain: float = engine.attribute(2.0, minimum=0)

    def compute(self, model, data, instance, capability):
        {body}
"""
MODEL = """
<mujoco>
  <extension><plugin plugin="{name}"><instance name="mine"/></plugin></extension>
  <worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody>
  <actuator><plugin name="motor" joint="j" instance="mine"/></actuator>
</mujoco>
"""


@pytest.fixture
def declared(tmp_path):
    """A source file that declares an engine plugin, and a model that uses it."""

    def make(body="data.actuator_force[0] = self.gain"):
        name = f"test.cli{os.getpid()}x{next(_NUMBERS)}"
        source = write(tmp_path, DECLARED.format(name=name, body=body), f"{name}.py")
        return name, str(source), str(write(tmp_path, MODEL.format(name=name), f"{name}.xml"))

    return make


def test_everything_that_is_registered_is_listed(mjhost):
    outcome = mjhost("plugins", "--engine")
    assert (outcome.status, outcome.err) == (ExitStatus.OK, "")
    lines = outcome.out.splitlines()
    assert lines[0] == f"MuJoCo {mujoco.mj_versionString()}, engine plugins:"
    assert lines[1].split()[:3] == ["SLOT", "NAME", "CAPABILITIES"]
    (pid,) = [line for line in lines if line.startswith("0 ")]
    assert pid.split()[:5] == ["0", "mujoco.pid", "actuator", "-", "native"]
    assert "kp ki kd imax slewmax" in pid
    assert any(line.startswith("decoder") and ".obj" in line for line in lines)


def test_named_source_is_imported_and_its_origin_shown(mjhost, declared):
    name, source, _ = declared()
    outcome = mjhost("plugins", "--engine", "-p", source)
    (row,) = [line for line in outcome.out.splitlines() if f" {name} " in line]
    assert row.endswith(f"Mine ({source}:4)")
    assert "gain=2.0" in row


def test_trace_goes_from_the_declaration_to_the_calls(mjhost, declared):
    name, source, model = declared()
    outcome = mjhost("plugins", "--engine", "-p", source, "--trace", model)
    assert outcome.status == ExitStatus.OK
    told = dict(line.split(maxsplit=1) for line in outcome.out.split("TRACE")[1].splitlines()[1:5])
    assert told["declaration"] == f"{name}, Mine ({source}:4)"
    assert told["instance"].startswith("0 'mine'")
    assert told["elements"] == "actuator motor"
    assert "calls per step  compute (actuator) 1 (measured)" in outcome.out
    assert "MJX runs no engine plugin" in outcome.out


def test_record_has_the_same(mjhost, declared):
    name, source, model = declared()
    report = mjhost("plugins", "--engine", "-p", source, "--trace", model, "--json").json
    (plugin,) = [plugin for plugin in report["registered"]["plugins"] if plugin["name"] == name]
    (instance,) = report["trace"]["instances"]
    assert instance["slot"] == plugin["slot"]
    assert instance["calls"] == [{"method": "compute (actuator)", "count": 1, "basis": "measured"}]
    assert report["trace"]["support"][0]["answers"]["mj_step"] == {"runs": True, "reason": ""}
    assert mjhost("plugins", "--engine", "--json").json["trace"] is None


def test_plugin_that_fails_in_the_trace_is_status_one(mjhost, declared):
    _, source, model = declared("1 / (data.time < 0.001)")
    outcome = mjhost("plugins", "--engine", "-p", source, "--trace", model)
    assert outcome.status == ExitStatus.FAILED
    assert "ZeroDivisionError" in outcome.out
    assert outcome.error == "an engine plugin of the model fails; see above"


def test_directory_of_libraries_is_loaded_and_each_file_told(mjhost, tmp_path):
    (tmp_path / "notes.txt").write_text("no library")
    outcome = mjhost("plugins", "--engine", "-p", str(tmp_path))
    assert outcome.status == ExitStatus.OK
    assert f"library {tmp_path / 'notes.txt'}: skipped, it is no shared library" in outcome.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--trace", "pendulum"], "needs --engine"),
        (["--engine", "--watch"], "exclude"),
        (["pendulum", "--engine"], "did you mean --trace pendulum?"),
    ],
)
def test_words_that_do_not_go_together_are_a_usage_error(words, said, mjhost):
    outcome = mjhost("plugins", *words)
    assert outcome.status == ExitStatus.USAGE
    assert said in outcome.error


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("nowhere.py", "there is no file"),
        ("no.such.module", "cannot be imported: ModuleNotFoundError"),
        ("nowhere.so", "there is no such file"),
    ],
)
def test_what_cannot_be_brought_in_is_one_line(named, said, mjhost):
    outcome = mjhost("plugins", "--engine", "-p", named)
    assert outcome.status == ExitStatus.FAILED
    assert said in outcome.error
    assert outcome.out == ""


def test_model_without_engine_plugins_says_so(mjhost):
    assert "has no engine plugin" in mjhost("plugins", "--engine", "--trace", "pendulum").out
