"""Decoders and encoders in Python: what they may return, how they fail, who has which name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest

from mjhost import engine
from mjhost.engine import codecs
from mjhost.env import MujocoEnv
from mjhost.errors import (
    EngineDeclarationError,
    EngineNameTakenError,
    EnginePluginError,
    InvalidArgumentError,
    ModelLoadError,
)
from tests.engine.resources.helpers import (
    FACES,
    VERTICES,
    load,
    obj,
    with_meshes,
)

REPORTS = mujoco.mj_version() >= 3_016_000
MESH_TEXT = (
    '<mujoco><asset><mesh name="m" vertex="0 0 0  1 0 0  0 1 0  0 0 1" '
    'face="0 2 1  0 1 3  0 3 2  1 2 3"/></asset></mujoco>'
)
MODEL_TEXT = (
    '<mujoco model="decoded"><worldbody><body name="b"><freejoint/><geom size="0.1"/></body>'
    "</worldbody></mujoco>"
)
ATTACHING = (
    '<mujoco><asset><model name="z" file="{}"/></asset>'
    '<worldbody><attach model="z" body="b" prefix="q"/></worldbody></mujoco>'
)


def tetrahedron_spec():
    spec = mujoco.MjSpec()
    mesh = spec.add_mesh(name="t")
    mesh.uservert, mesh.userface = np.ravel(VERTICES), np.ravel(FACES)
    return spec


@pytest.fixture
def decode(extension, content_type):
    """Declares a decoder that does what is assigned to the list, and writes a file for it."""
    does = [lambda _content, _name: (VERTICES, FACES)]
    Path(f"a{extension}").write_bytes(b"bytes of a")

    @engine.decoder(extension, content_type)
    def function(content, name):
        return does[0](content, name)

    return does


# -- decoding ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "result",
    [
        (VERTICES, FACES),
        (np.array(VERTICES, np.float32), np.array(FACES, np.uint8)),
        codecs.Mesh(VERTICES, FACES),
        MESH_TEXT,
        tetrahedron_spec,
    ],
    ids=["lists", "arrays", "mesh", "text", "spec"],
)
def test_a_mesh_may_be_returned_in_several_ways(decode, extension, result):
    decode[0] = lambda _content, _name: result() if callable(result) else result
    model = load(with_meshes(f"a{extension}"))
    assert (model.nmeshvert, model.nmeshface) == (4, 4)
    assert model.body_mass[1] == pytest.approx(1000 / 6)


def test_a_decoder_gets_the_bytes_and_the_name(decode, extension, tmp_path):
    got = []
    decode[0] = lambda *given: (got.append(given), (VERTICES, FACES))[1]
    load(with_meshes(f"{tmp_path}/a{extension}"))
    assert set(got) == {(b"bytes of a", f"{tmp_path}/a{extension}")}


def test_the_extension_is_matched_in_upper_and_lower_case(decode, extension):
    Path(f"B{extension.upper()}").write_bytes(b"x")
    assert load(with_meshes(f"B{extension.upper()}")).nmeshvert == 4


def test_a_content_type_finds_the_decoder_of_any_file(decode, content_type):
    Path("noext").write_bytes(b"x")
    xml = with_meshes("noext").replace("file=", f'content_type="{content_type}" file=')
    assert load(xml).nmeshvert == 4


def test_several_extensions_have_one_decoder(extension, content_type):
    both = f"{extension}a|{extension}b"
    engine.decoder(both, content_type)(lambda _content, _name: (VERTICES, FACES))
    for name in (f"x{extension}a", f"x{extension}b"):
        Path(name).write_bytes(b"x")
    assert load(with_meshes(f"x{extension}a", f"x{extension}b")).nmesh == 2
    assert {f"{extension}a", f"{extension}b"} <= codecs.model_suffixes()


@pytest.mark.parametrize("result", [MODEL_TEXT, lambda: mujoco.MjSpec.from_string(MODEL_TEXT)])
def test_a_model_is_decoded_by_from_file_and_to_be_attached(decode, extension, result):
    decode[0] = lambda _content, _name: result() if callable(result) else result
    spec = mujoco.MjSpec.from_file(f"a{extension}")
    assert (spec.modelname, spec.compile().nbody) == ("decoded", 2)
    attached = load(ATTACHING.format(f"a{extension}"))
    assert attached.body("qb").id == 1


def test_the_returned_spec_is_copied(decode, extension):
    mine = mujoco.MjSpec.from_string(MODEL_TEXT)
    decode[0] = lambda _content, _name: mine
    theirs = mujoco.MjSpec.from_file(f"a{extension}")
    mine.modelname = "changed"
    assert theirs.modelname == "decoded"
    assert theirs.compile().nbody == 2


def test_a_decoder_reads_what_a_provider_serves(decode, extension, prefix):
    engine.resource_provider(prefix)(lambda _uri: b"from far away")
    got = []
    decode[0] = lambda content, name: (got.append((content, name)), MODEL_TEXT)[1]
    spec = mujoco.MjSpec.from_file(f"{prefix}:d/a{extension}")
    assert spec.modelname == "decoded"
    assert got == [(b"from far away", f"{prefix}:d/a{extension}")]


def test_meshes_are_decoded_on_worker_threads(decode, extension):
    names = [f"{index}{extension}" for index in range(8)]
    for name in names:
        Path(name).write_bytes(name.encode())
    assert load(with_meshes(*names)).nmesh == 8


# -- failing -------------------------------------------------------------------------------------


def raising(_content, _name):
    raise ValueError("bad magic: 100% <wrong>\nreally")


WORDS = "ValueError: bad magic: 100% <wrong> really"


def test_the_error_of_a_decoder_is_in_the_error_of_a_mesh(decode, extension):
    decode[0] = raising
    for _ in range(2):
        with pytest.raises(ValueError, match=WORDS):
            load(with_meshes(f"a{extension}"))
    engine.check()


def test_the_error_of_a_decoder_is_in_the_error_of_one_mesh_among_many(decode, extension):
    names = [f"{index}{extension}" for index in range(8)]
    for name in names:
        Path(name).write_bytes(name.encode())
    decode[0] = lambda _content, name: raising(b"", "") if "5" in name[0] else (VERTICES, FACES)
    with pytest.raises(ValueError, match=WORDS):
        load(with_meshes(*names))


@pytest.mark.parametrize("way", ["file", "attach"])
def test_the_error_of_a_decoder_of_a_model_is_told(decode, extension, way, capfd):
    decode[0] = raising
    with pytest.raises(ValueError) as caught:
        if way == "file":
            mujoco.MjSpec.from_file(f"a{extension}")
        else:
            load(ATTACHING.format(f"a{extension}"))
    if REPORTS:
        assert WORDS in str(caught.value)
        engine.check()
        return
    # 3.15 takes no reason: it is a warning, and waits.
    assert "could not decode content" in str(caught.value)
    assert WORDS in capfd.readouterr().err
    with pytest.raises(EnginePluginError, match=WORDS) as waited:
        engine.check()
    assert isinstance(waited.value.__cause__, ValueError)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (None, "returns an MjSpec, MJCF text or .*, got NoneType"),
        (7, "returns an MjSpec, MJCF text or .*, got int"),
        ("<mujoco><nonsense/></mujoco>", "MJCF that it returned is none: .*nonsense"),
        ("no xml at all", "MJCF that it returned is none"),
        ((VERTICES, [(0, 1, 4)]), "face 0 has the vertex 4, but there are 4"),
        ((VERTICES, [(0, 1, -1)]), "face 0 has the vertex -1"),
        ((VERTICES, [(0.0, 1.0, 2.0)]), "faces are int64 numbers"),
        ((VERTICES, []), "faces have the shape"),
        ((VERTICES, np.empty((0, 3), int)), "the mesh has no faces"),
        (([(0, 0)], FACES), "vertices have the shape"),
        (([(0, 0, np.nan)], FACES), "vertex 0 is not finite"),
        (([(0, 0, 1e39)], FACES), "vertex 0 is not finite"),
        ((VERTICES, FACES, 3), "got tuple"),
    ],
)
def test_what_no_decoder_may_return_is_refused_with_the_reason(decode, extension, result, words):
    decode[0] = lambda _content, _name: result
    with pytest.raises(ValueError, match=words):
        load(with_meshes(f"a{extension}"))


def test_a_spec_with_assets_is_refused_with_the_way_out(decode, extension):
    decode[0] = lambda _content, _name: mujoco.MjSpec.from_string(
        with_meshes("x.obj"), assets={"x.obj": obj()}
    )
    with pytest.raises(ValueError, match=r"assets \(x\.obj\).*resource provider"):
        load(with_meshes(f"a{extension}"))


def test_a_file_that_is_not_there_is_no_case_for_the_function(decode, extension):
    called = []
    decode[0] = lambda *given: called.append(given)
    with pytest.raises(ValueError):
        mujoco.MjSpec.from_file(f"gone{extension}")
    assert called == []
    if not REPORTS:
        with pytest.raises(EnginePluginError, match="it cannot be read"):
            engine.check()


def test_a_file_that_is_too_large_is_no_case_for_the_function(extension, content_type):
    engine.decoder(extension, content_type, max_bytes=10)(lambda _content, _name: 1 / 0)
    Path(f"a{extension}").write_bytes(b"12345678901")
    with pytest.raises(ValueError, match="11 bytes, at most 10 are allowed"):
        load(with_meshes(f"a{extension}"))


@pytest.mark.slow
def test_a_decoder_may_compile_and_use_the_bindings_and_still_fail():
    code = """
import mujoco, numpy as np
from pathlib import Path
from mjhost import engine
names = [f"{i}.nest" for i in range(3)]
for name in names:
    Path(name).write_bytes(b"x")
@engine.decoder(".nest", "model/nest")
def decode(content, name):
    mujoco.mju_normalize4(np.array([1.0, 2, 3, 4]))
    m = mujoco.MjModel.from_xml_string("<mujoco/>")
    mujoco.mj_step(m, mujoco.MjData(m))
    raise RuntimeError("after all that")
assets = "".join(f'<mesh name="m{i}" file="{n}"/>' for i, n in enumerate(names))
for _ in range(5):
    try:
        mujoco.MjModel.from_xml_string(f"<mujoco><asset>{assets}</asset></mujoco>")
    except ValueError as error:
        assert "RuntimeError: after all that" in str(error), error
    else:
        raise SystemExit("loaded")
print("alive")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


# -- declaring -----------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["", "acme", ".", ".a b", ".a|", ".a|b", ".a.b", None])
def test_an_extension_that_cannot_be_is_refused(wrong):
    for declare in (engine.decoder, engine.encoder):
        with pytest.raises(InvalidArgumentError, match="extension"):
            declare(wrong, "model/x")


@pytest.mark.parametrize("wrong", ["", "model", "model/", "a b/c", None])
def test_a_content_type_that_cannot_be_is_refused(extension, wrong):
    for declare in (engine.decoder, engine.encoder):
        with pytest.raises(InvalidArgumentError, match="content type"):
            declare(extension, wrong)


def test_a_function_that_cannot_be_called_so_is_refused(extension, content_type):
    async def later(content, name):
        return content

    for wrong, words in (
        (lambda content: content, r"called with \(content, name\)"),
        (later, "cannot await"),
        (7, "callable"),
    ):
        with pytest.raises(EngineDeclarationError, match=words):
            engine.decoder(extension, content_type)(wrong)
    assert extension not in codecs.model_suffixes()


def test_a_second_decoder_is_refused_with_both_origins(decode, extension, content_type):
    def other(content, name):
        return MESH_TEXT

    for names in (
        (extension, content_type),
        (extension.upper(), "model/other"),
        (f"{extension}x", content_type),
        (f"{extension}y|{extension}", "model/other"),
    ):
        for _ in range(2):
            with pytest.raises(EngineNameTakenError, match="other.*belong to .*function"):
                engine.decoder(*names)(other)
    assert load(with_meshes(f"a{extension}")).nmeshvert == 4
    assert f"{extension}y" not in codecs.model_suffixes()


@pytest.mark.parametrize("own", [".obj", ".stl", ".STL"])
def test_the_engines_own_decoders_stay(own, content_type):
    with pytest.raises(EngineNameTakenError, match=r"own|engine"):
        engine.decoder(own, content_type)(lambda _content, _name: MESH_TEXT)
    Path("a.obj").write_bytes(obj())
    assert load(with_meshes("a.obj")).nmeshvert == 8


def test_a_refused_name_among_several_registers_none(extension, content_type):
    with pytest.raises(EngineNameTakenError):
        engine.decoder(f"{extension}|.obj", content_type)(lambda _content, _name: MESH_TEXT)
    Path(f"a{extension}").write_bytes(b"x")
    with pytest.raises(ValueError, match="no decoder found"):
        load(with_meshes(f"a{extension}"))
    engine.decoder(extension, content_type)(lambda _content, _name: MESH_TEXT)
    assert load(with_meshes(f"a{extension}")).nmeshvert == 4


def test_declaring_again_from_the_same_place_swaps_the_function(extension, content_type):
    sizes = []
    for scale in (1, 2):

        @engine.decoder(extension, content_type)
        def decode(content, name, scale=scale):
            return np.array(VERTICES) * scale, FACES

        Path(f"{scale}{extension}").write_bytes(b"x")
        sizes.append(load(with_meshes(f"{scale}{extension}")).body_mass[1])
    assert sizes[1] == pytest.approx(8 * sizes[0])


# -- for those who open files --------------------------------------------------------------------


def test_decoders_of_meshes_only_are_no_model_suffixes(extension, content_type):
    engine.decoder(extension, content_type, meshes_only=True)(lambda _c, _n: (VERTICES, FACES))
    assert extension not in codecs.model_suffixes()
    assert ".mjsqlite" in codecs.model_suffixes()


def test_a_hint_says_what_reads_and_what_to_do(decode, extension):
    Path("a.unheard").write_bytes(b"x")
    with pytest.raises(ValueError, match="no decoder found") as caught:
        load(with_meshes("a.unheard"))
    hint = codecs.hint(str(caught.value))
    for words in (".unheard", ".obj", ".stl", extension, "mjhost.engine.decoder"):
        assert words in hint
    assert codecs.hint("something else") == ""
    assert "builtin.ply" in codecs.hint("no decoder found for mesh file 'x.PLY'")


def test_a_failed_load_of_an_env_tells_a_decoders_reason_once(decode, extension):
    def broken(_content, _name):
        raise ValueError("row 3 is short")

    decode[0] = broken
    with pytest.raises(ModelLoadError, match="row 3 is short") as info:
        MujocoEnv(f"a{extension}")
    assert str(info.value).count("row 3 is short") == 1
    engine.check()
