"""Extensions by name: found, run once, run again, and refused in one sentence."""

from __future__ import annotations

import itertools
import sys

import pytest

from mjhost.engine import registry
from mjhost.engine.sources import bring_in, read_again
from mjhost.errors import PluginLoadError, UnknownNameError

SOURCE = """
from mjhost import engine

@engine.plugin("{name}", capabilities=("passive",))
class Force:
    gain: float = {gain}

    def compute(self, model, data, instance, capability):
        data.qfrc_passive[0] += self.gain
{more}
"""
_numbers = itertools.count()


@pytest.fixture
def source(tmp_path):
    name = f"test.source-{next(_numbers)}"
    path = tmp_path / f"{name}.py"

    def write(gain=1.0, more=""):
        path.write_text(SOURCE.format(name=name, gain=gain, more=more))
        return path

    write.plugin = name
    return write


def default(name):
    return registry.plugin(name).declaration.attributes["gain"].default


def test_a_file_is_run_once_however_often_it_is_named(source):
    path = source()
    assert bring_in(str(path)) == bring_in(str(path)) == (path.resolve(),)
    assert registry.plugin(source.plugin).generation == 1


def test_a_file_read_again_takes_the_place_of_what_it_declared(source):
    (path,) = bring_in(str(source()))
    source(gain=2.0)
    read_again(path)
    assert registry.plugin(source.plugin).generation == 2
    assert default(source.plugin) == 2.0


@pytest.mark.parametrize("more", ["class (", "raise RuntimeError('no')", "import sys; sys.exit(3)"])
def test_a_file_that_fails_is_an_error_in_one_sentence_and_can_be_repaired(source, more):
    (path,) = bring_in(str(source()))
    module = next(m for m in sys.modules.values() if getattr(m, "__file__", None) == str(path))
    source(more=more)
    with pytest.raises(PluginLoadError, match="cannot be imported"):
        read_again(path)
    assert module in sys.modules.values()
    source(gain=3.0)
    read_again(path)
    assert default(source.plugin) == 3.0


def test_a_file_that_fails_at_first_registers_nothing(source):
    with pytest.raises(PluginLoadError, match="SyntaxError"):
        bring_in(str(source(more="class (")))
    with pytest.raises(UnknownNameError):
        registry.plugin(source.plugin)


@pytest.mark.parametrize("name", ["nowhere.py", "no_such_module_at_all"])
def test_what_cannot_be_found_is_named(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PluginLoadError, match=name.replace(".", r"\.")):
        bring_in(name)


def test_reading_again_what_was_never_brought_in_is_refused(source):
    with pytest.raises(PluginLoadError, match="not brought in"):
        read_again(source())
