"""Interrupts: whenever they arrive, whoever is entered, they surface as what they are."""

import ctypes
import signal
import sys
import traceback

import mujoco
import pytest

import mjhost
from mjhost import engine
from mjhost.engine import failures
from mjhost.engine.entrances import guarded

ROUNDS = 20  # unguarded, most are lost


@pytest.fixture
def alarm(collector_off):
    """``alarm(seconds)``: an interrupt then; what the interpreter drops is listed."""
    dropped = []
    hook, handler = sys.unraisablehook, signal.signal(signal.SIGALRM, signal.default_int_handler)
    sys.unraisablehook = lambda report: dropped.append(
        (report.exc_type, report.object, traceback.format_tb(report.exc_traceback))
    )
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, handler)
    sys.unraisablehook = hook
    assert not dropped


@pytest.fixture(scope="module")
def sort():
    """Calls a function from C many times, with no Python in between."""
    values = (ctypes.c_long * 30_000)(*range(30_000, 0, -1))
    order = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

    def run(function):
        copied = (ctypes.c_long * len(values)).from_buffer_copy(values)
        ctypes.CDLL(None).qsort(copied, len(values), ctypes.sizeof(ctypes.c_long), order(function))

    return run


def test_a_guarded_function_catches_an_interrupt_at_its_first_instruction(alarm, sort):
    caught, calls = [], []

    @guarded
    def compare(one, other):
        try:
            calls.append(one)
            return 0
        except KeyboardInterrupt:
            caught.append(other)
            return 0

    for done in range(ROUNDS):
        try:
            alarm(0.002)
            sort(compare)
        except KeyboardInterrupt:
            caught.append(None)  # it came before the first call
        assert len(caught) == done + 1
    assert any(caught)


def test_a_guarded_function_computes_what_it_did():
    def function(value, *more, scale=2):
        try:
            for one in more:
                try:
                    value += scale / one
                except ZeroDivisionError:
                    value += 1000
            return value
        except TypeError:
            return "no number"
        finally:
            done.append(value)

    done = []
    before = [function(1, 2, 0), function(1, "x"), function(0, scale=3)]
    assert [guarded(function)(1, 2, 0), function(1, "x"), function(0, scale=3)] == before
    assert len(done) == 6
    with pytest.raises(TypeError, match="missing"):
        function()


def test_what_does_not_begin_with_a_try_cannot_be_guarded():
    def late(value):
        value += 1
        try:
            return str(value)
        except ValueError:
            return ""

    for function in (late, lambda: 1):
        with pytest.raises(TypeError, match="has to begin with a try"):
            guarded(function)


@pytest.mark.slow
def test_an_interrupt_while_the_engine_steps_is_not_lost(name, model_of, way, alarm):
    @engine.plugin(name, ("passive",))
    class Push:
        def compute(self, model, data, instance, capability):
            data.qfrc_passive[0] += 1.0

    model = model_of(name)
    for _ in range(ROUNDS):
        data = mujoco.MjData(model)
        with pytest.raises(KeyboardInterrupt):
            alarm(0.01)
            for _ in range(1000):
                mujoco.mj_step(model, data, 1000)
                engine.check()


@pytest.mark.slow
def test_an_interrupt_while_resources_are_read_is_not_lost(alarm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    @engine.resource_provider("interrupted")
    def serve(uri):
        return b"x"

    @engine.decoder(".interrupted", "model/interrupted")
    def decode(content, name):
        return "<mujoco/>"

    for _ in range(ROUNDS):
        with pytest.raises(KeyboardInterrupt):
            alarm(0.005)
            for _ in range(100_000):
                try:
                    mujoco.MjSpec.from_file("interrupted:a.interrupted")
                except ValueError as error:
                    assert "KeyboardInterrupt" in str(error) or mujoco.mj_version() < 4_000_000
                engine.check()
    while failures.take_any():
        pass


@pytest.mark.parametrize("method", ["init", "compute"])
@pytest.mark.parametrize("way", ["framed"], indirect=True)
def test_an_interrupt_while_a_model_compiles_surfaces_as_itself(name, xml_of, way, method):
    def hit(where):
        if where == method:
            raise KeyboardInterrupt

    @engine.plugin(name, ("passive",))
    class Interrupted:
        def init(self, model, data, instance):
            hit("init")

        def compute(self, model, data, instance, capability):
            hit("compute")

    with pytest.raises(ValueError, match=f"{method}: KeyboardInterrupt"):
        mujoco.MjModel.from_xml_string(xml_of(name))
    with pytest.raises(KeyboardInterrupt):
        engine.check()
    engine.check()
    with pytest.raises(KeyboardInterrupt):
        mjhost.MujocoEnv(xml_of(name))
    assert failures.take_any() is None


@pytest.mark.parametrize("method", ["mount", "open", "decode"])
def test_an_interrupt_in_a_load_stays_one_whoever_passes_it_on(method, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    prefix = f"interrupted.{method}"

    def hit(where):
        if where == method:
            raise KeyboardInterrupt

    @engine.resource_provider(prefix)
    class Store:
        def open(self, uri):
            hit("open")
            return b"x"

        def mount(self, prefix):
            hit("mount")

    @engine.decoder(f".{method}", f"model/{prefix}")
    def decode(content, name):
        hit("decode")
        return "<mujoco/>"

    with pytest.raises(ValueError, match=r"."):
        mujoco.MjSpec.from_file(f"{prefix}:a.{method}")
    with pytest.raises(KeyboardInterrupt):
        engine.check()
    while failures.take_any():
        pass
