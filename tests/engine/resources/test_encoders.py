"""Encoders in Python: what they are given, what they return, how they fail."""

from __future__ import annotations

import zipfile
from pathlib import Path

import mujoco
import numpy as np
import pytest

from mjhost import engine
from mjhost.errors import EngineDeclarationError, EngineNameTakenError, EnginePluginError
from tests.engine.resources.helpers import FILES, FULL, content, obj, with_meshes

MODEL_TEXT = '<mujoco><worldbody><body><freejoint/><geom size="0.1"/></body></worldbody></mujoco>'


def test_an_encoder_that_asks_for_something_unknown_is_refused(extension, content_type):
    for wrong in (lambda spec, nodel: b"", lambda: b"", lambda *args: b"", 7):
        with pytest.raises(EngineDeclarationError, match="any of spec, model, xml|plain function"):
            engine.encoder(extension, content_type)(wrong)


@pytest.fixture
def encoded(extension, content_type):
    """Declares an encoder and returns what it was given, by name."""
    given = {}

    @engine.encoder(extension, content_type)
    def encode(spec, model, xml, assets, name):
        given.update(spec=spec, model=model, xml=xml, assets=assets, name=name)
        return b"encoded " + xml[:7].encode()

    return given


@pytest.mark.parametrize("source", ["memory", "disk"])
@pytest.mark.parametrize("compiled", [True, False])
def test_an_encoder_is_given_a_model_that_is_complete(
    encoded, extension, source, compiled, tmp_path
):
    if source == "memory":
        spec = mujoco.MjSpec.from_string(FULL, assets=FILES)
    else:
        for name, file in FILES.items():
            (tmp_path / "m" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "m" / name).write_bytes(file)
        (tmp_path / "m" / "model.xml").write_text(FULL)
        spec = mujoco.MjSpec.from_file("m/model.xml")
    model = spec.compile() if compiled else None
    assert spec.encode(f"out{extension}", model) == 15
    assert Path(f"out{extension}").read_bytes() == b"encoded <mujoco"
    assert encoded["name"] == f"out{extension}"
    assert sorted(encoded["assets"].values()) == sorted(FILES.values())
    again = encoded["spec"].compile()
    expected = content(spec.compile())
    for name, value in content(again).items():
        if name not in {"bvh_aabb", "names_map"} and not isinstance(value, tuple):
            assert value == expected[name], name
    np.testing.assert_array_equal(again.mesh_vert, spec.compile().mesh_vert)
    np.testing.assert_array_equal(again.tex_data, spec.compile().tex_data)
    np.testing.assert_array_equal(again.hfield_data, spec.compile().hfield_data)
    assert again.body_pos[1, 0] == 0.123456789012345
    if compiled:
        assert content(encoded["model"]) == content(model)
    else:
        assert encoded["model"] is None


def test_encoding_leaves_spec_and_precision_alone(encoded, extension):
    spec = mujoco.MjSpec.from_string(FULL, assets=FILES)
    model = spec.compile()
    before = spec.to_xml()
    spec.encode(f"out{extension}", model)
    assert spec.to_xml() == before
    assert sorted(spec.assets) == sorted(FILES)


def test_an_encoder_gets_only_what_it_asks_for(extension, content_type):
    asked = []

    @engine.encoder(extension, content_type)
    def encode(name, more=3, *, assets):
        asked.append((name, more, assets))
        return b"x"

    mujoco.MjSpec.from_string(MODEL_TEXT).encode(f"out{extension}")
    assert asked == [(f"out{extension}", 3, {})]


def test_what_a_provider_serves_is_encoded_as_a_file(encoded, extension, prefix):
    engine.resource_provider(prefix)(lambda _uri: obj())
    spec = mujoco.MjSpec.from_string(
        with_meshes(f"{prefix}:deep/a.obj").replace("<mujoco>", '<mujoco><compiler meshdir="m"/>')
    )
    spec.compile()
    spec.encode(f"out{extension}")
    assert encoded["assets"] == {"a.obj": obj()}


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda xml: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda xml: "text", "an encoder returns bytes, got str"),
        (lambda xml: b"", "at least one byte"),
    ],
)
def test_an_encoder_that_fails_writes_nothing_and_is_told(
    extension, content_type, function, words, capfd
):
    engine.encoder(extension, content_type)(function)
    spec = mujoco.MjSpec.from_string(MODEL_TEXT)
    spec.compile()
    with pytest.raises(mujoco.FatalError):
        spec.encode(f"out{extension}")
    assert not Path(f"out{extension}").exists()
    assert words in capfd.readouterr().err
    with pytest.raises(EnginePluginError, match=words):
        engine.check()


def test_a_spec_that_does_not_compile_cannot_be_encoded(encoded, extension):
    spec = mujoco.MjSpec.from_string("<mujoco><worldbody><geom/></worldbody></mujoco>")
    with pytest.raises(mujoco.FatalError):
        spec.encode(f"out{extension}")
    with pytest.raises(EnginePluginError, match="it does not compile: .*size"):
        engine.check()


def test_a_spec_whose_file_is_gone_cannot_be_encoded(encoded, extension):
    Path("a.obj").write_bytes(obj())
    spec = mujoco.MjSpec.from_string(with_meshes("a.obj"))
    spec.compile()
    Path("a.obj").unlink()
    with pytest.raises(mujoco.FatalError):
        spec.encode(f"out{extension}")
    with pytest.raises(EnginePluginError, match=r"file 'a\.obj' of the spec cannot be opened"):
        engine.check()


def test_the_engines_own_encoder_stays(content_type):
    with pytest.raises(EngineNameTakenError):
        engine.encoder(".mjz", content_type)(lambda spec: b"x")
    spec = mujoco.MjSpec.from_string(MODEL_TEXT)
    spec.compile()
    spec.encode("a.mjz")
    assert zipfile.is_zipfile("a.mjz")


def test_encoding_to_another_extension_by_content_type(encoded, content_type):
    spec = mujoco.MjSpec.from_string(MODEL_TEXT)
    spec.compile()
    assert spec.encode("out.whatever", None, content_type) == 15
