"""Real models for the tests; what cannot be fetched is reported as not run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.real import corpus

REQUIRE_VARIABLE = "MJHOST_REQUIRE_REAL_MODELS"


@pytest.fixture
def real_models():
    """The path of a real model by its name; skips the test when its wheel is out of reach.

    With ``MJHOST_REQUIRE_REAL_MODELS=1`` a wheel out of reach is a failure: for a CI that has a
    network and must not lose these tests silently.
    """
    return _path_or_skip


def _path_or_skip(name: str) -> Path:
    try:
        return corpus.model_path(name)
    except corpus.Unavailable as error:
        if os.environ.get(REQUIRE_VARIABLE, "") not in {"", "0"}:
            pytest.fail(f"{REQUIRE_VARIABLE} is set and {error}", pytrace=False)
        pytest.skip(f"not run: {error}")
