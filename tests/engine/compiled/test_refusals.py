"""What cannot be compiled is refused when it is declared, in one sentence, with file and line."""

# ruff: noqa: B018, F821, SIM108 - the code under test is wrong on purpose

import inspect
import math
import sys
from typing import NamedTuple

import mujoco
import numpy as np
import pytest

from mjhost.engine import mj
from mjhost.engine.compiled import compile_methods, face
from mjhost.engine.instances import Frozen
from mjhost.errors import EngineDeclarationError, NotCompilableError
from tests.engine.compiled.kit import declared

pytestmark = pytest.mark.slow

TABLE = {}


def reaches_in(data):
    return data.nowhere  # line of reaches_in


class Memo(NamedTuple):
    gain: float
    table: "float64[:]"


class Base:
    kp: float = 1.0
    label: str = "text"
    weights: "float64[3]" = (1.0, 2.0, 3.0)
    constants = (1.0, "a")
    lookup = frozenset({1})

    def init(self, model, data, instance) -> Memo:
        return Memo(1.0, np.zeros(2))

    def helper(self, data):
        return data.nope  # line of helper

    def again(self, n):
        return 1 if n == 0 else self.again(n - 1)  # line of again


# (what the message says) → method; the line is the one that ends in "# here", or a "# line of".
CASES = {}


def case(*words, line="# here"):
    def add(function):
        CASES[function.__name__] = (function, line, words)
        return function

    return add


@case("mjData has no member 'qposs'", "did you mean 'qpos'")
def misspelt_member(self, model, data, instance, capability):
    data.qposs[0] = 1.0  # here


@case("self of Plugin has no 'kpp'", "did you mean 'kp'")
def misspelt_attribute(self, model, data, instance, capability):
    x = 1.0
    data.qpos[0] = self.kpp * x  # here


@case("self.memo has no field 'gian'", "did you mean 'gain'")
def misspelt_memo(self, model, data, instance, capability):
    data.qpos[0] = self.memo.gian  # here


@case("self.kp cannot be assigned", "state_size, self.state", "self.memo")
def assigned(self, model, data, instance, capability):
    self.kp = 3.0  # here


@case("self.kp cannot be assigned", "state_size, self.state")
def added_to(self, model, data, instance, capability):
    self.kp += 3.0  # here


@case("self.count cannot be assigned", "state_size, self.state")
def assigned_anew(self, model, data, instance, capability):
    self.count = 3  # here


@case("read-only")
def written_into_a_vector(self, model, data, instance, capability):
    self.weights[0] = 2.0  # here


@case("mjData has no member 'nope'", line="# line of helper")
def wrong_in_a_helper(self, model, data, instance, capability):
    data.qpos[0] = self.helper(data)


@case("mjData has no member 'nowhere'", line="# line of reaches_in")
def wrong_in_a_function(self, model, data, instance, capability):
    data.qpos[0] = reaches_in(data)


@case("the method again calls itself", "a loop", line="# line of again")
def recursive(self, model, data, instance, capability):
    data.qpos[0] = self.again(3)


@case("no print", "memory only")
def printed(self, model, data, instance, capability):
    print("x")  # here


@case("with")
def opened(self, model, data, instance, capability):
    with open("x") as file:  # noqa: PTH123 # here
        file.read()


@case("the global name 'TABLE' is a dict")
def with_a_global_dict(self, model, data, instance, capability):
    TABLE[1] = 2.0  # here


@case("the name 'unheard_of' is not defined")
def with_an_unknown_name(self, model, data, instance, capability):
    x = 1.0
    data.qpos[0] = unheard_of * x  # here


@case("'x' is float64 at one place and", "one type")
def of_two_types(self, model, data, instance, capability):
    if instance > 1:
        x = 1.0
    else:
        x = (1.0, 2.0)
    data.qpos[0] = x[0]  # here


@case("mjModel.nq cannot be assigned", "belongs to the engine")
def of_a_size(self, model, data, instance, capability):
    model.nq = 3  # here


@case("mjData.qpos cannot be assigned", "qpos[:] = ...")
def of_an_array(self, model, data, instance, capability):
    data.qpos = np.zeros(3)  # here


@case("mjOption.iterations takes a whole number", "int(...)")
def of_a_float_for_an_int(self, model, data, instance, capability):
    model.opt.iterations = 1.5  # here


@case("math.hypot", "last digits", "math.sqrt(x * x + y * y)")
def with_hypot(self, model, data, instance, capability):
    data.qpos[0] = math.hypot(1.0, 2.0)  # here


@case("round to digits", "round(x * 100) / 100")
def rounded_to_digits(self, model, data, instance, capability):
    data.qpos[0] = round(data.qpos[1], 2)  # here


@case("self.label is text", "in init", "enum.Enum")
def with_a_text(self, model, data, instance, capability):
    if self.label == "text":  # here
        data.qpos[0] = 1.0


@case("mjModel.names is text", "in init")
def with_names(self, model, data, instance, capability):
    data.qpos[0] = model.names[0]  # here


@case("mj.mj_name2id is about text", "in init")
def with_a_look_up(self, model, data, instance, capability):
    data.qpos[0] = mj.mj_name2id(model, 1, "ball")  # here


@case("mujoco.mj_energyPos is Python's", "mj.mj_energyPos")
def with_a_function_of_the_binding(self, model, data, instance, capability):
    mujoco.mj_energyPos(model, data)  # here


@case("mj.mj_jacBody: jacp must be a writable, C-contiguous float64 array or None")
def with_a_wrong_argument(self, model, data, instance, capability):
    mj.mj_jacBody(model, data, 3.0, None, 1)  # here


@case("takes 5 arguments, got 3")
def with_too_few_arguments(self, model, data, instance, capability):
    mj.mj_jacBody(model, data, 1)  # here


@case("mjContact is walked by index", "range(len(...))")
def walked(self, model, data, instance, capability):
    for contact in data.contact:  # here
        data.qpos[0] = contact.dist


@case("setitem(array(float64, 1d, C), int, str)")
def of_a_text_for_a_number(self, model, data, instance, capability):
    data.qpos[0] = "a"  # here


@case("self.lookup is frozenset", "constants are")
def with_a_set(self, model, data, instance, capability):
    data.qpos[0] = float(1 in self.lookup)  # here


@case("IMPORT_NAME")
def with_an_import(self, model, data, instance, capability):
    import math as m  # here

    data.qpos[0] = m.pi


@case("pointer of the engine")
def with_a_pointer(self, model, data, instance, capability):
    data.arena  # here


def line_of(function, mark):
    lines, start = inspect.getsourcelines(function)
    return start + next(k for k, line in enumerate(lines) if line.rstrip().endswith(mark))


def marked_line(function, mark):
    if mark == "# here":
        return line_of(function, mark)
    source = inspect.getsource(sys.modules[__name__]).splitlines()
    return 1 + next(k for k, line in enumerate(source) if line.rstrip().endswith(mark))


@pytest.mark.parametrize("name", CASES)
def test_what_cannot_be_compiled_is_refused_with_file_and_line(name):
    function, mark, words = CASES[name]

    class Plugin(Base):
        compute = function

    with pytest.raises(NotCompilableError) as info:
        compile_methods(declared(Plugin))
    message = str(info.value)
    place = f"{__file__}:{marked_line(function, mark)}"
    assert message.startswith(f"{place}: {Plugin.__qualname__}.compute of 'test.")
    assert "\n" not in message
    for word in words:
        assert word in message, message


def test_the_advice_about_assignments_is_that_of_the_python_path():
    with pytest.raises(AttributeError) as python:
        Frozen().kp = 1.0
    with pytest.raises(NotCompilableError) as compiled:
        compile_methods(declared(type("P", (Base,), {"compute": assigned})))
    assert str(python.value) in str(compiled.value)


def test_a_memo_without_annotation_is_refused_with_how_to_annotate():
    class Plugin:
        def init(self, model, data, instance):
            return Memo(1.0, np.zeros(2))

        def compute(self, model, data, instance, capability):
            data.qpos[0] = self.memo.gain

    with pytest.raises(NotCompilableError, match=r"def init\(.*\) -> Memo"):
        compile_methods(declared(Plugin))


class Unfit(NamedTuple):
    names: list


def test_a_field_of_a_memo_that_is_no_number_is_refused():
    class Plugin:
        def init(self, model, data, instance) -> Unfit:
            return Unfit([])

        def compute(self, model, data, instance, capability):
            data.qpos[0] = 1.0

    with pytest.raises(NotCompilableError, match=r"Unfit.names.*float64\[:\].*this is list"):
        compile_methods(declared(Plugin))


def test_a_static_distance_has_no_data_and_is_told_so():
    class Ball:
        radius: float = 1.0

        def sdf_static_distance(self, point):
            return point[0] - self.radius + self.state[0]

        def sdf_aabb(self):
            return (0, 0, 0, 1, 1, 1)

    with pytest.raises(NotCompilableError, match=r"self.state does not exist here.*while a model"):
        compile_methods(declared(Ball, ("sdf",)))


def test_numba_told_to_compile_nothing_is_an_error_not_a_fallback(monkeypatch):
    monkeypatch.setattr(face.nb.config, "DISABLE_JIT", 1)
    with pytest.raises(EngineDeclarationError, match="NUMBA_DISABLE_JIT"):
        compile_methods(declared(type("P", (Base,), {"compute": assigned})))
