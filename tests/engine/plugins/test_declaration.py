"""Declarations: what is checked before anything is registered. Pure, no engine."""

from typing import NamedTuple

import numpy as np
import pytest

from mjhost.engine.attributes import attribute
from mjhost.engine.declaration import declare
from mjhost.engine.methods import CAPABILITIES, METHODS
from mjhost.errors import EngineDeclarationError, NotCompilableError


class Memo(NamedTuple):
    gain: float


class Passive:
    stiffness: float = attribute(10.0, minimum=0)
    scale = 2.0

    def compute(self, model, data, instance, capability):
        return self.helper(data)

    def helper(self, data):
        return data.time


def made(body, capabilities=("passive",), **options):
    return declare("acme.x", type("Made", (), dict(body)), capabilities, **options)


def compute(self, model, data, instance, capability):
    return None


def test_a_declaration_says_what_the_class_is():
    found = declare("acme.spring", Passive, ("passive",))
    assert list(found.attributes) == ["stiffness"]
    assert list(found.methods) == ["compute"]
    assert list(found.helpers) == ["helper"]
    assert dict(found.constants) == {"scale": 2.0}
    assert found.flags == 4
    assert found.origin.qualname == "Passive"
    assert found.origin.file == __file__


def test_an_unknown_capability_is_explained_by_the_four_mechanisms():
    with pytest.raises(EngineDeclarationError) as info:
        made({"compute": compute}, ("custom solver",))
    for word in ("custom solver", "callbacks", "decoders", "resource providers", "sdf", "solver"):
        assert word in str(info.value)


def test_no_capability_is_refused():
    with pytest.raises(EngineDeclarationError, match="at least one"):
        made({}, ())


@pytest.mark.parametrize(
    ("capability", "missing"),
    [
        ("actuator", "compute"),
        ("passive", "compute"),
        ("sensor", "compute"),
        ("sdf", "sdf_static_distance"),
    ],
)
def test_a_missing_method_is_told_with_its_signature(capability, missing):
    with pytest.raises(EngineDeclarationError) as info:
        made({"sensor_size": 1} if capability == "sensor" else {}, (capability,))
    assert METHODS[missing].signature in str(info.value)


def test_a_sensor_needs_its_size():
    with pytest.raises(EngineDeclarationError, match="sensor_size = 1"):
        made({"compute": compute}, ("sensor",))


@pytest.mark.parametrize("method", ["actuator_act_dot", "sensor_size", "sdf_aabb"])
def test_a_method_that_would_never_be_called_is_refused(method):
    arguments = ", ".join(("self", *METHODS[method].arguments))
    scope = {}
    exec(f"def {method}({arguments}): return 0", scope)
    with pytest.raises(EngineDeclarationError, match=f"{method} would never be called"):
        made({"compute": compute, method: scope[method]})


@pytest.mark.parametrize(
    "wrong",
    [
        lambda self: None,
        lambda self, model, data: None,
        lambda self, a, b, c, d, e: None,
        lambda self, model, data, instance, *, capability: None,
    ],
)
def test_a_wrong_signature_is_told_with_the_right_one(wrong):
    with pytest.raises(EngineDeclarationError) as info:
        made({"compute": wrong})
    assert METHODS["compute"].signature in str(info.value)


async def coroutine(self, model, data, instance, capability):
    pass


def generator(self, model, data, instance, capability):
    yield


@pytest.mark.parametrize(
    "wrong", [staticmethod(compute), classmethod(compute), coroutine, generator, 3, property()]
)
def test_only_plain_methods_are_methods(wrong):
    with pytest.raises(EngineDeclarationError, match="must be a plain method"):
        made({"compute": wrong})


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("nstate", "state_size"), ("nsensordata", "sensor_size"), ("setup", "init")],
)
def test_names_of_the_c_interface_lead_to_ours(theirs, ours):
    with pytest.raises(EngineDeclarationError, match=f"called {ours} here"):
        made({"compute": compute, theirs: lambda self, model, instance: 1})


@pytest.mark.parametrize(
    "value",
    [[], {}, set(), bytearray(), np.zeros(3), np.random.default_rng(0), (1, [2])],
    ids=lambda value: type(value).__name__,
)
def test_mutable_class_attributes_are_refused_by_name(value):
    with pytest.raises(EngineDeclarationError) as info:
        made({"compute": compute, "shared": value})
    assert "'shared'" in str(info.value)
    assert "self.memo" in str(info.value)
    assert "plugin_state" in str(info.value)


def test_constants_that_cannot_change_are_fine():
    fixed = np.arange(3.0)
    fixed.flags.writeable = False
    body = {"compute": compute, "a": 1, "b": (1, 2), "c": "x", "d": fixed, "e": frozenset({1})}
    assert set(made(body).constants) == {"a", "b", "c", "d", "e"}


@pytest.mark.parametrize("name", ["__init__", "__new__", "__slots__", "__setattr__"])
def test_what_would_break_self_is_refused(name):
    value = () if name == "__slots__" else (lambda self, *args: None)
    with pytest.raises(EngineDeclarationError, match=name):
        made({"compute": compute, name: value})


@pytest.mark.parametrize("name", ["state", "memo", "act", "compute"])
def test_an_attribute_cannot_hide_a_part_of_self(name):
    with pytest.raises(EngineDeclarationError, match=f"self.{name}"):
        made({"compute": compute, "__annotations__": {name: float}, name: 1.0})


@pytest.mark.parametrize("stage", ["acceleration", 3, ""])
def test_a_wrong_stage_lists_the_right_ones(stage):
    with pytest.raises(EngineDeclarationError, match="'pos'.*'vel'.*'acc'"):
        made({"compute": compute, "sensor_size": 1}, ("sensor",), stage=stage)


def test_a_stage_is_for_sensors_only():
    with pytest.raises(EngineDeclarationError, match="stage"):
        made({"compute": compute}, stage="pos")


@pytest.mark.parametrize("name", ["", "x" * 1024, "a b", "a\nb", "a\0b", " a", 3])
def test_a_name_that_the_engine_could_not_keep_is_refused(name):
    with pytest.raises(EngineDeclarationError, match="name"):
        declare(name, Passive, ("passive",))


def test_more_attributes_than_the_engine_takes_are_refused():
    annotations = {f"a{index}": float for index in range(256)}
    body = {"compute": compute, "__annotations__": annotations} | dict.fromkeys(annotations, 0.0)
    with pytest.raises(EngineDeclarationError, match="255"):
        made(body)


@pytest.mark.parametrize("size", [-1, 1.5, "1"])
def test_a_constant_size_is_a_whole_number(size):
    with pytest.raises(EngineDeclarationError, match="state_size"):
        made({"compute": compute, "state_size": size})


def test_what_is_no_class_is_refused():
    with pytest.raises(EngineDeclarationError, match="class"):
        declare("acme.x", compute, ("passive",))


def test_the_memo_type_is_what_init_is_annotated_to_return():
    def init(self, model, data, instance) -> Memo:
        return Memo(1.0)

    assert made({"compute": compute, "init": init}).memo_type is Memo
    assert made({"compute": compute}).memo_type is None


def test_shapes_are_compared_in_words():
    one = made({"compute": compute, "state_size": 1})
    two = made({"compute": compute, "state_size": 2, "__annotations__": {"k": float}, "k": 1.0})
    told = one.shape.difference(two.shape)
    assert "state_size was 1 and is now 2" in told
    assert "attributes was () and is now (k)" in told
    assert not one.shape.difference(one.shape)


def test_sdf_methods_that_follow_from_others_are_filled_in():
    body = {
        "sdf_static_distance": lambda self, point: point[0],
        "sdf_aabb": lambda self: (0, 0, 0, 1, 1, 1),
    }
    found = made(body, ("sdf",))
    assert set(found.methods) == {
        "sdf_static_distance", "sdf_aabb", "sdf_distance", "sdf_gradient",
    }  # fmt: skip


def test_every_capability_has_a_bit_and_a_method():
    for capability in CAPABILITIES:
        assert any(capability in method.required_by for method in METHODS.values())


def test_errors_name_plugin_class_and_line():
    with pytest.raises(EngineDeclarationError, match=r"'acme.x', Made \("):
        made({})
    assert issubclass(NotCompilableError, EngineDeclarationError)
