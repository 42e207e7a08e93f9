"""Records of ``self`` are found by a handle that can be anything, and hold what was declared."""

# ruff: noqa: F821 - array annotations are texts, not names

import types
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mjhost.engine.compiled.records import CHUNK_BITS, TABLE, Packed, RecordLayout
from mjhost.engine.declaration import SLICES
from tests.engine.compiled.kit import Twins, declared


class Memo(NamedTuple):
    gain: float
    table: "float64[:]"


class Counter:
    step: float = 1.0
    state_size = 1

    def init(self, model, data, instance) -> Memo:
        return Memo(2.0, np.zeros(3))

    def compute(self, model, data, instance, capability):
        self.state[0] += self.step * self.memo.gain
        data.userdata[0] = self.state[0]


@pytest.fixture(scope="module")
def counter(_own_cache):
    return Twins(Counter)


@settings(deadline=None, max_examples=200)
@given(handle=st.integers(0, 2**64 - 1))
@example(handle=0)
@example(handle=2**63)
@example(handle=1 << (CHUNK_BITS + 12))
@example(handle=(1 << CHUNK_BITS) - 1)
def test_a_handle_of_somebody_else_is_never_followed(counter, handle):
    data = counter.compiled
    own = int(data.plugin_data[0])
    before = data.plugin_state.copy()
    data.plugin_data[0] = handle
    try:
        status = counter.run_compiled()
    finally:
        data.plugin_data[0] = own
    if handle != own:
        assert status == 2
        assert (data.plugin_state == before).all()


def test_the_handle_of_a_twin_is_not_followed(counter):
    own = int(counter.compiled.plugin_data[0])
    counter.compiled.plugin_data[0] = counter.python.plugin_data[0]
    try:
        assert counter.run_compiled() == 2
    finally:
        counter.compiled.plugin_data[0] = own
    assert counter.run_compiled() == 0


def source(**changes):
    values = {name: np.zeros(0, dtype) for name, dtype in SLICES.items()}
    values |= {"step": 1.0, "memo": Memo(2.0, np.zeros(3))}
    return types.SimpleNamespace(**values | changes)


@pytest.fixture
def record_layout():
    declaration = declared(Counter)
    return RecordLayout(declaration.attributes, declaration.memo_type)


def test_a_released_record_is_forgotten_once(record_layout):
    before = TABLE.count()
    packed = Packed(record_layout, source(), model=0, data=64, instance=0)
    assert TABLE.count() == before + 1
    packed.release()
    packed.release()
    assert TABLE.count() == before
    assert packed.handle == 0


def test_a_record_goes_with_its_owner(record_layout):
    before = TABLE.count()
    packed = Packed(record_layout, source(), model=0, data=64, instance=0)
    assert packed.handle
    del packed
    assert TABLE.count() == before


def test_more_records_than_a_chunk_holds_all_have_their_own_handle(record_layout):
    number = (1 << CHUNK_BITS) + 10
    packed = [
        Packed(record_layout, source(), model=0, data=64 * k, instance=0) for k in range(number)
    ]
    handles = {one.handle for one in packed}
    assert len(handles) == number
    assert 0 not in handles


@pytest.mark.parametrize(
    "memo",
    [
        Memo(2.0, np.zeros(3, np.float32)),
        Memo(2.0, np.zeros((3, 1))),
        Memo(2.0, np.zeros(6)[::2]),
        Memo(2.0, [1.0, 2.0]),
    ],
)
def test_an_array_that_is_not_as_annotated_is_refused_not_copied(record_layout, memo):
    before = TABLE.count()
    with pytest.raises(TypeError, match=r"self.memo.table must be a contiguous array of float64"):
        Packed(record_layout, source(memo=memo), model=0, data=64, instance=0)
    assert TABLE.count() == before


def test_a_number_that_is_not_as_annotated_is_refused(record_layout):
    with pytest.raises(TypeError, match=r"self.memo.gain must be float64, got 'much'"):
        Packed(record_layout, source(memo=Memo("much", np.zeros(3))), model=0, data=64, instance=0)


def test_two_layouts_that_differ_have_different_digests():
    class Other(Counter):
        more: int = 3

    layouts = [
        RecordLayout(declaration.attributes, declaration.memo_type)
        for declaration in (declared(Counter), declared(Other))
    ]
    assert layouts[0].digest != layouts[1].digest
