"""Checkpoints of clients: by name in one directory, and nowhere else."""

from __future__ import annotations

import threading

import pytest

from mjhost import (
    InvalidArgumentError,
    MujocoEnv,
    NotOfferedError,
    QueueFullError,
    ReentrancyError,
    UnknownNameError,
)
from mjhost.errors import CheckpointError
from mjhost.operations import OPERATIONS, CheckpointStore, error_record, perform
from mjhost.operations.store import SUFFIX
from tests.operations.fingerprints import fingerprint
from tests.operations.samples import MODEL, REQUESTS

NO_NAMES = [
    "", ".", "..", ".hidden", "-x", "a/b", "/etc/passwd", "../up", "a\\b", "a b", "a\x00", "ü",
    "a\n", "x" * 101, "٣",
]  # fmt: skip
ABOUT_FILES = [name for name, spec in OPERATIONS.items() if spec.group == "Checkpoints"]


@pytest.fixture
def env():
    with MujocoEnv(MODEL) as env:
        yield env


def files_below(directory) -> set[str]:
    return {path.name for path in directory.rglob("*")}


def test_a_run_goes_on_to_the_same_bits_from_what_was_kept(env, store):
    env.step(10)
    kept = perform(env, "checkpoint", {"name": "here"}, checkpoints=store)
    assert (kept.step_count, kept.exact, kept.inexact_because) == (10, True, ())
    env.step(30)
    wanted = fingerprint(env)["state"]
    with MujocoEnv(MODEL) as fresh:
        answer = perform(fresh, "restore", {"name": "here"}, checkpoints=store)
        assert answer == kept
        assert perform(fresh, "info").step_count == 10
        fresh.step(30)
        assert fingerprint(fresh)["state"] == wanted


def test_what_is_kept_is_listed_and_can_be_deleted(env, store, tmp_path):
    perform(env, "checkpoint", {"name": "a.b-c_1"}, checkpoints=store)
    listed = perform(env, "checkpoints", checkpoints=store).checkpoints
    assert list(listed) == ["a.b-c_1", "kept", "old"]
    assert listed["kept"] == (tmp_path / f"kept{SUFFIX}").stat().st_size
    perform(env, "delete_checkpoint", {"name": "kept"}, checkpoints=store)
    with pytest.raises(UnknownNameError, match="no checkpoint is named 'kept'"):
        perform(env, "delete_checkpoint", {"name": "kept"}, checkpoints=store)


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_name_is_never_a_path(env, store, tmp_path, name):
    before = files_below(tmp_path)
    for operation in ("checkpoint", "restore", "delete_checkpoint"):
        with pytest.raises(InvalidArgumentError, match="the name of a checkpoint must be"):
            perform(env, operation, {"name": name}, checkpoints=store)
    assert files_below(tmp_path) == before


def test_a_name_that_is_taken_is_replaced_only_if_that_is_said(env, store):
    with pytest.raises(InvalidArgumentError, match="there is a checkpoint named 'kept'"):
        perform(env, "checkpoint", {"name": "kept"}, checkpoints=store)
    assert store.load("kept").counters.steps == 4
    perform(env, "checkpoint", {"name": "kept", "replace": True}, checkpoints=store)
    assert store.load("kept").counters.steps == 0


def test_links_are_not_followed(env, store, tmp_path, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "file"
    env.checkpoint().save(outside)
    before = outside.read_bytes()
    (tmp_path / f"link{SUFFIX}").symlink_to(outside)
    (tmp_path / f"dangling{SUFFIX}").symlink_to(outside.with_name("none"))
    (tmp_path / f"folder{SUFFIX}").mkdir()
    for name in ("link", "dangling", "folder"):
        for operation in ("restore", "delete_checkpoint"):
            with pytest.raises(UnknownNameError):
                perform(env, operation, {"name": name}, checkpoints=store)
        with pytest.raises(InvalidArgumentError, match="is taken by something"):
            perform(env, "checkpoint", {"name": name, "replace": True}, checkpoints=store)
    assert outside.read_bytes() == before
    assert set(store.files()) == {"kept", "old"}


def test_a_file_that_is_no_checkpoint_is_refused(env, store, tmp_path):
    (tmp_path / f"kept{SUFFIX}").write_bytes(b"nothing of the kind")
    before = fingerprint(env)
    with pytest.raises(CheckpointError):
        perform(env, "restore", {"name": "kept"}, checkpoints=store)
    assert fingerprint(env) == before


def test_there_is_room_for_so_many_and_no_more(env, tmp_path):
    store = CheckpointStore(tmp_path, limit=2)
    for name in ("a", "b"):
        perform(env, "checkpoint", {"name": name}, checkpoints=store)
    with pytest.raises(QueueFullError, match="room for 2 checkpoints"):
        perform(env, "checkpoint", {"name": "c"}, checkpoints=store)
    perform(env, "checkpoint", {"name": "b", "replace": True}, checkpoints=store)
    assert set(store.files()) == {"a", "b"}


def test_what_is_refused_was_not_taken(env, store):
    with env.events.subscribe() as events:
        with pytest.raises(InvalidArgumentError):
            perform(env, "checkpoint", {"name": "kept"}, checkpoints=store)
        assert events.drain() == []


@pytest.mark.parametrize("name", ABOUT_FILES)
def test_a_host_without_a_directory_offers_no_checkpoints(env, name):
    with pytest.raises(NotOfferedError) as caught:
        perform(env, name, REQUESTS[name])
    assert error_record(caught.value).code == "not_offered"


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "3"])
def test_a_limit_that_is_none_is_refused(tmp_path, limit):
    with pytest.raises(InvalidArgumentError, match="limit must be an integer of at least 1"):
        CheckpointStore(tmp_path, limit=limit)


def test_a_directory_that_is_none_is_refused(tmp_path):
    for directory in (tmp_path / "none", tmp_path / "file"):
        (tmp_path / "file").touch()
        with pytest.raises(InvalidArgumentError, match="is none"):
            CheckpointStore(directory)


def test_of_two_clients_that_take_one_name_one_is_refused(env, store):
    outcomes = []

    def client():
        try:
            outcomes.append(perform(env, "checkpoint", {"name": "mine"}, checkpoints=store).name)
        except InvalidArgumentError:
            outcomes.append("refused")

    threads = [threading.Thread(target=client) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(outcomes) == ["mine", "refused", "refused", "refused"]


def test_inside_a_step_no_file_is_written(env, store):
    env.every(500, lambda model, data: perform(env, "checkpoint", {"name": "x"}, checkpoints=store))
    with pytest.raises(ReentrancyError):
        env.step()
    assert set(store.files()) == {"kept", "old"}
