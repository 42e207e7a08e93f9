"""A disk cache of its own for these tests, empty when they begin."""

import pytest

pytest.importorskip("numba", reason="the extra fast is not installed")


@pytest.fixture(scope="session")
def _cache_home(tmp_path_factory):
    home = tmp_path_factory.mktemp("cache")
    home.chmod(0o700)
    return home


@pytest.fixture(scope="module", autouse=True)
def _own_cache(_cache_home):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(_cache_home))
        yield _cache_home


@pytest.fixture(autouse=True)
def _no_failure_left():
    from mjhost.engine import failures

    yield
    left = []
    while (error := failures.take_any()) is not None:
        left.append(error)
    assert not left, f"failures left behind: {left}"
