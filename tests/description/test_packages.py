"""Where files of a description are: every way that vendors and ROS name them."""

from __future__ import annotations

import os

import pytest

from mjhost.description.packages import Packages
from mjhost.errors import InvalidArgumentError, ModelLoadError


@pytest.fixture(autouse=True)
def no_ros(monkeypatch):
    monkeypatch.delenv("ROS_PACKAGE_PATH", raising=False)
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)


def make_package(folder, name=None):
    folder.mkdir(parents=True)
    if name is not None:
        (folder / "package.xml").write_text(f"<package><name> {name} </name></package>")
    return folder


def test_what_the_caller_gives_wins(tmp_path, monkeypatch):
    make_package(tmp_path / "ros" / "arm")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "ros"))
    given = make_package(tmp_path / "given")
    assert Packages({"arm": given}).path("package://arm/a/b.stl") == given / "a" / "b.stl"
    assert Packages().path("package://arm/b.stl") == tmp_path / "ros" / "arm" / "b.stl"


@pytest.mark.parametrize("scheme", ["package", "model"])
def test_a_folder_above_the_description_is_a_package_by_its_name_or_its_manifest(tmp_path, scheme):
    checkout = make_package(tmp_path / "arm-1.2.3", "arm")
    beside = make_package(checkout / "urdf" / "deep")
    assert Packages(beside=beside).path(f"{scheme}://arm/m.stl") == checkout / "m.stl"
    sibling = make_package(tmp_path / "hand")
    assert Packages(beside=beside).path(f"{scheme}://hand/m.stl") == sibling / "m.stl"


def test_the_ament_index_is_looked_into(tmp_path, monkeypatch):
    share = make_package(tmp_path / "two" / "share" / "arm")
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{tmp_path / 'one'}{os.pathsep}{tmp_path / 'two'}")
    assert Packages().path("package://arm/m.stl") == share / "m.stl"


def test_an_entry_of_the_ros_path_may_be_the_package_itself(tmp_path, monkeypatch):
    package = make_package(tmp_path / "src", "arm")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(package))
    assert Packages().path("package://arm/m.stl") == package / "m.stl"


def test_a_folder_of_that_name_whose_manifest_has_another_is_still_found(tmp_path):
    package = make_package(tmp_path / "arm", "other")
    assert Packages(beside=package).path("package://arm/m.stl") == package / "m.stl"


def test_a_package_that_is_nowhere_is_named_with_all_that_was_looked_into(tmp_path, monkeypatch):
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "ros"))
    with pytest.raises(ModelLoadError) as caught:
        Packages(beside=tmp_path).path("package://arm/m.stl")
    told = str(caught.value)
    for part in ("package://arm/m.stl", "'arm'", str(tmp_path), "ROS_PACKAGE_PATH", "(not set)"):
        assert part in told


@pytest.mark.parametrize(
    "name",
    [
        "package://arm/../secret",
        "package://arm/a/../../secret",
        "package://arm/%2e%2e/secret",
        "package://arm/..%2Fsecret",
        "package://arm//etc/passwd",
    ],
)
def test_no_name_leads_out_of_its_package(tmp_path, name):
    package = make_package(tmp_path / "arm")
    try:
        found = Packages({"arm": package}).path(name)
    except ModelLoadError as error:
        assert name in str(error)
    else:
        assert package in found.parents


@pytest.mark.parametrize("name", ["package://../secret", "package:///m.stl", "package://"])
def test_a_package_has_a_name(tmp_path, name):
    with pytest.raises(ModelLoadError):
        Packages(beside=tmp_path).path(name)


def test_files_are_named_by_url_and_path_too(tmp_path):
    packages = Packages(beside=tmp_path)
    assert packages.path("file:///a%20b/c.stl").as_posix() == "/a b/c.stl"
    assert packages.path("/a/b.stl").as_posix() == "/a/b.stl"
    assert packages.path("../b.stl") == tmp_path / ".." / "b.stl"
    with pytest.raises(ModelLoadError, match="package://, file:// or a path"):
        packages.path("https://example.org/a.stl")


def test_folders_that_are_given_have_to_be_there(tmp_path):
    with pytest.raises(InvalidArgumentError, match="package 'arm' is not there"):
        Packages({"arm": tmp_path / "gone"})
    with pytest.raises(InvalidArgumentError, match="maps names to folders, got list"):
        Packages(["arm"])
