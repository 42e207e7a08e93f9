"""Exceptions of users whose text cannot be had."""

import mujoco
import pytest

from mjhost import engine
from mjhost.errors import EnginePluginError


class Unprintable(Exception):
    def __str__(self):
        raise ValueError("no text")


@pytest.mark.parametrize("method", ["init", "compute", "state_size"])
def test_an_exception_without_text_refuses_the_model_like_any_other(name, xml_of, method):
    def fail(*_):
        raise Unprintable

    @engine.plugin(name, capabilities=("passive",))
    class Failing:
        def init(self, model, data, instance):
            return fail() if method == "init" else None

        def state_size(self, model, instance):
            return fail() if method == "state_size" else 0

        def compute(self, model, data, instance, capability):
            if method == "compute":
                fail()

    with pytest.raises(ValueError, match="Unprintable: .its text cannot be had"):
        mujoco.MjModel.from_xml_string(xml_of(name))


def test_an_exception_without_text_in_destroy_is_kept(name, model_of):
    broken = []

    @engine.plugin(name, capabilities=("passive",))
    class Failing:
        def destroy(self, data, instance):
            if broken:
                raise Unprintable

        def compute(self, model, data, instance, capability):
            pass

    data = mujoco.MjData(model_of(name))
    broken.append(True)
    del data
    with pytest.raises(EnginePluginError, match="Unprintable"):
        engine.check()


def test_a_decoder_that_raises_without_text_does_not_end_the_process():
    @engine.decoder(".unprintable", "model/unprintable", meshes_only=True)
    def broken(content, name):
        raise Unprintable

    @engine.resource_provider("unprintable")
    def serve(uri):
        return b"x"

    with pytest.raises(ValueError, match="Unprintable"):
        mujoco.MjModel.from_xml_string(
            '<mujoco><asset><mesh name="m" file="unprintable:a.unprintable"/></asset>'
            '<worldbody><geom type="mesh" mesh="m"/></worldbody></mujoco>'
        )


@pytest.mark.parametrize("padding", range(4))
@pytest.mark.parametrize("letter", ["é", "€", "😀"])
def test_a_long_text_of_long_letters_reaches_the_user(name, xml_of, letter, padding):
    """The engine cuts at a byte, which may be in the middle of a letter."""

    @engine.plugin(name, capabilities=("passive",))
    class Failing:
        def init(self, model, data, instance):
            raise RuntimeError("x" * padding + letter * 400)

        def compute(self, model, data, instance, capability):
            pass

    with pytest.raises(ValueError, match=f"init: RuntimeError: {'x' * padding}[^x]") as info:
        mujoco.MjModel.from_xml_string(xml_of(name))
    assert "\ufffd" not in str(info.value)


@pytest.mark.parametrize("odd", ["\ud800", "a\udcff", "\udc80.b"])
def test_a_name_that_is_no_text_is_refused_when_it_is_declared(name, odd):
    with pytest.raises(engine.EngineDeclarationError, match="printable"):

        @engine.plugin(name + odd, capabilities=("passive",))
        class Nameless:
            def compute(self, model, data, instance, capability):
                pass
