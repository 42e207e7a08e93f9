"""Envs for the tests of the env."""

from __future__ import annotations

import pytest

from mjhost.env import MujocoEnv
from tests.env.models import PENDULUM


@pytest.fixture
def pendulum():
    with MujocoEnv(PENDULUM) as env:
        yield env


@pytest.fixture
def running_pendulum():
    with MujocoEnv(PENDULUM, running=True) as env:
        yield env
