"""xacro without ROS: what expands, and what says why it does not."""

from __future__ import annotations

import threading

import pytest

from mjhost import MujocoEnv, description
from mjhost.errors import ModelLoadError

pytest.importorskip("xacrodoc")

WRAP = '<robot name="m" xmlns:xacro="http://www.ros.org/wiki/xacro">{}</robot>'
LINK = '<link name="a"/>'


@pytest.fixture
def write(tmp_path):
    def made(inside, name="robot.urdf.xacro"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(WRAP.format(inside))
        return path

    return made


def links(path, **arguments):
    return [body.name for body in description.load(path, **arguments).spec.bodies][1:]


def test_includes_are_looked_for_beside_the_file_that_has_them(write):
    write('<xacro:include filename="deeper.xacro"/>', "sub/part.xacro")
    write(LINK, "sub/deeper.xacro")
    assert links(write('<xacro:include filename="sub/part.xacro"/>')) == ["a"]


def test_find_is_what_package_is(write, tmp_path):
    write(LINK, "elsewhere/part.xacro")
    path = write('<xacro:include filename="$(find arm)/part.xacro"/>')
    assert links(path, packages={"arm": tmp_path / "elsewhere"}) == ["a"]
    with pytest.raises(ModelLoadError, match="no package 'arm'"):
        description.load(path)


def test_arguments_and_their_defaults_are_filled_in(write):
    path = write('<xacro:arg name="n" default="one"/><link name="$(arg n)"/>')
    assert links(path) == ["one"]
    assert links(path, xacro_args={"n": "two"}) == ["two"]


def test_yaml_beside_the_file_is_read(write, tmp_path):
    (tmp_path / "names.yaml").write_text("first: why\n")
    load = "${xacro.load_yaml('names.yaml')}"
    inside = f'<xacro:property name="y" value="{load}"/><link name="${{y[\'first\']}}"/>'
    assert links(write(inside)) == ["why"]


REFUSED = {
    "unknown macro": ("<xacro:foo/>" + LINK, "unknown macro name: xacro:foo"),
    "argument not given": ('<link name="$(arg q)"/>', "argument q"),
    "property not defined": ('<link name="${zz}"/>', "'zz' is not defined"),
    "python": ('<link name="${__import__(1)}"/>', "__import__"),
    "file that is not there": ('<xacro:include filename="gone.xacro"/>', r"gone\.xacro"),
    "itself": ('<xacro:include filename="robot.urdf.xacro"/>', "recursion"),
    "two links": (LINK + LINK, "two links of the name 'a'"),
    "nothing": ("", "only macros and no robot"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_expand_says_why(write, case):
    inside, match = REFUSED[case]
    path = write(inside)
    with pytest.raises(ModelLoadError, match=match) as caught:
        description.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("<robot", "is no XML"),
        ("<launch/>", "is a <launch>, not a <robot>"),
        ('<!DOCTYPE r [<!ENTITY a "x">]>' + WRAP.format(LINK), "document type declaration"),
    ],
)
def test_what_is_no_xacro_is_called_that(tmp_path, text, match):
    path = tmp_path / "robot.xacro"
    path.write_text(text)
    with pytest.raises(ModelLoadError, match=match):
        description.load(path)


def test_a_failed_expansion_leaves_the_next_one_alone(write, tmp_path):
    bad = write('<xacro:include filename="$(find gone)/x.xacro"/>', "bad.xacro")
    good = write(LINK)
    with pytest.raises(ModelLoadError):
        description.load(bad)
    assert links(good) == ["a"]


def test_threads_expand_with_packages_of_their_own(write, tmp_path):
    path = write('<xacro:include filename="$(find arm)/part.xacro"/>')
    found: dict[int, list[str]] = {}
    for index in range(4):
        write(f'<link name="l{index}"/>', f"p{index}/part.xacro")

    def read(index):
        found[index] = links(path, packages={"arm": tmp_path / f"p{index}"})

    threads = [threading.Thread(target=read, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == {index: [f"l{index}"] for index in range(4)}


def test_a_reload_reads_includes_again(write):
    part = write(LINK, "part.xacro")
    path = write('<xacro:include filename="part.xacro"/>')
    with MujocoEnv(path) as env:
        part.write_text(WRAP.format('<link name="b"/>'))
        env.reload()
        assert env.names("body") == ("world", "b")
        part.write_text(WRAP.format("<xacro:gone/>"))
        with pytest.raises(ModelLoadError, match="xacro:gone"):
            env.reload()
        assert env.names("body") == ("world", "b")
        env.step(1)
