"""Native libraries: every file has its record, and none can end the process."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from mjhost import engine
from mjhost.engine import libraries
from mjhost.engine.shared_objects import NotSharedObjectError, parse
from mjhost.errors import EngineNameTakenError, InvalidArgumentError, PluginLoadError
from tests.engine.callbacks.scenes import run as run_script
from tests.engine.libraries.conftest import WHEEL

pytestmark = pytest.mark.slow

MACHINE = 18  # where ELF names the processor
AARCH64, X86_64 = 183, 62


def test_library_registers_its_plugin_and_models_use_it(build, name, run):
    (record,) = engine.load_library(build(name, 3.0))
    assert (record.loaded, record.plugins) == (True, (name,))
    assert name in record.reason
    assert run(name) == [12.0, 12.0]


def test_second_implementation_of_a_name_is_refused_every_time(build, name, run):
    first, second = build(name, 1.0), build(name, 2.0)
    engine.load_library(first)
    for _ in range(3):
        with pytest.raises(EngineNameTakenError) as caught:
            engine.load_library(second)
        assert f"{name!r} has another implementation, of {first}" in str(caught.value)
        assert str(second) in str(caught.value)
    assert run(name) == [4.0, 4.0]


def test_name_of_a_python_plugin_is_kept_and_its_origin_told(build, name):
    @engine.plugin(name, capabilities=("passive",))
    class Mine:
        def compute(self, model, data, instance, capability):
            data.qfrc_passive[0] += 1

    with pytest.raises(EngineNameTakenError, match=r"Mine \(.*test_loading\.py:\d+\)"):
        engine.load_library(build(name))


def test_python_plugin_cannot_take_the_name_of_a_library(build, name):
    path = build(name)
    engine.load_library(path)
    with pytest.raises(EngineNameTakenError, match=path.name):

        @engine.plugin(name, capabilities=("passive",))
        class Mine:
            def compute(self, model, data, instance, capability):
                data.qfrc_passive[0] += 1


def test_what_a_refused_library_registered_before_is_named(build, name, run):
    engine.load_library(build(name, 1.0))
    first = f"{name}first"
    with pytest.raises(EngineNameTakenError, match=f"it has registered {first}"):
        engine.load_library(build(name, 2.0, f'-DFIRST="{first}"'))
    assert run(first) == [8.0, 8.0]
    assert run(name) == [4.0, 4.0]


def test_loading_again_is_no_error_and_says_so(build, name):
    path = build(name)
    engine.load_library(path)
    (record,) = engine.load_library(str(path))
    assert record.loaded
    assert record.reason == f"loaded before: {name}"


def test_refusal_that_the_engine_made_before_is_seen(build, name, tmp_path):
    # In a process of its own: the engine's error leaves the loader of this one locked.
    told = run_script(
        f"""
        import mujoco
        from mjhost import PluginLoadError, engine
        engine.load_library({str(build(name, 1.0))!r})
        second = {str(build(name, 2.0))!r}
        try: mujoco.mj_loadPluginLibrary(second)
        except mujoco.FatalError: print("refused")
        mujoco.mj_loadPluginLibrary(second)
        for _ in range(2):
            try: engine.load_library(second)
            except PluginLoadError as error: print("loaded before, and no" in str(error))
        """,
        tmp_path,
    )
    assert told.splitlines() == ["refused", "True", "True"]


def test_directory_has_a_record_per_file_and_raises_nothing(build, name, tmp_path):
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "sub").mkdir()
    (folder / "notes.txt").write_text("no library")
    good = build(name, file=folder / "good.so")
    (folder / "link.so").symlink_to(build(f"{name}linked"))
    (folder / "dead.so").symlink_to(tmp_path / "nowhere.so")
    build(name, 2.0, file=folder / "other.so")
    foreign = bytearray(good.read_bytes())
    foreign[MACHINE] = AARCH64 if foreign[MACHINE] != AARCH64 else X86_64
    (folder / "foreign.so").write_bytes(foreign)
    (folder / "cut.so").write_bytes(good.read_bytes()[:700])

    found = {record.path.rpartition("/")[2]: record for record in engine.load_library(folder)}

    assert {name for name, record in found.items() if record.loaded} == {"good.so", "link.so"}
    assert found["link.so"].plugins == (f"{name}linked",)
    assert "no ELF header" in found["notes.txt"].reason
    assert "load it by itself" in found["sub"].reason
    assert "nowhere.so', where nothing is" in found["dead.so"].reason
    assert "it is built for 64-bit" in found["foreign.so"].reason
    assert "damaged" in found["cut.so"].reason
    assert found["other.so"].name_taken
    assert set(found.values()) <= set(libraries.libraries())


def test_library_of_another_engine_is_seen_before_its_code_runs(build, name, tmp_path):
    stem = "libmujoco.so.2.3.0"
    other = tmp_path / stem
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    subprocess.run(
        [compiler, "-shared", "-fPIC", f"-Wl,-soname,{stem}", "-x", "c", "/dev/null", "-o", other],
        check=True,
        timeout=60,
    )
    path = build(name, 1.0, "-Wl,--no-as-needed,--unresolved-symbols=ignore-all", link=other)
    with pytest.raises(PluginLoadError, match=f"built against {stem}, this process runs libmujoco"):
        engine.load_library(path)
    assert not _is_mapped(path)


def test_library_that_is_not_linked_with_the_engine_is_told_what_is_missing(build, name):
    with pytest.raises(PluginLoadError, match="undefined symbol.*link it with"):
        engine.load_library(build(name, link=None))


def test_extension_module_of_python_is_not_loaded():
    (path,) = WHEEL.glob("_render.*so")
    with pytest.raises(PluginLoadError, match="registers nothing with MuJoCo"):
        engine.load_library(path)


def test_libraries_of_the_wheel_are_loaded_already():
    records = engine.load_library(WHEEL / "plugin")
    assert all(record.loaded for record in records)
    assert any("mujoco.pid" in record.reason for record in records)


@pytest.mark.parametrize(
    ("path", "error"),
    [("/nowhere/x.so", PluginLoadError), ("", InvalidArgumentError), (3, InvalidArgumentError)],
)
def test_what_is_no_path_is_refused(path, error):
    with pytest.raises(error):
        engine.load_library(path)


def _is_mapped(path):
    return str(path) in Path("/proc/self/maps").read_text()


# -- headers -------------------------------------------------------------------------------------


def test_header_of_the_engine_is_read():
    (path,) = WHEEL.glob("libmujoco.so.*")
    header = parse(path.read_bytes())
    assert header.name == path.name
    assert header.bits == 8 * ctypes.sizeof(ctypes.c_void_p)
    assert any(needed.startswith("libc.so") for needed in header.needed)


def test_damaged_headers_are_refused_and_nothing_else_is_raised():
    (path,) = WHEEL.glob("libmujoco.so.*")
    content = path.read_bytes()
    refused = 0
    for position in range(0, 256, 3):
        damaged = content[:position] + b"\xff" + content[position + 1 :]
        try:
            parse(damaged)
        except NotSharedObjectError:
            refused += 1
    assert refused > 10


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"MZ" + bytes(200), bytes(300)])
def test_other_files_are_no_shared_objects(content):
    with pytest.raises(NotSharedObjectError):
        parse(content)
