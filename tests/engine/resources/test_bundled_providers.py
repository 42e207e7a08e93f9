"""``mem:``, ``zip:``, ``package:`` and ``https:``: what they serve, and what they keep out."""

from __future__ import annotations

import io
import os
import struct
import threading
import urllib.request
import zipfile
import zlib
from pathlib import Path

import mujoco
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mjhost import engine
from mjhost.engine import builtin
from mjhost.engine.abi.symbols import engine as native
from mjhost.engine.builtin import https, mem, package, zip_archive
from mjhost.errors import EnginePluginError, InvalidArgumentError, UnknownNameError
from tests.engine.resources.helpers import load, obj, with_meshes


def test_registering_all_again_does_nothing():
    builtin.register_all()
    count = native().provider_count()
    builtin.register_all()
    assert native().provider_count() == count


# -- mem -----------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _empty_memory():
    yield
    mem.clear()
    package.clear()
    https.forbid()


def test_memory_serves_what_was_put_last():
    assert mem.put("d/a.obj", obj(0.5)) == "mem:d/a.obj"
    assert load(with_meshes("mem:d/a.obj")).body_mass[1] == pytest.approx(1000)
    mem.put("d/a.obj", bytearray(obj(1.0)))
    assert load(with_meshes("mem:d/a.obj")).body_mass[1] == pytest.approx(8000)
    assert mem.names() == ("d/a.obj",)


@pytest.mark.parametrize("name", ["a.obj", "/a.obj", "./a.obj", "d/../a.obj", "mem.dir/a.obj"])
def test_a_name_means_the_same_in_python_and_in_a_model(name):
    mem.put(name, obj())
    assert load(with_meshes(f"mem:{name}")).nmesh == 1


@pytest.mark.parametrize("folder", ["", "d/", "/d/", "d/e/"])
def test_documents_in_memory_find_their_neighbours(folder):
    mem.put(f"{folder}m.xml", with_meshes("a.obj").encode())
    mem.put(f"{folder}a.obj", obj())
    assert mujoco.MjModel.from_xml_path(f"mem:{folder}m.xml").nmesh == 1


def test_what_was_removed_is_gone_and_the_near_names_are_told():
    mem.put("arm.obj", obj())
    mem.put("leg.obj", obj())
    mem.remove("arm.obj")
    with pytest.raises(ValueError, match=r"nothing was put under 'arm\.obj'"):
        load(with_meshes("mem:arm.obj"))
    with pytest.raises(ValueError, match=r"did you mean 'leg\.obj'\?"):
        load(with_meshes("mem:legg.obj"))
    with pytest.raises(UnknownNameError, match=r"no 'arm\.obj'"):
        mem.remove("arm.obj")
    mem.clear()
    assert mem.names() == ()


def test_memory_is_bounded_and_counts_what_is_replaced(monkeypatch):
    monkeypatch.setattr(mem, "LIMIT", 100)
    mem.put("a", bytes(60))
    with pytest.raises(MemoryError, match="60 are taken"):
        mem.put("b", bytes(41))
    assert mem.names() == ("a",)
    mem.put("a", bytes(100))
    mem.put("a", bytes(10))
    mem.put("b", bytes(90))
    mem.clear("b")
    mem.put("c", bytes(90))


@pytest.mark.parametrize("name", ["", "/", "..", "../a", ".", "a\0b", None, 3])
def test_what_is_no_name_is_not_put(name):
    with pytest.raises(InvalidArgumentError, match="mem: file"):
        mem.put(name, b"x")


def test_only_bytes_are_put():
    with pytest.raises(InvalidArgumentError, match="are bytes, got str"):
        mem.put("a", "text")


def test_specs_are_encoded_to_memory():
    spec = mujoco.MjSpec.from_string(with_meshes("a.obj"), assets={"a.obj": obj()})
    spec.compile()
    spec.encode("mem:out/a.mjz")
    with zipfile.ZipFile(io.BytesIO(mem.Memory().open("mem:out/a.mjz")[0])) as archive:
        assert "a.obj" in archive.namelist()


def test_threads_put_and_load_at_once():
    errors = []

    def run(index):
        try:
            for turn in range(10):
                name = mem.put(f"{index}.obj", obj(0.5 + turn / 10))
                expected = 1000 * (1 + turn / 5) ** 3
                assert load(with_meshes(name)).body_mass[1] == pytest.approx(expected)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []


# -- zip -----------------------------------------------------------------------------------------


def archive(name="a.zip", method=zipfile.ZIP_DEFLATED, **members):
    with zipfile.ZipFile(name, "w", method) as file:
        for member, content in members.items():
            file.writestr(member.replace("__", "/").replace("_", "."), content)
    return Path(name)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("form", ["zip:{}!/d/m.xml", "zip:./{}!/d/m.xml", "ZIP:{cwd}/{}!/d/m.xml"])
def test_a_document_in_an_archive_finds_its_neighbours(method, form):
    archive(method=method, d__m_xml=with_meshes("a.obj"), d__a_obj=obj())
    name = form.format("a.zip", cwd=Path.cwd())
    assert mujoco.MjModel.from_xml_path(name).nmesh == 1


def test_an_archive_that_changed_is_read_anew():
    for size in (0.5, 1.0, 2.0):
        archive(a_obj=obj(size))
        mass = load(with_meshes("zip:a.zip!/a.obj")).body_mass[1]
        assert mass == pytest.approx(1000 * (2 * size) ** 3)


def test_an_archive_behind_other_bytes_is_read():
    content = archive(a_obj=obj()).read_bytes()
    Path("b.zip").write_bytes(b"#!/bin/sh\nexit\n" * 10 + content)
    assert load(with_meshes("zip:b.zip!/a.obj")).nmesh == 1


def test_no_archive_stays_open():
    archive(a_obj=obj())
    before = [*Path("/proc/self/fd").iterdir()]
    load(with_meshes("zip:a.zip!/a.obj"))
    assert len([*Path("/proc/self/fd").iterdir()]) == len(before)


def bomb():
    return archive(method=zipfile.ZIP_DEFLATED, a_obj=bytes(50_000_000))


def patched(old, new):
    content = archive(a_obj=obj()).read_bytes()
    assert old in content
    return content.replace(old, new)


CRC = struct.pack("<I", zlib.crc32(obj()))
SIZE = struct.pack("<I", len(obj()))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("zip:a.zip", r"zip:ARCHIVE!/MEMBER"),
        ("zip:!/a.obj", r"zip:ARCHIVE!/MEMBER"),
        ("zip:a.zip!/b.obj", r"no member 'b\.obj'; did you mean 'a\.obj'"),
        ("zip:a.zip!/../../etc/a.obj", r"zip:ARCHIVE!/MEMBER|lead out|No such file"),
        ("zip:gone.zip!/a.obj", "No such file"),
        ("zip:.!/a.obj", "directory"),
        ("zip:text.zip!/a.obj", r"text\.zip is no zip archive"),
        ("zip:crc.zip!/a.obj", "is damaged"),
        ("zip:short.zip!/a.obj", "is damaged"),
        ("zip:locked.zip!/a.obj", "is encrypted"),
        ("zip:bzip.zip!/a.obj", "packed with method 12"),
    ],
)
def test_what_is_wrong_with_an_archive_is_said(name, words):
    Path("crc.zip").write_bytes(patched(CRC, b"\1\2\3\4"))
    Path("short.zip").write_bytes(patched(SIZE, struct.pack("<I", len(obj()) - 7)))
    archive("bzip.zip", zipfile.ZIP_BZIP2, a_obj=obj())
    locked = bytearray(archive(a_obj=obj()).read_bytes())
    locked[6] |= 1
    locked[locked.index(b"PK\1\2") + 8] |= 1
    Path("locked.zip").write_bytes(locked)
    Path("text.zip").write_text("no archive")
    with pytest.raises(ValueError, match=words):
        load(with_meshes(name))


@pytest.mark.slow
def test_a_bomb_is_not_unpacked(monkeypatch):
    monkeypatch.setattr(zip_archive, "MEMBER_LIMIT", 1_000_000)
    bomb()
    with pytest.raises(ValueError, match="has 50000000 bytes, at most 1000000"):
        load(with_meshes("zip:a.zip!/a.obj"))


@pytest.mark.slow
def test_a_bomb_that_lies_about_its_size_is_not_unpacked():
    content = bomb().read_bytes()
    Path("a.zip").write_bytes(content.replace(struct.pack("<I", 50_000_000), SIZE))
    with pytest.raises(ValueError, match="is damaged"):
        load(with_meshes("zip:a.zip!/a.obj"))


def test_an_archive_with_too_many_members_is_refused(monkeypatch):
    monkeypatch.setattr(zip_archive, "ENTRY_LIMIT", 2)
    archive(a_obj=obj(), b_obj=obj(), c_obj=obj())
    with pytest.raises(ValueError, match="3 members, at most 2"):
        load(with_meshes("zip:a.zip!/a.obj"))


@pytest.mark.slow
@settings(
    deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_damaged_archives_are_read_or_refused(data):
    content = bytearray(archive(a_obj=obj(), d__b_obj=obj(2)).read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    Path("f.zip").write_bytes(content)
    try:
        assert zip_archive.open_member("zip:f.zip!/a.obj") == obj()
    except (OSError, ValueError):
        return


# -- package -------------------------------------------------------------------------------------


def make_package(folder, name, manifest=True, **files):
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    if manifest:
        (path / "package.xml").write_text(f"<package><name>{name}</name></package>")
    for file, content in files.items():
        (path / file.replace("_", ".")).write_bytes(content)
    return path


@pytest.fixture(autouse=True)
def _no_ros(monkeypatch):
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    monkeypatch.delenv("ROS_PACKAGE_PATH", raising=False)


def mass_of(name):
    return load(with_meshes(name)).body_mass[1] / 1000


@pytest.mark.parametrize("form", ["package://arm/a.obj", "package:/arm/a.obj", "package:arm/a.obj"])
def test_packages_are_found_where_they_were_added(form):
    package.add("arm", make_package("somewhere", "other", a_obj=obj(0.5)))
    assert mass_of(form) == pytest.approx(1)


def test_packages_are_found_by_their_manifest_below_a_root():
    make_package("root/group/folder", "arm", a_obj=obj(0.5))
    make_package("root/arm", "other", a_obj=obj(2.0))
    package.add_root("root")
    assert mass_of("package://arm/a.obj") == pytest.approx(1)


@pytest.mark.parametrize("relative", [False, True])
def test_packages_are_found_as_ros_says(monkeypatch, relative):
    make_package("install/share/arm", "arm", a_obj=obj(0.5))
    make_package("catkin/src/leg", "leg", a_obj=obj(1.0))
    base = "" if relative else f"{Path.cwd()}/"
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"/nowhere{os.pathsep}{base}install")
    monkeypatch.setenv("ROS_PACKAGE_PATH", f"{base}catkin")
    assert mass_of("package://arm/a.obj") == pytest.approx(1)
    assert mass_of("package://leg/a.obj") == pytest.approx(8)


def test_what_was_added_goes_before_roots_and_those_before_the_environment(monkeypatch):
    make_package("env/share/arm", "arm", a_obj=obj(0.5))
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(Path("env").absolute()))
    masses = [mass_of("package://arm/a.obj")]
    make_package("root/arm", "arm", a_obj=obj(1.0))
    package.add_root("root")
    masses.append(mass_of("package://arm/a.obj"))
    package.add("arm", make_package("added", "arm", a_obj=obj(2.0)))
    masses.append(mass_of("package://arm/a.obj"))
    assert masses == pytest.approx([1, 8, 64])


def test_a_package_that_moved_is_found_again():
    make_package("root/one/arm", "arm", a_obj=obj(0.5))
    package.add_root("root")
    assert mass_of("package://arm/a.obj") == pytest.approx(1)
    Path("root/one").rename("root/two")
    assert mass_of("package://arm/a.obj") == pytest.approx(1)


def test_links_in_a_package_are_followed_as_installed_workspaces_need_it():
    Path("source.obj").write_bytes(obj(0.5))
    path = make_package("install/arm", "arm")
    (path / "a.obj").symlink_to(Path("source.obj").absolute())
    package.add("arm", path)
    assert mass_of("package://arm/a.obj") == pytest.approx(1)


def test_links_that_go_round_in_circles_do_not_hold_up_the_search():
    path = make_package("root/deep/er", "other", manifest=False)
    (path / "up").symlink_to(Path("root").absolute())
    package.add_root("root")
    with pytest.raises(ValueError, match="no package 'arm'"):
        mass_of("package://arm/a.obj")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("package://arm", "package://PACKAGE/PATH"),
        ("package://../x/a.obj", "package://PACKAGE/PATH|no package|cannot lead out"),
        ("package://arm/../../secret.obj", "no package|cannot lead out|PACKAGE/PATH"),
        ("package://arm/sub/../../secret.obj", "no package|cannot lead out|PACKAGE/PATH"),
        ("package://leg/a.obj", r"no package 'leg' among \['arm'\]"),
        ("package://arm/gone.obj", r"gone\.obj does not exist.*did you mean 'gene\.obj'"),
        ("package://arm/sub", "no regular file"),
    ],
)
def test_what_is_no_file_of_a_package_is_refused_with_the_reason(name, words):
    Path("secret.obj").write_bytes(obj())
    path = make_package("base/arm", "arm", gene_obj=obj())
    (path / "sub").mkdir()
    package.add("arm", path)
    resource, _ = native().open_resource(name)
    assert not resource
    with pytest.raises(EnginePluginError, match=words):
        engine.check()


@pytest.mark.parametrize("uri", ["package://arm/../secret.obj", "package://arm/a/../../secret.obj"])
def test_the_way_out_of_a_package_is_closed_without_the_engine_too(uri):
    package.add("arm", make_package("base/arm", "arm"))
    Path("base/secret.obj").write_bytes(obj())
    with pytest.raises(ValueError, match="cannot lead out"):
        package.resolve(uri)


def test_what_is_no_directory_is_not_added():
    with pytest.raises(InvalidArgumentError, match="is no directory"):
        package.add("arm", "nowhere")
    with pytest.raises(InvalidArgumentError, match="is no directory"):
        package.add_root("nowhere")
    with pytest.raises(InvalidArgumentError, match="no name of a package"):
        package.add("a/b", ".")


# -- https ---------------------------------------------------------------------------------------


def test_https_refuses_and_says_what_to_do():
    with pytest.raises(ValueError, match=r"https\.allow\('models\.invalid'\)"):
        load(with_meshes("https://models.invalid/a.obj"))


@pytest.mark.parametrize(
    "uri",
    [
        "http://models.invalid/a",
        "https://user@models.invalid/a",
        "https://models.invalid.evil.invalid/a",
        "https://models.invalid:8443/a",
        "file:///etc/passwd",
    ],
)
def test_only_the_allowed_host_is_asked(uri):
    https.allow("models.invalid")
    https.check_address("https://Models.invalid/a")
    with pytest.raises(PermissionError, match="refused|not fetched"):
        https.check_address(uri)


def test_redirections_go_only_where_one_may_go():
    https.allow("models.invalid")
    request = urllib.request.Request("https://models.invalid/a")
    follow = https._Redirects().redirect_request
    assert follow(request, None, 302, "", {}, "https://models.invalid/b").full_url.endswith("/b")
    for elsewhere in ("http://models.invalid/b", "https://other.invalid/b", "file:///etc/passwd"):
        with pytest.raises(PermissionError):
            follow(request, None, 302, "", {}, elsewhere)


def test_what_is_fetched_is_bounded(monkeypatch):
    monkeypatch.setattr(https, "LIMIT", 10)
    assert https._limited(io.BytesIO(bytes(10))) == bytes(10)
    with pytest.raises(ValueError, match="more than 10 bytes"):
        https._limited(io.BytesIO(bytes(11)))


def test_a_fetched_file_is_served(monkeypatch):
    class Opener:
        def open(self, uri, timeout):
            assert timeout == https.TIMEOUT_S
            return io.BytesIO(obj() if uri == "https://models.invalid/a.obj" else b"")

    monkeypatch.setattr(https.urllib.request, "build_opener", lambda *_handlers: Opener())
    https.allow("models.invalid")
    assert load(with_meshes("https://models.invalid/a.obj")).nmesh == 1


def test_allowing_is_undone_by_forbidding():
    https.allow("models.invalid")
    https.forbid("models.invalid")
    with pytest.raises(PermissionError):
        https.check_address("https://models.invalid/a")
    with pytest.raises(InvalidArgumentError, match="a host is given"):
        https.allow("https://models.invalid/")
