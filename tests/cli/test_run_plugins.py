"""``mjhost run --plugins``: what is told, what ends a run, what the record holds."""

from __future__ import annotations

import sys

import pytest

from mjhost.cli.exits import ExitStatus
from mjhost.cli.logs import LogNotes
from tests.cli.models import write

RUN = ("run", "pendulum", "--steps", "20", "--realtime", "0", "--json")

PLUGINS = """
import logging
from dataclasses import dataclass
from mjhost import Plugin

class Good(Plugin):
    def control(self, model, data):
        data.ctrl[:] = 0.1

class Unloadable(Plugin):
    def load(self, model, data):
        raise ValueError("no such sensor")

class Faulty(Plugin):
    def control(self, model, data):
        if data.time > 0.055:
            raise RuntimeError("the gripper slipped")

class Unresumable(Plugin):
    def on_pause(self):
        raise RuntimeError("cannot rest")

class Talkative(Plugin):
    def post_step(self, model, data):
        logging.getLogger(__name__).info("at %.2f", data.time)

class Typed(Plugin):
    @dataclass
    class Config:
        stiffness: float = 1.0
"""


@pytest.fixture
def source(tmp_path):
    return str(write(tmp_path, PLUGINS, "plugins.py"))


def test_record_names_the_plugins(source, mjhost):
    record = mjhost(*RUN, "--plugins", f"{source}:Good").json
    assert record["plugins"] == [
        {"name": "Good", "type": f"{source}:Good", "state": "ready", "failures": []}
    ]


def test_plugins_take_part(source, mjhost):
    without = mjhost(*RUN, "--seconds", "0.1").json
    assert without["plugins"] == []
    assert mjhost(*RUN, "-p", f"{source}:Good").json["steps"] == 20


def test_plugin_that_does_not_load_is_one_line_and_stops_nothing(source, mjhost):
    outcome = mjhost(*RUN, "--plugins", f"{source}:Unloadable", "--plugins", f"{source}:Good")
    assert outcome.status == ExitStatus.OK
    assert outcome.error == "plugin 'Unloadable' failed in load: ValueError: no such sensor"
    bad, good = outcome.json["plugins"]
    assert (bad["state"], good["state"]) == ("failed", "ready")
    assert bad["failures"] == [{"phase": "load", "error": "ValueError: no such sensor", "count": 1}]
    assert outcome.json["steps"] == 20


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("{}:God", "did you mean 'Good'?"),
        ("nowhere.py", "does not exist"),
        ("nowhere:Class", "No module named 'nowhere'"),
        ("nowhere", "entry points"),
        ("{}", "exactly one subclass"),
    ],
)
def test_plugin_that_is_not_found_is_told_and_the_run_goes_on(what, said, source, mjhost):
    outcome = mjhost(*RUN, "--plugins", what.format(source))
    assert outcome.status == ExitStatus.OK
    assert said in outcome.error
    assert outcome.json["plugins"][0]["state"] == "failed"


def test_wrong_config_names_key_type_and_value(source, mjhost, tmp_path):
    text = "- {type: 'plugins.py:Typed', config: {stiffness: soft}}\n"
    outcome = mjhost(*RUN, "--plugins", str(write(tmp_path, text, "list.yaml")))
    assert outcome.status == ExitStatus.OK
    assert "key 'stiffness': expected float, got str 'soft'" in outcome.error


def test_list_that_cannot_be_read_is_status_1(mjhost, tmp_path):
    outcome = mjhost(*RUN, "--plugins", str(write(tmp_path, "- {type: [", "list.yaml")))
    assert outcome.status == ExitStatus.FAILED
    assert "is no YAML: line" in outcome.error
    assert outcome.out == ""


def test_fault_names_plugin_and_hook_and_is_status_3(source, mjhost):
    outcome = mjhost(*RUN, "--plugins", f"{source}:Faulty")
    assert outcome.status == ExitStatus.FAULT
    assert "RuntimeError: the gripper slipped" in outcome.error
    assert "plugin 'Faulty'" in outcome.error
    assert "hook control" in outcome.error
    record = outcome.json
    assert (record["fault"]["plugin"], record["fault"]["hook"]) == ("Faulty", "control")
    assert record["plugins"][0]["failures"] == [
        {"phase": "control", "error": "RuntimeError: the gripper slipped", "count": 1}
    ]


def test_plugin_that_fails_at_the_end_does_not_cost_the_record(source, mjhost):
    outcome = mjhost(*RUN, "-p", f"{source}:Unresumable")
    assert outcome.status == ExitStatus.FAULT  # it was the physics thread that paused
    assert "cannot rest" in outcome.error
    assert outcome.json["plugins"][0]["failures"][0]["phase"] == "pause"


def test_what_plugins_log_is_told_in_lines(source, mjhost):
    outcome = mjhost("run", "pendulum", "--steps", "3", "-p", f"{source}:Talkative")
    assert "mjhost: at 0.01\nmjhost: at 0.02\nmjhost: at 0.03\n" in outcome.err


def test_flood_of_log_lines_is_cut_and_counted():
    logger = __import__("logging").getLogger("mjhost.test")
    with LogNotes() as notes:
        for number in range(100):
            logger.warning("line %d", number)
        lines = notes.drain()
        assert notes.drain() == []
    assert (lines[0], len(lines)) == ("warning: line 0", 21)
    assert "80 more lines" in lines[-1]


def test_module_in_the_working_directory_is_found_for_the_run_only(mjhost, tmp_path, monkeypatch):
    write(tmp_path, PLUGINS, "plugins_of_mine.py")
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    assert mjhost(*RUN, "-p", "plugins_of_mine:Good").json["plugins"][0]["state"] == "ready"
    assert sys.path == before
    sys.modules.pop("plugins_of_mine")
    monkeypatch.chdir(tmp_path.parent)


@pytest.mark.slow
def test_demo_takes_the_flags_of_run_and_adds_to_its_plugins(source, mjhost):
    words = ("demo", "--steps", "50", "--realtime", "0", "--json", "-o", "iterations=20")
    record = mjhost(*words, "--plugins", f"{source}:Talkative").json
    names = [plugin["name"] for plugin in record["plugins"]]
    assert names == ["JointImpedance", "Wind", "EnergyMonitor", "Talkative"]
    assert (record["steps"], record["faults"]) == (50, 0)
    assert record["options"] == {"iterations": 20}


def test_demo_has_every_flag_of_run_and_no_argument(mjhost, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")  # a narrow help cuts long flags short
    helps = {command: mjhost(command, "--help").out for command in ("run", "demo")}
    flags = {
        command: {word for word in text.split() if word.startswith("--")}
        for command, text in helps.items()
    }
    assert {flag for flag in flags["run"] if flag.isascii()} <= flags["demo"] | {"--plugins"}
    assert mjhost("demo", "humanoid").status == ExitStatus.USAGE
