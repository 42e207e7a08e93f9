"""The switch between Python and machine code."""

import builtins
import sys

import pytest

from mjhost.engine import registry
from mjhost.engine.builtin import choice, pid, thermal  # noqa: F401 - register


def declared():
    return {name: registry.plugin(name).declaration.compiled for name in choice._Choice.plugins}


def test_python_is_what_nobody_has_to_ask_for():
    assert not choice.is_compiled()
    assert set(declared().values()) == {False}


def test_switch_concerns_every_bundled_plugin_and_goes_back():
    pytest.importorskip("numba")
    try:
        choice.use(compiled=True)
        assert set(declared().values()) == {True}
    finally:
        choice.use(compiled=False)
    assert set(declared().values()) == {False}


def test_missing_numba_is_said_and_nothing_changes(monkeypatch):
    imported = builtins.__import__

    def without(name, *arguments, **keywords):
        if name.startswith("mjhost.engine.compiled"):
            raise ImportError("No module named 'numba'")
        return imported(name, *arguments, **keywords)

    monkeypatch.delitem(sys.modules, "mjhost.engine.compiled", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'mjhost\[fast\]'"):
        choice.use(compiled=True)
    assert not choice.is_compiled()
    assert set(declared().values()) == {False}


def test_importing_one_registers_only_what_it_defines():
    names = {name for name in choice._Choice.plugins if name.startswith("mjhost.")}
    assert {"mjhost.pid", "mjhost.thermal"} <= names
    assert all(registry.plugin(name).origin.file.endswith(".py") for name in names)
