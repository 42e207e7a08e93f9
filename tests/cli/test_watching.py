"""Watched files: when a change is told, and that none is told twice or lost."""

from __future__ import annotations

import os

import pytest

from mjhost.cli.watching import INTERVAL_S, Changes, FileWatch, Watch
from tests.cli.models import write


@pytest.fixture
def file(tmp_path):
    return write(tmp_path, "one")


def _save(path, text) -> None:
    """As an editor that replaces the file: the old one is never half written."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def test_nothing_is_told_of_files_that_stay(file):
    watch = FileWatch([file])
    assert [watch.changed() for _ in range(3)] == [set()] * 3


def test_change_is_told_once_after_it_stood_still_for_a_look(file):
    watch = FileWatch([file])
    file.write_text("longer")
    assert [watch.changed() for _ in range(4)] == [set(), {file}, set(), set()]


def test_file_saved_in_two_writes_is_one_change(file):
    watch = FileWatch([file])
    file.write_text("half")
    assert watch.changed() == set()
    file.write_text("half and half")
    assert [watch.changed() for _ in range(3)] == [set(), {file}, set()]


def test_burst_over_several_files_is_one_change(tmp_path):
    files = [write(tmp_path, "", f"{name}.xml") for name in "abc"]
    watch = FileWatch(files)
    for path in files:
        path.write_text("something")
        assert watch.changed() == set()
    assert watch.changed() == set(files)


def test_same_size_is_a_change_if_the_file_was_replaced(file):
    watch = FileWatch([file])
    before = file.stat()
    _save(file, "two")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert [watch.changed() for _ in range(2)] == [set(), {file}]


def test_file_that_is_gone_is_told_when_it_is_back(file):
    watch = FileWatch([file])
    file.unlink()
    assert [watch.changed() for _ in range(3)] == [set()] * 3
    file.write_text("back again")
    assert [watch.changed() for _ in range(2)] == [set(), {file}]


def test_file_that_was_moved_away_and_back_did_not_change(file):
    watch = FileWatch([file])
    away = file.rename(file.with_suffix(".away"))
    assert watch.changed() == set()
    away.rename(file)
    assert [watch.changed() for _ in range(2)] == [set(), set()]


def test_file_that_did_not_exist_is_told_when_it_comes(tmp_path):
    missing = tmp_path / "include.xml"
    watch = FileWatch([missing])
    missing.write_text("here")
    assert [watch.changed() for _ in range(2)] == [set(), {missing}]


def test_file_that_never_stands_still_is_told_all_the_same(file):
    watch = FileWatch([file])
    told = set()
    for length in range(2, 20):
        file.write_text("x" * length * 10)
        told |= watch.changed()
    assert told == {file}


def test_following_again_does_not_swallow_a_change(file, tmp_path):
    watch = FileWatch([file])
    other = write(tmp_path, "", "other.xml")
    file.write_text("changed while a reload read it")
    watch.follow([file, other])
    assert [watch.changed() for _ in range(2)] == [set(), {file}]


def test_file_that_is_not_followed_any_more_is_not_told(file):
    watch = FileWatch([file])
    watch.follow([])
    file.write_text("longer")
    assert [watch.changed() for _ in range(2)] == [set(), set()]
    assert watch.files == frozenset()


def test_watch_tells_model_and_plugins_apart_and_looks_at_its_interval(file, tmp_path):
    now = 0.0
    watch = Watch(file, clock=lambda: now)
    plugin = write(tmp_path, "", "plugin.py")
    watch.follow([plugin])
    assert not any(watch.changes())
    plugin.write_text("x = 1")
    for _ in range(5):
        assert not any(watch.changes())
    now += INTERVAL_S
    assert not any(watch.changes())
    now += INTERVAL_S
    assert watch.changes() == Changes(plugins=frozenset({plugin}))


def test_include_that_a_model_gets_is_watched_from_the_next_reload_on(file):
    now = 0.0
    watch = Watch(file, clock=lambda: now)
    file.write_text('<mujoco><include file="part.xml"/></mujoco>')
    watch.follow([])
    (file.parent / "part.xml").write_text("<mujoco/>")
    changed = set()
    for _ in range(2):
        now += INTERVAL_S
        changed |= watch.changes().model
    assert file.parent / "part.xml" in changed
