"""Machine code on disk is found again by the same content and engine, and by nothing else."""

import ctypes
import enum
import math
import os
import pickle
import shutil
import subprocess
import sys
import textwrap

import numba
import numpy as np
import pytest

from mjhost.engine import mj
from mjhost.engine.compiled import cache, compilation, compile_methods, fingerprints, selves, views
from mjhost.engine.compiled.records import RecordLayout
from mjhost.errors import NotCompilableError
from tests.engine.compiled.kit import declared

pytestmark = pytest.mark.slow

FACTOR = 2.0


class Mode(enum.Enum):
    SLOW = 1.0
    FAST = 5.0


def beside(x):
    return FACTOR * x


class Ball:
    radius: float = 1.0
    mode: Mode = Mode.SLOW
    SHIFT = 0.5

    def scaled(self, x):
        return beside(x) + self.SHIFT

    def sdf_distance(self, point, data, instance):
        return 0.0

    def sdf_gradient(self, point, data, instance):
        return point

    def sdf_static_distance(self, point):
        return math.sqrt(self.scaled(point[0])) - self.radius * self.mode.value

    def sdf_aabb(self):
        return (0, 0, 0, 1, 1, 1)


class Simple:
    def compute(self, model, data, instance, capability):
        data.qfrc_passive[0] = beside(data.qpos[0])


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """An empty cache, and a process that remembers nothing."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    monkeypatch.setattr(compilation, "_addresses", {})
    return folder


@pytest.fixture
def no_compiler(monkeypatch):
    """From now on nothing is compiled."""

    def forbid():
        def compiled(*_):
            raise AssertionError("compiled although it is in the cache")

        monkeypatch.setattr(compilation, "_compiled", compiled)
        monkeypatch.setattr(compilation, "_addresses", {})

    return forbid


def stored(home):
    return [file for file in home.rglob("*") if file.is_file()]


def is_found(cls, capabilities=("passive",)):
    """Whether all the code of a class comes from the disk."""
    made = []

    def compiled(*arguments):
        made.append(arguments)
        return original(*arguments)

    original, remembered = compilation._compiled, compilation._addresses
    compilation._compiled, compilation._addresses = compiled, {}
    try:
        compile_methods(declared(cls, capabilities))
    finally:
        compilation._compiled, compilation._addresses = original, remembered
    return not made


def distance(entries, point):
    prototype = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 3)
    at, attributes, result = np.array(point), np.array([0.25, 1.0]), np.zeros(1)
    call = prototype(entries["sdf_static_distance"])
    status = call(at.ctypes.data, attributes.ctypes.data, result.ctypes.data)
    return status, float(result[0])


def test_code_from_the_disk_computes_what_new_code_does(no_compiler):
    new = compile_methods(declared(Ball, ("sdf",))).entries
    no_compiler()
    old = compile_methods(declared(Ball, ("sdf",))).entries
    assert old["sdf_static_distance"] != new["sdf_static_distance"]
    wanted = math.sqrt(2.0 * 3.0 + 0.5) - 0.25 * 5.0
    assert distance(new, [3.0, 0, 0]) == distance(old, [3.0, 0, 0]) == (0, wanted)
    assert distance(old, [-3.0, 0, 0])[0] == 1  # raises: the root of a negative number


def test_a_process_that_has_compiled_it_does_not_read_it_again(home):
    first = compile_methods(declared(Simple)).entries
    shutil.rmtree(home)
    assert compile_methods(declared(Simple)).entries == first


def test_nothing_is_read_or_written_when_it_is_switched_off(home, monkeypatch):
    monkeypatch.setenv("MJHOST_CACHE", "0")
    compile_methods(declared(Simple))
    assert stored(home) == []


def test_a_relative_cache_home_is_not_taken(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.directory().is_relative_to(tmp_path / ".cache")


# -- another engine ------------------------------------------------------------------------------


def another_engine(monkeypatch):
    environment = cache.environment().replace(views.layout_digest(), "9.9.9-0123456789abcdef")
    assert environment != cache.environment()
    monkeypatch.setattr(cache, "environment", lambda: environment)
    monkeypatch.setattr(cache, "layout_digest", lambda: "9.9.9-0123456789abcdef")


def test_code_written_under_another_engine_is_not_found(home, monkeypatch):
    compile_methods(declared(Simple))
    assert is_found(Simple)
    another_engine(monkeypatch)
    assert not is_found(Simple)


def test_code_written_under_another_engine_is_not_run_wherever_it_is_put(home, monkeypatch):
    compile_methods(declared(Simple))
    (file,) = stored(home)
    another_engine(monkeypatch)
    declaration = declared(Simple)
    kind = selves.SelfType(Simple, RecordLayout({}, None), declaration.methods)
    print_ = fingerprints.fingerprint(Simple.compute, kind)
    key = cache.key_of(print_, "compute")
    cache.directory().mkdir(parents=True, mode=0o700)
    for name in (key, file.name):
        shutil.copy(file, cache.directory() / name)
        assert cache.load(name) == 0
    assert cache.load(key) == 0
    assert not is_found(Simple)


def test_the_environment_names_everything_that_offsets_depend_on():
    assert views.layout_digest() in cache.environment()
    assert numba.__version__ in cache.environment()
    assert np.__version__ in cache.environment()
    assert views.layout_digest() in str(cache.directory())


def test_types_stored_under_another_layout_equal_none_of_todays(monkeypatch):
    """Numba's own cache of users' functions compares them."""
    for kind in (views.model_type(), views.data_type(), views.StructArrayType("mjContact")):
        content = pickle.dumps(kind)
        assert pickle.loads(content) == kind
        monkeypatch.setattr(views, "layout_digest", lambda: "9.9.9-0")
        assert pickle.loads(content) != kind
        monkeypatch.undo()


def test_a_stored_self_equals_no_self():
    kind = selves.SelfType(Simple, RecordLayout({}, None), {})
    assert pickle.loads(pickle.dumps(kind)) != kind


# -- damage --------------------------------------------------------------------------------------


def cut(content):
    return content[:-100]


def flipped(content):
    return content[:-50] + bytes([content[-50] ^ 1]) + content[-49:]


def pickled(_):
    return pickle.dumps(["code"])


@pytest.mark.parametrize("damage", [cut, flipped, pickled, lambda _: b"", lambda _: b"[]\n"])
def test_a_damaged_file_is_compiled_again_and_replaced(home, damage):
    compile_methods(declared(Simple))
    (file,) = stored(home)
    content = file.read_bytes()
    file.write_bytes(damage(content))
    assert not is_found(Simple)
    assert file.read_bytes().partition(b"\n")[0] == content.partition(b"\n")[0] or is_found(Simple)
    assert is_found(Simple)


def test_a_directory_that_others_can_write_is_not_used(home):
    compile_methods(declared(Simple))
    cache.directory().chmod(0o777)
    assert not is_found(Simple)


def test_a_cache_that_cannot_be_written_is_no_error(home, monkeypatch):
    home.rmdir()
    home.write_text("a file where the directory should be")
    compile_methods(declared(Simple))


def test_the_oldest_files_go(home, monkeypatch):
    monkeypatch.setattr(cache, "_MOST_FILES", 2)
    compile_methods(declared(Simple))
    (file,) = stored(home)
    for age in (1000, 2000):
        old = file.with_name(f"{age}")
        old.write_bytes(b"")
        os.utime(old, (age, age))
    compilation._addresses.clear()
    file.unlink()
    compile_methods(declared(Simple))
    assert {left.name for left in stored(home)} == {file.name, "2000"}


# -- other content -------------------------------------------------------------------------------


def of(cls):
    declaration = declared(cls)
    layout = RecordLayout(declaration.attributes, declaration.memo_type)
    kind = selves.SelfType(cls, layout, declaration.methods)
    return fingerprints.fingerprint(declaration.methods["compute"], kind)


def source(text, **names):
    """The class ``Plugin`` of some source, in a module of its own."""
    space = {"math": math, "np": np, "mj": mj, "__name__": __name__, **names}
    exec(textwrap.dedent(text), space)
    return space["Plugin"]


PLAIN = """
LIMIT = {limit}

def helper(x, most={most}):
    return min(x, most) * {inside}

class Plugin:
    kp: float = 1.0
    SCALE = {scale}

    def other(self, x):
        return helper(x) + {other}

    def compute(self, model, data, instance, capability):
        data.qfrc_passive[0] = self.other(data.qpos[0]) + LIMIT + self.SCALE + self.kp
"""
VALUES = {"limit": 1.0, "most": 2.0, "inside": 3.0, "scale": 4.0, "other": 5.0}


def test_the_same_source_has_the_same_fingerprint():
    assert of(source(PLAIN.format(**VALUES))) == of(source(PLAIN.format(**VALUES))) is not None


@pytest.mark.parametrize("changed", VALUES)
def test_whatever_is_reached_is_part_of_the_fingerprint(changed):
    first = of(source(PLAIN.format(**VALUES)))
    assert of(source(PLAIN.format(**VALUES | {changed: -0.0}))) != first


def test_the_record_is_part_of_the_fingerprint():
    text = PLAIN.format(**VALUES)
    assert of(source(text.replace("kp: float", "ki: int = 1\n    kp: float"))) != of(source(text))


def test_closures_are_part_of_the_fingerprint():
    def make(gain):
        class Plugin:
            def compute(self, model, data, instance, capability):
                data.qfrc_passive[0] = gain

        return Plugin

    assert of(make(1.0)) != of(make(2.0))
    assert of(make(1.0)) == of(make(1.0))


def test_arrays_are_part_of_the_fingerprint_by_their_elements():
    text = """
    class Plugin:
        def compute(self, model, data, instance, capability):
            data.qfrc_passive[0] = TABLE[0]
    """
    made = [of(source(text, TABLE=np.array([1.0, x]))) for x in (2.0, 3.0, 2.0)]
    assert made[0] == made[2] != made[1]


def test_what_cannot_be_followed_is_not_cached(home):
    text = """
    class Plugin:
        def compute(self, model, data, instance, capability):
            data.qfrc_passive[0] = THING.value
    """
    cls = source(text, THING=sys.modules[__name__])
    assert of(cls) is None
    with pytest.raises(NotCompilableError):
        compile_methods(declared(cls))
    assert stored(home) == []


SCRIPT = """
import sys
from mjhost.engine.compiled import compilation, compile_methods
from mjhost.engine.declaration import declare

class Plugin:
    def compute(self, model, data, instance, capability):
        data.qfrc_passive[0] = data.qpos[0] ** 2 + model.opt.timestep

original = compilation._compiled
compilation._compiled = lambda *a: print("compiles") or original(*a)
compile_methods(declare("x", Plugin, ("passive",), compiled=True))
"""


def test_another_process_finds_it(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)

    def run():
        return subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, check=True
        ).stdout

    assert run() == "compiles\n"
    assert run() == ""
    script.write_text(SCRIPT.replace("** 2", "** 3"))
    assert run() == "compiles\n"
