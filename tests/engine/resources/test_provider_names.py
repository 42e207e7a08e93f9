"""Who may be a resource provider, under which prefix, and what declaring again does."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading

import mujoco
import pytest

from mjhost import engine
from mjhost.engine.abi.symbols import engine as native
from mjhost.engine.providers import provider_prefixes
from mjhost.errors import EngineDeclarationError, EngineNameTakenError, InvalidArgumentError
from tests.engine.resources.helpers import Store, declared, load, obj, volume, with_meshes


@pytest.mark.parametrize("wrong", ["", "1x", "a_b", "a:", "a b", "ä", None, b"x"])
def test_a_prefix_that_the_engine_would_not_match_is_refused(wrong):
    with pytest.raises(InvalidArgumentError, match="prefix of a resource provider"):
        engine.resource_provider(wrong)
    assert wrong not in provider_prefixes()


@pytest.mark.parametrize("wrong", [0, -1, 2**31, 1.5, "8"])
def test_a_limit_that_cannot_be_is_refused(prefix, wrong):
    with pytest.raises(InvalidArgumentError, match="max_bytes"):
        engine.resource_provider(prefix, max_bytes=wrong)


class WithoutOpen:
    pass


class NeedsArguments:
    def __init__(self, path):
        self.path = path

    def open(self, uri):
        return self.path


class WrongModified(Store):
    def modified(self, uri):
        return False


async def coroutine(uri):
    return b""


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (WithoutOpen, r"method open\(uri\)"),
        (WithoutOpen(), r"method open\(uri\)"),
        (NeedsArguments, "made without arguments"),
        (WrongModified(), r"modified is called with \(uri, timestamp\)"),
        (lambda: b"", r"open is called with \(uri\)"),
        (coroutine, "cannot await"),
        (7, "is neither"),
    ],
)
def test_what_is_no_provider_is_refused_with_the_reason(prefix, wrong, words):
    with pytest.raises(EngineDeclarationError, match=words):
        engine.resource_provider(prefix)(wrong)
    assert prefix not in provider_prefixes()


def test_a_second_implementation_of_a_prefix_is_refused_with_both_origins(prefix):
    declared(prefix, a_obj=obj())

    def other(_uri):
        return b""

    for spelling in (prefix, prefix.upper()):
        for _ in range(2):
            with pytest.raises(EngineNameTakenError, match="other.*is taken by Store"):
                engine.resource_provider(spelling)(other)
    assert load(with_meshes(f"{prefix}:a.obj")).nmeshvert == 8


def test_declaring_again_from_the_same_place_swaps_the_implementation(prefix):
    first = declared(prefix, a_obj=obj(1.0))
    spec = mujoco.MjSpec.from_string(with_meshes(f"{prefix}:a.obj"))
    assert volume(spec.compile()) == pytest.approx(8)
    calls = len(first.calls)
    second = declared(prefix, a_obj=obj(2.0))
    assert volume(spec.compile()) == pytest.approx(64)
    assert (len(first.calls), bool(second.calls)) == (calls, True)


def test_what_is_open_survives_a_swap(prefix):
    declared(prefix, a_bin=b"first")
    resource, _ = native().open_resource(f"{prefix}:a.bin")
    declared(prefix, a_bin=b"second")
    gc.collect()
    assert native().read_resource(resource) == b"first"
    native().close_resource(resource)


def test_threads_that_declare_the_same_at_once_register_once(prefix):
    barrier, errors = threading.Barrier(8), []

    def declare():
        barrier.wait(10)
        try:
            declared(prefix, a_obj=obj())
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=declare) for _ in range(8)]
    before = native().provider_count()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert errors == []
    assert native().provider_count() == before + 1


@pytest.mark.slow
def test_importing_the_engine_package_registers_nothing():
    code = (
        "import sys, mjhost.engine, mujoco; from mjhost.engine.codecs import model_suffixes;"
        "from mjhost.engine.abi.symbols import engine;"
        "print(sorted(model_suffixes()), engine().provider_count(),"
        " sorted({'numba', 'llvmlite', 'sqlite3'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "['.mjsqlite'] 0 []\n"
