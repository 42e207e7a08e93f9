from __future__ import annotations

import msgspec
import pytest

from mjhost.errors import OptionsRejected
from mjhost.options import RuntimeOptionsPatch, default_snapshot, prepare_runtime_options


def _prepare(changes, **base):
    start = msgspec.structs.replace(default_snapshot(), **base)
    return prepare_runtime_options(start, changes, engine="4.0.0", raise_on_error=False)


def test_accepted_request_gives_candidate_patch_and_names_of_what_changes():
    result = _prepare({"timestep": "0.004", "cone": "pyramidal", "energy": 1})
    assert result.ok
    assert result.snapshot == msgspec.structs.replace(
        default_snapshot(), timestep=0.004, energy=True
    )
    assert result.patch.names() == ("timestep", "cone", "energy")
    assert result.changed == ("timestep", "energy")
    assert result.epoch is None


def test_problems_of_parsing_and_of_validation_come_together():
    result = _prepare({"timestep": "fast", "iterations": 0, "density": -1, "ipc": True})
    assert [error.field for error in result.errors] == ["timestep", "iterations", "density", "ipc"]


def test_field_that_could_not_be_read_is_not_blamed_by_rules_between_fields():
    result = _prepare({"integrator": "discreet", "ipc": True})
    assert [error.field for error in result.errors] == ["integrator"]


def test_odd_value_of_the_base_does_not_block_another_change():
    assert _prepare({"timestep": 0.001}, density=-3.0).ok
    assert not _prepare({"timestep": 0.001, "density": -3.0}, density=-3.0).ok


def test_value_of_the_base_that_cannot_run_blocks_every_change():
    result = _prepare({"energy": True}, cone="7")
    assert [error.field for error in result.errors] == ["cone"]


def test_empty_request_is_accepted_and_changes_nothing():
    result = _prepare({})
    assert result.ok
    assert result.patch == RuntimeOptionsPatch()
    assert result.changed == ()


def test_warning_does_not_stand_in_the_way():
    result = _prepare({"timestep": 1})
    assert result.ok
    assert [warning.field for warning in result.warnings] == ["timestep"]


def test_rejection_is_raised_by_default():
    with pytest.raises(OptionsRejected, match="timestep"):
        prepare_runtime_options(default_snapshot(), {"timestep": 0})
