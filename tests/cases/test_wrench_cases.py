"""Public reports about forces on bodies; the case ids are in the docstrings."""

from __future__ import annotations

import pytest

from mjhost import Plugin


def speeds(env):
    return [float(env.body_state(name).linear[0]) for name in "ab"]


def test_a_force_on_a_second_body_leaves_the_first_one(host_case):
    """PO-07."""
    env = host_case("PO-07")
    for body in "ab":
        env.apply_wrench(body, [1, 0, 0])
    env.step(200)
    assert speeds(env) == pytest.approx([4.0, 4.0], abs=1e-12)
    fresh = host_case("PO-07")
    fresh.apply_wrench("a", [1, 0, 0], duration=0.1)
    fresh.step(200)
    assert speeds(fresh) == pytest.approx([1.0, 0.0], abs=1e-12)


def test_the_same_wrench_again_replaces_and_clearing_one_leaves_the_other(host_case):
    """PO-07."""
    env = host_case("PO-07")
    env.apply_wrench("a", [1, 0, 0])
    env.apply_wrench("a", [1, 0, 0])
    env.apply_wrench("b", [1, 0, 0])
    assert env.wrench("a").force.tolist() == [1, 0, 0]
    env.clear_wrench("a")
    env.step(200)
    assert speeds(env) == pytest.approx([0.0, 4.0], abs=1e-12)


class Pushing(Plugin):
    stateless = True

    def pre_step(self, model, data):
        data.xfrc_applied[1, 0] = 1.0


def test_a_force_that_a_hook_writes_adds_to_that_of_the_host(host_case):
    """PO-08."""
    env = host_case("PO-08", plugins=[Pushing])
    env.apply_wrench("a", [1, 0, 0])
    env.step(200)
    assert speeds(env)[0] == pytest.approx(8.0, abs=1e-12)
    assert env.wrench("a").force.tolist() == [1, 0, 0]
