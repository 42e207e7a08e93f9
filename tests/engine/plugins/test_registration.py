"""Names: who has them, what a reload may change, and that nothing here ends the process."""

import ctypes
import subprocess
import sys
import textwrap

import mujoco
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mjhost import engine
from mjhost.engine import registry
from mjhost.engine.abi.structs import Decoder, Plugin, Provider
from mjhost.engine.abi.symbols import engine as functions
from mjhost.errors import EngineDeclarationError, EngineNameTakenError, UnknownNameError


def spring(stiffness, **body):
    """A class of one and the same source, with another number in it."""

    class Spring:
        gain: float = 1.0
        state_size = 1

        def compute(self, model, data, instance, capability):
            data.qfrc_passive[0] -= stiffness * self.gain

    for name, value in body.items():
        setattr(Spring, name, value)
    return Spring


def force(model):
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return float(data.qfrc_passive[0])


def test_a_plugin_is_known_to_the_engine_as_declared(name, way):
    @engine.plugin(name, ("sensor",), stage="vel")
    class Sensor:
        a: float = 0.0
        b: str = ""
        sensor_size = 1

        def compute(self, model, data, instance, capability):
            pass

    slot, struct = functions().get_plugin(name.upper())
    assert struct.attribute_names == ("a", "b")
    assert (struct.capabilityflags, struct.needstage) == (2, 2)
    assert registry.plugin(name).slot == slot
    assert registry.plugins()[name].declaration.cls is Sensor
    assert not struct.advance  # what the class does not need is not called
    assert not struct.visualize


def test_the_decorator_returns_the_class(name):
    cls = spring(1.0)
    assert engine.plugin(name, ("passive",))(cls) is cls


def test_the_same_class_again_replaces_the_implementation(name, model_of, way):
    engine.plugin(name, ("passive",))(spring(1.0))
    model = model_of(name)
    data = mujoco.MjData(model)
    assert force(model) == -1.0
    engine.plugin(name, ("passive",))(spring(5.0))
    assert registry.plugin(name).generation == 2
    assert force(model) == -5.0
    mujoco.mj_forward(model, data)
    assert data.qfrc_passive[0] == -5.0  # data made before follow


def test_a_reload_from_elsewhere_is_made_on_request(name, model_of, way):
    engine.plugin(name, ("passive",))(spring(1.0))

    class Other:
        gain: float = 1.0
        state_size = 1

        def compute(self, model, data, instance, capability):
            data.qfrc_passive[0] = 7.0

    with pytest.raises(EngineNameTakenError):
        engine.plugin(name, ("passive",))(Other)
    registry.reload(name, Other)
    assert force(model_of(name)) == 7.0


def test_a_reload_may_add_and_drop_methods(name, model_of, way):
    advanced = []

    def advance(self, model, data, instance):
        advanced.append(data.time)

    engine.plugin(name, ("passive",))(spring(1.0))
    model = model_of(name)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data)
    registry.reload(name, spring(1.0, advance=advance))
    mujoco.mj_step(model, data)
    assert len(advanced) == 1
    registry.reload(name, spring(1.0))
    mujoco.mj_step(model, data)
    assert len(advanced) == 1


def test_a_reload_makes_new_memos_and_frees_the_old(name, model_of, way):
    log = []

    def lives(word):
        return {
            "init": lambda self, model, data, instance: log.append(f"init {word}"),
            "destroy": lambda self, data, instance: log.append(f"destroy {word}"),
        }

    engine.plugin(name, ("passive",))(spring(1.0, **lives("old")))
    model = model_of(name)
    data = mujoco.MjData(model)
    log.clear()
    registry.reload(name, spring(1.0, **lives("new")))
    assert log == []
    mujoco.mj_step(model, data)
    assert log == ["destroy old", "init new"]
    del data
    assert log == ["destroy old", "init new", "destroy new"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"state_size": 2}, "state_size was 1 and is now 2"),
        (
            {"__annotations__": {"gain": float, "b": int}, "b": 1},
            r"\(gain\) and is now \(gain, b\)",
        ),
    ],
)
def test_a_reload_of_another_shape_is_refused_with_the_difference(name, model_of, change, words):
    engine.plugin(name, ("passive",))(spring(1.0))
    model = model_of(name)
    for _ in range(2):
        with pytest.raises(EngineDeclarationError, match=words):
            registry.reload(name, spring(9.0, **change))
    assert force(model) == -1.0
    assert registry.plugin(name).generation == 1


def test_another_capability_or_stage_is_another_shape(name):
    def sensor(stage):
        body = {"sensor_size": 1, "compute": lambda self, model, data, instance, capability: None}
        engine.plugin(name, ("sensor",), stage=stage)(type("Sensor", (), body))

    sensor("pos")
    with pytest.raises(EngineDeclarationError, match="stage was 'pos' and is now 'acc'"):
        sensor("acc")


def test_a_size_that_a_method_computes_is_compared_with_each_model(name, model_of, raises):
    engine.plugin(name, ("passive",))(spring(1.0, state_size=lambda self, model, instance: 1))
    model = model_of(name)
    data = mujoco.MjData(model)
    registry.reload(name, spring(1.0, state_size=lambda self, model, instance: 2))
    error = raises(lambda: mujoco.mj_step(model, data), data)
    assert "needs 2" in str(error)
    assert "compile the model again" in str(error)
    mujoco.mj_step(model_of(name), mujoco.MjData(model_of(name)))


def test_a_name_of_another_class_is_refused_every_time_with_both_origins(name):
    engine.plugin(name, ("passive",))(spring(1.0))

    class Other:
        def compute(self, model, data, instance, capability):
            pass

    for wanted in (name, name.upper(), name):
        with pytest.raises(EngineNameTakenError) as info:
            engine.plugin(wanted, ("passive",))(Other)
        assert "Other" in str(info.value)
        assert "spring.<locals>.Spring" in str(info.value)
        assert str(info.value).count(__file__) == 2


@pytest.mark.parametrize("builtin", ["mujoco.pid", "MuJoCo.PID", "mujoco.sdf.torus"])
def test_a_name_of_the_engine_is_refused_every_time(builtin):
    before = functions().plugin_count()
    for _ in range(3):
        with pytest.raises(EngineNameTakenError, match="libactuator|libsdf|libmujoco"):
            engine.plugin(builtin, ("passive",))(spring(1.0))
    assert functions().plugin_count() == before
    assert registry.plugins().get("mujoco.pid") is None


def test_an_unknown_name_lists_the_near_ones(name):
    engine.plugin(name, ("passive",))(spring(1.0))
    with pytest.raises(UnknownNameError, match=name):
        registry.plugin(name + "x")


def test_many_names_can_be_registered_and_all_stay_findable(name):
    names = [f"{name}.{index}" for index in range(40)]
    for each in names:
        engine.plugin(each, ("passive",))(spring(1.0))
    assert all(functions().get_plugin(each) for each in names)


def test_the_longest_name_is_a_name(name, model_of):
    long = (name + "x" * 1023)[:1023]
    engine.plugin(long, ("passive",))(spring(1.0))
    assert force(model_of(long)) == -1.0


def test_names_and_attributes_may_be_any_printable_text(name, model_of):
    engine.plugin(name + ".ünïcödé", ("passive",))(spring(1.0))
    assert force(model_of(name + ".ünïcödé")) == -1.0


def test_an_unknown_attribute_in_a_model_is_refused_by_the_engine(name, xml_of):
    engine.plugin(name, ("passive",))(spring(1.0))
    with pytest.raises(ValueError, match="kq"):
        mujoco.MjModel.from_xml_string(xml_of(name, kq="1"))


@pytest.mark.parametrize("count", [1, 2])
def test_a_plugin_without_attributes_works_in_any_number(name, count, way):
    """MuJoCo issue 2450."""
    seen = []

    @engine.plugin(name, ("sensor",))
    class Bare:
        sensor_size = 1
        state_size = 1

        def compute(self, model, data, instance, capability):
            seen.append(instance)
            self.sensordata[0] = self.state[0]

        def advance(self, model, data, instance):
            self.state[0] += 1

    instances = "".join(f'<instance name="i{k}"/>' for k in range(count))
    sensors = "".join(f'<plugin instance="i{k}"/>' for k in range(count))
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><extension><plugin plugin="{name}">{instances}</plugin></extension>'
        f"<sensor>{sensors}</sensor></mujoco>"
    )
    data = mujoco.MjData(model)
    for _ in range(3):
        mujoco.mj_step(model, data)
    assert data.sensordata.tolist() == [2.0] * count


# -- providers, decoders -------------------------------------------------------------------------


def test_a_provider_that_the_engine_refuses_is_an_error(name):
    provider = Provider()
    provider.prefix = b"not_a_prefix"
    with pytest.raises(EngineDeclarationError, match="not_a_prefix"):
        registry.register_provider(provider, "here")


def test_a_taken_extension_is_refused_every_time_with_both_origins():
    function = ctypes.cast(ctypes.CDLL(None).sched_yield, ctypes.c_void_p).value

    def decoder():
        made = Decoder()
        made.content_type, made.extension = b"text/x-test-taken", b".takentest"
        made.can_decode = made.decode = function
        return made

    registry.register_decoder(decoder(), "the first")
    for _ in range(3):
        with pytest.raises(EngineNameTakenError, match=r"the second.*the first"):
            registry.register_decoder(decoder(), "the second")
    assert registry.others()["decoder", ".takentest"] == "the first"


def test_an_extension_of_the_engine_is_refused():
    made = Decoder()
    made.extension = b".stl"
    made.can_decode = made.decode = 1
    with pytest.raises(EngineNameTakenError, match="stl"):
        registry.register_decoder(made, "here")


# -- processes -----------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(st.text(max_size=8))
def test_no_name_ends_the_process(text):
    try:
        engine.plugin(text, ("passive",))(spring(1.0))
    except (EngineDeclarationError, EngineNameTakenError):
        return
    assert functions().get_plugin(text) is not None


@pytest.mark.slow
def test_a_foreign_registration_of_our_name_cannot_pass_unseen(name):
    script = textwrap.dedent(
        f"""
        import ctypes
        from mjhost import engine
        from mjhost.engine.abi.structs import Plugin
        from mjhost.engine.abi.symbols import engine as functions
        from mjhost.engine.abi.guard import no_exit
        from mjhost.errors import EngineNameTakenError
        foreign = Plugin()
        foreign.name, foreign.capabilityflags = b"{name}", 4
        with no_exit() as said:
            functions().register_plugin(foreign)
        assert not said.failed
        for _ in range(2):
            try:
                @engine.plugin("{name}", ("passive",))
                class Mine:
                    def compute(self, model, data, instance, capability): pass
            except EngineNameTakenError as error:
                print("refused", error)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("refused") == 2
    assert Plugin is not None


@pytest.mark.slow
def test_a_notebook_cell_may_be_run_again(name):
    script = textwrap.dedent(
        f"""
        import mujoco
        CELL = '''
        from mjhost import engine
        @engine.plugin("{name}", ("passive",))
        class Spring:
            def compute(self, model, data, instance, capability):
                data.qfrc_passive[0] = K
        '''
        XML = '''<mujoco><extension><plugin plugin="{name}"><instance name="i"/></plugin>
        </extension><worldbody><body><joint type="slide"/><geom size=".1"/>
        <plugin instance="i"/></body></worldbody></mujoco>'''
        model = data = None
        for K in (1.0, 2.0, 3.0):
            exec(compile(CELL, f"<cell {{K}}>", "exec"), globals())
            model = model or mujoco.MjModel.from_xml_string(XML)
            data = data or mujoco.MjData(model)
            mujoco.mj_forward(model, data)
            assert data.qfrc_passive[0] == K
        print("fine")
        """
    )
    done = subprocess.run(
        [sys.executable], input=script, capture_output=True, text=True, check=False, timeout=60
    )
    assert "fine" in done.stdout, done.stderr
