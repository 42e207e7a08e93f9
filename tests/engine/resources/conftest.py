"""A directory of its own for each test, and nothing left that nobody has asked for."""

from __future__ import annotations

import mujoco
import pytest

from mjhost import engine
from tests.engine.resources.helpers import unique


@pytest.fixture(autouse=True)
def _own_directory(tmp_path, monkeypatch):
    # The engine writes the log of a warning to the working directory.
    monkeypatch.chdir(tmp_path)
    # It tells files apart by relative names and whole seconds.
    mujoco.mj_clearCache(mujoco.mj_getCache())


@pytest.fixture(autouse=True)
def _no_failure_waits(_nothing_left_behind):
    yield
    engine.check()


@pytest.fixture
def prefix():
    """A prefix that is free."""
    return unique("test.resource")


@pytest.fixture
def extension():
    """An extension that is free."""
    return unique(".testext")


@pytest.fixture
def content_type():
    """A content type that is free."""
    return unique("model/test")
