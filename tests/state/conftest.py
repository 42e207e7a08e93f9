"""An env with one of everything."""

from __future__ import annotations

import pytest

from mjhost import MujocoEnv
from tests.state.zoo import ZOO


@pytest.fixture
def zoo():
    with MujocoEnv(ZOO) as env:
        yield env
