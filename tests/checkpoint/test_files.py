"""The file of a checkpoint: whole or not there, and whatever else it is, it is refused."""

from __future__ import annotations

import hashlib
import os
import stat
import struct

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mjhost import MujocoEnv
from mjhost.checkpoint import Checkpoint, compare, files, persistence, trees
from mjhost.errors import CheckpointError
from tests.checkpoint.models import MATRIX, drive


@pytest.fixture(scope="module")
def checkpoint():
    with MujocoEnv(MATRIX["equality"]) as env:
        drive(env, 0, 20)
        env.model.body_mass[1] = 3.5
        taken = env.checkpoint()
    plugin = {"rng": np.random.default_rng(1).bit_generator.state, "seen": (1, [2.5, None], b"\0")}
    state = trees.frozen(plugin, "a test")
    from mjhost.checkpoint import PluginState

    return msgspec.structs.replace(
        taken, plugins=(PluginState("p", "m:P", state, saved=True, exact=True),)
    )


@pytest.fixture(scope="module")
def image(checkpoint):
    return persistence.to_bytes(checkpoint)


def test_reading_gives_back_what_was_written(checkpoint, tmp_path):
    checkpoint.save(tmp_path / "a.ckpt")
    again = Checkpoint.load(tmp_path / "a.ckpt")
    assert compare(checkpoint, again) == []
    assert again.options == checkpoint.options
    assert again.plugins[0].state == checkpoint.plugins[0].state
    assert not again.state.flags.writeable
    assert [file.name for file in tmp_path.iterdir()] == ["a.ckpt"]


def test_an_older_file_stays_if_the_new_one_cannot_be_written(checkpoint, tmp_path, monkeypatch):
    place = tmp_path / "a.ckpt"
    checkpoint.save(place)
    before = place.read_bytes()

    def full(_number):
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        checkpoint.with_components({"time": [9.0]}).save(place)
    assert place.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["a.ckpt"]


def test_a_file_has_the_rights_that_a_file_of_the_user_has(checkpoint, tmp_path):
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    checkpoint.save(tmp_path / "a.ckpt")
    assert stat.S_IMODE((tmp_path / "a.ckpt").stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


@settings(deadline=None, max_examples=200)
@given(data=st.data())
def test_a_damaged_file_is_refused(image, data):
    at = data.draw(st.integers(0, len(image) - 1))
    flip = data.draw(st.integers(1, 255))
    damaged = bytearray(image)
    damaged[at] ^= flip
    if data.draw(st.booleans()):
        damaged = damaged[:at]
    with pytest.raises(CheckpointError):
        persistence.from_bytes(bytes(damaged))


def with_checksum(body: bytes) -> bytes:
    return body + hashlib.sha256(body).digest()


@settings(deadline=None, max_examples=300)
@given(data=st.data())
def test_a_file_that_somebody_made_is_refused_or_sound(image, data):
    """Also with the right checksum nothing but a CheckpointError comes out."""
    body = bytearray(image[:-32])
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        made = persistence.from_bytes(with_checksum(bytes(body)))
    except CheckpointError:
        return
    assert np.isfinite(made.component("qpos")).all()


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=200))
def test_bytes_that_are_no_checkpoint_are_refused(content):
    for body in (content, files.MAGIC + content, files.MAGIC + struct.pack("<IQ", 1, 5) + content):
        for whole in (body, with_checksum(body)):
            with pytest.raises(CheckpointError):
                persistence.from_bytes(whole)


def test_a_size_that_a_file_claims_allocates_nothing(image):
    entry = files.ArrayEntry("<f8", (1 << 40,))
    head = msgspec.msgpack.encode({"arrays": [entry], "content": {}})
    body = files.MAGIC + struct.pack("<IQ", 1, len(head)) + head
    with pytest.raises(CheckpointError, match="longer than the file|header"):
        persistence.from_bytes(with_checksum(body))


def test_a_newer_format_is_named(image):
    body = image[:8] + struct.pack("<I", 7) + image[12:-32]
    with pytest.raises(CheckpointError, match="format 7"):
        persistence.from_bytes(with_checksum(body))


def test_a_pipe_a_folder_and_nothing_are_no_checkpoint(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(CheckpointError, match="not a regular file"):
            Checkpoint.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        Checkpoint.load(tmp_path / "gone")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.builds(np.float32, st.floats(width=32))
    | st.builds(lambda n: np.arange(n, dtype=np.int16).reshape(-1, 1), st.integers(0, 4)),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=200)
@given(value=VALUES)
def test_plain_values_survive_with_their_types(value):
    arrays = []
    form = trees.packed(trees.frozen(value, "a test"), arrays)
    sent = msgspec.msgpack.decode(msgspec.msgpack.encode(form))
    again = trees.unpacked(sent, arrays)
    assert _told(again) == _told(value)


def _told(value):
    if isinstance(value, np.ndarray | np.generic):
        return type(value), value.dtype, np.shape(value), value.tobytes()
    if isinstance(value, dict):
        return {key: _told(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value), [_told(item) for item in value]
    return type(value), repr(value)


def test_what_a_plugin_keeps_is_copied_and_bounded():
    array = np.zeros(3)
    kept = trees.frozen({"a": [array]}, "a test")
    array[:] = 1
    assert kept["a"][0].tolist() == [0, 0, 0]
    endless = []
    endless.append(endless)
    for value in (endless, {1: 2}, {"a": object()}, np.array([object()]), np.array(["text"])):
        with pytest.raises(CheckpointError, match="a test"):
            trees.frozen(value, "a test")


def test_numbers_can_be_changed_by_the_names_of_their_component(checkpoint):
    changed = checkpoint.with_components({"ctrl": [0.1, 0.2]})
    assert changed.component("ctrl").tolist() == [0.1, 0.2]
    assert [difference.name for difference in compare(checkpoint, changed)] == ["ctrl"]
    for values, error in (
        ({"ctl": [1.0]}, LookupError),
        ({"ctrl": [1.0]}, ValueError),
        ({"ctrl": [1.0, float("nan")]}, CheckpointError),
    ):
        with pytest.raises(error):
            checkpoint.with_components(values)
