"""``mjhost plugins``: every way in which a plugin can fail is there to be seen."""

from __future__ import annotations

import pytest

from mjhost.cli.exits import ExitStatus
from mjhost.cli.plugin_report import time_text
from tests.cli.models import EXPLOSIVE, write
from tests.cli.process import Terminal

GOOD = """
from mjhost import Plugin
class Good(Plugin):
    def control(self, model, data): pass
    def post_step(self, model, data): pass
"""
# What is overridden, with what arguments: it raises.
RAISING = {
    "load": "model, data",
    "activate": "",
    "pre_step": "model, data",
    "control": "model, data",
    "passive": "model, data",
    "last_stage": "model, data",
    "post_step": "model, data",
    "reset": "",
    "on_resume": "",
    "on_pause": "",
    "close": "",
}
PHASES = {"on_resume": "resume", "on_pause": "pause"}
HEAD = "from mjhost import Plugin\nclass Bad(Plugin):\n    "
TYPED = "from dataclasses import dataclass\n" + HEAD
BROKEN = {
    "syntax error": ("class Bad(", "cannot be imported: SyntaxError"),
    "import error": ("import nowhere", "No module named 'nowhere'"),
    "exit at import": ("raise SystemExit(5)", "SystemExit: 5"),
    "wrong signature": (f"{HEAD}def control(self): pass", "must accept (model, data)"),
    "missing config": (
        f"{TYPED}@dataclass\n    class Config:\n        gain: float",
        "key 'gain' is missing, expected float",
    ),
    "raising constructor": (f"{HEAD}def __init__(self, *a): raise OSError(7)", "OSError: 7"),
}


def _raising(hook: str) -> str:
    arguments = ", ".join(filter(None, ["self", RAISING[hook]]))
    body = f"raise RuntimeError('{hook} it is')"
    return f"from mjhost import Plugin\nclass Bad(Plugin):\n    def {hook}({arguments}): {body}\n"


def test_good_plugin_is_shown_with_its_hooks(mjhost, tmp_path):
    outcome = mjhost("plugins", "pendulum", "--plugins", str(write(tmp_path, GOOD, "good.py")))
    assert (outcome.status, outcome.err) == (ExitStatus.OK, "")
    head, header, row, second = outcome.out.splitlines()
    assert head.endswith("100 steps")
    assert header.split() == [
        *("NAME", "STATE", "RATE", "LOAD", "HOOK", "CALLS", "MEAN", "LONGEST", "TYPE")
    ]
    assert row.split()[:3] == ["Good", "ready", "-"]
    assert row.split()[5:7] == ["control", "100"]
    assert row.endswith("good.py:Good")
    assert second.split()[:2] == ["post_step", "100"]


def test_record_has_calls_and_times(mjhost, tmp_path):
    report = mjhost("plugins", "pendulum", "-p", str(write(tmp_path, GOOD, "good.py")), "--json")
    (plugin,) = report.json["plugins"]
    assert (plugin["name"], plugin["state"], plugin["rate_hz"]) == ("Good", "ready", None)
    assert plugin["hooks"]["control"]["calls"] == 100
    assert 0 < plugin["hooks"]["control"]["ema"] <= plugin["hooks"]["control"]["max"]
    assert report.json["failures"] == []
    assert (report.json["steps"], report.json["trial_failure"]) == (100, None)


@pytest.mark.parametrize("hook", RAISING)
def test_raising_hook_is_shown_with_its_phase_and_leaves_the_others(hook, mjhost, tmp_path):
    bad, good = write(tmp_path, _raising(hook), "bad.py"), write(tmp_path, GOOD, "good.py")
    outcome = mjhost("plugins", "pendulum", "-p", str(bad), "-p", str(good), "--json")
    assert outcome.status == ExitStatus.FAILED
    (failure,) = outcome.json["failures"]
    assert (failure["name"], failure["phase"]) == ("Bad", PHASES.get(hook, hook))
    assert failure["error"] == f"RuntimeError: {hook} it is"
    assert f"in {hook}" in failure["traceback"]
    assert outcome.json["plugins"][1]["state"] == "ready"


@pytest.mark.parametrize("way", BROKEN)
def test_plugin_that_cannot_be_built_is_shown_with_the_reason(way, mjhost, tmp_path):
    text, said = BROKEN[way]
    bad, good = write(tmp_path, text, "bad.py"), write(tmp_path, GOOD, "good.py")
    outcome = mjhost("plugins", "pendulum", "-p", f"{bad}:Bad", "-p", str(good))
    assert outcome.status == ExitStatus.FAILED
    lines = outcome.out.splitlines()
    assert " failed " in lines[2]
    assert " ready " in lines[3]
    (told,) = [line for line in lines if line.startswith("failed: Bad, load: ")]
    assert said in told


def test_traceback_comes_with_debug_only(mjhost, tmp_path):
    words = ("plugins", "pendulum", "-p", str(write(tmp_path, _raising("control"), "bad.py")))
    short, long = mjhost(*words).out, mjhost(*words, "--debug").out
    assert "Traceback" not in short
    assert "Traceback" in long
    assert "raise RuntimeError('control it is')" in long


def test_model_that_diverges_is_told_apart_from_plugins(mjhost, tmp_path):
    model = str(write(tmp_path, EXPLOSIVE))
    outcome = mjhost("plugins", model, "-p", str(write(tmp_path, GOOD, "good.py")))
    assert outcome.status == ExitStatus.FAILED
    assert "failed:" not in outcome.out
    assert "stopped: " in outcome.out
    assert "diverged" in outcome.out


def test_without_plugins_those_of_the_demo_are_shown(mjhost):
    report = mjhost("plugins", "--json").json
    assert [plugin["name"] for plugin in report["plugins"]] == [
        "JointImpedance",
        "Wind",
        "EnergyMonitor",
    ]


@pytest.mark.parametrize(("flags", "said"), [([], "needs a terminal"), (["--json"], "exclude")])
def test_watch_needs_somebody_who_looks(flags, said, mjhost):
    outcome = mjhost("plugins", "--watch", *flags)
    assert outcome.status == ExitStatus.USAGE
    assert said in outcome.error


@pytest.mark.slow
def test_watched_table_follows_the_source_and_ends_with_q(tmp_path):
    file = write(tmp_path, GOOD, "mine.py")
    with Terminal("plugins", "pendulum", "-p", str(file), "--watch") as terminal:
        terminal.wait_for("control  ")
        file.write_text(_raising("control").replace("Bad", "Good"))
        terminal.wait_for("failed: Good, control: RuntimeError: control it is")
        file.write_text("class Good(")
        terminal.wait_for("the old plugins go on")
        file.write_text(GOOD + "    def last_stage(self, model, data): pass\n")
        terminal.wait_for("reloaded plugins (Good)")
        terminal.wait_for("last_stage  1")
        before = terminal.before
        terminal.press("q")
        status, _ = terminal.finish()
        assert (status, terminal.mode) == (0, before)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(float("nan"), "-"), (2.5, "2.5 s"), (0.0012, "1.2 ms"), (3.5e-6, "3.5 µs")],
)
def test_times_have_the_unit_that_suits_them(seconds, text):
    assert time_text(seconds) == text
