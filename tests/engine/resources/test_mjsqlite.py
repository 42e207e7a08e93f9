"""Models in SQLite archives: packed, encoded, decoded, and nothing else let in."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mjhost import MujocoEnv, engine, models
from mjhost.engine.builtin import mem, mjsqlite
from mjhost.errors import EnginePluginError, InvalidArgumentError, ModelLoadError
from tests.engine.resources.helpers import FILES, FULL, content, obj, png, unique, with_meshes

REPORTS = mujoco.mj_version() >= 3_016_000
INCLUDING = {
    "main.xml": '<mujoco><include file="inc.xml"/><asset><model name="s" file="sub.xml"/></asset>'
    '<worldbody><attach model="s" body="b" prefix="x"/></worldbody></mujoco>',
    "inc.xml": '<mujoco><compiler meshdir="one"/><asset><mesh name="a" file="a.obj"/></asset>'
    '<worldbody><geom type="mesh" mesh="a"/></worldbody></mujoco>',
    "sub.xml": '<mujoco><compiler meshdir="two"/><asset><mesh name="a" file="a.obj"/></asset>'
    '<worldbody><body name="b"><geom type="mesh" mesh="a"/></body></worldbody></mujoco>',
    "one/a.obj": obj(0.25),
    "two/a.obj": obj(0.5),
}


def decoded(archive, name=None):
    path = Path(name or unique("model") + ".mjsqlite")
    path.write_bytes(archive)
    return mujoco.MjSpec.from_file(str(path))


def refused(archive, words):
    with pytest.raises(ValueError, match=words if REPORTS else "could not decode content"):
        decoded(archive)
    if not REPORTS:
        with pytest.raises(EnginePluginError, match=words):
            engine.check()


def full():
    return mujoco.MjSpec.from_string(FULL, assets=FILES)


# -- round trips ---------------------------------------------------------------------------------


def test_what_is_packed_compiles_to_the_same_bits():
    model = decoded(mjsqlite.pack(FULL, FILES)).compile()
    assert content(model) == content(full().compile())


@pytest.mark.parametrize("name", ["humanoid", "pendulum", "demo"])
def test_bundled_models_survive_packing_bit_for_bit(name):
    text = models.path(name).read_text()
    model = decoded(mjsqlite.pack(text)).compile()
    assert content(model) == content(mujoco.MjModel.from_xml_string(text))


def test_included_and_attached_documents_are_packed_too(tmp_path):
    for name, file in INCLUDING.items():
        path = tmp_path / "disk" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file if isinstance(file, bytes) else file.encode())
    files = {k: v if isinstance(v, bytes) else v.encode() for k, v in INCLUDING.items()}
    archive = mjsqlite.pack(files.pop("main.xml").decode(), files)
    model = decoded(archive).compile()
    assert content(model) == content(mujoco.MjModel.from_xml_path("disk/main.xml"))


def test_an_encoded_spec_compiles_to_the_same_model():
    spec = full()
    model = spec.compile()
    spec.encode("a.mjsqlite", model)
    again = mujoco.MjSpec.from_file("a.mjsqlite").compile()
    before, after = content(model), content(again)
    assert before.keys() == after.keys()
    for name in before:
        # MuJoCo writes the frames of meshes in another way than it reads them.
        if isinstance(before[name], tuple) and before[name][1].endswith(("f8", "f4")):
            np.testing.assert_allclose(getattr(again, name), getattr(model, name), atol=1e-12)
        elif name not in {"signature", "text"}:
            assert before[name] == after[name], name
    assert again.mesh_vert.tobytes() == model.mesh_vert.tobytes()
    assert again.tex_data.tobytes() == model.tex_data.tobytes()
    assert again.hfield_data.tobytes() == model.hfield_data.tobytes()


def test_encoding_is_what_the_engines_own_writer_gives_and_then_stable():
    spec = full()
    spec.compile()
    spec.encode("a.mjsqlite")
    first = mjsqlite.unpack(Path("a.mjsqlite").read_bytes())
    direct = mujoco.MjSpec.from_string(first.xml, assets=first.assets).compile()
    again = mujoco.MjSpec.from_file("a.mjsqlite")
    assert content(again.compile()) == content(direct)
    again.encode("b.mjsqlite")
    second = mjsqlite.unpack(Path("b.mjsqlite").read_bytes())
    assert second.assets == first.assets


def test_an_attached_spec_with_another_mesh_directory_is_encoded_in_full(tmp_path):
    for name, file in INCLUDING.items():
        path = tmp_path / "disk" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file if isinstance(file, bytes) else file.encode())
    spec = mujoco.MjSpec.from_file("disk/main.xml")
    model = spec.compile()
    spec.encode("a.mjsqlite", model)
    again = mujoco.MjSpec.from_file("a.mjsqlite").compile()
    assert again.mesh_vert.tobytes() == model.mesh_vert.tobytes()
    assert sorted(mjsqlite.unpack(Path("a.mjsqlite").read_bytes()).assets.values()) == sorted(
        [INCLUDING["one/a.obj"], INCLUDING["two/a.obj"]]
    )


def test_packing_the_same_gives_the_same_bytes():
    shuffled = dict(reversed(FILES.items()))
    assert mjsqlite.pack(FULL, FILES) == mjsqlite.pack(FULL, shuffled)
    assert mjsqlite.unpack(mjsqlite.pack(FULL, FILES)) == (FULL, FILES)


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    st.dictionaries(st.from_regex(r"[a-z]{1,5}(/[a-z]{1,5})?", fullmatch=True), st.binary()),
)
def test_unpacking_is_the_inverse_of_packing(xml, files):
    assert mjsqlite.unpack(mjsqlite.pack(xml, files)) == (xml, files)


def test_an_env_hosts_an_archive_and_reloads_it():
    path = Path("robot.mjsqlite")
    path.write_bytes(mjsqlite.pack(with_meshes("a.obj"), {"a.obj": obj(0.5)}))
    with MujocoEnv(model="robot.mjsqlite") as env:
        assert env.model.body_mass[1] == pytest.approx(1000)
        env.step(3)
        path.write_bytes(mjsqlite.pack(with_meshes("a.obj"), {"a.obj": obj(1.0)}))
        env.reload("robot.mjsqlite")
        assert env.model.body_mass[1] == pytest.approx(8000)
        path.write_bytes(b"damaged")
        with pytest.raises(ModelLoadError, match="it is no SQLite file"):
            env.reload("robot.mjsqlite")
        env.step(3)
    engine.check()  # what the reload told of does not wait to be told again


# -- the files of a decoded spec -----------------------------------------------------------------


def archive_of(size):
    return mjsqlite.pack(with_meshes("a.obj"), {"a.obj": obj(size)})


def test_a_decoded_spec_needs_the_archive_no_more():
    spec = decoded(archive_of(0.5), "gone.mjsqlite")
    Path("gone.mjsqlite").unlink()
    copy = spec.copy()
    for one in (spec, copy, spec):
        assert one.compile().body_mass[1] == pytest.approx(1000)


def test_a_spec_keeps_its_own_files_when_the_archive_is_replaced():
    old = decoded(archive_of(0.5), "same.mjsqlite")
    new = decoded(archive_of(1.0), "same.mjsqlite")
    assert old.compile().body_mass[1] == pytest.approx(1000)
    assert new.compile().body_mass[1] == pytest.approx(8000)


@pytest.fixture
def forgetful(monkeypatch):
    """Archives that were read are not kept."""

    def forget():
        with mjsqlite._lock:
            mjsqlite._kept.clear()

    yield forget
    forget()


def test_an_archive_that_was_forgotten_is_read_again(forgetful):
    spec = decoded(archive_of(0.5), "again.mjsqlite")
    forgetful()
    assert spec.compile().body_mass[1] == pytest.approx(1000)


def test_an_archive_that_was_forgotten_and_changed_is_refused(forgetful):
    spec = decoded(archive_of(0.5), "changed.mjsqlite")
    Path("changed.mjsqlite").write_bytes(archive_of(1.0))
    forgetful()
    with pytest.raises(ValueError, match=r"changed\.mjsqlite has changed since"):
        spec.compile()
    Path("changed.mjsqlite").unlink()
    with pytest.raises(ValueError, match=r"neither there nor in memory; decode it again"):
        spec.compile()


def test_an_archive_behind_a_provider_is_read_again_there(forgetful):
    name = mem.put(f"d/{unique('x')}.mjsqlite", archive_of(0.5))
    spec = mujoco.MjSpec.from_file(name)
    forgetful()
    assert spec.compile().body_mass[1] == pytest.approx(1000)
    mem.clear("d/")


def test_the_archives_kept_are_bounded(monkeypatch, forgetful):
    monkeypatch.setattr(mjsqlite, "KEPT", 40_000)
    for index in range(10):
        decoded(archive_of(0.1 + index / 10))
    assert 1 <= len(mjsqlite._kept) <= 4
    assert sum(entry.size for entry in mjsqlite._kept.values()) <= 40_000


def test_a_saved_document_refers_to_the_archive(tmp_path):
    spec = decoded(archive_of(0.5), "saved.mjsqlite")
    spec.compile()
    text = spec.to_xml()
    assert "mjsqlite:" in text
    assert mujoco.MjModel.from_xml_string(text).body_mass[1] == pytest.approx(1000)


def test_names_with_anything_in_them_are_found():
    Path("a b%41#?ä!").mkdir()
    spec = decoded(archive_of(0.5), "a b%41#?ä!/x y.mjsqlite")
    assert spec.compile().nmesh == 1


def test_threads_decode_and_compile_at_once():
    results = []

    def run(index):
        size = 0.5 + index / 10
        spec = decoded(archive_of(size), f"thread{index}.mjsqlite")
        results.append(spec.compile().body_mass[1] / 1000 / (2 * size) ** 3)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert results == pytest.approx([1] * 6)


# -- what is let in ------------------------------------------------------------------------------


def altered(*statements):
    """An archive that another program has worked on."""
    Path("altered.db").write_bytes(archive_of(0.5))
    with closing(sqlite3.connect("altered.db")) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return Path("altered.db").read_bytes()


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        (["CREATE TABLE more (x)"], "other tables"),
        (["CREATE INDEX i ON model (xml)"], "other tables"),
        (["CREATE TRIGGER t AFTER INSERT ON model BEGIN DELETE FROM asset; END"], "other tables"),
        (["DROP TABLE model", "CREATE VIEW model AS SELECT 'x' AS xml"], "other tables"),
        (["DROP TABLE asset"], "other tables"),
        (["ALTER TABLE model ADD COLUMN more"], "other tables"),
        (["DELETE FROM model"], "no model, or several"),
        (["INSERT INTO model VALUES ('<mujoco/>')"], "no model, or several|more than 1 rows"),
        (["UPDATE model SET xml = x'00'"], "no model, or several"),
        (["UPDATE asset SET content = 'text'"], "a file that is none"),
        (["UPDATE asset SET name = 'b.obj'"], r"'a\.obj', which is not in the archive"),
        (["PRAGMA application_id = 7"], "no mjsqlite archive"),
        (["PRAGMA user_version = 2"], "version 2, this mjhost reads 1"),
        (["UPDATE model SET xml = '<mujoco><oops/></mujoco>'"], "oops"),
    ],
)
def test_what_is_no_archive_is_refused_with_the_reason(statements, words):
    refused(altered(*statements), words)


@pytest.mark.parametrize(
    ("archive", "words"),
    [
        (b"not SQLite at all", "no SQLite file"),
        (b"SQLite format 3\0" + bytes(84), "damaged"),
        (b"SQLite format 3\0" + b"\xff" * 4000, "damaged"),
        (archive_of(0.5)[:5000], "damaged|no mjsqlite archive"),
    ],
)
def test_what_is_damaged_is_refused_with_the_reason(archive, words):
    refused(archive, words)


def test_an_archive_that_is_too_large_is_refused(monkeypatch):
    archive = archive_of(0.5)
    monkeypatch.setattr(mjsqlite, "LIMIT", 1000)
    with pytest.raises(ValueError, match="at most 1000 bytes"):
        mjsqlite.unpack(archive)
    with pytest.raises(InvalidArgumentError, match="at most 1000 bytes"):
        mjsqlite.pack("<mujoco/>", {"a": bytes(1000)})


@pytest.mark.parametrize("name", ["", "/a", "../a", "a/../b", "./a", "a\\b", "a\0b", "a//b"])
def test_names_that_are_no_plain_paths_are_not_packed(name):
    with pytest.raises(InvalidArgumentError, match="plain path"):
        mjsqlite.pack("<mujoco/>", {name: b""})


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(st.data())
def test_damaged_archives_are_read_or_refused(data):
    archive = bytearray(SMALL)
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(archive) - 1))
        archive[at] = data.draw(st.integers(0, 255))
    try:
        mjsqlite.unpack(bytes(archive))
    except ValueError:
        return


SMALL = mjsqlite.pack("<mujoco/>", {"a.obj": b"v 0 0 0\n" * 20, "t.png": png()})


def test_reading_leaves_the_archive_as_it_is(tmp_path):
    path = tmp_path / "read only.mjsqlite"
    path.write_bytes(archive_of(0.5))
    path.chmod(0o444)
    before = sorted(tmp_path.iterdir())
    mujoco.MjSpec.from_file(str(path)).compile()
    assert sorted(tmp_path.iterdir()) == before
    shutil.rmtree(tmp_path / "nothing", ignore_errors=True)
