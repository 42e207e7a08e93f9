from __future__ import annotations

import gc
import itertools
import pickle
import sys
import threading

import msgspec
import mujoco
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mjhost.errors import InvalidArgumentError, OptionsRejected, UnsupportedEngineError
from mjhost.options import (
    OptionBlock,
    RuntimeOptionInput,
    RuntimeOptionsPatch,
    changed_fields,
    check_runnable,
    default_snapshot,
    descriptors,
    layout,
    merge_runtime_options,
    parse_runtime_options_patch,
    prepare_runtime_options,
    read_runtime_options,
    write_runtime_options,
)
from tests.options.strategies import ANYTHING, NAMES, good_changes


def _with(**values):
    return msgspec.structs.replace(default_snapshot(), **values)


def _model(timestep=0.002):
    return mujoco.MjModel.from_xml_string(f'<mujoco><option timestep="{timestep}"/></mujoco>')


def test_size_is_that_of_both_supported_engines():
    assert layout.SIZE == 304


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(good_changes())
def test_what_is_written_is_read_back_and_seen_by_the_bindings(changes):
    option = mujoco.MjOption()
    snapshot = merge_runtime_options(default_snapshot(), RuntimeOptionsPatch(**changes))
    try:
        write_runtime_options(snapshot, option)
    except OptionsRejected:
        assert OptionBlock(option).raw() == OptionBlock(mujoco.MjOption()).raw()
        return
    assert read_runtime_options(option) == snapshot
    for field in descriptors():
        value = getattr(snapshot, field.name)
        if field.bit:
            assert bool(getattr(option, field.member) & field.bit) is value
        elif isinstance(value, tuple):
            assert tuple(getattr(option, field.member)) == value
        elif isinstance(value, frozenset):
            assert option.disableactuator == sum(1 << group for group in value)
        else:
            stored = field.choices.index(value) if field.choices else value
            assert getattr(option, field.member) == stored


@pytest.mark.parametrize("field", descriptors(), ids=lambda field: field.name)
def test_refused_write_leaves_the_struct_byte_identical(field):
    option = mujoco.MjOption()
    option.enableflags = 2
    before = OptionBlock(option).raw()
    with pytest.raises(OptionsRejected):
        write_runtime_options(_with(**{"wind": (1.0, 2.0, 3.0), field.name: None}), option)
    assert OptionBlock(option).raw() == before


def test_odd_value_that_a_model_brought_along_can_be_written_back():
    option = mujoco.MjOption()
    option.density = -5
    option.o_solref = (1, -1)
    snapshot = read_runtime_options(option)
    write_runtime_options(msgspec.structs.replace(snapshot, energy=True), option)
    assert option.density == -5
    assert read_runtime_options(option).energy


def test_unknown_bits_survive_a_write():
    option = mujoco.MjOption()
    option.disableflags = 1 << 25
    option.enableflags = 1 << 20
    option.disableactuator = -(2**31)
    assert read_runtime_options(option) == default_snapshot()
    write_runtime_options(
        _with(contact_disabled=True, energy=True, disable_actuator=frozenset({0, 30})), option
    )
    assert option.disableflags == 1 << 25 | 16
    assert option.enableflags == 1 << 20 | 2
    assert option.disableactuator == -(2**31) + (1 << 30) + 1
    write_runtime_options(default_snapshot(), option)
    assert (option.disableflags, option.enableflags) == (1 << 25, 1 << 20)
    assert option.disableactuator == -(2**31)


@pytest.mark.skipif(
    any(field.name == "speculative" for field in descriptors()), reason="this engine has the bit"
)
def test_bit_of_a_newer_engine_reads_as_its_default_and_survives():
    option = mujoco.MjOption()
    option.enableflags = 128
    assert not read_runtime_options(option).speculative
    write_runtime_options(_with(energy=True), option)
    assert option.enableflags == 130


def test_writing_what_was_read_changes_no_byte():
    block = OptionBlock(_model(0.0375).opt)
    before = block.raw()
    block.write(block.read())
    assert block.raw() == before


def test_block_keeps_the_memory_of_its_model():
    block = OptionBlock(_model(0.0375).opt)
    gc.collect()
    others = [_model(0.001) for _ in range(50)]
    assert block.read().timestep == 0.0375
    assert len(others) == 50


def test_block_follows_the_live_model():
    model = _model()
    block = OptionBlock(model.opt)
    model.opt.timestep = 0.25
    assert block.read().timestep == 0.25
    block.write(_with(timestep=0.5))
    assert model.opt.timestep == 0.5


def test_restore_puts_back_every_byte():
    option = mujoco.MjOption()
    block = OptionBlock(option)
    option.disableflags = -1
    option.timestep = float("nan")
    raw = block.raw()
    block.write(default_snapshot())
    block.restore(raw)
    assert block.raw() == raw
    assert option.disableflags == -1


@pytest.mark.parametrize("raw", [b"", b"x" * 303, b"x" * 305, None, "x" * 304])
def test_restore_of_anything_else_is_refused(raw):
    block = OptionBlock(mujoco.MjOption())
    before = block.raw()
    with pytest.raises(InvalidArgumentError, match="304 bytes"):
        block.restore(raw)
    assert block.raw() == before


@pytest.mark.parametrize("option", [None, {}, 5, mujoco.mjtCone.mjCONE_ELLIPTIC])
def test_what_is_no_option_struct_is_refused(option):
    for call in (read_runtime_options, check_runnable, OptionBlock):
        with pytest.raises(InvalidArgumentError, match=r"needs a mujoco\.MjOption"):
            call(option)


def test_model_in_place_of_its_options_gets_a_hint():
    with pytest.raises(InvalidArgumentError, match=r"pass model\.opt"):
        read_runtime_options(_model())


@pytest.mark.parametrize(
    ("member", "value", "field"),
    [
        ("timestep", float("nan"), "timestep"),
        ("timestep", 0, "timestep"),
        ("cone", 7, "cone"),
        ("integrator", -1, "integrator"),
        ("solver", 3, "solver"),
        ("ccd_iterations", 2**31 - 1, "ccd_iterations"),
        ("iterations", 2**31 - 1, "iterations"),
        ("gravity", (0, 0, float("inf")), "gravity"),
        ("enableflags", 64, "ipc"),
        ("sdf_initpoints", -1, "sdf_initpoints"),
    ],
)
def test_model_that_the_engine_cannot_run_is_recognised(member, value, field):
    option = mujoco.MjOption()
    assert check_runnable(option) == []
    setattr(option, member, value)
    assert field in {error.field for error in check_runnable(option)}


def test_unknown_number_of_a_live_enum_is_shown():
    option = mujoco.MjOption()
    option.cone = 7
    assert read_runtime_options(option).cone == "7"
    (error,) = check_runnable(option)
    assert error.given == "'7'"


@pytest.mark.parametrize(
    ("one", "other"),
    [("timestep", "impratio"), ("gravity", "wind"), ("integrator", "cone"),
     ("sdf_initpoints", "sdf_iterations")],
)  # fmt: skip
def test_layout_that_does_not_match_the_bindings_is_refused(monkeypatch, one, other):
    first, second = layout.MEMBERS[one], layout.MEMBERS[other]
    swapped = msgspec.structs.replace(first, offset=second.offset)
    monkeypatch.setitem(layout.MEMBERS, one, swapped)
    with pytest.raises(UnsupportedEngineError, match="the layout of mjOption"):
        layout.verify()


@pytest.fixture
def eager_switching():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("eager_switching")
def test_snapshot_never_mixes_two_writes():
    first = _with(timestep=0.001, gravity=(1.0, 1.0, 1.0), sdf_iterations=11, energy=True)
    second = _with(timestep=0.002, gravity=(2.0, 2.0, 2.0), sdf_iterations=22)
    block = OptionBlock(_model().opt)
    raws = []
    for snapshot in (first, second):
        block.write(snapshot)
        raws.append(block.raw())
    seen = []

    def read():
        mine, count = set(), 0
        while count < 20_000 or (len(mine) < 2 and count < 5_000_000):
            mine.add(block.raw())
            count += 1
        seen.append(mine)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for raw in itertools.cycle(raws):
        block.restore(raw)
        if not any(reader.is_alive() for reader in readers):
            break
    for reader in readers:
        reader.join()
    assert seen == [set(raws)] * 3
    assert {layout.decode(raw) for raw in raws} == {first, second}


@pytest.mark.slow
@pytest.mark.usefixtures("eager_switching")
def test_whole_write_never_shows_half_of_it():
    block = OptionBlock(_model().opt)
    snapshots = [_with(timestep=k / 1000, sdf_iterations=k) for k in range(1, 9)]
    block.write(snapshots[0])
    stop = threading.Event()
    strangers = []

    def read():
        while not stop.is_set():
            snapshot = block.read()
            if snapshot not in snapshots:
                strangers.append(snapshot)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for snapshot in snapshots * 50:
            block.write(snapshot)
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert not strangers


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        good_changes()
        | st.dictionaries(NAMES, ANYTHING, max_size=3)
        | st.lists(st.builds(RuntimeOptionInput, NAMES, ANYTHING), max_size=3),
        max_size=6,
    )
)
def test_live_options_are_the_fold_of_the_accepted_patches(requests):
    block = OptionBlock(mujoco.MjOption())
    expected = default_snapshot()
    for request in requests:
        before = block.raw()
        result = prepare_runtime_options(block.read(), request, raise_on_error=False)
        if not result.ok:
            assert block.raw() == before
            continue
        block.write(result.snapshot)
        expected = msgspec.structs.replace(expected, **dict(result.patch.items()))
        assert block.read() == expected


def test_changed_fields_are_told_with_old_and_new_value_in_table_order():
    new = _with(energy=True, timestep=0.5)
    assert list(changed_fields(default_snapshot(), new).items()) == [
        ("timestep", (0.002, 0.5)),
        ("energy", (False, True)),
    ]
    assert changed_fields(new, new) == {}


@pytest.mark.parametrize("base", [None, {}, RuntimeOptionsPatch()])
def test_merging_onto_anything_but_a_snapshot_is_refused(base):
    with pytest.raises(InvalidArgumentError, match="needs a RuntimeOptionsSnapshot"):
        merge_runtime_options(base, RuntimeOptionsPatch())


def test_merging_a_patch_made_by_hand_refuses_what_does_not_fit():
    with pytest.raises(OptionsRejected) as caught:
        merge_runtime_options(default_snapshot(), RuntimeOptionsPatch(timestep="x", energy=3))
    assert [error.field for error in caught.value.errors] == ["timestep", "energy"]


def test_merging_keeps_what_the_patch_leaves_unset():
    merged = merge_runtime_options(_with(energy=True), RuntimeOptionsPatch(timestep=1))
    assert merged == _with(energy=True, timestep=1.0)
    assert merge_runtime_options(merged, RuntimeOptionsPatch()) == merged


@settings(deadline=None, max_examples=30)
@given(good_changes())
def test_records_survive_pickle_and_json(changes):
    patch = parse_runtime_options_patch(changes)
    snapshot = merge_runtime_options(default_snapshot(), patch)
    assert pickle.loads(pickle.dumps((patch, snapshot))) == (patch, snapshot)
    assert msgspec.json.decode(msgspec.json.encode(patch), type=RuntimeOptionsPatch) == patch
    plain = msgspec.json.decode(msgspec.json.encode(snapshot.as_dict()))
    assert prepare_runtime_options(default_snapshot(), plain, raise_on_error=False).snapshot == (
        snapshot
    )


def test_plain_form_has_the_fields_of_the_engine():
    assert set(default_snapshot().as_dict("3.15.0")) == {f.name for f in descriptors("3.15.0")}
    assert set(default_snapshot().as_dict()) == {field.name for field in descriptors()}


def test_records_are_frozen():
    for record in (default_snapshot(), RuntimeOptionsPatch(), RuntimeOptionInput("a", 1)):
        with pytest.raises(AttributeError):
            setattr(record, record.__struct_fields__[0], 1)
        assert isinstance(hash(record), int)


def test_rejection_survives_pickle_with_its_errors():
    with pytest.raises(OptionsRejected) as caught:
        parse_runtime_options_patch({"timestep": "x", "nothing": 1})
    assert pickle.loads(pickle.dumps(caught.value)).errors == caught.value.errors
