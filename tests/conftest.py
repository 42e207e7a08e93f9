"""What every test has to leave behind as it found it, and the engine in the header.

Each test runs in an empty working directory of this process. After it: no MuJoCo callback or user
hook differs (exported symbols and Python getters), no thread is left, no env is left open, the
working directory is the same and still empty (above all, the engine wrote no log), and the
interpreter's hooks for interrupts and unraisable errors are those of before.

A test that lets plain MuJoCo, beside mjhost, write its log does ``monkeypatch.chdir(tmp_path)``.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import os
import shutil
import signal
import sys
import threading
import time
import weakref
from pathlib import Path

import mujoco
import pytest
from hypothesis.configuration import set_hypothesis_home_dir

JOIN_LIMIT_S = 2.0
CALLBACKS = (
    "act_bias",
    "act_dyn",
    "act_gain",
    "contactfilter",
    "control",
    "passive",
    "sensor",
    "time",
)
USER_HOOKS = ("mju_user_error", "mju_user_warning", "mju_user_malloc", "mju_user_free")


def _engine_symbols() -> dict[str, ctypes.c_void_p]:
    (path,) = Path(mujoco.__file__).parent.glob("libmujoco.*so*")
    library = ctypes.CDLL(str(path))
    names = [f"mjcb_{name}" for name in CALLBACKS]
    names += [name for name in USER_HOOKS if hasattr(library, name)]
    return {name: ctypes.c_void_p.in_dll(library, name) for name in names}


SYMBOLS = _engine_symbols()
GETTERS = {f"get_mjcb_{name}": getattr(mujoco, f"get_mjcb_{name}") for name in CALLBACKS}


# Whoever starts a suite in the background of a script makes it, and all its children, deaf to
# Ctrl-C, which is what many tests are about.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


LIVE_ENVS: weakref.WeakSet = weakref.WeakSet()


def _track_envs() -> None:
    """Wraps the env's constructor, once it has been imported, so that LIVE_ENVS knows each."""
    module = sys.modules.get("mjhost.env.environment")
    env_class = getattr(module, "MujocoEnv", None)
    if env_class is None or hasattr(env_class.__init__, "__wrapped__"):
        return
    construct = env_class.__init__

    @functools.wraps(construct)
    def tracked(self, *args, **kwargs):
        construct(self, *args, **kwargs)
        LIVE_ENVS.add(self)

    env_class.__init__ = tracked


def process_state() -> dict[str, object]:
    """Everything process-wide that a test could leave changed, by name."""
    state: dict[str, object] = {name: cell.value for name, cell in SYMBOLS.items()}
    state |= {name: getter() for name, getter in GETTERS.items()}
    state["the working directory"] = Path.cwd()
    state["sys.unraisablehook"] = sys.unraisablehook
    state["threading.excepthook"] = threading.excepthook
    state["the SIGINT handler"] = signal.getsignal(signal.SIGINT)
    return state


def left_threads(before: set[threading.Thread]) -> list[threading.Thread]:
    """Threads that are not in ``before`` and do not end within a moment."""
    deadline = time.monotonic() + JOIN_LIMIT_S
    extra = [thread for thread in threading.enumerate() if thread not in before]
    for thread in extra:
        if thread is not threading.current_thread():
            thread.join(max(0.0, deadline - time.monotonic()))
    return [thread for thread in extra if thread.is_alive()]


def open_envs(before: set[int]) -> list[str]:
    """Envs made since ``before`` that are neither closed nor garbage."""

    def left():
        return [e for e in LIVE_ENVS if id(e) not in before and e.phase.name != "CLOSED"]

    if left():
        gc.collect()
    return [repr(env) for env in left()]


def left_files(directory: Path) -> list[str]:
    """Names of what is in ``directory``, which is emptied, so that the next test is not blamed."""
    entries = list(directory.iterdir())
    for entry in entries:
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    return [entry.name for entry in entries]


@pytest.fixture
def collector_off():
    """For tests that count interrupts: one in a finaliser or callback of gc is lost by Python."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(scope="session")
def _empty_directory(tmp_path_factory):
    return tmp_path_factory.mktemp("cwd")


@pytest.fixture(autouse=True, scope="session")
def _mesh_cache_of_its_own(tmp_path_factory):
    """Converted meshes are kept for this session only, not in the user's cache."""
    folder = tmp_path_factory.mktemp("meshes", numbered=False)
    folder.chmod(0o700)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mjhost.description.mesh_cache.folder", lambda: folder)
        yield


@pytest.fixture(autouse=True)
def _nothing_left_behind(_empty_directory):
    started_in = Path.cwd()
    os.chdir(_empty_directory)
    problems = yield from _watched()
    problems += [f"file left behind: {name}" for name in left_files(_empty_directory)]
    os.chdir(started_in)
    if problems:
        pytest.fail("the test left something behind:\n  " + "\n  ".join(problems), pytrace=False)


def _watched():
    """Lets the test run and returns what it left changed in the process."""
    _track_envs()
    envs = {id(env) for env in LIVE_ENVS}
    threads = set(threading.enumerate())
    before = process_state()
    yield
    problems = [f"env left open: {env}" for env in open_envs(envs)]
    problems += [f"thread left behind: {thread!r}" for thread in left_threads(threads)]
    after = process_state()
    problems += [
        f"{name} was {before[name]!r} and is now {after[name]!r}"
        for name in before
        if before[name] != after[name]
    ]
    return problems


def pytest_configure(config):
    set_hypothesis_home_dir(config.rootpath / ".hypothesis")
    # Relative search paths are those of the directory pytest was started in, for subprocesses too.
    paths = os.environ.get("PYTHONPATH")
    if paths:
        absolute = [str(Path(path).resolve()) for path in paths.split(os.pathsep) if path]
        os.environ["PYTHONPATH"] = os.pathsep.join(absolute)


def pytest_report_header(config):
    return f"engine: mujoco {mujoco.mj_versionString()}"


@pytest.fixture(scope="session")
def engine_version() -> tuple[int, int, int]:
    """The engine's version as numbers."""
    major, minor, patch = (int(part) for part in mujoco.mj_versionString().split(".")[:3])
    return major, minor, patch
