"""What the tests of the operations stand on."""

from __future__ import annotations

import pytest

from tests.operations.samples import filled_store


@pytest.fixture
def store(tmp_path):
    return filled_store(tmp_path)
