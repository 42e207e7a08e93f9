from __future__ import annotations

import contextlib
import copy
import os
import subprocess
import sys
import threading
from pathlib import Path

import mujoco
import numpy as np
import pytest

import mjhost
from mjhost.env.loading import ModelSource, compile_source, content_hash
from mjhost.env.mjb import ImageView, check_image
from mjhost.errors import InvalidArgumentError, ModelLoadError
from mjhost.layout import model_sizes

TETRA = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
ARM = """
<mujoco model="arm">
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body name="a" pos="0 0 1"><freejoint/><geom size=".1"/>
      <body name="b"><joint name="j"/><geom size=".1" pos=".3 0 0"/><site name="s"/></body>
    </body>
  </worldbody>
  <actuator><position name="p" joint="j"/></actuator>
  <sensor><jointpos joint="j"/></sensor>
  <keyframe><key name="up" qpos="0 0 1 1 0 0 0 0"/></keyframe>
</mujoco>
"""
NAN = '<mujoco><custom><numeric name="n" data="nan"/></custom></mujoco>'
MESH = (
    '<mujoco><asset><mesh name="m" file="t.obj"/></asset>'
    '<worldbody><geom type="mesh" mesh="m"/></worldbody></mujoco>'
)
PID = """
<mujoco><extension><plugin plugin="mujoco.pid"><instance name="pid">
  <config key="kp" value="3"/></instance></plugin></extension>
<worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody>
<actuator><plugin joint="j" plugin="mujoco.pid" instance="pid"/></actuator></mujoco>
"""
URDF = """
<robot name="r">
  <link name="base"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="tip"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="j" type="revolute"><parent link="base"/><child link="tip"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="10" velocity="1"/></joint>
</robot>
"""
CHILD = """
<mujoco><option timestep=".01"/>
  <worldbody><body name="b"><geom size="1"/></body></worldbody></mujoco>
"""
PARENT = """
<mujoco><asset><model name="c" file="child.xml"/></asset>
  <worldbody><attach model="c" body="b" prefix="x"/></worldbody></mujoco>
"""
TEXTS = {
    "arm": ARM,
    "mesh": MESH,
    "pid": PID,
    "empty": "<mujoco/>",
    "defaults": """<mujoco><compiler angle="radian" autolimits="true"/>
        <default><default class="x"><geom size=".2" rgba="1 0 0 1"/></default></default>
        <asset><hfield name="h" nrow="3" ncol="3" size="1 1 1 1"
            elevation="0 1 2 3 4 5 6 7 8"/></asset>
        <worldbody><light pos="0 0 3"/><camera name="c" pos="0 0 2"/>
        <geom type="hfield" hfield="h"/>
        <body name="m" mocap="true"><geom class="x"/></body>
        <body><joint name="j" range="-1 1"/><geom class="x"/></body></worldbody>
        <tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon></mujoco>""",
}


def image_of(model: mujoco.MjModel) -> bytes:
    image = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, image)
    return image.tobytes()


@pytest.fixture
def folder(tmp_path):
    for name, text in TEXTS.items():
        (tmp_path / f"{name}.xml").write_text(text)
    (tmp_path / "t.obj").write_bytes(TETRA)
    (tmp_path / "robot.urdf").write_text(URDF)
    mujoco.mj_saveModel(mujoco.MjModel.from_xml_string(ARM), str(tmp_path / "arm.mjb"), None)
    mujoco.mj_saveModel(mujoco.MjModel.from_xml_string(PID), str(tmp_path / "pid.mjb"), None)
    return tmp_path


def load(model, **more):
    return compile_source(ModelSource.of(model, **more))


# -- what comes out is what the engine would have made ---------------------------------------------


@pytest.mark.parametrize("name", [f"{name}.xml" for name in TEXTS])
def test_a_file_gives_the_bytes_of_the_engines_own_loader(folder, name):
    path = folder / name
    compiled = load(path)
    assert image_of(compiled.model) == image_of(mujoco.MjModel.from_xml_path(str(path)))
    assert compiled.spec is not None
    assert compiled.source.path == path


def test_a_description_is_imported_and_reported(folder):
    compiled = load(folder / "robot.urdf")
    assert compiled.import_report is not None
    assert compiled.import_report.links == compiled.model.nbody - 1
    assert compiled.spec is not None


@pytest.mark.parametrize("name", ["humanoid", "pendulum"])
def test_a_bundled_model_gives_the_bytes_of_the_engines_own_loader(name):
    path = Path(mjhost.__file__).parent / "models" / f"{name}.xml"
    assert image_of(load(path).model) == image_of(mujoco.MjModel.from_xml_path(str(path)))


def test_text_gives_the_bytes_of_the_engines_own_loader():
    assert image_of(load(ARM).model) == image_of(mujoco.MjModel.from_xml_string(ARM))


def test_text_finds_its_assets_in_memory():
    compiled = load(MESH, assets={"t.obj": TETRA})
    expected = mujoco.MjModel.from_xml_string(MESH, {"t.obj": TETRA})
    assert image_of(compiled.model) == image_of(expected)


@pytest.mark.slow
def test_a_binary_file_gives_its_own_bytes_and_no_spec(folder):
    compiled = load(folder / "arm.mjb")
    assert image_of(compiled.model) == (folder / "arm.mjb").read_bytes()
    assert compiled.spec is None


def test_a_zipped_model_is_read_with_its_assets(folder):
    spec = mujoco.MjSpec.from_string(MESH, assets={"t.obj": TETRA})
    spec.encode(str(folder / "z.mjz"), spec.compile())
    compiled = load(folder / "z.mjz")
    assert compiled.model.nmesh == 1
    assert compiled.spec is not None


def test_the_pair_has_had_one_forward():
    compiled = load(ARM)
    fresh = mujoco.MjData(compiled.model)
    mujoco.mj_forward(compiled.model, fresh)
    assert compiled.data.qacc.tobytes() == fresh.qacc.tobytes()
    assert compiled.data.time == 0
    assert not any(stat.number for stat in compiled.data.warning)


@pytest.mark.parametrize(
    "text", ["<mujoco/>", "<mujoco><worldbody><geom size='1'/></worldbody></mujoco>"]
)
def test_a_model_in_which_nothing_moves_is_hosted(text):
    compiled = load(text)
    assert compiled.model.nv == 0
    mujoco.mj_step(compiled.model, compiled.data)


def test_times_are_measured_and_the_hash_is_that_of_the_content(folder):
    compiled = load(folder / "arm.xml")
    assert min(compiled.compile_s, compiled.data_s, compiled.forward_s) > 0
    assert compiled.content_hash == content_hash(compiled.model) == load(ARM).content_hash
    assert compiled.content_hash != load(folder / "mesh.xml").content_hash


# -- sources ---------------------------------------------------------------------------------------


def test_a_file_is_read_again_at_each_compile(folder):
    source = ModelSource.of(folder / "arm.xml")
    before = compile_source(source)
    (folder / "arm.xml").write_text(ARM.replace('pos="0 0 1"', 'pos="0 0 2"'))
    after = compile_source(source)
    assert (before.model.body_pos[1, 2], after.model.body_pos[1, 2]) == (1, 2)
    assert before.content_hash != after.content_hash


def test_an_edited_mesh_is_read_again(folder):
    source = ModelSource.of(folder / "mesh.xml")
    sizes = []
    for scale in range(1, 6):
        (folder / "t.obj").write_bytes(TETRA.replace(b"v 1 0 0", b"v %d 0 0" % scale))
        sizes.append(round(float(np.abs(compile_source(source).model.mesh_vert).sum()), 9))
    assert len(set(sizes)) == 5


@pytest.mark.parametrize("digits", ["123456789"])
def test_an_edited_asset_in_memory_is_not_taken_for_the_old_one(digits):
    volumes = set()
    for digit in digits:
        assets = {"t.obj": TETRA.replace(b"v 1 0 0", b"v %b 0 0" % digit.encode())}
        volumes.add(round(float(np.abs(load(MESH, assets=assets).model.mesh_vert).sum()), 9))
    assert len(volumes) == len(digits)


def test_changed_mesh_settings_are_not_taken_for_the_old_ones(folder):
    smooth = MESH.replace('file="t.obj"', 'file="t.obj" smoothnormal="true"')
    (folder / "smooth.xml").write_text(smooth)
    flat_first = [load(folder / name).model.mesh_normal for name in ("mesh.xml", "smooth.xml")]
    smooth_first = [load(folder / name).model.mesh_normal for name in ("smooth.xml", "mesh.xml")]
    assert flat_first[1].tobytes() == smooth_first[0].tobytes()
    assert flat_first[0].tobytes() == smooth_first[1].tobytes()


def test_a_relative_path_is_resolved_when_it_is_given(folder, monkeypatch):
    monkeypatch.chdir(folder)
    source = ModelSource.of("arm.xml")
    monkeypatch.chdir("/")
    assert compile_source(source).source.path == folder / "arm.xml"


def test_a_spec_is_copied_when_it_is_given():
    spec = mujoco.MjSpec.from_string(ARM)
    source = ModelSource.of(spec)
    spec.worldbody.add_body(name="late").add_geom(size=[1, 0, 0])
    first, second = compile_source(source), compile_source(source)
    assert first.model.nbody == second.model.nbody == 3
    assert first.content_hash == second.content_hash
    assert first.spec is not second.spec


def test_a_spec_with_assets_in_memory_compiles_from_its_copy():
    spec = mujoco.MjSpec.from_string(MESH, assets={"t.obj": TETRA})
    assert image_of(load(spec).model) == image_of(spec.compile())


def test_a_model_is_copied_when_it_is_given():
    model = mujoco.MjModel.from_xml_string(ARM)
    before = image_of(model)
    source = ModelSource.of(model)
    model.body_mass[:] = 9
    compiled = compile_source(source)
    compiled.model.opt.timestep = 0.5
    assert image_of(compile_source(source).model) == before
    assert compiled.spec is None


def test_a_source_is_its_own_source(folder):
    source = ModelSource.of(folder / "arm.xml")
    assert ModelSource.of(source) is source


@pytest.mark.parametrize(
    ("model", "label"),
    [(ARM, "XML text"), (mujoco.MjSpec.from_string(ARM), "MjSpec 'arm'")],
)
def test_a_source_without_a_file_says_what_it_is(model, label):
    assert (ModelSource.of(model).label, ModelSource.of(model).path) == (label, None)


@pytest.mark.parametrize("model", [None, 3, b"<mujoco/>", "", "  ", [], Path, 2.5])
def test_what_is_no_model_is_refused_with_what_would_be(model):
    with pytest.raises(InvalidArgumentError, match="a path, XML text, an MjSpec or an MjModel"):
        ModelSource.of(model)


def test_assets_are_for_text_only(folder):
    with pytest.raises(InvalidArgumentError, match="XML text"):
        ModelSource.of(folder / "mesh.xml", assets={"t.obj": TETRA})


@pytest.mark.parametrize("assets", [{"a": "text"}, {1: b""}, [("a", b"")]])
def test_assets_of_the_wrong_type_are_refused(assets):
    with pytest.raises(InvalidArgumentError, match="file names to bytes"):
        ModelSource.of(MESH, assets=assets)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("package://no_such_package/y.urdf", "there is no package .no_such_package."),
        ("scene.usd", "a model file ends in .xml"),
        ("scene", "a model file ends in .xml"),
    ],
)
def test_a_kind_that_cannot_be_read_is_refused_at_once(name, reason):
    with pytest.raises(ModelLoadError, match=reason):
        ModelSource.of(name)


PROVIDER = """
import ctypes
from mjhost.env.loading import ModelSource, compile_source
from mjhost.errors import ModelLoadError
from mjhost.layout import library

MEMBERS = "prefix open read close mount unmount modified write data".split()
class Provider(ctypes.Structure):
    _fields_ = [(member, ctypes.c_void_p) for member in MEMBERS]

CONTENT = ctypes.create_string_buffer(b"<mujoco><worldbody><geom size='1'/></worldbody></mujoco>")
Function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))

def read(resource, buffer):
    buffer[0] = ctypes.addressof(CONTENT)
    return len(CONTENT) - 1

functions = [Function(lambda resource, _: 1), Function(read), Function(lambda resource, _: 0)]
provider = Provider()
prefix = ctypes.create_string_buffer(b"probe")
provider.prefix = ctypes.addressof(prefix)
for name, function in zip(("open", "read", "close"), functions):
    setattr(provider, name, ctypes.cast(function, ctypes.c_void_p).value)
try:
    compile_source(ModelSource.of("probe:model.xml"))
except ModelLoadError as error:
    assert "does not exist" in str(error), error
else:
    raise SystemExit("opened by nobody")
engine = library()
register = getattr(engine, "mjp_registerProvider", None) or engine.mjp_registerResourceProvider
assert register(ctypes.byref(provider)) >= 1
compiled = compile_source(ModelSource.of("probe:model.xml"))
assert (compiled.model.ngeom, compiled.source.kind) == (1, "resource")
"""


@pytest.mark.slow
def test_a_name_that_a_resource_provider_opens_is_left_to_it(tmp_path):
    done = run_python(PROVIDER, tmp_path)
    assert done.returncode == 0, done.stderr


# -- files that are not what they should be --------------------------------------------------------


def failure(model, **more) -> str:
    with pytest.raises(ModelLoadError) as caught:
        load(model, **more)
    message = str(caught.value)
    assert "\n" not in message
    assert not message.endswith(".")
    return message


def test_a_missing_file_is_named_with_its_near_ones(folder):
    message = failure(folder / "amr.xml")
    assert message.startswith(f"{folder}/amr.xml does not exist; did you mean 'arm.xml'")


def test_a_missing_folder_is_named(folder):
    message = failure(folder / "nowhere" / "arm.xml")
    assert f"the directory {folder}/nowhere does not exist either" in message


def test_a_directory_is_no_model(folder):
    assert "is a directory" in failure(folder)


@pytest.mark.parametrize("suffix", [".xml", ".urdf", ".mjb", ".mjz"])
def test_an_empty_file_is_called_empty(folder, suffix):
    path = folder / f"nothing{suffix}"
    path.write_bytes(b"")
    assert failure(path) == f"{path} is empty"


def test_a_file_that_is_not_utf8_is_refused_with_the_line(folder):
    path = folder / "latin.xml"
    path.write_bytes(b'<mujoco model="a">\n<worldbody><body name="\xe9"/></worldbody></mujoco>')
    assert "not UTF-8: byte 0xe9 in line 2" in failure(path)


def test_an_included_file_that_is_not_utf8_is_refused(folder):
    (folder / "latin.xml").write_bytes(
        b'<mujoco><worldbody><body name="\xe9"/></worldbody></mujoco>'
    )
    path = folder / "outer.xml"
    path.write_text('<mujoco><include file="latin.xml"/></mujoco>')
    assert "utf-8" in failure(path).lower()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_says_so(folder):
    (folder / "arm.xml").chmod(0)
    assert "cannot be read: Permission denied" in failure(folder / "arm.xml")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('<mujoco><asset><mesh name="a" file="gone.stl"/></asset></mujoco>', "gone.stl"),
        (
            '<mujoco><asset><texture name="a" type="2d" file="gone.png"/></asset></mujoco>',
            "gone.png",
        ),
        ('<mujoco><include file="gone.xml"/></mujoco>', "gone.xml"),
        ("<mujoco><worldbody></mujoco>", "XML_ERROR_MISMATCHED_ELEMENT"),
        ("<mujoco>\n<worldbody><body typo='1'/></worldbody></mujoco>", "line 2"),
        ("<foo/>", "foo"),
        ('<mujoco><extension><plugin plugin="no.such"/></extension></mujoco>', "no.such"),
        ("<mujoco><worldbody><geom type='box'/></worldbody></mujoco>", "geom"),
    ],
)
def test_the_engines_reason_is_kept_in_one_line(text, reason):
    message = failure(text)
    assert message.startswith("XML text does not compile: ")
    assert reason in message


def test_the_engines_exception_is_the_cause():
    with pytest.raises(ModelLoadError) as caught:
        load("<foo/>")
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize("option", ['timestep="nan"', 'timestep="-1"', 'gravity="0 0 inf"'])
def test_options_that_the_engine_does_not_survive_are_refused(option):
    message = failure(f"<mujoco><option {option}/></mujoco>")
    assert "options that the engine does not survive" in message
    assert option.partition("=")[0] in message


def test_what_the_compiler_warns_of_is_handed_over(folder):
    (folder / "child.xml").write_text(CHILD)
    (folder / "parent.xml").write_text(PARENT)
    warnings = load(folder / "parent.xml").warnings
    assert any("timestep" in warning for warning in warnings)
    assert all("\n" not in warning for warning in warnings)


def test_the_reader_warning_of_a_nan_is_handed_over():
    compiled = load(NAN)
    assert any("NaN" in warning for warning in compiled.warnings)


def test_a_clean_model_has_no_warnings():
    assert load(ARM).warnings == ()


def test_the_guard_is_held_while_the_engine_works():
    events = []

    @contextlib.contextmanager
    def guard():
        events.append("in")
        yield
        events.append("out")

    compile_source(ModelSource.of(ARM), guard=guard())
    with pytest.raises(ModelLoadError):
        compile_source(ModelSource.of("<foo/>"), guard=guard())
    assert events == ["in", "out", "in"]


def test_a_foreign_python_callback_makes_a_compile_fail_cleanly():
    mujoco.set_mjcb_control(lambda model, data: None)
    try:
        assert "Python exception raised" in failure(ARM)
    finally:
        mujoco.set_mjcb_control(None)


@pytest.mark.slow
def test_compiles_write_and_print_nothing(folder):
    (folder / "child.xml").write_text(CHILD)
    (folder / "parent.xml").write_text(PARENT)
    script = f"""
from mjhost.env.loading import ModelSource, compile_source
from mjhost.errors import ModelLoadError
import pathlib
pathlib.Path("bad.mjb").write_bytes(pathlib.Path("arm.mjb").read_bytes()[:-9])
said = 0
models = ("arm.xml", "arm.mjb", "parent.xml", {NAN!r})
for model in models:
    said += len(compile_source(ModelSource.of(model)).warnings)
assert said >= 2
for model in ("<foo/>", "bad.mjb", "gone.xml", {MESH!r}.replace("t.obj", "u.obj")):
    try:
        compile_source(ModelSource.of(model))
    except ModelLoadError:
        continue
    raise SystemExit(model)
"""
    done = run_python(script, folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (folder / "MUJOCO_LOG.TXT").exists()


@pytest.mark.slow
def test_threads_compile_side_by_side(folder):
    def work(name):
        for _ in range(8):
            images[name].add(image_of(load(folder / name).model))

    names = ["arm.xml", "mesh.xml", "pid.xml", "defaults.xml"]
    images = {name: set() for name in names}
    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in names:
        assert images[name] == {image_of(mujoco.MjModel.from_xml_path(str(folder / name)))}


# -- binary models ---------------------------------------------------------------------------------


def run_python(script: str, where: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=where,
        env=os.environ | {"PYTHONPATH": str(Path(mjhost.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )


@pytest.mark.parametrize("name", ["arm.mjb", "pid.mjb"])
def test_the_image_view_reads_what_the_engine_wrote(folder, name):
    image = (folder / name).read_bytes()
    model = load(folder / name).model
    view = ImageView(image, name)
    for size in model_sizes():
        assert view.size(size) == getattr(model, size), size
    for array in ("qpos0", "body_mass", "geom_size", "plugin", "plugin_attradr", "names_map"):
        assert view.array(array).tobytes() == getattr(model, array).tobytes(), array


def patched(image: bytes, array: str, value: int) -> bytes:
    view = ImageView(image, "x")
    offset, _, _ = view._offsets[array]
    start = view._start + offset
    return image[:start] + value.to_bytes(4, sys.byteorder, signed=True) + image[start + 4 :]


def test_a_binary_model_with_a_registered_plugin_of_the_same_shape_is_hosted(folder):
    compiled = load(folder / "pid.mjb")
    mujoco.mj_step(compiled.model, compiled.data)
    assert compiled.model.nplugin == 1


@pytest.mark.parametrize("slot", [-1, 1_000_000, 2**31 - 1])
def test_a_plugin_slot_that_nobody_has_is_refused(folder, slot):
    path = folder / "pid.mjb"
    path.write_bytes(patched(path.read_bytes(), "plugin", slot))
    message = failure(path)
    assert "no plugin is registered there" in message
    assert "'mujoco.pid'" in message


def test_a_plugin_slot_of_another_shape_is_refused(folder):
    path = folder / "pid.mjb"
    path.write_bytes(patched(path.read_bytes(), "plugin", 2))
    assert "there has" in failure(path) or "cannot do" in failure(path)


@pytest.mark.parametrize(("array", "value"), [("plugin_attradr", -5), ("actuator_plugin", 17)])
def test_damaged_plugin_references_are_refused(folder, array, value):
    path = folder / "pid.mjb"
    path.write_bytes(patched(path.read_bytes(), array, value))
    assert "is damaged" in failure(path)


def test_a_model_of_another_engine_is_refused_with_its_version(folder):
    path = folder / "arm.mjb"
    image = bytearray(path.read_bytes())
    image[12:16] = (3_002_007).to_bytes(4, sys.byteorder)
    path.write_bytes(image)
    assert "was written by MuJoCo 3.2.7" in failure(path)


@pytest.mark.parametrize("content", [b"x", b"<mujoco/>" * 5, bytes(64)])
def test_what_is_no_binary_model_is_refused(folder, content):
    path = folder / "arm.mjb"
    path.write_bytes(content)
    assert "is no MJB file" in failure(path)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.01, 0.05, 0.2, 0.5, 0.9, 0.999])
def test_a_truncated_binary_model_is_refused(folder, share):
    path = folder / "arm.mjb"
    image = path.read_bytes()
    path.write_bytes(image[: int(len(image) * share)])
    assert str(path) in failure(path)


def test_a_binary_model_that_kills_is_refused_and_the_process_lives(folder, monkeypatch):
    child = "import os, signal, sys; sys.stdin.buffer.read(); os.kill(os.getpid(), signal.SIGSEGV)"
    monkeypatch.setattr("mjhost.env.mjb._CHILD", child)
    monkeypatch.setattr("mjhost.env.mjb._passed", {})
    assert "ended a trial process with SIGSEGV" in failure(folder / "arm.mjb")


def test_a_binary_model_that_hangs_is_refused(folder, monkeypatch):
    monkeypatch.setattr("mjhost.env.mjb._CHILD", "import time; time.sleep(60)")
    monkeypatch.setattr("mjhost.env.mjb._CHILD_TIMEOUT_S", 0.2)
    monkeypatch.setattr("mjhost.env.mjb._passed", {})
    assert "did not load and step within 0.2 s" in failure(folder / "arm.mjb")


@pytest.mark.slow
def test_an_image_that_passed_is_not_tried_again(folder, monkeypatch):
    image = (folder / "arm.mjb").read_bytes()
    check_image(image, "arm.mjb", "digest of arm")
    monkeypatch.setattr("mjhost.env.mjb.subprocess", None)
    check_image(image, "arm.mjb", "digest of arm")


FUZZ = """
import os, pathlib, random, sys
from mjhost.env.loading import ModelSource, compile_source
from mjhost.errors import ModelLoadError

image = pathlib.Path("arm.mjb").read_bytes()
first, last = int(sys.argv[1]), int(sys.argv[2])
for seed in range(first, last):
    dice = random.Random(seed)
    damaged = bytearray(image)
    if dice.random() < .3:
        del damaged[dice.randrange(len(damaged)):]
    else:
        for _ in range(dice.choice((1, 1, 1, 3, 20))):
            damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
    pathlib.Path("fuzz.mjb").write_bytes(damaged)
    try:
        compile_source(ModelSource.of("fuzz.mjb"))
    except ModelLoadError:
        pass
print("alive", end="")
"""


@pytest.mark.slow
def test_damaged_binary_models_do_not_end_the_process(folder):
    done = run_python(FUZZ, folder, "0", "10")
    assert (done.returncode, done.stdout) == (0, "alive"), done.stderr


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(8))
def test_many_damaged_binary_models_do_not_end_the_process(folder, part):
    done = run_python(FUZZ, folder, str(1000 + 100 * part), str(1100 + 100 * part))
    assert (done.returncode, done.stdout) == (0, "alive"), done.stderr


def test_a_copied_model_stands_in_for_its_original():
    model = mujoco.MjModel.from_xml_string(PID)
    assert content_hash(copy.copy(model)) == content_hash(model)
