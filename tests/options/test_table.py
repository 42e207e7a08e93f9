from __future__ import annotations

import re
from pathlib import Path

import msgspec
import mujoco
import pytest
from mujoco.introspect import structs

from mjhost.errors import InvalidArgumentError
from mjhost.options import (
    Kind,
    OptionDescriptor,
    Range,
    RuntimeOptionsPatch,
    RuntimeOptionsSnapshot,
    default_snapshot,
    descriptors,
    read_runtime_options,
)
from mjhost.options.table import DESCRIPTORS, PASSIVE_DISABLED, name_index
from mjhost.options.validate import ARRAY_RULES, RELATIONS

FLAGS = {
    "disableflags": (mujoco.mjtDisableBit, "mjNDISABLE"),
    "enableflags": (mujoco.mjtEnableBit, "mjNENABLE"),
}
STORED_AS = {
    Kind.FLOAT: float,
    Kind.INT: int,
    Kind.BOOL: bool,
    Kind.ENUM: str,
    Kind.ARRAY: tuple[float, ...],
    Kind.GROUPS: frozenset[int],
}
MANUAL = Path(mujoco.__file__).parent / "doc" / "XMLreference.rst"


def _by_name(field: OptionDescriptor) -> str:
    return field.name


def test_table_covers_every_member_of_the_installed_engine():
    engine = {field.name for field in structs.STRUCTS["mjOption"].fields}
    assert {field.member for field in descriptors()} == engine


@pytest.mark.parametrize("member", FLAGS)
def test_table_covers_every_bit_of_the_installed_engine(member):
    enum, count = FLAGS[member]
    engine = {name: int(bit) for name, bit in enum.__members__.items() if name != count}
    table = {field.constant: field.bit for field in descriptors() if field.member == member}
    assert table == engine


@pytest.mark.parametrize("member", FLAGS)
def test_every_flag_has_its_own_single_bit(member):
    bits = [field.bit for field in DESCRIPTORS if field.member == member]
    assert sorted(bits) == [1 << index for index in range(len(bits))]


@pytest.mark.parametrize("field", [f for f in DESCRIPTORS if f.kind is Kind.ENUM], ids=_by_name)
def test_choices_are_those_of_the_engine_in_its_order(field):
    members = getattr(mujoco, field.enum).__members__
    numbers = {int(number): name for name, number in members.items()}
    names = [numbers[index].split("_", 1)[1].lower() for index in range(len(numbers))]
    assert [choice.lower() for choice in field.choices] == names


def test_names_and_aliases_are_unique():
    names = [name for field in DESCRIPTORS for name in field.names]
    assert len({*names, PASSIVE_DISABLED}) == len(names) + 1
    assert set(name_index()) == {*names, PASSIVE_DISABLED}


def test_defaults_are_those_of_a_fresh_option():
    assert read_runtime_options(mujoco.MjOption()) == default_snapshot()


@pytest.mark.parametrize("field", DESCRIPTORS, ids=_by_name)
def test_entry_is_complete(field):
    assert re.fullmatch(r"[A-Z].*\.", field.help)
    assert field.xml.startswith("option/")
    assert field.doc.startswith("https://")
    assert field.allowed()
    assert len(field.runnable) == 1
    assert len(field.domain) in {1, field.size}
    assert bool(field.choices) == (field.kind is Kind.ENUM)
    assert bool(field.bit) == (field.kind is Kind.BOOL)
    assert (field.size > 1) == (field.kind in {Kind.ARRAY, Kind.GROUPS})
    assert bool(field.rule) == (field.name in ARRAY_RULES)


@pytest.mark.parametrize("field", descriptors(), ids=_by_name)
def test_mjcf_attribute_sets_the_field(field):
    *_, attribute = field.xml.split("/")
    if field.kind is Kind.BOOL:
        setting = "disable" if field.member == "disableflags" else "enable"
        integrator = 'integrator="discrete" solver="CG"' if field.name == "ipc" else ""
        option = f'<option {integrator}><flag {attribute}="{setting}"/></option>'
        expected = True
    else:
        expected = {
            Kind.FLOAT: 0.03125,
            Kind.INT: 17,
            Kind.ENUM: field.choices and field.choices[-2],
            Kind.ARRAY: tuple(0.5 + index / 8 for index in range(field.size)),
            Kind.GROUPS: frozenset({2, 30}),
        }[field.kind]
        many = field.kind in {Kind.ARRAY, Kind.GROUPS}
        text = " ".join(map(str, sorted(expected))) if many else expected
        option = f'<option {attribute}="{text}"/>'
    model = mujoco.MjModel.from_xml_string(f"<mujoco>{option}</mujoco>")
    assert getattr(read_runtime_options(model.opt), field.name) == expected


@pytest.mark.skipif(not MANUAL.exists(), reason="this wheel has no manual")
def test_documentation_pointers_exist_in_the_manual_of_the_engine():
    labels = re.findall(r"^\.\. _(option-\S+):", MANUAL.read_text("utf-8"), re.MULTILINE)
    anchors = {label.replace("_", "-") for label in labels}
    assert {field.doc.rpartition("#")[2] for field in descriptors()} <= anchors


@pytest.mark.parametrize("record", [RuntimeOptionsSnapshot, RuntimeOptionsPatch])
def test_records_have_the_fields_of_the_table_in_its_order(record):
    assert record.__struct_fields__ == tuple(field.name for field in DESCRIPTORS)


def test_record_types_are_those_of_the_table():
    snapshot = {f.name: f for f in msgspec.structs.fields(RuntimeOptionsSnapshot)}
    patch = {f.name: f for f in msgspec.structs.fields(RuntimeOptionsPatch)}
    for field in DESCRIPTORS:
        stored = STORED_AS[field.kind]
        assert snapshot[field.name].type == stored
        assert snapshot[field.name].required
        assert patch[field.name].type == stored | msgspec.UnsetType
        assert patch[field.name].default is msgspec.UNSET


def test_relations_name_fields_of_the_table():
    names = {field.name for field in DESCRIPTORS}
    assert all(names.issuperset(relation.fields) for relation in RELATIONS)


def test_speculative_exists_from_4_0_on():
    names = [{field.name for field in descriptors(engine)} for engine in ("3.15.0", "4.0.1")]
    assert names[1] - names[0] == {"speculative"}
    assert not names[0] - names[1]


@pytest.mark.parametrize("engine", ["", "four", "4", "x4.0", "4.00000", 4.0, ["4.0"], "9" * 10_000])
def test_engine_that_is_no_version_is_refused(engine):
    with pytest.raises(InvalidArgumentError, match=r"engine must be a version") as caught:
        descriptors(engine)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("part", "inside", "outside", "text"),
    [
        (Range(), [0, -1e300], [float("nan"), float("inf")], "any finite number"),
        (Range(0), [0, 1e300], [-1e-300, float("inf")], "at least 0"),
        (Range(0, low_open=True), [1e-300], [0], "above 0"),
        (Range(high=0.1), [-5, 0.1], [0.11], "at most 0.1"),
        (Range(1, 20), [1, 20], [0.9, 20.1], "1 to 20"),
        (Range(0, 1, low_open=True, high_open=True), [0.5], [0, 1], "above 0 and below 1"),
    ],
)
def test_range_says_what_it_contains(part, inside, outside, text):
    assert all(value in part for value in inside)
    assert not any(value in part for value in outside)
    assert str(part) == text
