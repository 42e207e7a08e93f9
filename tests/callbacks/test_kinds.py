from __future__ import annotations

import pytest

from mjhost.callbacks import KINDS, Result
from mjhost.callbacks.kinds import kind_named
from mjhost.callbacks.symbols import exported_pointer
from mjhost.errors import UnknownNameError


def test_every_kind_is_an_exported_pointer_of_the_engine(kind):
    assert exported_pointer(KINDS[kind]) is not None


def test_there_are_exactly_the_eight_kinds_of_the_binding():
    import mujoco

    setters = {name.removeprefix("set_mjcb_") for name in dir(mujoco) if "set_mjcb_" in name}
    assert set(KINDS) == setters


def test_neutral_values_are_those_that_change_nothing():
    neutral = {name: kind.neutral for name, kind in KINDS.items() if kind.neutral is not None}
    assert neutral == {"contactfilter": 0, "act_dyn": 0.0, "act_gain": 1.0, "act_bias": 0.0}


def test_what_has_one_owner_returns_a_number():
    assert {k.name for k in KINDS.values() if k.sole} == {
        k.name for k in KINDS.values() if k.result is Result.NUMBER
    }


@pytest.mark.parametrize("name", ["contol", "", None, 3])
def test_an_unknown_kind_is_refused_with_what_exists(name):
    with pytest.raises(UnknownNameError, match="act_gain"):
        kind_named(name)


def test_a_near_miss_is_suggested():
    with pytest.raises(UnknownNameError, match="did you mean 'control'"):
        kind_named("contol")
