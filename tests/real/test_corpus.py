"""The cache of real models: nothing wrong gets in, nothing gets out, no network is no failure."""

from __future__ import annotations

import hashlib
import stat
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.real import conftest, corpus


@pytest.fixture
def offline(monkeypatch):
    """pip with no index at all."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setattr(corpus, "_unreachable", {})


def make_wheel(folder: Path, members: dict[str, bytes], *, mode: int = 0) -> Path:
    archive = folder / "made-1.0-py3-none-any.whl"
    with zipfile.ZipFile(archive, "w") as wheel:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            wheel.writestr(info, content)
    return archive


def entry(archive: Path, **changes) -> corpus.Wheel:
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    made = corpus.Wheel("made", "1.0", archive.name, digest, ("made/",), (("a", "made/a.xml"),))
    return replace(made, **changes)


def cached(archive: Path, wheel: corpus.Wheel, cache: Path) -> None:
    target = cache / "wheels" / wheel.sha256 / wheel.file
    target.parent.mkdir(parents=True)
    target.write_bytes(archive.read_bytes())


def test_manifest_lists_each_model_once_and_inside_an_unpacked_tree():
    assert len(set(corpus.MODEL_IDS)) == len(corpus.MODEL_IDS) >= 15
    for wheel in corpus.WHEELS:
        assert len(wheel.sha256) == 64
        assert int(wheel.sha256, 16)
        assert wheel.version in wheel.file
        assert all(member.startswith(wheel.trees) for _, member in wheel.models)


def test_unknown_model_names_what_exists():
    with pytest.raises(KeyError, match="unitree/g1"):
        corpus.model_path("unitree/g2")


def test_cached_wheel_needs_no_network(tmp_path, offline):
    archive = make_wheel(tmp_path, {"made/a.xml": b"<a/>", "made/b/c.png": b"c", "other/d": b"d"})
    wheel = entry(archive)
    cached(archive, wheel, tmp_path / "cache")
    tree = corpus.tree(wheel, tmp_path / "cache")
    files = {p.relative_to(tree).as_posix() for p in tree.rglob("*") if p.is_file()}
    assert files == {"made/a.xml", "made/b/c.png"}


def test_changed_wheel_in_the_cache_is_refused(tmp_path, offline):
    archive = make_wheel(tmp_path, {"made/a.xml": b"<a/>"})
    wheel = entry(archive, sha256="0" * 64)
    cached(archive, wheel, tmp_path / "cache")
    with pytest.raises(corpus.CorruptWheel, match="must have the sha256 0000"):
        corpus.tree(wheel, tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("trees/*"))


def test_fetched_wheel_with_another_hash_never_enters_the_cache(tmp_path, monkeypatch, offline):
    source = tmp_path / "index"
    source.mkdir()
    archive = make_wheel(
        source,
        {
            "made-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: made\nVersion: 1.0\n",
            "made-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nTag: py3-none-any\n",
        },
    )
    monkeypatch.setenv("PIP_FIND_LINKS", str(source))
    with pytest.raises(corpus.CorruptWheel, match=r"made 1\.0"):
        corpus.fetched(entry(archive, sha256="0" * 64), tmp_path / "cache")
    assert not list((tmp_path / "cache").rglob("*.whl"))


def test_without_network_a_test_is_skipped_as_not_run(tmp_path, monkeypatch, offline):
    monkeypatch.setenv(corpus.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.delenv(conftest.REQUIRE_VARIABLE, raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"not run: gymnasium .* cannot be fetched"):
        conftest._path_or_skip("gym/ant")


def test_without_network_a_required_test_fails(tmp_path, monkeypatch, offline):
    monkeypatch.setenv(corpus.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setenv(conftest.REQUIRE_VARIABLE, "1")
    with pytest.raises(pytest.fail.Exception, match="cannot be fetched"):
        conftest._path_or_skip("gym/ant")


@pytest.mark.parametrize(
    "name", ["made/../../out", "made/..", "made/a\\..\\..\\out", "made/c:out", "made/x/../../../o"]
)
def test_member_outside_its_folder_is_refused(tmp_path, name):
    archive = make_wheel(tmp_path, {name: b"x"})
    with pytest.raises(corpus.CorruptWheel, match="no file below it"):
        corpus.unpack(archive, ("made/",), tmp_path / "deep" / "tree")
    assert not (tmp_path / "deep").exists() or not list((tmp_path / "deep").rglob("*out*"))


def test_absolute_member_is_refused(tmp_path):
    archive = make_wheel(tmp_path, {f"{tmp_path}/out": b"x"})
    with pytest.raises(corpus.CorruptWheel, match="no file below it"):
        corpus.unpack(archive, (str(tmp_path),), tmp_path / "tree")
    assert not (tmp_path / "out").exists()


def test_symbolic_link_is_refused(tmp_path):
    archive = make_wheel(tmp_path, {"made/link": b"/etc"}, mode=stat.S_IFLNK | 0o777)
    with pytest.raises(corpus.CorruptWheel, match="no file below it"):
        corpus.unpack(archive, ("made/",), tmp_path / "tree")


def test_member_twice_in_the_archive_is_refused(tmp_path):
    archive = tmp_path / "twice.whl"
    with zipfile.ZipFile(archive, "w") as wheel:
        wheel.writestr("made/a", b"1")
        with pytest.warns(UserWarning, match="Duplicate name"):
            wheel.writestr("made/a", b"2")
    with pytest.raises(corpus.CorruptWheel, match="a file twice"):
        corpus.unpack(archive, ("made/",), tmp_path / "tree")


def test_archive_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    archive = make_wheel(tmp_path, {"made/a": b"x" * 11})
    monkeypatch.setattr(corpus, "UNPACKED_LIMIT", 10)
    with pytest.raises(corpus.CorruptWheel, match="unpacks to 11 bytes"):
        corpus.unpack(archive, ("made/",), tmp_path / "tree")
    assert not (tmp_path / "tree").exists()
