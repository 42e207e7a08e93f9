"""An env that hosts the input of a case."""

from __future__ import annotations

import pytest

from mjhost import MujocoEnv
from tests.cases.inputs import case_file


@pytest.fixture
def host_case():
    """Makes envs on inputs of cases and closes them."""
    envs = []

    def host(case, name="model.xml", **arguments):
        envs.append(MujocoEnv(case_file(case, name), **arguments))
        return envs[-1]

    yield host
    for env in envs:
        env.close()
