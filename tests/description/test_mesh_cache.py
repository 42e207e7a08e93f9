"""Converted meshes on disk: made once, never wrong, never in the way."""

from __future__ import annotations

import os
import stat

import pytest

from mjhost import MujocoEnv, diskcache
from mjhost.description import mesh_cache as cache
from mjhost.description import meshes
from mjhost.description.report import Notes
from mjhost.errors import ModelLoadError
from tests.description import shapes


@pytest.fixture
def folder(tmp_path, monkeypatch):
    place = tmp_path / "cache" / "meshes"
    monkeypatch.setattr(cache, "folder", lambda: place)
    return place


@pytest.fixture
def conversions(monkeypatch):
    """What was converted anew."""
    made = []
    convert = meshes._written
    monkeypatch.setattr(meshes, "_written", lambda found: made.append(found) or convert(found))
    return made


def prepared(content=None, name="part.stl", beside=None):
    notes = Notes()
    content = shapes.ascii_stl() if content is None else content
    return meshes.prepare(content, name, notes, beside), notes.found


def entries(folder):
    return sorted(folder.iterdir()) if folder.is_dir() else []


def test_the_second_time_nothing_is_converted_and_the_same_is_told(folder, conversions):
    first = prepared()
    second = prepared()
    assert len(conversions) == 1
    assert first == second
    assert [str(note) for note in second[1]] == ["converted: part.stl: ASCII STL to binary"]


def test_neither_name_nor_place_of_a_file_matter_but_its_kind_does(folder, conversions):
    (part,), _ = prepared()
    (other,), told = prepared(name="other.stl")
    assert len(conversions) == 1
    assert other.content == part.content
    assert other.name.startswith("other-")
    assert told[0].subject == "other.stl"
    with pytest.raises(ModelLoadError):
        prepared(name="part.obj")


def test_colours_and_parts_come_back_as_they_were(folder, conversions):
    pytest.importorskip("collada")
    content = shapes.dae(colours=("1 0 0 1", "0 1 0 0.5"))
    first = prepared(content, "part.dae")
    assert prepared(content, "part.dae") == first
    assert len(conversions) == 1
    assert [part.rgba for part in first[0]] == [(1, 0, 0, 1), (0, 1, 0, 0.502)]


def test_a_file_that_is_passed_on_is_not_stored_a_second_time(folder):
    content = shapes.obj().encode() + b"\n#" + b"x" * 5000
    (part,), _ = prepared(content, "part.obj")
    (entry,) = entries(folder)
    assert entry.stat().st_size < 1000
    assert prepared(content, "part.obj")[0] == (part,)


def test_what_a_file_refers_to_is_part_of_the_key(folder, tmp_path):
    content = f"mtllib part.mtl\nusemtl a\n{shapes.obj()}".encode()
    for kd, rgba in (("1 0 0", (1, 0, 0, 1)), ("0 1 0", (0, 1, 0, 1))):
        (tmp_path / "part.mtl").write_text(f"newmtl a\nKd {kd}\n")
        assert prepared(content, "part.obj", tmp_path)[0][0].rgba == rgba


def test_another_converter_finds_nothing_of_this_one(folder, conversions, monkeypatch):
    prepared()
    monkeypatch.setattr(cache, "CONVERTER", cache.CONVERTER + 1)
    prepared()
    monkeypatch.setattr(cache, "_readers", lambda: "trimesh of tomorrow")
    prepared()
    assert len(conversions) == len(entries(folder)) == 3


DAMAGES = {
    "cut": lambda c: c[:-10],
    "flipped": lambda c: c[:-50] + bytes([c[-50] ^ 1]) + c[-49:],
    "empty": lambda _: b"",
    "a list": lambda _: b"[]\n",
    "no text": lambda _: b"\xff\xfe\n",
    "deep": lambda _: b"[" * 100_000,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_entry_is_made_anew_and_replaced(folder, conversions, damage):
    expected = prepared()
    (entry,) = entries(folder)
    whole = entry.read_bytes()
    entry.write_bytes(damage(whole))
    assert prepared() == expected
    assert len(conversions) == 2
    assert entry.read_bytes() == whole


@pytest.mark.parametrize(
    "parts", [[["stl", 10, None, "a"]], [["stl"]], "none", [["stl", "x", None, "a"]]]
)
def test_an_entry_that_is_whole_but_says_something_else_is_made_anew(folder, conversions, parts):
    expected = prepared()
    (entry,) = entries(folder)
    content = entry.read_bytes().partition(b"\n")[2]
    head = {"magic": cache._MAGIC, "parts": parts, "notes": []}
    assert diskcache.write(folder, entry.name, head, content)
    assert prepared() == expected
    assert len(conversions) == 2


def test_an_entry_under_the_key_of_another_is_not_used(folder, conversions):
    prepared()
    (entry,) = entries(folder)
    other = shapes.ascii_stl(2 * shapes.CORNERS[shapes.FACES])
    expected = prepared(other)
    (second,) = set(entries(folder)) - {entry}
    second.write_bytes(entry.read_bytes())
    assert prepared(other) == expected
    assert len(conversions) == 3


def test_a_folder_that_others_can_write_is_not_used(folder, conversions):
    prepared()
    folder.chmod(0o777)
    prepared()
    assert len(conversions) == 2


def test_the_folder_is_the_users_alone(folder):
    prepared()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(entry.stat().st_mode) == 0o600 for entry in entries(folder))


def test_a_cache_that_cannot_be_is_no_error(tmp_path, monkeypatch, conversions):
    place = tmp_path / "file"
    place.write_text("in the way")
    for folder in (place / "meshes", None):
        monkeypatch.setattr(cache, "folder", lambda folder=folder: folder)
        prepared()
    assert len(conversions) == 2


def test_it_can_be_turned_off_and_is_below_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert diskcache.user_folder() == tmp_path / "mjhost"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert diskcache.user_folder() == tmp_path / ".cache" / "mjhost"
    monkeypatch.setenv("MJHOST_CACHE", "0")
    assert diskcache.user_folder() is None


def test_the_folder_keeps_its_bounds_and_what_was_used_last(folder, monkeypatch):
    monkeypatch.setattr(cache, "MOST_ENTRIES", 2)
    contents = [shapes.ascii_stl(k * shapes.CORNERS[shapes.FACES]) for k in (1, 2, 3)]
    prepared(contents[0])
    (first,) = entries(folder)
    prepared(contents[1])
    for age, entry in enumerate(entries(folder)):
        os.utime(entry, (1000 + age, 1000 + age))
    prepared(contents[0])
    prepared(contents[2])
    assert len(entries(folder)) == 2
    assert first in entries(folder)
    monkeypatch.setattr(cache, "MOST_BYTES", 2000)
    prepared(shapes.ascii_stl(4 * shapes.CORNERS[shapes.FACES]))
    assert sum(entry.stat().st_size for entry in entries(folder)) <= 2000


def test_an_error_is_not_kept(folder):
    for _ in range(2):
        with pytest.raises(ModelLoadError, match=r"^part\.obj has no triangles"):
            prepared(b"# nothing\n", "part.obj")
    assert entries(folder) == []


# -- the engine's own cache, which stays on --------------------------------------------------------

ROBOT = """<robot name="r"><link name="base"/><link name="part"><{kind}><geometry>
<mesh filename="part.obj"/></geometry></{kind}></link>
<joint name="j" type="revolute"><parent link="base"/><child link="part"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""


def test_an_edited_mesh_is_never_stale(tmp_path):
    """3.15 takes files in memory for the same whose hashes collide, as most such edits do."""
    robot, part = tmp_path / "robot.urdf", tmp_path / "part.obj"
    robot.write_text(ROBOT.format(kind="collision"))
    part.write_text(shapes.obj())
    with MujocoEnv(robot) as env:
        for size in (1.1, 1.2, 1.3, 1.2, 1.1):
            part.write_text(shapes.obj().replace("v 1 0 0", f"v {size} 0 0"))
            mass = env.reload().import_report.mass
            assert mass == pytest.approx(1000 * size * shapes.VOLUME, rel=1e-5)


def test_a_mesh_that_was_seen_weighs_what_it_does_when_it_collides(tmp_path):
    """What is only seen has the inertia of a shell, and the engine's cache keeps both apart."""
    robot, part = tmp_path / "robot.urdf", tmp_path / "part.obj"
    part.write_text(shapes.obj())
    for kind in ("visual", "collision", "visual", "collision"):
        robot.write_text(ROBOT.format(kind=kind))
        with MujocoEnv(robot) as env:
            mass = env.body_inertial("part").mass
        expected = 1000 * shapes.VOLUME if kind == "collision" else 0.0
        assert mass == pytest.approx(expected, rel=1e-5, abs=1e-3)
